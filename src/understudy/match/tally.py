"""The tally of a set of matches: a win rate that says how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.statistics import wilson
from understudy.games import catalog

if TYPE_CHECKING:
    from understudy.match.series import Results

__all__ = ["EvaluationReport", "Tally", "wilson"]


class Tally(msgspec.Struct, frozen=True):
    """Draws are not wins."""

    wins: int
    draws: int
    losses: int

    @classmethod
    def of(cls, score: NDArray) -> Tally:
        """From the results of matches [B]: +1, 0 or -1."""
        return cls(
            wins=int((score > 0).sum()),
            draws=int((score == 0).sum()),
            losses=int((score < 0).sum()),
        )

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.wins + other.wins, self.draws + other.draws, self.losses + other.losses)

    @property
    def matches(self) -> int:
        """How many were played."""
        return self.wins + self.draws + self.losses

    @property
    def win_rate(self) -> float:
        """Wins over matches."""
        return self.wins / max(self.matches, 1)

    @property
    def interval(self) -> tuple[float, float]:
        """Where the true win rate is, with 95% confidence."""
        return wilson(self.wins, self.matches)

    def as_dict(self) -> dict[str, object]:
        """For JSON: matches, wins, draws, losses, win_rate, interval."""
        return {
            "matches": self.matches,
            "wins": self.wins,
            "draws": self.draws,
            "losses": self.losses,
            "win_rate": round(self.win_rate, 4),
            "interval": [round(bound, 4) for bound in self.interval],
        }


class EvaluationReport(msgspec.Struct, frozen=True, kw_only=True):
    """Matches against one opponent, and whether they were as many as they seem."""

    tally: Tally
    distinct: int
    """Different matches among them: deterministic players can play one match many times."""
    mean_frames: float
    mean_return: float = 0.0
    """The game's own reward, summed over a match."""
    measures: dict[str, float] = {}
    """What else the game counts, by name: the mean over matches of each match's sum."""

    @classmethod
    def of(cls, end: Results, measures: Sequence[str]) -> EvaluationReport:
        """From how B matches ended; `measures` names the rows of `end.measured` [K, B]."""
        return cls(
            tally=Tally.of(end.score),
            distinct=len(np.unique(end.path)),
            mean_frames=float(end.frames.mean()),
            mean_return=float(end.returned.mean(dtype=np.float64)),
            measures={
                name: float(row.mean(dtype=np.float64))
                for name, row in zip(measures, end.measured, strict=True)
            },
        )

    @property
    def ratios(self) -> dict[str, float | None]:
        """The ratios of measures that games have, by name: `damage_ratio`."""
        columns = (column for column in catalog.measure_columns() if column.ratio)
        return {column.name: column.value(self.measures) for column in columns}

    def as_dict(self) -> dict[str, object]:
        """For JSON: what a tally has, distinct, mean_frames, mean_return, ratios and measures."""
        return {
            **self.tally.as_dict(),
            "distinct": self.distinct,
            "mean_frames": round(self.mean_frames, 1),
            "mean_return": round(self.mean_return, 4),
            **{n: None if ratio is None else round(ratio, 4) for n, ratio in self.ratios.items()},
            "measures": {name: round(mean, 4) for name, mean in self.measures.items()},
        }
