"""What is torn or damaged is found, told and stepped over; everything else is read as written."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.experience.ledger.records import (
    Carried,
    Closing,
    Cut,
    Header,
    Opened,
    Record,
    Sealed,
    Spooled,
    frame,
    read_frames,
)

from .decisions import decision

BATCHES: list[list[Record]] = [
    [Header(next_id=1, opened=0, settled=0, expired=0, superseded=0, orphaned=0)],
    [decision(1), decision(2, legal=b"\xc0", action=(1, 0), territory="n\u00f6rdlich")],
    [Closing(id=1, state="settled", reward=0.5, terminal=True, outcome="victory")],
    [Cut(id=2, bootstrap=b""), Spooled(firsts=(1, 2))],
    [Sealed(ids=(1, 2), bootstrap=b"12345678", outcome="aborted", at=1.5)],
    [Carried(opened=decision(2), closing=None, bootstrap=None)],
]
FRAMES = [frame(batch) for batch in BATCHES]
WHOLE = b"".join(FRAMES)


def split(data: bytes) -> tuple[list[list[Record]], list[str]]:
    pieces = list(read_frames(data))
    read = [piece for piece in pieces if not isinstance(piece, str)]
    return read, [piece for piece in pieces if isinstance(piece, str)]


def test_what_was_written_is_what_is_read() -> None:
    assert split(WHOLE) == (BATCHES, [])
    assert split(b"") == ([], [])


def test_a_file_torn_at_any_byte_is_read_up_to_there() -> None:
    ends = [sum(map(len, FRAMES[:count])) for count in range(len(FRAMES) + 1)]
    for length in range(len(WHOLE)):
        read, told = split(WHOLE[:length])
        whole = max(index for index, end in enumerate(ends) if end <= length)
        assert read == BATCHES[:whole]
        torn = length - ends[whole]
        assert told == ([f"its last {torn} bytes are half a record: left out"] if torn else [])


@settings(max_examples=300)
@given(data=st.data())
def test_damage_costs_the_batch_that_it_hit_and_no_other(data: st.DataObject) -> None:
    hit = data.draw(st.integers(0, len(FRAMES) - 1))
    start = sum(map(len, FRAMES[:hit]))
    spot = start + data.draw(st.integers(0, len(FRAMES[hit]) - 1))
    wrong = data.draw(st.integers(0, 255).filter(lambda value: value != WHOLE[spot]))
    damaged = WHOLE[:spot] + bytes([wrong]) + WHOLE[spot + 1 :]
    read, told = split(damaged)
    assert read == BATCHES[:hit] + BATCHES[hit + 1 :]
    assert len(told) == 1


@settings(max_examples=300)
@given(data=st.binary(max_size=200))
def test_anything_at_all_can_be_in_a_file(data: bytes) -> None:
    read, told = split(data)
    assert not read and bool(told) == bool(data)
    assert split(data + WHOLE)[0] == BATCHES


def test_a_whole_frame_of_another_program_is_told() -> None:
    strange = frame([("some", "other", "record")])  # type: ignore[list-item]
    read, told = split(FRAMES[0] + strange + FRAMES[1])
    assert read == BATCHES[:2]
    assert told == [f"{len(strange)} damaged bytes at {len(FRAMES[0])}: left out"]


def test_ledgers_of_programs_that_knew_no_rules_are_read_and_theirs_read_ours() -> None:
    old = msgspec.msgpack.decode(msgspec.msgpack.encode(decision(1)))[:-1]
    assert msgspec.convert(old, type=Opened) == decision(1)
    ours = msgspec.msgpack.encode(decision(1, rules=True, sampled=False))
    theirs = msgspec.msgpack.decode(ours, type=_OpenedBefore)
    assert (theirs.id, theirs.sampled, theirs.legal) == (1, False, b"")


class _OpenedBefore(
    msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False, tag="open"
):
    """`Opened` as it was before it said whether the rules play."""

    id: int
    territory: str
    client: str
    tick: int
    at: float
    version: int
    action: tuple[int, ...]
    log_prob: float
    value: float
    sampled: bool
    sent: bool
    explored: bool
    expected: float
    observation: bytes
    legal: bytes = b""
