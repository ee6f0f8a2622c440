"""A few seconds of training added up: matches by opponent, and the updates beside them.

Sums alone are kept, so whatever is said of an interval is exact however it was cut. Returns and
reward terms are multiples of 2**-16: float64 adds them without rounding, and the residual of an
interval is 0 unless a match's own sums were not exact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from understudy.telemetry.events import BatchTrained, MatchesTrained
from understudy.telemetry.table import Value

ALL = "all"
"""What takes an opponent's place in rows over all of them; no bot can be called so."""

Ratio: TypeAlias = tuple[str, str]
"""The two measures of a game that a ratio divides."""
NO_RATIOS: Mapping[str, Ratio] = MappingProxyType({})

_MEANS = (
    "loss", "policy_loss", "value_loss", "opponent_loss", "recognition_loss", "entropy", "kl",
    "clip_share", "gradient_norm", "explained_variance",
)  # fmt: skip


@dataclass
class Meetings:
    """Matches that ended against one opponent."""

    wins: int = 0
    draws: int = 0
    losses: int = 0
    unjudged: int = 0
    """without a winner or loser, as environments of others have them"""
    frames: int = 0
    timed: int = 0
    """matches whose frames are known"""
    returned: float = 0.0
    terms: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    measures: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    @property
    def matches(self) -> int:
        """How many ended."""
        return self.wins + self.draws + self.losses + self.unjudged

    def join(self, other: Meetings) -> None:
        """Add those of another."""
        self.wins += other.wins
        self.draws += other.draws
        self.losses += other.losses
        self.unjudged += other.unjudged
        self.frames += other.frames
        self.timed += other.timed
        self.returned += other.returned
        _add(self.terms, other.terms)
        _add(self.measures, other.measures)


class TrainingInterval:
    """What happened since it began; give it every iteration once."""

    def __init__(self, ratios: Mapping[str, Ratio] = NO_RATIOS) -> None:
        self.steps = 0
        self.stage = ""
        self._ratios = ratios
        self.against: dict[str, Meetings] = {}
        self._batches: list[BatchTrained] = []

    def add_batch(self, batch: BatchTrained) -> None:
        """An update."""
        self._batches.append(batch)

    def add_matches(self, told: MatchesTrained) -> None:
        """The matches of an iteration."""
        self.steps, self.stage = told.steps, told.stage
        unjudged = told.returns.keys() - told.results.keys()
        for name in unjudged:
            self._of(name).unjudged += told.matches
        for name, (_, wins, draws, losses) in told.results.items():
            if wins + draws + losses:
                one = self._of(name)
                one.wins += wins
                one.draws += draws
                one.losses += losses
        for name, _, frames, returned in told.ended:
            one = self._of(name)
            one.frames += frames
            one.timed += 1
            one.returned += returned
        if not told.ended:
            for name, mean in told.returns.items():
                one = self._of(name)
                judged = sum(told.results.get(name, (0, told.matches))[1:])
                one.returned += mean * judged
        for name, terms in told.terms.items():
            _add(self._of(name).terms, terms)
        for name, measures in told.measures.items():
            _add(self._of(name).measures, measures)

    def training(self) -> dict[str, Value]:
        """The row of `training_metrics.csv`, or nothing where nothing was updated."""
        batches = self._batches
        if not batches:
            return {}
        row: dict[str, Value] = {"iterations": len(batches)}
        row |= {name: sum(getattr(one, name) for one in batches) / len(batches) for name in _MEANS}
        seconds = sum(one.seconds for one in batches)
        means = [one.behaviour_kl for one in batches if one.behaviour_kl is not None]
        largest = [one.behaviour_kl_max for one in batches if one.behaviour_kl_max is not None]
        return row | {
            "behaviour_kl": sum(means) / len(means) if means else None,
            "behaviour_kl_max": max(largest, default=None),
            "learning_rate": batches[-1].learning_rate,
            "gradient_steps": sum(one.gradient_steps for one in batches),
            "steps_s": sum(one.steps for one in batches) / seconds if seconds > 0 else None,
        }

    def behaviour(self) -> list[dict[str, Value]]:
        """The rows of `behavior_metrics.csv`: one for each opponent that was met to the end."""
        return [self._behaviour(name, one) for name, one in self.against.items() if one.matches]

    def rewards(self) -> list[dict[str, Value]]:
        """The rows of `reward_breakdown.csv`: over all matches, then for each opponent."""
        met = {name: one for name, one in self.against.items() if one.matches}
        if not met:
            return []
        every = Meetings()
        for one in met.values():
            every.join(one)
        return [_rewards(name, one) for name, one in {ALL: every, **met}.items()]

    def _behaviour(self, name: str, one: Meetings) -> dict[str, Value]:
        judged = one.wins + one.draws + one.losses
        return {
            "opponent": name,
            "matches": one.matches,
            "wins": one.wins,
            "draws": one.draws,
            "losses": one.losses,
            "win_rate": one.wins / judged if judged else None,
            "mean_return": one.returned / one.matches,
            "mean_frames": one.frames / one.timed if one.timed else None,
            **behaviour_of(one.measures, one.matches, self._ratios),
        }

    def _of(self, name: str) -> Meetings:
        return self.against.setdefault(name, Meetings())


def behaviour_of(
    measures: Mapping[str, float], matches: int, ratios: Mapping[str, Ratio]
) -> dict[str, Value]:
    """Sums of measures as means over matches, and ratios as far as they can be formed."""
    row: dict[str, Value] = {name: total / matches for name, total in measures.items()}
    for name, (upper, lower) in ratios.items():
        if upper in measures and measures.get(lower):
            row[name] = measures[upper] / measures[lower]
    return row


def _add(totals: dict[str, float], more: Mapping[str, float]) -> None:
    for name, value in more.items():
        totals[name] += value


def _rewards(name: str, one: Meetings) -> dict[str, Value]:
    row: dict[str, Value] = {
        "opponent": name,
        "matches": one.matches,
        "return": one.returned / one.matches,
    }
    if one.terms and one.timed == one.matches:
        row["residual"] = one.returned - sum(one.terms.values())
    return row | {f"term_{term}": total / one.matches for term, total in one.terms.items()}
