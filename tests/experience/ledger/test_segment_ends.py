"""When segments leave: by count, by time, and not all at once. Nothing is lost or reordered."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from walk.toys import START

from understudy.experience.ledger import Closing
from understudy.experience.ledger.index import DecisionIndex

from .decisions import Spooled, decision, ledger_at, no_waiting, seen, settled

NAMES = ("north", "south", "east")


def ends(
    book: DecisionIndex, moments: Sequence[float], **changes: Any
) -> list[tuple[tuple[int, ...], bytes]]:
    """Decisions of one territory at these moments, each settled before the next; what left."""
    left = []
    for key, moment in enumerate(moments, start=1):
        segments = book.open([decision(key, at=START + moment, **changes)]) + book.close(
            settled(key)
        )
        left += [(segment.ids, segment.bootstrap) for segment in segments]
    return left


def test_a_segment_ends_once_it_spans_so_many_seconds() -> None:
    left = ends(DecisionIndex(segment=100, segment_s=3.0), [0.0, 1.0, 2.0, 3.0, 5.9, 6.0, 6.5])
    assert left == [((1, 2, 3), seen(4)), ((4, 5), seen(6))], "and what was seen next is known"


def test_in_a_slow_game_a_decision_leaves_with_the_next_observation() -> None:
    left = ends(DecisionIndex(segment=100, segment_s=3.0), [0.0, 10.0, 20.0])
    assert left == [((1,), seen(2)), ((2,), seen(3))]


def test_a_fast_game_ends_them_by_count() -> None:
    left = ends(DecisionIndex(segment=2, segment_s=3.0), [0.0, 0.1, 0.2, 0.3, 0.4])
    assert left == [((1, 2), seen(3)), ((3, 4), seen(5))]


def test_with_memory_only_segments_of_the_rules_end_by_count_and_time() -> None:
    moments = [0.0, 0.1, 0.2, 5.0]
    assert ends(DecisionIndex(segment=2, segment_s=3.0, remembers=True), moments) == []
    rules = DecisionIndex(segment=2, segment_s=3.0, remembers=True)
    left = ends(rules, moments, rules=True, sampled=False, log_prob=0.0)
    assert left == [((1, 2), seen(3)), ((3,), seen(4))], "nothing remembers what began before"


def test_without_a_time_only_the_count_matters() -> None:
    assert ends(DecisionIndex(segment=3), [0.0, 1e6, 2e6]) == []


@pytest.mark.parametrize("stagger", [False, True])
def test_territories_that_began_together_do_not_end_together(stagger: bool) -> None:
    book, names = (
        DecisionIndex(segment=16, stagger=stagger),
        [f"demo-{number}" for number in range(64)],
    )
    at: Counter[int] = Counter()
    lengths: dict[str, list[int]] = {name: [] for name in names}
    for tick in range(80):
        keys = range(1 + tick * 64, 65 + tick * 64)
        batch = [decision(key, name) for key, name in zip(keys, names, strict=True)]
        for segment in book.open(batch) + book.close(settled(*keys)):
            at[tick] += 1
            lengths[segment.entries[0].opened.territory].append(len(segment.entries))
    firsts = {name: found[0] for name, found in lengths.items()}
    assert all(length == 16 for found in lengths.values() for length in found[1:])
    if stagger:
        assert max(at.values()) < 16, "in no tick a quarter of them"
        assert len(set(firsts.values())) > 8 and max(firsts.values()) <= 16
        again = DecisionIndex(
            segment=16, stagger=True
        )  # by name: the next process would say the same
        for number, name in enumerate(names):
            keys = range(1 + number * 20, 21 + number * 20)
            again.open([decision(key, name) for key in keys])
            assert len(again.close(settled(*keys))[0].entries) == firsts[name]
    else:
        assert set(at.values()) == {64}


MOVES = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.floats(0.0, 4.0),
        st.sampled_from(("settled", "settled", "settled", "settled", "expired", "later")),
        st.sampled_from((False,) * 9 + (True,)),
    ),
    max_size=60,
)


@settings(max_examples=60)
@given(
    moves=MOVES, segment=st.integers(1, 6), segment_s=st.floats(0.5, 10.0), stagger=st.booleans()
)
def test_however_they_end_every_settled_decision_leaves_once_and_in_order(
    moves: list[tuple[str, float, str, bool]], segment: int, segment_s: float, stagger: bool
) -> None:
    folder, spooled = Path(tempfile.mkdtemp()), Spooled()
    options: dict[str, Any] = {"segment": segment, "segment_s": segment_s, "stagger": stagger}
    moment, times, counted = START, {}, {name: list[int]() for name in NAMES}
    later: list[int] = []
    try:
        with no_waiting():
            ledger = ledger_at(folder, spooled, **options)
            for name, passed, state, killed in moves:
                moment += passed
                (key,) = ledger.take_ids(1)
                times[key] = moment
                ledger.open([decision(key, name, at=moment)])
                if state == "later":
                    later.append(key)
                elif state == "expired":
                    ledger.close([Closing(id=key, state="expired")])
                if state != "expired":
                    counted[name].append(key)
                if state == "settled":
                    ledger.close(settled(key))
                if killed:
                    ledger = ledger_at(folder, spooled, **options)
            ledger.close(settled(*reversed(later)))
            for name in NAMES:
                ledger.cut(name)
    finally:
        shutil.rmtree(folder)
    left = {name: list[int]() for name in NAMES}
    for episode, keys in zip(spooled, spooled.keys, strict=True):
        left[episode.meta.tags["territory"]] += keys
        assert len(keys) <= segment
        assert times[keys[-1]] - times[keys[0]] < segment_s
    assert left == counted
