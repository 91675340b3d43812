"""The package: what is public is documented and typed, pages are right."""

import ast
import doctest
import inspect
import re

import pytest

import tierce
from tierce import _guarantee, _native


def test_everything_public_is_documented():
    for name in tierce.__all__:
        thing = getattr(tierce, name)
        assert inspect.getdoc(thing), name
        if inspect.isclass(thing):
            for part, value in vars(thing).items():
                if not part.startswith("_") and not isinstance(value, (str, type(None))) and part not in ("args",):
                    assert inspect.getdoc(value), f"{name}.{part}"


def stub():
    text = inspect.getsourcefile(tierce).replace("__init__.py", "_native.pyi")
    with open(text, encoding="utf-8") as file:
        return ast.parse(file.read())


def parameters(function):
    arguments = function.args
    return [each.arg for each in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]


def test_types_are_those_of_the_module():
    functions = {node.name: node for node in stub().body if isinstance(node, ast.FunctionDef)}
    classes = {node.name: node for node in stub().body if isinstance(node, ast.ClassDef)}
    public = {name for name in vars(_native) if not name.startswith("_")}
    assert public == set(functions) | set(classes)
    for name, function in functions.items():
        assert list(inspect.signature(getattr(_native, name)).parameters) == parameters(function), name
    for name, node in classes.items():
        there = {part for part in vars(getattr(_native, name)) if not part.startswith("_")}
        typed = {part.name: part for part in node.body if isinstance(part, ast.FunctionDef)}
        assert there == {part for part in typed if not part.startswith("_")}, name
        for part in there:
            value = getattr(getattr(_native, name), part)
            if callable(value):
                wanted = [each for each in parameters(typed[part]) if each != "cls"]
                assert list(inspect.signature(value).parameters) == wanted, f"{name}.{part}"


@pytest.mark.parametrize("module", [tierce, _guarantee])
def test_examples_in_docstrings_are_right(module):
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_code_on_pages_runs(root, page, tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", (root / page).read_text(encoding="utf-8"), re.S)
    assert blocks
    text = (root / "examples/desktop.toml").read_text(encoding="utf-8")
    (tmp_path / "plan.toml").write_text(text, encoding="utf-8")
    (tmp_path / "tasks.csv").write_text("name,work,period\na,1ms,5ms\nb,3ms,10ms\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks:
        for line in block.splitlines():  # what is not installed is not tried
            library = re.match(r"import (\w+)", line)
            if library and library[1] != "tierce":
                pytest.importorskip(library[1])
        exec(compile(block, page, "exec"), names)
