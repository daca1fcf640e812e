"""How long does the studio's page take from a key on the slider to new numbers and a new chart, in a real browser?

The clock is the browser's. Between moves there are 1.5 s, so that each of them interrupts the check that runs behind
the page; ``dragged`` are moves at once after the last was drawn. ``protect`` is one ``sf.protect`` in the same process,
and the ratio is that of a move to it. It needs Chromium (apt-get install chromium).

    python -m benchmarks.studio_page
    python -m benchmarks.studio_page --rows 500 --columns 1
"""

from __future__ import annotations

import shutil
import statistics
import time
import warnings
from typing import Any

import numpy as np

import sfumato as sf

from .harness import Options, run, table

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
FLAGS = "--no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update"

#: When the numbers and the lines of the charts were last drawn anew, after the last move of the slider.
WATCH = """() => {
  const state = window.watched = {moved: 0, numbers: null, chart: null};
  document.querySelector("[data-testid=slider]").addEventListener("input", () => {
    Object.assign(state, {moved: performance.now(), numbers: null, chart: null});
  });
  const seen = {};
  const look = () => {
    const numbers = document.querySelector("[data-testid=noise]")?.textContent;
    const drawn = "[data-testid=known-chart] :is(path.js-line, image, .contourlayer path)";
    const chart = [...document.querySelectorAll(drawn)].map(
      (one) => one.getAttribute("d") ?? one.getAttribute("href") ?? one.getAttribute("xlink:href")).join();
    for (const [name, now] of Object.entries({numbers, chart})) {
      if (now !== seen[name]) {
        seen[name] = now;
        state[name] ??= performance.now() - state.moved;
      }
    }
    requestAnimationFrame(look);
  };
  look();
}"""

#: Moves of the slider that are measured, and seconds after which one has failed.
MOVES, PATIENCE = 7, 60.0


def measure(options: Options) -> dict[str, Any]:
    warnings.simplefilter("ignore", sf.GuaranteeWarning)
    if BROWSER is None:
        raise SystemExit("no chromium here: install it (apt-get install chromium) to measure the page")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS.split())
        found = [_measured(browser, rows, columns) for rows in options.rows for columns in options.columns]
        browser.close()
    table(
        ["rows × inputs", "numbers", "chart", "slowest", "dragged", "protect", "ratio"],
        [
            [
                f"{one['rows']:,} × {one['columns']}",
                *(f"{one[name]:.2f} s" for name in ("numbers", "chart", "slowest", "dragged", "protect")),
                f"1/{one['protect'] / one['chart']:.1f}",
            ]
            for one in found
        ],
    )
    return {"page": found}


def _measured(browser: Any, rows: int, columns: int) -> dict[str, float]:
    from sfumato.studio.server import open_studio
    from sfumato.studio.session import Session

    random = np.random.default_rng(0)
    X = random.uniform(0.0, 3.0, (rows, columns))
    session = Session()
    session.open_arrays(X, np.sin(3.0 * X).sum(axis=1) + 0.2 * random.standard_normal(rows))
    region = " and ".join(f"1 <= {name} <= 2" for name in session.choices.inputs)
    session.choose(regions=(region,), level="alpha", value=0.3)
    session.start_fit()
    session.fit.wait()
    studio = open_studio(session)
    page = browser.new_page(viewport={"width": 1440, "height": 1000})
    page.goto(f"{studio.url}?step=how_much")
    slider = page.get_by_test_id("slider")
    slider.wait_for()

    def rest() -> None:
        """As somebody does who looks at what has changed; the check then runs behind the page."""
        page.wait_for_timeout(1500)

    def moved() -> dict[str, float]:
        page.keyboard.press("ArrowRight")
        done = "() => watched.numbers !== null && watched.chart !== null"
        page.wait_for_function(done, timeout=1000 * PATIENCE)
        seen = page.evaluate("() => watched")
        return {name: seen[name] / 1000.0 for name in ("numbers", "chart")}

    session.effect.wait()
    while session.curve.value is None:
        page.wait_for_timeout(100)
    rest()
    page.evaluate(WATCH)
    slider.focus()
    moves = []
    for _ in range(MOVES):
        moves.append(moved())
        rest()
    dragged = [moved()["chart"] for _ in range(MOVES)]
    for job in session.jobs:
        job.cancel()
    rest()
    began = time.perf_counter()
    session.levels.protect(0.3, progress=False)
    made = time.perf_counter() - began
    page.close()
    studio.stop()
    return {
        "rows": rows,
        "columns": columns,
        "numbers": statistics.median(move["numbers"] for move in moves),
        "chart": statistics.median(move["chart"] for move in moves),
        "slowest": max(move["chart"] for move in moves),
        "dragged": statistics.median(dragged),
        "protect": made,
    }


if __name__ == "__main__":
    run(__doc__, measure, "studio_page", rows=[500, 2000], columns=[1, 2])
