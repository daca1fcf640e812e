"""Traps that searches have fallen into: whoever is promised a floor keeps it, proved, for any order of the rows.

Every floor is checked by an attacker with formulas of their own (attackers.py), the worst input in 50 digits.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import gpytorch
import numpy as np
import pytest
import torch

import sfumato as sf
from attackers import Attacker
from sfumato.models import build_kernel


def rbf(*lengthscales, **more):
    return {"kind": "rbf", "lengthscale": list(lengthscales), **more}


def matern(nu, *lengthscales, **more):
    return {"kind": "matern", "nu": nu, "lengthscale": list(lengthscales), **more}


def periodic(lengthscale, period, column):
    return {"kind": "periodic", "lengthscale": [lengthscale], "period_length": [period], "active_dims": [column]}


@dataclass(frozen=True)
class Trap:
    """A prior, rows and a box (columns without a bound take the values of rows), and what is promised."""

    tree: dict
    X: np.ndarray
    V: np.ndarray | float
    lower: tuple
    upper: tuple
    promise: dict
    options: dict = field(default_factory=dict)
    digits: bool = True

    def starts(self, seed=1):
        rng = np.random.default_rng(seed)
        rows = self.X[rng.integers(0, len(self.X), 1500)]
        return np.vstack([self.X, self.into(rows + np.ptp(self.X, axis=0) * 0.3 * rng.standard_normal(rows.shape))])

    def into(self, S):
        moved = np.array(S)
        for column, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            if low is not None:
                moved[:, column] = np.clip(moved[:, column], low, high)
        free = [column for column, low in enumerate(self.lower) if low is None]
        if free:
            nearest = np.argmin(np.sum((moved[:, None, free] - self.X[None][:, :, free]) ** 2, axis=2), axis=1)
            moved[:, free] = self.X[nearest][:, free]
        return moved

    def region(self):
        if None not in self.lower:
            return sf.Box(self.lower, self.upper)
        return sf.Box(
            {f"x{i}": (low, high) for i, (low, high) in enumerate(zip(self.lower, self.upper)) if low is not None}
        )


def _traps():
    rng = np.random.default_rng(4)
    corners = np.array([[0.0, 0.0], [0.0, 3.0], [3.0, 0.0], [2.0, 2.1]])
    sum_of_columns = {"kind": "sum", "kernels": [rbf(0.3, active_dims=[0]), rbf(0.3, active_dims=[1])]}
    yield "additive", Trap(sum_of_columns, corners, 1e-6, (2.5, 2.5), (3.5, 3.5), {"alpha": 0.3})
    images = {"kind": "product", "kernels": [periodic(1.0, 2.0, 0), periodic(1.0, 3.0, 1)]}
    rows = np.vstack([rng.random((8, 2)), [[6.0, 6.0]]])
    yield "period away", Trap(images, rows, 1e-3, (2.2, 3.2), (2.7, 3.7), {"alpha": 0.3})
    for columns in (4, 6):
        rows, free = rng.random((25, columns)), (None,) * (columns - 2)
        lower, upper = (0.3, 0.3, *free), (0.6, 0.6, *free)
        yield f"2 of {columns} columns", Trap(rbf(*[0.5] * columns), rows, 0.01, lower, upper, {"alpha": 0.3})
    ring = rng.standard_normal((30, 3))
    ring = 0.5 + 0.4 * ring / np.linalg.norm(ring, axis=1, keepdims=True)
    rows, noise = np.vstack([ring, rng.uniform(-1, 2, (90, 3))]), np.r_[np.full(30, 9.0), np.full(90, 100.0)]
    each = {"guarantee": "pointwise"}
    yield "ring", Trap(rbf(0.5, 0.5, 0.5), rows, noise, (0.3,) * 3, (0.7,) * 3, {"alpha": 0.5}, each, digits=False)
    rows = np.r_[rng.random(300), 0.5 + np.array([-0.006, -0.002, 0.002, 0.006])][:, None]
    noise = np.r_[np.full(300, 3.0), np.full(4, 0.02)]
    yield "decoys", Trap(rbf(0.01), rows, noise, (0.0,), (1.0,), {"alpha": 0.6}, digits=False)
    rows = np.vstack([centre + 1e-3 * rng.standard_normal((4, 2)) for centre in rng.random((5, 2))])
    noise = 10.0 ** rng.uniform(-6, 2, len(rows))
    yield "clusters", Trap(matern(2.5, 0.2, 0.4), rows, noise, (0.2, 0.2), (0.6, 0.6), {"alpha": 0.5})
    seconds = 1.7e9 + 1e4 * np.sort(rng.random(25))[:, None]
    yield "timestamps", Trap(matern(1.5, 1e3), seconds, 1e-3, (1.7e9 + 3e3,), (1.7e9 + 6e3,), {"alpha": 0.7})
    tilted = {"kind": "linear", "variance": 1.0, "active_dims": [1]}
    product = {"kind": "product", "kernels": [matern(2.5, 0.3, active_dims=[0]), tilted]}
    yield "steep variance", Trap(product, rng.random((15, 2)), 0.01, (0.2, 0.1), (0.6, 1.0), {"alpha": 0.8})
    small = {"kind": "scale", "variance": 1e-16, "kernel": rbf(3e7)}
    yield "tiny floor", Trap(small, 1e8 * rng.random((20, 1)), 1e-19, (2e7,), (6e7,), {"floor": 5e-10})


TRAPS = dict(_traps())


def protect(trap, order):
    noise = np.broadcast_to(trap.V, len(trap.X))[order]
    prior = sf.Prior(kernel=build_kernel(trap.tree), noise=noise)
    return sf.protect(prior, trap.X[order], trap.region(), progress=False, **trap.promise, **trap.options)


@pytest.mark.parametrize("name", TRAPS)
def test_no_reader_comes_below_a_proved_floor_and_rows_may_come_in_any_order(name):
    trap = TRAPS[name]
    forth, turned = np.arange(len(trap.X)), np.random.default_rng(3).permutation(len(trap.X))
    mechanism, again = protect(trap, forth), protect(trap, turned)
    assert mechanism.certificate.evidence == again.certificate.evidence == "proved"
    assert again.noise.trace == pytest.approx(mechanism.noise.trace, rel=1e-6)
    assert mechanism.noise.trace > 0
    attacker = Attacker(trap.tree, trap.X, trap.V, mechanism.noise.covariance(), **trap.promise)
    worst, place = attacker.worst(trap.starts(), trap.into)
    assert worst >= 1.0 - 1e-9
    assert mechanism.certificate.floor_ratio == pytest.approx(worst, abs=3e-3)
    if trap.digits:
        assert attacker.ratio50(place) >= 1.0
    # the trap is one: without noise the floor is broken
    bare = replace(attacker, sigma=np.zeros((len(trap.X), len(trap.X))))
    assert bare.worst(trap.starts(), trap.into)[0] < 0.99


def test_named_points_that_are_close_are_promised_jointly_or_refused():
    x, prior = np.linspace(0, 1, 15), sf.Prior(kernel=build_kernel(rbf(0.3)), noise=0.01)
    promised, refused = 0, []
    for gap in (0.1, 1e-2, 1e-3, 1e-5, 1e-7):
        points = np.array([0.4, 0.4 + 0.3 * gap, 0.7])
        try:
            mechanism = sf.protect(prior, x, sf.Points(points), alpha=0.5, progress=False)
        except sf.InputError as error:
            refused.append(str(error))
            continue
        promised += 1
        # f(b) − f(a), of which the kernel's own share is exact by expm1
        M = np.exp(-((x[:, None] - x) ** 2) / 0.18) + 0.01 * np.eye(15) + mechanism.noise.covariance()
        a, b = points[:2]
        far, near = np.exp(-((x - a) ** 2) / 0.18), -((b - a) * (a + b - 2 * x)) / 0.18
        contrast = far * np.expm1(near)
        learnt = contrast @ np.linalg.solve(M, contrast) / (-2.0 * np.expm1(-((b - a) ** 2) / 0.18))
        assert learnt <= 0.5 * (1 + 1e-6)
    assert promised >= 2
    assert all("too close together" in text for text in refused)


class MyKernel(gpytorch.kernels.RBFKernel):
    """What a subclass computes is its own affair, whatever its name says."""

    def forward(self, x1, x2, diag=False, **more):
        values = super().forward(x1, x2, diag=diag, **more)
        return values if diag else values * torch.cos(40.0 * (x1 - x2.mT)) ** 2


@pytest.mark.parametrize("kernel", [MyKernel(), gpytorch.kernels.PiecewisePolynomialKernel(q=2)])
def test_what_is_not_known_of_a_kernel_is_never_called_proved(kernel):
    prior, rows, region = sf.Prior(kernel=kernel.double(), noise=0.1), np.linspace(0, 3, 12), sf.Box(1.0, 1.3)
    certificate = sf.protect(prior, rows, region, alpha=0.4, progress=False).certificate
    assert certificate.holds
    assert (certificate.evidence, certificate.proved_share) == ("searched", 0.0)
    assert any(finding.code == "searched" for finding in certificate.findings)
    with pytest.raises(sf.GuaranteeError):
        sf.protect(prior, rows, region, alpha=0.4, evidence="proved", progress=False)


def test_what_needs_no_noise_gets_none_and_is_proved():
    rows = np.random.default_rng(0).random((40, 2))
    prior = sf.Prior(kernel=build_kernel(rbf(0.1, 0.1)), noise=1.0)
    asked = {"region": sf.Box([0.2, 0.3], [0.6, 0.6]), "floor": 1e-5, "progress": False}
    with pytest.warns(sf.GuaranteeWarning, match="5 of them unchanged"):
        mechanism = sf.protect(prior, rows, **asked, protects="function")
    assert mechanism.noise.trace == 0.0
    assert mechanism.certificate.evidence == "proved"
    assert mechanism.certificate.verdict == "do not publish"
    assert mechanism.certificate.raw_records == 5
