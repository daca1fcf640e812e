"""One owner's work: the data in memory, the choices, and what has been made of them so far.

Nothing here knows of pages. ``Session.choose`` is the only way to change something; what depended on it is forgotten
then. Whatever takes long is a ``Job``. Nothing is written before ``start_publish``.
"""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable
from functools import partial, reduce, wraps
from pathlib import Path
from typing import Any, ParamSpec, cast

import numpy as np
import pandas as pd

from ..data import (
    ColumnFacts,
    Inputs,
    TableAsRead,
    as_inputs,
    as_outputs,
    column_facts,
    open_table,
    select_columns,
)
from ..errors import GuaranteeError, InputError
from ..evaluate import (
    Audit,
    Effect,
    Levels,
    Rehearsal,
    Suggestion,
    Tradeoff,
    audit,
    check_suggestion,
    suggest,
)
from ..ledger import Ledger
from ..models import Prior, fit_prior
from ..progress import Listener
from ..promise import ALARMING, in_order
from ..proof import Certificate
from ..regions import Box, Region, parse_region
from .checking import Checked, Problem, before_audit, checked_design, rehearsed
from .choices import OF_FIT, Choices
from .demos import demo
from .jobs import Job
from .publication import Places, Written, publish_files
from .remedies import refusal

#: A table with more rows has its prior fitted to so many of them, evenly spread.
MANY_ROWS, FITTED_ROWS = 20_000, 2000

#: The floors of the trade-off, as shares of the largest that could be promised.
CURVE = (0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.97)

P = ParamSpec("P")

#: Reads a table, told the separator, the decimal mark and the encoding.
Reader = Callable[[str | None, str | None, str | None], TableAsRead]

#: What each job's result depends on. A job that is not named here depends on all that comes before it.
_READING = ("sep", "decimal", "encoding")
_COLUMNS = ("data", "source", *_READING, "drop_missing", "inputs", "output", "insiders")
_PROMISE = ("regions", "protects", "insiders", "objective")
_LEVEL = ("level", "value")


def _of_one_moment(start: Callable[P, None]) -> Callable[P, None]:
    """A method that starts work from what was chosen at one moment, whatever changes meanwhile."""

    @wraps(start)
    def alone(*args: P.args, **named: P.kwargs) -> None:
        with cast(Session, args[0])._changing:
            start(*args, **named)

    return alone


class Session:
    """The owner's data, choices and results. Tables may be opened in a thread beside the page's."""

    def __init__(self) -> None:
        self.choices = Choices()
        self.table: TableAsRead | None = None
        self.columns: tuple[ColumnFacts, ...] = ()
        self.written: tuple[Path, ...] = ()
        #: Why there are no ``X`` and ``y`` yet, in a sentence; empty where there are.
        self.trouble = "Open a table first."
        self._read: Reader | None = None
        self._chosen: pd.DataFrame | None = None
        self._inputs: Inputs | None = None
        self._region: Region | None = None
        self._levels: tuple[object, Levels] | None = None
        #: How many tables were opened: results are of one of them, even where the next has its name and its columns.
        self._opened = 0
        self._listeners: dict[int, Callable[[], None]] = {}
        self._lock = threading.Lock()
        self._changing = threading.RLock()
        self.fit: Job[Prior] = Job("fit", self._tell)
        self.rehearsal: Job[Rehearsal] = Job("rehearsal", self._tell)
        self.effect: Job[Effect] = Job("effect", self._tell)
        self.curve: Job[Tradeoff] = Job("curve", self._tell)
        self.check: Job[Checked] = Job("check", self._tell)
        self.audit: Job[Audit] = Job("audit", self._tell)
        self.publish: Job[Written] = Job("publish", self._tell)
        self.suggestion: Job[Suggestion] = Job("suggestion", self._tell)
        self._counted_in: set[str | None] = set()
        #: Where files are written, at Publish.
        self.folder = Path.cwd()

    @property
    def jobs(self) -> tuple[Job[Any], ...]:
        looks = self.fit, self.rehearsal, self.effect, self.curve, self.suggestion
        return (*looks, self.check, self.audit, self.publish)

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Have ``changed`` called, from any thread, after every change; what comes back ends that."""
        mark = id(changed)
        with self._lock:
            self._listeners[mark] = changed

        def end() -> None:
            with self._lock:
                self._listeners.pop(mark, None)

        return end

    def _tell(self) -> None:
        with self._lock:
            listeners = list(self._listeners.values())
        for changed in listeners:
            changed()

    # ------------------------------------------------------------------------------------------------ data

    def open_path(self, path: Path) -> None:
        """Read the table in a file of this machine."""
        self._open(partial(open_table, path), Choices(data=str(path), source="file"))

    def open_upload(self, name: str, content: bytes) -> None:
        """Read a table that came through the page; it stays in memory."""
        self._open(partial(open_table, Path(name), content=content), Choices(data=name, source="upload"))

    def open_demo(self, name: str) -> None:
        """Take one of the demo tables, with the choices that go with it."""
        shown = demo(name)
        self._open(_always(shown.make()), shown.choices)

    def open_arrays(self, X: Any, y: Any = None) -> None:
        """Take inputs and outputs from Python: a table with both, or arrays."""
        rows = None if isinstance(X, pd.DataFrame) else as_inputs(X)
        frame = X.copy() if rows is None else pd.DataFrame(rows.values, columns=list(rows.names))
        frame.columns = pd.Index(list(map(str, frame.columns)))
        inputs, output = tuple(frame.columns), ""
        if y is not None:
            output = str(getattr(y, "name", None) or "y")
            if output in inputs:
                raise InputError(f"y is called {output!r}, and so is a column of X; give y another name.")
            frame = frame.assign(**{output: as_outputs(y, as_inputs(X))})
        chosen = Choices(source="notebook", inputs=inputs if output else (), output=output)
        self._open(_always(frame.reset_index(drop=True)), chosen)

    def open_choices(self, chosen: Choices) -> None:
        """Take choices that were saved. Their data are opened too where that is possible: a demo, or a file here; else
        they have to go with the table that is open."""
        if chosen.source == "demo":
            self._open(_always(demo(chosen.data).make()), chosen)
        elif chosen.source == "file" and os.path.isfile(chosen.data):
            self._open(partial(open_table, Path(chosen.data)), chosen)
        elif self._read is None:
            raise InputError(f"These choices are about {chosen.data or 'a table'}; open that table first.")
        else:
            self._open(self._read, chosen.changed(data=self.choices.data, source=self.choices.source))

    def _open(self, read: Reader, choices: Choices) -> None:
        """Take a table that ``read`` gives, told how text is to be read; if anything is wrong, all stays as it was."""
        table = read(choices.sep, choices.decimal, choices.encoding)
        if not len(table.frame):
            raise InputError("The table has no rows; open one that has.")
        if choices.fit_rows is None and len(table.frame) > MANY_ROWS:
            choices = choices.changed(fit_rows=FITTED_ROWS)
        self._take(choices, table)
        self._read, self.columns = read, column_facts(table)
        self._tell()

    @property
    def rows(self) -> int:
        """How many rows take part: those without missing values, where they are left out."""
        return 0 if self._chosen is None else len(self._chosen)

    @property
    def X(self) -> pd.DataFrame:  # noqa: N802
        """The inputs, as they are published."""
        return self._need()[list(self.choices.inputs)]

    @property
    def y(self) -> pd.Series[Any]:
        """The secret values."""
        return self._need()[self.choices.output]

    @property
    def inputs(self) -> Inputs:
        """The inputs as numbers."""
        if self._inputs is None:
            self._inputs = as_inputs(self.X)
        return self._inputs

    def _need(self) -> pd.DataFrame:
        if self._chosen is None:
            raise InputError(self.trouble)
        return self._chosen

    # --------------------------------------------------------------------------------------------- choices

    def choose(self, **changes: Any) -> None:
        """Change choices; an ``InputError`` for what cannot be, and then all stays as it was.

        Columns that cannot be used together are no error: ``trouble`` says what is wrong with them. Findings that were
        accepted have to be accepted again.
        """
        chosen = self.choices.changed(**changes)
        if chosen != self.choices and "accept" not in changes:  # findings were accepted of what was checked then
            chosen = chosen.changed(accept=())
        if self._read is not None and _of(chosen, _READING) != _of(self.choices, _READING):
            self._open(self._read, chosen)
        else:
            self._take(chosen, self.table)

    def _take(self, choices: Choices, table: TableAsRead | None) -> None:
        if choices.level == "alpha" and not 0.0 < choices.value < 1.0:
            raise InputError(f"alpha is {choices.value:g}; it is a share between 0 and 1.")
        same = table is self.table and _of(choices, _COLUMNS) == _of(self.choices, _COLUMNS)
        chosen, trouble = (self._chosen, self.trouble) if same else _columns_of(table, choices)
        inputs = self._inputs if same else None
        region = self._region if same and choices.regions == self.choices.regions else None
        if chosen is not None and choices.regions and region is None:
            inputs = inputs or as_inputs(chosen[list(choices.inputs)])
            region = _region(choices).bind(inputs)
        with self._changing:
            self._opened += table is not self.table
            self.choices, self.trouble, self.table = choices, trouble, table
            self._chosen, self._inputs, self._region = chosen, inputs, region
            for job in self.jobs:
                if job.key is not None and job.key != self.key(job) and not self._is_near(job):
                    job.reset()
        self._tell()

    def _is_near(self, job: Job[Any]) -> bool:
        """Whether another level alone has changed: while a slider moves, the last effect is seen until the next."""
        levels = self.key("levels")
        return job is self.effect and isinstance(job.key, tuple) and job.key[: len(levels)] == levels

    @property
    def region(self) -> Region | None:
        """Where the output is sensitive: all of the texts together, bound to the inputs."""
        return self._region

    @property
    def inside(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which rows lie in the region."""
        if self._region is None:
            return np.zeros(self.rows, dtype=np.bool_)
        return np.asarray(self._region.contains(self.inputs.values), dtype=np.bool_)

    @property
    def excluded(self) -> Region | None:
        """The region whose rows have no part in the fit; None where there is none, or too few rows are outside."""
        return self.choices.fit.excluded(self._region, self.inputs)

    @property
    def stand_in(self) -> Region:
        """For a rehearsal before a region is chosen: the middle fifth of the first input."""
        values = self.inputs.values[:, 0]
        low, high = np.quantile(values, [0.4, 0.6])
        ends = np.full((2, self.inputs.features), [[-np.inf], [np.inf]])
        ends[:, 0] = low, high
        return Box(ends[0], ends[1])

    @property
    def insiders(self) -> Any:
        """Who holds which rows, as ``sf.protect`` takes it."""
        asked = self.choices.insiders
        return asked if asked in (None, "rows") else self._need()[asked].tolist()

    # ------------------------------------------------------------------------------------------------ jobs

    def key(self, job: Job[Any] | str) -> tuple[Any, ...]:
        """What the result of ``job`` depends on: the table that is open, and of the choices of now."""
        fit = (*_COLUMNS[:-1], *OF_FIT, *(("regions",) if self.choices.fit_outside else ()))
        names: dict[str, tuple[str, ...]] = {
            "fit": fit,
            "rehearsal": (*fit, "regions", "protects", *_LEVEL),
            "effect": (*fit, *_PROMISE, *_LEVEL, "ledger"),
            "curve": (*fit, *_PROMISE, "level", "ledger"),
            "levels": (*fit, *_PROMISE),
            "suggestion": (*fit, "regions", "objective"),
        }
        name = job if isinstance(job, str) else job.name
        if name in names:
            return (self._opened, *_of(self.choices, names[name]))
        everything = (*fit, *_PROMISE, *_LEVEL, "ledger", "share")
        return (self._opened, *_of(self.choices, everything), before_audit(self.choices))

    @_of_one_moment
    def start_fit(self) -> None:
        """Fit the prior, to the rows outside the region where there is one."""
        X, y, settings, exclude = self.X, self.y, self.choices.fit, self.excluded

        def work(step: Listener) -> Prior:
            settings.check()
            how: dict[str, Any] = {**settings.settings(), "exclude": exclude, "progress": step}
            prior: Prior = fit_prior(X, y, **how)
            return prior

        self.fit.start(work, self.key(self.fit))

    @_of_one_moment
    def start_rehearsal(self) -> None:
        """Try the prior on regions like the one that is sensitive, or on the stand-in."""
        region = self._region or self.stand_in
        self.rehearsal.start(partial(rehearsed, self._problem(region)), self.key(self.rehearsal))

    @property
    def levels(self) -> Levels:
        """What all levels of the promise share."""
        key = self.key("levels")
        if self._levels is None or self._levels[0] != key:
            region = self._region
            if region is None:
                raise InputError("No region is chosen yet; say first what is sensitive.")
            how: dict[str, Any] = {"protects": self.choices.protects, "objective": self.choices.objective}
            made = Levels(self._prior(), self.X, region, insiders=self.insiders, **how)
            self._levels = key, made
        return self._levels[1]

    @_of_one_moment
    def start_effect(self) -> None:
        """Look at what the level does; a newer level takes the place of those that wait."""
        levels, asked = self.levels, self.choices.asked
        self.effect.start(lambda step: levels.at(**asked, progress=step), self.key(self.effect), lets_finish=True)

    @_of_one_moment
    def start_curve(self) -> None:
        """Work out the trade-off between privacy inside and accuracy outside."""
        levels, output = self.levels, self.choices.output
        floors = [float(levels.most_floor * part) for part in CURVE] if self.choices.level == "floor" else None
        self.curve.start(lambda step: levels.curve(floors=floors, output=output, progress=step), self.key(self.curve))

    @_of_one_moment
    def start_check(self) -> None:
        """Make the design as it is published, prove it, and look at everything that speaks against it.

        The noise is drawn anew: what was audited and published before was another release.
        """
        levels = self.levels
        self.audit.reset()
        self.publish.reset()
        assert self._region is not None  # the levels have one
        known = self.rehearsal.value if self.rehearsal.key == self.key(self.rehearsal) else None
        self.check.start(partial(checked_design, self._problem(self._region), levels, known), self.key(self.check))

    @_of_one_moment
    def start_audit(self) -> None:
        """Attack the release that was checked with everything that is known."""
        checked, y = self.check.value, self.y
        if checked is None or checked.release is None:
            raise InputError("There is no release to audit yet; run the check first.")
        release = checked.release
        self.audit.start(lambda step: audit(release, y.to_numpy(), progress=step), self.key(self.audit))

    @_of_one_moment
    def start_suggestion(self, max_loss: float) -> None:
        """Look for the strongest floors that cost readers outside at most this share of their accuracy."""
        prior, X, region, choices = self._prior(), self.X, self._region, self.choices
        if region is None:
            raise InputError("No region is chosen yet; say first what is sensitive.")
        how: dict[str, Any] = {"max_loss": max_loss, "objective": choices.objective, "output": choices.output}
        check_suggestion(max_loss, None, None, None, None, choices.objective)
        self.suggestion.start(lambda step: suggest(prior, X, region, **how, progress=step), self.key(self.suggestion))

    @property
    def certificate(self) -> Certificate | None:
        """That of what was checked, with what rehearsal and audit found, in words for the owner alone."""
        checked, tried = self.check.value, self.audit.value
        if checked is None:
            return None
        mine = [one for each in (checked.rehearsal, tried) if each is not None for one in each.findings]
        codes = {one.code for one in mine}
        # in place of the sentences without numbers that are published
        others = [one for one in checked.certificate.findings if one.code not in codes]
        found = dataclasses.replace(checked.certificate, findings=in_order([*others, *mine]))
        return found.accepting(self.choices.accept)

    @property
    def refusal(self) -> str:
        """Why nothing may be published, and what to do; empty where it may."""
        checked, decided = self.check.value, self.certificate
        if checked is None or decided is None:
            return "Nothing has been checked yet; run the check first."
        if decided.verdict == "do not publish":
            return refusal(one for one in decided.findings if one.stops)
        return checked.refused

    @property
    def unsaid(self) -> tuple[str, ...]:
        """The codes of what makes the owner's verdict worse than that of the file that was written."""
        written, mine = self.publish.value, self.certificate
        if written is None or mine is None or mine.verdict == written.certificate.verdict:
            return ()
        said = {one.code for one in written.certificate.findings}
        return tuple(one.code for one in mine.findings if one.severity in ALARMING and one.code not in said)

    @property
    def is_second_release(self) -> bool:
        """Whether a release was written before that the ledger of now, if there is one, was not told of by it."""
        ledger = self.choices.ledger
        return self.publish.value is None and any(one is None or one != ledger for one in self._counted_in)

    def places(self, name: str, csv: str | None, report: str | None, replace: bool = False) -> Places:
        """Where files of these names are written; an ``InputError`` where they must not be."""
        made_from = [self.choices.data] if self.choices.source == "file" else []
        made_from += [] if self.choices.ledger is None else [self.choices.ledger]
        return Places.checked(
            self.folder, name, csv, report, replace=replace, reads=tuple(self.folder / one for one in made_from)
        )

    @_of_one_moment
    def start_publish(self, name: str, csv: str | None = None, report: str | None = None, *, replace: bool) -> None:
        """Write what was checked to files of these names; then read it again and certify it.

        Guarantee: nothing is written where the verdict is "do not publish". A ledger knows of the release first.
        """
        if self.refusal:
            raise GuaranteeError(self.refusal)
        places, checked, y, choices = self.places(name, csv, report, replace), self.check.value, self.y, self.choices
        assert checked is not None  # else it is refused

        def work(step: Listener) -> Written:
            step("writing the files", None)
            release, ledger = checked.release, None
            if choices.ledger is not None:
                ledger = Ledger(self.folder / choices.ledger)
            if release is None:
                release = checked.mechanism.release(y, output_name=choices.output)
                if self.check.value is checked:  # the ledger counts it now: whoever publishes it again gets the same
                    self.check.value = dataclasses.replace(checked, release=release)
            before = {path: _stamp(path) for path in places.paths}
            try:
                return publish_files(release, places, ledger)
            finally:  # what was written before something went wrong is told too
                new = [path for path in places.paths if _stamp(path) != before[path]]
                new += [] if ledger is None else [Path(ledger.path)]
                self.written = tuple(dict.fromkeys((*self.written, *new)))
                self._counted_in |= {choices.ledger} if places.out in new else set()

        self.publish.start(work, self.key(self.publish))

    def _prior(self) -> Prior:
        if self.fit.value is None:
            raise InputError("The prior is not fitted yet; fit it first.")
        return self.fit.value

    def _problem(self, region: Region) -> Problem:
        return Problem(self._prior(), self.X, self.y, region, self.choices, self.insiders, self.folder)


def _of(choices: Choices, names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(getattr(choices, name) for name in names)


def _stamp(path: Path) -> object:
    """What changes when a file is written; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _columns_of(table: TableAsRead | None, choices: Choices) -> tuple[pd.DataFrame | None, str]:
    """The columns that take part, or why there are none."""
    if table is None:
        return None, "Open a table first."
    if not choices.inputs or not choices.output:
        return None, f"Choose {'an output' if choices.inputs else 'inputs'} among the columns."
    if choices.output in choices.inputs:
        return None, f"{choices.output} is the output, and an input too; inputs are published as they are."
    held = choices.insiders
    labels = [] if held is None or held in ("rows", *choices.inputs) else [held]
    source = Path(choices.data or "the table")
    try:
        chosen = select_columns(
            table, choices.inputs, [choices.output], source, choices.drop_missing, labels, how_to_drop="(step Data)"
        )
    except InputError as error:
        return None, str(error)
    if len(chosen) < 2:
        return None, f"Only {len(chosen)} of the rows can be used; two are the least."
    return chosen, ""


def _always(frame: pd.DataFrame) -> Reader:
    """A table that is there already, however text is to be read."""
    return lambda sep, decimal, encoding: TableAsRead(frame)


def _region(choices: Choices) -> Region:
    """All regions together; what is wrong with a text is said."""
    parts = [parse_region(text, list(choices.inputs), outputs=[choices.output]) for text in choices.regions]
    return reduce(lambda first, second: first | second, parts)
