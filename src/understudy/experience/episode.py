"""The episode: one match from one side, the only unit of durable experience.

Schema 1, as `.npz` (docs/file-formats.md). Observations are raw features; a decision that no policy
sampled (the rules made it, or it was imported) has no behaviour log-probability, and `sampled` is
False. The reward at t belongs to the decision at t.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import msgspec
import numpy as np

from understudy.core.arrays import NDArray, from_npz, read_bytes, to_npz
from understudy.core.errors import FileFormatError
from understudy.policy.spec import PolicySpec

SCHEMA = 1
IMPORTED = "import-"
"""What the id of an imported episode begins with."""
MAX_BYTES = 64 * 2**20
_MAX_TAG = 200
TOO_LARGE = 2.0**64
"""The square of such a number is infinite in float32, so the learner refuses it. A policy still
decides on such an observation."""


class Outcome(StrEnum):
    """How a match ended."""

    VICTORY = "victory"
    DEFEAT = "defeat"
    TIE = "tie"
    ABORTED = "aborted"


class Meta(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A match without its decisions."""

    schema: int = SCHEMA
    id: str
    outcome: Outcome
    finished_at: float
    """Seconds since 1970"""
    tags: dict[str, str] = {}
    """opponent, map, race, difficulty and other tags of the bot"""
    imported_from: str = ""
    """The name of the imported file, if any"""
    cameo_coin: float = 0.0
    """The probability with which a window of `Episode.cameos` was the policy's; 0: no windows"""


@dataclass(frozen=True)
class Episode:
    """Arrays over T decisions; all from `legal` on may be absent."""

    meta: Meta
    observations: NDArray
    """float32 [T, F]"""
    actions: NDArray
    """int32 [T, parts], as executed; as proposed, where a decision gate has the last word"""
    log_probs: NDArray
    """float32 [T]; 0 where not sampled"""
    values: NDArray
    """float32 [T], what the policy expected, in units of reward"""
    rewards: NDArray
    """float32 [T]"""
    sampled: NDArray
    """bool [T]: a policy drew this action with this log-probability"""
    versions: NDArray
    """int64 [T]: the version that decided, or ran in shadow where the rules decided"""
    legal: NDArray | None = None
    """bool [T, options]; absent: everything was legal"""
    bootstrap: NDArray | None = None
    """float32 [F]: the observation after the last decision, where the match went on"""
    sent: NDArray | None = None
    """bool [T]: a decision gate let it through, or it was explored; absent: no gate judged"""
    explored: NDArray | None = None
    """bool [T]: the gate said WAIT and it was sent anyway"""
    expected: NDArray | None = None
    """float32 [T]: what the gate expected, in units of reward; nan: it gave no estimate"""
    settled: NDArray | None = None
    """bool [T]: its reward is known; absent: all are. A decision without a reward is not learned
    from; it is kept because the memory of later decisions depends on it"""
    cuts: NDArray | None = None
    """bool [T]: the policy's memory was emptied before this decision, because a feature of the
    decision before was not finite; absent: it was emptied before the first decision only"""
    cameos: NDArray | None = None
    """int16 [T]: windows in a match that the rules played: k in window k where the coin gave it to
    the policy, -k in window k where the rules went on as control, 0 outside; absent: none"""

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def truncated(self) -> bool:
        """Whether the match went on after the last decision."""
        return self.meta.outcome is Outcome.ABORTED or self.bootstrap is not None

    @property
    def taught(self) -> NDArray:
        """bool [T]: decisions that are learned from."""
        return np.ones(len(self), np.bool_) if self.settled is None else self.settled


_OPTIONAL = ("legal", "bootstrap", "sent", "explored", "expected", "settled", "cuts", "cameos")
_DTYPES = {
    "observations": np.float32,
    "actions": np.int32,
    "log_probs": np.float32,
    "values": np.float32,
    "rewards": np.float32,
    "sampled": np.bool_,
    "versions": np.int64,
    "legal": np.bool_,
    "bootstrap": np.float32,
    "sent": np.bool_,
    "explored": np.bool_,
    "expected": np.float32,
    "settled": np.bool_,
    "cuts": np.bool_,
    "cameos": np.int16,
}


def encode(episode: Episode) -> bytes:
    """An episode as `.npz` bytes."""
    arrays = {"meta": np.frombuffer(msgspec.json.encode(episode.meta), np.uint8)}
    for name in _DTYPES:
        value = getattr(episode, name)
        if value is not None:
            arrays[name] = value
    return to_npz(arrays)


def decode(data: bytes, spec: PolicySpec, *, what: str) -> Episode:
    """An episode from `.npz` bytes, checked against the spec of the run."""
    arrays = from_npz(data, what=what, limit=MAX_BYTES)
    if "meta" not in arrays:
        raise FileFormatError(
            f"{what}: has no 'meta', so it is not an episode "
            "(files of an older bot come in through `understudy import`)"
        )
    meta = _decode_meta(arrays.pop("meta"), what)
    required = _DTYPES.keys() - set(_OPTIONAL)
    if not required <= arrays.keys() <= _DTYPES.keys():
        odd = sorted((required - arrays.keys()) | (arrays.keys() - _DTYPES.keys()))
        raise FileFormatError(f"{what}: missing or unknown arrays {odd[:4]}")
    for name, array in arrays.items():
        if array.dtype != _DTYPES[name]:
            raise FileFormatError(
                f"{what}: {name} is {array.dtype}, expected {np.dtype(_DTYPES[name])}"
            )
    episode = Episode(meta=meta, **arrays)
    check(episode, spec, what=what)
    return episode


def read_meta(path: Path) -> Meta:
    """Reads the meta data alone."""
    data = read_bytes(path, limit=MAX_BYTES)
    arrays = from_npz(data, what=path.name, limit=MAX_BYTES, only=("meta",))
    if "meta" not in arrays:
        raise FileFormatError(f"{path.name}: has no 'meta', so it is not an episode")
    return _decode_meta(arrays["meta"], path.name)


def check(episode: Episode, spec: PolicySpec, *, what: str) -> None:
    """Checks shapes, ranges and finiteness; FileFormatError names the field."""
    if episode.rewards.ndim != 1:
        raise FileFormatError(
            f"{what}: rewards has shape {episode.rewards.shape}, expected one axis"
        )
    length, inputs = len(episode), len(spec.features)
    parts, options = spec.actions.parts, spec.actions.options
    if length == 0:
        raise FileFormatError(f"{what}: holds no decision")
    shapes: dict[str, tuple[int, ...]] = {
        "observations": (length, inputs),
        "actions": (length, len(parts)),
        "log_probs": (length,),
        "values": (length,),
        "rewards": (length,),
        "sampled": (length,),
        "versions": (length,),
        "legal": (length, options),
        "bootstrap": (inputs,),
        "sent": (length,),
        "explored": (length,),
        "expected": (length,),
        "settled": (length,),
        "cuts": (length,),
        "cameos": (length,),
    }
    for name, shape in shapes.items():
        array = getattr(episode, name)
        if array is None:
            continue
        if array.shape != shape:
            raise FileFormatError(f"{what}: {name} has shape {array.shape}, expected {shape}")
        if array.dtype.kind == "f" and not _numbers(name, array).all():
            raise FileFormatError(f"{what}: {name} holds numbers that are not finite")
    if (episode.actions < 0).any() or (episode.actions >= np.array(parts)).any():
        raise FileFormatError(f"{what}: an action is outside the {parts} options of this run")
    if (episode.log_probs > 1e-4).any() or (episode.versions < 0).any():
        raise FileFormatError(f"{what}: a log-probability above 0 or a negative version")
    if episode.explored is not None and (
        episode.sent is None or (episode.explored & ~episode.sent).any()
    ):
        raise FileFormatError(f"{what}: a decision was explored and not sent")
    if episode.legal is not None:
        starts = np.concatenate([[0], np.cumsum(parts)[:-1]])
        flat = episode.actions + starts
        if not np.take_along_axis(episode.legal, flat, axis=1).all():
            raise FileFormatError(f"{what}: an executed action is illegal under its own mask")
    if episode.cameos is not None:
        _check_cameos(episode.cameos, episode.sampled, episode.meta.cameo_coin, what=what)


def _check_cameos(cameos: NDArray, sampled: NDArray, coin: float, *, what: str) -> None:
    """Windows are numbered from 1 in order, each is one stretch of one player, and exactly those
    of the policy are sampled."""
    begins = (cameos != 0) & (np.diff(cameos, prepend=np.int16(0)) != 0)
    numbers = np.abs(cameos[begins].astype(np.int64))
    if not np.array_equal(numbers, np.arange(1, len(numbers) + 1)):
        raise FileFormatError(
            f"{what}: cameos: expected windows 1, 2, ... of one player each, got {numbers[:8]}"
        )
    if ((cameos > 0) & ~sampled).any() or ((cameos < 0) & sampled).any():
        raise FileFormatError(
            f"{what}: cameos: expected sampled decisions in the policy's windows (k) and no others "
            "in those of the rules (-k)"
        )
    if len(numbers) and not 0.0 < coin < 1.0:
        raise FileFormatError(
            f"{what}: meta: cameo_coin is {coin}, expected a probability above 0: there are windows"
        )


def _numbers(name: str, array: NDArray) -> NDArray:
    """bool: where an array is valid; `expected` may be nan."""
    finite = np.isfinite(array)
    return finite | np.isnan(array) if name == "expected" else finite


def returns_of(
    rewards: Sequence[float] | NDArray, discounts: float | NDArray, *, later: float = 0.0
) -> NDArray:
    """Discounted returns [T, ...] of rewards [T, ...], in the precision of the rewards.

    `discounts` (one for all, or [T, ...]) weigh what follows each reward; `later` follows the last.
    """
    rewards = np.asarray(rewards)
    if not len(rewards):
        return rewards
    if rewards.dtype.kind != "f":
        rewards = rewards.astype(np.float64)
    discounts = np.broadcast_to(np.asarray(discounts, rewards.dtype), rewards.shape)
    returns = np.empty_like(rewards)
    following: NDArray = np.full_like(rewards[0], later)
    for t in reversed(range(len(rewards))):
        following = rewards[t] + discounts[t] * following
        returns[t] = following
    return returns


def surprise(episode: Episode, *, gamma: float, lam: float, length: int | None = None) -> NDArray:
    """float64 [N]: mean distance between value and target in each stretch of `length` decisions
    (all of them by default); what a replay prefers episodes or items by.

    The targets are the lambda-returns that the learner trains values towards, made of the values
    that were recorded. An error at t is the one-step error plus gamma * lam times the error at
    t + 1, as in GAE. It is cut where training cuts it: at the end of a stretch, which bootstraps
    from the next value, and before a decision whose reward never came. Nothing follows the end of a
    match, but a truncated one goes on: from its last decision, or, where a bootstrap was seen, from
    a state whose value is not recorded and taken to be that of the last decision.
    """
    values = episode.values.astype(np.float64)  # no sum of finite float32 numbers overflows here
    taught = episode.taught.astype(np.float64)
    if episode.truncated and episode.bootstrap is None:
        taught[-1] = 0.0
    after = np.append(values[1:], values[-1] if episode.truncated else 0.0)
    errors = (episode.rewards + gamma * after - values) * taught
    length = length or len(episode)
    missing = -len(episode) % length  # the last stretch may be shorter
    errors, taught = (
        np.append(one, np.zeros(missing)).reshape(-1, length).T for one in (errors, taught)
    )
    distances = np.abs(returns_of(errors, gamma * lam * taught))
    mean: NDArray = distances.sum(0) / np.maximum(taught.sum(0), 1.0)
    return mean


def largest_number(episode: Episode, spec: PolicySpec) -> tuple[float, str]:
    """The largest absolute number among observations, rewards and values, and its description.

    Decisions are counted from 0, as rows of the file.
    """
    seen = episode.observations
    if episode.bootstrap is not None:
        seen = np.append(seen, episode.bootstrap[None], axis=0)
    row, column = divmod(int(np.abs(seen).argmax()), seen.shape[1])
    where = f"in decision {row}" if row < len(episode) else "after the last decision"
    number = float(seen[row, column])
    found = [(abs(number), f"feature {spec.features[column]!r} is {number:g} {where}")]
    for name, numbers in (("reward", episode.rewards), ("value", episode.values)):
        row = int(np.abs(numbers).argmax())
        number = float(numbers[row])
        found.append((abs(number), f"the {name} is {number:g} in decision {row}"))
    return max(found)


def _decode_meta(raw: NDArray, what: str) -> Meta:
    if raw.dtype != np.uint8:
        raise FileFormatError(f"{what}: meta is {raw.dtype}, expected the bytes of a JSON object")
    try:
        meta = msgspec.json.decode(raw.tobytes(), type=Meta)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{what}: meta: {error}") from error
    if meta.schema != SCHEMA:
        raise FileFormatError(f"{what}: schema {meta.schema}, this program reads {SCHEMA}")
    if not meta.id or any(
        len(text) > _MAX_TAG for text in (meta.id, *meta.tags, *meta.tags.values())
    ):
        raise FileFormatError(f"{what}: meta: an id or a tag is empty or too long")
    if not 0.0 <= meta.cameo_coin < 1.0:
        raise FileFormatError(
            f"{what}: meta: cameo_coin is {meta.cameo_coin}, expected 0 or more, and below 1"
        )
    return meta
