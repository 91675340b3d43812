"""A plan as nested dictionaries, written in the plan language."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ._errors import ArgumentError, Fault

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(parts: Mapping[str, Any], what: str = "a plan") -> str:
    """The text of a plan or a study. The order of the dictionaries is that of the text, which matters: it breaks ties."""
    if not isinstance(parts, Mapping):
        raise ArgumentError([Fault("plan_is_a_dictionary", f"{what} is a dictionary of its tables", value=str(type(parts)))])
    lines = []
    for name, value in parts.items():  # keys without a table come first
        if not isinstance(value, Mapping) and not _is_tables(value):
            lines.append(f"{_key(name)} = {_value(value)}")
    for name, value in parts.items():
        if _is_tables(value):
            for table in value:
                lines.extend(_table(f"[{_key(name)}]", table))
        if not isinstance(value, Mapping):
            continue
        if name in ("node", "task", "tasks", "chain", "lock", "defaults"):
            for part, table in value.items():
                lines.extend(_table(f"{_key(name)}.{_key(part)}", table))
        else:
            lines.extend(_table(_key(name), value))
    return "\n".join(lines).lstrip("\n") + "\n"


def _is_tables(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(each, Mapping) for each in value)


def _table(title: str, table: Any) -> "list[str]":
    if not isinstance(table, Mapping):
        raise ArgumentError([Fault("part_is_a_dictionary", f"[{title}] is a dictionary", value=repr(table))])
    lines = ["", f"[{title}]"]
    for key, value in table.items():
        if key == "under" and isinstance(value, Mapping):
            lines.extend(f"under.{_key(parent)} = {_value(edge)}" for parent, edge in value.items())
        elif value is not None:
            lines.append(f"{_key(key)} = {_value(value)}")
    return lines


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise ArgumentError([Fault("key_is_text", "keys of a plan are text", value=repr(key))])
    return key if _BARE.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ArgumentError([Fault("text_is_unicode", "this text is not valid Unicode", value=ascii(text))]) from None
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any, depth: int = 0) -> str:
    if depth > 32:
        raise ArgumentError([Fault("plan_is_not_so_deep", "dictionaries and lists are within each other", bound="32 levels")])
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(key)} = {_value(each, depth + 1)}" for key, each in value.items() if each is not None)
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_value(each, depth + 1) for each in value)}]"
    kinds = "text, number, bool, list or dictionary"
    raise ArgumentError([Fault("value_must_be_plain", "a plan has no such values", value=str(type(value)), bound=kinds)])
