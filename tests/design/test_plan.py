"""Which method is taken, what it will need, and a refusal before the work where memory is too small."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
import sfumato.design.compression
import sfumato.design.mechanism
import sfumato.design.plan
import sfumato.machine
from kernels import matern, rbf
from sfumato.data.inputs import as_inputs
from sfumato.data.parts import Here
from sfumato.design.compression import Compression, check_compressible
from sfumato.design.plan import (
    FEW_ROWS,
    WORTH_COMPRESSING,
    Asked,
    Plan,
    Size,
    check_memory,
    compressed_plan,
    decide,
    exact_plan,
)
from sfumato.design.problem import Problem
from sfumato.machine import GIB, free_memory, product_rate
from sfumato.noise.noise import FunctionalNoise
from sfumato.progress import Progress
from sfumato.promise.tolerance import FractionTolerance

MANY = np.random.default_rng(0).random((6000, 1))


def problem(X=MANY, kernel=None, noise=0.01, region=None, **options):
    inputs = as_inputs(X)
    region = region or sf.Box([0.4] * inputs.dimension, [0.6] * inputs.dimension)
    prior = sf.Prior(kernel=kernel or rbf([0.2] * inputs.dimension), noise=noise)
    return Problem(prior, inputs, region.bind(inputs), FractionTolerance(0.3), **options)


def never():
    raise AssertionError("centres were counted where nobody needs to know")


def guess(asked):
    return Compression(asked, "auto", Asked(accuracy=1e-6), Here(), Progress()).guess


def method(asked, centres, in_memory=True):
    """What the plan for a problem says, where nothing was asked for."""
    size = replace(asked.size, in_memory=in_memory)
    return decide(size, Asked(), lambda: check_compressible(asked), centres).method


# which method --------------------------------------------------------------------------------------------------------


def test_few_rows_are_done_exactly_without_a_second_thought():
    assert method(problem(MANY[:FEW_ROWS]), never) == "subspace"
    assert method(problem(MANY[:999]), never) == "eigh"


def test_many_rows_under_a_smooth_prior_are_compressed():
    asked = problem()
    assert guess(asked)() <= 40
    assert method(asked, guess(asked)) == "compressed"


def test_many_rows_under_a_rough_prior_are_done_exactly_where_memory_allows(monkeypatch):
    asked = problem()
    monkeypatch.setattr(sfumato.design.plan, "free_memory", lambda device: 1e15)
    assert method(asked, lambda: int(WORTH_COMPRESSING * 6000)) == "compressed"
    assert method(asked, lambda: int(WORTH_COMPRESSING * 6000) + 1) == "subspace"
    needed = compressed_plan(asked.size, 1500, Asked()).bytes
    assert needed < exact_plan(asked.size).bytes
    monkeypatch.setattr(sfumato.design.plan, "free_memory", lambda device: needed)
    assert method(asked, lambda: 1500) == "compressed"


def test_a_rough_prior_is_known_by_its_centres():
    asked = problem(np.random.default_rng(1).random((4500, 3)), matern([0.1] * 3, 1.0, 0.5))
    assert guess(asked)() > WORTH_COMPRESSING * 4500


def test_rows_that_are_not_in_memory_are_compressed_however_few():
    assert method(problem(MANY[:50]), lambda: 10, in_memory=False) == "compressed"


@pytest.mark.parametrize(
    "options",
    [
        {"structure": "diagonal"},
        {"region": sf.Everywhere()},
        {"noise": 0.0},
        {"weights": np.eye(2)},
    ],
)
def test_what_cannot_be_compressed_is_done_exactly(options):
    assert method(problem(**options), never) in ("eigh", "subspace")


def test_protect_takes_the_method_by_itself():
    small = sf.protect(sf.Prior(kernel=rbf(0.2), noise=0.01), MANY[:200], sf.Points([[0.5]]), alpha=0.3)
    large = sf.protect(sf.Prior(kernel=rbf(0.2), noise=0.01), MANY, sf.Points([[0.5]]), alpha=0.3, progress=False)
    assert not isinstance(small.noise, FunctionalNoise)
    assert isinstance(large.noise, FunctionalNoise)
    assert large.certificate.holds
    assert large.noise.trace == pytest.approx(30 * small.noise.trace, rel=0.3)


# what it takes -------------------------------------------------------------------------------------------------------


def test_the_text_names_method_rows_time_and_memory():
    text = str(Plan("compressed", 12_000_000, seconds=300.0, bytes=2.5 * GIB, centres=640))
    assert text == '12,000,000 rows: method="compressed", 640 centres, about 5 min and 2.5 GiB of memory'
    text = str(exact_plan(problem().size))
    assert text.startswith('6,000 rows: method="subspace" (eigh beyond 600 sensitive inputs), about ')
    assert text.endswith(" GiB of memory")


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.1, "a second"), (50.0, "50 s"), (600.0, "10 min"), (9000.0, "2.5 h")]
)
def test_times_are_said_as_people_say_them(seconds, words):
    assert f"about {words} and" in str(Plan("eigh", 10, seconds=seconds, bytes=GIB))


def test_an_exact_design_needs_memory_for_square_matrices():
    one, two = exact_plan(problem(MANY[:3000]).size), exact_plan(problem(MANY).size)
    assert one.bytes >= 8 * 3000**2
    assert 2 < two.bytes / one.bytes <= 4
    assert 4 < two.seconds / one.seconds <= 8.5
    assert exact_plan(problem().size, Asked("eigh")).method == "eigh"
    assert exact_plan(problem(MANY[:100]).size).method == "eigh"
    pointwise = exact_plan(problem(guarantee="pointwise").size)
    assert pointwise.bytes > two.bytes


def test_compression_needs_no_more_memory_for_more_rows():
    one, two = (
        compressed_plan(problem(MANY[:3000]).size, 500, Asked()),
        compressed_plan(problem(MANY).size, 500, Asked()),
    )
    assert one.bytes == two.bytes < exact_plan(problem().size).bytes
    assert one.seconds < two.seconds
    assert (two.centres, two.rows, two.method) == (500, 6000, "compressed")
    other = sf.Prior(kernel=rbf(0.3), noise=0.01)
    robust = compressed_plan(problem(others=(other,)).size, 500, Asked())
    assert robust.bytes > two.bytes
    assert robust.centres == 1000


def test_a_mechanism_says_how_it_was_made_alone_and_in_a_ledger(tmp_path):
    prior, few = sf.Prior(kernel=rbf(0.2), noise=0.01), MANY[:40]
    alone = sf.protect(prior, few, sf.Points([[0.5]]), alpha=0.3)
    counted = sf.Ledger(tmp_path / "l.ledger").protect(prior, few, sf.Points([[0.5]]), alpha=0.3)
    assert str(alone.plan) == str(counted.plan)
    assert str(alone.plan).startswith('40 rows: method="eigh"')


# too little memory ---------------------------------------------------------------------------------------------------


def test_too_little_memory_is_said_with_what_is_needed_and_what_there_is(monkeypatch):
    monkeypatch.setattr(sfumato.machine, "free_memory", lambda device: 0.5 * GIB)
    check_memory(Plan("eigh", 100, bytes=0.4 * GIB))
    with pytest.raises(sf.InputError) as refusal:
        check_memory(Plan("eigh", 20_000, bytes=12.0 * GIB))
    for words in (
        'method="eigh"',
        "12 GiB",
        "20,000 rows",
        "0.5 GiB are free",
        'method="compressed" needs far less',
    ):
        assert words in str(refusal.value)
    with pytest.raises(sf.InputError) as refusal:
        check_memory(Plan("compressed", 20_000, "cuda:1", bytes=12.0 * GIB, centres=2000))
    assert "needs far less" not in str(refusal.value)
    assert "on cuda:1" in str(refusal.value)


@pytest.mark.parametrize("method", ["auto", "eigh", "subspace", "compressed"])
def test_no_work_is_begun_that_memory_is_too_small_for(method, monkeypatch):
    def worked(*_, **__):
        raise AssertionError("the work has begun")

    for module in (sfumato.machine, sfumato.design.plan):
        monkeypatch.setattr(module, "free_memory", lambda device: 1000.0)
    monkeypatch.setattr(sfumato.design.mechanism, "certified_design", worked)
    monkeypatch.setattr(sfumato.design.compression, "summarise", worked)
    prior = sf.Prior(kernel=rbf(0.2), noise=0.01)
    with pytest.raises(sf.InputError, match="are free"):
        sf.protect(prior, MANY, sf.Points([[0.5]]), alpha=0.3, method=method, progress=False)


def test_memory_is_looked_for_once_the_method_is_known(monkeypatch):
    for module in (sfumato.machine, sfumato.design.plan):
        monkeypatch.setattr(module, "free_memory", lambda device: 0.2 * GIB)
    prior = sf.Prior(kernel=rbf(0.2), noise=0.01)
    mechanism = sf.protect(prior, MANY, sf.Points([[0.5]]), alpha=0.3, progress=False)
    assert isinstance(mechanism.noise, FunctionalNoise)
    with pytest.raises(sf.InputError, match='method="subspace"'):
        sf.protect(prior, MANY, sf.Points([[0.5]]), alpha=0.3, method="subspace", progress=False)


# the machine ---------------------------------------------------------------------------------------------------------


def test_free_memory_is_the_least_of_computer_container_and_process(monkeypatch):
    assert free_memory() > 1e6
    assert free_memory("cpu") > 1e6
    monkeypatch.setattr(sfumato.machine, "_of_computer", lambda: 7.0)
    monkeypatch.setattr(sfumato.machine, "_of_group", lambda: 5.0)
    assert free_memory() == 5.0
    monkeypatch.setattr(sfumato.machine, "_of_group", lambda: float("inf"))
    assert free_memory(None) == 7.0
    monkeypatch.setattr(sfumato.machine, "_of_process", lambda: 3.0)
    assert free_memory(None) == 3.0


def test_the_product_rate_is_measured_once():
    assert 1e8 < product_rate() < 1e15
    assert product_rate() == product_rate()


def test_many_points_of_a_region_count_as_rows_do():
    few, many = (exact_plan(Size(1000, named=named)).bytes for named in (0, 30_000))
    assert few < 0.2 * GIB
    assert many > 100.0 * GIB
