"""Kills: of a process that releases with a ledger, of one that streams a release to a folder, of one that saves.

Nothing that was acknowledged is lost, nothing is free, nothing is torn in view, and no row gets two noises.
"""

from __future__ import annotations

import importlib.util
import os
import re
import secrets
import shutil
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import gpytorch
import numpy as np
import scipy.linalg

import sfumato as sf
from sfumato.errors import SfumatoError
from sfumato.files import TEMPORARY_NAME
from sfumato.release.file import MANIFEST, ROW_FOLDER
from sfumato.release.folder import KEY, RUN
from sfumato.release.release import digest_outputs

from .deaths import Death, Life, drawn_death, lived
from .outcome import Outcome

KIND = "kills"
#: Standard deviations are promised to within 1e-9; what a dense answer in float64 may be wrong by.
ROUNDING = 1e-7
#: How many different problems there are of each kind; each is designed once in a process.
LEDGERS = 6


def trial(random: np.random.Generator, folder: Path) -> Outcome:
    """Kill once or a few times, and look at what is there afterwards."""
    turn = random.uniform()
    try:
        if turn < 0.5:
            return releasing(random, folder)
        if turn < 0.75:
            return saving(random, folder)
        if importlib.util.find_spec("pyarrow") is None:
            return Outcome(KIND, {"left out: folders, which need pyarrow": 1})
        return streaming(random, folder)
    except SfumatoError as error:  # nothing that a kill leaves may be refused afterwards
        return Outcome(KIND, {}, f"after a kill: {type(error).__name__}: {error}")


def _outcome(what: str, lives: list[tuple[Death, Life]], broken: str | None, **counts: int) -> Outcome:
    killed = [death for death, life in lives if life.killed]
    counted: dict[str, int] = {"kills": len(killed)} | {f"{name} of {what}": count for name, count in counts.items()}
    for death in killed:
        counted[f"kills of {what} {death.how}"] = counted.get(f"kills of {what} {death.how}", 0) + 1
    failed = [life.failed for _, life in lives if life.failed and not life.failed.startswith("KeyboardInterrupt")]
    if broken is None and failed:
        broken = f"a child that was not killed failed: {failed[0]}"
    case = {"what": what, "lives": [[death.how, death.at, *life.said] for death, life in lives]}
    return Outcome(KIND, counted, broken, case)


# ---------------------------------------------------------------- ledgers


@dataclass(frozen=True)
class LedgerProblem:
    """A ledger with some releases in ``base``, and a mechanism that was designed with it at ``path``."""

    kernel: gpytorch.kernels.Kernel
    noise: float
    X: np.ndarray
    options: dict[str, Any]
    path: Path
    base: bytes
    before: tuple[sf.Release, ...]
    mechanism: sf.Mechanism
    line: int

    @property
    def y(self) -> np.ndarray:
        return np.sin(2.0 * self.X) + 0.1 * np.cos(9.0 * self.X)

    def protect(self, ledger: sf.Ledger) -> sf.Mechanism:
        prior = sf.Prior(self.kernel, noise=self.noise)
        return ledger.protect(prior, self.X, sf.Box(1.0, 2.0), progress=False, **self.options)

    def worst(self, noises: list[np.ndarray]) -> float:
        """The least std(f(s)|W₁, W₂, …)/floor over the region, and of the records in it: all noises on the same y."""
        points = np.linspace(1.0, 2.0, 101)
        inside = np.flatnonzero((self.X >= 1.0) & (self.X <= 2.0)) if self.options["protects"] == "both" else []
        K = self._covariance
        data = K(self.X, self.X) + self.noise * np.eye(len(self.X))
        z = np.concatenate([points, self.X[inside]])
        cross, own = K(self.X, z), np.zeros(len(z))
        cross[inside, len(points) + np.arange(len(inside))] += self.noise
        own[len(points) :] = self.noise
        variance = np.diag(K(z, z)) + own
        if not noises:
            return np.inf
        seen = np.kron(np.ones((len(noises),) * 2), data) + scipy.linalg.block_diag(*noises)
        values, vectors = np.linalg.eigh(seen)
        # what is left out is the difference of two releases where neither has noise: it tells nothing
        kept = values > 1e-10 * values[-1]
        told = (vectors[:, kept] / np.sqrt(values[kept])).T @ np.tile(cross, (len(noises), 1))
        left = variance - np.einsum("ij,ij->j", told, told)
        return float(np.sqrt(np.min(left / variance) / (1.0 - self.options["alpha"])))

    def _covariance(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        distance = np.abs(a[:, None] - b[None]) / self.kernel.lengthscale.item()
        if isinstance(self.kernel, gpytorch.kernels.RBFKernel):
            return np.asarray(np.exp(-0.5 * distance**2))
        root = np.sqrt(5.0) * distance
        return np.asarray((1.0 + root + root**2 / 3.0) * np.exp(-root))


@cache
def _scratch() -> Path:
    """A folder of this process, for what its problems share."""
    return Path(tempfile.mkdtemp(prefix="sfumato-kills-"))


@cache
def _ledger_problem(number: int) -> LedgerProblem:
    random = np.random.default_rng(number)
    kernel = gpytorch.kernels.RBFKernel() if number % 2 else gpytorch.kernels.MaternKernel(nu=2.5)
    kernel.double().lengthscale = float(random.uniform(0.3, 0.6))
    how = {"alpha": float(random.uniform(0.2, 0.6)), "share": float(random.uniform(0.2, 0.5))}
    options = how | {"protects": ["both", "function"][number // 2 % 2]}
    X = np.sort(random.uniform(0.0, 3.0, int(random.integers(6, 10))))
    path = _scratch() / f"{number}.ledger"
    plain = LedgerProblem(kernel, float(random.uniform(0.02, 0.1)), X, options, path, b"", (), None, 0)  # type: ignore[arg-type]
    before = tuple(plain.protect(sf.Ledger(path)).release(plain.y) for _ in range(number % 3))
    base = path.read_bytes() if before else b""
    mechanism = plain.protect(sf.Ledger(path))
    # how long its line is: made once, in a child, so that the mechanism here has not released yet
    lived(lambda say: mechanism.release(plain.y) and None, Death("not", 0))
    line = path.stat().st_size - len(base)
    return LedgerProblem(kernel, plain.noise, X, options, path, base, before, mechanism, line)


def releasing(random: np.random.Generator, folder: Path) -> Outcome:
    """Kill who releases with a ledger."""
    problem = _ledger_problem(int(random.integers(LEDGERS)))
    problem.path.write_bytes(problem.base)
    if not problem.base:
        problem.path.unlink()
    rounds = int(random.choice([1, 1, 1, 2]))

    def publish(say: Callable[[str], None]) -> None:
        """Release as programs do: the release comes back, is written to a file, and the world is told."""
        for number in range(rounds):
            mechanism = problem.mechanism if number == 0 else problem.protect(sf.Ledger(problem.path))
            release = mechanism.release(problem.y)
            say(digest_outputs(release.outputs))
            release.save(folder / f"{os.getpid()}-{number}.sfumato")

    lives, broken, used_up, torn = [], None, 0, 0
    for left in reversed(range(int(random.choice([1, 1, 2, 3])) + 1)):
        size = problem.path.stat().st_size if problem.path.exists() else 0
        sizes = (size, size + problem.line + 2)
        death = drawn_death(random, sizes, flushes=8 * rounds, calls=40 * rounds, seconds=0.05 * rounds)
        # the last one lives
        death = death if left else Death("not", 0)
        lives.append((death, lived(publish, death)))
        if lives[-1][1].failed is not None and lives[-1][1].failed.startswith("BudgetError"):
            # what was killed before it could be published counts all the same
            lives[-1] = death, Life(False, lives[-1][1].said, None)
            used_up += 1
        torn += sf.Ledger(problem.path).torn
        broken = broken or _what_ledger_lost(problem, [life for _, life in lives], folder)
    if broken is None and random.uniform() < 0.3:
        broken = _goes_on(problem, folder)
    if broken is not None and problem.path.exists():
        shutil.copy(problem.path, folder / "ledger")
    return _outcome("ledgers", lives, broken, torn=torn, used_up=used_up)


def _published(problem: LedgerProblem, folder: Path) -> list[sf.Release]:
    """All that anybody can see: what was released before, and files that were written. A torn one raises."""
    return [*problem.before, *(sf.load(path) for path in sorted(folder.glob("*.sfumato")))]


def _what_ledger_lost(problem: LedgerProblem, lives: list[Life], folder: Path) -> str | None:
    """What is wrong with the ledger after some deaths; None: nothing."""
    entries = sf.Ledger(problem.path).verify().entries
    counted = [entry.body["record"]["outputs_digest"] for entry in entries]
    published = _published(problem, folder)
    acknowledged = {digest for life in lives for digest in life.said}
    acknowledged |= {digest_outputs(release.outputs) for release in published}
    if missing := acknowledged - set(counted):
        return f"{len(missing)} of {len(acknowledged)} acknowledged releases are not in the ledger"
    if len(set(counted)) < len(counted):
        return "a release is in the ledger twice"
    return _exceeded(problem, published)


def _exceeded(problem: LedgerProblem, published: list[sf.Release]) -> str | None:
    noises = {digest_outputs(release.outputs): release.noise.covariance() for release in published}
    worst = problem.worst(list(noises.values()))
    return f"{len(noises)} published releases leave {worst:.9g} of the floor" if worst < 1.0 - ROUNDING else None


def _goes_on(problem: LedgerProblem, folder: Path) -> str | None:
    """The ledger is used on: what is published with it keeps the promise with all that is out."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ledger = sf.Ledger(problem.path)
        torn, count = ledger.torn, len(ledger)
        try:
            release = problem.protect(ledger).release(problem.y)
        except sf.BudgetError:
            return None
    if torn and not any("torn" in str(one.message).casefold() for one in told):
        return "a write was torn, and ledger.protect does not tell"
    ledger.verify()
    if len(ledger) != count + 1:
        return f"the ledger has {len(ledger)} entries after one more than {count}"
    return _exceeded(problem, [*_published(problem, folder), release])


# ---------------------------------------------------------------- saving


def saving(random: np.random.Generator, folder: Path) -> Outcome:
    """Kill who writes a release to a file."""
    problem = _ledger_problem(int(random.integers(1, LEDGERS)))
    fresh = sf.protect(sf.Prior(problem.kernel, noise=problem.noise), problem.X, sf.Box(1.0, 2.0), alpha=0.5,
                       cover="rows", progress=False)  # fmt: skip
    old, new = fresh.release(problem.y), fresh.release(problem.y[::-1].copy())
    name, write = [("saved.sfumato", sf.Release.save), ("saved.csv", sf.Release.to_csv)][int(random.integers(2))]
    path = folder / name
    write(new, path)
    whole = path.read_bytes()
    there = bool(random.integers(2))
    path.unlink()
    if there:
        write(old, path)
    known = [path.read_bytes() if there else None, whole]

    def work(say: Callable[[str], None]) -> None:
        write(new, path)
        say("saved")

    lives, broken = [], None
    for _ in range(int(random.choice([1, 2, 3]))):
        death = drawn_death(random, (0, len(whole) + 1), flushes=3, calls=12, seconds=0.015)
        lives.append((death, lived(work, death)))
        found = path.read_bytes() if path.exists() else None
        known = [found, whole] if found in known else known
        if found not in known or (lives[-1][1].said and found != whole):
            broken = "what is in the place of the file is neither the old one nor the new one"
        left = [one for one in os.listdir(folder) if one not in (name, "stack.txt")]
        if not all(re.fullmatch(TEMPORARY_NAME, one) for one in left):
            broken = broken or f"a kill left {left}"
    if broken is None:
        write(new, path)
        broken = None if path.read_bytes() == whole else "the same release gives other bytes after a kill"
    return _outcome("files", lives, broken)


# ---------------------------------------------------------------- streaming


@dataclass(frozen=True)
class Stream:
    """Rows in a Parquet file, a mechanism for them, and the row files that each of two keys gives."""

    mechanism: sf.Mechanism
    rows: dict[bytes, dict[str, bytes]] = field(default_factory=dict)

    def write(self, folder: Path, key: bytes) -> None:
        """As programs do, but with a ``key`` that is known here: only keys have 32 bytes."""
        real = secrets.token_bytes
        secrets.token_bytes = lambda size=None: key if size == 32 else real(size)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.mechanism.release_to(folder, "y", progress=False)


#: Of an older release, and of one attempt after the other.
KEYS = tuple(bytes([number]) * 32 for number in range(5))
ROWS = 120


def row_files(folder: Path) -> dict[str, bytes]:
    """The row files in a folder, by their names; those under way have other names."""
    found = folder / ROW_FOLDER
    return {path.name: path.read_bytes() for path in sorted(found.glob("part-*.parquet"))} if found.is_dir() else {}


@cache
def _stream() -> Stream:
    import pyarrow as pa
    import pyarrow.parquet as pq

    random, place = np.random.default_rng(5), _scratch() / "rows.parquet"
    x = random.random((ROWS, 2))
    y = np.sin(4 * x[:, 0]) + np.cos(3 * x[:, 1]) + 0.1 * random.normal(size=len(x))
    pq.write_table(pa.table({"a": x[:, 0], "b": x[:, 1], "y": y}), place)
    kernel = gpytorch.kernels.RBFKernel().double()
    kernel.lengthscale = 0.6
    rows = sf.rows_of_parquet(place, ["a", "b"], "y", rows=12)
    prior, region = sf.Prior(kernel, noise=0.01), sf.Box([0.0, 0.0], [0.4, 0.4])
    stream = Stream(sf.protect(prior, rows, region, alpha=0.3, method="compressed", progress=False))
    for number, key in enumerate(KEYS):
        whole = _scratch() / f"whole-{number}"
        lived(lambda say, whole=whole, key=key: stream.write(whole, key), Death("not", 0))  # type: ignore[misc]
        stream.rows[key] = row_files(whole)
    return stream


def streaming(random: np.random.Generator, folder: Path) -> Outcome:
    """Kill who releases rows of Parquet files to a folder, part after part."""
    stream, out = _stream(), folder / "out"
    before = bool(random.integers(2))
    if before:
        lived(lambda say: stream.write(out, KEYS[0]), Death("not", 0))
    lives, broken, seen, complete = [], None, dict[str, bytes](), False
    attempts = int(random.choice([1, 2, 3]))
    for attempt in range(1, attempts + 1):
        if random.uniform() < 0.2:
            death = Death("by Ctrl-C", float(random.uniform(0.0, 0.4)))
        else:
            death = drawn_death(random, (0, 12_000), flushes=40, calls=150, seconds=0.4)
        lives.append((death, lived(lambda say, key=KEYS[attempt]: stream.write(out, key), death)))  # type: ignore[misc]
        broken = broken or _what_is_seen(out, stream, KEYS[0] if before else None, seen)
        # another run over a release that is complete, and of which nothing is left to be done, is another release
        complete = row_files(out) in [stream.rows[key] for key in KEYS[1:]] and not (out / RUN).exists()
        complete = complete and (out / MANIFEST).exists()
        if complete:
            break
    if not complete:
        lives.append((Death("not", 0), lived(lambda say: stream.write(out, KEYS[-1]), Death("not", 0))))
        broken = broken or _what_is_seen(out, stream, None, seen)
        if lives[-1][1].failed is None:
            broken = broken or _what_was_completed(out, stream)
    return _outcome("folders", lives, broken)


def _what_is_seen(out: Path, stream: Stream, older: bytes | None, seen: dict[str, bytes]) -> str | None:
    """What is wrong in a folder: rows with two noises (others were ``seen``, and are noted), or half a release."""
    if (out / RUN / KEY).exists() and (out / RUN / KEY).stat().st_mode & 0o077:
        return "the key of a run can be read by others"
    found = row_files(out)
    of_older = older is not None and stream.rows[older].items() >= found.items()
    for shown in (row_files(out / RUN), {} if of_older else found):
        if any(seen.get(name, data) != data for name, data in shown.items()):
            return "a row has had two noises on the disk"
        if shown and not any(stream.rows[key].items() >= shown.items() for key in KEYS[1:]):
            return "rows on the disk have the noise of no key"
        seen |= shown
    try:
        count = len(np.asarray(sf.load(out).outputs))
    except SfumatoError:
        return None
    return None if count == ROWS and found in stream.rows.values() else "readers see a release that is not whole"


def _what_was_completed(out: Path, stream: Stream) -> str | None:
    if (out / RUN).exists():
        return "a run that is complete has left its folder"
    if row_files(out) not in [stream.rows[key] for key in KEYS[1:]]:
        return "a release that was completed differs from any that was not interrupted"
    sf.load(out)
    return None
