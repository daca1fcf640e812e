"""Values that noise cannot hide in float64, or that no reader of the prior could believe, are not released.

What is released is what exact arithmetic would publish: sums are checked with fractions.
"""

from __future__ import annotations

import os
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import gpytorch
import numpy as np
import pandas as pd
import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from claims import claim
from command_line import run
from sfumato.data.inputs import as_inputs
from sfumato.data.stored import rows_of_parquet
from sfumato.errors import FindingWarning
from sfumato.noise import CorrelatedNoise, IndependentNoise, Noise, SecretKey, round_outputs
from sfumato.promise import Design, FractionTolerance
from sfumato.release.release import make_release, release_digest

KEY = SecretKey.from_unsafe_seed(18)


def design_with(noise: Noise, std: float = 1.0, mean: float = 0.0) -> Design:
    """A prior of such values, and this noise."""
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel()).double()
    kernel.outputscale = torch.tensor(std**2, dtype=torch.float64)
    prior, inputs = sf.Prior(kernel=kernel, mean=mean), as_inputs(np.linspace(0.0, 1.0, noise.rows))
    region = sf.Box(0.2, 0.8).bind(inputs)
    inside = inputs.values[region.contains(inputs.values)]
    return Design(prior, inputs, region, FractionTolerance(0.1), "rows", inside, noise)


def released(design: Design, y: Any, **options: Any) -> sf.Release:
    return make_release(design, claim(design), KEY, y, **options)


def drawn(design: Design, y: np.ndarray) -> np.ndarray:
    return design.noise.draw(KEY.normals(release_digest(design, y), design.noise.normals_needed))


def nearest(value: Fraction, step: Fraction) -> Fraction:
    return round(value / step) * step


SIZES = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True),
    st.integers(-(2**70), 2**70).map(float),
    st.floats(-30, 30).map(lambda power: 10.0**power),
)


class TestEveryScale:
    @settings(max_examples=80, deadline=None)
    @given(
        st.floats(-150, 150),
        st.floats(-6, 6),
        st.sampled_from([0.0, 1.0, -1e3, 1e9, 1e13]),
        st.lists(SIZES, min_size=4, max_size=4),
        st.booleans(),
    )
    def test_what_is_released_is_exact_and_what_is_refused_has_a_reason(
        self, power: float, louder: float, offset: float, sizes: list[float], scaled: bool
    ) -> None:
        """Row 0 has no noise; the others have a lot, the same and hardly any. All is checked in fractions."""
        std = 10.0**power
        with np.errstate(all="ignore"):
            variances = (std * 10.0**louder * np.array([0.0, 10.0, 1.0, 1e-5])) ** 2
            y = np.array(sizes) * (std if scaled else 1.0) + offset * std
        try:
            design = design_with(IndependentNoise(variances), std, offset * std)
            release = released(design, y)
        except (sf.InputError, RuntimeError) as error:
            if not re.match("y is .* (standard deviations from|where doubles are)", str(error)):
                return  # such a prior, or such numbers, are refused for what they are
            refused, step = True, 0.0
        else:
            refused, step = False, float(np.max(release.resolution))
        spread, far = Fraction(float(np.sqrt(design.prior.variance(design.inputs)[0]))), Fraction(10) ** 6
        exact = [Fraction(float(value)) for value in y]
        mean = Fraction(float(design.prior.mean_at(design.inputs)[0]))
        unbelievable = any(abs(value - mean) > far * spread * (1 - Fraction(1, 10**9)) for value in exact)
        sizes_of_noise = [Fraction(float(value)) for value in np.sqrt(design.noise.variance())]
        if refused:
            # nothing within 4096 standard deviations of a mean that is not far from 0 is ever refused
            near = all(abs(value - mean) <= 4096 * spread for value in exact) and abs(offset) <= 1e3
            assert unbelievable or not near
            return
        assert not any(abs(value - mean) > far * spread * (1 + Fraction(1, 10**9)) for value in exact)
        Z = [Fraction(float(value)) for value in drawn(design, y + 0.0)]
        decimal = Fraction(str(step))
        for value, noisy, own, out in zip(exact, Z, sizes_of_noise, release.outputs, strict=True):
            if own == 0:
                continue
            # far above the last bits of y and of the noise, which are far below the noise where that is worth it
            assert max(abs(value), abs(noisy)) * Fraction(1, 2**52) <= decimal * Fraction(1, 2**10)
            if own * 2**4 > spread * (1 + Fraction(1, 10**9)):
                assert abs(value) * Fraction(1, 2**52) <= own * Fraction(1, 2**16) * (1 + Fraction(1, 10**9))
            # the nearest multiple, but at the border of two; as the double closest to it
            assert abs(Fraction(float(out)) - (value + noisy)) <= decimal * Fraction(513, 1024)
            assert float(out) == float(nearest(Fraction(float(out)), decimal))

    @pytest.mark.parametrize("wrong", [np.inf, -np.inf, np.nan, 1e150, -1e300])
    def test_what_is_no_number_of_usual_size_is_refused(self, wrong: float) -> None:
        y = np.zeros(5)
        y[3] = wrong
        with pytest.raises(sf.InputError, match=r"row 3"):
            released(design_with(IndependentNoise(np.ones(5))), y)

    def test_no_prior_is_fitted_to_values_whose_squares_are_0(self) -> None:
        with pytest.raises(sf.InputError, match="in smaller units"):
            sf.fit_prior(ROWS, 1e-310 * np.sin(ROWS), progress=False)


class TestRoundingTellsNoMoreThanTheSum:
    """The lowest bits of y + Z are an artefact of y and of the grid that Z is on: rounding has to hide them."""

    @staticmethod
    def last_digits(published: np.ndarray, step: float) -> float:
        """How likely the last four bits, in steps, are if all of them are as likely."""
        counts = np.bincount(np.mod(np.rint(published / step), 16).astype(int), minlength=16)
        return float(scipy.stats.chisquare(counts).pvalue)

    @pytest.mark.parametrize("y", [0.0, 1e-9, 1 / 3], ids=["none", "tiny", "some"])
    def test_tiny_values_under_coarse_noise(self, y: float) -> None:
        rows, loud = 4000, 2.0**40
        design = design_with(IndependentNoise(np.full(rows, loud**2)))
        values = np.full(rows, y)
        finest = 2.0**-44
        with pytest.raises(sf.InputError, match="finer than doubles can hold") as refused:
            released(design, values, resolution=finest)
        allowed = float(re.findall(r"at least ([^,]+),", str(refused.value))[0]) * 1.01
        for step in (allowed, released(design, values).resolution):
            assert self.last_digits(released(design, values, resolution=step).outputs, step) > 1e-6
        # what was published before: multiples of the step, but only few of them ever
        assert self.last_digits(round_outputs(values + drawn(design, values), finest), finest) < 1e-100

    def test_huge_values(self) -> None:
        """On 2¹⁰ times the grid of doubles that far out."""
        rows, mean = 4000, 2.0**30
        y = mean + np.random.default_rng(1).integers(-4, 5, rows) * 2.0**-12
        design = design_with(IndependentNoise(np.ones(rows)), mean=mean)
        release = released(design, y)
        assert isinstance(release.resolution, float)
        assert self.last_digits(release.outputs, release.resolution) > 1e-6
        assert self.last_digits(round_outputs(y + drawn(design, y), 2.0**-26), 2.0**-26) < 1e-100

    def test_correlated_noise_with_hardly_any_in_some_combinations(self) -> None:
        """One source, and a second that is 10⁻¹⁰ of it: differences of rows are hidden by the second alone."""
        rows, draw = 600, np.random.default_rng(2)
        factor = np.column_stack([np.ones(rows), 1e-10 * draw.standard_normal(rows), 1e-3 * draw.standard_normal(rows)])
        design = design_with(CorrelatedNoise(factor, shift=1e-16), mean=5.0)
        y = 5.0 + draw.standard_normal(rows)
        release = released(design, y)
        normals = KEY.normals(release_digest(design, y), design.noise.normals_needed)
        exact = [[Fraction(float(value)) for value in row] for row in factor]
        sources, own = [Fraction(float(value)) for value in normals[:3]], np.sqrt(1e-16) * normals[3:]
        step, other = Fraction(str(release.resolution)), 0
        for row in range(rows):
            Z = sum((a * b for a, b in zip(exact[row], sources, strict=True)), Fraction(float(own[row])))
            other += float(nearest(Fraction(float(y[row])) + Z, step)) != release.outputs[row]
        # docs/roundoff.md: one in a million rows may be on the other side of a border between two steps
        assert other == 0


ROWS = np.linspace(0.0, 3.0, 25)
FAR = r"y is 1e\+17 in row 12 .*, 1e\+17 standard deviations from the 0 ± 1 that the prior expects"


def prior(noise: float = 0.0) -> sf.Prior:
    kernel = gpytorch.kernels.MaternKernel(nu=2.5).double()
    kernel.lengthscale = 0.4
    return sf.Prior(kernel=kernel, noise=noise)


def spoilt(y: np.ndarray) -> np.ndarray:
    wrong = y.copy()
    wrong[12] = 1e17
    return wrong


class TestEveryWay:
    """1e17 under a prior of standard deviation 1: the noise is below the spacing of doubles there."""

    Y = np.sin(ROWS)

    @pytest.mark.parametrize(
        "how",
        [{}, {"structure": "diagonal"}, {"guarantee": "pointwise"}, {"method": "compressed", "noise": 0.1}],
        ids=lambda how: "-".join(map(str, how.values())) or "joint",
    )
    def test_a_mechanism_refuses_it_and_can_be_used_afterwards(self, how: dict[str, Any]) -> None:
        own = prior(how.pop("noise", 0.0))
        mechanism = sf.protect(own, ROWS, sf.Box(1.0, 2.0), alpha=0.3, progress=False, **how)
        for _ in range(2):
            with pytest.raises(sf.InputError, match=r"y is 1e\+17 in row 12 .*, 9?.*e\+1[67] standard dev"):
                mechanism.release(spoilt(self.Y))
        release = mechanism.release(self.Y)
        assert not np.any(release.outputs[(ROWS >= 1) & (ROWS <= 2)] == self.Y[(ROWS >= 1) & (ROWS <= 2)])

    def test_several_outputs_name_the_output(self) -> None:
        joint = sf.JointPrior.of(prior(), {"a": sf.Value(), "b": sf.Derivative()})
        mechanism = sf.protect(joint, ROWS, {"a": sf.Box(1.0, 2.0)}, alpha=0.3, progress=False)
        with pytest.raises(sf.InputError, match=r"y is 1e\+17 in row 12 of 'b' \(counted from 0\), .* standard dev"):
            mechanism.release({"a": self.Y, "b": spoilt(self.Y)})

    def test_a_ledger_is_not_written_to(self, tmp_path: Path) -> None:
        book = sf.Ledger(tmp_path / "one.ledger")
        mechanism = book.protect(prior(), ROWS, sf.Box(1.0, 2.0), alpha=0.3, share=0.5, progress=False)
        before = (tmp_path / "one.ledger").read_bytes() if (tmp_path / "one.ledger").exists() else None
        with pytest.raises(sf.InputError, match=FAR):
            mechanism.release(spoilt(self.Y))
        assert len(book) == 0
        assert ((tmp_path / "one.ledger").read_bytes() if (tmp_path / "one.ledger").exists() else None) == before
        mechanism.release(self.Y)
        assert len(book) == 1

    def test_the_estimator_refuses_it(self) -> None:
        own = {"kernel": prior().kernel, "mean": 0.0, "noise": 0.1}
        model = sf.PrivateGPRegressor(region=sf.Box(1.0, 2.0), alpha=0.3, **own)
        with pytest.raises(sf.InputError, match="standard deviations from"):
            model.fit(ROWS[:, None], spoilt(self.Y))

    def test_a_mechanism_that_refused_it_for_a_folder_can_be_used_for_another(self, tmp_path: Path) -> None:
        data = tmp_path / "t.parquet"
        pd.DataFrame({"t": ROWS, "y": spoilt(self.Y)}).to_parquet(data)
        rows = rows_of_parquet(data, ["t"], "y")
        mechanism = sf.protect(prior(0.1), rows, sf.Box(1.0, 2.0), alpha=0.3, progress=False)
        with pytest.raises(sf.InputError, match=r"1e\+17 in row 12 .* Nothing was released"):
            mechanism.release_to(tmp_path / "one", "y", progress=False)
        assert os.listdir(tmp_path) == ["t.parquet"]
        pd.DataFrame({"t": ROWS, "y": self.Y}).to_parquet(data)
        assert len(mechanism.release_to(tmp_path / "other", "y", progress=False).outputs) == len(ROWS)

    def test_a_mean_far_from_0_has_to_be_taken_off(self) -> None:
        design = design_with(IndependentNoise(np.ones(9)), mean=1e14)
        with pytest.raises(sf.InputError, match=r"0.022 apart: not far enough below the noise there, 1\. Take"):
            released(design, np.full(9, 1e14))
        quiet = design_with(IndependentNoise(np.zeros(9)), mean=1e14)
        np.testing.assert_array_equal(released(quiet, np.full(9, 1e14)).outputs, 1e14)  # nothing is hidden there

    def test_moments_in_seconds_are_released(self) -> None:
        """A billion standard deviations from 0: the step is coarser, and below the noise."""
        draw, noise = np.random.default_rng(3), np.linspace(0.0, 1.0, 40) ** 2
        design = design_with(IndependentNoise(noise), mean=1.7e9)
        release = released(design, 1.7e9 + draw.standard_normal(40))
        assert release.resolution == 1e-3

    @pytest.mark.filterwarnings("error")
    def test_a_resolution_may_be_of_any_type_of_number(self) -> None:
        design = design_with(IndependentNoise(np.ones(9)))
        for number in (np.float16(0.5), np.float32(0.5), np.int8(2), 2):
            assert released(design, np.zeros(9), resolution=number).resolution == float(number)

    def test_a_value_that_needs_a_coarser_resolution_says_which(self) -> None:
        design, y = design_with(IndependentNoise(np.full(9, 1e-4))), np.zeros(9)
        y[4] = 9e5
        with pytest.raises(sf.InputError, match=r"not far enough below the resolution, 1e-0\d\.") as refused:
            released(design, y)
        least = float(re.findall("resolution of at least ([^,]+),", str(refused.value))[0])
        assert released(design, y, resolution=least).outputs[4] != 9e5

    def test_far_values_are_told_to_the_owner_and_to_nobody_else(self) -> None:
        mechanism = sf.protect(prior(), ROWS, sf.Box(1.0, 2.0), alpha=0.3, progress=False)
        y = self.Y.copy()
        y[3] = 1e3
        with pytest.warns(FindingWarning, match=r"row 3 \(counted from 0; x = [\d.]+\) is 1e\+03 standard dev"):
            release = mechanism.release(y)
        assert "values-far-from-prior" in [one.code for one in mechanism.findings_on(y)]
        assert "values-far-from-prior" not in [one.code for one in release.certificate.findings]
        assert "values-far-from-prior" not in [one.code for one in mechanism.findings_on(self.Y)]


class TestCommand:
    def words(self, folder: Path, data: str, out: str, *more: str) -> list[str]:
        promise = ["--inputs", "t", "--output", "r", "--region", "1 <= t <= 2", "--alpha", "0.3", "--no-rehearsal"]
        fitted = ["--kernel", "matern52", "--lengthscale", "0.4", "--noise", "0.1", "--fit-outside"]
        return ["protect", str(folder / data), *promise, *fitted, "--out", f"{folder}/{out}", *more]

    def test_nothing_is_written(self, tmp_path: Path) -> None:
        table = pd.DataFrame({"t": ROWS, "r": spoilt(np.sin(ROWS))})
        table.to_csv(tmp_path / "t.csv", index=False)
        table.to_parquet(tmp_path / "t.parquet")
        before = sorted(tmp_path.iterdir())
        for words in (
            self.words(tmp_path, "t.csv", "t.sfumato", "--ledger", str(tmp_path / "t.ledger"), "--share", "0.5"),
            self.words(tmp_path, "t.parquet", "out/"),
        ):
            result = run(*words)
            assert result.exit_code == 2, result.output
            assert "standard deviations from" in " ".join(result.stderr.split())
            assert sorted(tmp_path.iterdir()) == before
