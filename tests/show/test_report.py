"""The report: one page that says what a release promises, is safe to open, and holds no secret unless it says so."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import gpytorch
import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from command_line import run
from sfumato.evaluate.audits import Audit
from sfumato.evaluate.rehearsal import Rehearsal, Result
from sfumato.evaluate.target import Outcome
from sfumato.files import OWNER_ONLY
from sfumato.noise.noise import CorrelatedNoise
from sfumato.release import digest_outputs
from sfumato.show import report_figures, report_page
from sfumato.show.report_facts import number, share
from sfumato.show.report_page import fingerprint

TIMES = np.linspace(0.0, 3.0, 25)
VALUES = 7123.456789 + np.sin(2 * TIMES) + 0.0123456789 * TIMES**2
HOSTILE = "<script>alert(1)</script> \"a\" 'b' & $\\frac{ \u202e日本\x1b[2J\x9b\n\u200b"


def prior(noise: float = 0.01) -> sf.Prior:
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5)).double()
    kernel.outputscale, kernel.base_kernel.lengthscale = 1.0, 0.5
    return sf.Prior(kernel=kernel, mean=7123.0, noise=noise)


def made(region: Any = None, X: Any = None, **how: Any) -> sf.Release:
    X = pd.DataFrame({"t": TIMES}) if X is None else X
    asked = {"alpha": 0.5, "progress": False, **how}
    seed = asked.pop("unsafe_seed", None)
    name = asked.pop("output_name", "r")
    mechanism = sf.protect(asked.pop("prior", prior()), X, region or sf.Box(1.0, 2.0), **asked)
    return mechanism.release(VALUES[: len(X)], output_name=name, unsafe_seed=seed)


@pytest.fixture(scope="module")
def release() -> sf.Release:
    return made()


@pytest.fixture(scope="module")
def public(release: sf.Release, tmp_path_factory: pytest.TempPathFactory) -> str:
    return sf.report(release, tmp_path_factory.mktemp("public") / "report.html").read_text(encoding="utf-8")


def text_of(release: sf.Release, folder: Path, **how: Any) -> str:
    return sf.report(release, folder / "report.html", progress=False, **how).read_text(encoding="utf-8")


class Page(HTMLParser):
    """What a browser makes of a page: its elements, and the texts of some."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "image", "path", "use", "rect"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def named(self, *names: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name in names]

    @property
    def said(self) -> str:
        return "".join(data for _, data in self.texts).replace("\u00a0", " ")


def notations(values: np.ndarray) -> dict[str, list[str]]:
    """Each true value in every way in which it might have been written down."""
    found: dict[str, list[str]] = {"array": []}
    for packed in (values.astype("<f8").tobytes(), values.astype(">f8").tobytes(), values.astype("<f4").tobytes()):
        found["array"] += [base64.b64encode(packed).decode(), packed.hex()]
    for value in values:
        own = [repr(float(value)), float(value).hex(), f"{value:.17g}", f"{value:.16e}"]
        # four digits before the point: no coordinate of a picture looks like that
        own += [f"{value:.{digits}f}" for digits in range(3, 11)] + [f"{value:,.{digits}f}" for digits in range(3, 11)]
        for kind in ("<f8", ">f8"):
            packed = np.array(value, dtype=kind).tobytes()
            own += [packed.hex(), base64.b64encode(packed).decode().rstrip("=")]
        found[repr(float(value))] = own
    return found


def secrets_in(text: str, values: np.ndarray) -> list[str]:
    return [one for each in notations(values).values() for one in each if one in text]


def test_the_public_report_has_everything_in_its_order(public: str) -> None:
    page = Page(public)
    headings = [data for tag, data in page.texts if tag == "h2"]
    assert headings == [
        "✓ The promise holds. It is proved",
        "What is protected",
        "Single records",
        "The certificate",
        "What readers can and cannot learn",
        "The worst place",
        "What it costs",
        "What is published, and what is not",
        "Before you publish",
        "How to check this report",
        "Sign-off",
    ]
    said = page.said
    floor = np.sqrt(0.5)
    known = f"know the typical value of r better than ± {floor:.4f} anywhere where 1 ≤ t ≤ 2, nor any"
    assert f"No reader with this model can {known}" in said
    assert f"any of the 9 single records there better than ± {np.sqrt(0.5 * 1.01):.4f}" in said
    assert "9 rows of 25 have inputs in the region, 16 do not" in said
    assert "sfumato certify RELEASE.sfumato" in said
    assert "inputs as they are: t" in said


def test_the_public_report_holds_no_true_value(public: str, release: sf.Release, tmp_path: Path) -> None:
    assert secrets_in(public, VALUES) == []
    # the check itself finds what is there
    leaked = public + base64.b64encode(VALUES.astype("<f8").tobytes()).decode() + f" {VALUES[3]:.6f}"
    assert len(secrets_in(leaked, VALUES)) >= 2
    # published values are there as a picture: the same page comes from the file, which nobody's y can be in
    release.save(tmp_path / "r.sfumato")
    again = sf.report(tmp_path / "r.sfumato", tmp_path / "again.html", progress=False).read_text(encoding="utf-8")
    assert re.findall(r"<svg.*?</svg>", again, re.DOTALL) == re.findall(r"<svg.*?</svg>", public, re.DOTALL)


def test_the_parts_that_are_public_are_never_given_the_truth(
    release: sf.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without truth and audit, nothing that could draw them is called; with them, the public parts stay the same."""
    plain = text_of(release, tmp_path)
    owner = text_of(release, tmp_path, truth=VALUES)
    drawn = re.findall(r"<svg.*?</svg>", plain, re.DOTALL)
    assert re.findall(r"<svg.*?</svg>", owner, re.DOTALL)[: len(drawn)] == drawn
    assert "truth (secret" not in plain
    assert "truth (secret" in owner

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a public report asked for the truth")

    for name in ("OwnersEyes", "true_outputs", "errors_on", "truth_pictures", "audit_picture"):
        monkeypatch.setattr(report_page, name, never)
    for name in ("truth_pictures", "plot_audit"):
        monkeypatch.setattr(report_figures, name, never)
    assert len(text_of(release, tmp_path)) == len(plain)


def test_the_report_of_the_owner_says_so_in_red(release: sf.Release, tmp_path: Path) -> None:
    found = sf.audit(release, VALUES, draws=3, progress=False)
    page = Page(text_of(release, tmp_path, truth=VALUES, audit=found))
    banner = next(attributes for attributes in page.named("p") if attributes.get("class") == "owner")
    assert banner["role"] == "alert"
    assert OWNER_ONLY in page.said
    assert "What adversaries achieve (owner only)" in page.said
    assert found.sentence in page.said
    assert found.certificate.verdict_in_words in page.said
    assert "Sign-off" not in page.said
    only = text_of(release, tmp_path, audit=found)
    assert "OWNER ONLY" in only


def test_what_an_audit_found_decides_the_owners_verdict_until_it_is_accepted(
    release: sf.Release, public: str, tmp_path: Path
) -> None:
    outcome = Outcome("a textbook", 0.07, 1, 1, 0.7, 1.0, True, False, True, "high", "It read the truth.", chance=1e-3)
    found = Audit("r", 9, (outcome,), (), release.certificate, digest_outputs(release.outputs))
    page = Page(text_of(release, tmp_path, audit=found))
    for said in ("✗ Do not publish: other models come", "a textbook", "± 0.07 where ± 0.7 is promised", "Prior beaten"):
        assert said in page.said
    assert "that you accepted" not in page.said
    known = Page(text_of(release, tmp_path, audit=found, accept=["prior-beaten"]))
    assert "Publish with care: accepted prior-beaten" in known.said
    assert "1 point that you accepted" in known.said
    (chip,) = re.findall(
        r'<span class="chip medium">accepted</span><span>([^<]*)',
        text_of(release, tmp_path, audit=found, accept=["prior-beaten"]),
    )
    assert chip == "Prior beaten"
    # sfumato certify knows nothing of it, and the public page neither
    assert "must end in “The promise holds. It is proved.”" in known.said
    assert "Prior beaten" not in public
    with pytest.raises(sf.InputError, match="accept is given, but this page is for everyone"):
        text_of(release, tmp_path, accept=["prior-beaten"])


def test_a_rehearsal_is_shown_to_the_owner_with_its_numbers(release: sf.Release, tmp_path: Path) -> None:
    found = sf.Finding("prior-beaten", "high", "A line was off by 0.0123.", "Use mean='linear'.")
    best = Result("a line", 0.0123, 0.0, 0.7, 0.6, 1e-9)
    played = Rehearsal("1 ≤ t ≤ 2", 0.5, 0.7, 0.6, (), (best,), (found,), None, ("A note.",), None)
    # what was published of it when it was accepted has no number
    accepted = made(findings=played.findings, accept=["prior-beaten"])
    public = Page(text_of(accepted, tmp_path)).said
    assert "another model came at least twice as close" in public
    assert "0.0123" not in public
    page = Page(text_of(accepted, tmp_path, rehearsal=played)).said
    assert "OWNER ONLY" in page
    assert "Publish with care: accepted prior-beaten" in page
    for said in ("A line was off by 0.0123.", "a line", "no nearer than ± 0.6", "A note."):
        assert said in page
    assert "another model came at least twice as close" not in page
    assert "Do not publish: other models" in Page(text_of(release, tmp_path, rehearsal=played)).said
    with pytest.raises(sf.InputError, match=r"give what sf\.rehearse"):
        text_of(release, tmp_path, rehearsal=found)


def test_the_page_is_accessible_and_self_contained(public: str) -> None:
    page = Page(public)
    assert page.named("html")[0]["lang"] == "en"
    levels = [int(name[1]) for name, _ in page.elements if re.fullmatch(r"h[1-6]", name)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all(attributes["scope"] in ("col", "row") for attributes in page.named("th"))
    assert len(page.named("caption")) == len(page.named("table"))
    pictures = page.named("svg")
    assert pictures
    assert all(one["role"] == "img" and len(one["aria-label"] or "") > 40 for one in pictures)
    names = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(names) == len(set(names))
    assert page.named("script", "link", "iframe", "img", "object", "embed", "base", "form") == []
    for _, attributes in page.elements:
        assert not any(key.startswith("on") for key in attributes)
        for key in ("src", "href", "xlink:href"):
            assert (attributes.get(key) or "#").startswith(("#", "data:image/png;base64,"))
    for word in ("http://", "https://", "//", "@import", "src=", "file:", str(Path.home()), "/tmp"):
        assert word not in public.replace("data:image/png;base64,", ""), word
    assert re.findall(r"url\((?!#)", public) == []
    policies = [one["content"] for one in page.named("meta") if one.get("http-equiv") == "Content-Security-Policy"]
    assert [policy.startswith("default-src 'none';") for policy in policies] == [True]


def contrast(first: str, second: str) -> float:
    """The contrast of two colours as WCAG counts it."""
    bright = []
    for colour in (first, second):
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        bright.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(bright) + 0.05) / (min(bright) + 0.05)


@pytest.mark.parametrize(
    ("ink", "paper"),
    [("ink", "pale"), ("soft", "pale"), ("green", "green-pale"), ("red", "red-pale"), ("amber", "amber-pale")],
)
def test_texts_can_be_read(ink: str, paper: str) -> None:
    style = (Path(report_page.__file__).parent / "templates" / "report.css").read_text(encoding="utf-8")
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", style))
    assert contrast(colours[ink], colours[paper]) >= 4.5
    assert contrast(colours[ink], "#ffffff") >= 4.5


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    column, output = HOSTILE, "</style><img src=x onerror=alert(1)>"
    X = pd.DataFrame({column: TIMES})
    release = made(sf.Box({column: (1.0, 2.0)}), X, output_name=output)
    page = Page(text := text_of(release, tmp_path, title='"><svg onload=alert(1)>'))
    assert page.named("script", "img", "b") == []
    assert not any(key.startswith("on") for _, attributes in page.elements for key in attributes)
    assert "<script" not in text
    assert {letter for letter in text if not letter.isprintable()} == {"\n", "\u00a0"}
    assert "日本\\x1b[2J\\x9b\\n\\u200b" in page.said
    assert "日本" in text
    assert "<script>alert(1)</script>" in page.said
    assert all("viewbox" in attributes for attributes in page.named("svg"))


def test_the_page_is_the_same_each_time_but_for_the_time(release: sf.Release, tmp_path: Path) -> None:
    first, second = (re.sub(r"\d\d:\d\d UTC", "", text_of(release, tmp_path)) for _ in range(2))
    assert first == second
    assert len(first) < 300_000


def test_a_file_is_named_with_its_checksum(release: sf.Release, tmp_path: Path) -> None:
    file = tmp_path / "or bit.sfumato"
    release.save(file)
    for source, how in ((file, {}), (release, {"file": file})):
        text = sf.report(source, tmp_path / "report.html", progress=False, **how).read_text(encoding="utf-8")
        assert fingerprint(file) in text
        assert "sfumato certify &#39;or bit.sfumato&#39;" in text
        assert str(tmp_path) not in text
    made(alpha=0.4).save(file)
    with pytest.raises(sf.InputError, match="holds another release"):
        sf.report(release, tmp_path / "report.html", file=file)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "a folder"),
        ("report.csv", r"end in \.html"),
        ("nowhere/report.html", "does not exist"),
        ("data.html", "is no web page"),
        ("link.html", "is no web page"),
        (3, "give the name of a file"),
    ],
)
def test_nothing_but_a_page_is_ever_replaced(path: Any, message: str, release: sf.Release, tmp_path: Path) -> None:
    (tmp_path / "data.html").write_text("t,r\n1,2\n")
    (tmp_path / "secret.csv").write_text("t,r\n1,2\n")
    (tmp_path / "link.html").symlink_to(tmp_path / "secret.csv")
    before = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
    with pytest.raises(sf.InputError, match=message):
        sf.report(release, tmp_path / path if isinstance(path, str) else path)
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == before


def test_a_report_that_fails_leaves_the_old_one(
    release: sf.Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = sf.report(release, tmp_path / "report.html", progress=False)
    before = page.read_bytes()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "no space")))
    with pytest.raises(OSError, match="no space"):
        sf.report(release, page, title="new", progress=False)
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]
    assert page.read_bytes() == before


def test_wrong_use_is_refused(release: sf.Release, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    for wrong, message in (
        ({"truth": VALUES[:3]}, "truth does not fit"),
        ({"audit": "good"}, "give what sf.audit"),
        ({"ledger": 3}, "give a sf.Ledger"),
        ({"ledger": tmp_path / "none.ledger"}, "which is not a file"),
        ({"title": ""}, "title is"),
        ({"title": "x" * 500}, "title is"),
    ):
        with pytest.raises(sf.InputError, match=message):
            sf.report(release, page, progress=False, **wrong)
    with pytest.raises(sf.InputError, match="release is"):
        sf.report(3, page)  # type: ignore[arg-type]
    assert not page.exists()


def severities(release: sf.Release) -> dict[str, str]:
    return {one.code: one.severity for one in release.certify(progress=False).findings}


def test_findings_that_apply_are_named_and_others_are_not(release: sf.Release) -> None:
    plain = severities(release)
    assert not {"high", "medium"} & {*plain.values()}
    assert plain["parameters-unknown"] == plain["only-release"] == plain["rows-held-by-others"] == "low"
    assert "rows-held-by-others" not in severities(made(structure="diagonal"))
    assert severities(made(unsafe_seed=1))["unsafe-seed"] == "high"
    assert severities(made(guarantee="pointwise"))["averages-not-promised"] == "medium"
    assert severities(made(cover="rows"))["rows-only"] == "medium"
    assert severities(made(sf.Box(1.0, None)))["ends-with-the-data"] == "low"
    assert "ends-with-the-data" not in plain
    varying = made(alpha=None, floor=lambda s: 0.3 + 0.1 * s[:, 0])
    assert severities(varying)["floor-varies"] == "low"


def test_where_parameters_were_learnt_is_said(tmp_path: Path) -> None:
    region = sf.Box(1.0, 2.0)
    for exclude, expected in ((None, "medium"), (region, None)):
        fitted = sf.fit_prior(TIMES, VALUES, kernel="matern52", lengthscale=0.5, noise=0.01, exclude=exclude)
        release = made(region, TIMES, prior=fitted)
        assert severities(release).get("parameters-from-sensitive-rows") == expected
        assert ("parameters-unknown" in severities(release)) == (expected is None)
        # a file does not say how the prior was fitted, but its owner did
        release.save(tmp_path / "r.sfumato")
        again = severities(sf.load(tmp_path / "r.sfumato"))
        assert again.get("parameters-from-sensitive-rows") == expected
        assert ("parameters-unknown" in again) == (expected is None)


def test_smooth_kernels_and_free_columns_are_named() -> None:
    grid = pd.DataFrame({"a": np.tile(np.arange(5.0), 5), "b": np.repeat(np.arange(5.0), 5)})
    kernel = gpytorch.kernels.RBFKernel()
    kernel.lengthscale = 1.5
    found = severities(made(sf.Box({"a": (1.0, 2.0)}), grid, prior=sf.Prior(kernel=kernel, noise=0.1)))
    assert found["smooth-kernel"] == "low"
    assert found["free-columns"] == "low"


def broken(release: sf.Release) -> sf.Release:
    design = replace(release.design, noise=CorrelatedNoise(1e-3 * np.ones((len(release.inputs), 1))))
    return replace(release, design=design)


def test_a_claim_is_never_trusted(release: sf.Release, tmp_path: Path) -> None:
    forged = broken(release)
    assert forged.certificate.holds
    said = Page(text_of(forged, tmp_path)).said
    assert "✗ Do not publish: the promise does not hold" in said
    assert "The release says that its certificate holds; computed again from the same release it does not." in said
    assert "What was to be promised, and is not kept:" in said


def test_an_unsafe_seed_turns_the_verdict_red(tmp_path: Path) -> None:
    page = Page(text_of(made(unsafe_seed=1), tmp_path))
    assert "✗ Do not publish: the promise is void" in page.said
    assert any(attributes.get("class") == "verdict do-not-publish" for attributes in page.named("section"))


def joint(released: list[str]) -> tuple[sf.JointPrior, dict[str, Any]]:
    inside = TIMES[(TIMES >= 1) & (TIMES <= 2)]
    parts = {"r": sf.Value(), "v": sf.Derivative(), "m": sf.Average(inside)}
    return sf.JointPrior.of(prior(), parts, noise={"v": 0.01}), {name: np.cos(TIMES) for name in released}


def test_several_outputs_and_a_quantity_that_is_never_published(tmp_path: Path) -> None:
    process, values = joint(["r", "v"])
    region = {"r": sf.Box(1.0, 2.0), "m": None}
    mechanism = sf.protect(process, TIMES, region, alpha=0.5, released=["r", "v"], progress=False)
    release = mechanism.release(values)
    page = Page(text_of(release, tmp_path, truth=values))
    assert len(page.named("svg")) == 4
    assert "Nothing is promised about v itself." in page.said
    assert "m: only what it is, never its value" in page.said
    seen = release.predict(None, output="m").std[0]
    assert f"± {number(float(seen))}" in page.said
    assert "nor m better than" in page.said


@pytest.mark.filterwarnings("ignore::sfumato.errors.FindingWarning")
def test_the_page_says_what_the_promise_rests_on(public: str, tmp_path: Path) -> None:
    proved = Page(public).said
    assert "What that rests on: proved: it is kept at every input for which it was made" in proved
    assert "that no other one is below its floor is proved" in proved
    page = Page(text_of(made(alpha=None, floor=lambda at: 0.6 + 0.05 * at[:, 0]), tmp_path))
    assert "✓ The promise holds. It is searched, not all of it is proved. Publish with care" in page.said
    assert "What that rests on: searched: none of the region is proved" in page.said
    assert "not all of the region is proved, and another one may be closer" in page.said
    assert "is proved: it is kept" not in page.said


def test_a_ledger_speaks_for_all_releases(tmp_path: Path) -> None:
    ledger = sf.Ledger(tmp_path / "orbit.ledger")
    for _ in range(2):
        mechanism = ledger.protect(prior(), TIMES, sf.Box(1.0, 2.0), alpha=0.5, share=0.4, progress=False)
        release = mechanism.release(VALUES)
    for given in (ledger, tmp_path / "orbit.ledger"):
        said = Page(text_of(release, tmp_path, ledger=given)).said
        assert "accounts for 2 releases of these values; this one is among them" in said
        assert share(ledger.remaining().left) in said
        assert ledger.head in said
        assert "sfumato ledger verify orbit.ledger" in said
        assert "Is this the only release" not in said
    said = Page(text_of(made(), tmp_path, ledger=ledger)).said
    assert "✗ Do not publish: the promise is void" in said
    assert "This release is not in the ledger" in said
    with pytest.raises(sf.InputError, match="which the report is made from"):
        sf.report(release, ledger.path, ledger=ledger)


@pytest.mark.parametrize(
    ("region", "asked"),
    [
        (sf.Points([[0.5], [3.5]]), {}),
        (sf.Points([[0.5]]), {"alpha": None, "tolerance": sf.MatrixTolerance([[0.3]])}),
        (sf.Everywhere(), {}),
        (sf.Box(0.5, 1.0) | sf.Box(2.0, 2.5), {"structure": "diagonal"}),
        (sf.Box(1.0, 2.0), {"priors": [prior(0.02)]}),
        (sf.Box(1.0, 2.0), {"method": "compressed"}),
    ],
)
def test_every_kind_of_release_can_be_reported(region: Any, asked: dict[str, Any], tmp_path: Path) -> None:
    release = made(region, TIMES, **asked)
    release.save(tmp_path / "r.sfumato")
    page = Page(sf.report(tmp_path / "r.sfumato", tmp_path / "r.html", progress=False).read_text(encoding="utf-8"))
    assert "✓ The promise holds" in page.said
    assert page.named("svg")


@pytest.mark.parametrize("columns", [2, 3])
def test_several_inputs_are_drawn_through_the_worst_place(columns: int, tmp_path: Path) -> None:
    X = np.random.default_rng(0).uniform(0, 1, (25, columns))
    kernel = gpytorch.kernels.MaternKernel(nu=2.5)
    release = made(sf.Box([0.4] * columns, [0.9] * columns), X, prior=sf.Prior(kernel=kernel, noise=0.1))
    page = Page(text := text_of(release, tmp_path, truth=VALUES))
    assert len(page.named("svg")) == (2 if columns == 2 else 1)
    assert "on lines through the worst place" in page.said
    assert len(text) < 1_500_000


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "orbit.csv"
    pd.DataFrame({"t": TIMES, "r": VALUES}).to_csv(path, index=False)
    return path


def protect(data: Path, *more: object) -> list[object]:
    asked = ["--inputs", "t", "--output", "r", "--region", "1 <= t <= 2", "--alpha", 0.5, "--kernel", "matern52"]
    fixed = ["--lengthscale", 0.5, "--noise", 0.01, "--replace", "--out", data.parent / "orbit.sfumato"]
    return ["protect", data, "--no-rehearsal", *asked, *fixed, *more]


def test_protect_writes_a_report_beside_the_release(data: Path) -> None:
    page = data.parent / "report.html"
    result = run(*protect(data, "--report", page))
    assert result.exit_code == 0, result.output
    assert f"Written: {data.parent / 'orbit.sfumato'} and {page}" in result.stdout
    text = page.read_text(encoding="utf-8")
    assert fingerprint(data.parent / "orbit.sfumato") in text
    assert "were learnt from all rows" not in text
    assert secrets_in(text, VALUES) == []
    ledger = run(*protect(data, "--ledger", data.parent / "o.ledger", "--report", page))
    assert "among them" in page.read_text(encoding="utf-8"), ledger.output


def test_protect_refuses_a_report_that_it_cannot_write(data: Path) -> None:
    for page in (data, data.parent / "orbit.sfumato", data.parent / "x.txt", data.parent / "no" / "x.html"):
        result = run(*protect(data, "--report", page))
        assert result.exit_code == 2, result.output
        assert "--report" in result.stderr
    assert sorted(path.name for path in data.parent.iterdir()) == ["orbit.csv"]


def test_report_command(data: Path) -> None:
    assert run(*protect(data)).exit_code == 0
    file, page = data.parent / "orbit.sfumato", data.parent / "page.html"
    result = run("report", file, "--out", page, "--title", "The orbit")
    assert result.exit_code == 0, result.output
    assert "<h1>The orbit</h1>" in page.read_text(encoding="utf-8")
    assert "OWNER ONLY" not in page.read_text(encoding="utf-8")
    assert run("report", file, "--out", page).exit_code == 2  # it is there already
    result = run("report", file, "--out", page, "--truth", data, "--audit", "--json", "--replace")
    said = json.loads(result.stdout)
    assert said["owner_only"]
    # a sine is smoother than the prior, and some rival may tell
    assert result.exit_code == (0 if said["publish"] else 1)
    assert "What adversaries achieve" in page.read_text(encoding="utf-8")
    assert run("report", file, "--out", page, "--audit").exit_code == 2
    assert run("report", file, "--out", data.parent / "page.txt").exit_code == 2
    assert run("report", data.parent / "none.sfumato", "--out", page).exit_code == 2
    broken(sf.load(file)).save(file)
    result = run("report", file, "--out", page, "--replace")
    assert result.exit_code == 1
    assert "Do not publish: the promise does not hold" in " ".join(result.stdout.split())


@pytest.mark.filterwarnings("ignore::sfumato.errors.FindingWarning")
@pytest.mark.parametrize("protects", ["both", "function", "records"])
def test_what_is_said_of_records_follows_from_the_release(protects: str, tmp_path: Path) -> None:
    release = made(prior=prior(0.5), alpha=0.5, protects=protects)
    said, found = Page(text_of(release, tmp_path)).said, release.certificate
    assert f"{found.records:,} of 25 rows" in said
    assert f"± {number(found.record_noise)}On the record that has the least" in said
    assert f"{share(found.record_learnt)} learnt" in said
    assert ("Nothing is promised about single records." in said) == (protects == "function")
    assert ("not any single record. About the 9 records in the region nothing is promised" in said) == (
        protects == "function"
    )
    assert ("About the typical value at given inputs nothing is promised" in said) == (protects == "records")
    assert ("No reader with this model can know any of the 9 records of r better than" in said) == (
        protects == "records"
    )


@pytest.mark.filterwarnings("ignore::sfumato.errors.FindingWarning")
def test_true_values_that_go_out_are_never_said_to_stay(tmp_path: Path) -> None:
    # errors this large hide the function by themselves: no noise is needed for it
    bare = made(prior=prior(50.0), alpha=0.9, protects="function", accept=["raw-records"])
    np.testing.assert_allclose(bare.outputs, VALUES, atol=1e-6)
    said = Page(text_of(bare, tmp_path)).said
    assert "Publish with care: accepted raw-records" in said
    assert "9 of 9 unchanged: their true values" in said
    assert "the true values of r" not in said
    kept = Page(text_of(made(structure="diagonal"), tmp_path)).said
    assert "the true values of r" in kept
