"""The whole path through the studio in a real browser: what is chosen there is what is published, and nothing else."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from browsers import choose, in_a_browser, until
from sfumato.evaluate import number

pytestmark = [pytest.mark.processes, in_a_browser]

STEPS = ("data", "model", "sensitive", "how-much", "check", "publish")

#: Longer than any work here takes, in milliseconds, on a machine that has much else to do.
PATIENCE = 120_000


def go(page, step):
    page.get_by_test_id(f"step-{step}").click()
    page.locator(f"[data-testid=step-{step}][aria-current=step]").wait_for()


def wait(page, name):
    """What is shown under this name, when it is there."""
    found = page.get_by_test_id(name).first
    found.wait_for(timeout=PATIENCE)
    return found


def fit(page):
    go(page, "model")
    wait(page, "fit").click()
    wait(page, "fitted")


def drag(page, low, high):
    """Drag over the chart between two shares of its width."""
    area = page.locator("[data-testid=region-chart] .nsewdrag").first
    area.wait_for()
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    page.mouse.move(box["x"] + low * box["width"], box["y"] + 0.3 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + high * box["width"], box["y"] + 0.7 * box["height"], steps=6)
    page.mouse.up()


def settled(page):
    """Wait until the numbers of How much are those of the design that is published."""
    page.get_by_test_id("evidence").filter(has_text="Checked:").wait_for(timeout=PATIENCE)


def told(page, name):
    """A number of How much, without its sign and unit."""
    return re.sub(r"^±| .*$", "", page.locator(f"[data-testid={name}] td").inner_text())


def publish(page):
    go(page, "publish")
    wait(page, "publish").click()
    page.get_by_test_id("files-written").wait_for(timeout=5 * PATIENCE)


def designed(session):
    """What ``sf.protect`` makes of what was chosen."""
    choices = session.choices
    region = sf.parse_region(choices.regions[0], list(choices.inputs))
    level = {choices.level: choices.value}
    return sf.protect(session.fit.value, session.X, region, protects=choices.protects, progress=False, **level)


# 15 s; by parts in test_drawing.py (dragged), test_deciding.py (slid, published) and below (the whole path)
@pytest.mark.slow
def test_what_is_dragged_and_slid_on_the_orbit_is_what_is_published(page, studio, open_page, tmp_path):
    session = studio.session
    wait(page, "demo-orbit").click()
    page.get_by_text("orbit is open: 61 rows.").wait_for(timeout=PATIENCE)
    go(page, "sensitive")
    for _ in session.choices.regions:
        wait(page, "remove-region").click()
    page.get_by_text("Nothing is sensitive yet.").wait_for()
    fit(page)
    go(page, "sensitive")
    drag(page, 0.4, 0.6)
    wait(page, "regions")
    (text,) = session.choices.regions
    assert page.locator(".region").inner_text() == text
    go(page, "how-much")
    slider, before = wait(page, "slider"), session.choices.value
    slider.focus()
    for _ in range(5):
        slider.press("ArrowRight")
    settled(page)
    mechanism = designed(session)
    effect = sf.Levels(session.fit.value, session.X, session.region).effect_of(mechanism)
    for name in ("floor", "least-std", "record-std", "unprotected-rmse", "rmse-outside", "noise"):
        assert told(page, name) == number(getattr(effect, name.replace("-", "_"))), name
    covariance = mechanism.noise.covariance()
    assert told(page, "noise") == number(float(np.sqrt(np.trace(covariance) / 61)))
    assert float(told(page, "least-std")) >= session.choices.value > before
    go(page, "check")
    assert "The promise holds. It is proved." in wait(page, "verdict").inner_text()
    wait(page, "audit").click()
    page.get_by_text("in multiples of the floor").wait_for(timeout=PATIENCE)
    assert list(tmp_path.iterdir()) == []
    assert session.written == ()
    publish(page)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["orbit.html", "orbit.sfumato", "orbit_public.csv"]
    release = sf.load(tmp_path / "orbit.sfumato")
    assert release.certify(progress=False).holds
    region = sf.parse_region(text, ["t"])
    assert release.region.lower == pytest.approx(region.lower)
    assert release.region.upper == pytest.approx(region.upper)
    np.testing.assert_allclose(release.design.noise.covariance(), covariance, rtol=1e-6, atol=1e-12)
    assert len(pd.read_csv(tmp_path / "orbit_public.csv")) == 61
    # all of it can be seen on a telephone: nothing sticks out, nothing has to be scrolled sideways
    narrow = open_page(width=390, height=800)
    for step in STEPS:
        go(narrow, step)
        narrow.wait_for_timeout(400)
        assert narrow.evaluate("document.documentElement.scrollWidth") <= 390, step
        assert narrow.evaluate(STICKS_OUT) == [], step


#: What is seen to the right of the screen's edge, but for what can be scrolled by itself.
STICKS_OUT = """() => [...document.querySelectorAll("main *, header *, footer *")].filter((one) => {
  const box = one.getBoundingClientRect();
  if (box.width === 0 || box.right <= 390.5 || one.closest(".scrolls, .js-plotly-plot")) return false;
  for (let at = one.parentElement; at; at = at.parentElement) {
    if (["auto", "scroll"].includes(getComputedStyle(at).overflowX) && at.scrollWidth > at.clientWidth) return false;
  }
  return true;
}).map((one) => one.tagName + "." + one.className + ": " + one.textContent.slice(0, 60))"""


SCRIPT = '<script>document.title="hacked"</script>'
IMAGE = '<img src=x onerror=document.title="hacked">'


def hostile_table():
    """Dates, categories and numbers, with names that want to be markup."""
    random = np.random.default_rng(0)
    days, sites = np.arange(80), np.array([IMAGE, "Gentoo", "it's & 75 %"])
    site = np.arange(80) % 3
    values = np.cos(days / 9.0 + 0.5 * site) + np.sin(days / 5.0) + 0.1 * random.normal(size=80)
    return pd.DataFrame(
        {
            "date": pd.date_range("2024-01-01", periods=80, freq="D").strftime("%Y-%m-%d"),
            "site": sites[site],
            SCRIPT: values.round(4),
        }
    )


# 11 s; by parts in test_page_frame.py (uploaded) and test_drawing.py (dates, levels and names on charts)
@pytest.mark.slow
def test_a_table_with_dates_and_categories_and_scripts_in_its_names(page, studio, tmp_path):
    session = studio.session
    content = hostile_table().to_csv(index=False).encode()
    file = {"name": f"{IMAGE}.csv", "mimeType": "text/csv", "buffer": content}
    page.locator("[data-testid=upload] input[type=file]").set_input_files(file)
    page.get_by_text("is open: 80 rows.").wait_for(timeout=PATIENCE)
    choose(page, "What date is used as", "Input")
    choose(page, "What site is used as", "Input")
    choose(page, f"What {SCRIPT} is used as", "Output")
    until(lambda: (session.choices.inputs, session.choices.output) == (("date", "site"), SCRIPT))
    fit(page)
    go(page, "sensitive")
    wait(page, "region-text").fill("2024-01-30 <= date <= 2024-02-09 and site in (Gentoo)")
    wait(page, "add-region").click()
    wait(page, "regions")
    go(page, "how-much")
    settled(page)
    # a page that is loaded again is where it was
    before = page.get_by_test_id("loss").inner_text()
    page.reload()
    settled(page)
    assert "step=how_much" in page.url
    assert page.get_by_test_id("loss").inner_text() == before
    go(page, "check")
    wait(page, "verdict")
    page.get_by_role("img").last.wait_for()
    publish(page)
    assert page.title() == "sfumato studio"
    assert page.locator("main img[src=x], main script").count() == 0
    release = sf.load(tmp_path / "release.sfumato")
    assert release.output_name == SCRIPT
    assert release.certify(progress=False).holds
    days, sites = np.arange(80), np.arange(80) % 3
    assert release.region.contains(release.inputs).tolist() == ((days >= 29) & (days <= 39) & (sites == 1)).tolist()


#: Whether the element with the focus, or the field around it, has an outline or a border that says so.
IS_SEEN = """() => {
  const one = document.activeElement, style = getComputedStyle(one);
  const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  return outlined || !!one.closest(".q-field--focused");
}"""


def tab_to(page, name):
    """Move the focus with the Tab key alone; it has to be seen."""
    for _ in range(150):
        page.keyboard.press("Tab")
        if page.evaluate("name => !!document.activeElement.closest(`[data-testid=${name}]`)", name):
            break
    else:
        pytest.fail(f"Tab does not lead to {name}")
    assert page.evaluate(IS_SEEN), f"nobody sees that {name} has the focus"


def test_the_keyboard_alone_suffices(page, studio, tmp_path):
    def press(name, key="Enter"):
        page.get_by_test_id(name).first.wait_for(timeout=PATIENCE)
        tab_to(page, name)
        page.keyboard.press(key)

    press("demo-orbit")
    page.get_by_text("orbit is open: 61 rows.").wait_for(timeout=PATIENCE)
    press("step-sensitive")
    press("remove-region")
    page.get_by_text("Nothing is sensitive yet.").wait_for()
    tab_to(page, "region-text")
    page.keyboard.type("1.2 <= t <= 1.7")
    page.keyboard.press("Enter")
    wait(page, "regions")
    assert studio.session.choices.regions == ("1.2 <= t <= 1.7",)
    press("next")
    press("slider", "ArrowLeft")
    settled(page)
    press("next")
    wait(page, "verdict")
    press("next")
    press("publish")
    wait(page, "files-written")
    assert sf.load(tmp_path / "orbit.sfumato").certify(progress=False).holds


@pytest.mark.slow
def test_choices_that_were_saved_or_copied_make_the_same_design(page, studio, open_page, tmp_path, monkeypatch):
    session = studio.session
    session.open_demo("orbit")
    session.choose(regions=("1.2 <= t <= 1.7",), value=0.0012)
    page.reload()
    go(page, "check")
    wait(page, "verdict")
    wanted = session.check.value.mechanism.noise.covariance()
    page.get_by_test_id("keep").click()
    page.get_by_test_id("copy-python").click()
    program = wait(page, "program").inner_text()
    page.get_by_role("button", name="Close").click()
    page.get_by_test_id("keep").click()
    with page.expect_download() as saved:
        page.get_by_test_id("save-choices").click()
    # in another session
    session.open_demo("census")
    page.get_by_test_id("keep").click()
    page.get_by_test_id("open-choices").click()
    page.locator("[data-testid=choices] input[type=file]").set_input_files(saved.value.path())
    page.get_by_text("r at 61 rows").or_(page.get_by_text("orbit: 61 rows")).first.wait_for()
    go(page, "check")
    wait(page, "verdict")
    np.testing.assert_allclose(session.check.value.mechanism.noise.covariance(), wanted, rtol=1e-6, atol=1e-14)
    # as a program
    names: dict[str, object] = {"__name__": "copied"}
    exec(compile(program, "copied", "exec"), names)
    np.testing.assert_allclose(names["mechanism"].noise.covariance(), wanted, rtol=1e-6, atol=1e-14)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.filterwarnings("default::sfumato.errors.LongWorkWarning")
def test_a_million_rows_of_parquet_go_the_same_way(page, studio, tmp_path):
    random, rows = np.random.default_rng(0), 1_000_000
    a = random.uniform(0.0, 10.0, rows)
    y = np.sin(a) + np.cos(2.3 * a) + 0.3 * random.normal(size=rows)
    pd.DataFrame({"a": a, "y": y}).to_parquet(tmp_path / "many.parquet")
    studio.session.open_path(tmp_path / "many.parquet")
    studio.session.choose(inputs=("a",), output="y")
    page.reload()
    go(page, "sensitive")
    assert page.get_by_text(re.compile(r"of 1,000,000 rows")).first.is_visible()  # the picture is thinned, and says so
    drag(page, 0.4, 0.5)
    page.get_by_test_id("regions").wait_for()
    (text,) = studio.session.choices.regions
    go(page, "check")
    page.get_by_test_id("verdict").wait_for(timeout=10 * PATIENCE)
    publish(page)
    release = sf.load(tmp_path / "many.sfumato")
    assert release.certificate.holds
    assert release.region.lower == pytest.approx(sf.parse_region(text, ["a"]).lower)
