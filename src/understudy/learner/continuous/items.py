"""Items: what the continuous learner samples, short stretches of an episode of one fixed shape.

An item is at most L decisions and the observation after them, so that every batch has one shape and
is compiled once. Cutting loses nothing: each decision is in exactly one item, and an item that does
not end its match bootstraps from what was seen next. For a network with memory an item is a whole
segment from its beginning, since only from empty memory does training repeat what played.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.config import Config
from understudy.experience.episode import Episode
from understudy.learner.batch import Batch
from understudy.policy.spec import PolicySpec

Fields = dict[str, tuple[tuple[int, ...], type[np.generic]]]


def item_length(spec: PolicySpec, config: Config) -> int:
    """L: decisions an item has at most."""
    return config.live.segment if spec.remembers else config.continuous.length


def fields(spec: PolicySpec, length: int) -> Fields:
    """The arrays of one item: name to shape and type. Masks are packed, eight options a byte."""
    bits = (spec.actions.options + 7) // 8
    return {
        "obs": ((length + 1, len(spec.features)), np.float32),
        "legal": ((length, bits), np.uint8),
        "actions": ((length, len(spec.actions.parts)), np.int32),
        "log_probs": ((length,), np.float32),
        "rewards": ((length,), np.float32),
        "expected": ((length,), np.float32),
        "sampled": ((length,), np.bool_),
        "sent": ((length,), np.bool_),
        "explored": ((length,), np.bool_),
        "settled": ((length,), np.bool_),
        "versions": ((length,), np.int64),
        "length": ((), np.int32),
        "terminal": ((), np.bool_),
        "gated": ((), np.bool_),
    }


def cut(episode: Episode, spec: PolicySpec, *, length: int) -> dict[str, NDArray]:
    """An episode as items: arrays [N, ...] as `fields` has them.

    With memory, what is longer than an item ends there. An aborted episode that does not say what
    came next gives up its last decision as the bootstrap; if that was the only one, N is 0.
    """
    total = len(episode)
    truncated = episode.truncated
    if truncated and episode.bootstrap is None:
        total -= 1
    if spec.remembers and total > length:
        total, truncated = length, True
    count = -(-total // length)
    starts = np.arange(count) * length

    def rows(array: NDArray) -> NDArray:
        """[T, ...] to [N, L, ...], zeros behind the end."""
        padded = np.zeros((count * length, *array.shape[1:]), array.dtype)
        padded[:total] = array[:total]
        return padded.reshape(count, length, *array.shape[1:])

    seen = np.zeros((count * length + 1, len(spec.features)), np.float32)
    seen[:total] = episode.observations[:total]
    if truncated:
        seen[total] = _after(episode, total)
    legal = np.ones((total, spec.actions.options), np.bool_)
    if episode.legal is not None:
        legal = episode.legal[:total]
    gated = episode.sent is not None
    sent = np.ones(total, np.bool_) if episode.sent is None else episode.sent
    explored = np.zeros(total, np.bool_) if episode.explored is None else episode.explored
    expected = np.full(total, np.nan, np.float32) if episode.expected is None else episode.expected
    return {
        "obs": seen[starts[:, None] + np.arange(length + 1)],
        "legal": rows(np.packbits(legal, axis=1)),
        "actions": rows(episode.actions),
        "log_probs": rows(episode.log_probs),
        "rewards": rows(episode.rewards),
        "expected": rows(expected),
        "sampled": rows(episode.sampled),
        "sent": rows(sent),
        "explored": rows(explored),
        "settled": rows(episode.taught),
        "versions": rows(episode.versions),
        "length": np.minimum(total - starts, length).astype(np.int32),
        "terminal": (starts + length >= total) & (not truncated),
        "gated": np.full(count, gated),
    }


def decisions(items: Mapping[str, NDArray]) -> NDArray:
    """bool [N, L]: which rows are decisions."""
    width = items["rewards"].shape[1]
    return np.asarray(np.arange(width) < items["length"][:, None])


def batch_of(
    items: Mapping[str, NDArray],
    spec: PolicySpec,
    *,
    columns: int,
    version: int,
    max_lag: int | None,
    weights: NDArray,
    learned: NDArray,
    imitation: float = 1.0,
) -> Batch:
    """One batch [L + 1, columns] of items [N, ...]; empty columns where N is smaller.

    Decisions of versions that are older than `max_lag` by more train the value alone; None: no
    version is too old. `weights` float32 [N] are how much each item counts; `learned` bool [N, L]
    is False on decisions that teach nothing, which then stand for what follows as a bootstrap does.

    `imitation` is the share of imitation that is left. For the rest, decisions of the rules count
    as experience of another policy, which chose them for certain: the logarithm of their
    probability is 0. That is exact for rules that always choose alike, and cautious for others. A
    decision that turned out worse than expected then becomes less likely.
    """
    count, length = items["rewards"].shape
    oldest = 0 if max_lag is None else version - max_lag
    taught = decisions(items) & items["settled"] & learned
    # In a live game what was not sampled was chosen by the rules, unless a gate had a part in the
    # episode: then it is the safe action of an overloaded server. No player chose that, and
    # imitation, which never pushes away, would teach it even where it is punished.
    rules = taught & ~items["sampled"] & ~items["gated"][:, None]
    own = taught & items["sampled"]
    sampled = own if imitation == 1.0 else own | rules
    ends = items["terminal"][:, None] & (np.arange(length) == items["length"][:, None] - 1)
    legal = np.unpackbits(items["legal"], axis=2, count=spec.actions.options).astype(np.bool_)
    legal |= ~decisions(items)[..., None]  # an empty row must not be without a legal action

    def laid(array: NDArray, dtype: type[np.generic], *, fill: float = 0) -> NDArray:
        """[N, L or L + 1, ...] to [L + 1, columns, ...]."""
        out = np.full((length + 1, columns, *array.shape[2:]), fill, dtype)
        out[: array.shape[1], :count] = np.swapaxes(array, 0, 1)
        return out

    return Batch(
        obs=laid(items["obs"], np.float32),
        legal=laid(legal, np.bool_, fill=1),
        actions=laid(items["actions"], np.int32),
        log_probs=laid(items["log_probs"], np.float32),
        rewards=laid(items["rewards"], np.float32),
        ongoing=laid(taught & ~ends, np.float32),
        valid=laid(taught, np.float32),
        sampled=laid(sampled, np.float32),
        on_policy=laid(
            (own & (items["versions"] >= oldest)) + (1.0 - imitation) * rules, np.float32
        ),
        imitated=laid(imitation * rules, np.float32),
        weights=laid(np.broadcast_to(weights[:, None], taught.shape), np.float32),
    )


def _after(episode: Episode, total: int) -> NDArray:
    """What was seen after the first `total` decisions of an episode that went on."""
    if total < len(episode) or episode.bootstrap is None:
        return np.asarray(episode.observations[total])
    return episode.bootstrap
