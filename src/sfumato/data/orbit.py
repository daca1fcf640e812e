"""Small data sets, made here: a satellite that circles an oblate Earth, as in the paper, or steers, as in the demo.

Its state (r, ṙ, θ, θ̇) is in Earth radii, radians and orbits: time counts in periods of the unperturbed circular orbit.
It obeys, as printed in the paper,

    r̈ = −μ/r² + r θ̇² + 3/2 J (3 sin²θ − 1)/r⁴,      θ̈ = −2 ṙ θ̇/r − 3 J cos θ sin θ/r⁴.

and a push outwards is added to r̈ where it steers. (The potential behind the first equation would give r⁵ in the second:
the motion drifts in energy by 1.5·10⁻⁴. It is kept, because the paper's data come from it.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import scipy

from ..arrays import Array
from ..errors import InputError

#: The columns of the table, besides the time ``t``.
STATES = ("r", "r_dot", "theta", "theta_dot")

#: The orbit that is to be hidden, both ends included.
SENSITIVE = (1.0, 2.0)

#: Of the paper's kernel exp(−(t − t′)²/(2·1/400)), in orbits: the square root of 1/400.
LENGTHSCALE = 0.05

EARTH_RADIUS = 6378.1363  # km
ORBIT_RADIUS = EARTH_RADIUS + 340.0  # km
GRAVITY = 398600.4415  # km³/s²
OBLATENESS = 1.7555e10  # km⁵/s²
PERIOD = 2 * math.pi * math.sqrt(ORBIT_RADIUS**3 / GRAVITY)  # s; 5480.0459, not the rounded 5480

# The same in Earth radii and orbits, and the state at time 0.
MU = GRAVITY * PERIOD**2 / EARTH_RADIUS**3
J = OBLATENESS * PERIOD**2 / EARTH_RADIUS**5
START = (ORBIT_RADIUS / EARTH_RADIUS, 0.0, 0.0, 2 * math.pi)


def training_grid() -> Array:
    """The 61 times at which the paper observes the satellite: three orbits, 0.05 apart."""
    # Whole steps divided by 20, so that 1 and 2 are hit exactly and belong to the closed region.
    return np.arange(61) / 20.0


def simulate(
    times: Any,
    rtol: float = 1e-12,
    atol: float = 1e-13,
    method: str = "DOP853",
    push: Callable[[float], float] | None = None,
) -> pd.DataFrame:
    """The state of the satellite at ``times`` (in orbits, increasing, ≥ 0); it steers with ``push``, if that is given.

    Columns: t, r (Earth radii), r_dot, theta (radians), theta_dot.

    >>> simulate([0.0, 0.5, 1.0]).round(4)["r"].tolist()
    [1.0533, 1.0521, 1.0533]
    """
    at = np.atleast_1d(np.asarray(times, dtype=np.float64))
    if at.ndim != 1 or at.size == 0 or not np.all(np.isfinite(at)) or at[0] < 0 or np.any(np.diff(at) <= 0):
        raise InputError("times must be one or more increasing numbers of orbits, the first ≥ 0.")
    if at[-1] == 0.0:
        states: Array = np.array(START)[:, None]
    else:

        def motion(t: float, state: Array) -> tuple[float, float, float, float]:
            r_dot, pull, theta_dot, turn = _motion(t, state)
            return r_dot, pull + (0.0 if push is None else push(t)), theta_dot, turn

        solution = scipy.integrate.solve_ivp(
            motion, (0.0, float(at[-1])), START, method=method, t_eval=at, rtol=rtol, atol=atol
        )
        if not solution.success:
            raise InputError(f"the orbit could not be integrated: {solution.message}")
        states = np.asarray(solution.y)
    return pd.DataFrame(np.vstack([at, states]).T, columns=["t", *STATES])


def _motion(_: float, state: Array) -> tuple[float, float, float, float]:
    r, r_dot, theta, theta_dot = (float(value) for value in state)
    sine, cosine = math.sin(theta), math.cos(theta)
    pull = -MU / r**2 + r * theta_dot**2 + 1.5 * J * (3 * sine**2 - 1) / r**4
    turn = -2 * r_dot * theta_dot / r - 3 * J * cosine * sine / r**4
    return r_dot, pull, theta_dot, turn
