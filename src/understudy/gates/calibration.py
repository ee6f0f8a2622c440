"""A decision gate, judged by what really followed: did it foresee, and was blocking worth it?

Whatever was blocked and not sent has no outcome of its own. The share that was sent all the same
was drawn by chance, so it stands for everything that was blocked: the comparison with what waiting
brought is an experiment, not an opinion. Too little data gets no verdict.

All arrays are [N], one entry a proposal: `sent`, `explored` (blocked, and sent all the same),
`expected` (by the gate) and `rewards` (what followed).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.errors import InputError
from understudy.core.statistics import wilson
from understudy.gates import foresight
from understudy.gates.foresight import FEWEST, Foresight, ForesightRow, Interval, mean_interval

SAVES, COSTS = "saves", "costs"
UNDECIDED, NO_VERDICT = "undecided", "no verdict"


@dataclass(frozen=True)
class ProposalGroup:
    """Proposals of one fate: sent, explored or waited."""

    count: int
    mean_reward: float | None
    interval: Interval | None
    """95%, of the mean"""


@dataclass(frozen=True)
class BlockingWorth:
    """What blocking brought, per blocked proposal and in all, in units of reward."""

    verdict: str
    """`saves`, `costs`, `undecided` or `no verdict`"""
    words: str
    good: int
    """Of the explored: so many brought more than the threshold"""
    good_share: float | None
    good_interval: Interval
    """95%, Wilson's"""
    saved: float | None
    """What waiting brought on average, less what sending the blocked did"""
    saved_interval: Interval | None
    """95%, of the difference of two means"""
    saved_total: float | None
    """Over everything that really waited"""
    total: float
    """What all proposals brought, as it was played"""
    total_if_open: float | None
    """What they would have brought with everything sent: each explored one stands for
    1 / realised share of the blocked"""


@dataclass(frozen=True)
class Calibration:
    """Everything that the report says of a gate."""

    proposals: int
    threshold: float
    explore_share: float
    """As configured"""
    realised_share: float | None
    """Of what was blocked, as it happened: what the estimates use"""
    share_fits: bool
    """False: the realised share is not what the configured one makes likely"""
    sent: ProposalGroup
    """Let through by the gate"""
    explored: ProposalGroup
    """Blocked, and sent all the same"""
    waited: ProposalGroup
    """Blocked, and nothing done"""
    foresight: Foresight
    rows: tuple[ForesightRow, ...]
    worth: BlockingWorth


def calibrate(
    *,
    sent: NDArray,
    explored: NDArray,
    expected: NDArray,
    rewards: NDArray,
    threshold: float,
    explore_share: float,
    rows: int = 8,
) -> Calibration:
    """Judge a gate by N proposals: sent bool, explored bool, expected and rewards float, all [N].

    `threshold` is what a reward must exceed to have been good, `explore_share` what was configured,
    `rows` how many lines the reliability table may have.
    """
    sent, explored = np.asarray(sent, bool), np.asarray(explored, bool)
    expected, rewards = np.asarray(expected, float), np.asarray(rewards, float)
    _check(sent=sent, explored=explored, expected=expected, rewards=rewards)
    passed, waited = sent & ~explored, ~sent & ~explored
    blocked = int(explored.sum() + waited.sum())
    realised = explored.sum() / blocked if blocked else None
    # Within the blocked the explored are a sample: each counts for all that it stands for.
    weights = np.where(explored, 1.0 / realised if realised else 0.0, passed.astype(float))
    seen = passed | explored
    low, high = wilson(int(explored.sum()), blocked, z=_UNLIKELY)
    return Calibration(
        proposals=len(rewards),
        threshold=threshold,
        explore_share=explore_share,
        realised_share=None if realised is None else float(realised),
        share_fits=blocked == 0 or low <= explore_share <= high,
        sent=_group(rewards[passed]),
        explored=_group(rewards[explored]),
        waited=_group(rewards[waited]),
        foresight=foresight.judge(expected[seen], rewards[seen], weights[seen]),
        rows=foresight.table(
            expected, rewards, {"WAIT": explored, "SEND": passed}, most=max(rows, 2)
        ),
        worth=_worth(rewards, passed=passed, explored=explored, waited=waited, threshold=threshold),
    )


_UNLIKELY = 3.0
"""A share this many deviations from the configured one did not come by chance."""


def _worth(
    rewards: NDArray, *, passed: NDArray, explored: NDArray, waited: NDArray, threshold: float
) -> BlockingWorth:
    tried, kept = rewards[explored], rewards[waited]
    good = int((tried > threshold).sum())
    saved, saved_interval = None, None
    if len(tried) and len(kept):
        saved = float(kept.mean() - tried.mean())
        if len(tried) > 1 and len(kept) > 1:
            spread = 1.96 * math.sqrt(kept.var(ddof=1) / len(kept) + tried.var(ddof=1) / len(tried))
            saved_interval = (saved - spread, saved + spread)
    verdict, words = _verdict(len(tried), len(kept), saved, saved_interval)
    blocked = len(tried) + len(kept)
    total = float(rewards.sum())
    everything = float(rewards[passed].sum() + blocked * tried.mean()) if len(tried) else None
    return BlockingWorth(
        verdict=verdict,
        words=words,
        good=good,
        good_share=good / len(tried) if len(tried) else None,
        good_interval=wilson(good, len(tried)),
        saved=saved,
        saved_interval=saved_interval,
        saved_total=None if saved is None else saved * len(kept),
        total=total,
        total_if_open=everything if blocked else total,
    )


def _verdict(
    tried: int, kept: int, saved: float | None, interval: Interval | None
) -> tuple[str, str]:
    if tried + kept == 0:
        return NO_VERDICT, "nothing was blocked"
    if tried < FEWEST:
        return NO_VERDICT, f"fewer than {FEWEST} explored: no verdict"
    if kept < FEWEST:
        return NO_VERDICT, f"fewer than {FEWEST} waited: nothing to compare with, no verdict"
    assert saved is not None and interval is not None  # both have more than one
    if interval[0] > 0:
        return SAVES, f"waiting brought {saved:.3f} more than what was blocked: the gate pays"
    if interval[1] < 0:
        return COSTS, f"what was blocked brought {-saved:.3f} more than waiting: the gate costs"
    return UNDECIDED, "waiting and what was blocked cannot be told apart with this much data"


def _group(rewards: NDArray) -> ProposalGroup:
    mean = float(rewards.mean()) if len(rewards) else None
    return ProposalGroup(len(rewards), mean, mean_interval(rewards))


def _check(**arrays: NDArray) -> None:
    shape = next(iter(arrays.values())).shape
    for name, array in arrays.items():
        if array.ndim != 1 or array.shape != shape:
            raise InputError(f"{name}: expected one axis as long as the others, got {array.shape}")
        if not np.isfinite(array).all():
            raise InputError(f"{name}: expected finite numbers")
