"""The report in a real browser: it is shown whole, fetches nothing, complains of nothing, and prints on A4."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import gpytorch
import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from browsers import BROWSER, in_a_browser

pytestmark = [pytest.mark.processes, in_a_browser]

TIMES = np.linspace(0.0, 3.0, 25)
HOSTILE = '<script>document.title="hacked"</script>'


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with hostile names, for the owner: it has all that a page can have."""
    kernel = gpytorch.kernels.MaternKernel(nu=2.5)
    kernel.lengthscale = 0.5
    X = pd.DataFrame({HOSTILE: TIMES})
    mechanism = sf.protect(sf.Prior(kernel=kernel, noise=0.01), X, sf.Box({HOSTILE: (1.0, 2.0)}), alpha=0.5)
    release = mechanism.release(np.sin(TIMES), output_name="<img src=//evil.example/x onerror=alert(1)>")
    path = tmp_path_factory.mktemp("browser") / "report.html"
    return sf.report(release, path, truth=np.sin(TIMES), title="A title & more", progress=False)


def browse(page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    assert BROWSER is not None
    command = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]
    command += ["--virtual-time-budget=2000", "--host-resolver-rules=MAP * ~NOTFOUND", "--disable-extensions"]
    command += [f"--user-data-dir={page.parent / 'profile'}", "--disable-background-networking", "--disable-sync"]
    command += ["--enable-logging=stderr", "--v=0", *options, page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done


def complaints(log: str) -> list[str]:
    """What the page made the browser say; the rest is about buses, fonts and graphics cards."""
    return [line for line in log.splitlines() if "CONSOLE" in line or "Content Security Policy" in line]


def test_the_page_is_shown_and_nothing_is_fetched_or_run(page: Path) -> None:
    log = page.parent / "net.json"
    done = browse(page, "--dump-dom", f"--log-net-log={log}", "--net-log-capture-mode=Everything")
    shown = done.stdout
    assert "The promise holds" in shown
    assert "<title>OWNER ONLY: A title &amp; more</title>" in shown
    assert shown.count("<svg") == 2
    assert re.findall(r"<(?:script|img|iframe|link)\b", shown) == []
    assert complaints(done.stderr) == []
    # every address that the browser was asked for on behalf of the page
    asked = set(re.findall(r'"url":"([a-z]+:[^"]*)"', log.read_text(encoding="utf-8", errors="replace")))
    assert not any("evil" in address for address in asked)


def test_the_check_for_complaints_finds_them(tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text("<!doctype html><title>x</title><script>nothing.at.all()</script>")
    assert complaints(browse(bad, "--dump-dom").stderr)


def test_the_page_fits_the_screen_and_is_not_blank(page: Path) -> None:
    from matplotlib.image import imread

    for width in (1200, 500):
        picture = page.parent / f"{width}.png"
        browse(page, f"--window-size={width},1400", f"--screenshot={picture}")
        pixels = imread(picture)[..., :3]
        assert pixels.shape[1] == width
        assert pixels.std() > 0.05
        # the owner's banner is the first thing to be seen, and red
        red, green, blue = pixels[12, 5]
        assert red > 0.5
        assert max(green, blue) < 0.3


def test_the_page_prints_on_a4(page: Path) -> None:
    printed = page.parent / "report.pdf"
    browse(page, "--no-pdf-header-footer", f"--print-to-pdf={printed}")
    raw = printed.read_bytes()
    assert raw.startswith(b"%PDF-")
    boxes = {
        tuple(map(float, found)) for found in re.findall(rb"/MediaBox \[([\d.]+) ([\d.]+) ([\d.]+) ([\d.]+)\]", raw)
    }
    assert boxes
    for box in boxes:
        assert box[2] == pytest.approx(595.3, abs=1.5)
        assert box[3] == pytest.approx(841.9, abs=1.5)
    assert 3 <= len(re.findall(rb"/Type ?/Page\b", raw)) <= 12
