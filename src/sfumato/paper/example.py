"""Example 1 of the paper: nine inputs, one of them sensitive, half of its variance to be kept; and its Figure 1."""

from __future__ import annotations

from dataclasses import dataclass

import gpytorch
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..arrays import Array
from ..design import Mechanism, protect
from ..models import Prior
from ..regions import Points
from ..show import FLOOR, PUBLISHED, READER, TRUTH

INPUTS = np.arange(1, 10) / 10
SENSITIVE = 0.5
ALPHA = 0.5


@dataclass(frozen=True, eq=False)
class Example:
    """The least noise of all (``correlated``), the least independent noise, and the prior they are for."""

    prior: Prior
    correlated: Mechanism
    independent: Mechanism

    def variance(self, at: Array, mechanism: Mechanism | None = None) -> Array:
        """What a reader does not know at ``at``, from data with the noise of ``mechanism`` or with none."""
        noise = np.zeros((9, 9)) if mechanism is None else mechanism.noise.covariance()
        return self.prior.condition(INPUTS, np.zeros(9), noise).variance(at)


def example() -> Example:
    """Design both noises for ``K(x, y) = exp(−10 (x − y)²)``, V = 0, s = 0.5, δ = ½."""
    kernel = gpytorch.kernels.RBFKernel().double()
    kernel.lengthscale = 20**-0.5
    prior, region = Prior(kernel=kernel), Points([[SENSITIVE]])
    return Example(
        prior,
        protect(prior, INPUTS, region, ALPHA, protects="function", progress=False),
        protect(prior, INPUTS, region, ALPHA, protects="function", structure="diagonal", progress=False),
    )


def draw_figure_1(made: Example) -> Figure:
    """The three panels: Σ, its variances beside those of independent noise, and what readers do not know."""
    figure = Figure(figsize=(12.0, 3.9), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    _draw_covariance(left, made)
    _draw_variances(middle, made)
    _draw_predictive(right, made)
    for ax in (left, middle, right):
        ax.set_xlabel("x")
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_covariance(ax: Axes, made: Example) -> None:
    noise = made.correlated.noise
    edges = (0.05, 0.95, 0.95, 0.05)
    image = ax.imshow(noise.covariance(), cmap="Blues", extent=edges, vmin=0.0)
    assert ax.figure is not None
    ax.figure.colorbar(image, ax=ax, shrink=0.85)
    ax.set_xticks(INPUTS)
    ax.set_yticks(INPUTS)
    ax.set_ylabel("x")
    sources = "one source" if noise.rank == 1 else f"{noise.rank} sources"
    ax.set_title(f"covariance of the noise: {sources}", fontsize=10)


def _draw_variances(ax: Axes, made: Example) -> None:
    for mechanism, name, colour, offset in (
        (made.independent, "independent", PUBLISHED, -0.018),
        (made.correlated, "correlated", READER, 0.018),
    ):
        noise = mechanism.noise
        label = f"{name}, {noise.trace:.2f} in all"
        ax.bar(INPUTS + offset, noise.variance(), width=0.034, color=colour, label=label)
    ax.set_xticks(INPUTS)
    ax.set_ylabel("noise variance")
    ax.set_ylim(0.0, 1.25 * float(np.max(made.independent.noise.variance())))
    ax.set_title("what each row is blurred by", fontsize=10)
    ax.legend(frameon=False, fontsize=8.5)


def _draw_predictive(ax: Axes, made: Example) -> None:
    at = np.linspace(0.0, 1.0, 501)
    for mechanism, name, colour, style in (
        (made.independent, "independent noise", PUBLISHED, "--"),
        (made.correlated, "correlated noise", READER, "-"),
        (None, "no noise", TRUTH, ":"),
    ):
        # a reader of exact data knows the data themselves: 0 has no place on a logarithmic axis
        ax.plot(at, np.maximum(made.variance(at, mechanism), 1e-9), style, color=colour, label=name)
    promised = 1.0 - ALPHA
    ax.plot([SENSITIVE], [promised], "v", color=FLOOR, markersize=9, label=f"promised: at least {promised:g} here")
    ax.set_yscale("log")
    ax.set_ylim(1e-6, 2.0)
    ax.set_ylabel("predictive variance")
    ax.set_title("what readers do not know", fontsize=10)
    ax.legend(frameon=False, fontsize=8.5, loc="center", bbox_to_anchor=(0.5, 0.3))
