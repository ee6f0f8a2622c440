"""What an episode says of the version that decided in it: its score, and the alternatives' reward.

All functions are pure; `registry.scores` and `registry.comparisons` add up what they give.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.spaces import ActionSpace, Continuous
from understudy.experience.episode import Episode, Outcome
from understudy.registry.comparisons import Comparison, WeightedMean
from understudy.registry.scores import Score, with_match, with_rewards

MOST_ACTIONS = 64
"""Fixed actions that are compared one by one; they are part of every manifest."""
_LEAST = 1e-12
"""A draw that is less likely does not happen; its weight must not overflow all others."""


def decided_by_policy(episode: Episode) -> bool:
    """Whether a policy made most of the decisions, and not the rules."""
    return bool(2 * episode.sampled.sum() > len(episode))


def scored(scores: Sequence[Score], episode: Episode) -> tuple[Score, ...]:
    """The scores after an episode, which counts for the version of its last decision."""
    version, known = int(episode.versions[-1]), episode.rewards[episode.taught]
    if not episode.truncated:
        won = episode.meta.outcome is Outcome.VICTORY
        return with_match(scores, version, won=won, reward=float(known.sum()))
    return with_rewards(scores, version, [float(known.mean())] if len(known) else [])


def compared(episode: Episode, space: ActionSpace) -> Comparison:
    """The decisions of a segment that a policy drew and whose reward is known.

    Random is uniform over what is legal in each part. A fixed action that is illegal in a situation
    is replaced by a random one there. Behind a decision gate an action is a proposal, of the policy
    as of its alternatives.
    """
    counted = episode.sampled & episode.taught
    if isinstance(space, Continuous) or not counted.any():
        return Comparison()
    rewards = episode.rewards[counted].astype(np.float64)
    actions = episode.actions[counted]
    legal = (
        np.ones((len(actions), space.options), np.bool_)
        if episode.legal is None
        else episode.legal[counted]
    )
    drawn = np.maximum(np.exp(episode.log_probs[counted].astype(np.float64)), _LEAST)
    random, fixed = alternatives(actions, legal, space.parts)
    return Comparison(
        decisions=len(rewards),
        segments=1,
        policy=_group(np.ones(len(rewards)), rewards),
        random=_group(random / drawn, rewards),
        fixed=tuple(_group(one / drawn, rewards) for one in fixed),
    )


def alternatives(
    actions: NDArray, legal: NDArray, parts: tuple[int, ...]
) -> tuple[NDArray, NDArray]:
    """With which probability each alternative takes the actions [T, parts] that were taken.

    legal: [T, options]. Returns random [T] and fixed [A, T], or [0, T] for more than `MOST_ACTIONS`
    actions; A counts all combinations of parts, the last part fastest.
    """
    starts = np.cumsum((0, *parts[:-1]))
    masks = [legal[:, start : start + size] for start, size in zip(starts, parts, strict=True)]
    random = np.prod([1.0 / mask.sum(1) for mask in masks], axis=0)
    if math.prod(parts) > MOST_ACTIONS:
        return random, np.empty((0, len(actions)))
    every = np.indices(parts).reshape(len(parts), -1)
    allowed = np.all([mask[:, one] for mask, one in zip(masks, every, strict=True)], axis=0)
    taken = (actions[:, :, None] == every[None]).all(1)
    return random, np.where(allowed, taken, random[:, None]).T


def _group(weights: NDArray, rewards: NDArray) -> WeightedMean:
    weight, total = float(weights.sum()), float((weights * rewards).sum())
    return WeightedMean(weight, total, weight * weight, total * total, weight * total)
