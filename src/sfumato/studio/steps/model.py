"""The step *Model*: the prior that readers are assumed to know, its fit, and its rehearsal."""

from __future__ import annotations

import asyncio
import io
from functools import partial
from typing import TYPE_CHECKING

from nicegui import background_tasks, ui

from ...errors import InputError
from ...models import checked_kernel
from ...show import plot_rehearsal
from ...text import counted, number_text, shown
from ..parts import VERDICTS, Page, Sentence, as_address, entry, labelled, panel, words

if TYPE_CHECKING:
    from ...evaluate import Rehearsal
    from ...models import Prior
    from ..session import Session

KERNELS = {
    "matern52": "matern52: smooth, as most measurements are",
    "matern32": "matern32: less smooth",
    "matern12": "matern12: rough",
    "rbf": "rbf: very smooth",
    "rq": "rq: smooth on several scales",
    "periodic": "periodic: repeats itself (one input)",
    "": "a sum or product, as text",
}
MEANS = {
    "constant": "constant, learnt",
    "zero": "zero",
    "linear": "linear trend",
    "quadratic": "quadratic trend",
    "cubic": "cubic trend",
    "": "a number",
}
TRENDS = ("linear", "quadratic", "cubic")
COEFFICIENTS = {
    "published": "The trend may be known: it is published, and what deviates from it is protected.",
    "integrated": "Readers do not know the trend; promise a floor in units then.",
}


def model(session: Session, page: Page) -> None:
    """Build the step's card."""
    page.refresh_on(lambda: bool(session.trouble), lambda: _build(session, page))


def _build(session: Session, page: Page) -> None:
    if session.trouble:
        Sentence(session.trouble, "care")
        return
    with panel("What is assumed public"):
        words(
            "p",
            "The prior is what readers are assumed to believe before they see anything. Its kernel, mean, noise and "
            "all fitted values are published with the release. A promise is as good as its prior: choose one that is "
            "not more ignorant than your readers.",
        )
        page.refresh_on(lambda: (session.region, session.choices.fit_outside, session.rows), lambda: _rows(session))
    with panel("The prior"):
        # The fields stay: what is built anew under a hand loses what is being written or chosen there.
        fields = _Fields(session, page)
        page.refresh_on(lambda: session.choices.inputs, fields.build)
        with ui.element("div").classes("controls"):
            fit = ui.button("Fit the prior", on_click=fields.fit).props("unelevated no-caps")
            labelled(fit, test="fit")
        page.progress_of(session.fit, "Fitting the prior")
        page.refresh_on(lambda: (session.fit.state, session.fit.value), lambda: _fitted(session))
    with panel("Rehearsal"):
        words(
            "p",
            "Regions like yours are hidden in turn, and textbook methods predict them from the other rows. Where one "
            "is closer than the prior says anyone can be, readers may be too.",
        )
        page.refresh_on(lambda: (session.fit.state, session.rehearsal.state), lambda: _rehearse(session))
        page.progress_of(session.rehearsal, "Rehearsing")
        page.refresh_on(lambda: session.rehearsal.value, lambda: _rehearsed(session))


def _rows(session: Session) -> None:
    if session.region is None:
        text = "No region is chosen yet, so the prior is fitted to all rows. It is fitted again when you choose one."
    elif not session.choices.fit_outside:
        text = "The prior is fitted to all rows, those inside the region too: what is published tells a little of them."
    elif session.excluded is None:
        text = "The prior is fitted to all rows, those inside the region too, because too few are outside."
    else:
        text = "The prior is fitted to the rows outside the region, so that it tells nothing of those inside."
    words("p", text)


class _Fields:
    """What may be said about the prior."""

    def __init__(self, session: Session, page: Page) -> None:
        self.session, self.page = session, page
        self.own: set[str] = set()  # what is being written, and not chosen from a list

    def build(self) -> None:
        """Build them; they follow the choices."""
        session, page = self.session, self.page
        self.told = Sentence()
        by = {f"learn by {name}": f"learnt for each value of {shown(name)}" for name in session.choices.inputs}
        noises = {"learn": "learnt: one variance", **by, "": "a number: the variance"}
        with ui.element("div").classes("fields"):
            self._select("kernel", "Kernel", KERNELS)
            page.refresh_on(lambda: self._is_own("kernel", KERNELS), self._scale)
            self._select("mean", "Mean", MEANS)
            self._written("mean", "Mean as a number", MEANS)
            self._select("noise", "Errors in the data", noises)
            self._written("noise", "Noise variance", noises)
            hint = "empty: all; else so many, spread evenly"
            entry(page, "Rows to fit to", self._rows, self._fit_rows, "fit-rows", hint)
        page.refresh_on(lambda: session.choices.mean in TRENDS, self._trend)
        outside = ui.checkbox("Fit to the rows outside the region only", value=session.choices.fit_outside)
        outside.on_value_change(lambda event: self._choose(fit_outside=bool(event.value)))
        labelled(outside, test="fit-outside")
        page.shows(outside, lambda: session.choices.fit_outside)

    def fit(self) -> None:
        """Fit the prior; what is wrong with the kernel or the mean is said before."""
        with self.told.catching():
            self.session.start_fit()

    def _is_own(self, name: str, options: dict[str, str]) -> bool:
        """Whether something that is not on the list is to be written."""
        return name in self.own or getattr(self.session.choices, name) not in options

    def _select(self, name: str, label: str, options: dict[str, str]) -> None:
        """A list to choose from."""

        def now() -> str:
            return "" if self._is_own(name, options) else str(getattr(self.session.choices, name))

        def take(chosen: str) -> None:
            if chosen == now():
                return
            self.own.discard(name)
            if chosen:
                self._choose(**{name: chosen})
            else:
                self.own.add(name)
            one.set_value(now())  # what cannot be was not taken
            self.page.look()

        one = ui.select(options, label=label, value=now()).props("outlined dense")
        one.on_value_change(lambda event: take(event.value))
        labelled(one, test=name)
        self.page.shows(one, now)

    def _written(self, name: str, label: str, options: dict[str, str]) -> None:
        """A line for what is not on the list, while that is asked for."""

        def now() -> str:
            value = str(getattr(self.session.choices, name))
            return "" if value in options else value

        def line() -> None:
            if self._is_own(name, options):
                entry(self.page, label, now, partial(self._take, name), f"{name}-number")

        self.page.refresh_on(lambda: self._is_own(name, options), line)

    def _scale(self) -> None:
        """The kernel as a text, or the lengthscale of one on the list."""
        session = self.session

        def length() -> str:
            return "" if session.choices.lengthscale is None else number_text(session.choices.lengthscale)

        if self._is_own("kernel", KERNELS):
            hint = 'for example "rbf + periodic(period=1) * rbf"'
            take = partial(self._take, "kernel")
            entry(self.page, "Kernel as text", lambda: session.choices.kernel, take, "kernel-text", hint)
        else:
            entry(self.page, "Lengthscale", length, self._lengthscale, "lengthscale", "empty: learnt")

    def _trend(self) -> None:
        """Who knows a trend, where there is one."""
        if self.session.choices.mean in TRENDS:
            way = ui.radio(COEFFICIENTS, value=self.session.choices.coefficients)
            way.on_value_change(lambda event: self._choose(coefficients=event.value))
            labelled(way, "Who knows the trend", "coefficients")
            self.page.shows(way, lambda: self.session.choices.coefficients)

    def _rows(self) -> str:
        rows = self.session.choices.fit_rows
        return "" if rows is None else str(rows)

    def _lengthscale(self, text: str) -> None:
        self._choose(lengthscale=None if not text else _number("Lengthscale", text))

    def _fit_rows(self, text: str) -> None:
        count = None if not text else _number("Rows to fit to", text)
        self._choose(fit_rows=None if count is None else int(count))

    def _take(self, name: str, text: str) -> None:
        self._choose(**{name: text})

    def _choose(self, **changes: object) -> None:
        with self.told.catching():
            if "kernel" in changes and not self.session.trouble:
                checked_kernel(str(changes["kernel"]), None, self.session.inputs)
                changes["lengthscale"] = None
            for name in ("mean", "noise"):
                if name in changes:
                    _check_word(name, str(changes[name]))
            self.session.choose(**changes)


def _number(label: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{label} is {text!r}; give a number, or leave it empty.") from None


def _check_word(name: str, text: str) -> None:
    if text not in MEANS and not text.startswith("learn"):
        _number(name.capitalize(), text)


def _fitted(session: Session) -> None:
    prior: Prior | None = session.fit.value
    if prior is None:
        if session.fit.state == "idle":
            Sentence("The prior is not fitted yet.")
        return
    text = str(prior)
    Sentence(f"{text[:1].upper()}{text[1:]}.", "good").props("data-testid=fitted")
    report = prior.fit_report
    if report is not None:
        with ui.element("ul").classes("quiet"):
            for line in str(report).splitlines():
                words("li", line.strip().removeprefix("- "))


def _rehearse(session: Session) -> None:
    if session.fit.state != "done":
        Sentence("Fit the prior first.")
        return
    if session.region is None:
        words("p", "No region is chosen yet: a stand-in takes its place, the middle fifth of the first input.", "quiet")
    if session.rehearsal.state != "running":
        again = "Rehearse" if session.rehearsal.value is None else "Rehearse again"
        labelled(ui.button(again, on_click=session.start_rehearsal).props("outline no-caps"), test="rehearse")


def _rehearsed(session: Session) -> None:
    found: Rehearsal | None = session.rehearsal.value
    if found is None:
        return
    Sentence(found.sentence(), VERDICTS[found.verdict]).props("data-testid=rehearsal")
    for finding in found.findings:
        Sentence(f"{finding.label}: {finding.text}", "bad" if finding.stops else "care")
    for note in found.notes:
        words("p", note, "quiet")
    advised = found.advised
    if advised is not None:
        passes = (
            "passes the same rehearsal" if advised.passes else "is nearer to the data, though it does not pass either"
        )
        words("p", f"Advice: a prior with kernel {advised.kernel} and mean {advised.mean} {passes}. {advised.promises}")

        def use() -> None:
            session.choose(kernel=advised.kernel, mean=advised.mean, lengthscale=None)
            session.start_fit()

        button = ui.button(f"Use {shown(advised.kernel)}, mean {shown(advised.mean)}", on_click=use)
        labelled(button.props("unelevated no-caps"), test="use-advice")
    if found.results:
        _picture(found)


def _picture(found: Rehearsal) -> None:
    """The rehearsal's picture; it is drawn behind, and what it shows is said for those who do not see it."""
    picture = ui.element("img").classes("picture")
    picture.props["alt"] = shown(
        f"{counted(len(found.look_alikes), 'look-alike')} of the region in the data, with the band that the prior "
        f"claims and what the nearest rival predicted. {found.sentence()}"
    )

    async def draw() -> None:
        picture.props["src"] = as_address("png", await asyncio.to_thread(_png, found))

    background_tasks.create(draw())


def _png(found: Rehearsal) -> bytes:
    figure, file = plot_rehearsal(found).get_figure(root=True), io.BytesIO()
    assert figure is not None
    figure.savefig(file, format="png", dpi=130)
    return file.getvalue()
