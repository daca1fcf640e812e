"""sfumato: publish data with exactly the noise that a privacy promise needs, and a proof that it is kept.

>>> import numpy as np, sfumato as sf
>>> t = np.linspace(0.0, 3.0, 31)
>>> prior = sf.fit_prior(t, np.sin(t), lengthscale=0.5, noise=0.01)
>>> mechanism = sf.protect(prior, t, sf.Box(1.0, 2.0), alpha=0.1)
>>> mechanism.certificate.holds
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .attacks.audit import audit
    from .certificate import Certificate
    from .dask_rows import rows_of_dask
    from .errors import BudgetError, FitWarning, FormatError, GuaranteeError, GuaranteeWarning, InputError
    from .estimator import PrivateGPRegressor
    from .fit import fit_prior
    from .functionals import Average, Derivative, Integral, Value
    from .joint_prior import JointPrior
    from .ledger import Ledger
    from .mechanism import Mechanism, protect
    from .parquet_rows import rows_of_parquet
    from .prior import Prior
    from .region_text import parse_region
    from .regions import Ball, Box, Everywhere, Points
    from .release import Prediction, Release, load
    from .report_page import report
    from .tolerance import KernelTolerance, MatrixTolerance
    from .tradeoff_result import Tradeoff
    from .tradeoffs import tradeoff

# Names are fetched when they are first asked for: PyTorch takes seconds to import, `sfumato --help` must not.
_HOMES = {
    "attacks.audit": ("audit",),
    "certificate": ("Certificate",),
    "errors": ("BudgetError", "FitWarning", "FormatError", "GuaranteeError", "GuaranteeWarning", "InputError"),
    "estimator": ("PrivateGPRegressor",),
    "fit": ("fit_prior",),
    "ledger": ("Ledger",),
    "functionals": ("Average", "Derivative", "Integral", "Value"),
    "joint_prior": ("JointPrior",),
    "dask_rows": ("rows_of_dask",),
    "mechanism": ("Mechanism", "protect"),
    "parquet_rows": ("rows_of_parquet",),
    "prior": ("Prior",),
    "region_text": ("parse_region",),
    "regions": ("Ball", "Box", "Everywhere", "Points"),
    "release": ("Prediction", "Release", "load"),
    "report_page": ("report",),
    "tolerance": ("KernelTolerance", "MatrixTolerance"),
    "tradeoff_result": ("Tradeoff",),
    "tradeoffs": ("tradeoff",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Average",
    "Ball",
    "Box",
    "BudgetError",
    "Certificate",
    "Derivative",
    "Everywhere",
    "FitWarning",
    "FormatError",
    "GuaranteeError",
    "GuaranteeWarning",
    "InputError",
    "Integral",
    "JointPrior",
    "KernelTolerance",
    "Ledger",
    "MatrixTolerance",
    "Mechanism",
    "Points",
    "Prediction",
    "Prior",
    "PrivateGPRegressor",
    "Release",
    "Tradeoff",
    "Value",
    "__version__",
    "audit",
    "fit_prior",
    "load",
    "parse_region",
    "protect",
    "report",
    "rows_of_dask",
    "rows_of_parquet",
    "tradeoff",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
