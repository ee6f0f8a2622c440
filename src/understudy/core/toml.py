"""Nested tables as TOML: the standard library reads it and does not write it.

What is written reads back as the same tables: `tomllib.loads(dumps(table)) == table`.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Path = tuple[str, ...]
"""Where a value stands: ("curriculum", "stages", "threshold"); entries of a list have no number."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def dumps(table: Mapping[str, Any], *, comment: Callable[[Path], str] = lambda path: "") -> str:
    """The tables as text; `comment` gives the words above a key or the head of a table, if any."""
    return "\n".join(_lines(table, (), comment)).strip("\n") + "\n"


def value_of(text: str) -> Any:
    """A number, boolean or list as in TOML; else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()


def _lines(table: Mapping[str, Any], path: Path, comment: Callable[[Path], str]) -> Iterator[str]:
    # TOML wants the plain values of a table before the tables in it.
    for key, value in table.items():
        if not isinstance(value, Mapping) and not _is_tables(value):
            yield from _comment((*path, key), comment)
            yield f"{_key(key)} = {_value(value)}"
    for key, value in table.items():
        inner = (*path, key)
        head = ".".join(map(_key, inner))
        if isinstance(value, Mapping):
            lines = list(_lines(value, inner, comment))
            words = _comment(inner, comment)
            # A table that only holds tables needs no head of its own.
            yield from lines if lines[:1] == [""] else ("", *words, f"[{head}]", *lines)
        elif _is_tables(value):
            for one in value:
                words = _comment(inner, comment)
                yield from ("", *words, f"[[{head}]]", *_lines(one, inner, comment))


def _is_tables(value: object) -> bool:
    """A list of tables and nothing else; an empty one is a plain value."""
    return (
        isinstance(value, list | tuple)
        and bool(value)
        and all(isinstance(one, Mapping) for one in value)
    )


def _comment(path: Path, comment: Callable[[Path], str]) -> Iterator[str]:
    for line in comment(path).splitlines():
        yield f"# {line}".rstrip()


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)  # TOML knows inf and nan
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{_key(key)} = {_value(one)}" for key, one in value.items())
        return f"{{{pairs}}}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_value, value))}]"
    raise TypeError(f"TOML has no {type(value).__name__}")


def _text(text: str) -> str:
    # JSON's escapes are TOML's, but for surrogate pairs (so nothing beyond ASCII is escaped) and
    # for the control character 127, which JSON leaves as it is.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
