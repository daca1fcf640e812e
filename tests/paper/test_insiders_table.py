"""What one insider learns, and what is learnt about records: against conditioning from scratch, and the claims."""

from __future__ import annotations

import numpy as np
import pytest

from census_tables import made_up_pums
from sfumato.paper.census_data import paper_split, thinned
from sfumato.paper.insiders import MECHANISMS, insiders_study, kept, left_of_differences, left_to_an_insider
from sfumato.paper.satellite_study import TIMES, design, hidden, models

ALPHA = 0.5


@pytest.fixture(scope="module")
def found():
    people = thinned(paper_split(made_up_pums(2500)), 45)
    lines = insiders_study(people, (ALPHA,), rows=45)
    return {(line.study, line.mechanism): line for line in lines}


@pytest.mark.parametrize("study", ["satellite, r", "census"])
def test_only_the_mechanism_for_insiders_keeps_the_promise_to_them(found, study):
    papers, both, ours = (found[study, name] for name in MECHANISMS)
    for line in (both, ours):
        assert min(line.function, line.record, line.difference) >= (1 - 1e-3) * line.promised
    assert papers.insider < 0.5 * papers.promised
    assert both.insider < 0.5 * both.promised
    assert min(ours.insider, ours.insider_function) >= (1 - 1e-6) * ours.promised
    assert papers.noise <= both.noise <= ours.noise < 1.5 * papers.noise


def test_the_papers_mechanism_says_more_of_records_than_of_the_function(found):
    papers = found["census", "the paper's"]
    assert papers.record < 0.9 * papers.promised
    # its noise is that of a function, the same for neighbours
    assert papers.difference < 0.2 * papers.promised


def test_what_is_left_is_what_conditioning_from_scratch_leaves():
    prior = models("paper", np.sin(3 * TIMES)).owner
    made = design(prior, ALPHA, "rows")
    K, inside = prior.covariance(TIMES), np.flatnonzero(hidden(TIMES))
    total = K + made.noise.covariance()

    def left(rows, direction):
        """Var(direction·f | y at ``rows``, W) over the same without W."""
        seen = np.block([[K[np.ix_(rows, rows)], K[rows]], [K[:, rows], total]])
        about = np.vstack([K[rows], K]) @ direction
        whole = direction @ K @ direction
        before = whole - about[: len(rows)] @ np.linalg.solve(K[np.ix_(rows, rows)], about[: len(rows)])
        return (whole - about @ np.linalg.lstsq(seen, about, rcond=1e-14)[0]) / before

    unit = np.eye(len(TIMES))
    worst = min(left([row], unit[i]) for row in range(len(TIMES)) for i in inside if i != row)
    assert left_to_an_insider(made.design, ALPHA, "both") == pytest.approx(worst, rel=1e-5)
    pairs = min(left([], unit[i] - unit[j]) for i in inside for j in inside if i < j)
    assert left_of_differences(made.design) == pytest.approx(pairs, rel=1e-6)
    line = kept("satellite", "the paper's", ALPHA, made, 0.0)
    assert line.record == pytest.approx(min(left([], unit[i]) for i in inside), rel=1e-6)
