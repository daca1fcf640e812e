"""What the tests of the paper's studies share: the census study on made-up people, which takes seconds."""

from __future__ import annotations

import pytest

from census_tables import made_up_pums
from sfumato.paper.census_data import CensusSplit, paper_split, thinned
from sfumato.paper.census_study import CensusResult, census_study

CENSUS_SEEDS = 60  # as in test_census_study.py


@pytest.fixture(scope="session")
def people() -> CensusSplit:
    return thinned(paper_split(made_up_pums(2500)), 120)


@pytest.fixture(scope="session")
def census(people: CensusSplit) -> CensusResult:
    return census_study(people, "authors", seeds=CENSUS_SEEDS, covers=("rows", "auto"), naive_seeds=2)
