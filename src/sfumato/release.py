"""What the reader gets: a design with outputs, a model that predicts from them, and a file that is safe to open."""

from __future__ import annotations

import functools
import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .certificate import Certificate, certify
from .compressed_posterior import CompressedPosterior
from .design import Design
from .engine.here import Here
from .engine.on_dask import as_engine
from .entropy import SecretKey
from .errors import FormatError, GuaranteeError, InputError
from .functional_noise import FunctionalNoise
from .inputs import Array, Inputs, as_inputs, as_outputs, place_in_words
from .noise import Noise
from .outputs_kernel import OutputsKernel
from .prediction import Prediction, predict_with
from .prior import Posterior, Prior
from .progress import progress as show_progress
from .regions import Region
from .release_file import LONGEST_NAME, Contents, read_release, write_release
from .resolution import Resolution, checked_resolution, resolution_for, resolution_in_words, rounded, steps_of
from .row_files import released_name
from .stacking import at_output, known_output, present_outputs, rows_about, stacked_outputs
from .stored_inputs import StoredColumn
from .tables import CSV, PARQUET, write_table
from .tolerance import Tolerance

#: What the noise of a release with a known seed depends on, besides the seed.
UNSAFE_MESSAGE = b"sfumato unsafe release 1"

__all__ = ["Prediction", "Release", "load", "make_release"]


@dataclass(frozen=True, eq=False)
class Release:
    """Published outputs ``W = y + Z`` and everything a reader needs to use them.

    ``outputs`` are multiples of ``resolution`` (of several outputs, each has its own); ``unsafe`` says that the noise
    came from a known seed, so that anyone can take it off.

    Guarantee: a release holds nothing that is not meant for readers. Neither y nor Z nor the key is a part of it, nor
    the row labels of X, which may be names.
    """

    design: Design
    certificate: Certificate
    outputs: Array
    resolution: Resolution
    unsafe: bool = False
    output_name: str = "y"

    def __post_init__(self) -> None:
        outputs: Any = self.outputs
        if not isinstance(outputs, StoredColumn):  # those are checked whenever they are read
            outputs = as_outputs(outputs, len(self.design.inputs), "outputs")
        resolution = checked_resolution(self.resolution, self.design)
        _check_name(self.output_name)
        object.__setattr__(self, "outputs", outputs)
        object.__setattr__(self, "resolution", resolution)
        rows = self.design.inputs
        if rows.index is not None:
            unlabelled = Inputs(rows.values, rows.columns, rows.outputs)
            object.__setattr__(self, "design", replace(self.design, inputs=unlabelled))

    @property
    def inputs(self) -> Array:
        """X, one row for each output; with several outputs the last column is the number of the output."""
        return self.design.inputs.values

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the input columns (x0, x1, … where they were given none)."""
        return self.design.inputs.names

    @property
    def prior(self) -> Prior:
        """What readers are assumed to believe beforehand."""
        return self.design.prior

    @property
    def noise(self) -> Noise:
        """Σ, the covariance of the noise that was added, as in ``mechanism.noise``."""
        return self.design.noise

    @property
    def region(self) -> Region:
        """Where f is sensitive."""
        return self.design.region

    @property
    def tolerance(self) -> Tolerance:
        """How much may be learnt there."""
        return self.design.tolerance

    def predict(self, X_new: Any, output: str | None = None) -> Prediction:
        """What a reader concludes about f at ``X_new``: the exact posterior given the published outputs.

        Where several outputs are one process, ``output`` says which of them, released or not, is asked for; a quantity
        without inputs, such as an average, is asked for with ``X_new=None``.

        Where the noise is a function of the inputs (a compressed release), the exact standard deviation lies between
        ``std_lower`` and ``std`` of what comes back.
        """
        new = self._asked(X_new, output)
        if isinstance(self.noise, FunctionalNoise):
            return replace(self._compressed.predict(new), index=new.index)
        return predict_with(self._posterior, new, len(self.design.inputs))

    def _asked(self, X_new: Any, output: str | None) -> Inputs:
        rows = self.design.inputs
        if rows.outputs is not None:
            return at_output(X_new, rows, output, self._place)
        if output not in (None, self.output_name):
            raise InputError(
                f"output is {output!r}, but this release is about {self.output_name!r} alone; leave it out."
            )
        return as_inputs(X_new, "X_new", like=rows)

    def _place(self, number: int) -> Array | None:
        kernel = self.prior.kernel
        return kernel.place(number) if isinstance(kernel, OutputsKernel) and not kernel.takes_input(number) else None

    @functools.cached_property
    def _compressed(self) -> CompressedPosterior:
        assert isinstance(self.resolution, float)
        return CompressedPosterior.of(self.design, self.outputs, self.resolution, Here(), None, lambda rows: None)

    @functools.cached_property
    def _posterior(self) -> Posterior:
        return self.prior.condition(self.design.inputs, self.outputs, self._blur())

    def _blur(self) -> Array:
        """The covariance of the outputs about f at their inputs: V, the noise that was added, and the rounding."""
        rows = len(self.design.inputs)
        blur = self.noise.covariance()
        # Rounding adds an error of variance resolution²/12: honest in error bars, never counted in the certificate.
        blur[np.diag_indices(rows)] += self.prior.noise_variance(rows) + self.steps**2 / 12
        return blur

    @property
    def steps(self) -> Array:
        """The resolution of each row."""
        return steps_of(self.resolution, self.design)

    def certify(self, *, engine: Any = None, device: str | None = None, progress: bool = True) -> Certificate:
        """The certificate, computed again from the public design alone; it trusts no claim of the owner.

        A compressed release takes one pass over its rows, which ``engine`` (a Dask client) and ``device`` can do.
        """
        with show_progress(progress) as step:
            step.stage("checking the promise")
            return certify(self.design, as_engine(engine), device, step.counter(len(self.design.inputs)))

    def to_frame(self, index: Any = None) -> pd.DataFrame:
        """Inputs and published outputs as one table.

        A release does not hold the row labels of the table that was protected; ``index=X.index`` puts them back.
        """
        frame = pd.DataFrame(self.inputs.copy(), columns=list(self.columns))
        outputs = self.design.inputs.outputs
        if outputs is not None:
            frame[self.columns[-1]] = [outputs[int(number)] for number in self.inputs[:, -1]]
        frame[released_name(self.output_name, self.columns)] = np.asarray(self.outputs)
        if index is None:
            return frame
        if len(index) != len(frame):
            raise InputError(f"index has {len(index)} labels, but the release has {len(frame)} rows; give one a row.")
        return frame.set_axis(pd.Index(index), axis=0)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write ``to_frame()`` as CSV; numbers keep all their digits, an interrupted write keeps the old file."""
        self._write_table(path, CSV)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write ``to_frame()`` as Parquet; an interrupted write keeps the old file."""
        self._write_table(path, PARQUET)

    def _write_table(self, path: str | os.PathLike[str], endings: tuple[str, ...]) -> None:
        target = Path(path)
        if target.suffix.lower() not in endings:
            raise InputError(f"path is {str(target)!r}; give a name that ends in {' or '.join(endings)}.")
        try:
            write_table(self.to_frame(), target)
        except OSError as error:
            raise InputError(f"path is {str(target)!r}, which cannot be written: {error.strerror or error}.") from error

    def to_gpytorch(self) -> Any:
        """What a reader knows as a ``gpytorch.models.ExactGP`` that BoTorch can optimise with (``posterior``).

        It predicts what ``predict`` does, in the units of the release, with gradients. Its likelihood holds the whole
        noise covariance of the published rows; a new measurement has the noise V. Its parameters are fixed.
        """
        if isinstance(self.noise, FunctionalNoise):
            raise InputError(
                f"this release is compressed: a GPyTorch model of its {len(self.design.inputs)} rows would need their "
                "whole noise matrix; use release.predict instead."
            )
        if self.design.inputs.outputs is not None:
            raise InputError(
                "this release has several outputs that know of each other, and a GPyTorch model of one of them would "
                "forget what the others tell; use release.predict(X, output=...) instead."
            )
        from .gpytorch_reader import ReleasedGP  # BoTorch takes seconds to import

        return ReleasedGP(self.prior, self.inputs, np.asarray(self.outputs), self._blur())

    def to_sklearn(self) -> Any:
        """A plain fitted scikit-learn ``GaussianProcessRegressor`` that predicts what ``predict`` does.

        It knows the correlations of the noise from this release alone, so do not fit it again. Compressed releases,
        several outputs and kernels that scikit-learn lacks are refused.
        """
        if isinstance(self.noise, FunctionalNoise):
            raise InputError("this release is compressed, which scikit-learn cannot hold; use release.predict instead.")
        if self.design.inputs.outputs is not None:
            raise InputError("this release has several outputs, which scikit-learn lacks; use release.predict instead.")
        from .sklearn_reader import as_regressor  # scikit-learn takes a second to import

        return as_regressor(self._posterior)

    def rows_of(self, output: str) -> tuple[Array, Array]:
        """The inputs and the published values of one of several outputs."""
        rows = self.design.inputs
        if rows.outputs is None:
            known_output((self.output_name,), output)
            return rows.values, np.asarray(self.outputs)
        own = rows_about(rows, output)
        return rows.values[own, :-1], np.asarray(self.outputs)[own]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one file that readers can open without running any code; an interrupted write keeps the old file."""
        parts = (self.design, self.certificate, self.outputs, self.resolution, self.unsafe, self.output_name)
        write_release(Contents(*parts), path)

    def __getstate__(self) -> dict[str, Any]:
        # The posterior is a cache with closures in it; it is made again where it is needed.
        return {name: value for name, value in self.__dict__.items() if name not in ("_posterior", "_compressed")}

    def __repr__(self) -> str:
        state = "holds" if self.certificate.holds else "FAILS"
        marks = ", unsafe seed" if self.unsafe else ""
        return (
            f"<Release of {self.output_name!r}: {self.outputs.shape[0]} rows, "
            f"inputs {', '.join(map(repr, self.columns))}, certificate {state}{marks}>"
        )

    def __str__(self) -> str:
        rows = self.outputs.shape[0]
        lines = [
            f"Release of {self.output_name!r} at {rows} rows of {', '.join(map(repr, self.columns))}",
            f"  promise      {self.tolerance.in_words(self.design.inputs.outputs)}",
            f"  certificate  {'holds, as claimed by the owner' if self.certificate.holds else 'DOES NOT HOLD'}",
            f"  noise        {self.noise.rank} sources, {noise_in_words(self.design)} root mean square a row",
            f"  resolution   {resolution_in_words(self.resolution, self.design)}",
        ]
        if self.unsafe:
            lines.append("  UNSAFE       the noise came from a known seed: for experiments, it protects no one")
        return "\n".join(lines)


def load(path: str | os.PathLike[str]) -> Release:
    """Open a release file. Guarantee: nothing in the file is run; a bad file raises ``FormatError``."""
    contents = read_release(path)
    try:
        return Release(*contents)
    except InputError as error:
        raise FormatError(f"the file's outputs are not those of a release: {error}") from error


def make_release(
    design: Design,
    certificate: Certificate,
    key: SecretKey,
    y: Any,
    *,
    output_name: str = "y",
    resolution: Any = None,
    unsafe_seed: int | None = None,
    device: str = "cpu",
) -> Release:
    """Blur ``y`` and give back what may be published.

    Guarantee: nothing comes back under a failed certificate. With one key, the same design and the same y always
    get the same noise, whatever the output is called and however it is rounded, so that asking again can never be
    averaged; another y gets unrelated noise. With ``unsafe_seed`` the noise depends on the seed alone and the
    release is marked.
    """
    if not certificate.holds:
        raise GuaranteeError(why_not(certificate))
    values = _values(design, y)
    _check_name(output_name)
    step = resolution_for(design, resolution)
    if unsafe_seed is None:
        message = release_digest(design, values)
    else:
        key, message = SecretKey.from_unsafe_seed(unsafe_seed), UNSAFE_MESSAGE
    normals, noise = key.normals(message, design.noise.normals_needed), design.noise
    drawn = noise.draw(normals, device) if isinstance(noise, FunctionalNoise) else noise.draw(normals)
    return Release(
        design, certificate, rounded(values + drawn, step, design), step, unsafe_seed is not None, output_name
    )


def release_digest(design: Design, y: Any) -> bytes:
    """What the noise of a release depends on, besides the key: the design and the values."""
    values = _values(design, y)
    return hashlib.sha256(b"sfumato release 1\x00" + design.digest() + values.astype("<f8").tobytes()).digest()


def _values(design: Design, y: Any) -> Array:
    # + 0.0 turns −0 into 0: equal data must get equal noise.
    return np.asarray(stacked_outputs(design.inputs, y) + 0.0)


def noise_in_words(design: Design) -> str:
    """The root mean square noise a row, of each output by itself."""
    rows, outputs = design.inputs, design.inputs.outputs
    if outputs is None:
        return f"{np.sqrt(design.noise.trace / len(rows)):.4g}"
    variance = design.noise.variance()
    each = [(name, np.sqrt(np.mean(variance[rows_about(rows, name)]))) for name in present_outputs(rows)]
    return ", ".join(f"{size:.4g} ({name})" for name, size in each)


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        raise InputError(f"output_name is {str(name)[:80]!r}; give a name of 1 to {LONGEST_NAME} characters.")


def why_not(certificate: Certificate) -> str:
    place = place_in_words(certificate.columns, certificate.worst_input, certificate.outputs)
    return (
        f"nothing was released: the certificate does not hold (joint ratio {certificate.joint_ratio:.6g}, at most 1 is "
        f"allowed; floor ratio {certificate.promised_ratio:.6g} where it was promised, at least 1 is needed). The "
        f"worst input is {place}, where readers would reach ± {certificate.worst_std:.6g} and the floor is "
        f'{certificate.worst_floor:.6g}. Protect again with another cover ("greedy" or "exchange"), with '
        'method="eigh", or with a smaller alpha (a larger floor).'
    )
