"""What cameos show: whether the policy's windows end better than those of the rules. Pure.

A window is worth what it earned and what the policy expects from its end on, less what it expected
at its beginning. The coin gave some windows to the policy and left the others to the rules; the
test is that of matches (`gates.promotion.evidence`), with the value at the end as the result and
the value at the beginning as the forecast:

    result   = (1 + tanh(v / 2s)) / 2      of v = rewards in the window + value at its end
    forecast = the same                    of v = value at its beginning

s is the scale of returns that the policy was trained with (`Weights.value_scale`), so that [0, 1]
means about the same in every run. Where values move by 0.03 in a window, 300 windows mostly show a
difference of 0.02.

Values are what a network believes, not what happened. So this may refuse a version, or be shown; it
promotes none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from understudy.core.arrays import NDArray
from understudy.experience.episode import Episode
from understudy.gates.promotion import evidence


class CameoResult(NamedTuple):
    """One window, in units of reward."""

    policy: bool
    """Whether the coin gave it to the policy."""
    coin: float
    """The probability of that."""
    before: float
    """The value at its beginning."""
    after: float
    """What it earned, and the value at its end."""


class CameoEvidence(NamedTuple):
    """What a number of windows show together."""

    policy_windows: int
    control_windows: int
    advantage: float
    """The mean gain of the policy's windows less that of the control; 0 if one of them has none."""
    better: float
    worse: float
    """Evidence that the policy's windows end better, or worse, than the control; 1: none."""

    @property
    def words(self) -> str:
        return (
            f"cameos: {self.advantage:+.3f} of the scale in {self.policy_windows} windows against "
            f"{self.control_windows} of the rules, evidence {self.worse:.1f} that they are worse"
        )


def bounded(values: NDArray, *, scale: float) -> NDArray:
    """Values of any shape, in units of reward, as numbers in [0, 1]."""
    within: NDArray = 0.5 + 0.5 * np.tanh(values / (2.0 * scale))
    return within


def results_of(episode: Episode, *, gamma: float) -> list[CameoResult]:
    """The windows of a match.

    One that lasted to the end of the match is worth what it earned, the reward of the result
    included. Left out are windows whose value at the end is unknown: the match was aborted there,
    or the policy failed or was slow, and was not asked again.
    """
    cameos = episode.cameos
    if cameos is None:
        return []
    found = []
    for number in range(1, int(np.abs(cameos).max()) + 1):
        rows = np.flatnonzero(np.abs(cameos) == number)
        begin, end = int(rows[0]), int(rows[-1]) + 1
        over = end == len(episode)
        unknown = episode.truncated if over else not episode.values[end:].any()
        if unknown:
            continue
        value = 0.0 if over else float(episode.values[end])
        for reward in reversed(episode.rewards[begin:end].tolist()):
            value = reward + gamma * value
        found.append(
            CameoResult(
                policy=bool(cameos[begin] > 0),
                coin=episode.meta.cameo_coin,
                before=float(episode.values[begin]),
                after=value,
            )
        )
    return found


def weigh(results: Sequence[CameoResult], *, scale: float) -> CameoEvidence:
    """What these windows show together; `scale` is that of returns."""
    if not results:
        return CameoEvidence(0, 0, 0.0, 1.0, 1.0)
    columns: list[NDArray] = [np.array(column, np.float64) for column in zip(*results, strict=True)]
    policy, coins = columns[:2]
    before, after = (bounded(column, scale=scale) for column in columns[2:])
    gained = evidence.gains(policy, coins, after, before)
    better, worse = (
        float(evidence.evidence(evidence.grow(evidence.new_capital(), side)[-1]))
        for side in (gained, -gained)
    )
    gain = after - before
    sides = gain[policy == 1.0], gain[policy == 0.0]
    means = [float(side.mean()) for side in sides if len(side)]
    advantage = means[0] - means[1] if len(means) == len(sides) else 0.0
    return CameoEvidence(len(sides[0]), len(sides[1]), advantage, better, worse)
