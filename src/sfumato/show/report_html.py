"""How a report looks: on a screen, and on A4 paper. Nothing is fetched: no fonts, no pictures, no scripts."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from typing import TypeAlias

# Pages that are safe to open: every text is escaped, and what is not text was made here.
#
# >>> tag("p", "a < b", class_="note")
# '<p class="note">a &lt; b</p>'
# >>> tag("p", tag("b", "x"), "<script>")
# '<p><b>x</b>&lt;script&gt;</p>'

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


#: A browser that opens the page is told to fetch nothing, and to run nothing.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'"

STYLE = """
:root { color-scheme: light; --ink: #1b2230; --soft: #4d5769; --line: #d8dde6; --pale: #f5f7fa; --blue: #0b5cad;
  --green: #0b6b3a; --green-pale: #e7f5ec; --red: #a3121f; --red-pale: #fdecec; --amber: #7a4b00;
  --amber-pale: #fff3dc; --blue-pale: #e8f1fb; }
* { box-sizing: border-box; }
html { font-size: 16px; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: #e9edf2; color: var(--ink); line-height: 1.55; overflow-wrap: anywhere;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "DejaVu Sans", sans-serif; }
main, header { max-width: 58rem; margin: 0 auto; background: #fff; padding: 0 3.2rem; }
header { padding-top: 2.4rem; border-top: 6px solid var(--ink); }
main { padding-bottom: 2.4rem; display: flow-root; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0.2rem 0 0.3rem; letter-spacing: -0.01em; }
h2 { font-size: 1.28rem; line-height: 1.3; margin: 2.6rem 0 0.7rem; padding-top: 0.9rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1.02rem; margin: 1.5rem 0 0.3rem; }
p { margin: 0.55rem 0; max-width: 46rem; }
.kind { text-transform: uppercase; letter-spacing: 0.09em; font-size: 0.76rem; font-weight: 600; color: var(--soft);
  margin: 0; }
.meta { color: var(--soft); font-size: 0.92rem; margin: 0; }
.owner { background: var(--red); color: #fff; font-weight: 700; text-align: center; padding: 0.7rem 1rem; margin: 0;
  max-width: none; letter-spacing: 0.02em; }
.verdict { border-radius: 10px; padding: 1.3rem 1.6rem 1.2rem; margin: 1.5rem 0 1.1rem;
  border: 1px solid; border-left-width: 8px; }
.verdict h2 { border: 0; padding: 0; margin: 0 0 0.5rem; font-size: 1.5rem; }
.verdict .promise { font-size: 1.16rem; line-height: 1.45; margin: 0 0 0.7rem; max-width: none; color: var(--ink);
  font-weight: 500; }
.verdict p { max-width: none; color: var(--ink); }
.yes { background: var(--green-pale); border-color: var(--green); color: var(--green); }
.no { background: var(--red-pale); border-color: var(--red); color: var(--red); }
.with { background: var(--amber-pale); border-color: #b97700; color: var(--amber); }
.tiles { display: grid; grid-template-columns: repeat(4, 1fr); gap: 0.8rem; margin: 0 0 0.5rem; padding: 0; }
.tiles div { border: 1px solid var(--line); border-radius: 8px; padding: 0.75rem 0.9rem; background: var(--pale); }
.tiles dt { font-size: 0.8rem; color: var(--soft); line-height: 1.35; }
.tiles dd { margin: 0; font-size: 1.12rem; font-weight: 650; line-height: 1.3; font-variant-numeric: tabular-nums; }
.tiles dd small { display: block; font-size: 0.8rem; font-weight: 400; color: var(--soft); }
.tiles div { display: flex; flex-direction: column; }
.table { overflow-x: auto; margin: 0.9rem 0 1.1rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.92rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); font-size: 0.86rem; padding-bottom: 0.4rem; }
th, td { text-align: left; vertical-align: top; padding: 0.5rem 0.8rem 0.5rem 0; border-bottom: 1px solid var(--line); }
thead th { font-size: 0.8rem; color: var(--soft); font-weight: 600; border-bottom: 2px solid var(--line); }
tbody th { font-weight: 600; min-width: 7.5rem; }
.fields th:first-child { width: 16%; }
.fields th:nth-child(2) { width: 36%; }
th.number, td.number { text-align: right; white-space: nowrap; }
tr.bad td, tr.bad th { color: var(--red); }
.chip { display: inline-block; border-radius: 999px; padding: 0.1rem 0.65rem; font-size: 0.78rem; font-weight: 650;
  white-space: nowrap; border: 1px solid; }
.high { background: var(--red-pale); color: var(--red); border-color: var(--red); }
.medium { background: var(--amber-pale); color: var(--amber); border-color: #b97700; }
.low { background: var(--blue-pale); color: #0b4a8a; border-color: var(--blue); }
.note { background: var(--pale); color: var(--soft); border-color: #8a94a6; }
.points { max-width: none; list-style: none; padding: 0; margin: 0.8rem 0; }
.points li { border: 1px solid var(--line); border-left: 5px solid #8a94a6; border-radius: 6px;
  padding: 0.7rem 1rem 0.75rem; margin: 0 0 0.7rem; }
.points li.is-high { border-left-color: var(--red); background: #fff7f7; }
.points li.is-medium { border-left-color: #d08700; }
.points li.is-low { border-left-color: var(--blue); }
.points h3 { margin: 0 0 0.2rem; display: flex; gap: 0.6rem; align-items: baseline; flex-wrap: wrap; }
.points p { margin: 0.2rem 0; max-width: none; font-size: 0.94rem; }
figure { margin: 1.1rem 0 1.3rem; padding: 0; }
figure svg { width: 100%; height: auto; display: block; }
figure svg * { stroke-linejoin: round; stroke-linecap: butt; }
figcaption { color: var(--soft); font-size: 0.88rem; margin-top: 0.35rem; max-width: 46rem; }
pre { background: #1b2230; color: #f2f5f9; border-radius: 8px; padding: 0.9rem 1.1rem; font-size: 0.86rem;
  white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.6; }
code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 0.92em; }
ul { padding-left: 1.2rem; max-width: 46rem; }
li { margin: 0.2rem 0; }
.columns { display: grid; grid-template-columns: 1fr 1fr; gap: 1.6rem; }
.columns h3 { margin-top: 0.4rem; }
.sign { display: grid; grid-template-columns: 2fr 1fr 2fr; gap: 1.6rem; margin: 2.6rem 0 0.5rem; }
.sign div { border-top: 1px solid var(--ink); padding-top: 0.3rem; font-size: 0.82rem; color: var(--soft); }
footer { color: var(--soft); font-size: 0.84rem; margin-top: 2rem; border-top: 1px solid var(--line);
  padding-top: 0.8rem; }
@media (max-width: 44rem) {
  main, header { padding-left: 1.1rem; padding-right: 1.1rem; }
  .tiles, .columns { grid-template-columns: 1fr 1fr; }
  .columns { grid-template-columns: 1fr; }
}
@page { size: A4; margin: 16mm 15mm 17mm; }
@media print {
  html { font-size: 12.6px; }
  body { background: #fff; }
  main, header { max-width: none; padding-left: 0; padding-right: 0; }
  header { padding-top: 1rem; }
  h2 { margin-top: 1.7rem; }
  .page { break-before: page; border-top: 0; margin-top: 0; padding-top: 0; }
  h1, h2, h3, caption { break-after: avoid; }
  figure, .verdict, .tiles, .points li, tr, pre, .sign { break-inside: avoid; }
  figure svg { max-height: 150mm; }
  thead { display: table-header-group; }
  th, td { padding-top: 0.34rem; padding-bottom: 0.34rem; line-height: 1.42; }
  .table { overflow: visible; }
  pre { background: #fff; color: #000; border: 1px solid var(--line); }
  .verdict, .tiles div, .chip, .owner, .points li { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
""".strip()
