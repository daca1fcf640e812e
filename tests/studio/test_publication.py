"""Publish: names that are refused, files that are kept, and what is read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.studio.publication import Places, plain_name, publish_files

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
