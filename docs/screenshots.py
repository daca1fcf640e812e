"""Make the pictures of the studio's steps: it is driven in the system's Chromium, on the demo of the orbit.

python docs/screenshots.py docs/images     writes studio-data.png, …, studio-publish.png and studio-narrow.png
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from sfumato.studio.server import open_studio
from sfumato.studio.session import Session

WIDE, NARROW = 1440, 390
MOST_HIGH = {WIDE: 1720, NARROW: 1100}

#: So many colours and no more: pictures of text need few, and small files are read sooner.
COLOURS, MOST_BYTES = 192, 150_000

#: Milliseconds that the longest work may take.
PATIENCE = 120_000

#: The folder of this machine is shown as one of a reader's.
RENAMED = """(names) => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(names[0], names[1]);
}"""


def main(out: Path) -> None:
    """Walk the whole path, with a picture of each step."""
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
    if found is None:
        raise SystemExit("no chromium here: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        os.chdir(folder)
        studio = open_studio(Session())
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDE, "height": 1000}, reduced_motion="reduce")
        page.goto(studio.url)

        def shot(name: str, panels: int, on: Any = page, width: int = WIDE) -> None:
            """A picture of the page down to the end of so many of its panels."""
            on.set_viewport_size({"width": width, "height": 2400})
            on.evaluate("scrollTo(0, 0); document.activeElement.blur()")
            on.wait_for_timeout(1500)  # charts fit themselves to the page
            on.evaluate(RENAMED, [str(Path(folder).resolve()), "~/orbits"])
            last = on.locator("main .panel").nth(panels - 1).bounding_box()
            height = min(int(last["y"] + last["height"]) + 16, MOST_HIGH[width])
            _save(on.screenshot(clip={"x": 0, "y": 0, "width": width, "height": height}), out / f"studio-{name}.png")

        def there(name: str) -> Any:
            one = page.get_by_test_id(name).first
            one.wait_for(timeout=PATIENCE)
            return one

        there("demo-orbit").click()
        page.get_by_text("is open: 61 rows.").wait_for(timeout=PATIENCE)
        shot("data", 3)
        there("next").click()
        there("fit").click()
        there("fitted")
        there("rehearse").click()
        there("rehearsal")
        page.locator("img.picture").first.wait_for(timeout=PATIENCE)
        shot("model", 3)
        there("next").click()
        there("regions")
        page.locator(".nsewdrag").first.wait_for()
        shot("sensitive", 4)
        there("next").click()
        page.get_by_test_id("evidence").filter(has_text="Checked:").wait_for(timeout=PATIENCE)
        there("tradeoff-chart")
        shot("how-much", 4)
        narrow = browser.new_page(viewport={"width": NARROW, "height": 900}, reduced_motion="reduce")
        narrow.goto(page.url)
        narrow.get_by_test_id("evidence").wait_for(timeout=PATIENCE)
        shot("narrow", 3, narrow, NARROW)
        there("next").click()
        there("verdict")
        there("audit").click()
        page.get_by_text("in multiples of the floor").wait_for(timeout=PATIENCE)
        shot("check", 2)
        there("next").click()
        there("publish").click()
        there("files-written")
        shot("publish", 3)
        browser.close()
        os.chdir(out)
        studio.server.stop()


def _save(picture: bytes, path: Path) -> None:
    whole = Image.open(io.BytesIO(picture)).convert("RGB")
    whole.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(path, optimize=True)
    size = path.stat().st_size
    print(f"{path.name}: {whole.width} × {whole.height}, {size / 1000:.0f} kB")
    if size > MOST_BYTES:
        raise SystemExit(f"{path} has {size} bytes; {MOST_BYTES} are the most")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images"))
