"""Features as clients send them: what is wrong is named, without much ado."""

from __future__ import annotations

import difflib
from typing import Any

import pytest

from understudy.session.protocol import Error
from understudy.session.schema import FeatureReader

NAMES = ("health", "enemies_near", "Gold")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("HEALTH", " Did you mean 'health'?"),
        ("gold", " Did you mean 'Gold'?"),
        ("enemies", " Did you mean 'enemies_near'?"),
        ("es", ""),
        ("", ""),
        ("helth", ""),
    ],
)
def test_a_hint_costs_next_to_nothing(
    name: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def searched(*arguments: Any, **options: Any) -> list[str]:
        raise AssertionError("anybody can make a server search, as often as they like")

    monkeypatch.setattr(difflib, "get_close_matches", searched)
    (error,) = FeatureReader(NAMES).read([{name: 1.0}])
    assert isinstance(error, Error)
    assert error.message == f"there is no {name!r}.{hint}"
    assert error.field == f"features.{name}"
