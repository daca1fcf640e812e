"""The studio in a real browser: a server of this process with a session of its own, and pages that are watched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from browsers import BROWSER, NO_BROWSER

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from sfumato.studio.server import Studio

#: No sandbox: tests may be run by root. The others keep the browser from connecting anywhere by itself.
FLAGS = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
FLAGS += "--disable-component-update --disable-sync --disable-extensions"

#: What Plotly says when a step goes away while its chart is being fitted to the screen.
KNOWN = "Resize must be passed a displayed plot div element"


@pytest.fixture
def studio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Studio]:
    """A studio without data, started in an empty folder: what is published lies there."""
    pytest.importorskip("nicegui", reason="the studio needs NiceGUI: pip install 'sfumato[studio]'")
    from sfumato.studio.server import open_studio
    from sfumato.studio.session import Session

    monkeypatch.chdir(tmp_path)
    opened = open_studio(Session())
    yield opened
    opened.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium. It ends with the module: while it runs, no other event loop can run in this thread."""
    if BROWSER is None:
        pytest.skip(NO_BROWSER)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS.split())
        yield started
        started.close()


@pytest.fixture
def complaints() -> list[str]:
    """What pages complained of, and what they asked other origins for: a test with any fails at its end."""
    return []


@pytest.fixture
def open_page(browser: Browser, studio: Studio, complaints: list[str]) -> Iterator[Callable[..., Page]]:
    """Opens pages of the studio in browsers that know nothing of each other, and watches them."""
    own, contexts = studio.url.rsplit("/", 2)[0] + "/", []

    def asked(kind: str, url: str) -> None:
        if not url.replace("ws://", "http://", 1).startswith((own, "data:", "blob:")):
            complaints.append(f"{kind} elsewhere: {url[:200]}")

    def wrong(error: str) -> None:
        if KNOWN not in error:
            complaints.append(f"error on the page: {error}")

    def opened(url: str = studio.url, width: int = 1440, height: int = 1000, **how: Any) -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce", **how)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("console", lambda said: complaints.append(f"console: {said.text}") if said.type == "error" else None)
        page.on("pageerror", lambda error: wrong(str(error)))
        page.on("request", lambda request: asked("request", request.url))
        page.on("websocket", lambda socket: asked("websocket", socket.url))
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def page(open_page: Callable[..., Page]) -> Page:
    """The studio's page, as wide as a desk's screen."""
    return open_page()
