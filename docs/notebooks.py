"""Run a notebook, keep what it shows in it, and write its page: ``python docs/notebooks.py docs/tutorials/co2.ipynb``.

It needs no Jupyter. As there, the last expression of a cell is shown: as HTML where a value has a view for notebooks,
as a picture where it is one, else as text.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

Output = dict[str, Any]


def shown(value: Any) -> dict[str, str]:
    """What a notebook shows of a value, by its kind."""
    figure = value.get_figure(root=True) if isinstance(value, Axes) else value
    if isinstance(figure, Figure):
        written = io.BytesIO()
        figure.savefig(written, format="png", dpi=80, metadata={"Software": None})
        return {"image/png": base64.b64encode(written.getvalue()).decode(), "text/plain": "a picture"}
    if hasattr(value, "_repr_html_"):
        return {"text/html": value._repr_html_(), "text/plain": str(value)}
    return {"text/plain": repr(value)}


def run(notebook: dict[str, Any]) -> list[list[Output]]:
    """What each code cell shows, run one after the other in the working directory."""
    names: dict[str, Any] = {"__name__": "notebook"}
    return [run_cell(cell, number, names) for number, cell in enumerate(code_cells(notebook), start=1)]


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run_cell(cell: dict[str, Any], number: int, names: dict[str, Any]) -> list[Output]:
    """What one cell prints and shows; ``names`` are those of the notebook so far."""
    tree = ast.parse("".join(cell["source"]))
    *_, last = tree.body
    ends = isinstance(last, ast.Expr)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(ast.Module(tree.body[:-1] if ends else tree.body, []), f"cell {number}", "exec"), names)
        value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names) if ends else None
    outputs: list[Output] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": lines(printed.getvalue())})
    if value is not None:
        data = {kind: lines(text) if kind != "image/png" else text for kind, text in shown(value).items()}
        outputs.append({"output_type": "execute_result", "execution_count": number, "data": data, "metadata": {}})
    return outputs


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def page(notebook: dict[str, Any], name: str) -> tuple[str, dict[str, bytes]]:
    """The notebook as a page, and the pictures on it by the names of their files."""
    parts, pictures = [], {}
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {"text/plain": output.get("text", [])})
            if "image/png" in data:
                file = f"{name}-{len(pictures) + 1}.png"
                pictures[file] = base64.b64decode(data["image/png"])
                parts.append(f"![{cell['metadata']['alt']}]({file})")
            elif "text/html" in data:
                parts.append(f'<div class="notebook">{"".join(data["text/html"]).replace(chr(10), "")}</div>')
            else:
                parts.append(f"```text\n{''.join(data['text/plain']).rstrip()}\n```")
    return "\n\n".join(parts) + "\n", pictures


def main(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    back = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            found = run(notebook)
        finally:
            os.chdir(back)
    for number, (cell, outputs) in enumerate(zip(code_cells(notebook), found, strict=True), start=1):
        cell |= {"outputs": outputs, "execution_count": number}
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    text, pictures = page(notebook, path.stem)
    path.with_suffix(".md").write_text(text, encoding="utf-8")
    for file, content in pictures.items():
        path.with_name(file).write_bytes(content)
        print(f"{file}: {len(content) / 1000:.0f} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
