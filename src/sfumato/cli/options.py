"""Options, each declared once; those that belong together are a group (see ``command``), with what they say.

Files that options name are checked before any work is done.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import typer

from ..errors import InputError
from ..files import OWNER_ONLY, replacing, where_it_leads
from .outputs import AskedOutputs, asked_outputs, names_in, numbers, read_regions

if TYPE_CHECKING:
    import pandas as pd

    from ..data import Inputs as InputRows
    from ..ledger import Ledger
    from ..regions import Region


def option(what: str, help: str, *names: str) -> Any:
    """An option that takes a value; ``what`` says in a word what kind of value, for the help."""
    return typer.Option(*names, metavar=what, help=help)


def flag(name: str, help: str) -> Any:
    """An option that takes no value."""
    return typer.Option(name, metavar="", help=help)


# ---------------------------------------------------------------------------------------- of several commands

ReleaseFile = Annotated[Path, typer.Argument(metavar="RELEASE", help="A release file or folder.")]
Table = Annotated[
    Path, typer.Argument(metavar="DATA", help="Your table, .csv (also .gz) or .parquet, with the secret values.")
]
Inputs = Annotated[
    list[str],
    option("COLUMN", "Input columns, comma separated or repeated; they are published. `a, b` is one with a comma."),
]
Cover = Annotated[
    str,
    option(
        "WORD",
        "Where in the region the promise is kept: auto, greedy or exchange, at all its inputs; rows, at the "
        "inputs of the rows only.",
    ),
]
TruthColumn = Annotated[str | None, option("COLUMN", "The column with the secret values, if not called as released.")]
LedgerFile = Annotated[Path | None, option("FILE", "The ledger that accounts for all releases of these values.")]
Figure = Annotated[Path | None, option("FILE", "Draw the result: .png, .pdf or .svg.")]
Accept = Annotated[
    list[str] | None,
    option("CODE", "Publish in spite of this finding, as in --accept prior-beaten. Repeat it for more."),
]
OutFolder = Annotated[Path, option("FOLDER", "The folder to write to.")]
Replace = Annotated[bool, flag("--replace", "Write over files that are there already.")]
Json = Annotated[bool, flag("--json", "Print one JSON object instead of text.")]


def column_names(inputs: list[str]) -> list[str]:
    """The columns that ``--inputs`` names."""
    columns = [name for entry in inputs for name in names_in(entry)]
    if not columns:
        raise InputError("--inputs names no column; give at least one, for example --inputs t.")
    return columns


def number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


@dataclass(frozen=True, kw_only=True)
class Sensitive:
    """What may be protected, of one output."""

    panel: ClassVar[str] = "What is sensitive"

    inputs: Inputs
    output: Annotated[str, option("COLUMN", "The output column.")]
    region: Annotated[str, option("TEXT", 'Where it is sensitive, as in "1 <= t <= 2".')]

    @cached_property
    def columns(self) -> list[str]:
        return column_names(self.inputs)

    def check(self) -> None:
        if self.output in self.columns:
            raise InputError(f"--output {self.output!r} is also one of --inputs; inputs are published as they are.")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How tables are read; what is not said is found out."""

    panel: ClassVar[str] = "How text tables are read (found out, if not given)"

    sep: Annotated[
        str | None, option("TEXT", "Between columns: comma, semicolon, tab, pipe, space, or any one character.")
    ] = None
    decimal: Annotated[
        str | None, option("MARK", "The decimal mark: '.' or ','; the other one, then, groups thousands.")
    ] = None
    encoding: Annotated[str | None, option("WORD", "utf-8, utf-16, cp1252 …")] = None
    drop_missing: Annotated[bool, flag("--drop-missing", "Leave out rows with missing values.")] = False

    def table(
        self, path: Path, inputs: Sequence[str], outputs: Sequence[str] = (), as_they_are: Sequence[str] = ()
    ) -> pd.DataFrame:
        """These columns of the table in ``path``: outputs are numbers; inputs numbers, dates or text."""
        from ..data import read_table

        how: dict[str, Any] = {"sep": self.sep, "decimal": self.decimal, "encoding": self.encoding}
        return read_table(path, inputs, outputs, **how, drop_missing=self.drop_missing, labels=as_they_are)

    def options(self) -> list[str]:
        """What was given, as words of a command."""
        given = {"--sep": self.sep, "--decimal": self.decimal, "--encoding": self.encoding}
        words = [word for name, value in given.items() if value is not None for word in (name, value)]
        return [*words, *["--drop-missing"] * self.drop_missing]


@dataclass(frozen=True, kw_only=True)
class Fit:
    """How the prior is found."""

    panel: ClassVar[str] = "The prior, which is published"

    kernel: Annotated[
        str,
        option(
            "TEXT",
            "rbf, matern12, matern32, matern52, rq, periodic, or sums and products of them with what is known in "
            'brackets, as in "rbf + periodic(period=1) * rbf".',
        ),
    ] = "matern52"
    lengthscale: Annotated[float | None, option("NUMBER", "Fix the lengthscale; else it is learnt.")] = None
    mean: Annotated[
        str, option("WORD", "constant, zero, a number, or a trend that is published: linear, quadratic, cubic.")
    ] = "constant"
    coefficients: Annotated[
        str,
        option("WORD", "Of such a trend: published, it may be known; integrated, readers do not know it."),
    ] = "published"
    noise: Annotated[
        str,
        option(
            "TEXT",
            'The variance of the errors in your data: learn, a number, or "learn by COLUMN", a variance for each value '
            "of an input.",
        ),
    ] = "learn"
    fit_outside: Annotated[
        bool,
        typer.Option(
            "--fit-outside/--fit-all",
            metavar="",
            help="Fit to the rows outside the region, because the prior is published and would tell of the others; or "
            "to all rows.",
        ),
    ] = True
    fit_rows: Annotated[
        int | None,
        option("NUMBER", "Fit to this many rows, spread evenly (default: all; 2000 of Parquet data of any size)."),
    ] = None

    def check(self) -> None:
        if self.fit_rows is not None and self.fit_rows < 2:
            raise InputError(f"--fit-rows is {self.fit_rows}; give at least 2.")

    @property
    def noise_column(self) -> str:
        """The column by which the noise is learnt; nothing where it is one number."""
        words = self.noise.strip()
        return words.removeprefix("learn by ").strip().strip('`"') if words.startswith("learn by ") else ""

    def options(self) -> list[str]:
        """To which rows a prior is fitted, as words of a command."""
        rows = [] if self.fit_rows is None else ["--fit-rows", str(self.fit_rows)]
        return [*([] if self.fit_outside else ["--fit-all"]), *rows]

    def excluded(self, where: Region | None, rows: InputRows) -> Region | None:
        """Where rows have no part in the fit; None: nowhere, where that was asked for or too few are left."""
        from ..models import least_outside

        if where is None or not self.fit_outside:
            return None
        outside = int((~where.bind(rows).contains(rows.values)).sum())
        return where if outside >= least_outside(rows.features) else None

    def settings(self) -> dict[str, Any]:
        """What ``fit_prior`` is told, besides the rows."""
        return {
            "kernel": self.kernel,
            "mean": number_or_word(self.mean),
            "coefficients": self.coefficients,
            "noise": ("learn by", self.noise_column) if self.noise_column else number_or_word(self.noise),
            "lengthscale": self.lengthscale,
            "rows": self.fit_rows,
        }


# ----------------------------------------------------------------------------------------------- of protect


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is to be protected, and how well."""

    panel: ClassVar[str] = "What is protected"

    inputs: Inputs
    output: Annotated[
        list[str], option("COLUMN", "The output column; it is published with noise. Repeat it for several.")
    ]
    region: Annotated[
        list[str],
        option(
            "TEXT",
            'Where outputs are sensitive, as in "1 <= t <= 2"; for one of several outputs "v: 1 <= t <= 2"; for a '
            'quantity without inputs "m". Repeat it for more.',
        ),
    ]
    alpha: Annotated[
        list[str],
        option(
            "NUMBER", "The share of the prior variance that readers may learn: 0.1 is strong; v=0.1 for one output."
        ),
    ] = field(default_factory=list)
    floor: Annotated[
        list[str],
        option(
            "NUMBER", "Or: the standard deviation that every reader keeps, in units of the output; v=20 for one output."
        ),
    ] = field(default_factory=list)
    protects: Annotated[
        str,
        option(
            "WORD",
            "both: the function and each record in the region; function: the typical value at given inputs, not any "
            "single record; records: what is each record's own.",
        ),
    ] = "both"
    family: Annotated[
        str | None,
        option(
            "RANGES",
            "Keep the promise to all readers whose lengthscale, variance and noise are the fitted ones times factors "
            "in these ranges, as in lengthscale=0.5:2,noise=0.5:1.",
        ),
    ] = None
    spread: Annotated[
        float | None,
        option(
            "NUMBER",
            "Or: to all readers whose priors are nearly as likely, within so many units of log likelihood, as in 2.",
        ),
    ] = None
    insiders: Annotated[
        str | None,
        option(
            "WORD",
            "Keep the promise also to readers who hold some rows: rows, any single one; or a COLUMN of labels, all "
            "rows of one label. Which rows belong together is published.",
        ),
    ] = None
    allow_raw_rows: Annotated[
        bool,
        flag("--allow-raw-rows", "Write the release even if records in the region go out almost as they are."),
    ] = False
    no_rehearsal: Annotated[
        bool, flag("--no-rehearsal", "Do not try the prior on regions like yours before anything is written.")
    ] = False
    accept: Accept = None
    relation: Annotated[
        list[str],
        option(
            "TEXT",
            'How an output, or a quantity that is never released, follows from another: "v = d(r)/d(t)", '
            '"m = mean(r where 1 <= t <= 2)", "q = integral(r from 0 to 1)". Repeat it for more.',
        ),
    ] = field(default_factory=list)
    correlated: Annotated[
        list[str],
        option(
            "COLUMNS",
            "Outputs that go together without one following from the other, as in infl,unemp: they are fitted as one. "
            "Repeat it for more.",
        ),
    ] = field(default_factory=list)
    output_noise: Annotated[
        list[str],
        option(
            "NUMBER",
            "The variance of the errors of one of several outputs, as in v=0.01; a derivative has none by default.",
        ),
    ] = field(default_factory=list)

    @cached_property
    def columns(self) -> list[str]:
        return column_names(self.inputs)

    @cached_property
    def outputs(self) -> AskedOutputs:
        return asked_outputs(self.output, self.relation, self.correlated, self.columns)

    @cached_property
    def promise(self) -> dict[str, Any]:
        """``alpha`` and ``floor``, one of them None, and ``protects``."""
        levels = {name: numbers(f"--{name}", getattr(self, name), self.outputs) for name in ("alpha", "floor")}
        return {**levels, "protects": self.protects}

    @cached_property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """What ``--family`` says: the least and the largest factor for each hyper-parameter."""
        found = {}
        for text in (self.family or "").split(",") if self.family is not None else ():
            name, _, numbers_of = text.strip().partition("=")
            low, _, high = numbers_of.partition(":")
            try:
                found[name.strip()] = (float(low), float(high))
            except ValueError:
                raise InputError(
                    f"--family has {text.strip()!r}; write a range of factors, as in lengthscale=0.5:2,noise=0.5:1."
                ) from None
            if name.strip() not in ("lengthscale", "variance", "noise"):
                raise InputError(f"--family names {name.strip()!r}; choose lengthscale, variance or noise.")
        return found

    def readers(self, prior: Any) -> Any:
        """The prior of all readers, or the family of their priors."""
        return prior.family(**self.ranges) if self.ranges else prior

    @cached_property
    def own_noise(self) -> dict[str, float]:
        """The variance of the errors of the outputs that were named."""
        found = numbers("--output-noise", self.output_noise, self.outputs)
        if isinstance(found, float):
            raise InputError(f"--output-noise is {found:g}; say of which output, as in {self.outputs.names[-1]}=0.01.")
        return found or {}

    def check(self) -> None:
        """Refuse, before anything is read, what cannot be meant."""
        if (self.promise["alpha"] is None) == (self.promise["floor"] is None):
            given = "both" if self.alpha else "neither"
            raise InputError(
                f"--alpha and --floor: {given} given; choose one, for example --alpha 0.1 (strong privacy)."
            )
        if self.insiders in self.outputs.columns:
            raise InputError(
                f"--insiders {self.insiders!r} is also an --output; which rows belong together is published, so it "
                "cannot be secret."
            )
        if self.ranges and self.spread is not None:
            raise InputError("--family and --spread: both given; choose one, for example --spread 2.")
        if (self.ranges or self.spread is not None) and self.outputs.several:
            given = "--family" if self.ranges else "--spread"
            raise InputError(f"{given} is for one output; leave it out, or protect the outputs one by one.")
        if self.output_noise and not self.outputs.several:
            raise InputError("--output-noise is for several outputs; give --noise, the noise variance of the only one.")
        for name in self.own_noise:
            if name not in self.outputs.columns:
                raise InputError(
                    f"--output-noise names {name!r}, which is not a column of the data, so that it has no noise of "
                    "its own; leave it out."
                )


#: What ``--serve`` may name.
SERVED = 'a table, .csv or .parquet, of inputs, or a region, as in "t >= 2"'


def served_table(serve: str | None) -> Path | None:
    """The table that ``--serve`` names; None where it is the text of a region, or was not given."""
    path = None if serve is None else Path(serve)
    endings = (".gz", *TABLES)
    return path if path is not None and (path.suffix.lower() in endings or os.path.isfile(path)) else None


def served_by(
    serve: str | None,
    columns: Sequence[str],
    outputs: Sequence[str],
    reading: Reading,
    weights: str | None = None,
    several: Mapping[str, bool] | None = None,
) -> tuple[Any, list[float] | None]:
    """What ``--serve`` names, inputs or a region, and the column ``weights`` of these inputs; None where nothing is.

    Of ``several`` outputs, each with whether it takes inputs, a region may be about one.
    """
    from ..regions import parse_region

    if serve is None:
        return None, None
    if (path := served_table(serve)) is not None:
        table = reading.table(path, columns, [] if weights is None or weights in columns else [weights])
        return table[list(columns)], None if weights is None else table[weights].tolist()
    try:
        if several is not None:
            return read_regions([serve], several, columns, "--serve"), None
        return parse_region(serve, columns, outputs=outputs), None
    except InputError as error:
        first, *marks = error.args
        raise InputError(f"--serve {serve!r} is no table, and as a region: {first}", *marks) from error


@dataclass(frozen=True, kw_only=True)
class NoiseOptions:
    """Which noise is sought, and how."""

    panel: ClassVar[str] = "The noise"

    guarantee: Annotated[
        str, option("WORD", "joint: averages of sensitive values are protected too; pointwise: each value by itself.")
    ] = "joint"
    structure: Annotated[
        str, option("WORD", "full: correlated noise, the least there is; diagonal: every row by itself.")
    ] = "full"
    objective: Annotated[
        str,
        option(
            "WORD",
            "Which noise is sought, at the same promise: noise, the least; predictions, the one with "
            "the best predictions at the inputs that --serve names. These trust the prior more.",
        ),
    ] = "noise"
    serve: Annotated[
        str | None,
        option(
            "FILE or TEXT",
            f'Where the best predictions are to be: {SERVED}; of several outputs also "v: t >= 2" (default: the rows '
            "outside the region).",
        ),
    ] = None
    weights: Annotated[
        str | None,
        option(
            "COLUMN",
            "A column of positive weights: rows with large ones get less noise, or better predictions; with --serve "
            "FILE a column of that table.",
        ),
    ] = None
    cover: Cover = "auto"
    evidence: Annotated[
        str,
        option("WORD", "best: the promise is proved where it can be, else searched; proved: nothing less is written."),
    ] = "best"
    method: Annotated[
        str,
        option("WORD", "auto chooses by size; eigh and subspace are exact; compressed takes any number of rows; sign."),
    ] = "auto"
    accuracy: Annotated[
        float | None,
        option(
            "NUMBER",
            "How far above the least the noise may be, as a share (subspace, compressed); with --objective "
            "predictions, how much more readers could explain (default: 1e-4).",
        ),
    ] = None
    device: Annotated[str | None, option("WORD", "cuda works on a GPU.")] = None
    resolution: Annotated[float | None, option("NUMBER", "Round published outputs to multiples of this.")] = None

    def check(self, asked: Asked) -> None:
        """Refuse, before anything is read or fitted, what no prior would make right."""
        from ..design import check_settings
        from ..noise import check_resolution

        check_settings(
            **asked.promise,
            **self.settings(),
            serve=self.serve,
            method=self.method,
            device=self.device,
            accept=asked.accept or (),
        )
        if self.resolution is not None:
            check_resolution(self.resolution)

    def weights_beside(self, inputs: Sequence[str]) -> list[str]:
        """The column of ``--weights``, if there is one and it is none of the ``inputs``."""
        return [] if self.weights is None or self.weights in inputs else [self.weights]

    def settings(self) -> dict[str, Any]:
        """What ``protect`` is told for tables of every size."""
        return {
            "guarantee": self.guarantee,
            "structure": self.structure,
            "objective": self.objective,
            "cover": self.cover,
            "evidence": self.evidence,
            "accuracy": self.accuracy,
        }


@dataclass(frozen=True, kw_only=True)
class Account:
    """The ledger that a release is written into."""

    panel: ClassVar[str] = "Several releases of one secret"

    ledger: Annotated[
        Path | None,
        option("FILE", "Keep the promise for all releases in this ledger together, and add this one to it."),
    ] = None
    share: Annotated[
        float | None, option("NUMBER", "How much of what is left this release may use (default: 0.5).")
    ] = None
    remeasured: Annotated[bool, flag("--remeasured", "The values were measured anew, with new errors.")] = False

    @cached_property
    def book(self) -> Ledger | None:
        from ..ledger import Ledger

        return None if self.ledger is None else Ledger(self.ledger)

    def check(self) -> None:
        if self.ledger is None and (self.share is not None or self.remeasured):
            option = "--share" if self.share is not None else "--remeasured"
            raise InputError(
                f"{option} is about the releases of a ledger; name it with --ledger FILE, or leave it out."
            )


@dataclass(frozen=True, kw_only=True)
class Large:
    """For Parquet data of any size."""

    panel: ClassVar[str] = "Parquet data of any size (--out is a folder)"

    dask: Annotated[str | None, option("ADDRESS", "A Dask scheduler whose workers do the work.")] = None


@dataclass(frozen=True, kw_only=True)
class Files:
    """What is written."""

    panel: ClassVar[str] = "What is written"

    out: Annotated[
        str,
        option(
            "FILE",
            "The release file; or a folder (end it with /) for Parquet data of any size. A run into a folder that "
            "was interrupted goes on when it is started again.",
        ),
    ]
    csv: Annotated[Path | None, option("FILE", "Also the published data as a table, .csv or .parquet.")] = None
    report: Annotated[
        Path | None, option("FILE", "Also a page for the person who signs off the publication, .html.")
    ] = None
    replace: Replace = False
    json: Json = False


FIGURES = (".png", ".pdf", ".svg")
TABLES = (".csv", ".parquet", ".pq")

#: Sharp enough to be printed.
DOTS_AN_INCH = 200


class Written(NamedTuple):
    """A file that an option names, if it does, and the endings that its name may have (none: any).

    One that ``grows``, a ledger, is there already and is kept.
    """

    option: str
    path: Path | None
    endings: tuple[str, ...] = ()
    grows: bool = False


def check_written(*files: Written, read: Sequence[Path | None], replace: bool) -> None:
    """Refuse what cannot be written, what is read as well, two files in one place, and files that are there already.

    With ``replace`` these are written over.
    """
    sources = [where_it_leads(path) for path in read if path is not None]
    places: dict[Path, str] = {}
    for option, path, *_ in files:
        if path is None:
            continue
        place = where_it_leads(path)
        if place in sources:
            raise InputError(f"{option} {path} is what the command reads; write to another file.")
        if place in places:
            raise InputError(f"{places[place]} and {option} are both {path}; give them different names.")
        places[place] = option
    for option, path, endings, grows in files:
        if path is None:
            continue
        if os.path.lexists(place := where_it_leads(path)) and not place.is_file():
            what = "a folder" if place.is_dir() else "not a file"
            raise InputError(f"{option} {path} is {what}; give the name of a file.")
        if endings and path.suffix.lower() not in endings:
            raise InputError(f"{option} {path} ends in {path.suffix or 'nothing'!r}; choose {', '.join(endings)}.")
        if not path.parent.is_dir():
            raise InputError(
                f"{option} {path} cannot be written: the folder {path.parent} does not exist; make it first."
            )
        if not grows:
            check_new(f"{option} {path}", path.exists(), replace)


def check_new(what: str, exists: bool, replace: bool) -> None:
    """Refuse to write over what ``exists``, unless that was asked for."""
    if exists and not replace:
        raise InputError(f"{what} is there already; give --replace to write over it, or another name.")


def check_folder_name(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise InputError(f"--out {out} is a file; give the name of a folder.")


def save_figure(figure: Any, path: Path, private: bool = False) -> None:
    """Write ``figure`` in one move. A ``private`` one is for its owner alone, and says so on top and in its title."""
    how: dict[str, Any] = {}
    if private:
        from matplotlib.text import Text

        how = {"metadata": {"Title": OWNER_ONLY}, "bbox_inches": "tight"}
        if not any(OWNER_ONLY in text.get_text() for text in figure.findobj(Text)):
            figure.text(0.01, 1.0, OWNER_ONLY, color="#b00020", fontweight="bold", va="bottom")
    with replacing(path, private=private) as file:
        figure.savefig(file, format=path.suffix[1:].lower(), dpi=DOTS_AN_INCH, **how)
