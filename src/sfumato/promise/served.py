"""The inputs that are to stay useful: there readers' predictions are to be the best that a promise allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..arrays import Array
from ..data import Outputs
from ..models import Prior

#: Which noise is sought: the least, or the one with the best predictions at the served inputs.
Objective = Literal["noise", "predictions"]


@dataclass(frozen=True, eq=False)
class Served:
    """Inputs (``places``, a row for each) with a positive number for each that says how much it counts."""

    places: Array
    weights: Array

    def __len__(self) -> int:
        return len(self.places)

    def coefficients(self, prior: Prior, outputs: Outputs) -> Array:
        """c with ``Σ c_t Var f(t) = 1``, so that ``Σ c_t (explained variance)`` is the share that readers explain.

        Several outputs count as much as their weights on average, whatever their units are.
        """
        variance = prior.variance(self.places)
        numbers = outputs.numbers(self.places)
        result = np.zeros(len(self.places))
        for number in np.unique(numbers):
            own = numbers == number
            average = float(self.weights[own] @ variance[own]) / float(np.mean(self.weights[own]))
            result[own] = self.weights[own] / average
        return result / float(result @ variance)
