"""Pages of the studio are watched in a real browser, by fixtures that would notice."""

from __future__ import annotations

import pytest

from browsers import in_a_browser

pytestmark = [pytest.mark.processes, in_a_browser]


def test_complaints_of_a_page_and_requests_elsewhere_are_noticed(page, complaints):
    page.wait_for_load_state("networkidle")
    assert complaints == []
    page.evaluate("console.error('a complaint')")
    page.evaluate("setTimeout(() => { throw new Error('a mistake') }, 0)")
    page.evaluate("fetch('http://192.0.2.1/').catch(() => 0)")
    page.wait_for_timeout(300)
    noticed = " ".join(complaints)
    assert "console: a complaint" in noticed
    assert "error on the page: a mistake" in noticed
    assert "Content Security Policy" in noticed
    complaints.clear()
