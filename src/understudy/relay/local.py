"""What a relay keeps in its run folder, in `relay/`: which machine it is, and what it was sending.

`side.json` binds the folder to one store and one side: matches that were sent once must not be sent
to another store unnoticed, and a folder that learned is no player's. `outgoing.json` is written
before a bundle is sent, so that after a kill the same bundle is finished, under the same name.
"""

from __future__ import annotations

import platform
import secrets
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

import msgspec

from understudy.core import files
from understudy.core.errors import ConfigError, FileFormatError
from understudy.core.seals import seal, unseal

Side: TypeAlias = Literal["player", "learner"]
SIDES: tuple[Side, ...] = ("player", "learner")
FOLDER = "relay"
T = TypeVar("T")
_SIDE = "side.json"
_OUTGOING = "outgoing.json"


class RelaySide(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whose relay works in this folder."""

    side: Side
    store: str
    machine: str
    """12 random hexadecimal digits: the machine's name in the store"""
    host: str
    folder: str
    """Where the run folder was: a copy of it on another machine, or in another place, is another
    machine"""


class OutgoingBundle(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The bundle that is being sent, or was sent last."""

    number: int = 0
    key: str = ""
    names: tuple[str, ...] = ()
    """Files of the spool in it; empty: it is sent, and they are archived"""


class LocalState:
    """The folder `relay/` of a run folder. Use it under the relay's lock."""

    def __init__(self, root: Path, store: str, side: Side) -> None:
        self._folder = root / FOLDER
        self.host = platform.node()
        files.make_folders(self._folder)
        files.sweep(self._folder, older_than_s=0.0)  # under the lock no other process writes here
        where = str(root.resolve())
        kept = read_side(root)
        if kept is not None and (kept.side, kept.store) != (side, store):
            raise ConfigError(
                f"{root}: a relay has connected this run folder, as the {kept.side}'s side, with "
                f"{kept.store}; now it is the {side}'s, with {store}. Use another run folder, or "
                f"remove {self._folder} if that is over"
            )
        outgoing = _read(self._folder / _OUTGOING, OutgoingBundle)
        same_place = kept is not None and (kept.host, kept.folder) == (self.host, where)
        if kept is None or outgoing is None or not same_place:
            # A copy would send other bundles under the same numbers, so it gets a name of its own.
            # What it was sending is the same in both, and is finished under the name it has.
            outgoing = outgoing if outgoing is not None and outgoing.names else OutgoingBundle()
            self.note(outgoing)
            machine = secrets.token_hex(6)
            kept = RelaySide(side=side, store=store, machine=machine, host=self.host, folder=where)
            self._write(_SIDE, kept)
        self.outgoing = outgoing
        self.machine = kept.machine

    def note(self, outgoing: OutgoingBundle) -> None:
        """Remember a bundle, durably."""
        self._write(_OUTGOING, outgoing)
        self.outgoing = outgoing

    def _write(self, name: str, record: RelaySide | OutgoingBundle) -> None:
        files.write_atomic(self._folder / name, seal(msgspec.json.encode(record)))


def read_side(root: Path) -> RelaySide | None:
    """Whose relay works in a run folder; None: none ever did."""
    return _read(side_file(root), RelaySide)


def side_file(root: Path) -> Path:
    """Where that is written, if there is one."""
    return root / FOLDER / _SIDE


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        body = unseal(path.read_bytes())
    except FileNotFoundError:
        return None
    if body is None:
        raise FileFormatError(f"{path}: damaged; remove {path.parent}, and the relay begins anew")
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise FileFormatError(f"{path}: {error}; another version of Understudy wrote it") from error
