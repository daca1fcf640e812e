"""What has to be there before a level can be chosen: data, a region, and the prior that goes with them."""

from __future__ import annotations

from collections.abc import Callable

from nicegui import ui

from ..parts import Page, Sentence, labelled
from ..session import Session


def once_ready(session: Session, page: Page, build: Callable[[], None]) -> None:
    """``build`` the step as soon as there is a region and a fitted prior; a sentence says what is missing."""

    def render() -> None:
        if session.trouble or session.region is None:
            Sentence(session.trouble or "No region is chosen yet; say first what is sensitive.", "care")
            return
        if session.fit.value is None:
            if session.fit.state == "idle":
                session.start_fit()
            page.progress_of(session.fit, "Fitting the prior")
            again = ui.button("Fit the prior", on_click=session.start_fit).props("unelevated no-caps")
            labelled(again, test="fit-here")
            # after Cancel, or where a fit failed, one need not know of the step Model
            page.follow(again, lambda: session.fit.is_running, lambda: again.set_visibility(not session.fit.is_running))
            return
        build()

    page.refresh_on(lambda: (session.trouble, session.region, session.fit.value), render)
