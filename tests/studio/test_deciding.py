"""How much, Check and Publish in a browser: numbers are those of protect, and nothing goes out against a verdict."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from browsers import in_a_browser, until
from sfumato.evaluate import number, share

pytestmark = [pytest.mark.processes, in_a_browser]

T = np.linspace(0.0, 3.0, 31)
Y = np.sin(3.0 * T) + 0.2 * np.random.default_rng(0).standard_normal(31)
NAME = "speed <b>of it</b> [m/s]"


def chosen(studio, **choices):
    """The session of a studio with a table, a region and a prior; what is fitted here is not fitted on the page."""
    session = studio.session
    session.open_arrays(pd.DataFrame({"t": T}), pd.Series(Y, name=NAME))
    session.choose(**{"regions": ("1 <= t <= 1.6",), "lengthscale": 0.4, "noise": "0.04", **choices})
    session.start_fit()
    assert session.fit.wait(60.0)
    assert session.fit.error == ""
    return session


def settled(session, value: float) -> None:
    """Wait until this level was chosen, and checked behind the page."""
    until(lambda: session.choices.value == value and session.check.state in ("done", "failed"))
    assert session.check.value is not None, session.check.error


def test_the_sliders_numbers_are_those_of_protect_and_what_is_published_certifies(studio, open_page, tmp_path):
    session = chosen(studio)
    page = open_page(f"{studio.url}?step=how_much")
    slider, field = page.get_by_test_id("slider"), page.get_by_test_id("level-value")
    slider.focus()
    for _ in range(9):  # faster than the studio looks at levels
        page.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == "α = 0.19"
    settled(session, 0.19)
    page.get_by_test_id("evidence").filter(has_text="Checked: proved").wait_for()
    assert field.input_value() == "0.19"
    made = sf.protect(session.fit.value, session.X, session.region, alpha=0.19, progress=False)
    assert np.array_equal(session.check.value.mechanism.noise.covariance(), made.noise.covariance())
    effect = sf.Levels(session.fit.value, session.X, session.region).effect_of(made)
    shown = {
        "floor": f"±{number(effect.floor)} m/s",
        "least-std": f"±{number(effect.least_std)} m/s",
        "record-std": f"±{number(effect.record_std)} m/s",
        "unprotected-rmse": f"{number(effect.unprotected_rmse)} m/s",
        "rmse-outside": f"{number(effect.rmse_outside)} m/s",
        "loss": share(effect.loss),
        "noise": f"{number(math.sqrt(made.noise.trace / len(T)))} m/s",
        "spill": share(made.certificate.spill),
    }
    page.get_by_test_id("noise").filter(has_text=shown["noise"]).wait_for()
    assert {name: page.get_by_test_id(name).locator("td").inner_text() for name in shown} == shown

    # the same promise as a floor, then another one by its number
    page.get_by_text("A floor, in units").click()
    page.locator("[data-testid=slider][aria-label^='Level: floor']").wait_for()
    page.get_by_test_id("level-value").fill("0.5")
    page.keyboard.press("Enter")
    settled(session, 0.5)
    page.get_by_test_id("floor").filter(has_text="±0.5 m/s").wait_for()
    assert session.choices.level == "floor"

    # another objective at this level comes with the verdict on the prior that it trusts and with what it is worth on
    # these rows, and goes again
    page.get_by_text("The best predictions outside", exact=True).click()
    page.get_by_test_id("objective-verdict").filter(has_text="Rehearsal").wait_for()
    page.get_by_test_id("noise").filter(has_text="Change of a row").wait_for()
    page.get_by_test_id("objective-worth").filter(has_text="Here the best predictions make errors").wait_for()
    assert session.choices.objective == "predictions"
    page.get_by_text("The least noise", exact=True).click()
    until(lambda: session.choices.objective == "noise")
    settled(session, 0.5)

    page.get_by_test_id("step-publish").click()
    problem, publish = page.get_by_test_id("publish-problem"), page.get_by_test_id("publish")
    for hostile in ("../out.sfumato", "/tmp/out.sfumato", "..\\out.sfumato", "nul.sfumato", "", "out.exe"):
        page.get_by_test_id("release-file").fill(hostile)
        problem.filter(has_text=f"the name of the release file is '{hostile}'".replace("\\", "\\\\")).wait_for()
        assert publish.is_disabled()
    page.get_by_test_id("release-file").fill("speed.sfumato")
    page.get_by_test_id("write-report").click()
    page.locator("[data-testid=publish]:not([disabled])").wait_for()
    assert list(tmp_path.iterdir()) == []
    publish.click()
    written = page.get_by_test_id("files-written")
    written.wait_for()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["release_public.csv", "speed.sfumato"]
    release = sf.load(tmp_path / "speed.sfumato")
    assert release.certify(progress=False).holds
    assert release.output_name == NAME
    assert np.array_equal(release.outputs, session.check.value.release.outputs)
    with page.expect_download() as download:
        page.get_by_text("Download speed.sfumato").click()
    assert download.value.path().read_bytes() == (tmp_path / "speed.sfumato").read_bytes()
    # what is there stays, unless that is ticked
    publish.click()
    problem.filter(has_text="'speed.sfumato' is there already").wait_for()


def test_nothing_is_published_against_the_verdict_until_what_stops_it_is_accepted(studio, open_page, tmp_path):
    session = chosen(studio, protects="function", value=0.9, noise="0.3")
    page = open_page(f"{studio.url}?step=check")
    verdict = page.get_by_test_id("verdict")
    verdict.filter(has_text=re.compile("Do not publish: records in the region go out almost as they are")).wait_for()
    assert page.get_by_test_id("audit").is_disabled()
    page.get_by_test_id("step-publish").click()
    page.get_by_test_id("publish-problem").filter(has_text="Nothing is published").wait_for()
    assert page.get_by_test_id("publish").is_disabled()
    with pytest.raises(sf.GuaranteeError, match="7 of the 7 records"):
        session.start_publish("speed.sfumato", replace=False)
    assert list(tmp_path.iterdir()) == []

    page.get_by_test_id("step-check").click()
    page.get_by_test_id("accept-raw-records").click()
    verdict.filter(has_text="Publish with care: accepted raw-records").wait_for()
    assert session.choices.accept == ("raw-records",)
    assert page.get_by_text("Only you see this; it is not in the file.").count() == 0
    page.get_by_test_id("step-publish").click()
    page.locator("[data-testid=publish]:not([disabled])").wait_for()


def test_a_unit_that_turns_letters_round_is_shown_by_its_number(studio, open_page):
    session = studio.session
    session.open_arrays(pd.DataFrame({"t": T}), pd.Series(Y, name="speed [\u202em]"))
    session.choose(regions=("1 <= t <= 1.6",), lengthscale=0.4, noise="0.04", level="floor", value=0.2)
    session.start_fit()
    assert session.fit.wait(60.0)
    page = open_page(f"{studio.url}?step=how_much")
    page.get_by_test_id("evidence").wait_for()
    assert "Floor \\u202em" in page.inner_text("main")
    assert "\u202e" not in page.content()


def test_with_a_ledger_nothing_is_drawn_that_does_not_count_it(studio, open_page):
    session = chosen(studio)
    page = open_page(f"{studio.url}?step=how_much")
    page.get_by_test_id("known-chart").wait_for()
    page.get_by_test_id("tradeoff-chart").wait_for()
    session.choose(ledger="speed.ledger")
    for chart in ("known-chart", "tradeoff-chart"):
        page.get_by_test_id(chart).wait_for(state="detached")
    page.get_by_text("Not worked out with a ledger").wait_for()


def test_a_fit_that_was_cancelled_can_be_started_where_one_is(studio, open_page):
    session = chosen(studio)
    session.fit.reset()
    session.fit.state = "cancelled"
    page = open_page(f"{studio.url}?step=how_much")
    page.get_by_test_id("fit-here").click()
    page.get_by_test_id("slider").wait_for()
