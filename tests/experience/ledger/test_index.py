"""Any order of openings, closings, cuts, restarts and full disks, against the obvious account."""

from __future__ import annotations

import gc
import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from walk.power import UnsyncedDisk

from understudy.core import files
from understudy.core.errors import InputError
from understudy.experience.ledger import Closing
from understudy.experience.ledger.index import DecisionIndex
from understudy.experience.ledger.records import ENDINGS, OUTCOMES, Ending

from .decisions import (
    Expected,
    Known,
    Spooled,
    decision,
    expected_segments,
    ledger_at,
    seen,
    settled,
)

TERRITORIES = ("north", "south", "east")
LIMIT = 3


class Machine(RuleBasedStateMachine):
    """A ledger with tiny files, and a list of what it was told."""

    def __init__(self) -> None:
        super().__init__()
        memory = Path("/dev/shm")
        self.folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
        self.using = files.using(UnsyncedDisk())
        self.using.__enter__()
        self.spooled = Spooled()
        self.known: dict[int, Known] = {}
        self.order: dict[str, list[Known]] = {name: [] for name in TERRITORIES}
        self.start()

    def start(self) -> None:
        self.ledger = ledger_at(self.folder, self.spooled, segment=LIMIT, rotate_bytes=200)
        assert all("No space" in problem for problem in self.ledger.problems)

    @rule(
        names=st.lists(st.sampled_from(TERRITORIES), min_size=1, max_size=5),
        client=st.sampled_from(("c1", "c1", "c1", "c2")),
    )
    def open(self, names: list[str], client: str) -> None:
        keys = self.ledger.take_ids(len(names))
        assert not self.known or keys[0] > max(self.known)
        self.ledger.open(
            [decision(k, name, client=client) for k, name in zip(keys, names, strict=True)]
        )
        for key, name in zip(keys, names, strict=True):
            self.known[key] = Known(key, client)
            self.order[name].append(self.known[key])

    @precondition(lambda self: self.known)
    @rule(data=st.data(), state=st.sampled_from(("settled",) * 6 + ENDINGS), last=st.booleans())
    def close(self, data: st.DataObject, state: Ending, last: bool) -> None:
        keys = st.sampled_from([one.key for one in self.known.values()])
        waiting = [one.key for one in self.known.values() if one.state == "open"]
        if waiting:
            keys = st.one_of(st.sampled_from(waiting[:4]), keys)
        outcome = data.draw(st.sampled_from(OUTCOMES))
        terminal = state == "settled" and last and data.draw(st.integers(0, 3)) == 0
        batch = [
            Closing(id=key, state=state, reward=key / 8, terminal=terminal, outcome=outcome)
            for key in data.draw(st.lists(keys, min_size=1, max_size=4))
        ]
        if any(self.ledger.state_of(closing.id) == "unknown" for closing in batch):
            with pytest.raises(InputError, match="no decision"):
                self.ledger.close(batch)
            return
        self.ledger.close(batch)
        for key in {closing.id for closing in batch}:
            one = self.known[key]
            if one.state == "open":
                one.state, one.reward = state, key / 8
                one.terminal, one.outcome = terminal, outcome

    @rule(name=st.sampled_from(TERRITORIES), blind=st.booleans())
    def cut(self, name: str, blind: bool) -> None:
        after = b"" if blind else seen(77)
        self.ledger.cut(name, after)
        if self.order[name] and self.order[name][-1].cut is None:
            self.order[name][-1].cut = after

    @rule()
    def sync(self) -> None:
        self.ledger.sync()

    @rule()
    def die_and_start_again(self) -> None:
        self.start()

    @rule()
    def stop_and_start_again(self) -> None:
        self.ledger.stop()
        self.start()

    @rule()
    def the_disk_fills_up(self) -> None:
        self.spooled.full = True

    @rule()
    def there_is_room_again(self) -> None:
        self.spooled.full = False
        self.ledger.flush()
        self.ledger.problems.clear()

    @invariant()
    def every_decision_is_in_one_state(self) -> None:
        for key, one in self.known.items():
            assert self.ledger.state_of(key) in (one.state, "unknown")
            assert (self.ledger.opened(key) is not None) == (one.state == "open")
        assert self.ledger.state_of(10**9) == "unknown"
        states = Counter(one.state for one in self.known.values())
        counts = self.ledger.counts
        assert counts._asdict() == {"opened": len(self.known)} | {
            state: states[state] for state in (*ENDINGS, "open")
        }

    @invariant()
    def open_decisions_are_found(self) -> None:
        waiting = [one.key for one in self.known.values() if one.state == "open"]
        assert [one.id for one in self.ledger.older_than(4e9)] == waiting
        for name in TERRITORIES:
            expected = [one.key for one in self.order[name] if one.state == "open"]
            assert [one.id for one in self.ledger.open_of(name)] == expected

    @invariant()
    def segments_leave_once_and_in_order(self) -> None:
        if self.ledger.waiting:
            return
        left: dict[str, list[Expected]] = {name: [] for name in TERRITORIES}
        for episode in self.spooled:
            left[episode.meta.tags["territory"]].append(Expected.of(episode))
            first = left[episode.meta.tags["territory"]][-1].keys[0]
            assert episode.meta.id.startswith(f"live-{first}-")
            assert episode.meta.tags["client"] == self.known[first].client
        for name in TERRITORIES:
            assert left[name] == list(expected_segments(self.order[name], LIMIT))

    def teardown(self) -> None:
        self.using.__exit__(None, None, None)
        shutil.rmtree(self.folder)


Machine.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
test_any_order_of_events = Machine.TestCase


def test_states_are_remembered_for_a_while_and_memory_stays_flat() -> None:
    book = DecisionIndex(segment=4, remembered=10)
    for key in range(1, 1001):
        book.open([decision(key)])
        book.close(settled(key))
        for segment in book.cut(book.live[key], b""):
            book.spooled(segment)
    assert not book.live
    assert [key for key in range(1, 1001) if book.state_of(key)] == list(range(981, 1001))
    assert book.counts == (1000, 1000, 0, 0, 0, 0)


def test_decisions_give_the_garbage_collector_nothing_to_look_at() -> None:
    """A server holds up to 200,000 of them, and a full collection looks at all it tracks."""
    count, book = 1000, DecisionIndex(segment=2000)
    gc.collect()
    before = len(gc.get_objects())
    book.open([decision(key) for key in range(1, count + 1)])
    book.close(settled(*range(1, count + 1)))
    gc.collect()
    assert len(book.live) == count and book.state_of(count) == "settled"
    assert len(gc.get_objects()) - before < count // 10


def test_wall_time_that_jumps_back_does_not_keep_decisions_open() -> None:
    book = DecisionIndex(segment=4)
    book.open([decision(1, at=5000.0), decision(2, at=1000.5), decision(3, at=1000.25)])
    assert [one.id for one in book.older_than(1000.5)] == [3]
    assert [one.id for one in book.older_than(1001.0)] == [2, 3]


def test_a_decision_out_of_order_is_refused() -> None:
    book = DecisionIndex(segment=4)
    book.open([decision(5)])
    for wrong in ([decision(5)], [decision(4)], [decision(7), decision(6)]):
        with pytest.raises(InputError, match="is not the newest of territory 'north'"):
            book.check_opening(wrong)
    with pytest.raises(InputError, match="decision 5 was opened before"):
        book.check_opening([decision(5, "south")])
    book.check_opening([decision(6), decision(7)])
