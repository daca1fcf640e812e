"""sfumato: publish data with exactly the noise that a privacy promise needs, and a proof that it is kept.

>>> import numpy as np, sfumato as sf
>>> t = np.linspace(0.0, 3.0, 31)
>>> region = sf.Box(1.0, 2.0)
>>> prior = sf.fit_prior(t, np.sin(t), lengthscale=0.5, noise=0.01, exclude=region)
>>> mechanism = sf.protect(prior, t, region, alpha=0.1)
>>> mechanism.certificate.verdict
'publish'
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .version import __version__ as __version__
from .views import pictures_come_from

#: The public names, by the room that they live in.
_ROOMS = {
    "data": "read_table rows_of_dask rows_of_parquet",
    "design": "Mechanism protect",
    "design.estimator": "PrivateGPRegressor",  # not in the door: only this needs scikit-learn
    "errors": "BudgetError FitWarning FormatError GuaranteeError GuaranteeWarning InputError "
    "LongWorkWarning ResourceError",
    "evaluate": "Effect Levels Rehearsal Suggestion Tradeoff audit rehearse suggest tradeoff",
    "ledger": "Ledger",
    "models": "Average Derivative Integral JointPrior Prior PriorFamily Value fit_correlated fit_prior",
    "promise": "Finding KernelTolerance MatrixTolerance Tolerance",
    "proof": "Certificate",
    "regions": "Ball Box Everywhere Points Region parse_region",
    "release": "Prediction Release load",
    "show": "report",
    "studio": "studio",
    "studio.demos": "demo_table",  # not in the door: no room uses it
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}

__all__ = sorted([*_ROOM_OF, "__version__"])

if TYPE_CHECKING:
    from .data import read_table as read_table
    from .data import rows_of_dask as rows_of_dask
    from .data import rows_of_parquet as rows_of_parquet
    from .design import Mechanism as Mechanism
    from .design import protect as protect
    from .design.estimator import PrivateGPRegressor as PrivateGPRegressor
    from .errors import BudgetError as BudgetError
    from .errors import FitWarning as FitWarning
    from .errors import FormatError as FormatError
    from .errors import GuaranteeError as GuaranteeError
    from .errors import GuaranteeWarning as GuaranteeWarning
    from .errors import InputError as InputError
    from .errors import LongWorkWarning as LongWorkWarning
    from .errors import ResourceError as ResourceError
    from .evaluate import Effect as Effect
    from .evaluate import Levels as Levels
    from .evaluate import Rehearsal as Rehearsal
    from .evaluate import Suggestion as Suggestion
    from .evaluate import Tradeoff as Tradeoff
    from .evaluate import audit as audit
    from .evaluate import rehearse as rehearse
    from .evaluate import suggest as suggest
    from .evaluate import tradeoff as tradeoff
    from .ledger import Ledger as Ledger
    from .models import Average as Average
    from .models import Derivative as Derivative
    from .models import Integral as Integral
    from .models import JointPrior as JointPrior
    from .models import Prior as Prior
    from .models import PriorFamily as PriorFamily
    from .models import Value as Value
    from .models import fit_correlated as fit_correlated
    from .models import fit_prior as fit_prior
    from .promise import Finding as Finding
    from .promise import KernelTolerance as KernelTolerance
    from .promise import MatrixTolerance as MatrixTolerance
    from .promise import Tolerance as Tolerance
    from .proof import Certificate as Certificate
    from .regions import Ball as Ball
    from .regions import Box as Box
    from .regions import Everywhere as Everywhere
    from .regions import Points as Points
    from .regions import Region as Region
    from .regions import parse_region as parse_region
    from .release import Prediction as Prediction
    from .release import Release as Release
    from .release import load as load
    from .show import report as report
    from .studio import studio as studio
    from .studio.demos import demo_table as demo_table


def __getattr__(name: str) -> Any:
    """Names are imported when they are first used: PyTorch takes seconds to import, `sfumato --help` must not."""
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    value = getattr(import_module(f".{_ROOM_OF[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _pictures() -> ModuleType:
    return import_module(".show", __name__)


pictures_come_from(_pictures)
