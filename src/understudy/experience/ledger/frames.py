"""Frames: how records lie in a file, so that what is damaged is found, told and stepped over.

A frame is a mark, the length and the CRC-32 of what follows, and a list of records in msgpack. It
is written in one go and it is whole or it does not count: nothing of half a batch is believed.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence

import msgspec

from understudy.experience.ledger.records import Record

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
