"""Recorded matches: files in `matches/` of a run folder, from which a match can be played again.

A file holds what determines a match (seed, rules version, game options, both sides' actions) and a
checksum of every state, so that a replay is either the match that was played, bit for bit, or an
error. Schema 1 (docs/file-formats.md). The folder has one writer, the learner of the run, and at
most `MAX_FOLDER_BYTES`; the oldest recordings are removed first.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from understudy.core import files
from understudy.core.arrays import NDArray, from_npz, read_bytes, to_npz
from understudy.core.errors import FileFormatError, RunFolderError
from understudy.core.seals import seal, unseal

SCHEMA = 1
FOLDER = "matches"
MAX_FOLDER_BYTES = 64 * 2**20
"""About 4,000 long matches of brawl."""
_MAX_BYTES = 16 * 2**20
_SUFFIX = ".match"
_DIGITS = 8
_ARRAYS = ("meta", "actions", "checksums")


class RecordingMeta(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is known of a recorded match beside its frames."""

    schema: int = SCHEMA
    game: str
    rules: int
    """The version of the game's rules."""
    options: dict[str, str] = {}
    """The options that the game was made with: a delay, say."""
    engine: str
    """What computed the states: `jax 0.10.2 on cpu`. Another engine may round differently."""
    seed: int
    """Of the match, uint32."""
    side: int
    """The player that the learner was, 0 or 1."""
    opponent: str
    """A scripted bot, or a snapshot by name."""
    score: int
    """Of the learner: +1 won, 0 drawn, -1 lost."""
    frames: int
    version: int
    """The newest version of the run before the iteration in which the match ended."""
    steps: int
    """Trained on by the run before that iteration."""
    recorded_at: float


@dataclass(frozen=True)
class RecordedMatch:
    """One match, from its first frame to the one that ended it."""

    meta: RecordingMeta
    actions: NDArray
    """uint8 or uint16 [T, players, parts], as executed"""
    checksums: NDArray
    """uint32 [T]: of the state after each frame, see `replaying.checksum`"""


def encode(match: RecordedMatch) -> bytes:
    """As `.npz` bytes behind their SHA-256."""
    return seal(
        to_npz(
            {
                "meta": np.frombuffer(msgspec.json.encode(match.meta), np.uint8),
                "actions": match.actions,
                "checksums": match.checksums,
            }
        )
    )


def decode(data: bytes, *, what: str) -> RecordedMatch:
    """The match, or a `FileFormatError` that names the field."""
    meta, arrays = _opened(data, what=what)
    if set(arrays) != set(_ARRAYS):
        raise FileFormatError(f"{what}: expected the arrays {_ARRAYS}, got {tuple(arrays)}")
    actions, checksums = arrays["actions"], arrays["checksums"]
    shaped = actions.ndim == 3 and len(actions) == meta.frames and actions.shape[1] in (1, 2)
    if actions.dtype not in (np.uint8, np.uint16) or not shaped:
        raise FileFormatError(
            f"{what}: actions is {actions.dtype} {actions.shape}, expected unsigned numbers "
            f"[{meta.frames}, players, parts]"
        )
    if checksums.dtype != np.uint32 or checksums.shape != (meta.frames,):
        raise FileFormatError(
            f"{what}: checksums is {checksums.dtype} {checksums.shape}, expected uint32 "
            f"[{meta.frames}]"
        )
    return RecordedMatch(meta, actions, checksums)


def _opened(data: bytes, *, what: str) -> tuple[RecordingMeta, dict[str, NDArray]]:
    body = unseal(data)
    if body is None:
        raise FileFormatError(f"{what}: does not match its checksum: damaged, or not a recording")
    arrays = from_npz(body, what=what, limit=_MAX_BYTES)
    raw = arrays.get("meta")
    if raw is None or raw.dtype != np.uint8:
        raise FileFormatError(f"{what}: meta: expected the bytes of a JSON object")
    try:
        meta = msgspec.json.decode(raw.tobytes(), type=RecordingMeta)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{what}: meta: {error}") from error
    if meta.schema != SCHEMA:
        raise FileFormatError(f"{what}: schema {meta.schema}, this program reads {SCHEMA}")
    for name, least, most in (
        ("seed", 0, 2**32 - 1), ("side", 0, 1), ("score", -1, 1), ("frames", 1, _MAX_BYTES),
    ):  # fmt: skip
        if not least <= getattr(meta, name) <= most:
            raise FileFormatError(
                f"{what}: meta: {name} {getattr(meta, name)}, expected {least} to {most}"
            )
    return meta, arrays


class MatchRecordings:
    """The recordings of one run, by number: the first is 1, and no number is used again."""

    def __init__(self, root: Path) -> None:
        """`root`: the run folder. Nothing is made before the first recording."""
        self.folder = root / FOLDER
        self._sizes: dict[int, int] | None = None
        """Bytes by number, oldest first; None until the first `put`, which counts them."""

    def put(self, match: RecordedMatch) -> int:
        """Keep a match, whole or not at all, and remove the oldest beyond the bound."""
        if self._sizes is None:
            self._sizes = self._take_stock()
        number = max(self._sizes, default=0) + 1
        data = encode(match)
        files.write_atomic(self._path(number), data)
        self._sizes[number] = len(data)
        self._prune(self._sizes)
        return number

    def numbers(self) -> list[int]:
        """Of all recordings, oldest first."""
        if not self.folder.is_dir():
            return []
        stems = (path.stem for path in self.folder.glob(f"*{_SUFFIX}"))
        return sorted(int(stem) for stem in stems if stem.isdecimal() and len(stem) >= _DIGITS)

    def load(self, number: int) -> RecordedMatch:
        """One recording; `FileFormatError` if it is damaged."""
        return decode(self._bytes(number), what=str(self._path(number)))

    def meta(self, number: int) -> RecordingMeta:
        """What is known of one beside its frames."""
        return _opened(self._bytes(number), what=str(self._path(number)))[0]

    def _bytes(self, number: int) -> bytes:
        try:
            return read_bytes(self._path(number), limit=_MAX_BYTES)
        except FileNotFoundError as error:
            kept = self.numbers()
            there = f"there are {kept[0]} to {kept[-1]}" if kept else "this run has none"
            raise RunFolderError(
                f"{self.folder}: there is no recorded match {number}; {there}"
            ) from error

    def _take_stock(self) -> dict[int, int]:
        """The sizes of all recordings. Removes what an interrupted write left."""
        if not self.folder.is_dir():
            files.make_folders(self.folder)
        files.sweep(self.folder, older_than_s=0.0)  # under the lock no other process writes here
        sizes = {}
        for number in self.numbers():
            with contextlib.suppress(FileNotFoundError):  # a person may delete one
                sizes[number] = self._path(number).stat().st_size
        return sizes

    def _prune(self, sizes: dict[int, int]) -> None:
        total = sum(sizes.values())
        for number in list(sizes)[:-1]:  # the newest stays, whatever its size
            if total <= MAX_FOLDER_BYTES:
                break
            with contextlib.suppress(FileNotFoundError):
                files.remove(self._path(number))
            total -= sizes.pop(number)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:0{_DIGITS}d}{_SUFFIX}"
