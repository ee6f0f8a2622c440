"""How long a session is: a number of steps, matches or ticks, or of minutes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from understudy.core.errors import ConfigError


@dataclass(frozen=True)
class Budget:
    """The length of training: either steps or minutes."""

    steps: int | None = None
    """Decisions of the whole run, including those before a resume"""
    minutes: float | None = None
    """Of this session, including compilation; at least one update is made"""

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.minutes is None):
            raise ConfigError("--steps or --minutes: give one of them")
        if self.minutes is not None and not 0 < self.minutes < math.inf:
            raise ConfigError(f"--minutes: expected more than 0, got {self.minutes}")

    def share(self, *, steps: int, elapsed_s: float, updates: int) -> float:
        """The share that is spent, 0 to 1."""
        if self.steps is not None:
            return min(1.0, steps / self.steps)
        if not updates:
            return 0.0  # at least one update is made
        return min(1.0, elapsed_s / (60.0 * (self.minutes or 1.0)))

    def left_s(self, *, steps: int, elapsed_s: float, steps_s: float) -> float | None:
        """Estimated seconds until it is spent; None: unknown."""
        if self.steps is None:
            return max(0.0, 60.0 * (self.minutes or 0.0) - elapsed_s)
        return max(0.0, self.steps - steps) / steps_s if steps_s > 0 else None


@dataclass(frozen=True)
class Length:
    """The length of a session of play: `count` of what `flag` counts, or minutes."""

    flag: str
    count: int | None
    minutes: float | None

    def check(self) -> None:
        """Raises ConfigError unless exactly one of them is given."""
        if (self.count is None) == (self.minutes is None):
            raise ConfigError(f"{self.flag} or --minutes: give one of them")
        if self.count is not None and self.count < 1:
            raise ConfigError(f"{self.flag}: expected 1 or more, got {self.count}")
        if self.minutes is not None and not self.minutes > 0:
            raise ConfigError(f"--minutes: expected more than 0, got {self.minutes}")

    def share(self, *, done: int, elapsed_s: float) -> float:
        """The share that is over, 0 to 1."""
        if self.count is not None:
            return min(1.0, done / self.count)
        return min(1.0, elapsed_s / (60.0 * (self.minutes or 1.0)))

    def left_s(self, *, done: int, elapsed_s: float) -> float | None:
        """Estimated seconds until the end; None before anything was done."""
        share = self.share(done=done, elapsed_s=elapsed_s)
        return elapsed_s * (1.0 - share) / share if share > 0 else None
