"""Episodes side by side in padded arrays, in a few shapes, so that nothing compiles twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.ops import Array
from understudy.experience.episode import Episode
from understudy.policy.spec import PolicySpec

_SHORTEST = 64


class Batch(NamedTuple):
    """Time-major arrays; a column is one episode from its start, then padding."""

    obs: Array
    """float32 [T, B, F], raw"""
    legal: Array
    """bool [T, B, options]"""
    actions: Array
    """int32 [T, B, parts]"""
    log_probs: Array
    """float32 [T, B] of the behaviour; 0 where not sampled"""
    rewards: Array
    """float32 [T, B]"""
    ongoing: Array
    """float32 [T, B]: 1 where the match goes on after this decision"""
    valid: Array
    """float32 [T, B]: 1 on decisions, 0 on padding and on rows that only bootstrap"""
    sampled: Array
    """float32 [T, B]: 1 on valid decisions that a policy sampled"""
    on_policy: Array
    """float32 [T, B]: 1 on those that it sampled not too many versions ago"""
    imitated: Array
    """float32 [T, B]: 1 on valid decisions to be imitated, which no policy sampled"""
    weights: Array | None
    """float32 [T, B]: how much a decision counts, 1 at most; None: all alike, and nothing is
    multiplied, which could change the last bit"""
    value_weights: Array | None = None
    """float32 [T, B]: how much it counts for the value, beside that; None: all alike"""
    cut: Array | None = None
    """float32 [T, B]: 1 where the trace ends after this row, and the value of the next bootstraps;
    None: nowhere"""
    first: Array | None = None
    """bool [T, B]: rows before which memory is emptied; None: the first of each column alone"""


def padded_length(longest: int) -> int:
    """The next power of two that leaves a row for the bootstrap, at least 64."""
    length = _SHORTEST
    while length < longest + 1:
        length *= 2
    return length


def assemble(
    episodes: Sequence[Episode],
    spec: PolicySpec,
    *,
    columns: int,
    version: int,
    max_lag: int | None,
    mixed: bool = False,
) -> Batch:
    """One batch of at most `columns` episodes, as seen by a learner at `version`.

    Args:
        episodes: Each becomes a column.
        spec: Features, actions and network of the policy.
        columns: Columns of the batch; those without an episode are padding.
        version: The newest version.
        max_lag: Decisions of versions that are older than this by more train the value alone; None:
            no version is too old.
        mixed: Whether the batch has `cut`: rules and policy may share an episode.
    """
    length = padded_length(max(len(episode) for episode in episodes))
    shape = (length, columns)
    batch = Batch(
        obs=np.zeros((*shape, len(spec.features)), np.float32),
        legal=np.ones((*shape, spec.actions.options), np.bool_),
        actions=np.zeros((*shape, len(spec.actions.parts)), np.int32),
        log_probs=np.zeros(shape, np.float32),
        rewards=np.zeros(shape, np.float32),
        ongoing=np.zeros(shape, np.float32),
        valid=np.zeros(shape, np.float32),
        sampled=np.zeros(shape, np.float32),
        on_policy=np.zeros(shape, np.float32),
        imitated=np.zeros(shape, np.float32),
        weights=None,
        cut=np.zeros(shape, np.float32) if mixed else None,
        first=starts(shape) if spec.remembers else None,
    )
    oldest = 0 if max_lag is None else version - max_lag
    for column, episode in enumerate(episodes):
        _fill(batch, column, episode, oldest=oldest)
    return batch


def of_observations(observations: NDArray, spec: PolicySpec) -> Batch:
    """Observations [N, F], each a decision of its own; nothing else is known of them."""
    shape = (1, len(observations))
    zeros, ones = np.zeros(shape, np.float32), np.ones(shape, np.float32)
    return Batch(
        obs=observations[None].astype(np.float32),
        legal=np.ones((*shape, spec.actions.options), np.bool_),
        actions=np.zeros((*shape, len(spec.actions.parts)), np.int32),
        log_probs=zeros,
        rewards=zeros,
        ongoing=zeros,
        valid=ones,
        sampled=zeros,
        on_policy=zeros,
        imitated=zeros,
        weights=None,
    )


def without_replayed_values(batch: Batch, *, new: int) -> Batch:
    """The same, but only the first `new` columns train the value: for columns after them that were
    drawn by preference.

    Weights by the inverse of the preference would be biased as well: the limit on samples undoes a
    part of the preference (a preferred match is used up sooner), so they would correct too much.
    """
    fresh = np.arange(batch.valid.shape[1]) < new
    return batch._replace(
        value_weights=np.broadcast_to(fresh, batch.valid.shape).astype(np.float32)
    )


def _fill(batch: Batch, column: int, episode: Episode, *, oldest: int) -> None:
    n, taught = len(episode), episode.taught
    batch.obs[:n, column] = episode.observations
    if episode.bootstrap is not None:
        batch.obs[n, column] = episode.bootstrap
    elif episode.truncated:
        # What came after the last decision was never seen: that decision becomes the bootstrap.
        n -= 1
    batch.actions[:n, column] = episode.actions[:n]
    batch.log_probs[:n, column] = episode.log_probs[:n]
    batch.rewards[:n, column] = episode.rewards[:n]
    batch.ongoing[:n, column] = taught[:n]
    if n and not episode.truncated:
        batch.ongoing[n - 1, column] = 0.0
    batch.valid[:n, column] = taught[:n]
    sampled = taught[:n] & episode.sampled[:n]
    batch.sampled[:n, column] = sampled
    batch.on_policy[:n, column] = sampled & (episode.versions[:n] >= oldest)
    batch.imitated[:n, column] = taught[:n] & ~episode.sampled[:n]
    if episode.legal is not None:
        batch.legal[:n, column] = episode.legal[:n]
    if batch.cut is not None and episode.cameos is not None:
        own = episode.cameos[:n] > 0
        batch.cut[: max(n - 1, 0), column] = own[1:] != own[:-1]
    if batch.first is not None and episode.cuts is not None:
        batch.first[: len(episode), column] |= episode.cuts


def starts(shape: tuple[int, int]) -> NDArray:
    """bool [T, B]: the first row of every column."""
    first = np.zeros(shape, np.bool_)
    first[0] = True
    return first


def version_lags(episodes: Iterable[Episode], version: int) -> dict[str, int]:
    """How many decisions were made how many versions ago, in widening steps."""
    counts: Counter[str] = Counter()
    for episode in episodes:
        lags, times = np.unique(version - episode.versions[episode.sampled], return_counts=True)
        for lag, count in zip(lags, times, strict=True):
            low = 1 << max(int(lag), 0).bit_length() >> 1
            name = str(low) if low <= 1 else f"{low}-{2 * low - 1}"
            counts[name] += int(count)
    return dict(counts)
