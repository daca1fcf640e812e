"""How a report looks: on a screen, and on A4 paper. Nothing is fetched: no fonts, no pictures, no scripts."""

from __future__ import annotations

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
.breaks { background: var(--red-pale); color: var(--red); border-color: var(--red); }
.weakens { background: var(--amber-pale); color: var(--amber); border-color: #b97700; }
.ask { background: var(--blue-pale); color: #0b4a8a; border-color: var(--blue); }
.costs { background: var(--pale); color: var(--soft); border-color: #8a94a6; }
.points { max-width: none; list-style: none; padding: 0; margin: 0.8rem 0; }
.points li { border: 1px solid var(--line); border-left: 5px solid #8a94a6; border-radius: 6px;
  padding: 0.7rem 1rem 0.75rem; margin: 0 0 0.7rem; }
.points li.is-breaks { border-left-color: var(--red); background: #fff7f7; }
.points li.is-weakens { border-left-color: #d08700; }
.points li.is-ask { border-left-color: var(--blue); }
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
