"""What each setting does, in the words that stand below it in the code.

The page of settings and `understudy config show` are made from these, so they cannot differ.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from understudy.core.config.section import Section, inner


class Setting(NamedTuple):
    name: str
    default: Any
    """None where there is no default."""
    words: str
    section: type[Section] | None
    """Where the setting is a table, or a list of tables: what they hold."""


def settings(section: type[Section]) -> Iterator[Setting]:
    words = _words(section)
    for field in msgspec.structs.fields(section):
        yield Setting(field.name, _default(field), words.get(field.name, ""), inner(field.type))


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return None if field.default is msgspec.NODEFAULT else field.default


@functools.cache
def _words(section: type[Section]) -> dict[str, str]:
    """The string below each field; nothing where the source is not there to be read."""
    try:
        tree = ast.parse(inspect.getsource(section))
    except OSError:
        return {}
    (node,) = tree.body
    assert isinstance(node, ast.ClassDef)
    found = {}
    for field, after in zip(node.body, node.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            text: Any = getattr(after, "value", None)
            if isinstance(text, ast.Constant):
                found[field.target.id] = " ".join(str(text.value).split())
    return found
