"""What pages keep of the files that they read."""

from __future__ import annotations

import pytest

from understudy.screens.dashboard.page import PartCache


def test_a_value_is_made_again_when_its_stamp_changes() -> None:
    cache, made = PartCache(), []
    for stamp in (1, 1, 2, 2):
        cache.read("x", stamp, lambda: made.append(1))
    assert len(made) == 2


def test_a_costly_value_is_kept_for_a_while_and_then_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, spent = [0.0], [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("time.thread_time", lambda: spent[0])
    cache = PartCache()

    def read(stamp: int) -> int:
        def make() -> int:
            spent[0] += 2.0
            return stamp

        return cache.read("x", stamp, make, share=0.1)

    assert read(1) == 1
    before = cache.turn()
    now[0] = 19.0
    assert read(2) == 1, "two seconds of work in each twenty"
    assert cache.turn() == before
    now[0] = 21.0
    assert cache.turn() > before, "pages that showed the old value are made again"
    assert read(2) == 2
    assert cache.turn() == before + 1, "and once"
