"""Where the arena of a version was: its stage and who sat where, beside the league itself."""

from __future__ import annotations

import msgspec

from understudy.core.errors import FileFormatError
from understudy.league.curriculum import CurriculumState
from understudy.registry.versions import Manifest, Versions
from understudy.training.snapshot_opponents import OpponentState

TRAINING = "training.json"
"""The file of a version that says so."""


class Position(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of it; a version of an older program says nothing."""

    seats: OpponentState = OpponentState()
    course: CurriculumState | None = None


def encode(position: Position) -> bytes:
    """As JSON."""
    return msgspec.json.encode(position)


def decode(data: bytes | None, *, what: str) -> Position:
    """From JSON, or from a version that has none; `what` names the file in errors."""
    if data is None:
        return Position()
    try:
        return msgspec.json.decode(data, type=Position)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{what}: {error}") from error


def position_of(versions: Versions, manifest: Manifest) -> Position:
    """Where the arena of a version was, read from it."""
    data = versions.read(manifest, TRAINING) if TRAINING in manifest.files else None
    return decode(data, what=f"version {manifest.number}: {TRAINING}")
