"""Least noise for finitely many sensitive values, and for all inputs at once.

joint.py has the closed form (the positive part), correlated.py pointwise and robust promises, diagonal.py independent
noise, insiders.py promises to whoever holds rows, uniform.py the promise at every input; demand.py says what they all
promise and what proves a bound. They take demands: A, the covariance of the data, and U, what a promise asks to hide.
They give a factor of Σ (or its diagonal) and a witness that proves how little noise is possible. predictions.py finds
the best predictions under the same demands, by the path of predictions_path.py.
"""

from .correlated import correlated_noise
from .demand import Demand, lower_bound
from .diagonal import diagonal_noise
from .insiders import HeldRows, InsiderNoise, noise_for_insiders
from .joint import explaining_root, insider_root, joint_noise_factor, promised_root
from .predictions import LetThrough, WhiteDemand, best_predictions, most_explained, raised
from .uniform import needed_everywhere
