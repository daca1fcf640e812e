"""Pictures show names as they are: no formulas, nothing that cannot be seen, no error when they are drawn.

``tests/test_notebook.py`` draws trade-offs, suggestions, rehearsals and audits.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

import sfumato as sf
from kernels import rbf
from sfumato import plots

pytestmark = [
    pytest.mark.filterwarnings("ignore::sfumato.errors.FindingWarning"),
    pytest.mark.filterwarnings("ignore:Glyph"),
]

#: Two dollar signs begin a formula, and this one is none that Matplotlib can read.
FORMULA = r"$\frac{$"
NAME, SEEN = f"{FORMULA}\x1b\n\u202e", f"{FORMULA}\\x1b\\n\\u202e"

T = np.linspace(0.0, 3.0, 16)
ONE = pd.DataFrame({NAME: T})
TWO = pd.DataFrame({NAME: np.tile(T[::4], 4), f"b{NAME}": np.repeat(T[::4], 4)})
Y = np.sin(2 * T)


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    """What can be drawn; the region is a sliver, so that it is enlarged beside all of it."""
    prior, region = sf.Prior(rbf(0.6), noise=0.01), sf.Box({NAME: (1.0, 1.1)})
    asked: dict[str, Any] = {"alpha": 0.5, "progress": False}
    two = sf.protect(sf.Prior(rbf(0.6, 2), noise=0.01), TWO, region, **asked).release(Y, output_name=NAME)
    one = sf.protect(prior, ONE, region, **asked).release(Y, output_name=NAME)
    both = sf.JointPrior.independent({NAME: prior, f"b{NAME}": prior})
    several = sf.protect(both, ONE, {NAME: region}, **asked).release({NAME: Y, f"b{NAME}": Y}, unsafe_seed=1)
    return {"one": one, "two": two, "several": several}


PICTURES: dict[str, Callable[[Any], Any]] = {
    "release": lambda made: plots.plot_release(made["one"]),
    "floor": lambda made: plots.plot_floor(made["one"]),
    "both": lambda made: plots.plot_both(made["one"], title=NAME),
    "floor along": lambda made: plots.plot_floor_along(made["two"], NAME),
    "slices": lambda made: plots.plot_slices(made["two"]),
    "partial": lambda made: plots.plot_partial(made["two"], NAME),
    "std map": lambda made: plots.plot_std_map(made["two"]),
    "noise map": lambda made: plots.plot_noise_map(made["two"]),
    "covariance": lambda made: plots.plot_covariance(made["several"]),
    "cells": lambda made: plots.plot_cells(made["two"]),
    "trajectory": lambda made: plots.plot_trajectory(made["several"]),
}


@pytest.mark.parametrize("picture", PICTURES)
def test_names_are_drawn_as_they_are(made: dict[str, Any], picture: str) -> None:
    drawn = PICTURES[picture](made)
    first = drawn[0] if isinstance(drawn, list) else drawn
    figure = first.figure if isinstance(first, Axes) else first
    assert isinstance(figure, Figure)
    figure.savefig(io.BytesIO(), format="svg")
    texts = [text.get_text() for text in figure.findobj(Text)]
    assert all(line.isprintable() for text in texts for line in text.split("\n"))
    assert any(SEEN in text.replace("\n", "") for text in texts)


def test_axes_that_were_there_show_names_too(made: dict[str, Any]) -> None:
    figure = Figure()
    mine, other = figure.subplots(2, 1)
    other.set_title(r"$\alpha$")
    plots.plot_release(made["one"], ax=mine)
    figure.savefig(io.BytesIO(), format="svg")
    assert mine.get_xlabel().replace("\n", "") == SEEN
    assert other.title.get_parse_math()
