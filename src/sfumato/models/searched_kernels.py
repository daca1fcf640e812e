"""Kernels while their parameters are searched: the module, where it starts and ends, and the way back.

A kernel that was written as text is searched on columns with standard deviation 1 and outputs with variance 1, between
limits that suit them. A kernel of the user's means what it says only on the inputs as they are: it is fitted from where
it is, and may move by a large factor.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import gpytorch
import numpy as np
import torch
from gpytorch.constraints import GreaterThan, Positive
from gpytorch.kernels import Kernel, ScaleKernel

from ..arrays import Array, Index, Mask
from .kernel_kinds import KINDS, Parameter
from .kernel_terms import RADIAL
from .kernel_text import NAMES, Joined, KernelText, Named, assemble, in_text, named_parts
from .kernel_values import searched_diagonal, searched_values
from .trees import COMPOSITES, Tree, build_kernel

#: Limits in standard deviations of a column, and in variances of y.
LENGTHSCALES = (1e-3, 1e4)
VARIANCES = (1e-6, 1e6)
#: Lengthscales beyond this have run off: over the rows they all say the same.
RUN_OFF = 1e3
#: Limits of what has no unit: how much happens within a period (beyond the last it is a plain sine wave), and the shape
#: of a rational quadratic kernel.
SEASONS, ALPHAS = (1e-2, 10.0), (1e-2, 1e3)
#: A period that is fitted stays this close, as a factor, to the one that the data show.
NEAR_PERIOD = 1.25
#: How far, in logarithms, a parameter of the user's own kernel may move.
FREEDOM = math.log(1e10)

#: Terms of a sum start with lengthscales that differ by this factor, and take turns in who has the longest.
APART = 10.0
#: What a season is multiplied by changes slowly: it starts with this many times a column's spread, in turn.
SLOW = (3.0, 0.7, 0.15)
#: Where no period stands out, seasons start with these shares of the range: few turns show no period by themselves.
GUESSED_PERIODS = (1 / 3, 1 / 5, 1 / 8, 1 / 2, 1 / 12, 1 / 20)

#: What GPyTorch calls parameters that are variances.
AMPLITUDES = ("raw_outputscale", "raw_variance", "raw_constant")

#: By the id of a parameter: bounds on the scale that it is searched on, or which of its entries ended on the lower and
#: on the upper one.
Bounds = dict[int, tuple[float, float]]
Ended = dict[int, tuple[list[bool], list[bool]]]


@dataclass(frozen=True, eq=False)
class Scale:
    """What brings rows to the common scale: ``(x − offset) / spread``, ``y / y_scale``; ``still``: no spread.

    ``owners`` are the columns of a table that columns came from; those of one owner have one lengthscale.
    """

    names: tuple[str, ...]
    offset: Array
    spread: Array
    still: Mask
    y_scale: float
    owners: tuple[str, ...] = ()


@dataclass(frozen=True)
class Remarks:
    """What there is to say about the end of a search; alarms also become warnings."""

    alarms: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class SearchedKernel(ABC):
    """A kernel with free parameters, on the scale of the search."""

    kernel: Kernel
    #: Whether searches that come close to each other end at the same place.
    smooth = False

    @abstractmethod
    def start(self, turn: int, stretch: float) -> None:
        """Put the free parameters on the start values number ``turn``, lengthscales at about ``stretch``."""

    def shared(self, parameter: torch.nn.Parameter) -> Index:
        """A number for each entry of a free parameter; entries with the same number have the same value."""
        return np.arange(parameter.numel())

    @abstractmethod
    def bounds(self) -> Bounds:
        """The bounds of the free parameters, for this start."""

    @abstractmethod
    def covariance(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """K(A, B), with gradients."""

    @abstractmethod
    def diagonal(self, A: torch.Tensor) -> torch.Tensor:
        """k(a, a) at all rows, with gradients."""

    @abstractmethod
    def found(self) -> Kernel:
        """The kernel in the user's units."""

    @abstractmethod
    def remarks(self, ended: Ended) -> Remarks:
        """What the bounds that were reached mean."""


# ---------------------------------------------------------------- a kernel of the user's


class OwnKernel(SearchedKernel):
    """A GPyTorch kernel of the user's, on a copy; only the scale of y is changed around it."""

    def __init__(self, kernel: Kernel, X: torch.Tensor, y_scale: float, logarithmic: bool) -> None:
        self.X = X
        own = copy.deepcopy(kernel).double().cpu()
        if logarithmic:
            _search_on_log_scale(own)
        self.kernel = ScaleKernel(own, outputscale_constraint=_as_is()).double()
        self.kernel.outputscale = torch.tensor(1.0 / y_scale**2, dtype=torch.float64)
        self.kernel.raw_outputscale.requires_grad_(False)
        self.started: dict[int, torch.Tensor] = {}

    def _logarithmic(self) -> dict[str, torch.nn.Parameter]:
        return {
            name: parameter
            for name, parameter in self.kernel.named_parameters()
            if parameter.requires_grad and _is_logarithmic(self.kernel, name)
        }

    def start(self, turn: int, stretch: float) -> None:
        """The user's values come first; other starts stretch its lengthscales and bring its variance to that of y."""
        free = self._logarithmic()
        if turn > 0:
            with torch.no_grad(), gpytorch.settings.lazily_evaluate_kernels(False):
                size = float(self.kernel(self.X, diag=True).mean())
            shrink = -math.log(size) if math.isfinite(size) and size > 0.0 else 0.0
            moves = {"raw_lengthscale": math.log(stretch)} | dict.fromkeys(AMPLITUDES, shrink)
            for name, parameter in free.items():
                parameter.data.add_(moves.get(name.split(".")[-1], 0.0))
        self.started = {id(parameter): parameter.detach().clone() for parameter in free.values()}

    def bounds(self) -> Bounds:
        return {key: (float(at.min()) - FREEDOM, float(at.max()) + FREEDOM) for key, at in self.started.items()}

    def covariance(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        dense: torch.Tensor = (self.kernel(A) if A is B else self.kernel(A, B)).to_dense()
        return dense

    def diagonal(self, A: torch.Tensor) -> torch.Tensor:
        values: torch.Tensor = self.kernel(A, diag=True)
        return values

    def found(self) -> Kernel:
        kernel: Kernel = self.kernel.base_kernel
        return kernel

    def remarks(self, ended: Ended) -> Remarks:
        names = {id(parameter): name.split(".")[-1] for name, parameter in self.kernel.named_parameters()}
        stopped = [names[key].removeprefix("raw_") for key, (low, high) in ended.items() if any(low) or any(high)]
        return Remarks(
            tuple(
                f"{name} of the kernel moved by a factor of 1e10 and was stopped; start it closer to what fits the "
                "data, or fix it."
                for name in stopped
            )
        )


def _search_on_log_scale(kernel: Kernel) -> None:
    """Replace softplus by exp for all positive parameters: the same values, but steps that suit any unit."""
    for part in kernel.modules():
        for name, constraint in list(getattr(part, "_constraints", {}).items()):
            if type(constraint) not in (Positive, GreaterThan) or not constraint.enforced:
                continue
            parameter = getattr(part, name.removesuffix("_constraint"))
            low = constraint.lower_bound
            value = constraint.transform(parameter.detach())
            fresh = GreaterThan(0.0, transform=torch.exp, inv_transform=torch.log).double()
            fresh.lower_bound = low
            part.register_constraint(name.removesuffix("_constraint"), fresh, replace=True)
            parameter.data = fresh.inverse_transform(value)


def _is_logarithmic(kernel: Kernel, name: str) -> bool:
    constraint = kernel.constraint_for_parameter_name(name)
    return constraint is not None and getattr(constraint, "_transform", None) is torch.exp


def _as_is() -> Positive:
    """Without a transform a parameter is the value itself."""
    return Positive(transform=None, inv_transform=None)


def positive(logarithmic: bool) -> Positive:
    return Positive(transform=torch.exp, inv_transform=torch.log) if logarithmic else Positive()


# ---------------------------------------------------------------- a kernel as text


def kernel_tree(
    text: KernelText, columns: int, values: Callable[[Named, str], Any], variance: Callable[[KernelText, bool], float]
) -> Tree:
    """The tree of ``text`` with these values of what is free in it, on inputs with so many ``columns``."""

    def leaf(part: Named) -> Tree:
        tree = dict(NAMES[part.name].tree)
        for parameter in KINDS[part.kind].parameters:
            value = part.fixed[parameter.name] if parameter.name in part.fixed else values(part, parameter.name)
            tree[parameter.name] = float(np.ravel(value)[0]) if not parameter.axes else np.asarray(value).tolist()
        return tree if part.columns == tuple(range(columns)) else {**tree, "active_dims": list(part.columns)}

    def scale(tree: Tree, part: KernelText, relative: bool) -> Tree:
        return {"kind": "scale", "variance": variance(part, relative), "kernel": tree}

    return assemble(text, leaf, scale, lambda kind, parts: {"kind": kind, "kernels": parts})


@dataclass
class StartingPeriods:
    """The periods that the rows show along a column, in the units of X, which are looked for once; else guesses.

    ``scan`` looks for them; ``say`` hears where there are none.
    """

    X: Array
    names: Sequence[str]
    scan: Callable[[int], Sequence[float]]
    say: Callable[[str], None]
    _known: dict[int, tuple[float, ...]] = field(default_factory=dict)

    def __call__(self, column: int) -> tuple[float, ...]:
        if column not in self._known:
            shown = tuple(self.scan(column))
            if not shown:
                self.say(
                    f"no period stands out along {self.names[column]}, so that the fitted one may be chance; give it, "
                    "as in periodic(period=1)."
                )
            reach = float(np.ptp(self.X[:, column]))
            self._known[column] = shown or tuple(share * reach for share in GUESSED_PERIODS)
        return self._known[column]


class TextKernel(SearchedKernel):
    """A kernel that was written as text; ``periods`` gives those that the rows show along a column."""

    def __init__(
        self, text: KernelText, scale: Scale, periods: Callable[[int], tuple[float, ...]], logarithmic: bool
    ) -> None:
        self.text, self.scale, self.periods, self.logarithmic = text, scale, periods, logarithmic
        #: The modules of the kernels with names, and of the parts that have a variance.
        self.parts: dict[Named, Any] = {}
        self.scales: dict[KernelText, Any] = {}
        #: Where each period that is free started.
        self.began: dict[Named, float] = {}

        def scaled(found: Kernel, part: KernelText, relative: bool) -> Kernel:
            self.scales[part] = ScaleKernel(found, outputscale_constraint=positive(logarithmic)).double()
            return self.scales[part]

        self.kernel = assemble(text, self._part, scaled, lambda kind, parts: COMPOSITES[kind](*parts))
        self.smooth = all(part.kind in RADIAL for part in self.parts)

    def _part(self, part: Named) -> Kernel:
        """A kernel with a name, on the common scale; what is given is fixed."""
        kind, columns = KINDS[part.kind], list(part.columns)
        options = {name: value for name, value in NAMES[part.name].tree.items() if name != "kind"}
        for parameter in kind.parameters if kind.constrained else ():
            given = parameter.name in part.fixed
            options[f"{parameter.name}_constraint"] = _as_is() if given else positive(self.logarithmic)
        module = kind.kernel(ard_num_dims=len(columns), **options).double()
        for parameter in kind.parameters:
            if parameter.name in part.fixed:
                value = torch.from_numpy(np.atleast_1d(self._scaled(part, parameter)))
                setattr(module, parameter.name, value.reshape(getattr(module, parameter.name).shape))
                getattr(module, f"raw_{parameter.name}" if kind.constrained else parameter.name).requires_grad_(False)
        if part.columns != tuple(range(len(self.scale.names))):
            module.active_dims = torch.tensor(columns)
        self.parts[part] = module
        return module

    def _scaled(self, part: Named, parameter: Parameter) -> Any:
        """A value that is given, on the common scale."""
        value, columns = part.fixed[parameter.name], list(part.columns)
        offset = self.scale.offset[columns] if parameter.place else 0.0
        return (value - offset) / self.scale.spread[columns] ** parameter.unit if parameter.unit else value

    def _value(self, part: Named, name: str) -> Array:
        """A parameter as it is now, in the user's units."""
        value = getattr(self.parts[part], name).detach().numpy().reshape(-1)
        unit = next(parameter.unit for parameter in KINDS[part.kind].parameters if parameter.name == name)
        return np.asarray(value * self.scale.spread[list(part.columns)] ** unit if unit else value)

    def _terms(self) -> tuple[KernelText, ...]:
        """The terms that have a variance in the units of y."""
        text = self.text
        return text.parts if isinstance(text, Joined) and text.kind == "sum" else (text,)

    def _beside_seasons(self) -> list[Named]:
        """What seasons are multiplied by."""
        products = [named_parts(term) for term in self._terms() if isinstance(term, Joined)]
        return [part for parts in products if any(one.kind == "periodic" for one in parts) for part in parts]

    def shared(self, parameter: torch.nn.Parameter) -> Index:
        for part, module in self.parts.items():
            if part.kind in RADIAL and module.raw_lengthscale is parameter and self.logarithmic:
                return self._firsts(part)
        return super().shared(parameter)

    def _firsts(self, part: Named) -> Index:
        """For each column the place of the first one with the same owner."""
        owners = [(self.scale.owners or self.scale.names)[column] for column in part.columns]
        return np.array([owners.index(owner) for owner in owners])

    # ------------------------------------------------------------ where it starts

    def start(self, turn: int, stretch: float) -> None:
        """Terms of a sum start apart, and take turns; what a season is multiplied by starts slow."""
        terms, slow = self._terms(), self._beside_seasons()
        for term, module in self.scales.items():
            module.outputscale = 1.0 / len(terms) if term in terms else 1.0
        stretched = [part for part in self.parts if part.kind in RADIAL and "lengthscale" in part.free]
        ladder = [part for part in stretched if part not in slow]
        for part, module in self.parts.items():
            width = math.sqrt(len(part.columns)) if self.logarithmic else 1.0
            if part in ladder:
                rung = (len(ladder) - 1) / 2.0 - (ladder.index(part) + turn) % len(ladder)
                module.lengthscale = stretch * width * APART**rung
            elif "lengthscale" in part.free:
                module.lengthscale = SLOW[turn % len(SLOW)] * width if part.kind in RADIAL else 1.0
            if "alpha" in part.free:
                module.alpha = 1.0
        seasons = [part for part in self.parts if "period_length" in part.free]
        for place, part in enumerate(seasons):
            # each starts at another of the periods that the rows show
            (column,) = part.columns
            shown = self.periods(column)
            self.began[part] = shown[(place + turn) % len(shown)] / float(self.scale.spread[column])
            self.parts[part].period_length = self.began[part]

    def bounds(self) -> Bounds:
        found = {id(module.raw_outputscale): _logarithms(VARIANCES) for module in self.scales.values()}
        for part, module in self.parts.items():
            limits = {"lengthscale": LENGTHSCALES if part.kind in RADIAL else SEASONS, "alpha": ALPHAS}
            if part in self.began:
                limits["period_length"] = (self.began[part] / NEAR_PERIOD, self.began[part] * NEAR_PERIOD)
            found |= {id(getattr(module, f"raw_{name}")): _logarithms(limits[name]) for name in part.free}
        return found

    def covariance(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return searched_values(self.kernel, A, B)

    def diagonal(self, A: torch.Tensor) -> torch.Tensor:
        return searched_diagonal(self.kernel, A)

    # ------------------------------------------------------------ the way back

    def found(self) -> Kernel:
        """What was given is as it was given."""

        def variance(part: KernelText, relative: bool) -> float:
            value = float(self.scales[part].outputscale.detach())
            return value if relative else value * self.scale.y_scale**2

        columns = len(self.scale.names)
        return build_kernel(kernel_tree(self.text, columns, self._value, variance), columns)

    def remarks(self, ended: Ended) -> Remarks:
        alarms: list[str] = []
        notes: list[str] = []
        for part, module in self.parts.items():
            for name in part.free:
                low, high = ended[id(getattr(module, f"raw_{name}"))]
                if name == "lengthscale" and part.kind in RADIAL:
                    high = [bool(value >= RUN_OFF) for value in module.lengthscale.detach().reshape(-1)]
                if any(low) or any(high) or (name == "lengthscale" and any(self.scale.still[list(part.columns)])):
                    self._remark(part, name, low, high, alarms, notes)
        for term, module in self.scales.items():
            (at_least,), (at_most,) = ended[id(module.raw_outputscale)]
            if at_least or at_most:
                alarms.append(self._about_variance(term, at_least))
        return Remarks(tuple(alarms), tuple(notes))

    def _text(self, part: KernelText) -> str:
        return in_text(part, self.scale.names)

    def _in(self, part: KernelText) -> str:
        """Which part of the kernel is spoken of; nothing where there is one only."""
        return "" if part is self.text else f" in {self._text(part)}"

    def _about_variance(self, term: KernelText, at_least: bool) -> str:
        value = float(self.scales[term].outputscale.detach()) * self.scale.y_scale**2
        of = f" of the term {self._text(term)}" if self._in(term) else ""
        lengthscales = any("lengthscale" in part.free for part in named_parts(term))
        remedy = "Give lengthscale, or use" if lengthscales else "Use"
        remedy = "Leave it out of the kernel" if at_least and of else f"{remedy} sf.Prior with values that you know"
        return (
            f"the variance{of} ended at its {'lower' if at_least else 'upper'} limit ({value:.3g}); the data do not "
            f"determine it. {remedy}."
        )

    def _remark(
        self, part: Named, name: str, low: list[bool], high: list[bool], alarms: list[str], notes: list[str]
    ) -> None:
        values, where = self._value(part, name), self._in(part)
        value, word = float(values[0]), "lower" if low[0] else "upper"
        if name == "lengthscale" and part.kind in RADIAL:
            if part in self._beside_seasons() and all(high):
                notes.append(f"the season does not change over the rows: leave {self._text(part)} beside it out.")
                return
            for place, column in enumerate(part.columns):
                if place != self._firsts(part)[place]:
                    continue  # it is said once of all levels of a category
                about = self._about_lengthscale(column, float(values[place]), low[place], high[place], where)
                alarms += [about] if about else []
        elif name == "period_length":
            alarms.append(
                f"the period{where} ended at its limit ({value:.4g}), a factor of {NEAR_PERIOD:g} from the one that "
                "the data show; give it, as in periodic(period=1)."
            )
        elif name == "alpha" and high[0]:
            notes.append(f"alpha{where} ended at its upper limit ({value:.3g}): rbf says the same in fewer words.")
        elif name == "lengthscale" and high[0]:
            notes.append(f"the season{where} is close to a plain sine wave (lengthscale {value:.3g}, its limit).")
        else:
            alarms.append(f"{name}{where} ended at its {word} limit ({value:.3g}); give it.")

    def _about_lengthscale(self, column: int, value: float, low: bool, high: bool, where: str) -> str:
        name = (self.scale.owners or self.scale.names)[column]
        if self.scale.still[column]:
            return (
                f"column {name} is constant in the rows that were fitted, so its lengthscale{where} ({value:.3g}) says "
                "nothing; leave the column out, or give lengthscale."
            )
        if low:
            return (
                f"the lengthscale of {name}{where} ended at its lower limit ({value:.3g}): neighbouring rows look "
                "unrelated. Give lengthscale, or a larger noise."
            )
        if high:
            instead = "Write linear there" if where else "Leave the column out"
            return (
                f"the lengthscale of {name}{where} ran off to {value:.3g}: {name} shows no bend that the kernel could "
                f"use. {instead}, or give lengthscale."
            )
        return ""


def _logarithms(limits: tuple[float, float]) -> tuple[float, float]:
    return math.log(limits[0]), math.log(limits[1])
