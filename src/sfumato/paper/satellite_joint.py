"""The satellite, closed: its four states protected together, beside what protecting them one by one leaks.

The paper hides r, ṙ, θ and θ̇ each on its own. But ṙ is the derivative of r, and whoever knows that puts the two
releases together (MATH.md 8). Here both ways are judged by that reader.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import gpytorch
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ..arrays import Array
from ..data import LENGTHSCALE, SENSITIVE, STATES, simulate
from ..design import Mechanism, protect
from ..ledger import Published
from ..models import Derivative, JointPrior, Prior, Value
from ..progress import Progress
from ..promise import Design, Revealed, RowLayout
from ..proof import Certificate
from ..show import DASHED, FLOOR, PUBLISHED, READER
from .satellite_figures import dress, legend_below
from .satellite_study import REGION, TIMES, hidden, models
from .study import ALPHAS

#: Between the times of the training grid too.
SHOWN = np.linspace(0.0, 3.0, 601)


@dataclass(frozen=True, eq=False)
class Both:
    """Both ways at one level: what is left of the prior variance of each state, at the times ``SHOWN``.

    ``promised`` is 1 − α. ``one_by_one`` and ``together`` are shares of the prior variance that are left to the
    reader who knows that two of the states are derivatives; ``noise_*`` is the root mean square noise a row.
    """

    alpha: float
    one_by_one: dict[str, Array]
    together: dict[str, Array]
    noise_one_by_one: dict[str, float]
    noise_together: dict[str, float]
    certificate: Certificate
    mechanism: Mechanism

    @property
    def promised(self) -> float:
        return 1.0 - self.alpha

    def least(self, left: dict[str, Array]) -> dict[str, float]:
        """The least that is left in the private orbit."""
        inside = hidden(SHOWN)
        return {state: float(np.min(values[inside])) for state, values in left.items()}


def joint_prior(orbit: pd.DataFrame) -> JointPrior:
    """r with its derivative, and θ with its own; the two pairs are independent."""
    radius, angle = (models("paper", orbit[state].to_numpy()).owner for state in ("r", "theta"))
    return JointPrior.independent(
        JointPrior.of(radius, {"r": Value(), "r_dot": Derivative("t")}),
        JointPrior.of(angle, {"theta": Value(), "theta_dot": Derivative("t")}),
    )


def satellite_joint(alphas: Sequence[float] = ALPHAS, step: Progress | None = None) -> list[Both]:
    """Protect the four states both ways at each level."""
    joint = joint_prior(simulate(TIMES))
    X = pd.DataFrame({"t": TIMES})
    found = []
    for alpha in alphas:
        if step is not None:
            step.stage(f"the satellite's states together, α = {alpha:g}")
        mechanism = protect(joint, X, REGION, alpha=alpha, protects="function", progress=False)
        alone = {
            state: protect(
                _alone(joint, state), X, REGION, alpha=alpha, protects="function", cover="rows", progress=False
            ).design
            for state in STATES
        }
        together = Revealed(mechanism.design)
        layout, prior = RowLayout.of(together), mechanism.prior
        separate = [Revealed(design, state) for state, design in alone.items()]
        found.append(
            Both(
                alpha,
                _left(prior, layout, separate),
                _left(prior, layout, [together]),
                {state: design.noise.rms for state, design in alone.items()},
                _noises(mechanism.design),
                mechanism.certificate,
                mechanism,
            )
        )
    return found


def _alone(joint: JointPrior, state: str) -> Prior:
    """The paper's prior for one state by itself, with the variance that the joint prior gives it."""
    row = [[0.0, float(joint.number_of(state))]]
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel()).double()
    kernel.base_kernel.lengthscale = LENGTHSCALE
    kernel.outputscale = float(joint.prior_on(("t",)).variance(row)[0])
    return Prior(kernel)


def _left(prior: Prior, layout: RowLayout, releases: Sequence[Revealed]) -> dict[str, Array]:
    """The share of each state's prior variance that readers with ``prior`` keep, from the safe side."""
    published = Published.by(prior, layout, releases)
    left = {}
    for number, state in enumerate(layout.outputs):
        points = np.column_stack([SHOWN, np.full(len(SHOWN), float(number))])
        left[state] = 1.0 - np.sum(published.about(points) ** 2, axis=0) / prior.variance(points)
    return left


def _noises(design: Design) -> dict[str, float]:
    variance, rows = design.noise.variance(), design.inputs
    return {name: float(np.sqrt(np.mean(variance[rows.rows_about(name)]))) for name in rows.present}


def joint_table(found: Sequence[Both]) -> pd.DataFrame:
    """A line for each level and state."""
    return pd.DataFrame(
        {
            "alpha": both.alpha,
            "output": state,
            "promised": both.promised,
            "left_one_by_one": both.least(both.one_by_one)[state],
            "left_together": both.least(both.together)[state],
            "noise_one_by_one": both.noise_one_by_one[state],
            "noise_together": both.noise_together[state],
            "holds": both.certificate.holds,
        }
        for both in found
        for state in STATES
    )


_SYMBOLS = {"r": "$r$", "r_dot": r"$\dot{r}$"}


def draw_joint(found: Sequence[Both]) -> Figure:
    """What is left of the prior variance of r and ṙ, for a reader who knows that one is the other's derivative.

    θ and θ̇ look the same: their prior differs by a factor only.
    """
    figure = Figure(figsize=(3.3 * len(found), 5.2), layout="constrained")
    panels = figure.subplots(2, len(found), sharex=True, sharey=True, squeeze=False)
    for column, both in enumerate(found):
        for row, state in enumerate(_SYMBOLS):
            ax = dress(panels[row][column])
            ax.plot(SHOWN, both.one_by_one[state], color=PUBLISHED, linewidth=1.3, label="protected one by one")
            ax.plot(SHOWN, both.together[state], color=READER, linewidth=1.5, label="protected together")
            ax.plot(SENSITIVE, [both.promised] * 2, color=FLOOR, linewidth=2.2, linestyle=DASHED, label="promised")
            worst = both.least(both.one_by_one)[state]
            ax.annotate(
                f"leaks: {worst:.2g} left",
                xy=(1.0, worst),
                xytext=(0.04, 0.90 if both.promised < 0.8 else 0.45),
                textcoords="axes fraction",
                fontsize=8.5,
                color=PUBLISHED,
                arrowprops={"arrowstyle": "-", "color": PUBLISHED, "linewidth": 0.8},
            )
            ax.set_ylim(-0.03, 1.05)
            if row == 0:
                ax.set_title(f"α = {both.alpha:g}: {both.promised:g} promised", fontsize=10)
            if column == 0:
                ax.set_ylabel(f"variance of {_SYMBOLS[state]} left", fontsize=9.5)
            if row == 1:
                ax.set_xlabel("time (orbits)", fontsize=9.5)
    legend_below(figure, panels[0][0], 4)
    return figure
