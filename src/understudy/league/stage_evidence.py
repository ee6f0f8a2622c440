"""What a stage measures, and the evidence that its threshold is exceeded or lost. Pure.

Draws are not wins (`win_rate`), or half of one (`score`). Training looks after every iteration, so
the evidence is an e-detector's (`core.statistics.detect`): it may be looked at after every match.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.chance import fold, uniform
from understudy.core.config import StageConfig
from understudy.core.opponents import kind_of
from understudy.core.ops import NUMPY
from understudy.core.statistics import STAKES, detect, gains

Counts = tuple[int, int, int]
"""Wins, draws and losses."""

WAITING = 64
"""Of a measure of several opponents, so many results of each wait for one of the others."""
_SHUFFLE = 0x57A6


class StageTrial(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The evidence that the mean of a stage's results lies above (or below) a bound."""

    bound: float
    evidence: tuple[float, ...] = (0.0,) * len(STAKES)
    """Of each stake of the e-detector."""
    counted: int = 0
    """Results that were counted or dropped: where the shuffle goes on."""
    waiting: dict[str, Counts] = msgspec.field(default_factory=dict)
    """Results of one opponent that wait for as many of the others."""

    @property
    def reached(self) -> float:
        """To be compared with the evidence that a stage wants."""
        return sum(self.evidence) / len(self.evidence)


def followed(
    trial: StageTrial, stage: StageConfig, results: Mapping[str, Counts], *, below: bool = False
) -> StageTrial:
    """The evidence after more results by opponent, for a mean above `trial.bound`, or `below` it.

    Results of one iteration have no order, and the evidence depends on it. They are counted in an
    order that does not depend on them: a shuffle by a hash of how many were counted before. Where
    several opponents are measured, one result of each together is one result of their mean.
    """
    what, whom = stage.measured
    pools = {
        name: total((trial.waiting.get(name, (0, 0, 0)), results.get(name, (0, 0, 0))))
        for name in whom
    }
    rounds = min(map(sum, pools.values()))
    key = fold(np.full(1, _SHUFFLE, np.uint32), trial.counted)
    shuffled = {
        name: _shuffled(counts, fold(key, place))
        for place, (name, counts) in enumerate(pools.items())
    }
    worth = np.array([1.0, 0.5 if what == "score" else 0.0, 0.0])
    means = np.mean([worth[kinds[:rounds]] for kinds in shuffled.values()], axis=0)
    gained = (
        gains(1.0 - means, above=1.0 - trial.bound) if below else gains(means, above=trial.bound)
    )
    return StageTrial(
        bound=trial.bound,
        evidence=tuple(detect(np.array(trial.evidence), gained).tolist()),
        counted=trial.counted + sum(sum(results.get(name, (0, 0, 0))) for name in whom),
        waiting={
            name: _counts(kinds[rounds : rounds + WAITING])
            for name, kinds in shuffled.items()
            if len(kinds) > rounds
        },
    )


def _shuffled(counts: Counts, key: NDArray) -> NDArray:
    """int [N]: 0 for a win, 1 for a draw, 2 for a loss, in an order that `key` [1] decides."""
    kinds = np.repeat(np.arange(3), counts)
    drawn = uniform(NUMPY, key, np.arange(len(kinds), dtype=np.uint32))[:, 0]
    shuffled: NDArray = kinds[np.argsort(drawn, kind="stable")]
    return shuffled


def _counts(kinds: NDArray) -> Counts:
    wins, draws, losses = np.bincount(kinds, minlength=3).tolist()
    return wins, draws, losses


def shown(stage: StageConfig, windows: Mapping[str, Sequence[Counts]]) -> str:
    """The newest matches in words, `based: 214 of 280 won`; empty before there are `min_matches`
    against each opponent that is measured. `windows` holds results by opponent, oldest first."""
    what, whom = stage.measured
    counted = [total(newest(windows.get(name, ()), stage.window)) for name in whom]
    if not stage.measure or any(sum(counts) < stage.min_matches for counts in counted):
        return ""
    return "; ".join(_words(name, what, counts) for name, counts in zip(whom, counted, strict=True))


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


def percent(share: float) -> str:
    """`71.6%`."""
    return f"{100 * share:.1f}".removesuffix(".0") + "%"


def _words(name: str, what: str, counts: Counts) -> str:
    wins, draws, losses = counts
    matches = wins + draws + losses
    if what == "score":
        return f"{name}: {wins + draws / 2:g} points of {matches}"
    return f"{name}: {wins} of {matches} won"
