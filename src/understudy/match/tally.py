"""The tally of a set of matches: a win rate that says how sure it is."""

from __future__ import annotations

import math

import msgspec

from understudy.core.arrays import NDArray


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


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Matches against one opponent, and whether they were as many as they seem."""

    tally: Tally
    distinct: int
    """Different matches among them: deterministic players can play one match many times."""
    mean_frames: float

    def as_dict(self) -> dict[str, object]:
        """For JSON: what a tally has, distinct and mean_frames."""
        return {
            **self.tally.as_dict(),
            "distinct": self.distinct,
            "mean_frames": round(self.mean_frames, 1),
        }


def wilson(wins: int, matches: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's score interval of a share: honest for few matches and near 0 and 1."""
    if matches == 0:
        return 0.0, 1.0
    share = wins / matches
    centre = share + z * z / (2 * matches)
    spread = z * math.sqrt(share * (1 - share) / matches + z * z / (4 * matches * matches))
    scale = 1 + z * z / matches
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)
