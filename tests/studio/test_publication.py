"""Publish: names that are refused, files that are kept, and what is read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.evaluate import Audit, Outcome
from sfumato.studio.publication import Places, Written, plain_name, publish_files
from sfumato.studio.session import Session

HOSTILE = [
    "",
    "   ",
    "..",
    ".sfumato",
    "../out.sfumato",
    "/etc/out.sfumato",
    "..\\out.sfumato",
    "C:\\out.sfumato",
    "a/b.sfumato",
    "nul.sfumato",
    "COM1.sfumato",
    "con .sfumato",
    "line\nbreak.sfumato",
    "zero\0.sfumato",
    "turned\u202eotamufs.sfumato",
    "-rf.sfumato",
    "~root.sfumato",
    "out.sfumato ",
    "out.sfumato.",
    "out.exe",
    "stream.sfumato:hidden.sfumato",
    "x" * 200 + ".sfumato",
    "é" * 60 + ".sfumato",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_that_are_no_plain_names_are_refused_with_a_sentence(name, tmp_path):
    with pytest.raises(sf.InputError, match=r"the name of the release file is .* Give a plain name") as error:
        Places.checked(tmp_path, name)
    assert "\n" not in str(error.value)
    assert "\0" not in str(error.value)


def test_names_in_any_language_are_plain():
    assert plain_name("Umlaufbahn größer.sfumato", "release file") == "Umlaufbahn größer.sfumato"
    assert plain_name("軌道.SFUMATO", "release file")


def test_files_are_not_replaced_unasked_nor_what_the_release_is_made_from(tmp_path: Path):
    there = tmp_path / "orbit.sfumato"
    there.write_bytes(b"old")
    with pytest.raises(sf.InputError, match=r"'orbit\.sfumato' is there already"):
        Places.checked(tmp_path, "orbit.sfumato")
    assert Places.checked(tmp_path, "orbit.sfumato", replace=True).out == there
    data = tmp_path / "orbit.csv"
    data.write_text("t,r\n")
    with pytest.raises(sf.InputError, match="is what this is made from"):
        Places.checked(tmp_path, "new.sfumato", "orbit.csv", replace=True, reads=(data,))
    (tmp_path / "link.sfumato").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(sf.InputError, match="is there already and is no plain file"):
        Places.checked(tmp_path, "link.sfumato", replace=True)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(sf.InputError, match="is there already and is no plain file"):
        Places.checked(tmp_path, "new.sfumato", "folder.csv", replace=True)
    (tmp_path / "notes.html").write_text("my notes")
    with pytest.raises(sf.InputError, match="exists and is no web page"):
        Places.checked(tmp_path, "new.sfumato", report="notes.html", replace=True)


def test_what_is_written_is_read_back_and_certified(tmp_path: Path):
    t = np.linspace(0.0, 3.0, 16)
    prior = sf.fit_prior(t, np.sin(t), lengthscale=0.5, noise=0.01, exclude=sf.Box(1.0, 2.0), progress=False)
    release = sf.protect(prior, t, sf.Box(1.0, 2.0), alpha=0.5, progress=False).release(np.sin(t))
    places = Places.checked(tmp_path, "sine.sfumato", "sine.csv", "sine.html")
    written = publish_files(release, places)
    assert [path.name for path in written.paths] == ["sine.sfumato", "sine.csv", "sine.html"]
    assert written.certificate.holds
    assert written.certificate.trace == release.certificate.trace
    assert {name: (tmp_path / name).read_bytes() for name in written.contents} == written.contents
    assert np.array_equal(sf.load(tmp_path / "sine.sfumato").outputs, release.outputs)
    assert not written.replaced


def checked_session(folder: Path, **choices: object) -> Session:
    t = np.linspace(0.0, 3.0, 31)
    y = np.sin(3.0 * t) + 0.2 * np.random.default_rng(0).standard_normal(31)
    session = Session()
    session.folder = folder
    session.open_arrays(pd.DataFrame({"t": t}), pd.Series(y, name="speed [m/s]"))
    how = {"regions": ("1 <= t <= 1.6",), "lengthscale": 0.4, "noise": "0.04", "value": 0.5, **choices}
    session.choose(**how)
    for start, job in ((session.start_fit, session.fit), (session.start_check, session.check)):
        start()
        assert job.wait(60.0)
        assert job.error == ""
    return session


def published(session: Session, name: str, replace: bool = False) -> Written:
    session.start_publish(name, replace=replace)
    assert session.publish.wait(60.0)
    assert session.publish.error == ""
    assert session.publish.value is not None
    return session.publish.value


def test_a_ledger_is_told_at_publish_and_not_before_and_of_one_release_once(tmp_path: Path):
    session = checked_session(tmp_path, ledger="speed.ledger", share=0.4)
    assert list(tmp_path.iterdir()) == []
    written = published(session, "first.sfumato")
    assert written.ledger == tmp_path / "speed.ledger"
    assert set(session.written) == {tmp_path / "first.sfumato", tmp_path / "speed.ledger"}
    again = published(session, "first.sfumato", replace=True)
    assert again.contents == written.contents
    book = sf.Ledger(tmp_path / "speed.ledger")
    assert len(book) == 1
    assert book.certificate().holds


def test_what_an_audit_finds_counts_in_the_verdict_and_can_be_accepted(tmp_path: Path):
    session = checked_session(tmp_path)
    assert session.refusal == ""
    assert session.check.value is not None
    claimed = session.check.value.certificate
    # rmse, claimed, actual, floor, ratio; not covered, not beaten, closer
    outcome = Outcome("knows the grid of y", 0.01, 0.1, 0.4, 0.4, 1.0, False, False, True, "high", "")
    session.audit.value = Audit("speed [m/s]", 1, (outcome,), (), claimed)
    assert session.certificate is not None
    assert session.certificate.verdict == "do not publish"
    with pytest.raises(sf.GuaranteeError, match="takes the noise off"):
        session.start_publish("speed.sfumato", replace=False)
    session.choose(accept=("values-on-a-grid",))
    assert session.check.value is not None  # what only an audit finds changes nothing of the design
    assert session.certificate.verdict == "publish with care"
    assert session.unsaid == ()
    assert published(session, "speed.sfumato").certificate.verdict == "publish"
    assert session.unsaid == ("values-on-a-grid",)  # the page says so: readers are not told how to take the noise off


def test_checked_again_it_is_another_release_which_was_neither_audited_nor_published(tmp_path: Path):
    session = checked_session(tmp_path)
    assert session.check.value is not None
    # an audit of fresh noise finds a rival by chance now and then
    found = Audit("speed [m/s]", 1, (), (), session.check.value.certificate)
    session.audit.start(lambda step: found, session.key(session.audit))
    assert session.audit.wait(60.0)
    published(session, "first.sfumato")
    assert not session.is_second_release
    session.start_check()
    assert session.check.wait(60.0)
    assert (session.audit.value, session.publish.value) == (None, None)
    assert session.is_second_release
    session.choose(ledger="speed.ledger")  # it does not know of the first one
    assert session.is_second_release


def test_of_a_publication_that_fails_halfway_the_files_that_are_there_are_told(tmp_path: Path, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise sf.ResourceError("the disk is full.")

    monkeypatch.setattr("sfumato.show.publication.write_table", full)
    session = checked_session(tmp_path)
    session.start_publish("first.sfumato", "first.csv", replace=False)
    assert session.publish.wait(60.0)
    assert "the disk is full" in session.publish.error
    assert session.written == (tmp_path / "first.sfumato",)
    assert session.is_second_release
