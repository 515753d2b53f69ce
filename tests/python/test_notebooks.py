"""The notebooks run from the first cell to the last, as in a kernel, and their links are valid."""

import ast
import json
import re
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))


def cells(path, kind):
    return [
        "".join(cell["source"]) for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == kind
    ]


def test_there_are_two():
    assert [path.stem for path in NOTEBOOKS] == ["first-steps", "your-own-policy"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    shown = 0
    for number, source in enumerate(cells(path, "code"), 1):
        body = ast.parse(source).body
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        place = f"{path.name}, code cell {number}"
        exec(compile(ast.Module(body, []), place, "exec"), names)
        if last is None:
            continue
        value = eval(compile(ast.Expression(last.value), place, "eval"), names)
        if value is not None:
            # The value is displayed as in a notebook.
            text = value._repr_html_() if hasattr(value, "_repr_html_") else repr(value)
            assert len(text) > 20, place
            shown += 1
    assert shown >= 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs_and_its_links_lead_somewhere(path):
    for cell in json.loads(path.read_text())["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", "\n".join(cells(path, "markdown")))
    assert links
    for target in links:
        assert (path.parent / target).exists(), target
