"""The page's frame and its first two steps, in a real browser."""

from __future__ import annotations

import json
import math
import re
import time

import numpy as np
import pytest

from browsers import choose, in_a_browser, until
from sfumato.studio.choices import Choices
from sfumato.studio.decisions import decided
from sfumato.studio.guard import LARGEST_BODY, TOO_LARGE
from sfumato.studio.session import Session

#: Two columns of numbers with a missing value, dates, labels, and a name that is markup.
TABLE = """t [s];y [m];when;group;<script>alert(1)</script>
0,5;1,25;2020-01-01;a;1
1,5;2,25;2020-01-02;b;2
2,5;;2020-01-03;a;3
3,5;4,25;2020-01-04;c;4
4,5;5,25;2020-01-05;a;5
"""


def wave(rows=40):
    t = np.linspace(0.0, 4.0, rows)
    return t, np.sin(2 * math.pi * t) + 0.01 * np.cos(37 * t)


def upload(page, path, test="upload"):
    with page.expect_file_chooser() as chooser:
        page.get_by_test_id(f"{test}-choose").press("Enter")
    chooser.value.set_files(path)


def running(step):
    """Work that never ends by itself."""
    while True:
        step("going round", 0.25)
        time.sleep(0.01)


# --------------------------------------------------------------------------------------------- without a browser


def test_each_step_says_what_it_decided_and_nothing_before_there_are_data():
    session = Session()
    for step in ("data", "model", "sensitive", "how_much", "check"):
        assert decided(session, step) == []
    session.open_arrays(*wave())
    session.choose(regions=("1 <= x <= 2",), protects="function", insiders="rows")
    assert decided(session, "data") == ["40 rows.", "Inputs: x.", "Output: y."]
    assert decided(session, "model") == ["Kernel matern52, mean constant; the prior is not fitted yet."]
    assert decided(session, "sensitive") == [
        f"Sensitive: 1 ≤ x ≤ 2; {int(session.inside.sum())} of 40 rows inside.",
        "Protected: the function there, and no single record.",
        "From insiders too, who hold any one row.",
    ]
    assert decided(session, "how_much") == ["Readers may learn at most 10 % of the prior variance (α = 0.1)."]
    session.choose(level="floor", value=0.2)
    assert decided(session, "how_much") == ["Readers keep a standard deviation of at least 0.2 (the floor)."]
    assert decided(session, "check") == ["Nothing was checked yet."]


# ---------------------------------------------------------------------------------------------------- in a browser


@pytest.mark.processes
@in_a_browser
def test_a_table_is_opened_and_its_columns_are_told_what_they_are_for(open_page, studio, tmp_path):
    page, session = open_page(width=390), studio.session
    alerts = []
    page.on("dialog", lambda dialog: (alerts.append(dialog.message), dialog.dismiss()))
    files = {"empty.csv": b"", "book.csv": b"PK\x03\x04 an archive", "ends.exe": b"a,b\n1,2\n"}
    sentences = ("it is empty", "a zip archive or an Excel workbook", "tables are .csv")
    for (name, content), said in zip(files.items(), sentences, strict=True):
        (tmp_path / name).write_bytes(content)
        upload(page, tmp_path / name)
        page.get_by_role("alert").filter(has_text=said).wait_for()
    assert session.table is None
    with open(tmp_path / "huge.csv", "wb") as huge:
        huge.truncate(LARGEST_BODY + 1)
    upload(page, tmp_path / "huge.csv")
    page.get_by_text(TOO_LARGE).wait_for()

    (tmp_path / "table.csv").write_text(TABLE, encoding="utf-8")
    upload(page, tmp_path / "table.csv")
    page.get_by_text("table.csv is open: 5 rows.").wait_for()
    page.get_by_role("rowheader", name="<script>alert(1)</script>").wait_for()
    assert page.get_by_role("row", name="y [m]").get_by_role("cell").all_inner_texts()[1:] == [
        "numbers",
        "m",
        "1",
        "1.25",
        "5.25",
    ]
    choose(page, "What t [s] is used as", "Input")
    choose(page, "What group is used as", "Input")
    choose(page, "What y [m] is used as", "Output")
    page.get_by_text("1 row of 5 miss a value in y [m].").wait_for()
    assert session.trouble
    page.get_by_role("radio", name=re.compile("Leave them out: 4 rows stay")).click()
    page.get_by_text("4 rows take part. Inputs: t [s], group. Output: y [m].").wait_for()
    assert (session.choices.inputs, session.choices.output) == (("t [s]", "group"), "y [m]")
    choose(page, "What group is used as", "Output")  # there is one output
    until(lambda: session.choices.output == "group")
    assert session.choices.inputs == ("t [s]",)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert alerts == []


@pytest.mark.processes
@in_a_browser
def test_the_prior_is_fitted_with_progress_and_can_be_cancelled(open_page, studio):
    session = studio.session
    session.open_arrays(*wave())
    page = open_page(f"{studio.url}?step=model")
    assert page.get_by_test_id("decided").inner_text() == "40 rows. Inputs: x. Output: y."
    session.fit.start(running, session.key(session.fit))
    page.get_by_text("Fitting the prior: going round (25 %)").wait_for()
    page.get_by_role("button", name="Cancel: Fitting the prior").press("Enter")
    page.get_by_text("Cancelled.").wait_for()
    assert session.fit.state == "cancelled"

    choose(page, "Kernel", "a sum or product, as text")
    page.get_by_test_id("kernel-text").fill("rbf + nothing")
    page.get_by_test_id("kernel-text").press("Enter")
    page.get_by_role("alert").filter(has_text="nothing").wait_for()
    assert session.choices.kernel == "matern52"
    page.get_by_test_id("kernel-text").fill("rbf + periodic(period=1) * rbf")
    page.get_by_test_id("kernel-text").press("Enter")
    until(lambda: session.choices.kernel == "rbf + periodic(period=1) * rbf")
    choose(page, "Kernel", "rbf: very smooth")
    until(lambda: session.choices.kernel == "rbf")
    page.get_by_test_id("lengthscale").fill("0.3")
    page.get_by_test_id("fit").press("Enter")  # leaving the line takes what is in it
    page.get_by_test_id("fitted").wait_for()
    assert session.choices.lengthscale == 0.3
    prior = session.fit.value
    text = str(prior)
    assert page.get_by_test_id("fitted").inner_text().endswith(f"{text[1:]}.")
    page.get_by_test_id("rehearse").wait_for()


@pytest.mark.processes
@in_a_browser
def test_what_is_being_written_or_chosen_is_not_lost_when_something_else_is_decided(open_page, studio):
    session = studio.session
    session.open_arrays(*wave())
    page = open_page(f"{studio.url}?step=model")
    line = page.get_by_test_id("lengthscale")
    line.fill("0.4")
    session.choose(mean="linear")
    page.get_by_role("radiogroup", name="Who knows the trend").wait_for()
    assert line.input_value() == "0.4"
    assert session.choices.lengthscale is None
    line.press("Tab")
    until(lambda: session.choices.lengthscale == 0.4)

    page.get_by_role("combobox", name="Mean").press("Enter")
    option = page.get_by_role("option", name="zero", exact=True)
    option.wait_for()
    session.choose(noise="0.01")
    page.get_by_role("textbox", name="Noise variance").wait_for()
    option.click()
    until(lambda: session.choices.mean == "zero")

    # a line is taken before what was pressed after it, in a browser as quick as can be
    line.fill("0.3")
    page.get_by_test_id("fit").evaluate("button => { button.focus(); button.click(); }")
    page.get_by_test_id("fitted").wait_for()
    assert (session.choices.lengthscale, session.choices.noise) == (0.3, "0.01")


@pytest.mark.slow
@pytest.mark.processes
@in_a_browser
def test_the_rehearsal_is_shown_with_a_picture_and_its_advice_is_one_click_away(open_page, studio):
    session = studio.session
    session.open_arrays(*wave(120))
    session.start_fit()
    page = open_page(f"{studio.url}?step=model")
    page.get_by_test_id("rehearse").click()
    page.get_by_test_id("rehearsal").wait_for(timeout=120_000)
    found = session.rehearsal.value
    assert found.sentence() in page.get_by_test_id("rehearsal").inner_text()
    picture = page.get_by_role("img", name=re.compile("look-alikes of the region in the data"))
    until(lambda: picture.evaluate("image => image.naturalWidth") > 300)
    assert found.advised is not None
    page.get_by_test_id("use-advice").click()
    until(lambda: session.choices.kernel == found.advised.kernel)
    until(lambda: session.fit.value is not None)
    assert session.choices.mean == found.advised.mean


@pytest.mark.processes
@in_a_browser
def test_a_lost_connection_is_told_and_picked_up_again(open_page, studio):
    session = studio.session
    session.open_arrays(*wave())
    page = open_page()
    page.get_by_test_id("next").click()
    page.get_by_role("heading", name="Model", level=1).wait_for()
    page.evaluate("socket.io.reconnectionDelay(1000); socket.io.engine.close()")
    lost = page.get_by_role("alert").filter(has_text="The connection to the studio on this machine is lost.")
    lost.wait_for()
    session.choose(kernel="rq")  # what happens meanwhile
    lost.wait_for(state="hidden")
    page.get_by_text("rq: smooth on several scales").wait_for()
    page.reload()
    page.get_by_role("heading", name="Model", level=1).wait_for()
    page.get_by_text("rq: smooth on several scales").wait_for()
    assert page.get_by_test_id("step-model").get_attribute("aria-current") == "step"


@pytest.mark.processes
@in_a_browser
def test_choices_are_saved_opened_and_copied_and_nothing_is_written(open_page, studio, tmp_path):
    session = studio.session
    session.open_demo("orbit")
    page = open_page()
    page.get_by_test_id("keep").click()
    with page.expect_download() as download:
        page.get_by_test_id("save-choices").click()
    saved = download.value.path().read_text(encoding="utf-8")
    assert Choices.from_json(saved) == session.choices

    for how, has in (("python", "sf.demo_table('orbit')"), ("command", "sfumato protect")):
        page.get_by_test_id("keep").click()
        page.get_by_test_id(f"copy-{how}").click()
        assert has in page.get_by_test_id("program").inner_text()
        page.get_by_test_id("copy").click()
        page.get_by_text("Copied.").wait_for()
        page.keyboard.press("Escape")
        page.get_by_test_id("program").wait_for(state="hidden")

    wanted = {**json.loads(saved), "kernel": "matern32", "value": 0.002}
    (tmp_path / "wrong.json").write_text("{}")
    (tmp_path / "right.json").write_text(json.dumps(wanted))
    page.get_by_test_id("keep").click()
    page.get_by_test_id("open-choices").click()
    upload(page, tmp_path / "wrong.json", "choices")
    page.get_by_role("alert").filter(has_text="file of choices").wait_for()
    upload(page, tmp_path / "right.json", "choices")
    until(lambda: (session.choices.kernel, session.choices.value) == ("matern32", 0.002))
    assert page.get_by_test_id("written").inner_text() == "Files written: none."
    assert {path.name for path in tmp_path.iterdir()} == {"wrong.json", "right.json"}
