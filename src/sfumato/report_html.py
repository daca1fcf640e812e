"""Pages that are safe to open: every text is escaped, and what is not text was made here.

>>> tag("p", "a < b", class_="note")
'<p class="note">a &lt; b</p>'
>>> tag("p", tag("b", "x"), "<script>")
'<p><b>x</b>&lt;script&gt;</p>'
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from typing import TypeAlias

#: Characters that are not to be seen but change what is: controls, and marks that turn the direction of writing.
_UNSEEN = dict.fromkeys(
    [*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)],
    "\ufffd",
)
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_LONG = re.compile(r"(?<![\w.])\d+\.\d{7,}(?:e[-+]?\d+)?(?![\w.])")
_EMPTY = {"br", "meta", "hr"}


class Html(str):
    """Text that is markup already: made by ``tag``, or by Matplotlib."""

    __slots__ = ()


Child: TypeAlias = str | Html


def clean(text: str) -> str:
    """``text`` without characters that nobody can see, and none that a file cannot hold."""
    return text.translate(_UNSEEN).encode("utf-8", "replace").decode("utf-8")


def escaped(text: Child) -> Html:
    """``text`` as it is to be read, whatever is in it; markup stays. Numbers keep their signs on their line."""
    if isinstance(text, Html):
        return text
    said = clean(str(text)).replace("± ", "±\u00a0").replace(" %", "\u00a0%").replace(" × 10", "\u00a0×\u00a010")
    return Html(html.escape(said, quote=True))


def joined(*children: Child) -> Html:
    return Html("".join(escaped(child) for child in children))


def tag(name: str, *children: Child, **attributes: str) -> Html:
    """An element; ``class_`` and ``for_`` are written without the underscore, ``aria_label`` with a hyphen."""
    said = "".join(f' {key.rstrip("_").replace("_", "-")}="{escaped(str(value))}"' for key, value in attributes.items())
    if name in _EMPTY:
        return Html(f"<{name}{said}>")
    return Html(f"<{name}{said}>{joined(*children)}</{name}>")


def table(
    caption: str,
    header: Sequence[Child],
    rows: Sequence[Sequence[Child]],
    numbers: Sequence[int] = (),
    classes: Sequence[str] = (),
    kind: str = "",
) -> Html:
    """A table whose first column names the rows; ``numbers`` are columns to be set flush right."""
    head = tag("tr", *(tag("th", cell, scope="col", **_side(place, numbers)) for place, cell in enumerate(header)))
    body = []
    for number, row in enumerate(rows):
        first = tag("th", row[0], scope="row")
        cells = [tag("td", cell, **_side(place, numbers)) for place, cell in enumerate(row[1:], start=1)]
        chosen = {"class_": classes[number]} if number < len(classes) and classes[number] else {}
        body.append(tag("tr", first, *cells, **chosen))
    inner = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body))
    return tag("div", inner, class_=f"table {kind}".strip())


def _side(place: int, numbers: Sequence[int]) -> dict[str, str]:
    return {"class_": "number"} if place in numbers else {}


def number(value: float, digits: int = 4) -> str:
    """A number for people.

    >>> number(0.00031812345), number(20000.0), number(1.25e-9), number(float("nan"))
    ('0.0003181', '20,000', '1.25 × 10⁻⁹', 'not known')
    """
    if math.isnan(value):
        return "not known"
    if math.isinf(value):
        return "no limit" if value > 0 else "none"
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e7:
        factor, exponent = f"{value:.{digits - 1}e}".split("e")
        factor = factor.rstrip("0").rstrip(".") if "." in factor else factor
        return f"{factor} × 10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
    decimals = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def multiple(ratio: float) -> str:
    """A multiple of a floor; never rounded up to 1 from below, but for round-off.

    >>> multiple(1.00004), multiple(0.9999999), multiple(1 - 1e-12)
    ('1.00004 × floor', '0.99999 × floor', '1.00000 × floor')
    """
    shown = math.floor(ratio * 1e5) / 1e5 if ratio < 1 - 1e-9 else ratio
    return f"{shown:.5f} × floor"


def shortened(text: str) -> str:
    """Numbers with many digits rounded, for prose; the certificate has them in full.

    >>> shortened("75 ≤ age ≤ 89.80469550524477")
    '75 ≤ age ≤ 89.8047'
    """
    return _LONG.sub(lambda found: f"{float(found[0]):.6g}", text)


def share(value: float) -> str:
    """A share as per cent.

    >>> share(0.3441), share(0.0), share(2.5e-7)
    ('34.4 %', '0 %', '2.5 × 10⁻⁵ %')
    """
    return f"{number(100 * value, 3)} %"


def listed(items: Sequence[str], most: int = 12) -> str:
    """Names with commas, the first ``most`` of them."""
    rest = len(items) - most
    return ", ".join(items[:most]) + (f" and {rest} more" if rest > 0 else "")


def counted(count: int, one: str, many: str | None = None) -> str:
    """
    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"
