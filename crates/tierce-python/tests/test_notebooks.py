"""Notebooks: every cell runs, and what a cell ends with can be shown."""

import ast
import re

import pytest

from conftest import ROOT

NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.py"))


def cells(text):
    """The code of a script in cells: those after `# %%`, without those of text."""
    parts = re.split(r"^# %%(.*)$", text, flags=re.M)[1:]
    return [code for kind, code in zip(parts[::2], parts[1::2]) if "markdown" not in kind]


def shown(value):
    """As a notebook shows it."""
    return value._repr_html_() if hasattr(value, "_repr_html_") else repr(value)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    for folder in ("docs", "examples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIERCE_SETS", "5")
    names = {}
    for code in cells(path.read_text(encoding="utf-8")):
        for library in re.findall(r"^import (pyarrow|matplotlib)$", code, re.M):
            pytest.importorskip(library)
        tree = ast.parse(code, path.name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, path.name, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), path.name, "eval"), names)
            assert value is None or shown(value)


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 3
