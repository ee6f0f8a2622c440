"""A territory's state is changed in one module."""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path

from understudy.session import territory


def test_only_its_own_module_changes_a_territory() -> None:
    names = {field.name for field in fields(territory.TerritoryState)}
    own = Path(territory.__file__)
    changes = [
        f"{path.name}:{node.lineno} {ast.unparse(node)}"
        for path in own.parent.glob("*.py")
        if path != own
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        if node.attr in names and ast.unparse(node.value) != "self"
    ]
    # `decisions` is also a count of the session.
    assert [one for one in changes if not one.endswith(" counts.decisions")] == []
