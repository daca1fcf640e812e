"""The parts of a design as plain trees and arrays, and back: what release files and the records of a ledger share.

Trees and arrays may come from anyone: what does not fit is a ``FormatError`` (or an ``InputError`` of a part).
"""

from __future__ import annotations

from typing import Any, TypeAlias, get_args

import numpy as np

from .. import tree_checks as check
from ..arrays import Array
from ..data import LARGEST_NUMBER, ONE_OUTPUT, Encoding, Inputs, MemoryInputs, Outputs
from ..errors import FormatError
from ..machine import warn_of_time
from ..models import (
    MOST_CELLS,
    OutputsKernel,
    Prior,
    PriorFamily,
    build_kernel,
    build_mean,
    describe_kernel,
    describe_mean,
    seconds_a_value,
)
from ..noise import CorrelatedNoise, FunctionalNoise, IndependentNoise, Noise, RecordNoise, of_prior
from ..promise import (
    Cover,
    Design,
    FloorTolerance,
    FractionTolerance,
    Guarantee,
    Insider,
    Insiders,
    KernelTolerance,
    MatrixTolerance,
    OutputTolerance,
    Protects,
    RecordTolerance,
    Served,
    Structure,
    TabulatedFloor,
    Tolerance,
    can_be_promised_to_families,
    size_of_members,
)
from ..proof import inputs_to_look_at
from ..regions import MOST_OUTPUTS, Everywhere, Region, region_from_tree
from .container import Shapes, Tensors
from .suppression import units_of_rows

LONGEST_NAME = 1000
#: Weights below this, or above one over it, overflow when they are squared or divided by.
SMALLEST_WEIGHT = 1e-100

#: The entries of the tree of a design.
DESIGN_KEYS = (
    *("columns", "cover", "designed_for", "guarantee", "insiders", "others", "output_names"),
    *("prior", "promised", "protects", "record_noise", "region", "shift", "structure", "tolerance"),
)

#: Those that a design with families of priors, or with dates and categories among its inputs, has besides.
OPTIONAL_KEYS = ("binding", "families", "encoding")
_RANGES = ("lengthscale", "variance", "noise")

#: What the tree of each kind of tolerance has in it.
_TOLERANCES: dict[str, tuple[str, ...]] = {
    "fraction": ("alpha",),
    "floor": ("value",),
    "kernel": ("kernel",),
    "outputs": ("outputs",),
    "records": ("of",),
    "matrix": (),
    "table": (),
}
_OF_RECORDS = tuple(kind for kind in _TOLERANCES if kind not in ("records", "kernel", "matrix"))

#: A file's noise may have this many centres for a prior, and for all of them; each reader works with matrices of their
#: number squared.
MOST_CENTRES, MOST_CENTRES_TOGETHER = 4096, 16_384

#: Inputs may have this many columns, as kernels, regions and encodings may.
MOST_COLUMNS = 10_000

#: A file may have witnesses for this many insiders.
MOST_DESIGNED_FOR = 4096

#: A file may have this many priors; each of them costs a reader an n × n problem.
MOST_PRIORS = 64

#: A file's families may have this many processes that stand for them; each costs a reader an n × n problem, too.
MOST_MEMBERS = 512

#: The kernels of a file, and those of the processes that stand for its families, may have this many parts together. A
#: part takes about a millisecond to read and copy, and 10 nanoseconds for each covariance of two rows.
MOST_PARTS, MOST_MEMBER_PARTS = 512, 20_000

#: A file may serve this many inputs; each has a covariance with each row.
MOST_SERVED = 65_536

#: Weights of suppressed functions are usual numbers; those of centres that tell almost the same are large.
MOST_WEIGHT = 1e60

#: What is suppressed is this many of the rows' standard deviations, as noise; and as columns of length 1 the
#: combinations have no smaller singular value than the last: what is nearly the same twice is one combination.
LEAST_SUPPRESSED, MOST_SUPPRESSED, APART = 1e-9, 1e12, 1e-6

#: A joint promise about more sensitive inputs than this is none that anybody can check.
MOST_SENSITIVE = 10**9

#: The shapes that arrays must have; None is any length.
Expected: TypeAlias = dict[str, tuple[int | None, ...]]

# ---------------------------------------------------------------- describing


def describe_design(design: Design) -> tuple[dict[str, Any], Tensors]:
    """The promise, the priors and the noise. The inputs, weights and witness of the design are not among it."""
    tolerance, tensors = describe_tolerance(design)
    tensors["sensitive"] = design.sensitive
    tensors |= design.noise.arrays()
    if design.serves is not None:
        tensors |= {"served": design.serves.places, "served_weights": design.serves.weights}
    named = (design.prior, *design.others, *(family.prior for family in design.families))
    for place, prior in enumerate(named):
        if not isinstance(prior.noise, float):
            tensors[of_prior("noise_variance", place)] = prior.noise
    if design.insiders is not None and design.insiders.members is not None:
        tensors["insider_members"] = design.insiders.members
    own = design.noise.as_function().records if design.noise.compressed else None
    tree: dict[str, Any] = {
        "columns": None if design.inputs.columns is None else list(design.inputs.columns),
        "cover": design.cover,
        "designed_for": [list(one) for one in design.designed_for],
        "guarantee": design.guarantee,
        "insiders": None if design.insiders is None else "rows" if design.insiders.members is None else "groups",
        "others": [describe_prior(prior) for prior in design.others],
        "output_names": list(design.inputs.outputs) if design.inputs.outputs.numbered else None,
        "prior": describe_prior(design.prior),
        "promised": design.promised,
        "protects": design.protects,
        "record_noise": own.multiple if own is not None else None,
        "region": design.region.to_tree(),
        "shift": design.noise.shift,
        "structure": design.structure,
        "tolerance": tolerance,
    }
    if design.families:
        tree |= {"binding": list(design.binding), "families": [_describe_family(one) for one in design.families]}
    if design.inputs.encoding is not None:
        tree["encoding"] = design.inputs.encoding.to_tree()
    return tree, tensors


def _describe_family(family: PriorFamily) -> dict[str, Any]:
    ranges = {name: list(getattr(family, name)) for name in _RANGES}
    return {"prior": describe_prior(family.prior), "cells": family.cells, **ranges}


def describe_prior(prior: Prior) -> dict[str, Any]:
    noise = prior.noise if isinstance(prior.noise, float) else None
    return {"kernel": describe_kernel(prior.kernel), "mean": describe_mean(prior.mean), "noise_variance": noise}


def describe_tolerance(design: Design) -> tuple[dict[str, Any], Tensors]:
    """The tree and the arrays of the tolerance of ``design``."""

    def needed() -> Array:
        return np.vstack([design.sensitive, inputs_to_look_at(design), design.inputs.values[design.records]])

    tolerance = design.tolerance.tabulated(needed)
    return tolerance.to_tree(), tolerance.arrays()


# ---------------------------------------------------------------- checking sizes


def check_shapes(tree: dict[str, Any], shapes: Shapes, outputs: bool, stored: tuple[int, int] | None = None) -> None:
    """``FormatError`` unless the arrays are those of a design, in shapes that belong together.

    Inputs are among them, unless rows of the shape ``stored`` are kept elsewhere; with ``outputs``, so are these.
    """
    rows, dimension = stored or (shapes["inputs"] if len(shapes.get("inputs", ())) == 2 else (0, 0))
    expected = _design_shapes(tree, shapes, rows, dimension)
    expected |= ({} if stored else {"inputs": (rows, dimension)}) | ({"outputs": (rows,)} if outputs else {})
    for name in shapes.keys() | expected.keys():
        found, wanted = shapes.get(name), expected.get(name, ())
        if found is None or len(found) != len(wanted) or any(w not in (None, f) for f, w in zip(found, wanted)):
            raise FormatError(f"the file's array {name[:40]!r} is missing, unknown or of a shape that does not fit.")


def _design_shapes(manifest: dict[str, Any], shapes: Shapes, rows: int, dimension: int) -> Expected:
    kind = check.kind_of(manifest["tolerance"], "tolerance", _TOLERANCES)
    if kind == "records":
        kind = check.kind_of(manifest["tolerance"].get("of"), "tolerance", _OF_RECORDS)
    trees = [manifest["prior"], *check.items(manifest["others"], "the other priors", 0, MOST_PRIORS - 1)]
    families = check.items(manifest.get("families", []), "the families", 0, MOST_PRIORS)
    trees += [check.fields(one, "family", ("prior", "cells", *_RANGES))["prior"] for one in families]
    named = [check.fields(tree, "prior", ("kernel", "mean", "noise_variance")) for tree in trees]
    priors = named[: len(named) - len(families)]
    parts = sum(check.objects_in(prior["kernel"]) for prior in named) + check.objects_in(manifest["tolerance"])
    if parts > MOST_PARTS:
        raise FormatError(f"the file's kernels have {parts:,} parts; at most {MOST_PARTS} are read.")
    binding = check.items(manifest.get("binding", []), "the binding members", 0, MOST_MEMBERS)
    if rows * dimension == 0:
        raise FormatError("the file has no inputs; it is damaged.")
    if dimension > MOST_COLUMNS:
        raise FormatError(f"the file's inputs have {dimension:,} columns; at most {MOST_COLUMNS:,} are read.")
    expected: Expected = {"sensitive": (None, dimension)}
    # what a witness has rows for: the rows of the data, or the centres of a noise that is a function
    proved: int | None = rows
    if manifest["structure"] == "diagonal":
        expected["noise_diagonal"] = (rows,)
    elif "noise_mixing" in shapes:
        names = [of_prior("noise_centres", place) for place in range(len(priors))]
        counts = [shapes.get(name, (0,))[0] for name in names]
        if max(counts) > MOST_CENTRES:
            raise FormatError(f"the file's noise has {max(counts)} centres; at most {MOST_CENTRES} are read.")
        proved = together = sum(counts)
        if together > MOST_CENTRES_TOGETHER:
            raise FormatError(f"the file's noise has {together} centres; at most {MOST_CENTRES_TOGETHER} are read.")
        expected |= dict.fromkeys(names, (None, dimension)) | {"noise_mixing": (together, None)}
        if "noise_suppressed" in shapes:
            expected["noise_suppressed"] = (together, None)
    else:
        expected["noise_factor"] = (rows, None)
        if "noise_suppressed" in shapes:
            expected["noise_suppressed"] = (rows, None)
    if "served" in shapes:
        served = shapes["served"][0] if shapes["served"] else 0
        if not 0 < served <= MOST_SERVED:
            raise FormatError(f"the file serves {served:,} inputs; 1 to {MOST_SERVED:,} are read.")
        if "weights" in shapes or len(named) > 1 or manifest["structure"] == "diagonal":
            raise FormatError("the file serves inputs with weights, priors or a structure that do not go with it.")
        expected |= {"served": (None, dimension), "served_weights": (served,)}
        # such a witness has a row for each sensitive value
        proved = None
    for place, prior in enumerate(named):
        if prior["noise_variance"] is None:
            expected[of_prior("noise_variance", place)] = (rows,)
    if "witness" in shapes:
        insiders = check.items(manifest["designed_for"], "the insiders", 0, MOST_DESIGNED_FOR)
        count = len(priors) + len(binding) + len(insiders)
        expected |= {of_prior("witness", place): (proved, None) for place in range(count)}
    if manifest["insiders"] == "groups":
        expected["insider_members"] = (None, 2)
    if "weights" in shapes:
        expected["weights"] = (rows,) * len(shapes["weights"])
    if kind == "matrix":
        expected["tolerance_matrix"] = (None, None)
    if kind == "table":
        expected |= {"floor_inputs": (None, dimension), "floor_values": (shapes.get("floor_inputs", (0,))[0],)}
    return expected


# ---------------------------------------------------------------- building


def build_inputs(values: Array, tree: dict[str, Any]) -> Inputs:
    """Inputs with the columns, the outputs and the encoding that the tree of a design has."""
    outputs, output_names, names = ONE_OUTPUT, tree["output_names"], tree["columns"]
    if output_names is not None:
        check.items(output_names, "the list of outputs", 1, MOST_OUTPUTS)
        outputs = Outputs.several(check.texts(output_names, "the list of outputs", LONGEST_NAME, distinct=True))
    columns = None if names is None else check.texts(names, "the list of columns", LONGEST_NAME, distinct=True)
    inputs = MemoryInputs(values, columns, outputs, encoding=build_encoding(tree, columns, outputs))
    if outputs.numbered and inputs.dimension < 2:
        raise FormatError("the file has several outputs, but no column that tells them apart.")
    if inputs.columns is not None and len(inputs.columns) != inputs.dimension:
        raise FormatError(f"the file names {len(inputs.columns)} columns for {inputs.dimension} distinct inputs.")
    if inputs.encoding is not None and not inputs.encoding.fits(outputs.plain(values)):
        raise FormatError("the file has rows with no level, or several, of a category.")
    return inputs


def build_encoding(tree: dict[str, Any], columns: tuple[str, ...] | None, outputs: Outputs) -> Encoding | None:
    """How the ``columns`` of numbers were those of a table."""
    if "encoding" not in tree:
        return None
    encoding = Encoding.from_tree(tree["encoding"])
    if columns != outputs.columns(encoding.names):
        raise FormatError("the file's encoding is about other columns than its inputs.")
    return encoding


def build_design(manifest: dict[str, Any], tensors: Tensors, inputs: Inputs) -> Design:
    """The design that ``describe_design`` wrote down, with its weights and witness where there are any."""
    for key, known in (("cover", Cover), ("guarantee", Guarantee), ("protects", Protects), ("structure", Structure)):
        if manifest[key] not in get_args(known):
            check.wrong(f"the file's {key}", manifest[key], f"one of {', '.join(get_args(known))}")
    outputs = inputs.outputs
    if outputs.numbered:
        # the last column says which output a row is about
        told = (tensors[name][:, -1] for name in ("sensitive", "served") if name in tensors)
        about = np.concatenate([inputs.values[:, -1], *told])
        if not np.all(np.isin(about, np.arange(len(outputs)))):
            raise FormatError("the file has rows about outputs that it does not name.")
    trees = (manifest["prior"], *manifest["others"])
    priors = tuple(build_prior(tree, tensors, place, inputs) for place, tree in enumerate(trees))
    region = region_from_tree(manifest["region"]).bind(inputs.sample)
    designed_for = tuple(_insider(one) for one in manifest["designed_for"])
    binding = tuple(check.whole(one, "a binding member", 0, MOST_MEMBERS) for one in manifest.get("binding", []))
    families = tuple(
        _build_family(tree, tensors, len(priors) + place, inputs)
        for place, tree in enumerate(manifest.get("families", []))
    )
    count = len(priors) + len(binding) + len(designed_for)
    witness = [tensors[of_prior("witness", place)] for place in range(count)] if "witness" in tensors else None
    design = Design(
        prior=priors[0],
        inputs=inputs,
        region=region,
        tolerance=build_tolerance(manifest["tolerance"], tensors, region),
        cover=manifest["cover"],
        sensitive=tensors["sensitive"],
        noise=_noise(manifest, tensors, priors, inputs, region),
        weights=tensors.get("weights"),
        guarantee=manifest["guarantee"],
        structure=manifest["structure"],
        others=priors[1:],
        witness=None if witness is None else tuple(witness),
        promised=check.whole(manifest["promised"], "the number of sensitive inputs", 0, MOST_SENSITIVE),
        protects=manifest["protects"],
        insiders=_insiders(manifest["insiders"], tensors.get("insider_members"), len(inputs)),
        designed_for=designed_for,
        families=families,
        binding=binding,
        serves=_served(tensors),
    )
    _check_families(design)
    groups = len(design.insiders) if design.insiders is not None else 0
    if any(one.prior >= len(priors) or one.group >= groups for one in designed_for):
        raise FormatError("the file's witness is about insiders to whom it promises nothing.")
    for prior in (*priors, *(family.prior for family in families)):
        counted = prior.kernel.count if isinstance(prior.kernel, OutputsKernel) else None
        if counted != (len(outputs) if outputs.numbered else None):
            raise FormatError("the file's prior is about other outputs than its inputs.")
    _try_out(design)
    kind = "everywhere" if isinstance(region, Everywhere) else "points" if region.points is not None else "region"
    kinds = (
        ("rows",) if not design.protects_function else ("rows", "greedy", "exchange") if kind == "region" else (kind,)
    )
    if design.cover not in kinds:
        raise FormatError(f"the file's cover is {design.cover!r}, which does not go with its region.")
    columns = len(design.sensitive) + (0 if design.noise.compressed else len(design.records))
    # who is promised each value by itself has a column for each; members of families always are
    first = 0 if design.guarantee == "pointwise" else len(priors)
    of_values = (design.witness or ())[first : len(priors) + len(binding)]
    # where inputs are served, a witness of other values than those of the promise proves nothing (proof/optimality.py)
    if design.serves is None and any(part.shape[1] != columns for part in of_values):
        raise FormatError("the file's witness is about other sensitive values than its promise.")
    if design.noise.compressed and design.insiders is not None:
        raise FormatError("the file promises something to insiders with noise for which nobody can check it.")
    if design.cover == "everywhere" and design.serves is not None:
        raise FormatError("the file serves inputs, but promises something about every input.")
    if design.cover == "everywhere" and design.guarantee == "pointwise":
        raise FormatError("the file promises single values everywhere, which nobody can check.")
    if design.cover == "rows" and len(design.rows_inside()) == 0:
        raise FormatError("the file promises the rows inside its region, but there are none.")
    if not design.protects_function and not len(design.records):
        raise FormatError("the file promises records that have a part of their own, but there are none.")
    return design


def _insider(entry: Any) -> Insider:
    prior, group = check.items(entry, "an insider", 2, 2)
    return Insider(check.whole(prior, "its prior", 0, MOST_PRIORS), check.whole(group, "its group", 0, MOST_SENSITIVE))


def _insiders(kind: Any, members: Array | None, rows: int) -> Insiders | None:
    if kind not in (None, "rows", "groups"):
        check.wrong("the file's insiders", kind, '"rows", "groups" or nothing')
    if members is not None:
        whole = np.all(members == np.floor(members)) and np.all(members >= 0) and np.all(members[:, 1] < rows)
        numbers = np.unique(members[:, 0])
        each_once = len(np.unique(members, axis=0)) == len(members)
        if not whole or not each_once or not np.array_equal(numbers, np.arange(len(numbers))):
            raise FormatError("the file's groups of insiders have rows or numbers that are none.")
    return None if kind is None else Insiders(rows, members)


def _build_family(tree: dict[str, Any], tensors: Tensors, place: int, inputs: Inputs) -> PriorFamily:
    def pair(name: str) -> tuple[float, float]:
        low, high = check.items(tree[name], f"the range of the {name}", 2, 2)
        return size(low, f"least {name}"), size(high, f"largest {name}")

    prior = build_prior(tree["prior"], tensors, place, inputs)
    cells = check.whole(tree["cells"], "the cells of a family", 1, MOST_CELLS)
    return PriorFamily(prior, pair("lengthscale"), pair("variance"), pair("noise"), cells)


def _check_families(design: Design) -> None:
    if not design.families:
        return
    promised = can_be_promised_to_families(design.tolerance) and design.insiders is None
    if not promised or design.noise.compressed or design.cover == "everywhere" or design.inputs.outputs.numbered:
        raise FormatError("the file promises something to a family of priors that nobody can check.")
    count, parts = size_of_members(design.families, design.tolerance, design.protects, design.inputs.features)
    if count > MOST_MEMBERS or parts > MOST_MEMBER_PARTS:
        raise FormatError(
            f"{count:,} processes of {parts:,} kernel parts stand for the file's families; at most {MOST_MEMBERS} of "
            f"{MOST_MEMBER_PARTS:,} parts are read."
        )
    count = len(design.members)
    if len(set(design.binding)) < len(design.binding) or max(design.binding, default=0) >= count:
        raise FormatError("the file names members that its families do not have, or too many.")


def build_prior(tree: dict[str, Any], tensors: Tensors, place: int, inputs: Inputs) -> Prior:
    name, dimension = of_prior("noise_variance", place), inputs.dimension
    noise = tensors[name] if name in tensors else size(tree["noise_variance"], "noise variance")
    kernel, mean = build_kernel(tree["kernel"], dimension), build_mean(tree["mean"], dimension)
    return Prior(kernel, mean, noise, encoding=inputs.encoding)


def _noise(
    manifest: dict[str, Any], tensors: Tensors, priors: tuple[Prior, ...], inputs: Inputs, region: Region
) -> Noise:
    multiple = manifest["record_noise"]
    own = None if multiple is None else RecordNoise(region, size(multiple, "noise on records"))
    if own is not None and (own.multiple == 0 or "noise_mixing" not in tensors):
        raise FormatError("the file has noise on records by themselves that does not belong to its noise.")
    shift = size(manifest["shift"], "shift")
    if "noise_mixing" in tensors:
        if shift != 0:
            raise FormatError(
                "the file's noise is a function of the inputs, and has a shift that does not belong to it."
            )
        centres = tuple(tensors[of_prior("noise_centres", place)] for place in range(len(priors)))
        suppressed = tensors.get("noise_suppressed", np.zeros((0, 0)))
        return FunctionalNoise(priors, centres, tensors["noise_mixing"], inputs, records=own, suppressing=suppressed)
    if manifest["structure"] == "full":
        return CorrelatedNoise(tensors["noise_factor"], shift, tensors.get("noise_suppressed", np.zeros((0, 0))))
    variances = tensors["noise_diagonal"]
    if shift != 0 or np.any(variances < 0):
        raise FormatError("the file's noise has negative variances, or a shift that does not belong to it.")
    return IndependentNoise(variances)


@np.errstate(all="ignore")
def _try_out(design: Design) -> None:
    """A kernel, mean or region made for other columns must fail here and not at the reader's first prediction.

    Covariances are no larger than variances: where these are finite at all rows, so are all matrices.
    """
    for prior in (*design.priors, *(family.prior for family in design.families)):
        served = [] if design.serves is None else [design.serves.places]
        for places in (design.inputs.sample.values, design.sensitive, *served):
            if len(places) and not np.all(np.abs(prior.variance(places)) < LARGEST_NUMBER):
                raise FormatError("the file's prior has variances at its inputs that are infinite, or no numbers.")
    few = design.inputs.sample.values[:2]
    blocks = []
    for prior in (*design.priors, *(family.prior for family in design.families)):
        blocks += [prior.covariance(few), np.diag(prior.mean_at(few)), np.diag(prior.variance(few))]
    if isinstance(design.tolerance, KernelTolerance):
        blocks.append(design.tolerance.matrix(design.prior, few))
    fit = all(block.shape == (len(few),) * 2 and np.all(np.abs(block) < LARGEST_NUMBER) for block in blocks)
    if not fit or any(np.any(np.diag(b) < 0) for b in blocks[::3]) or design.region.contains(few).shape != (len(few),):
        raise FormatError("the file's prior, tolerance or region does not fit the file's inputs.")
    counts = np.zeros(0) if design.serves is None else design.serves.coefficients(design.prior, design.inputs.outputs)
    if not np.all(np.abs(counts) < LARGEST_NUMBER):
        raise FormatError("the file serves inputs at which its prior knows the function.")
    if not design.noise.compressed and design.noise.suppressed_count:
        _check_suppressed(design)
    if design.noise.compressed:
        functions = design.noise.as_function().suppressing
        sizes = np.max(np.abs(functions), axis=0)
        if len(sizes) > len(functions) or not np.all((sizes > 1 / MOST_WEIGHT) & (sizes < MOST_WEIGHT)):
            raise FormatError("the file's suppressed functions are too many, or of no usual size.")
        # raises where centres are the same, or tell the same
        for prior, centres in zip(design.priors, design.noise.as_function().centres, strict=True):
            seconds = float(len(centres)) ** 2 * seconds_a_value(prior.kernel, centres)
            warn_of_time(seconds, f"reading noise of {len(centres):,} centres", "the file's kernel has many parts.")
            np.linalg.cholesky(prior.covariance(centres))
        if any(np.min(prior.noise) <= 0 for prior in design.priors):
            raise FormatError("the file's noise is a function of the inputs, which needs noise in the data as well.")
    weights = np.ones(1) if design.weights is None else design.weights
    if weights.ndim == 2:
        np.linalg.cholesky(weights)
    each = weights if weights.ndim == 1 else np.diag(weights)
    if np.any(each < SMALLEST_WEIGHT) or np.any(each > 1 / SMALLEST_WEIGHT) or not np.array_equal(weights, weights.T):
        raise FormatError("the file's weights are not positive numbers of usual size, or not symmetric.")


def _check_suppressed(design: Design) -> None:
    """Combinations that are the same twice, or nothing, would count as more that is not published than there is."""
    variances = design.prior.variance(design.inputs) + design.prior.noise_variance(len(design.inputs))
    columns = design.noise.suppressed / units_of_rows(variances)[:, None]
    sizes = np.linalg.norm(columns, axis=0)
    usual = len(sizes) <= len(columns) and bool(np.all((sizes > LEAST_SUPPRESSED) & (sizes < MOST_SUPPRESSED)))
    columns = columns / sizes if usual else columns
    if not usual or float(np.linalg.eigvalsh(columns.T @ columns)[0]) <= APART**2:
        raise FormatError(
            "the file's suppressed combinations are too many, of no usual size, or nearly the same as one another."
        )


def _served(tensors: Tensors) -> Served | None:
    """The inputs at which predictions are to be the best; None where the noise is to be the least."""
    if "served" not in tensors:
        return None
    weights = tensors["served_weights"]
    if not len(weights) or np.any(weights < SMALLEST_WEIGHT) or np.any(weights > 1 / SMALLEST_WEIGHT):
        raise FormatError("the file's served inputs have weights that are not positive numbers of usual size.")
    return Served(tensors["served"], weights)


def build_tolerance(tree: Any, tensors: Tensors, region: Region) -> Tolerance:
    kind, parts = check.node(tree, "tolerance", _TOLERANCES)
    if kind == "fraction":
        return FractionTolerance(size(parts["alpha"], "alpha"))
    if kind == "floor":
        return FloorTolerance(size(parts["value"], "floor"))
    if kind == "kernel":
        return KernelTolerance(build_kernel(parts["kernel"]))
    if kind == "records":
        part = build_tolerance(parts["of"], tensors, region)
        if not isinstance(part, (FractionTolerance, FloorTolerance, TabulatedFloor, OutputTolerance)):
            raise FormatError("the file's tolerance of records is of a kind that it cannot be.")
        return RecordTolerance(part)
    if kind == "outputs":
        return _output_tolerance(parts["outputs"], tensors, region)
    if kind == "table":
        if np.any(tensors["floor_values"] <= 0):
            raise FormatError("the file's table has floors that are not positive.")
        return TabulatedFloor.from_table(tensors["floor_inputs"], tensors["floor_values"])
    if region.points is None:
        raise FormatError("the file has a tolerance for points, but a region that is not made of points.")
    return MatrixTolerance(tensors["tolerance_matrix"]).at(region.points)


def _output_tolerance(tree: Any, tensors: Tensors, region: Region) -> Tolerance:
    tree = check.fields(tree, "tolerance of several outputs", ("common", "parts"))
    common = check.number(tree["common"], "the common tolerance", 0.0, np.nextafter(1.0, 2.0))
    parts: dict[int, FractionTolerance | FloorTolerance] = {}
    for entry in check.items(tree["parts"], "the tolerances of outputs", 0, MOST_OUTPUTS):
        which, own = check.items(entry, "the tolerance of an output", 2, 2)
        number = check.whole(which, "the number of an output", 0, MOST_OUTPUTS)
        part = build_tolerance(own, tensors, region)
        if not isinstance(part, (FractionTolerance, FloorTolerance)) or number in parts:
            raise FormatError(
                f"the file's tolerance of output {number} is there twice, or of a kind that it cannot be."
            )
        parts[number] = part
    return OutputTolerance(tuple(sorted(parts.items())), common)


def size(value: object, what: str) -> float:
    """A number that is not negative and can be squared."""
    return check.number(value, f"the file's {what}", 0.0, LARGEST_NUMBER)
