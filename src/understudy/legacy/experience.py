"""Experience files of the old StarCraft II bot, converted to episodes and back.

Old files have no log-probabilities, no versions and mostly no result. So their decisions count as
not sampled: they train the value and the regression, never a ratio. The id of an imported episode
is a hash of its numbers, so that a match is imported once, under any file name.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from understudy.core import files
from understudy.core.arrays import NDArray, to_npz
from understudy.core.errors import FileFormatError
from understudy.experience.episode import IMPORTED, Episode, Meta, Outcome, check
from understudy.experience.spool import IMPORTS
from understudy.policy.spec import PolicySpec
from understudy.telemetry.text import plain

ARRAYS = ("states", "actions", "rewards")
_EXPERIENCE = re.compile(r"exp_(?P<at>\d{8}_\d{6})_ep(?P<episode>\d{1,9})")
_GAME = re.compile(r"game_(?P<at>\d{8}_\d{6}|.+)_(?:result\.)?(?P<result>[a-z]+)", re.IGNORECASE)
_RESULTS = {"victory": Outcome.VICTORY, "defeat": Outcome.DEFEAT, "tie": Outcome.TIE}
_LONGEST = 200


def identify(arrays: Mapping[str, NDArray]) -> str:
    """The id of what an old file holds."""
    digest = hashlib.sha256()
    for name, kind in zip(ARRAYS, (np.float32, np.int64, np.float32), strict=True):
        array = np.ascontiguousarray(arrays[name], kind)
        digest.update(f"{name}{array.shape}".encode())
        digest.update(array.tobytes())
    return f"{IMPORTED}{digest.hexdigest()[:32]}"


def decode(
    arrays: Mapping[str, NDArray],
    spec: PolicySpec,
    *,
    name: str,
    now: float,
    late_rewards: bool = False,
) -> Episode:
    """The match in these arrays, every number checked; `name` is that of its file.

    `late_rewards`: the file has the reward of each decision at the next one, as the old bot had.
    """
    states, actions, rewards = _checked(arrays, spec, what=name)
    length = len(rewards)
    outcome, tags = _from_name(name)
    meta = Meta(
        id=identify(arrays),
        outcome=outcome,
        finished_at=now,  # when it came here; when it was played is among the tags
        tags=tags,
        imported_from=tags["imported"],
    )
    episode = Episode(
        meta=meta,
        observations=states,
        actions=actions[:, None],
        log_probs=np.zeros(length, np.float32),
        values=np.zeros(length, np.float32),
        rewards=moved_back(rewards) if late_rewards else rewards,
        sampled=np.zeros(length, np.bool_),
        versions=np.zeros(length, np.int64),
    )
    check(episode, spec, what=name)
    return episode


def encode(arrays: Mapping[str, NDArray]) -> bytes:
    """states [T, F], actions [T] and rewards [T] as the `.npz` file that the old code reads."""
    return to_npz({name: arrays[name] for name in ARRAYS})


def moved_back(rewards: NDArray) -> NDArray:
    """Rewards [T] that were stored one decision late, each at the decision that earned it.

    The first one was left over from the match before, and goes. The last one is the reward of the
    decision before it and of the result in one number: it stays where the result belongs.
    """
    if len(rewards) < 3:
        return rewards
    return np.concatenate([rewards[1:-1], np.zeros(1, rewards.dtype), rewards[-1:]])


class Imports:
    """The ids that came into a run folder from outside, in one file.

    Versions and archived episodes are pruned; this is what remembers an import for ever. It is
    written after the episode, so a crash between the two costs a second copy, which the learner
    finds by its id and sets aside. With `most` ids it is full: none is forgotten, and no more files
    are imported.
    """

    def __init__(self, root: Path, *, most: int) -> None:
        self._path = root / IMPORTS
        self._most = most
        self._count: int | None = None

    @property
    def refusal(self) -> str:
        """Why no more files may be imported; empty: they may."""
        if not self._full:
            return ""
        return (
            f"this run remembers {self._most:,} imports and takes no more "
            "(retention.imported_files): raise that, or import into another run"
        )

    def ids(self) -> set[str]:
        try:
            lines = self._path.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return set()
        return {line.partition(" ")[0] for line in lines}

    def add(self, key: str, name: str) -> bool:
        """One more, with the name of the file it came from; False: it is full, and this id is not
        remembered."""
        if self._full:
            return False
        assert self._count is not None
        self._count += 1
        files.append(self._path, f"{key} {plain(name)}\n".encode())
        return True

    @property
    def _full(self) -> bool:
        if self._count is None:
            self._count = len(self.ids())
        return self._count >= self._most


def _checked(
    arrays: Mapping[str, NDArray], spec: PolicySpec, *, what: str
) -> tuple[NDArray, NDArray, NDArray]:
    for name, kinds in zip(ARRAYS, ("f", "iu", "f"), strict=True):
        if name not in arrays:
            raise FileFormatError(f"{what}: has no {name!r}")
        if arrays[name].dtype.kind not in kinds and arrays[name].size:
            raise FileFormatError(f"{what}: {name} are {arrays[name].dtype}, expected numbers")
    states, actions, rewards = (arrays[name] for name in ARRAYS)
    inputs, options = len(spec.features), spec.actions.options
    length = _length([array.shape[0] if array.ndim else 0 for array in (states, actions, rewards)])
    if length is None:
        shapes = ", ".join(f"{name} {arrays[name].shape}" for name in ARRAYS)
        raise FileFormatError(f"{what}: expected equally many of each; got {shapes}")
    if length == 0:
        raise FileFormatError(f"{what}: holds no decision")
    for name, array, shape in (
        ("states", states, (length, inputs)),
        ("actions", actions, (length,)),
        ("rewards", rewards, (length,)),
    ):
        if array.shape != shape:
            raise FileFormatError(f"{what}: {name} have shape {array.shape}, expected {shape}")
    if (actions < 0).any() or (actions >= options).any():
        raise FileFormatError(f"{what}: an action is outside 0 to {options - 1}")
    with np.errstate(over="ignore"):
        states, rewards = states.astype(np.float32), rewards.astype(np.float32)
    for name, array in (("states", states), ("rewards", rewards)):
        if not np.isfinite(array).all():
            raise FileFormatError(f"{what}: {name} hold numbers that are not finite")
    return states, actions.astype(np.int32), rewards


def _length(lengths: list[int]) -> int | None:
    """How many decisions most of the arrays have, so that the odd one is blamed; None: no two."""
    ((length, arrays),) = Counter(lengths).most_common(1)
    return length if arrays > 1 else None


def _from_name(name: str) -> tuple[Outcome, dict[str, str]]:
    """The outcome and the tags that a file's name tells.

    A file was written when a match was over, so its end is an end: `aborted` would drop the last
    reward, where the result is. A name without a result counts as a tie.
    """
    stem = Path(name).stem
    tags = {"imported": plain(name)[:_LONGEST]}
    found = _EXPERIENCE.fullmatch(stem) or _GAME.fullmatch(stem)
    known = found.groupdict() if found else {}
    if "at" in known:
        tags["recorded"] = plain(known["at"])[:_LONGEST]
    if "episode" in known:
        tags["old_episode"] = known["episode"]
    outcome = _RESULTS.get(known.get("result", "").lower())
    if outcome is None:
        tags["result"] = "unknown"
    return outcome or Outcome.TIE, tags
