"""The step How much: a floor or α by slider or number, what that does, what it costs, and what is suggested.

Numbers are those of a look at the level, and say so, until the check behind the page has proved it: then they are those
of the design that is published.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from nicegui import background_tasks, run, ui

from ...arrays import Array
from ...errors import SfumatoError
from ...evaluate import Effect, Option, Rehearsal, Suggestion, errors_outside, number, share
from ...proof import changes_of
from ...text import name_and_unit, shown
from ..charts import Chart, Places, by_width, known_chart, places_to_ask, tradeoff_chart
from ..checking import Checked
from ..parts import VERDICTS, Page, Picture, Sentence, labelled, panel, table, when_complete, words
from ..session import Session
from .inputs_shown import InputsShown
from .ready import once_ready

#: Seconds without a move after which the level is checked behind the page, where there are no more rows than this.
REST, CHECKED_ROWS = 0.7, 5000

#: The least and the largest α on the slider, and its step; of a floor, shares of the largest that can be promised.
ALPHAS, ALPHA_STEP = (0.01, 0.99), 0.01
FLOORS, FLOOR_STEPS = (0.05, 0.995), 200

LEVELS = {
    "floor": "A floor, in units: the error that every reader must keep",
    "alpha": "α: the share that may be learnt",
}

#: What the noise can be the best for, at the same promise, and what each means.
OBJECTIVES = {"noise": "The least noise", "predictions": "The best predictions outside"}
_MEANS = {
    "noise": "All rows are published, with as little noise as the promise allows.",
    "predictions": "Readers' errors outside are the least that the promise allows. Some combinations of rows are not "
    "published at all; there readers fall back on the prior, so it has to be right.",
}

#: The browser says at once where its slider is, and tells the studio a little later.
_SAYS = """(event) => {
  const slider = event.target;
  slider.setAttribute("aria-valuetext", slider.dataset.before + slider.value + slider.dataset.after);
}"""
_TELLS = "(event) => emit(Number(event.target.value))"

#: What numbers are that nobody has proved yet.
LOOKED_AT = "Looked at; the proof comes at Check."


def how_much(session: Session, page: Page) -> None:
    """Build the step."""
    once_ready(session, page, lambda: _HowMuch(session, page).build())


class _HowMuch:
    """The controls of one tab, and what they show."""

    def __init__(self, session: Session, page: Page) -> None:
        self.session, self.page = session, page
        self.unit = name_and_unit(session.choices.output)[1]
        self.moves = 0
        #: The value that the slider was put to last, by a hand, a key or the studio.
        self.place = math.nan
        self.around: tuple[object, Places, Array, Array] | None = None

    def build(self) -> None:
        session, page = self.session, self.page
        with panel("The level"):
            self.problem = Sentence()
            kinds = ui.radio(LEVELS, value=session.choices.level, on_change=lambda event: self._kind(event.value))
            labelled(kinds.props("inline"), "What the level is", "level")
            page.shows(kinds, lambda: session.choices.level)
            page.refresh_on(lambda: session.choices.level, self._controls)
        with panel("What the noise is the best for"):
            aims = ui.radio(OBJECTIVES, value=session.choices.objective)
            aims.on_value_change(lambda event: self._aim(event.value))
            labelled(aims.props("inline"), "What the noise is the best for", "objective")
            page.shows(aims, lambda: session.choices.objective)
            page.refresh_on(lambda: (session.choices.objective, self._rehearsed, session.check.value), self._aimed)
        with panel("What it does"):
            page.refresh_on(self._shown_key, self._effect)
            page.progress_of(session.effect, "Looking at this level")
            page.progress_of(session.check, "Proving this level behind the page")
            # first the input that the region bounds most clearly: along it the floor is seen
            assert session.region is not None  # the step is built once there is one
            names, curve = by_width(session.inputs, session.region), f"how well readers know {session.choices.output}"
            self.inputs = InputsShown(names, curve, lambda: known.update())
            known = _Drawing(page, lambda: self._now, self._known_chart, "known-chart")
        with panel("What it costs"):
            page.progress_of(session.curve, "Working out the trade-off")
            page.refresh_on(lambda: session.choices.ledger, self._no_tradeoff)
            _Drawing(page, lambda: (session.curve.value, self._now), self._tradeoff_chart, "tradeoff-chart")
        with panel("A suggestion"):
            self._suggestion()
        with ui.expansion("These values are published more than once").classes("panel"):
            self._ledger()
        if session.effect.key != session.key(session.effect):
            self._look()
        else:
            self._rest()

    # ------------------------------------------------------------------------------------------ the level

    def _ends(self) -> tuple[float, float, float]:
        """The least and the largest value of the slider, and its step."""
        if self.session.choices.level == "alpha":
            return *ALPHAS, ALPHA_STEP
        most = self.session.levels.most_floor
        step = _round_step(most / FLOOR_STEPS)
        low, high = (math.floor(end * most / step) * step for end in FLOORS)
        return max(low, step), high, step

    def _controls(self) -> None:
        """The slider, one of the browser's own, which keys and screen readers know; and the same as a number."""
        session = self.session
        low, high, step = self._ends()
        is_floor = session.choices.level == "floor"
        name = f"floor of {session.choices.output}" if is_floor else "α"
        slider = labelled(ui.element("input").classes("slider").props("type=range"), f"Level: {name}", "slider")
        # as an attribute: what is drawn anew puts a property back to what the server knew, under the hand that moves it
        slider.props.update(
            {"min": low, "max": high, "step": step, "^value": _between(session.choices.value, low, high)}
        )
        sides = "weak: readers may learn more", "strong: readers must know less"
        with ui.element("div").classes("ends quiet"):
            for text in sides if is_floor else reversed(sides):
                words("span", text)
        field = ui.number(shown(f"Floor{self.unit}") if is_floor else "α", min=0.0)
        labelled(field.classes("short").props("outlined dense step=any"), test="level-value")

        before, after = map(shown, self._around)
        slider.props.update({"data-before": before, "data-after": after})
        self.place = session.choices.value
        slider.props["aria-valuetext"] = f"{before}{self.place:g}{after}"

        def show() -> None:
            value = session.choices.value
            field.set_value(value)
            if value != self.place:  # else it is there, or has gone on meanwhile
                self.place = value
                slider.props["aria-valuetext"] = f"{before}{value:g}{after}"
                put = f"getHtmlElement({slider.id}).value = {_between(value, low, high)!r}"
                self.page.client.run_javascript(put)

        self.page.follow(slider, lambda: session.choices.value, show)
        slider.on("input", js_handler=_SAYS)
        slider.on("input", lambda event: self._slide(event.args, low, high), js_handler=_TELLS, throttle=0.05)

        def typed() -> None:
            if is_floor == (session.choices.level == "floor"):  # a field that goes away is left too
                self._move(field.value)

        when_complete(field, typed)

    @property
    def _around(self) -> tuple[str, str]:
        """What is said before and after the number of a level."""
        return ("a floor of ±", self.unit) if self.session.choices.level == "floor" else ("α = ", "")

    def _slide(self, given: Any, low: float, high: float) -> None:
        """The slider was moved; its values have no more digits than its steps."""
        if isinstance(given, (int, float)):
            self.place = float(f"{_between(given, low, high):.6g}")
            self._move(self.place)

    def _move(self, given: Any) -> None:
        """Another value was chosen."""
        if not isinstance(given, (int, float)):
            self.problem.say("The level is empty; give a number.", "bad")
            return
        if given != self.session.choices.value:
            with self.problem.catching():
                self.session.choose(value=float(given))
                self._look()

    def _kind(self, level: str) -> None:
        """The other kind of level, at about the same promise."""
        choices = self.session.choices
        if level == choices.level:
            return
        with self.problem.catching():
            most = self.session.levels.most_floor
            if level == "floor":
                value = math.sqrt(1.0 - choices.value) * most
            else:
                value = _between(1.0 - min(choices.value / most, 1.0) ** 2, *ALPHAS)
            self.session.choose(level=level, value=float(f"{value:.3g}"))
            self._look()

    def _aim(self, objective: str) -> None:
        """Another objective, at the same level."""
        if objective != self.session.choices.objective:
            with self.problem.catching():
                self.session.choose(objective=objective)
                self._look()

    @property
    def _rehearsed(self) -> Rehearsal | None:
        """The rehearsal of this level, by itself or in the check."""
        checked = self.session.check.value
        return self.session.rehearsal.value if checked is None or checked.rehearsal is None else checked.rehearsal

    def _aimed(self) -> None:
        """What the objective means; the best predictions with what the rows tell of the prior, and of their worth."""
        objective, tried, checked = self.session.choices.objective, self._rehearsed, self.session.check.value
        words("p", _MEANS[objective])
        if objective == "noise":
            return
        if tried is None:
            Sentence("The prior was not rehearsed at this level yet; the check does that.", "care")
        else:
            Sentence(tried.sentence(), VERDICTS[tried.verdict]).props("data-testid=objective-verdict")
        worth = None if checked is None else checked.worth
        if worth is not None:
            told = Sentence(f"Here the best predictions {worth.in_words}. {worth}", "good" if worth.pays else "care")
            told.props("data-testid=objective-worth")

    def _look(self) -> None:
        """Look at the level now, and check it when nothing moves any more."""
        session = self.session
        if session.choices.ledger is None:
            session.start_effect()
        self.moves += 1
        self._rest()

    def _rest(self) -> None:
        asyncio.get_running_loop().call_later(REST, self._rested, self.moves)

    def _rested(self, moves: int) -> None:
        """Work out the trade-off, then the check, one after the other: the slider comes first."""
        session = self.session
        if moves != self.moves or self.page.client.is_deleted:
            return
        with suppress(SfumatoError):  # the steps before say what is missing
            if session.effect.is_running or session.curve.is_running:
                self._rest()
            elif session.curve.state == "idle" and session.choices.ledger is None:
                session.start_curve()
                self._rest()
            elif session.rows <= CHECKED_ROWS and session.check.key != session.key(session.check):
                session.start_check()

    # ----------------------------------------------------------------------------------------- the effect

    @property
    def _now(self) -> Effect | None:
        """The effect of the design that was checked; else the last one that was looked at; none with a ledger."""
        checked = self.session.check.value
        if self.session.choices.ledger is not None:
            return None
        return self.session.effect.value if checked is None or checked.effect is None else checked.effect

    @property
    def _is_old(self) -> bool:
        """Whether what is shown is of a level that the slider has passed."""
        return self.session.check.value is None and self.session.effect.state == "running"

    def _shown_key(self) -> object:
        return self._now, self.session.check.value, self._is_old, self.session.choices.ledger

    def _effect(self) -> None:
        session, effect, unit = self.session, self._now, self.unit
        checked = session.check.value
        if checked is not None:
            found = checked.certificate
            self._evidence(f"Checked: {found.evidence_in_words}.", "good" if found.holds else "bad")
        elif effect is not None:
            self._evidence(LOOKED_AT, "care")
        if session.choices.ledger is not None:
            self._with_ledger(checked)
            return
        if effect is None:
            return
        assert session.region is not None  # there is an effect
        alpha = "" if math.isnan(effect.alpha) else f" (α = {effect.alpha:g})"
        costs = errors_outside(effect.unprotected_rmse, effect.rmse_outside, effect.loss, unit)
        where = session.region.in_words(session.inputs.names)
        words("p", f"At ±{number(effect.floor)}{unit} inside {where}{alpha}: {costs}.", "old" if self._is_old else "")
        if not effect.holds:
            Sentence("No noise was found that keeps this promise; choose a weaker one.", "bad")
        name = name_and_unit(session.choices.output)[0]
        rows = [
            ("floor", "Promised floor", f"±{number(effect.floor)}{unit}"),
            ("least-std", f"Readers know {name} inside, at best, to", f"±{number(effect.least_std)}{unit}"),
            ("record-std", "They know a record inside, at best, to", f"±{number(effect.record_std)}{unit}"),
            ("unprotected-rmse", "Error outside without protection", f"{number(effect.unprotected_rmse)}{unit}"),
            ("rmse-outside", "Error outside with protection", f"{number(effect.rmse_outside)}{unit}"),
            ("loss", "Accuracy lost there", share(effect.loss)),
            *self._changes(effect.noise, effect.spill),
        ]
        table("What readers with this prior know", ("", ""), [row[1:] for row in rows], marks=[row[0] for row in rows])
        words(
            "p",
            "Errors outside are those at rows there and between them. Accuracy lost: of the variance that all data "
            "without noise would explain there, the share that is not explained.",
            "quiet",
        )
        if checked is not None and checked.compared:
            words("p", checked.compared, "quiet")

    def _changes(self, size: float, spill: float) -> list[tuple[str, str, str]]:
        """How far published values are from the true ones: by noise, or by what stands in for combinations too."""
        noise = self.session.choices.objective == "noise"
        what = f"{'Noise' if noise else 'Change of'} a row (root mean square)"
        where = f"Of the {'noise' if noise else 'change'}, on rows outside"
        return [("noise", what, f"{number(size)}{self.unit}"), ("spill", where, share(spill))]

    def _evidence(self, text: str, kind: str) -> None:
        labelled(words("p", text, f"evidence {kind}").props("role=status"), test="evidence")

    def _with_ledger(self, checked: Checked | None) -> None:
        """The numbers of a release that a ledger counts in, which only the check has."""
        words("p", "With a ledger the numbers come from the check, which counts all earlier releases.")
        if checked is None:
            return
        found, changed = checked.certificate, changes_of(checked.mechanism.design)
        rows = [
            ("floor", "Promised floor at the worst input", f"±{number(found.worst_floor)}{self.unit}"),
            ("least-std", "Readers of all releases know it there to", f"±{number(found.worst_std)}{self.unit}"),
            *self._changes(math.sqrt(changed.mean()), found.spill),
        ]
        caption = "What readers with this prior know of all releases together"
        table(caption, ("", ""), [row[1:] for row in rows], marks=[row[0] for row in rows])

    def _no_tradeoff(self) -> None:
        if self.session.choices.ledger is not None:
            words("p", "Not worked out with a ledger: it would not count what was published before.", "quiet")

    def _known_chart(self) -> Chart | None:
        session, effect = self.session, self._now
        if effect is None:
            return None
        places, unprotected, prior = self._without_level()
        # that of the level that was looked at: the slider may have passed it
        level = {"floor": effect.floor} if math.isnan(effect.alpha) else {"alpha": effect.alpha}
        return known_chart(
            places,
            session.choices.output,
            effect.std_at(places.values),
            floor=session.levels.floor_at(places.values, **level),
            unprotected=unprotected,
            prior=prior,
        )

    def _without_level(self) -> tuple[Places, Array, Array]:
        """What stays when the slider moves: where the chart asks, and what readers of all data, and of none, know."""
        session, levels, names = self.session, self.session.levels, self.inputs.names
        if self.around is None or self.around[0] != (levels, names):
            assert session.region is not None
            assert session.fit.value is not None
            places = places_to_ask(session.inputs, session.region, *names)
            prior = np.sqrt(session.fit.value.variance(places.values))
            self.around = (levels, names), places, levels.unprotected_std_at(places.values), prior
        return self.around[1:]

    def _tradeoff_chart(self) -> Chart | None:
        found, effect = self.session.curve.value, self._now
        if found is None:
            return None
        place = math.nan if effect is None else effect.floor if found.by_floor else effect.alpha
        if effect is None or math.isnan(place):
            return tradeoff_chart(found, self.session.choices.value, None)
        return tradeoff_chart(found, place, effect.rmse_outside)

    # ------------------------------------------------------------------------- suggestions and the ledger

    def _suggestion(self) -> None:
        session, page = self.session, self.page
        words("p", "How strong can the promise be if readers elsewhere may lose a given share of their accuracy?")
        with ui.element("div").classes("controls"):
            most = ui.number("Accuracy that may be lost [%]", value=10, min=0.1, max=99, step=1).props("outlined dense")
            labelled(most.classes("short"), test="max-loss")
            problem = Sentence()

            def start() -> None:
                with problem.catching():
                    session.start_suggestion((most.value or 0.0) / 100.0)

            labelled(ui.button("Suggest", on_click=start).props("outline no-caps"), test="suggest")
        page.progress_of(session.suggestion, "Trying levels")
        page.refresh_on(lambda: session.suggestion.value, lambda: self._options(session.suggestion.value))

    def _options(self, found: Suggestion | None) -> None:
        for option in () if found is None else found.options:
            assert found is not None
            with ui.element("div").classes("option"):
                words("p", found.sentence(option))
                if not option.why:
                    words("p", f"Right {option.right_for}.", "quiet")
                if option.affordable:
                    use = ui.button(f"Use {option.protects}", on_click=partial(self._use, option))
                    labelled(use.props("outline dense no-caps"), test=f"use-{option.protects}")

    def _use(self, option: Option) -> None:
        with self.problem.catching():
            level = {"level": "floor", "value": option.floor} if option.by_floor else {"level": "alpha"}
            self.session.choose(**({"value": option.alpha} | level), protects=option.protects)
            self._look()

    def _ledger(self) -> None:
        session = self.session
        words(
            "p",
            "A ledger is a file that counts what all releases of the same values tell together. Each release may use a "
            "share of what is left. It is written at Publish, into the folder of the studio.",
        )
        with ui.element("div").classes("controls"):
            name = ui.input("Name of the ledger file", value=session.choices.ledger or "")
            labelled(name.props("outlined dense spellcheck=false"), test="ledger")
            part = ui.number("Share of what is left", value=session.choices.share or 0.5, min=0.01, max=1.0, step=0.05)
            labelled(part.props("outlined dense"), test="ledger-share")
        problem = Sentence()

        def choose() -> None:
            with problem.catching():
                given = (name.value or "").strip()
                session.choose(ledger=given or None, share=part.value if given else None)
                self._look()

        for field in (name, part):
            when_complete(field, choose)


class _Drawing:
    """A chart that is worked out behind the page and shown in its place; the newest wins."""

    def __init__(self, page: Page, key: Callable[[], object], make: Callable[[], Chart | None], test: str) -> None:
        self.make, self.test = make, test
        self.picture: Picture | None = None
        self.is_busy, self.is_wanted = False, False
        self.box = ui.element("div").classes("part")
        page.follow(self.box, key, self.update)

    def update(self) -> None:
        self.is_wanted = True
        if not self.is_busy:
            background_tasks.create(self._draw())

    async def _draw(self) -> None:
        self.is_busy = True
        try:
            while self.is_wanted and not self.box.is_deleted:
                self.is_wanted = False
                with suppress(SfumatoError):  # the level itself says what is wrong
                    self._show(await run.io_bound(self.make))
        finally:
            self.is_busy = False

    def _show(self, chart: Chart | None) -> None:
        if self.box.is_deleted:
            return
        if chart is None:  # what was drawn is of something else
            self.box.clear()
            self.picture = None
        elif self.picture is None:
            with self.box:
                self.picture = Picture(chart, self.test)
        else:
            self.picture.show(chart)


def _between(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def _round_step(size: float) -> float:
    """1, 2 or 5 times a power of ten, at least ``size``."""
    power = 10.0 ** math.floor(math.log10(size))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= size * (1 - 1e-12))
