"""The scikit-learn estimator: fit a prior, protect a region, release the outputs, predict as a reader would.

It takes scalers (``preprocess=``), and pipelines and column transformers of them, which keep every column to itself and
map it by a line; others are refused. A region in the units before them then means something exact after them, and a
kernel after them is a kernel before them.
"""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted, check_X_y, validate_data

from ..arrays import Array, Mask
from ..data import Encoding, Inputs, as_inputs, in_row_order
from ..errors import GuaranteeWarning, InputError
from ..models import ColumnMap, Prior, fit_prior, least_outside
from ..noise import SecretKey
from ..proof import learnt_inside
from ..regions import Everywhere, Region, parse_region
from ..release import digest_outputs
from .arguments import check_settings
from .mechanism import protect

#: What is promised where nothing at all is said: everywhere, readers learn at most half of the variance.
DEFAULT_ALPHA = 0.5

#: One for this process: the same data with the same settings get the same noise, so fits cannot be averaged.
_KEY = SecretKey.fresh()

#: What was released for which rows in this process, as digests: two releases of the same rows are warned of once.
_RELEASED: dict[bytes, set[str]] = {}

_HINT = (
    "A region is in the units of the X that this estimator is given: if a step before it scales X, take that step out "
    "of the pipeline and give it as preprocess=, and the region in the units before scaling."
)

SUPPORTED = (
    "StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, 'passthrough', or a Pipeline or ColumnTransformer of "
    "those"
)

#: A transformer agrees with the lines that were read from it up to this share of its values.
_AGREEMENT = 1e-9

#: Parameters that are the promise: a search over them for accuracy ends at the weakest one.
_PROMISE = ("region", "alpha", "floor", "protects", "guarantee")


class PrivateGPRegressor(RegressorMixin, BaseEstimator):
    """Gaussian process regression from outputs that were blurred so that a region stays private.

    ``fit(X, y)`` fits a prior (``fit_prior``), protects the region (``protect``) and releases y. ``predict`` is what a
    reader of that release predicts. ``release_`` is what may be published, ``release_.save(path)`` writes it.

    ``region`` is a region such as ``sf.Box({"age": (75, 90)})``, a text for ``sf.parse_region`` such as
    "75 <= age <= 90" (columns of an array are x0, x1, …, or just x, unless ``columns`` names them), or None for
    everywhere. Say how much readers may learn there with ``alpha`` or ``floor``, as in ``protect``. Only
    ``PrivateGPRegressor()``, with none of the three, has a default: everywhere, with ``alpha=0.5``. ``kernel``,
    ``mean``, ``noise`` and ``lengthscale`` are those of ``fit_prior``; ``protects``, ``insiders``, ``guarantee``,
    ``structure``, ``objective``, ``serve`` (inputs, a region or its text), ``cover``, ``evidence``, ``method`` and
    ``accept`` those of ``protect``. The prior is fitted to rows
    outside the region only (``fit_outside=True``), because its values are published, and then they tell nothing of the
    rows inside. Where too few rows are outside, fewer than two for each input and three more, all are used, and a
    finding of the certificate says so; ``fit_outside=False`` uses all of them always.

    X may be a DataFrame with dates, text and categories: dates count in days (or hours, or seconds, where all lie
    within two days, or an hour), a category is one column of 0 and 1 for each level. ``predict`` knows the levels of
    ``fit``, and refuses others.

    ``preprocess`` is a scaler, or a Pipeline or ColumnTransformer of scalers. A copy is fitted inside: the kernel (and
    ``lengthscale``) is in scaled units, while X, the region, the release and the certificate stay in the units of X.
    Behind a scaler in a pipeline the estimator sees scaled columns only, and the region has to be in scaled units.

    ``fit`` does not rehearse, because a cross-validation fits many times and a rehearsal takes seconds. Before you
    publish ``release_``, try its prior: ``sf.rehearse(model.prior_, X, y, model.release_.region, alpha)``.

    Guarantee: that of ``certificate_``. A fitted estimator keeps neither y nor a key, so that it can be pickled and
    handed on: it holds what its release holds. Noise comes from a secure source. Within one process the same data and
    the same settings get the same noise, so fitting again can never be averaged; other data, other settings or
    another process draw anew. So publish one release only: not each fold of a cross-validation, nor each point of a
    grid, and know that a setting chosen by scores was learnt from y. ``unsafe_seed`` is for experiments: anyone can
    take that noise off, and the release is marked.

    >>> import numpy as np, sfumato as sf
    >>> t = np.linspace(0.0, 3.0, 31)[:, None]
    >>> model = sf.PrivateGPRegressor(region="1 <= x <= 2", alpha=0.1, noise=0.01).fit(t, np.sin(2 * t[:, 0]))
    >>> model.certificate_.holds
    True
    >>> mean, std = model.predict([[0.5], [1.5]], return_std=True)
    >>> bool(std[0] < std[1])
    True
    """

    def __init__(
        self,
        *,
        region: Any = None,
        alpha: Any = None,
        floor: Any = None,
        kernel: Any = "matern52",
        mean: Any = "constant",
        noise: Any = "learn",
        lengthscale: Any = None,
        protects: Any = "both",
        insiders: Any = None,
        guarantee: Any = "joint",
        structure: Any = "full",
        objective: Any = "noise",
        serve: Any = None,
        cover: Any = "auto",
        evidence: Any = "best",
        method: Any = "auto",
        accept: Any = (),
        fit_outside: Any = True,
        preprocess: Any = None,
        columns: Any = None,
        unsafe_seed: Any = None,
    ) -> None:
        self.region = region
        self.alpha = alpha
        self.floor = floor
        self.kernel = kernel
        self.mean = mean
        self.noise = noise
        self.lengthscale = lengthscale
        self.protects = protects
        self.insiders = insiders
        self.guarantee = guarantee
        self.structure = structure
        self.objective = objective
        self.serve = serve
        self.cover = cover
        self.evidence = evidence
        self.method = method
        self.accept = accept
        self.fit_outside = fit_outside
        self.preprocess = preprocess
        self.columns = columns
        self.unsafe_seed = unsafe_seed

    def fit(self, X: Any, y: Any) -> PrivateGPRegressor:
        """Fit the prior, protect the region and release ``y``."""
        named = y.name if isinstance(y, pd.Series) and isinstance(y.name, str) and y.name else None
        labels = X.index if isinstance(X, (pd.DataFrame, pd.Series)) else None
        # before scikit-learn takes the labels off: values on other rows than their own would be published as they are
        y = in_row_order(y, labels, "y")
        noise = in_row_order(self.noise, labels, "noise")
        rows, y = self._checked(X, y)
        region = self._asked_region(rows, named)
        promise = {"alpha": self.alpha, "floor": self.floor, "protects": self.protects, "guarantee": self.guarantee}
        how = {"structure": self.structure, "cover": self.cover, "evidence": self.evidence, "method": self.method}
        served = self.serve
        if isinstance(served, str):
            served = parse_region(served, rows.sources, outputs=[] if named is None else [named])
        # before the fit, which may take long
        check_settings(**promise, **how, objective=self.objective, serve=served, accept=self.accept)
        inside = np.asarray(region.contains(rows.values), dtype=np.bool_)
        prior = self._fitted_prior(rows, y, inside, noise)
        mechanism = protect(
            prior,
            rows,
            region,
            DEFAULT_ALPHA if self.region is self.alpha is self.floor is None else self.alpha,
            floor=self.floor,
            protects=self.protects,
            insiders=in_row_order(self.insiders, labels, "insiders"),
            guarantee=self.guarantee,
            structure=self.structure,
            objective=self.objective,
            serve=served,
            cover=self.cover,
            evidence=self.evidence,
            method=self.method,
            accept=self.accept,
            progress=False,
        )
        certificate = mechanism.certificate
        outside = self._rows_outside(rows, inside)
        if outside is None and inside.any():
            too_few = int(np.sum(~inside)) if self.fit_outside else None
            certificate = certificate.with_findings(learnt_inside(len(rows), too_few=too_few))
        mechanism = replace(mechanism, _key=_KEY, certificate=certificate)
        self.release_ = mechanism.release(y, output_name=named, unsafe_seed=self.unsafe_seed)
        ordered = rows.values[np.lexsort(rows.values.T)] + 0.0
        seen = _RELEASED.setdefault(hashlib.sha256(ordered.tobytes()).digest(), set())
        seen.add(digest_outputs(np.asarray(self.release_.outputs)))
        if len(seen) == 2:
            warnings.warn(
                "this process has fitted these rows before, with other values or settings, and with other noise: "
                "publish one of the releases only, for the noise of releases that are almost the same averages out",
                GuaranteeWarning,
                stacklevel=2,
            )
        self.certificate_ = self.release_.certificate
        self.prior_ = self.release_.prior
        return self

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """What a reader of ``release_`` predicts of f at ``X``: the mean, with a deviation or the covariance if asked.

        Both are about the function f, not about a new measurement with its error.
        """
        check_is_fitted(self, "release_")
        if return_std and return_cov:
            raise InputError("return_std and return_cov are both True; ask for one of them.")
        encoding = self.release_.design.inputs.encoding
        if encoding is None:
            X = validate_data(self, X, dtype=np.float64, reset=False)
        else:
            validate_data(self, X, reset=False, skip_check_array=True)
        seen = self.release_.predict(X)
        if return_cov:
            return seen.mean, seen.covariance()
        return (seen.mean, seen.std) if return_std else seen.mean

    def set_params(self, **params: Any) -> PrivateGPRegressor:
        """As scikit-learn has it; what it changes of the promise is remembered for ``score``."""
        super().set_params(**params)
        self._promise_set = tuple(name for name in params if name in _PROMISE)
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions: their accuracy, and nothing about what stays unknown.

        A search over ``alpha`` or ``floor`` for the best score always ends at the weakest promise. Where ``set_params``
        has changed the promise, as such a search does, a ``GuaranteeWarning`` says so; of other scores it cannot know.
        """
        changed = getattr(self, "_promise_set", ())
        if changed:
            warnings.warn(
                f"score is accuracy alone, and {' and '.join(changed)} was set as a search does: the weakest promise "
                "always scores best. Choose the promise by what must stay unknown (sf.suggest), and search over the "
                "rest.",
                GuaranteeWarning,
                stacklevel=2,
            )
        return float(super().score(X, y, sample_weight))

    def _checked(self, X: Any, y: Any) -> tuple[Inputs, Array]:
        """The rows and their values, checked by scikit-learn; dates and categories become numbers first."""
        encoding = Encoding.of(X, "X") if isinstance(X, pd.DataFrame) else None
        if encoding is None:
            X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
            return self._rows(X), np.asarray(y, dtype=np.float64)
        validate_data(self, X, skip_check_array=True)  # the names of the columns
        numbers, y = check_X_y(encoding.encode(X, "X"), y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        if self.columns is not None and list(self.columns) != list(encoding.sources):
            raise InputError(f"columns is {self.columns!r}, but X has names of its own; leave columns out.")
        return as_inputs(numbers, encoding=encoding), np.asarray(y, dtype=np.float64)

    def _rows(self, X: Array) -> Inputs:
        own = getattr(self, "feature_names_in_", None)
        names = None if own is None else [str(name) for name in own]
        if self.columns is not None:
            given = [] if isinstance(self.columns, str) else list(self.columns)
            if len(given) != X.shape[1] or not all(isinstance(name, str) for name in given):
                raise InputError(f"columns is {self.columns!r}; give {X.shape[1]} names, one for each column of X.")
            if names is not None and given != names:
                raise InputError(
                    f"columns is {self.columns!r}, but X has names of its own ({', '.join(names)}); leave columns out."
                )
            names = given
        return as_inputs(X if names is None else pd.DataFrame(X, columns=names))

    def _asked_region(self, rows: Inputs, output: str | None) -> Region:
        """The region, bound to the rows, with a word on scaling where it does not fit them."""
        if self.region is None:
            return Everywhere().bind(rows)
        if self.alpha is None and self.floor is None:
            raise InputError(
                "region is given, but neither alpha nor floor; say how much readers may learn there, as in alpha=0.1."
            )
        try:
            asked = self.region
            if isinstance(asked, str):
                asked = parse_region(asked, rows.sources, outputs=[] if output is None else [output])
            if not isinstance(asked, Region):
                raise InputError(f'region is {self.region!r}; give a region, or a text such as "1 <= t <= 2".')
            bound = asked.bind(rows)
        except InputError as error:
            if self.preprocess is not None:
                raise
            lines = (*error.args, _HINT)  # several where a text cannot be read
            raise InputError(*(lines if len(lines) > 2 else [" ".join(lines)])) from None
        if self.preprocess is None and not isinstance(bound, Everywhere) and _is_standardised(rows.values):
            warnings.warn(
                f"every column of X has mean 0 and standard deviation 1, so the region ({bound.in_words(rows.names)}) "
                f"is read in standardised units. {_HINT}",
                GuaranteeWarning,
                stacklevel=3,
            )
        return bound

    def _fitted_prior(self, rows: Inputs, y: Array, inside: Mask, noise: Any) -> Prior:
        if not isinstance(self.fit_outside, (bool, np.bool_)):
            raise InputError(f"fit_outside is {self.fit_outside!r}; give True or False.")
        outside = self._rows_outside(rows, inside)
        scaling = _fitted_map(self.preprocess, rows)
        scaled = scaling.apply(rows.values)
        names = [rows.names[place] for place in scaling.sources]
        prior = fit_prior(
            # as the table has them: the levels of a category share a lengthscale
            rows if self.preprocess is None else pd.DataFrame(scaled, columns=names),
            y,
            self.kernel,
            self.mean,
            noise,
            lengthscale=self.lengthscale,
            exclude=None if outside is None else ~outside,
            progress=False,
        )
        prior = prior.before(scaling, rows.dimension)
        # The report of the fit has a likelihood of y in it: what is kept must be publishable.
        return Prior(prior.kernel, prior.mean, prior.noise, encoding=rows.encoding)

    def _rows_outside(self, rows: Inputs, inside: Mask) -> Mask | None:
        """The rows that the prior is fitted to, those outside the region; None where all of them are."""
        enough = int(np.sum(~inside)) >= least_outside(rows.dimension)
        return ~inside if self.fit_outside and enough else None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Another process draws other noise; and what readers are kept from shows in the score.
        tags.non_deterministic = True
        tags.regressor_tags.poor_score = True
        return tags


def _is_standardised(values: Array) -> bool:
    """Whether StandardScaler or RobustScaler has been here; columns that are 0 throughout were constant before."""
    live = values[:, np.any(values != 0.0, axis=0)]
    if live.shape[1] == 0:
        return False
    low, middle, high = np.quantile(live, [0.25, 0.5, 0.75], axis=0)
    left = ((live.mean(axis=0), live.std(axis=0)), (middle, high - low))
    return any(np.allclose(where, 0.0, atol=1e-7) and np.allclose(width, 1.0, atol=1e-7) for where, width in left)


def _fitted_map(transformer: Any, rows: Inputs) -> ColumnMap:
    """What a copy of ``transformer``, fitted to ``rows``, does to their columns; None does nothing."""
    if transformer is None or _passes(transformer):
        return ColumnMap.identity(rows.dimension)
    if not hasattr(transformer, "fit") or not hasattr(transformer, "transform") or isinstance(transformer, type):
        raise InputError(f"preprocess is {str(transformer)[:80]!r}, not a transformer; give one of {SUPPORTED}.")
    values: Any = np.array(rows.values)
    table = values if rows.columns is None else pd.DataFrame(values, columns=list(rows.columns))
    fitted = clone(transformer).fit(table)
    found = _column_map(fitted, rows.names)
    if found.width == 0:
        raise InputError(f"preprocess is {_short(transformer)}, which leaves no column; let it keep at least one.")
    out = np.asarray(fitted.transform(table), dtype=np.float64)
    largest = np.abs(rows.values[:, list(found.sources)]).max(axis=0)
    size = (largest + np.abs(found.offsets)) / np.abs(found.scales)
    if out.shape != (len(rows), found.width) or np.any(np.abs(out - found.apply(rows.values)) > _AGREEMENT * size):
        raise InputError(
            f"preprocess is {_short(transformer)}, which does more to the columns than scaling them; give one of "
            f"{SUPPORTED}."
        )
    return found


def _column_map(fitted: Any, names: tuple[str, ...]) -> ColumnMap:
    if isinstance(fitted, Pipeline):
        found = ColumnMap.identity(len(names))
        for _, step in fitted.steps:
            found = found.then(_column_map(step, tuple(names[j] for j in found.sources)))
        return found
    if not isinstance(fitted, ColumnTransformer):
        offsets, scales = _line(fitted, len(names))
        return ColumnMap(tuple(range(len(names))), tuple(map(float, offsets)), tuple(map(float, scales)))
    lines: list[tuple[int, float, float]] = []
    for _, step, columns in fitted.transformers_:
        places = _places(columns, names)
        if places and not (isinstance(step, str) and step == "drop"):
            part = _column_map(step, tuple(names[place] for place in places))
            sources = [places[j] for j in part.sources]
            lines += zip(sources, part.offsets, part.scales, strict=True)
    taken = [names[source] for source, _, _ in lines]
    twice = sorted(name for name in taken if taken.count(name) > 1)
    if twice:
        raise InputError(f"preprocess takes the column {twice[0]!r} more than once; take each at most once.")
    return ColumnMap(*zip(*lines, strict=True)) if lines else ColumnMap((), (), ())


def _places(columns: Any, names: tuple[str, ...]) -> list[int]:
    """Where the columns are that a ColumnTransformer names, numbers, slices or marks, as pandas has it."""
    if np.ndim(columns) == 0 and not isinstance(columns, slice):
        columns = [columns]
    named = (columns.start, columns.stop) if isinstance(columns, slice) else (columns := list(columns))
    places = pd.Series(range(len(names)), index=list(names))
    try:
        chosen = places.loc[columns] if any(isinstance(one, str) for one in named) else places.iloc[columns]
    except KeyError as error:
        raise InputError(f"preprocess: {error.args[0]}; the columns are {', '.join(map(repr, names))}.") from None
    return [int(place) for place in chosen]


def _passes(step: Any) -> bool:
    if isinstance(step, str):
        return step == "passthrough"
    return type(step) is FunctionTransformer and step.func is None


def _line(step: Any, columns: int) -> tuple[Array, Array]:
    """Offsets and scales of one scaler. The exact class: a subclass may compute something else."""
    zeros, ones, kind = np.zeros(columns), np.ones(columns), type(step)
    if _passes(step):
        return zeros, ones
    if kind is StandardScaler:
        return step.mean_ if step.with_mean else zeros, step.scale_ if step.with_std else ones
    if kind is RobustScaler:
        return step.center_ if step.with_centering else zeros, step.scale_ if step.with_scaling else ones
    if kind is MinMaxScaler and not step.clip:
        return -step.min_ / step.scale_, 1.0 / step.scale_
    if kind is MaxAbsScaler and not getattr(step, "clip", False):
        return zeros, step.scale_
    raise InputError(
        f"preprocess has the part {_short(step)}, which does not map each column by a line of its own, so a region in "
        f"the units of X has no exact meaning after it; use {SUPPORTED}, or transform X before and give the region in "
        "the units that result."
    )


def _short(step: Any) -> str:
    return " ".join(str(step).split())[:80]
