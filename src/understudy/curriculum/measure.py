"""What a stage measures: a share of the newest matches, and how sure it is. Pure.

Draws are not wins (`win_rate`), or half of one (`score`). The bounds are one-sided and hold one
look at a time. Training looks after every iteration, so an agent that is *just* short of a
threshold passes it sooner or later; one that is far from it does not, and that is what they are
for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from understudy.core.config import StageConfig
from understudy.core.opponents import kind_of
from understudy.core.statistics import one_sided, wilson

Counts = tuple[int, int, int]
"""Wins, draws and losses."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What the newest matches say about a stage's measure."""

    words: str
    """`based: 214 of 280 won`."""
    share: float
    """The measure itself, 0 to 1; the mean where several opponents are measured."""
    lower: float
    """It is at least this, with the stage's confidence."""
    upper: float
    """It is at most this, with the stage's confidence."""
    confidence: float

    @property
    def at_least(self) -> str:
        """`based: 214 of 280 won, at least 71.9% with 95% confidence`."""
        return f"{self.words}, at least {percent(self.lower, down=True)} {self._confidence}"

    @property
    def at_most(self) -> str:
        """The same with the upper bound."""
        return f"{self.words}, at most {percent(self.upper, down=False)} {self._confidence}"

    @property
    def _confidence(self) -> str:
        return f"with {percent(self.confidence)} confidence"


def evidence(stage: StageConfig, windows: Mapping[str, Sequence[Counts]]) -> Evidence | None:
    """What is known about the measure of `stage`; None before there are `min_matches` against each
    opponent that it measures. `windows` holds results by opponent, oldest first."""
    what, whom = stage.measured
    counted = [total(newest(windows.get(name, ()), stage.window)) for name in whom]
    if not stage.measure or any(sum(counts) < stage.min_matches for counts in counted):
        return None
    shares, bounds = [], []
    for wins, draws, losses in counted:
        matches = wins + draws + losses
        good = wins + draws / 2 if what == "score" else wins
        shares.append(good / matches)
        bounds.append(wilson(good, matches, one_sided(stage.confidence)))
    lower, upper = bounds_of_mean(shares, bounds)
    return Evidence(
        words="; ".join(
            _words(name, what, counts) for name, counts in zip(whom, counted, strict=True)
        ),
        share=sum(shares) / len(shares),
        lower=lower,
        upper=upper,
        confidence=stage.confidence,
    )


def bounds_of_mean(
    shares: Sequence[float], bounds: Sequence[tuple[float, float]]
) -> tuple[float, float]:
    """Bounds of the mean of independent shares, from the bounds of each of them.

    Each distance from a share to its bound stands for that share's spread (the method of variance
    estimates recovery), so that the bounds of one share alone are its own.
    """
    count = len(shares)
    mean = sum(shares) / count
    below = math.hypot(*(share - low for share, (low, _) in zip(shares, bounds, strict=True)))
    above = math.hypot(*(high - share for share, (_, high) in zip(shares, bounds, strict=True)))
    return mean - below / count, mean + above / count


def newest(window: Sequence[Counts], matches: int) -> Sequence[Counts]:
    """The fewest newest entries that hold at least `matches` matches; all, if there are fewer."""
    held = 0
    for place in range(len(window) - 1, -1, -1):
        held += sum(window[place])
        if held >= matches:
            return window[place:]
    return window


def total(window: Sequence[Counts]) -> Counts:
    """Wins, draws and losses of all entries together."""
    wins, draws, losses = (
        (sum(column) for column in zip(*window, strict=True)) if window else (0,) * 3
    )
    return wins, draws, losses


def by_opponent(results: Mapping[str, Counts]) -> dict[str, Counts]:
    """Results under the names that a measure knows: all snapshots together are `self`; opponents
    without a match that ended are left out."""
    folded: dict[str, Counts] = {}
    for name, counts in results.items():
        if sum(counts):
            known = kind_of(name)
            folded[known] = total((folded.get(known, (0, 0, 0)), counts))
    return folded


def percent(share: float, *, down: bool | None = None) -> str:
    """`71.6%`; a bound is rounded to the side on which it still holds."""
    tenths = 1000 * share
    whole = round(tenths) if down is None else math.floor(tenths) if down else math.ceil(tenths)
    return f"{whole / 10:.1f}".removesuffix(".0") + "%"


def _words(name: str, what: str, counts: Counts) -> str:
    wins, draws, losses = counts
    matches = wins + draws + losses
    if what == "score":
        return f"{name}: {wins + draws / 2:g} points of {matches}"
    return f"{name}: {wins} of {matches} won"
