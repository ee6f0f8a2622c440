"""What the ledger writes down: one small struct for each thing that can happen to a decision.

Records are arrays in msgpack with their tag first. They are only ever appended, so the last word
about a decision is the last record that names it.

Frames: how records lie in a file, so that what is damaged is found, told and stepped over.

A frame is a mark, the length and the CRC-32 of what follows, and a list of records in msgpack. It
is written in one go and it is whole or it does not count: nothing of half a batch is believed.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from understudy.core.arrays import NDArray

SCHEMA = 1
Ending = Literal["settled", "expired", "superseded", "orphaned"]
ENDINGS: tuple[Ending, ...] = ("settled", "expired", "superseded", "orphaned")
Result = Literal["", "victory", "defeat", "tie"]
OUTCOMES: tuple[Result, ...] = ("", "victory", "defeat", "tie")


class Opened(msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False, tag="open"):
    """A decision as it was answered."""

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
    """The game was told to execute it"""
    explored: bool
    """The gate said WAIT and it was sent anyway"""
    expected: float
    """What the gate expected"""
    observation: bytes
    """float32 [F], little-endian"""
    legal: bytes = b""
    """`pack_legal` of bool [options]; empty: everything was legal"""


class Closing(msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False, tag="close"):
    """How a decision ended."""

    id: int
    state: Ending
    reward: float = 0.0
    terminal: bool = False
    """The territory ended with this decision (which has to be settled)"""
    outcome: Result = ""
    """Who won, where the territory ended; empty: nobody"""


class Added(msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False, tag="add"):
    """A part of the reward of a decision that is still open; parts are summed."""

    id: int
    reward: float


class Cut(msgspec.Struct, frozen=True, array_like=True, kw_only=True, tag="cut"):
    """The segment ends with this decision, whatever comes."""

    id: int
    bootstrap: bytes
    """float32 [F] of what was seen next; empty: nothing was"""
    outcome: Result = ""
    """Who won, where the territory ended with it; empty: it did not end"""


class Carried(msgspec.Struct, frozen=True, array_like=True, kw_only=True, tag="carry"):
    """A decision of an old file that is about to go, with all that is known of it."""

    opened: Opened
    closing: Closing | None
    bootstrap: bytes | None
    """Of its cut, if there is one"""
    outcome: Result = ""
    """Of its cut"""
    added: float | None = None
    """The parts of its reward so far, summed"""


class Sealed(msgspec.Struct, frozen=True, array_like=True, kw_only=True, tag="seal"):
    """These decisions are one episode: written before the spool gets it.

    So a crash in between leads to the same episode again, whatever the settings are by then.
    """

    ids: tuple[int, ...]
    bootstrap: bytes
    outcome: str
    at: float


class Spooled(msgspec.Struct, frozen=True, array_like=True, kw_only=True, tag="spool"):
    """The spool has the episodes that begin with these decisions."""

    firsts: tuple[int, ...]


class Header(msgspec.Struct, frozen=True, array_like=True, kw_only=True, tag="head"):
    """What a file begins with: where everything stood then."""

    schema: int = SCHEMA
    next_id: int
    opened: int
    """Of all decisions so far, and of each ending:"""
    settled: int
    expired: int
    superseded: int
    orphaned: int


Record: TypeAlias = Opened | Closing | Added | Cut | Carried | Sealed | Spooled | Header


def pack_legal(legal: NDArray | None) -> bytes:
    """bool [options] as bits, empty for None."""
    return b"" if legal is None else np.packbits(legal).tobytes()


def unpack_legal(packed: bytes, options: int) -> NDArray:
    """bool [options]."""
    if not packed:
        return np.ones(options, np.bool_)
    return np.unpackbits(np.frombuffer(packed, np.uint8), count=options).view(np.bool_)


_MARK = b"\xfeUSL"
_HEAD = struct.Struct("<4sII")
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Record])


def frame(records: Sequence[Record]) -> bytes:
    """Records as bytes to append."""
    body = _encoder.encode(records)
    return _HEAD.pack(_MARK, len(body), zlib.crc32(body)) + body


def read_frames(data: bytes) -> Iterator[list[Record] | str]:
    """All that can be read, in order, and in between in words what could not be."""
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
    """Where the next whole frame begins, or the end."""
    at = data.find(_MARK, start)
    while at >= 0 and _frame_at(data, at) is None:
        at = data.find(_MARK, at + 1)
    return at if at >= 0 else len(data)
