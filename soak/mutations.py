"""Mutated files: whatever is in them, they are refused with a sentence, or what their certificate says is true.

Bytes are flipped, moved and cut; manifests and arrays are edited, and the digest is made anew, as a clever forger
would; so are the lines of ledgers, and the row files of releases in folders.
"""

from __future__ import annotations

import copy
import hashlib
import importlib.util
import json
import random as plain_random
import resource
import shutil
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import sfumato as sf
from sfumato.errors import FitWarning, GuaranteeWarning, InputError, SfumatoError
from sfumato.ledger.chained_file import ROOT, _hash, _text

from . import stock
from .damaged_trees import damaged, every_place
from .outcome import Outcome
from .truth import UndecidedError, falsehood

KIND = "mutations"
#: So many mutations of one file are a trial.
BATCH = 10
#: A file of some kilobytes may take so much memory and time.
MOST_BYTES, MOST_SECONDS = 1 << 30, 20.0

Parts = tuple[str, dict[str, Any], dict[str, np.ndarray]]


def trial(random: np.random.Generator, folder: Path) -> Outcome:
    """Mutate one file several times."""
    turn = random.uniform()
    if turn < 0.06:
        return _several_times(random, folder, _ledger)
    if turn < 0.1:
        if importlib.util.find_spec("pyarrow") is None:
            return Outcome(KIND, {"left out: folders, which need pyarrow": 1})
        return _several_times(random, folder, _folder)
    return _several_times(random, folder, _file)


def _several_times(
    random: np.random.Generator, folder: Path, make: Callable[[np.random.Generator, Path], tuple[str, Any]]
) -> Outcome:
    counts: Counter[str] = Counter()
    for _ in range(BATCH):
        told, use = make(random, folder)
        counts["mutations"] += 1
        came, broken, case = _used(use)
        counts[came] += 1
        if broken is not None:
            return Outcome(KIND, dict(counts), broken, case | {"mutation": told})
    return Outcome(KIND, dict(counts))


def _peak() -> int:
    """The most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _used(use: Callable[[], str]) -> tuple[str, str | None, dict[str, Any]]:
    """What came of the use of a file: what to count, a sentence if it is broken, and what is needed to understand it.

    A warning that is not ours is an exception here, with the place where it comes from.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for known in (GuaranteeWarning, FitWarning):
            warnings.simplefilter("ignore", known)
        for text in ("the covariance of the .* observed values is singular", ".*a spreadsheet would run"):
            warnings.filterwarnings("ignore", text)
        for other in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", other)
        try:
            return use(), None, {}
        except _FalseError as error:
            return "false", str(error), {}
        except SfumatoError as error:
            return f"refused ({type(error).__name__})", _wrong_words(str(error)), {"error": str(error)}
        except Exception as error:
            told = f"{type(error).__name__}: {str(error)[:300]}"
            return (
                "foreign",
                f"an exception that is not sfumato's: {told}",
                {"stack": _stack(error)},
            )


def _stack(error: BaseException) -> list[str]:
    return "".join(traceback.format_exception(error)).splitlines()


class _FalseError(Exception):
    """What was said is not true, or not fit to be shown."""


def _wrong_words(text: str) -> str | None:
    """What is wrong with a sentence for people."""
    if not text.strip() or len(text) > 4000:
        return f"an error has {len(text)} characters"
    if not all(one.isprintable() for one in text):
        return f"an error has characters that are not printable: {ascii(text)[:300]}"
    return None


# ---------------------------------------------------------------- releases


def _file(random: np.random.Generator, folder: Path) -> tuple[str, Callable[[], str]]:
    names = [*stock.KINDS, *sorted(path.name for path in stock.FIXTURES.glob("*.sfumato"))]
    kind = names[int(random.integers(len(names)))]
    versions = stock.older(kind)
    version, manifest = versions[int(random.integers(len(versions)))]
    parts: Parts = (version, manifest, stock.parts_of(kind)[2])
    path = folder / "mutated.sfumato"
    # a few bytes here and there are found by the digest, always: that need not be tried often
    if random.uniform() < 0.2:
        how = list(RAW)[int(random.integers(len(RAW)))]
        path.write_bytes(RAW[how](random, stock.encoded(*parts)))
    else:
        how = list(EDITS)[int(random.integers(len(EDITS)))]
        path.write_bytes(_edited(random, parts, EDITS[how]))
    return f"{kind}: {how}", lambda: _opened(path, np.random.default_rng(random.integers(2**32)))


def _edited(random: np.random.Generator, parts: Parts, edit: Callable[..., Parts]) -> bytes:
    """A file with an edit and a digest that is right; where JSON cannot hold the edit, with another."""
    for _ in range(20):
        version, manifest, tensors = edit(random, parts[0], copy.deepcopy(parts[1]), dict(parts[2]))
        try:
            return stock.encoded(version, manifest, tensors)
        except (InputError, ValueError, TypeError, RecursionError, KeyError):
            continue
    return stock.encoded(*parts)


def _opened(path: Path, random: np.random.Generator) -> str:
    """Do with a file what readers do."""
    before, start = _peak(), time.process_time()
    release = sf.load(path)
    _show(release)
    _ask(release, path.parent)
    found = release.certify(progress=False)
    _show(found)
    json.dumps(found.as_dict(), allow_nan=False)
    seconds, more = time.process_time() - start, _peak() - before
    if seconds > MOST_SECONDS or more > MOST_BYTES:
        raise _FalseError(f"a mutated file takes {seconds:.0f} s and {more / 2**30:.1f} GiB of memory")
    try:
        told = falsehood(release, found, random)
    except UndecidedError:
        return "undecided"
    if told is not None:
        raise _FalseError(told)
    return f"certificates that hold ({found.evidence})" if found.holds else "certificates that fail"


def _show(shown: Any) -> None:
    for text in (str(shown), repr(shown)):
        if not all(one.isprintable() or one == "\n" for one in text):
            raise _FalseError(f"what is shown has characters that are not printable: {ascii(text)[:300]}")
    shown._repr_html_()


def _ask(release: sf.Release, folder: Path) -> None:
    """Predictions and tables; what is refused is refused with a sentence."""
    release.to_csv(folder / "mutated.csv")
    rows = release.design.inputs
    numbered = rows.outputs.numbered
    new = rows.frame().iloc[:3]
    prediction = release.predict(new, output=rows.present[0] if numbered else None)
    if np.any(np.isnan(prediction.mean)) or np.any(np.isnan(prediction.std)) or np.any(prediction.std < 0):
        raise _FalseError("a prediction is NaN, or has a negative standard deviation")


# ---------------------------------------------------------------- bytes


def _flipped(random: np.random.Generator, raw: bytes) -> bytes:
    data = bytearray(raw)
    for place in random.integers(len(data), size=int(random.choice([1, 1, 2, 8]))):
        data[place] ^= 1 << int(random.integers(8))
    return bytes(data)


def _cut(random: np.random.Generator, raw: bytes) -> bytes:
    return raw[: int(random.integers(len(raw)))]


def _exchanged(random: np.random.Generator, raw: bytes) -> bytes:
    a, b, c = sorted(int(one) for one in random.integers(len(raw), size=3))
    return raw[:a] + raw[b:c] + raw[a:b] + raw[c:]


def _put_in(random: np.random.Generator, raw: bytes) -> bytes:
    place = int(random.integers(len(raw)))
    return raw[:place] + random.bytes(int(random.integers(1, 64))) + raw[place:]


def _other_length(random: np.random.Generator, raw: bytes) -> bytes:
    """Another length of the header."""
    return int(random.choice([0, 1, 2, 100, 2**24, 2**24 + 1, 2**40, 2**63 - 1])).to_bytes(8, "little") + raw[8:]


RAW: dict[str, Callable[[np.random.Generator, bytes], bytes]] = {
    "bytes flipped": _flipped,
    "cut": _cut,
    "blocks exchanged": _exchanged,
    "bytes put in": _put_in,
    "another length": _other_length,
}

# ---------------------------------------------------------------- trees and arrays


NUMBERS = [
    0, 0.0, -0.0, 1, -1, 2, 7, 0.5, 0.99, 1.01, 1e-3, 1e3, 1e-9, 1e-160, 1e-300, 5e-324, 1e160, 1e300, 1.7e308,
    2**31, 2**53, 2**64 - 1, -(2**63), "nan", "inf", True, None,
]  # fmt: skip
FACTORS = [0.0, -1.0, 0.5, 0.9, 0.99, 0.999, 1.001, 1.01, 1.1, 2.0, 1e-6, 1e6, 1e100, 1e-100]
NAMES = [
    "", " ", "x", "y", "a\nb", "\x1b[2J\x1b[H", "\x9b31m", "[red]x[/red]", "a[/b]", "speed [m/s]", "‮evil",
    "a\u200bb", "<script>alert(1)</script>", "=1+1", "@x", "$x^2$", ":smile:", "x" * 999, "x" * 1001, "\u2028", "a\tb",
    "%s{0}", "\\", "’\"'`", "__class__",
]  # fmt: skip


def _pick(random: np.random.Generator, among: Any) -> Any:
    listed = list(among)
    return listed[int(random.integers(len(listed)))]


def _places_of(tree: Any, kinds: tuple[type, ...]) -> list[tuple[Any, Any]]:
    return [(part, key) for part, key in every_place(tree) if type(part[key]) in kinds]


def _number(random: np.random.Generator, version: str, manifest: Any, tensors: Any) -> Parts:
    """One number of the description."""
    design = {name: part for name, part in manifest.items() if name != "certificate" or random.uniform() < 0.3}
    places = _places_of(design, (int, float))
    part, key = _pick(random, places)
    part[key] = _pick(random, NUMBERS) if random.uniform() < 0.5 else part[key] * _pick(random, FACTORS)
    return version, {**manifest, **design}, tensors


def _junk(random: np.random.Generator, version: str, manifest: Any, tensors: Any) -> Parts:
    """Parts removed, exchanged for others, or replaced by junk."""
    return version, damaged(manifest, plain_random.Random(int(random.integers(2**32)))), tensors


def _of_another(random: np.random.Generator, version: str, manifest: Any, tensors: Any) -> Parts:
    """One part of another release."""
    other, arrays = stock.parts_of(_pick(random, stock.KINDS))[1:]
    key = _pick(random, set(manifest) & set(other) - {"certificate", "versions"})
    if random.uniform() < 0.5:
        arrays = {name: array for name, array in arrays.items() if name in tensors or random.uniform() < 0.5}
        tensors = tensors | {_pick(random, arrays): _pick(random, arrays.values())}
    return version, manifest | {key: copy.deepcopy(other[key])}, tensors


def _another_promise(random: np.random.Generator, version: str, manifest: Any, tensors: Any) -> Parts:
    """More is promised than the noise was made for, or something else."""
    choices: dict[str, list[Any]] = {
        "guarantee": ["joint", "pointwise"],
        "structure": ["full", "diagonal"],
        "cover": ["rows", "points", "greedy", "exchange", "everywhere"],
        "protects": ["both", "function", "records"],
        "insiders": [None, "rows", "groups"],
        "unsafe": [True, False],
        "promised": [0, 1, len(tensors["sensitive"]), 10**6, 10**9],
        "shift": [0.0, 1e-12, 0.01],
        "record_noise": [None, 0.5, 2.0],
        "tolerance": [{"kind": "fraction", "alpha": a} for a in (1e-9, 0.01, 0.3, 0.999)]
        + [{"kind": "floor", "value": v} for v in (1e-9, 0.3, 0.9, 1.1, 50.0)]
        + [{"kind": "records", "of": {"kind": "fraction", "alpha": 0.3}}],
        "region": [
            {"kind": "box", "lower": [a], "upper": [b], "columns": None} for a, b in ((0.9, 2.0), (-1e9, 1e9), (5, 6))
        ]
        + [{"kind": "everywhere"}],
    }
    for key in random.choice(list(choices), size=int(random.integers(1, 4)), replace=False):
        if key in manifest or random.uniform() < 0.1:
            manifest[str(key)] = copy.deepcopy(_pick(random, choices[str(key)]))
    return version, manifest, tensors


def _nested(random: np.random.Generator, version: str, manifest: Any, tensors: Any) -> Parts:
    """Kernels or regions that are nested deeply, or have very many parts."""
    count = int(_pick(random, [2, 5, 15, 17, 60, 300]))
    what = _pick(random, ["prior", "region", "mean"])
    if what == "region":
        whole = manifest["region"]
        if random.uniform() < 0.5:
            for _ in range(count):
                whole = {"kind": _pick(random, ["union", "intersection"]), "parts": [whole, manifest["region"]]}
        else:
            whole = {"kind": "union", "parts": [copy.deepcopy(whole) for _ in range(count)]}
        return version, manifest | {"region": whole}, tensors
    prior = manifest["prior"]
    if what == "prior":
        kernel = prior["kernel"]
        if random.uniform() < 0.5:
            for _ in range(count):
                parts = [kernel, copy.deepcopy(prior["kernel"])][: 1 + int(random.integers(2))]
                kernel = {"kind": _pick(random, ["sum", "product"]), "kernels": parts}
        else:
            kernel = {"kind": _pick(random, ["sum", "product"]), "kernels": [prior["kernel"]] * count}
        return version, manifest | {"prior": prior | {"kernel": kernel}}, tensors
    return version, manifest | {"prior": prior | {"mean": {"kind": "constant", "value": [[0.0] * count] * 2}}}, tensors


def _hostile_name(random: np.random.Generator, version: str, manifest: Any, tensors: Any) -> Parts:
    """Names and texts that would like to be something else."""
    for part, key in _places_of(manifest, (str,)):
        if part is not manifest and random.uniform() < 0.2 and key != "kind":
            part[key] = _pick(random, NAMES)
    manifest["output_name"] = _pick(random, NAMES)
    if manifest["columns"]:
        manifest["columns"] = [_pick(random, NAMES) for _ in manifest["columns"]]
    return version, manifest, tensors


def _less_noise(random: np.random.Generator, version: str, manifest: Any, tensors: Any) -> Parts:
    """Noise that is scaled, or left out on some rows or in some directions, and nothing else."""
    names = [name for name in tensors if name.startswith(("noise_factor", "noise_diagonal", "noise_mixing"))]
    for name in names:
        array = np.array(tensors[name])
        turn = int(random.integers(4))
        if turn == 0:
            array = array * float(_pick(random, [0.0, 0.5, 0.9, 0.99, 0.9999, 1.0001, 1.1, 10.0, 1e9, 1e-9]))
        elif turn == 1 and len(array):
            array[int(random.integers(len(array)))] *= float(_pick(random, [0.0, 0.5, 2.0]))
        elif turn == 2 and array.ndim == 2 and array.shape[1] > 1:
            array = array[:, 1:]
        else:
            array = array * random.uniform(0.97, 1.03, size=array.shape)
        tensors[name] = array
    return version, manifest, tensors


def _other_values(random: np.random.Generator, version: str, manifest: Any, tensors: Any) -> Parts:
    """Some values of an array."""
    name = _pick(random, [name for name in tensors if tensors[name].size] or tensors)
    array = np.array(tensors[name], dtype=float)
    flat = array.reshape(-1)
    for place in random.integers(len(flat), size=int(random.integers(1, 4))) if len(flat) else ():
        values = [0.0, -0.0, 1.0, -1.0, 1e9, 1e150, 1e160, 1e308, 1e-308, np.nan, np.inf, 0.5]
        flat[place] = _pick(random, values) if random.uniform() < 0.5 else flat[place] * _pick(random, FACTORS)
    return version, manifest, tensors | {name: array}


def _other_shape(random: np.random.Generator, version: str, manifest: Any, tensors: Any) -> Parts:
    """One array in another shape, gone, or new."""
    name = _pick(random, tensors)
    array = np.array(tensors[name], dtype=float)
    turn = int(random.integers(7))
    if turn == 0:
        del tensors[name]
        return version, manifest, tensors
    shaped: list[Any] = [array[:0], array.T, array[None], array.reshape(-1), np.concatenate([array, array])]
    tensors["extra" if turn == 6 else name] = shaped[turn - 1] if turn < 6 else array
    return version, manifest, tensors


def _other_rows(random: np.random.Generator, version: str, manifest: Any, tensors: Any) -> Parts:
    """Rows left out, doubled or moved in all arrays that have one for each row of the data."""
    if "inputs" not in tensors:
        return version, manifest, tensors
    count = len(tensors["inputs"])
    chosen = [
        np.arange(count - 1),
        np.arange(1),
        np.repeat(np.arange(count), 2),
        np.arange(count)[::-1],
        np.zeros(count, dtype=int),
        np.arange(count) % max(count // 2, 1),
        np.tile(np.arange(count), 12),
    ][int(random.integers(7))]
    of_rows = [
        n for n, a in tensors.items() if a.ndim and len(a) == count and not n.startswith(("sens", "floor", "tol"))
    ]
    tensors |= {name: tensors[name][chosen] for name in of_rows}
    if "weights" in tensors and tensors["weights"].ndim == 2:
        tensors["weights"] = tensors["weights"][:, chosen]
    if random.uniform() < 0.3:
        tensors["inputs"] = tensors["inputs"] * float(_pick(random, FACTORS))
    return version, manifest, tensors


def _other_sensitive(random: np.random.Generator, version: str, manifest: Any, tensors: Any) -> Parts:
    """Other sensitive inputs: fewer, the same twice, almost the same, elsewhere."""
    S = np.array(tensors["sensitive"])
    if not len(S):
        S = np.array(tensors["inputs"][:2]) if "inputs" in tensors else S
    turn = int(random.integers(5))
    if turn == 0:
        S = S[:-1]
    elif turn == 1:
        S = np.vstack([S, S[:1]])
    elif turn == 2:
        S = np.vstack([S, S[:1] + float(_pick(random, [1e-12, 1e-9, 1e-6, 1e-3]))])
    elif turn == 3:
        S = S + float(_pick(random, [0.01, 5.0, 1e6]))
    else:
        S = np.vstack([S, S + random.normal(size=S.shape)])
    if random.uniform() < 0.7:
        manifest["promised"] = len(S)
    return version, manifest, tensors | {"sensitive": S}


EDITS: dict[str, Callable[[np.random.Generator, str, Any, Any], Parts]] = {
    "a number": _number,
    "junk": _junk,
    "a part of another": _of_another,
    "another promise": _another_promise,
    "nested": _nested,
    "names": _hostile_name,
    "noise": _less_noise,
    "values": _other_values,
    "a shape": _other_shape,
    "rows": _other_rows,
    "sensitive inputs": _other_sensitive,
}

# ---------------------------------------------------------------- ledgers


def _ledger_lines() -> list[bytes]:
    """The lines of a ledger with two releases."""
    path = stock.scratch() / "stock.ledger"
    if not path.exists():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(2):
                made = sf.Ledger(path).protect(
                    stock.prior(), stock.LINE[:6], sf.Box(1.0, 2.0), alpha=0.5, share=0.3, progress=False
                )
                made.release(np.sin(stock.LINE[:6]))
    return path.read_bytes().splitlines()


def _ledger(random: np.random.Generator, folder: Path) -> tuple[str, Callable[[], str]]:
    """Lines of a ledger with hashes that are right."""
    trees = [json.loads(line) for line in _ledger_lines()]
    chance = plain_random.Random(int(random.integers(2**32)))
    raw = b"\n".join(_ledger_lines()) + b"\n"
    path = folder / "mutated.ledger"
    if random.uniform() < 0.3:
        how = _pick(random, RAW)
        path.write_bytes(RAW[how](random, raw))
    else:
        how = _pick(random, ["junk", "a number", "hashes"])
        body = trees[int(random.integers(1, 3))]["body"]
        if how == "junk":
            body |= damaged(body, chance)
        elif how == "a number":
            part, key = _pick(random, _places_of(body, (int, float, bool)))
            part[key] = _pick(random, NUMBERS)
        else:
            tree = _pick(random, trees)
            tree[_pick(random, ["number", "previous", "torn"])] = _pick(random, [None, 0, -1, {}, "x", [1], 10**30])
        path.write_bytes(_rehashed(trees, keep_links=how == "hashes"))
    return f"ledger: {how}", lambda: _ledger_used(path)


def _rehashed(trees: list[dict[str, Any]], keep_links: bool) -> bytes:
    lines, head = [], ROOT
    for tree in trees:
        tree.pop("hash", None)
        if not keep_links:
            tree["previous"] = head
        try:
            tree["hash"] = head = _hash(tree)
            lines.append(_text(tree))
        except (ValueError, TypeError):
            continue
    return b"\n".join(lines) + b"\n"


def _ledger_used(path: Path) -> str:
    ledger = sf.Ledger(path)
    ledger.verify()
    str(ledger)
    if not len(ledger):
        return "ledgers without releases"
    str(ledger.remaining())
    holds = ledger.certificate().holds
    mechanism = ledger.protect(
        stock.prior(), stock.LINE[:6], sf.Box(1.0, 2.0), alpha=0.5, share=0.2, cover="rows", progress=False
    )
    if not mechanism.certificate.holds:
        raise _FalseError("a ledger designs a release whose promise does not hold")
    return f"ledgers whose promises {'hold' if holds else 'fail'}"


# ---------------------------------------------------------------- folders


def _folder(random: np.random.Generator, folder: Path) -> tuple[str, Callable[[], str]]:
    """A release in a folder: its row files damaged, or exchanged for others with a digest that is right."""
    place = folder / "mutated"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(stock.FIXTURES / "folder", place)
    files = sorted((place / "rows").iterdir())
    one = _pick(random, files)
    version, manifest, tensors = stock.parts_of("folder/release.sfumato")
    manifest = copy.deepcopy(manifest)
    how = _pick(random, [*RAW, *EDITS, "rows moved", "another table"])
    if how in RAW:
        one.write_bytes(RAW[how](random, one.read_bytes()))
    elif how == "rows moved":
        other = _pick(random, files)
        first, second = one.read_bytes(), other.read_bytes()
        one.write_bytes(second)
        other.write_bytes(first)
    elif how == "another table":
        _other_table(random, one)
    if random.uniform() < 0.8:
        # the manifest of a clever forger
        for entry in manifest["row_files"]:
            entry[2] = hashlib.sha256((place / "rows" / entry[0]).read_bytes()).hexdigest()
    raw = _edited(random, (version, manifest, tensors), EDITS[how]) if how in EDITS else None
    (place / "release.sfumato").write_bytes(raw or stock.encoded(version, manifest, tensors))
    return f"folder: {how}", lambda: _opened(place, np.random.default_rng(0))


def _other_table(random: np.random.Generator, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    names, columns = list(table.column_names), [np.array(column) for column in table.columns]
    turn = int(random.integers(6))
    if turn == 0:
        names[0] = _pick(random, NAMES)
    elif turn == 1:
        columns[0] = columns[0].astype("float32")
    elif turn == 2:
        columns[-1] = np.where(random.uniform(size=len(columns[-1])) < 0.1, np.nan, columns[-1])
    elif turn == 3:
        columns = [column[:-1] for column in columns]
    elif turn == 4:
        columns[0] = columns[0] * float(_pick(random, FACTORS))
    else:
        names, columns = names[::-1], columns[::-1]
    pq.write_table(pa.table(dict(zip(names, columns))), path)
