"""The parts of a design as plain trees and arrays, and back: what release files and the records of a ledger share.

Trees and arrays may come from anyone: what does not fit is a ``FormatError`` (or an ``InputError`` of a part).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias, get_args

import numpy as np

from ..arrays import Array
from ..data import LARGEST_NUMBER, ONE_OUTPUT, Inputs, MemoryInputs, Outputs
from ..errors import FormatError, InputError
from ..models import OutputsKernel, Prior, build_kernel, build_mean, describe_kernel, describe_mean
from ..noise import CorrelatedNoise, FunctionalNoise, IndependentNoise, Noise, of_prior
from ..promise import (
    Cover,
    Design,
    FloorTolerance,
    FractionTolerance,
    Guarantee,
    KernelTolerance,
    MatrixTolerance,
    OutputTolerance,
    Structure,
    TabulatedFloor,
    Tolerance,
)
from ..proof import check_inputs
from ..regions import MOST_OUTPUTS, Everywhere, Region, region_from_tree
from .container import Shapes, Tensors

LONGEST_NAME = 1000
#: Weights below this, or above one over it, overflow when they are squared or divided by.
SMALLEST_WEIGHT = 1e-100

_PRIOR_KEYS = {"kernel", "mean", "noise_variance"}

#: A file's noise may have this many centres for a prior; each reader works with matrices of their number squared.
MOST_CENTRES = 4096

#: A file may speak of this many priors; each of them costs a reader an n × n problem.
MOST_PRIORS = 64

#: The shapes that arrays must have; None is any length.
Expected: TypeAlias = dict[str, tuple[int | None, ...]]

# ---------------------------------------------------------------- describing


def describe_design(design: Design) -> tuple[dict[str, Any], Tensors]:
    """The promise, the priors and the noise. The inputs, weights and witness of the design are not among it."""
    tolerance, tensors = describe_tolerance(design)
    tensors["sensitive"] = design.sensitive
    tensors |= design.noise.arrays()
    for place, prior in enumerate(design.priors):
        if not isinstance(prior.noise, float):
            tensors[of_prior("noise_variance", place)] = prior.noise
    tree = {
        "columns": None if design.inputs.columns is None else list(design.inputs.columns),
        "cover": design.cover,
        "guarantee": design.guarantee,
        "others": [describe_prior(prior) for prior in design.others],
        "output_names": list(design.inputs.outputs) if design.inputs.outputs.numbered else None,
        "prior": describe_prior(design.prior),
        "region": design.region.to_tree(),
        "shift": design.noise.shift,
        "structure": design.structure,
        "tolerance": tolerance,
    }
    return tree, tensors


def describe_prior(prior: Prior) -> dict[str, Any]:
    noise = prior.noise if isinstance(prior.noise, float) else None
    return {"kernel": describe_kernel(prior.kernel), "mean": describe_mean(prior.mean), "noise_variance": noise}


def describe_tolerance(design: Design) -> tuple[dict[str, Any], Tensors]:
    tolerance = design.tolerance
    if isinstance(tolerance, FractionTolerance):
        return {"kind": "fraction", "alpha": tolerance.alpha}, {}
    if isinstance(tolerance, FloorTolerance) and not callable(tolerance.value):
        return {"kind": "floor", "value": tolerance.value}, {}
    if isinstance(tolerance, FloorTolerance):
        points = np.concatenate([design.sensitive, check_inputs(design)])
        # Told apart by their bytes, as the table looks them up: 0 and −0 are two inputs there.
        unique = {row.tobytes(): row for row in np.ascontiguousarray(points, dtype=np.float64)}
        tolerance = tolerance.tabulate(np.array([unique[key] for key in sorted(unique)]))
    if isinstance(tolerance, TabulatedFloor):
        return {"kind": "table"}, {"floor_inputs": tolerance.inputs, "floor_values": tolerance.values}
    if isinstance(tolerance, OutputTolerance):
        parts = [[number, describe_tolerance(replace(design, tolerance=part))[0]] for number, part in tolerance.parts]
        return {"kind": "outputs", "outputs": {"common": tolerance.common, "parts": parts}}, {}
    if isinstance(tolerance, KernelTolerance):
        return {"kind": "kernel", "kernel": describe_kernel(tolerance.kernel)}, {}
    if isinstance(tolerance, MatrixTolerance):
        return {"kind": "matrix"}, {"tolerance_matrix": tolerance.delta}
    raise InputError(f"tolerance is a {type(tolerance).__name__}, which a release file cannot hold.")


# ---------------------------------------------------------------- checking sizes


def design_shapes(manifest: dict[str, Any], shapes: Shapes, rows: int, dimension: int) -> Expected:
    """The arrays of a design for ``rows`` inputs, in shapes that belong together."""
    priors = [manifest["prior"], *(manifest["others"] if isinstance(manifest["others"], list) else [None])]
    if (
        not all(isinstance(prior, dict) and prior.keys() == _PRIOR_KEYS for prior in priors)
        or len(priors) > MOST_PRIORS
    ):
        raise FormatError("the file's priors do not have the parts of one; it is damaged.")
    if rows * dimension == 0:
        raise FormatError("the file has no inputs; it is damaged.")
    sensitive = shapes.get("sensitive", (0,))[0]
    expected: Expected = {"sensitive": (None, dimension)}
    # what a witness has rows for: the rows of the data, or the centres of a noise that is a function
    proved = rows
    if manifest["structure"] == "diagonal":
        expected["noise_diagonal"] = (rows,)
    elif "noise_mixing" in shapes:
        names = [of_prior("noise_centres", place) for place in range(len(priors))]
        counts = [shapes.get(name, (0,))[0] for name in names]
        if max(counts) > MOST_CENTRES:
            raise FormatError(f"the file's noise has {max(counts)} centres; at most {MOST_CENTRES} are read.")
        proved = sum(counts)
        expected |= dict.fromkeys(names, (None, dimension)) | {"noise_mixing": (proved, None)}
    else:
        expected["noise_factor"] = (rows, None)
    for place, prior in enumerate(priors):
        if prior["noise_variance"] is None:
            expected[of_prior("noise_variance", place)] = (rows,)
        if "witness" in shapes:
            columns = sensitive if manifest["guarantee"] == "pointwise" else None
            expected[of_prior("witness", place)] = (proved, columns)
    if "weights" in shapes:
        expected["weights"] = (rows,) * len(shapes["weights"])
    if manifest["tolerance"].get("kind") == "matrix":
        expected["tolerance_matrix"] = (None, None)
    if manifest["tolerance"].get("kind") == "table":
        expected |= {"floor_inputs": (None, dimension), "floor_values": (shapes.get("floor_inputs", (0,))[0],)}
    return expected


def compare_shapes(shapes: Shapes, expected: Expected) -> None:
    """``FormatError`` unless the arrays are those that are expected."""
    for name in shapes.keys() | expected.keys():
        found, wanted = shapes.get(name), expected.get(name, ())
        if found is None or len(found) != len(wanted) or any(w not in (None, f) for f, w in zip(found, wanted)):
            raise FormatError(f"the file's array {name[:40]!r} is missing, unknown or of a shape that does not fit.")


# ---------------------------------------------------------------- building


def build_columns(names: Any) -> tuple[str, ...] | None:
    columns = None if names is None else texts(names, "columns", LONGEST_NAME)
    if columns is not None and len(set(columns)) != len(columns):
        raise FormatError("the file names a column twice.")
    return columns


def build_inputs(values: Array, names: Any, output_names: Any) -> Inputs:
    """Inputs of which ``names`` are the columns, as the file has them; ``output_names``: those of several outputs."""
    several = output_names is not None
    outputs = Outputs.several(texts(output_names, "output names", LONGEST_NAME)) if several else ONE_OUTPUT
    inputs = MemoryInputs(values, build_columns(names), outputs)
    if several:
        if not 0 < len(outputs) <= MOST_OUTPUTS or len(set(outputs)) < len(outputs) or inputs.dimension < 2:
            raise FormatError("the file's output names are not those of several outputs.")
        _check_numbers(values, len(outputs))
    if inputs.columns is not None and len(inputs.columns) != inputs.dimension:
        raise FormatError(f"the file names {len(inputs.columns)} columns for {inputs.dimension} distinct inputs.")
    return inputs


def _check_numbers(rows: Array, outputs: int) -> None:
    """The last column must say which output a row is about."""
    if not np.all(np.isin(rows[:, -1], np.arange(outputs))):
        raise FormatError("the file has rows about outputs that it does not name.")


def build_design(manifest: dict[str, Any], tensors: Tensors, inputs: Inputs) -> Design:
    """The design of which ``describe_design`` has told, with its weights and witness where there are any."""
    for key, known in (("cover", Cover), ("guarantee", Guarantee), ("structure", Structure)):
        if manifest[key] not in get_args(known):
            raise FormatError(f"the file's {key} is {str(manifest[key])[:40]!r}, which this version does not know.")
    trees = (manifest["prior"], *manifest["others"])
    priors = tuple(build_prior(tree, tensors, place, inputs.dimension) for place, tree in enumerate(trees))
    region = region_from_tree(manifest["region"]).bind(inputs.sample)
    witness = [tensors[of_prior("witness", place)] for place in range(len(priors))] if "witness" in tensors else None
    design = Design(
        prior=priors[0],
        inputs=inputs,
        region=region,
        tolerance=build_tolerance(manifest["tolerance"], tensors, region),
        cover=manifest["cover"],
        sensitive=tensors["sensitive"],
        noise=_noise(manifest, tensors, priors, inputs),
        weights=tensors.get("weights"),
        guarantee=manifest["guarantee"],
        structure=manifest["structure"],
        others=priors[1:],
        witness=None if witness is None else tuple(witness),
    )
    if inputs.outputs.numbered:
        _check_numbers(design.sensitive, len(inputs.outputs))
    for prior in priors:
        counted = prior.kernel.count if isinstance(prior.kernel, OutputsKernel) else None
        if counted != (len(inputs.outputs) if inputs.outputs.numbered else None):
            raise FormatError("the file's prior is about other outputs than its inputs.")
    _try_out(design)
    kind = "everywhere" if isinstance(region, Everywhere) else "points" if region.points is not None else "region"
    if design.cover != kind and (kind != "region" or design.cover in ("everywhere", "points")):
        raise FormatError(f"the file's cover is {design.cover!r}, which does not go with its region.")
    if design.cover == "everywhere" and design.guarantee == "pointwise":
        raise FormatError("the file promises single values everywhere, which nobody can check.")
    if design.cover == "rows" and len(design.rows_inside()) == 0:
        raise FormatError("the file promises the rows inside its region, but there are none.")
    return design


def build_prior(tree: dict[str, Any], tensors: Tensors, place: int, dimension: int) -> Prior:
    name = of_prior("noise_variance", place)
    noise = tensors[name] if name in tensors else number(tree["noise_variance"], "V")
    return Prior(build_kernel(tree["kernel"], dimension), build_mean(tree["mean"], dimension), noise)


def _noise(manifest: dict[str, Any], tensors: Tensors, priors: tuple[Prior, ...], inputs: Inputs) -> Noise:
    shift = number(manifest["shift"], "shift")
    if "noise_mixing" in tensors:
        if shift != 0:
            raise FormatError(
                "the file's noise is a function of the inputs, and has a shift that does not belong to it."
            )
        centres = tuple(tensors[of_prior("noise_centres", place)] for place in range(len(priors)))
        return FunctionalNoise(priors, centres, tensors["noise_mixing"], inputs)
    if manifest["structure"] == "full":
        return CorrelatedNoise(tensors["noise_factor"], shift)
    variances = tensors["noise_diagonal"]
    if shift != 0 or np.any(variances < 0):
        raise FormatError("the file's noise has negative variances, or a shift that does not belong to it.")
    return IndependentNoise(variances)


@np.errstate(all="ignore")
def _try_out(design: Design) -> None:
    """A kernel, mean or region made for other columns must fail here and not at the reader's first prediction."""
    few = design.inputs.sample.values[:2]
    blocks = []
    for prior in design.priors:
        blocks += [prior.covariance(few), np.diag(prior.mean_at(few)), np.diag(prior.variance(few))]
    if isinstance(design.tolerance, KernelTolerance):
        blocks.append(design.tolerance.matrix(design.prior, few))
    fit = all(block.shape == (len(few),) * 2 and np.all(np.abs(block) < LARGEST_NUMBER) for block in blocks)
    if not fit or any(np.any(np.diag(b) < 0) for b in blocks[::3]) or design.region.contains(few).shape != (len(few),):
        raise FormatError("the file's prior, tolerance or region does not fit the file's inputs.")
    if design.noise.compressed:
        # raises where centres are the same, or tell the same
        for prior, centres in zip(design.priors, design.noise.as_function().centres, strict=True):
            np.linalg.cholesky(prior.covariance(centres))
        if any(np.min(prior.noise) <= 0 for prior in design.priors):
            raise FormatError("the file's noise is a function of the inputs, which needs noise in the data as well.")
    weights = np.ones(1) if design.weights is None else design.weights
    if weights.ndim == 2:
        np.linalg.cholesky(weights)
    each = weights if weights.ndim == 1 else np.diag(weights)
    if np.any(each < SMALLEST_WEIGHT) or np.any(each > 1 / SMALLEST_WEIGHT) or not np.array_equal(weights, weights.T):
        raise FormatError("the file's weights are not positive numbers of usual size, or not symmetric.")


def build_tolerance(tree: dict[str, Any], tensors: Tensors, region: Region) -> Tolerance:
    builders: dict[Any, tuple[str | None, Callable[[Any], Tolerance]]] = {
        "fraction": ("alpha", lambda value: FractionTolerance(number(value, "alpha"))),
        "floor": ("value", lambda value: FloorTolerance(number(value, "floor"))),
        "kernel": ("kernel", lambda value: KernelTolerance(build_kernel(value))),
        "outputs": ("outputs", lambda value: _output_tolerance(value, tensors, region)),
        "matrix": (None, lambda _: _matrix_tolerance(tensors["tolerance_matrix"], region)),
        "table": (None, lambda _: TabulatedFloor.from_table(tensors["floor_inputs"], tensors["floor_values"])),
    }
    kind = tree.get("kind")
    if not isinstance(kind, str) or kind not in builders:
        raise FormatError(f"the file's tolerance is of a kind that this version does not know ({str(kind)[:40]!r}).")
    key, build = builders[kind]
    if tree.keys() - {key} != {"kind"} or np.any(tensors.get("floor_values", np.ones(1)) <= 0):
        raise FormatError("the file's tolerance is damaged.")
    return build(tree.get(key or ""))


def _output_tolerance(tree: Any, tensors: Tensors, region: Region) -> Tolerance:
    parts: dict[int, FractionTolerance | FloorTolerance] = {}
    if not isinstance(tree, dict) or tree.keys() != {"common", "parts"} or not isinstance(tree["parts"], list):
        raise FormatError("the file's tolerances of several outputs are damaged.")
    common = number(tree["common"], "common tolerance")
    if not 0.0 <= common <= 1.0:
        raise FormatError("the file's tolerances of several outputs are damaged.")
    for entry in tree["parts"]:
        if (
            not isinstance(entry, list)
            or len(entry) != 2
            or type(entry[0]) is not int
            or not isinstance(entry[1], dict)
        ):
            raise FormatError("the file's tolerances of several outputs are damaged.")
        part = build_tolerance(entry[1], tensors, region)
        if not isinstance(part, (FractionTolerance, FloorTolerance)) or entry[0] in parts:
            raise FormatError("the file's tolerances of several outputs are damaged.")
        parts[entry[0]] = part
    return OutputTolerance(tuple(sorted(parts.items())), common)


def _matrix_tolerance(delta: Array, region: Region) -> Tolerance:
    if region.points is None:
        raise FormatError("the file has a tolerance for points, but a region that is not made of points.")
    return MatrixTolerance(delta).at(region.points)


def number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < LARGEST_NUMBER:
        raise FormatError(f"the file's {what} is {str(value)[:40]!r}, not a number it could be.")
    return float(value)


def texts(values: Any, what: str, longest: int) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) and len(value) <= longest for value in values):
        raise FormatError(f"the file's {what} are not a list of texts of usual length.")
    return tuple(values)
