"""The records of the ledger: one struct for each event of a decision, their checks and encoding.

Records are msgpack arrays with their tag first, and are only ever appended: the last record that
names a decision holds. One batch of records is one frame: a mark, the length and the CRC-32 of the
body, and the records as a msgpack list. A frame is appended in one write. A reader takes a whole
frame or none of it, and reports and skips damaged bytes.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from understudy.core.arrays import NDArray
from understudy.policy.spec import PolicySpec

SCHEMA = 1
Ending = Literal["settled", "expired", "superseded", "orphaned"]
ENDINGS: tuple[Ending, ...] = ("settled", "expired", "superseded", "orphaned")
Result = Literal["", "victory", "defeat", "tie"]
OUTCOMES: tuple[Result, ...] = ("", "victory", "defeat", "tie")


class Opened(msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False, tag="open"):
    """A decision, with the answer that the client gets."""

    id: int
    territory: str
    client: str
    tick: int
    at: float
    """Seconds since 1970"""
    version: int
    action: tuple[int, ...]
    """One option a part, as proposed"""
    log_prob: float
    value: float
    sampled: bool
    sent: bool
    """The game executes it"""
    explored: bool
    """The gate said WAIT and it was sent anyway"""
    expected: float
    """What the gate expected"""
    observation: bytes
    """float32 [F], little-endian"""
    legal: bytes = b""
    """`pack_legal` of bool [options]; empty: everything was legal"""
    rules: bool = False
    """The game's rules play, and made this decision; `version` ran beside them. Ledgers of earlier
    programs do not have it, and earlier programs skip it."""


class Closing(msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False, tag="close"):
    """How a decision ended."""

    id: int
    state: Ending
    reward: float = 0.0
    terminal: bool = False
    """The territory ended with this decision (which has to be settled)"""
    outcome: Result = ""
    """The result, where the territory ended; empty: none"""


class Added(msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False, tag="add"):
    """A part of the reward of a decision that is still open; parts are summed."""

    id: int
    reward: float


class Cut(msgspec.Struct, frozen=True, array_like=True, kw_only=True, tag="cut"):
    """The segment of the territory ends with this decision."""

    id: int
    bootstrap: bytes
    """float32 [F] of the next observation; empty: there is none"""
    outcome: Result = ""
    """The result, where the territory ended with it; empty: it did not end"""


class Carried(msgspec.Struct, frozen=True, array_like=True, kw_only=True, tag="carry"):
    """A decision of an old file that is about to be removed, in its present state."""

    opened: Opened
    closing: Closing | None
    bootstrap: bytes | None
    """Of its cut, if there is one"""
    outcome: Result = ""
    """Of its cut"""
    added: float | None = None
    """The parts of its reward so far, summed"""


class Sealed(msgspec.Struct, frozen=True, array_like=True, kw_only=True, tag="seal"):
    """These decisions are one episode. Written before the spool gets it.

    After a crash in between, the same episode is made again, even under other settings.
    """

    ids: tuple[int, ...]
    bootstrap: bytes
    outcome: str
    at: float


class Spooled(msgspec.Struct, frozen=True, array_like=True, kw_only=True, tag="spool"):
    """The spool has the episodes that begin with these decisions."""

    firsts: tuple[int, ...]


class Header(msgspec.Struct, frozen=True, array_like=True, kw_only=True, tag="head"):
    """The first record of a file: the counters at that time."""

    schema: int = SCHEMA
    next_id: int
    opened: int
    """Decisions so far; the rest counts them by how they ended"""
    settled: int
    expired: int
    superseded: int
    orphaned: int


Record: TypeAlias = Opened | Closing | Added | Cut | Carried | Sealed | Spooled | Header


def pack_legal(legal: NDArray | None) -> bytes:
    """bool [options] as bits; empty for None."""
    return b"" if legal is None else np.packbits(legal).tobytes()


def unpack_legal(packed: bytes, options: int) -> NDArray:
    """bool [options]."""
    if not packed:
        return np.ones(options, np.bool_)
    return np.unpackbits(np.frombuffer(packed, np.uint8), count=options).view(np.bool_)


def check_opened(entries: list[Opened], spec: PolicySpec) -> str:
    """Describes the first invalid field, or returns an empty string.

    Without this check the learner would quarantine the episode much later.
    """
    width, bits = 4 * len(spec.features), (spec.actions.options + 7) // 8
    parts = spec.actions.parts
    for one in entries:
        if len(one.observation) != width:
            return f"observation: {len(one.observation)} bytes, expected {width}"
        if one.legal and len(one.legal) != bits:
            return f"legal: {len(one.legal)} bytes, expected {bits} or none"
        if len(one.action) != len(parts):
            return f"action: {len(one.action)} parts, expected {len(parts)}"
        for choice, size in zip(one.action, parts, strict=True):
            if not 0 <= choice < size:
                return f"action: {one.action} is outside the {parts} options of this run"
    numbers = [number for one in entries for number in (one.log_prob, one.value)]
    # nan: the gate gave no estimate.
    numbers += [one.expected for one in entries if not math.isnan(one.expected)]
    for name, values in (
        ("observation", np.frombuffer(b"".join(one.observation for one in entries), "<f4")),
        ("log_prob, value or expected", np.array(numbers, np.float32)),
    ):
        if not np.isfinite(values).all():
            return f"{name}: holds a number that is not finite"
    return ""


def check_added(parts: Sequence[Added]) -> str:
    """Describes the first invalid field, or returns an empty string."""
    finite = all(math.isfinite(part.reward) for part in parts)  # as float32 only in the closing
    return "" if finite else "reward: not finite"


def check_closings(closings: list[Closing]) -> str:
    """Describes the first invalid field, or returns an empty string."""
    if not np.isfinite(np.array([closing.reward for closing in closings], np.float32)).all():
        return "reward: not finite as float32"
    for closing in closings:
        if closing.state not in ENDINGS:
            return f"state: expected one of {', '.join(ENDINGS)}, got {closing.state!r}"
        if closing.outcome not in OUTCOMES:
            return f"outcome: expected one of {OUTCOMES}, got {closing.outcome!r}"
        if closing.terminal and closing.state != "settled":
            return f"terminal: decision {closing.id} ends {closing.state}, expected settled"
    return ""


_MARK = b"\xfeUSL"
_HEAD = struct.Struct("<4sII")
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Record])


def frame(records: Sequence[Record]) -> bytes:
    """Encodes records as one frame."""
    body = _encoder.encode(records)
    return _HEAD.pack(_MARK, len(body), zlib.crc32(body)) + body


def read_frames(data: bytes) -> Iterator[list[Record] | str]:
    """Yields the records of each whole frame, and a message for each damaged stretch."""
    at = 0
    while at < len(data):
        records = _frame_at(data, at)
        if records is not None:
            yield records
            at += _HEAD.size + _HEAD.unpack_from(data, at)[1]
            continue
        end = _next_frame(data, at + 1)
        if end == len(data):
            yield f"its last {end - at} bytes are half a record: left out"
        else:
            yield f"{end - at} damaged bytes at {at}: left out"
        at = end


def _frame_at(data: bytes, at: int) -> list[Record] | None:
    if not data.startswith(_MARK, at) or at + _HEAD.size > len(data):
        return None
    _, length, checksum = _HEAD.unpack_from(data, at)
    body = data[at + _HEAD.size : at + _HEAD.size + length]
    if len(body) < length or zlib.crc32(body) != checksum:
        return None
    try:
        return _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _next_frame(data: bytes, start: int) -> int:
    """The offset of the next whole frame, or the length of `data`."""
    at = data.find(_MARK, start)
    while at >= 0 and _frame_at(data, at) is None:
        at = data.find(_MARK, at + 1)
    return at if at >= 0 else len(data)
