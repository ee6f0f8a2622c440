"""What an iteration of the arena came to, by opponent and by match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """Of all matches against one opponent in one iteration; sums over those that ended."""

    started: int
    wins: int
    draws: int
    losses: int
    frames: int
    returns: float
    terms: dict[str, float]
    """What each term of the rewards added to the returns."""
    measures: dict[str, float]

    @property
    def matches(self) -> int:
        """How many ended."""
        return sum(self.counts)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Wins, draws and losses."""
        return self.wins, self.draws, self.losses

    def __add__(self, other: Result) -> Result:
        """Both together, as where two groups meet one snapshot."""
        return Result(
            started=self.started + other.started,
            wins=self.wins + other.wins,
            draws=self.draws + other.draws,
            losses=self.losses + other.losses,
            frames=self.frames + other.frames,
            returns=self.returns + other.returns,
            terms=_added(self.terms, other.terms),
            measures=_added(self.measures, other.measures),
        )


@dataclass(frozen=True)
class EndedMatch:
    """A match that ended in an iteration."""

    opponent: str
    score: int
    """+1 won, 0 drawn, -1 lost"""
    frames: int
    returned: float


@dataclass(frozen=True)
class OpponentLatents:
    """What the policy makes of its opponents at the end of an iteration; see `rollout.Strategy`."""

    latents: dict[str, tuple[float, ...]]
    """The mean latent of those that meet each opponent."""
    mean: float
    spread: float
    attention_entropy: float


@dataclass(frozen=True)
class Iteration:
    """What one iteration came to."""

    metrics: dict[str, float]
    results: dict[str, Result]
    """By opponent: bots, and snapshots by name."""
    ended: list[EndedMatch]
    residual: float
    """The largest difference between a return and the sum of its terms: 0 where they are exact."""
    opponent_latents: OpponentLatents | None

    @property
    def matches(self) -> int:
        """How many ended."""
        return sum(result.matches for result in self.results.values())


def _added(one: Mapping[str, float], two: Mapping[str, float]) -> dict[str, float]:
    return {name: value + two[name] for name, value in one.items()}
