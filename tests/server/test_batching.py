"""What waits in one turn of the loop is answered together, in order, and nobody is forgotten."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from understudy.server import batching as batching_module
from understudy.server.batching import Batching

from .standing import Parrot


class Ear:
    def __init__(self) -> None:
        self.heard: list[dict[str, object]] = []
        self.tellings = 0

    def tell(self, messages: Sequence[bytes]) -> None:
        self.tellings += 1
        self.heard += [json.loads(message) for message in messages]


def turn(
    work: Callable[[Batching], None], *, queue: int = 64
) -> tuple[Parrot, Batching, list[str]]:
    """One turn of a loop, and the next, in which all is answered."""
    session, problems = Parrot(), list[str]()
    batching = Batching(
        session, queue=queue, problem=lambda words, error: problems.append(f"{words}: {error}")
    )

    async def run() -> None:
        work(batching)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(run())
    return session, batching, problems


def test_one_batch_for_all_who_wait() -> None:
    ears = [Ear() for _ in range(5)]

    def work(batching: Batching) -> None:
        for number in range(3):
            for index, ear in enumerate(ears):
                batching.put(f"c{index}", f"{index}.{number}".encode(), ear)

    session, batching, _ = turn(work)
    assert [len(batch) for batch in session.batches] == [15]
    for index, ear in enumerate(ears):
        assert [one["heard"] for one in ear.heard] == [f"{index}.{n}" for n in range(3)]
        assert {one["client"] for one in ear.heard} == {f"c{index}"}
        assert ear.tellings == 1  # one write for all its answers
    assert sum(batching.latency.counts) == 15


def test_beyond_its_queue_a_connection_is_answered_degraded_and_its_neighbour_is_not() -> None:
    greedy, modest = Ear(), Ear()

    def work(batching: Batching) -> None:
        for number in range(10):
            batching.put("greedy", str(number).encode(), greedy)
        batching.put("modest", b"one", modest)

    session, _, _ = turn(work, queue=4)
    assert [one["heard"] for one in greedy.heard] == [str(n) for n in range(10)]
    assert [one["degraded"] for one in greedy.heard] == [True] * 6 + [False] * 4  # in its order
    assert [one["degraded"] for one in modest.heard] == [False]
    assert [len(batch) for batch in session.batches] == [6, 5]


def test_a_batch_takes_from_all_in_turn() -> None:
    ears = {name: Ear() for name in "abc"}

    def work(batching: Batching) -> None:
        for name, count in (("a", 3), ("b", 1), ("c", 2)):
            for number in range(count):
                batching.put(name, f"{name}{number}".encode(), ears[name])

    session, _, _ = turn(work)
    assert [one.data for one in session.batches[0]] == [b"a0", b"b0", b"c0", b"a1", b"c1", b"a2"]


def test_what_waited_too_long_gets_the_safe_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(batching_module, "perf_counter", lambda: now)
    ear = Ear()

    def work(batching: Batching) -> None:
        nonlocal now
        batching.put("c", b"old", ear)
        now = 5.0
        batching.put("c", b"new", ear)

    turn(work)
    assert [(one["heard"], one["degraded"]) for one in ear.heard] == [("old", True), ("new", False)]


@given(st.lists(st.integers(0, 30), max_size=2000), st.integers(1, 80))
@settings(max_examples=30)
def test_everybody_is_answered_once_and_in_order_whatever_comes(
    askers: list[int], queue: int
) -> None:
    ears = [Ear() for _ in range(31)]
    session = Parrot()
    batching = Batching(session, queue=queue, problem=lambda words, error: None)

    async def run() -> None:
        for number, asker in enumerate(askers):
            batching.put(str(asker), str(number).encode(), ears[asker])
        while any(batching._lines.values()):
            await asyncio.sleep(0)

    asyncio.run(run())
    for asker, ear in enumerate(ears):
        sent = [str(number) for number, one in enumerate(askers) if one == asker]
        assert [one["heard"] for one in ear.heard] == sent
        degraded = sum(bool(one["degraded"]) for one in ear.heard)
        assert degraded == max(0, len(sent) - queue)
    assert all(len(batch) <= 256 + 1024 for batch in session.batches)


@given(st.lists(st.integers(0, 100), max_size=30), st.integers(1, 80), st.integers(0, 20))
@example([100] * 30, 4, 20)
@settings(max_examples=20)
def test_a_message_is_answered_within_two_flushes_whatever_others_queue(
    floods: list[int], queue: int, more: int
) -> None:
    session, healthy = Parrot(), Ear()
    batching = Batching(session, queue=queue, problem=lambda words, error: None)

    async def run() -> None:
        ears = [Ear() for _ in floods]
        for ear, count in zip(ears, floods, strict=True):
            for _ in range(count):
                batching.put("flood", b"x", ear)
        batching.put("healthy", b"one", healthy)
        for _ in range(2):
            batching.flush()
            for ear in ears:
                for _ in range(more):
                    batching.put("flood", b"x", ear)
        assert [(one["heard"], one["degraded"]) for one in healthy.heard] == [("one", False)]

    asyncio.run(run())


def test_the_rate_of_all_clients_is_shared_in_turns() -> None:
    flood, healthy = [Ear() for _ in range(6)], Ear()
    session = Parrot()
    session.allowed = 4
    batching = Batching(session, queue=64, problem=lambda words, error: None)

    async def run() -> None:
        for ear in flood:
            for _ in range(50):
                batching.put("flood", b"x", ear)
        batching.put("healthy", b"one", healthy)
        batching.flush()
        batching.flush()
        assert [len(batch) for batch in session.batches] == [4, 4]
        assert [one["heard"] for one in healthy.heard] == ["one"]

    asyncio.run(run())


def test_a_full_line_has_room_again_once_a_message_of_it_is_answered() -> None:
    ear, session = Ear(), Parrot()
    session.allowed = 0
    batching = Batching(session, queue=4, problem=lambda words, error: None)

    async def run() -> None:
        for number in range(8):
            await batching.room(ear)  # returns at once
            batching.put("c", str(number).encode(), ear)
        room = asyncio.create_task(batching.room(ear))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not room.done()
        session.allowed = 1
        batching.flush()
        await room
        assert batching.waiting(ear) == 7

    asyncio.run(run())


def test_what_a_session_fails_on_is_refused_and_never_asked_twice() -> None:
    ears = [Ear() for _ in range(3)]

    def work(batching: Batching) -> None:
        for ear, data in zip(ears, (b"a", b"poison", b"c"), strict=True):
            batching.put("c", data, ear)

    session, _, problems = turn(work)
    assert len(session.batches) == 1  # some of it may have taken effect
    assert [[one["code"] for one in ear.heard] for ear in ears] == [["internal"]] * 3
    assert not any("/home" in str(ear.heard) for ear in ears)  # what went wrong is for the log
    assert len(problems) == 1 and "/home" in problems[0]


def test_the_next_turn_is_another_batch() -> None:
    ear = Ear()
    session = Parrot()
    batching = Batching(session, queue=4, problem=lambda words, error: None)

    async def run() -> None:
        for number in range(3):
            batching.put("c", str(number).encode(), ear)
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    asyncio.run(run())
    assert [len(batch) for batch in session.batches] == [1, 1, 1]
    assert not any(one["degraded"] for one in ear.heard)
