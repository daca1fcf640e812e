"""A release: the owner's values with noise on them, rounded, and what a reader does with it.

``make_release`` is where y comes in, and nothing of it stays. ``Release`` is what comes out: a design with outputs, a
model that predicts from them, and a file that is safe to open.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from ..arrays import Array
from ..data import (
    CSV,
    PARQUET,
    Engine,
    Here,
    StoredColumn,
    as_engine,
    as_outputs,
    at_output,
    stacked_outputs,
    write_table,
)
from ..errors import FormatError, GuaranteeError, InputError
from ..models import OutputsKernel, Posterior
from ..noise import SecretKey, check_resolution
from ..progress import AskedProgress
from ..progress import progress as show_progress
from ..promise import Design, Finding, WithDesign, how_to_accept, worse_than_found
from ..proof import Certificate, Effort, certify
from ..text import shown, shown_lines
from .design_tree import LONGEST_NAME
from .file import Contents, read_release, released_name, write_release
from .predictions import CompressedPosterior, Prediction, predict_with
from .rounding import Resolution, check_values, resolution_for, rounded, steps_of
from .suppressed_functions import AreRounded, filled, shown_by
from .suppression import Shown, Suppression

#: What the noise of a release with a known seed depends on, besides the seed.
UNSAFE_MESSAGE = b"sfumato unsafe release 1"

_KNOWN_SEED = Finding(
    "unsafe-seed",
    "high",
    "The noise came from a known seed. Whoever guesses the seed takes all noise off and has the true values, to the "
    "last digit. Such a release is for experiments.",
    "Release again without unsafe_seed; do not publish this one.",
)


#: What is computed again from a release may differ by this much.
AGREES = 1e-6

#: Where rounding can hide more than this of a standard deviation, nobody sees whether something was left out.
MOST_UNSEEN = 0.25

_ASK = "Ask where it comes from; it was damaged or made by something else."


def _false_claims(claimed: Certificate, found: Certificate) -> Iterator[Finding]:
    """What a release says of itself and what is not ``found`` when it is computed again."""
    if claimed.holds and not found.holds:
        yield Finding(
            "claims-more-than-proved",
            "high",
            "The release says that its certificate holds; computed again from the same release it does not.",
            _ASK,
        )
    elif claimed.evidence == "proved" != found.evidence:
        yield Finding(
            "claims-a-proof",
            "medium",
            "The release says that its promise is proved; computed again from the same release it could not be.",
            _ASK,
        )
    if found.guarantee == "joint" and claimed.sensitive > found.sensitive:
        yield Finding(
            "claims-more-inputs",
            "high",
            f"The release says that its joint promise is about {claimed.sensitive} sensitive inputs; computed again "
            f"from the same release it is about {found.sensitive}.",
            _ASK,
        )
    of_less = claimed.protects != found.protects != "both"
    if of_less or (np.isfinite(claimed.insider_ratio) and np.isnan(found.insider_ratio)):
        yield Finding(
            "claims-another-promise",
            "high",
            "The release says that its certificate is about "
            f"{_promised(claimed)}; computed again from the same release it is about {_promised(found)}.",
            _ASK,
        )
    of_ledger = _is_of_ledger(claimed, found)
    if of_ledger and claimed.explained > found.explained + AGREES:
        yield Finding(
            "counts-other-releases",
            "note",
            f"The release says that {_explains(claimed)}, by all releases that were out with it. That cannot be "
            f"computed from one of them: from this one alone {_explains(found)}.",
        )
    elif not of_ledger and _claims_better_predictions(claimed, found):
        yield Finding(
            "claims-better-predictions",
            "medium",
            f"The release says of itself that {_explains(claimed)}; computed again from the same release, "
            f"{_explains(found)}.",
            _ASK,
        )


def _is_of_ledger(claimed: Certificate, found: Certificate) -> bool:
    """Whether a release says what readers of all releases of a ledger explain, a share, and nothing of the best."""
    both = claimed.objective == found.objective == "predictions"
    share = 0.0 <= claimed.explained <= 1.0 + AGREES or bool(np.isnan(claimed.explained) and np.isnan(found.explained))
    return both and share and bool(np.isnan(claimed.explained_upper) and np.isnan(claimed.gap))


def _claims_better_predictions(claimed: Certificate, found: Certificate) -> bool:
    """Whether readers explain less than they are told, or what they explain is not as near to the best."""
    if claimed.objective == "noise":
        return False
    if found.objective != claimed.objective:
        return True
    return not (
        claimed.explained <= found.explained + AGREES
        and claimed.explained_upper >= found.explained_upper - AGREES
        and claimed.gap >= found.gap - AGREES
    )


def _explains(one: Certificate) -> str:
    if one.objective == "noise":
        return "its noise was not made for predictions"
    share = f"readers explain {one.explained:.6g} of the variance at the inputs that it serves"
    best = f", of {one.explained_upper:.6g} that would be possible (gap {one.gap:.2g})"
    return share if np.isnan(one.explained_upper) else share + best


def _promised(one: Certificate) -> str:
    what = {"both": "f and records", "function": "f", "records": "records"}.get(one.protects, "something else")
    return what if np.isnan(one.insider_ratio) else f"{what}, to insiders too"


@contextlib.contextmanager
def _numbers_of_anyone() -> Iterator[None]:
    """Work with numbers that anyone may have written: NumPy does not warn of them, and what cannot be done is told.

    What overflows on the way is infinite or NaN, and nothing is proved with it.
    """
    try:
        with np.errstate(all="ignore"):
            yield
    except (ArithmeticError, np.linalg.LinAlgError) as error:
        raise FormatError(
            "the numbers of this release are too large, too small or too close together to be worked with "
            f"({error}). {_ASK}"
        ) from error


@dataclass(frozen=True, eq=False)
class Release(WithDesign):
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
        check_name(self.output_name)
        object.__setattr__(self, "outputs", outputs)
        object.__setattr__(self, "resolution", self._checked_resolution())
        rows = self.design.inputs.published_as(self.output_name)
        if rows is not self.design.inputs:
            object.__setattr__(self, "design", replace(self.design, inputs=rows))
        if self.unsafe:
            object.__setattr__(self, "certificate", self.certificate.with_findings(_KNOWN_SEED))

    def _checked_resolution(self) -> Resolution:
        steps: Any = self.resolution
        several, outputs = isinstance(steps, (tuple, list)), self.design.inputs.outputs
        if several and not (outputs.numbered and len(steps) == len(outputs)):
            raise InputError(f"resolution has {len(steps)} entries; give one number, or one for each output.")
        for step in steps if several else [steps]:
            check_resolution(step)
        return tuple(map(float, steps)) if several else float(steps)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the input columns (x0, x1, … where they were given none)."""
        return self.design.inputs.names

    @_numbers_of_anyone()
    def predict(self, X_new: Any, output: str | None = None) -> Prediction:
        """What a reader concludes about f at ``X_new``: the exact posterior given the published outputs.

        Where several outputs are one process, ``output`` says which of them, released or not, is asked for; a quantity
        without inputs, such as an average, is asked for with ``X_new=None``.

        Where the noise is a function of the inputs (a compressed release), the exact standard deviation lies between
        ``std_lower`` and ``std`` of what comes back.
        """
        kernel = self.prior.kernel

        def place(number: int) -> Array | None:
            without_inputs = isinstance(kernel, OutputsKernel) and not kernel.takes_input(number)
            return kernel.place(number) if without_inputs else None

        new = at_output(X_new, self.design.inputs, output, place)
        if self.noise.compressed:
            return replace(self._compressed.predict(new), index=new.index)
        return predict_with(self._posterior, new, len(self.design.inputs))

    @functools.cached_property
    def _compressed(self) -> CompressedPosterior:
        assert isinstance(self.resolution, float)
        return CompressedPosterior.of(self.design, self.outputs, self.resolution, Here(), None, lambda rows: None)

    @functools.cached_property
    def _posterior(self) -> Posterior:
        self.prior.require_condition(self.design.inputs)
        return self.prior.condition(self.design.inputs, self.outputs, self._blur(), self.noise.suppressed)

    def _blur(self) -> Array:
        """The covariance of the outputs about f: V, the noise and the rounding; not what is suppressed."""
        rows = len(self.design.inputs)
        blur = self.noise.drawn_covariance()
        # Rounding adds an error of variance resolution²/12: honest in error bars, never counted in the certificate.
        blur[np.diag_indices(rows)] += self.prior.noise_variance(rows) + self.steps**2 / 12
        return blur

    @property
    def steps(self) -> Array:
        """The resolution of each row."""
        return steps_of(self.resolution, self.design)

    def certify(self, *, engine: Any = None, device: str | None = None, progress: AskedProgress = True) -> Certificate:
        """The certificate, computed again from the public design alone; it trusts no claim of the owner.

        Only bad news is taken over: findings that the owner admits to and that the design does not show; and which
        findings the owner accepted, which is for the owner to say. The outputs are looked at for one thing: that they
        show nothing of what the design suppresses. A compressed release takes passes over its rows, which ``engine``
        (a Dask client) and ``device`` can do.
        """
        claimed = self.certificate
        with show_progress(progress) as step, _numbers_of_anyone():
            step.stage("checking the promise")
            # what took long to be proved may take long to be proved again
            effort = Effort(claimed.evidence == "proved", done=step.update)
            done = step.counter(len(self.design.inputs))
            work = as_engine(engine, device)
            found = certify(self.design, work, device, done, effort)
            if _is_of_ledger(claimed, found):
                # what is the best beside the other releases cannot be told from this one
                own = tuple(one for one in found.findings if one.code != "predictions-below-best")
                found = replace(found, explained_upper=np.nan, gap=np.nan, findings=own)
            # that its owner had not proved it is no news where it is proved now
            admitted = [one for one in claimed.findings if one.code != "searched" or found.evidence != "proved"]
            return found.with_findings(
                *_false_claims(claimed, found),
                *self._shown(work, device),
                *worse_than_found(admitted, found.findings),
            ).accepting(claimed.accepted)

    @property
    def shown_of_suppressed(self) -> float:
        """How much the outputs tell of combinations that the design says are not published, in standard deviations."""
        return self._shown_of_suppressed(Here(), None).deviations

    def _shown_of_suppressed(self, engine: Engine, device: str | None) -> Shown:
        if not self.noise.suppressed_count:
            return Shown(0.0, 0.0)
        outputs = cast(Any, self.outputs)
        if isinstance(outputs, StoredColumn):
            step = float(np.max(self.resolution))
            are = engine.each(AreRounded(outputs.name, step), outputs.parts, lambda rows: None)
            return shown_by(self.design, outputs, step if all(are) else 0.0, engine, device or "cpu")
        # rounding excuses those values only that are rounded
        steps = np.where(rounded(outputs, self.resolution, self.design) == outputs, self.steps, 0.0)
        if self.noise.compressed:
            return shown_by(self.design, outputs, float(np.min(steps)), engine, device or "cpu")
        return Suppression.of(self.design).shown(outputs, steps)

    def _shown(self, engine: Engine, device: str | None) -> Iterator[Finding]:
        """A finding where the outputs tell of combinations that the design says are not published, or might."""
        shown, words = self._shown_of_suppressed(engine, device), " ".join(suppressed_in_words(self.design))
        if shown.deviations != 0.0:
            yield Finding(
                "shows-what-is-suppressed",
                "high",
                f"The release says that {words}. Its values show some of them all the same: they are "
                f"{shown.deviations:.3g} standard deviations from what the other combinations predict, which should "
                "stand in their place.",
                _ASK,
            )
        elif not shown.unseen <= MOST_UNSEEN:
            yield Finding(
                "suppressed-not-seen",
                "low",
                f"Do you trust who made this? The release says that {words}. Its values are rounded so much that what "
                "they show of these, if anything, is taken for rounding: up to "
                f"{shown.unseen:.2g} standard deviations of what readers should not know.",
                "Ask for a release with a finer resolution, if that matters.",
            )

    def to_frame(self, index: Any = None) -> pd.DataFrame:
        """Inputs and published outputs as one table, with a column for each output.

        Outputs that were released at other inputs have rows of their own. A release does not hold the row labels of
        the table that was protected; ``index=X.index`` puts them back.
        """
        rows = self.design.inputs
        names, whole = list(rows.sources), rows.frame()
        frame: pd.DataFrame | None = None
        for name in rows.present if rows.outputs.numbered else [self.output_name]:
            own = rows.rows_about(name) if rows.outputs.numbered else slice(None)
            one = whole.iloc[own].reset_index(drop=True)
            one[released_name(name, names)] = np.asarray(self.outputs)[own]
            frame = one if frame is None else _joined(frame, one, names)
        assert frame is not None
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
        write_table(self.to_frame(), target)

    def to_gpytorch(self) -> Any:
        """What a reader knows as a ``gpytorch.models.ExactGP``; with BoTorch installed also a model for it.

        It predicts what ``predict`` does, in the units of the release, with gradients. Its likelihood holds the whole
        noise covariance of the published rows; a new measurement has the noise V. Its parameters are fixed.
        """
        if self.noise.compressed:
            raise InputError(
                f"this release is compressed: a GPyTorch model of its {len(self.design.inputs)} rows would need their "
                "whole noise matrix; use release.predict instead."
            )
        if self.design.inputs.outputs.numbered:
            raise InputError(
                "this release has several outputs that are related, and a GPyTorch model of one of them would "
                "forget what the others tell; use release.predict(X, output=...) instead."
            )
        self.prior.require_condition(self.design.inputs, "GPyTorch")
        return self.prior.to_gpytorch(self.inputs, np.asarray(self.outputs), self._blur(), self.noise.suppressed)

    def to_sklearn(self) -> Any:
        """A plain fitted scikit-learn ``GaussianProcessRegressor`` that predicts what ``predict`` does.

        It knows the correlations of the noise from this release alone, so do not fit it again. Compressed releases,
        several outputs and kernels that scikit-learn lacks are refused.
        """
        if self.noise.compressed:
            raise InputError("this release is compressed, which scikit-learn cannot hold; use release.predict instead.")
        if self.design.inputs.outputs.numbered:
            raise InputError("this release has several outputs, which scikit-learn lacks; use release.predict instead.")
        self.prior.require_condition(self.design.inputs, "scikit-learn")
        return self._posterior.to_sklearn()

    def rows_of(self, output: str) -> tuple[Array, Array]:
        """The inputs and the published values of one output."""
        rows = self.design.inputs
        own = rows.rows_about(output)
        return rows.outputs.plain(rows.values)[own], np.asarray(self.outputs)[own]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one file that readers can open without running any code; an interrupted write keeps the old file."""
        write_release(Contents(*(getattr(self, part) for part in Contents._fields)), path)

    def __getstate__(self) -> dict[str, Any]:
        # The posterior is a cache with closures in it; it is made again where it is needed.
        return {name: value for name, value in self.__dict__.items() if name not in ("_posterior", "_compressed")}

    @property
    def _inputs_in_words(self) -> str:
        rows = self.design.inputs
        return ", ".join(map(repr, rows.names if rows.encoding is None else rows.sources))

    def __repr__(self) -> str:
        state = f"holds, {self.certificate.evidence}" if self.certificate.holds else "FAILS"
        marks = ", unsafe seed" if self.unsafe else ""
        return shown(
            f"<Release of {self.output_name!r}: {len(self.outputs)} rows, "
            f"inputs {self._inputs_in_words}, certificate {state}{marks}>"
        )

    def _repr_html_(self) -> str:
        claim = f"{self!r}, as claimed by its owner: certify() computes it again"
        return self.certificate.as_html(claim)

    def __str__(self) -> str:
        steps, names = self.resolution, self.design.inputs.outputs
        finest = f"{steps:g}" if isinstance(steps, float) else ", ".join(map("{:g} ({})".format, steps, names))
        claim = f"holds and is {self.certificate.evidence}, as claimed by the owner"
        lines = [
            f"Release of {self.output_name!r} at {len(self.outputs)} rows of {self._inputs_in_words}",
            f"  promise      {self.tolerance.in_words(names.names)}",
            f"  certificate  {claim if self.certificate.holds else 'DOES NOT HOLD'}",
            f"  noise        {self.noise.rank} sources, {noise_in_words(self.design)} root mean square a row",
            *(f"  suppressed   {words}" for words in suppressed_in_words(self.design)),
            f"  resolution   {finest}",
        ]
        if self.unsafe:
            lines.append("  UNSAFE       the noise came from a known seed: for experiments, it protects no one")
        return shown_lines(lines)


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

    Guarantee: nothing comes back under a certificate that fails, or that says "do not publish" (experiments with
    ``unsafe_seed`` are never to be published, and are marked). With one key, the same design and the same y always
    get the same noise, whatever the output is called and however it is rounded, so that asking again can never be
    averaged; another y gets unrelated noise. Of combinations of the rows that the design suppresses nothing comes back:
    in their place is what the others predict, and rounding comes after that. Values that the prior cannot believe, or
    that are so large that rounding would swallow the noise, are an ``InputError``. With ``unsafe_seed`` the noise
    depends on the seed alone and the release is marked.
    """
    if not certificate.holds or (certificate.verdict == "do not publish" and unsafe_seed is None):
        raise GuaranteeError(why_not(certificate))
    values = _values(design, y)
    check_name(output_name)
    step = resolution_for(design, resolution)
    check_values(design, values, step)
    if unsafe_seed is None:
        message = release_digest(design, values)
    else:
        key, message = SecretKey.from_unsafe_seed(unsafe_seed), UNSAFE_MESSAGE
    blurred = values + design.noise.draw(key.normals(message, design.noise.normals_needed), device)
    outputs = rounded(filled_in(design, blurred, device), step, design)
    return Release(design, certificate, outputs, step, unsafe_seed is not None, output_name)


def filled_in(design: Design, blurred: Array, device: str = "cpu") -> Array:
    """``blurred`` values y + Z, with what the others predict in place of what the design suppresses."""
    if not design.noise.suppressed_count:
        return blurred
    return filled(design, blurred, device) if design.noise.compressed else Suppression.of(design).fill(blurred)


def release_digest(design: Design, y: Any) -> bytes:
    """What the noise of a release depends on, besides the key: the design and the values."""
    values = _values(design, y)
    return hashlib.sha256(b"sfumato release 1\x00" + design.digest() + values.astype("<f8").tobytes()).digest()


def _values(design: Design, y: Any) -> Array:
    # + 0.0 turns −0 into 0: equal data must get equal noise.
    return np.asarray(stacked_outputs(design.inputs, y) + 0.0)


def why_not(certificate: Certificate) -> str:
    """Why nothing is released under this certificate, and what to do."""
    if certificate.holds:
        return refusal(one for one in certificate.findings if one.stops)
    return (
        f"nothing was released: the certificate does not hold (joint ratio {certificate.joint_ratio:.6g}, at most 1 is "
        f"allowed; floor ratio {certificate.promised_ratio:.6g} where it was promised, at least 1 is needed). The "
        f"worst input is {certificate.worst_place}, where readers would reach ± {certificate.worst_std:.6g} and the "
        f'floor is {certificate.worst_floor:.6g}. Protect again with another cover ("greedy" or "exchange"), with '
        'method="eigh", or with a smaller alpha (a larger floor).'
    )


def refusal(stopping: Iterable[Finding]) -> str:
    """That nothing is released because of these findings, with a way out where there is one."""
    found = tuple(stopping)
    return f"nothing was released. {' '.join(map(str, found))} {how_to_accept(found)}"


def load(path: str | os.PathLike[str]) -> Release:
    """Open a release file. Guarantee: nothing in the file is run; a bad file raises ``FormatError``."""
    contents = read_release(path)
    try:
        return Release(*contents)
    except InputError as error:
        raise FormatError(f"the file's outputs are not those of a release: {error}") from error


def noise_in_words(design: Design) -> str:
    """The root mean square noise a row, of each output by itself."""
    rows = design.inputs
    if not rows.outputs.numbered:
        return f"{design.noise.rms:.4g}"
    variance = design.noise.variance()
    each = [(name, np.sqrt(np.mean(variance[rows.rows_about(name)]))) for name in rows.present]
    return ", ".join(f"{size:.4g} ({name})" for name, size in each)


def suppressed_in_words(design: Design) -> tuple[str, ...]:
    """How many combinations of the rows are not published; nothing where all are.

    >>> import gpytorch, numpy as np, sfumato as sf
    >>> prior = sf.Prior(gpytorch.kernels.RBFKernel(), noise=0.01)
    >>> suppressed_in_words(sf.protect(prior, np.linspace(0, 3, 16), sf.Box(1, 2), alpha=0.3).design)
    ()
    """
    count = design.noise.suppressed_count
    are = "combination of the rows is" if count == 1 else "combinations of the rows are"
    return (f"{count} {are} not published",) if count else ()


def check_name(name: Any) -> None:
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        raise InputError(f"output_name is {str(name)[:80]!r}; give a name of 1 to {LONGEST_NAME} characters.")


def digest_outputs(outputs: Array) -> str:
    """The digest of published outputs, by which a record is found again."""
    values = np.ascontiguousarray(outputs, dtype="<f8") + 0.0  # −0 and 0 are the same output
    return hashlib.sha256(b"sfumato outputs 1\x00" + values.tobytes()).hexdigest()


def _joined(frame: pd.DataFrame, other: pd.DataFrame, inputs: list[str]) -> pd.DataFrame:
    """Two tables as one with the columns of both; the first row at an input goes with the first there, and so on."""
    if frame[inputs].equals(other[inputs]):
        return frame.join(other.drop(columns=inputs))
    turn = "turn" + "_" * max(len(str(name)) for name in (*frame, *other))  # no column has that name
    left, right = (one.assign(**{turn: one.groupby(inputs).cumcount()}) for one in (frame, other))
    return left.merge(right, on=[*inputs, turn], how="outer", sort=False).drop(columns=turn)
