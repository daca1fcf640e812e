"""Findings are data: one function decides the verdict, and everybody who asks gets the same."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from kernels import rbf
from sfumato.promise.findings import (
    SEVERITIES,
    Finding,
    accepting,
    asked_acceptance,
    check_accepted,
    in_order,
    verdict,
    verdict_in_words,
    warn_of,
    worse_than_found,
)

HIGH, MEDIUM, LOW, NOTE = (Finding(f"is-{severity}", severity, f"It is {severity}.") for severity in SEVERITIES)


def test_the_worst_finding_decides_the_verdict() -> None:
    assert verdict(True, []) == verdict(True, [NOTE, LOW]) == "publish"
    assert verdict(True, [LOW, MEDIUM]) == "publish with care"
    assert verdict(True, [MEDIUM, HIGH]) == verdict(False, []) == "do not publish"
    assert verdict_in_words(True, [NOTE], True) == "The promise holds. It is proved"
    assert verdict_in_words(True, [NOTE], False) == "The promise holds. It is searched, not all of it is proved"
    assert verdict_in_words(True, [MEDIUM], True) == "The promise holds. It is proved. Publish with care"
    assert verdict_in_words(True, [HIGH], True) == "Do not publish: the promise is void"
    assert verdict_in_words(False, [HIGH], False) == "Do not publish: the promise does not hold"


RAW = Finding("raw-records", "high", "They go out raw.")
BEATEN = Finding("prior-beaten", "high", "A cubic came to 0.44 where ± 9 is claimed.", "Use period=1.03.")


def test_an_accepted_finding_counts_as_care_and_a_broken_promise_cannot_be_accepted() -> None:
    assert verdict(True, [RAW]) == verdict(True, accepting([RAW, BEATEN], ["raw-records"])) == "do not publish"
    both = accepting([RAW, BEATEN], ["raw-records", "prior-beaten"])
    assert verdict(True, both) == "publish with care"
    assert verdict_in_words(True, both, True).endswith("Publish with care: accepted raw-records, prior-beaten")
    assert verdict_in_words(True, [BEATEN], True).endswith("come much closer than this prior says is possible")
    assert verdict(False, both) == "do not publish"
    # a file that was edited to say so changes nothing either
    forged = replace(HIGH, accepted=True)
    assert verdict(True, [forged]) == verdict(True, accepting([HIGH], [HIGH.code])) == "do not publish"
    assert forged.label == "do not publish"
    with pytest.raises(sf.InputError, match=r"'does-not-hold', which cannot be accepted.*prior-beaten"):
        asked_acceptance(["does-not-hold"])
    with pytest.raises(sf.InputError, match="accept is '3'"):
        asked_acceptance(3)
    with pytest.raises(sf.InputError, match=r"'prior-beaten', which was not found here.*raw-records"):
        check_accepted(["prior-beaten"], [RAW, MEDIUM])


def test_findings_on_the_data_stop_a_release_until_they_are_accepted_and_no_number_of_them_is_published(
    tmp_path,
) -> None:
    asked = {"alpha": 0.5, "progress": False, "findings": [BEATEN]}
    with pytest.warns(sf.GuaranteeWarning, match=re.escape("came to 0.44")):
        mechanism = sf.protect(PRIOR, TIMES, sf.Box(1.0, 2.0), **asked)
    assert mechanism.certificate.holds
    assert mechanism.certificate.verdict == "do not publish"
    said = re.escape('accept=("prior-beaten",), --accept prior-beaten')
    with pytest.raises(sf.GuaranteeError, match=said):
        mechanism.release(np.sin(TIMES))
    with pytest.raises(sf.InputError, match=r"'raw-records', which was not found here; .*prior-beaten"):
        sf.protect(PRIOR, TIMES, sf.Box(1.0, 2.0), **asked, accept=["raw-records"])
    accepted = sf.protect(PRIOR, TIMES, sf.Box(1.0, 2.0), **asked, accept=["prior-beaten"])
    accepted.release(np.sin(TIMES)).save(tmp_path / "r.sfumato")
    text = (tmp_path / "r.sfumato").read_bytes().decode(errors="ignore")
    assert not any(number in text for number in ("0.44", "1.03"))
    opened = sf.load(tmp_path / "r.sfumato")
    found = opened.certify(progress=False)
    assert opened.certificate.accepted == found.accepted == {"prior-beaten"}
    assert opened.certificate.verdict == found.verdict == "publish with care"
    page = sf.report(opened, tmp_path / "r.html", progress=False).read_text(encoding="utf-8")
    assert found.verdict_in_words in page
    # experiments are never published, and marked
    assert mechanism.release(np.sin(TIMES), unsafe_seed=1).certificate.verdict == "do not publish"


def test_findings_are_told_once_the_worst_first() -> None:
    assert in_order([NOTE, LOW, HIGH, LOW, MEDIUM]) == (HIGH, MEDIUM, LOW, NOTE)
    asked = Finding("parameters-unknown", "low", "Were they learnt inside?")
    answer = Finding("parameters-from-sensitive-rows", "medium", "They were.")
    assert in_order([asked, answer]) == (answer,)


def test_bad_news_of_an_owner_is_kept_and_good_news_is_not() -> None:
    assert worse_than_found([HIGH, MEDIUM, LOW, NOTE], []) == (HIGH, MEDIUM)
    milder = Finding(HIGH.code, "medium", "It is not so bad.")
    assert worse_than_found([HIGH], [milder]) == (HIGH,)
    assert worse_than_found([milder], [HIGH]) == ()


SOURCE, ROOT = Path(sf.__file__).parent, Path(__file__).parents[2]


def test_every_code_has_one_severity_and_is_in_the_docs() -> None:
    severities: dict[str, str] = {}
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Finding" and node.args:
                code, severity = (ast.literal_eval(argument) for argument in node.args[:2])
                assert re.fullmatch("[a-z]+(-[a-z]+)*", code)
                assert severities.setdefault(code, severity) == severity, f"{code} has two severities"
    assert len(severities) > 20
    table = (ROOT / "docs" / "pitfalls.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| \*\*(\w+)\*\* \|(.*)$", table, re.MULTILINE))
    for code, severity in severities.items():
        assert f"`{code}`" in rows[severity], f"docs/pitfalls.md does not list {code} as {severity}"


def test_alarming_findings_are_warned_of_with_their_remedy() -> None:
    with pytest.warns(sf.GuaranteeWarning) as caught:
        warn_of([NOTE, LOW, Finding("bad", "high", "This is bad.", "Mend it.")])
    assert [str(one.message) for one in caught] == ["This is bad. Mend it."]


TIMES = np.linspace(0.0, 3.0, 25)
PRIOR = sf.Prior(rbf(0.1), noise=0.01)


TWO = sf.JointPrior.independent({"r": PRIOR, "v": PRIOR})


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, "publish"),
        ({"cover": "rows"}, "publish with care"),
        ({"guarantee": "pointwise"}, "publish with care"),
        ({"prior": TWO, "accept": ["protected-one-by-one"]}, "publish with care"),
        ({"prior": TWO, "unsafe_seed": 1}, "do not publish"),
        ({"unsafe_seed": 1}, "do not publish"),
    ],
)
@pytest.mark.filterwarnings("ignore::sfumato.errors.GuaranteeWarning")
def test_protect_certify_and_report_agree(asked, expected, tmp_path: Path) -> None:
    prior, seed = asked.pop("prior", PRIOR), asked.pop("unsafe_seed", None)
    mechanism = sf.protect(prior, TIMES, sf.Box(1.0, 2.0), alpha=0.5, progress=False, **asked)
    values = np.sin(TIMES)
    outputs = {"r": values, "v": values} if isinstance(prior, sf.JointPrior) else values
    release = mechanism.release(outputs, unsafe_seed=seed)
    release.save(tmp_path / "r.sfumato")
    found = sf.load(tmp_path / "r.sfumato").certify(progress=False)
    if seed is None:
        assert mechanism.certificate.verdict == expected
    assert release.certificate.verdict == found.verdict == expected
    assert json.loads(json.dumps(found.as_dict()))["verdict"] == expected
    page = sf.report(tmp_path / "r.sfumato", tmp_path / "r.html", progress=False).read_text(encoding="utf-8")
    assert found.verdict_in_words in page
    assert found.evidence_in_words in page
    for one in found.findings:
        assert one.title in page
