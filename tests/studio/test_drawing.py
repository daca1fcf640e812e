"""A region that is dragged over the chart, with the mouse or a finger, or typed, is the region that is protected."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from browsers import choose, in_a_browser, until
from sfumato.regions import parse_region

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from sfumato.studio.server import Studio
    from sfumato.studio.session import Session

pytestmark = [pytest.mark.processes, in_a_browser]

#: Opens the step with a table.
Visit = Callable[..., "tuple[Page, Session]"]

WILD = "depth <img src=x onerror=\"document.title='hacked'\"> %{x} [m]"
SITES = ["Adelie", "Gentoo <i>", "it's 75 %"]


def table() -> pd.DataFrame:
    days = pd.date_range("1985-01-01", periods=60, freq="7D")
    return pd.DataFrame({"date": days, "site": [SITES[i % 3] for i in range(60)], WILD: np.linspace(0.0, 50.0, 60)})


@pytest.fixture
def fits(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the prior was to be fitted for; it is not, which takes seconds."""
    asked: list[str] = []
    monkeypatch.setattr(studio.session, "start_fit", lambda: asked.append(" | ".join(studio.session.choices.regions)))
    return asked


@pytest.fixture
def visit(studio: Studio, open_page: Callable[..., Page], fits: list[str]) -> Visit:
    def visited(frame: pd.DataFrame, y: pd.Series, **how: Any) -> tuple[Page, Session]:
        studio.session.open_arrays(frame, y)
        page = open_page(f"{studio.url}?step=sensitive", **how)
        page.wait_for_selector(".nsewdrag")
        return page, studio.session

    return visited


def corner(page: Page, across: float, up: float) -> tuple[float, float]:
    """A place in the chart, as shares of its width and height, the latter from below."""
    box = page.locator(".nsewdrag").first.bounding_box()
    return box["x"] + across * box["width"], box["y"] + (1.0 - up) * box["height"]


def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    page.mouse.move(*corner(page, *start))
    page.mouse.down()
    page.mouse.move(*corner(page, *end), steps=5)
    page.mouse.up()


def test_a_dragged_range_is_the_region(visit: Visit, fits: list[str]) -> None:
    t = np.linspace(0.0, 10.0, 101)
    page, session = visit(pd.DataFrame({"t [h]": t}), pd.Series(np.sin(t), name="altitude [km]"))
    # the chart is 3 % wider than the data on each side
    low, high = (10.0 * (1.06 * share - 0.03) for share in (0.3, 0.5))
    drag(page, (0.3, 0.2), (0.5, 0.9))
    page.get_by_test_id("regions").wait_for()
    (text,) = session.choices.regions
    region = parse_region(text, ["t [h]"])
    assert abs(region.lower[0] - low) < 0.03
    assert abs(region.upper[0] - high) < 0.03
    inside = int(np.sum((t >= region.lower[0]) & (t <= region.upper[0])))
    assert page.get_by_text(f"{inside} of 101 rows lie in the region").is_visible()
    drag(page, (0.8, 0.2), (0.7, 0.9))
    page.get_by_test_id("remove-region").nth(1).wait_for()
    assert len(session.choices.regions) == 2
    assert fits == [session.choices.regions[0], " | ".join(session.choices.regions)]
    page.get_by_test_id("remove-region").first.click()
    page.get_by_test_id("remove-region").nth(1).wait_for(state="detached")
    assert len(session.choices.regions) == 1
    assert len(fits) == 3


def test_a_box_over_dates_and_levels_is_dragged_and_names_do_nothing(visit: Visit) -> None:
    frame = table()
    page, session = visit(frame, pd.Series(np.arange(60.0), name="mass <b>x</b> [g]"))
    drag(page, (0.25, 0.05), (0.5, 0.3))
    page.get_by_test_id("regions").wait_for()
    (text,) = session.choices.regions
    assert text.endswith("and site = Adelie")
    inside = session.inside
    assert inside.any()
    assert set(frame["site"][inside]) == {"Adelie"}
    low, high = (frame["date"].iloc[0] + (1.06 * share - 0.03) * (59 * pd.Timedelta(days=7)) for share in (0.25, 0.5))
    kept = (frame["date"] >= low) & (frame["date"] <= high) & (frame["site"] == "Adelie")
    assert np.array_equal(inside, kept)
    label = page.get_by_test_id("region-chart").get_attribute("aria-label")
    assert label == f"Chart of 60 rows: mass <b>x</b> [g] as colours over date and site; sensitive: {text}."
    assert "hacked" not in page.title()
    point = page.locator(".scatterlayer .point").first.bounding_box()
    assert point is not None
    page.mouse.move(point["x"] + point["width"] / 2, point["y"] + point["height"] / 2)
    page.locator(".hoverlayer text").first.wait_for()
    assert "mass <b>x</b> = " in (page.locator(".hoverlayer").text_content() or "")


@pytest.mark.slow
def test_a_finger_drags_on_a_telephone(visit: Visit) -> None:
    telephone: dict[str, Any] = {"width": 390, "height": 844, "has_touch": True, "is_mobile": True}
    page, session = visit(table(), pd.Series(np.arange(60.0), name="y"), **telephone)
    page.locator(".nsewdrag").first.scroll_into_view_if_needed()
    screen = page.context.new_cdp_session(page)
    for kind, share in (("touchStart", 0.0), *(("touchMove", step / 5) for step in range(1, 6)), ("touchEnd", None)):
        point = None if share is None else corner(page, 0.3 + 0.4 * share, 0.9 - 0.2 * share)
        points = [] if point is None else [{"x": point[0], "y": point[1]}]
        screen.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    page.get_by_test_id("regions").wait_for()
    assert session.choices.regions[0].endswith("site = 'it''s 75 %'")
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_region_is_typed_by_column_edited_and_refused_with_a_sentence(visit: Visit) -> None:
    page, session = visit(table(), pd.Series(np.arange(60.0), name="y"))
    page.get_by_label("date from").fill("1985-03-01")
    page.get_by_label("date to").fill("1985-06-30")
    page.get_by_label("site: Gentoo <i>").click()
    page.get_by_label(f"{WILD} to", exact=True).fill("45.5")
    expected = f"1985-03-01 ≤ date ≤ 1985-06-30 and site = 'Gentoo <i>' and `{WILD}` ≤ 45.5"
    field = page.get_by_test_id("region-text")
    page.wait_for_function("text => document.querySelector('[data-testid=region-text]').value === text", arg=expected)
    field.press("Enter")
    page.get_by_test_id("regions").wait_for()
    assert session.choices.regions == (expected,)
    page.get_by_test_id("edit-region").click()
    for wrong, said in (
        ("nothing <= 3", "unknown column 'nothing'"),
        ("date >= 2010-01-01", "lies wholly outside the data"),
        ("y <= 3", "is the output, and regions are about inputs"),
    ):
        field.fill(wrong)
        page.get_by_test_id("add-region").click()
        page.get_by_role("alert").get_by_text(said).wait_for()
        assert session.choices.regions == (expected,)
    field.fill("date >= 1985-01-01")
    page.get_by_test_id("add-region").click()
    page.get_by_text("All 60 rows lie in the region.").wait_for()
    assert session.choices.regions == ("date >= 1985-01-01",)
    page.get_by_text("The function alone").click()
    choose(page, "Insiders", "whoever holds all rows with one value of site")
    until(lambda: session.choices.insiders == "site")
    assert session.choices.protects == "function"
