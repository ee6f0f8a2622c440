"""The budget of a session of training: so many steps of the whole run, or so many minutes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from understudy.core.errors import ConfigError


@dataclass(frozen=True)
class Budget:
    """One of the two."""

    steps: int | None = None
    """Decisions of the whole run, what came before a resume included."""
    minutes: float | None = None
    """Of this session, compilation included; always with room for one update."""

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.minutes is None):
            raise ConfigError("--steps or --minutes: give one of them")
        if self.minutes is not None and not 0 < self.minutes < math.inf:
            raise ConfigError(f"--minutes: expected more than 0, got {self.minutes}")

    def share(self, *, steps: int, elapsed_s: float, updates: int) -> float:
        """How much of it is spent, 0 to 1."""
        if self.steps is not None:
            return min(1.0, steps / self.steps)
        if not updates:
            return 0.0  # however little time there is, it is for one update at least
        return min(1.0, elapsed_s / (60.0 * (self.minutes or 1.0)))

    def left_s(self, *, steps: int, elapsed_s: float, steps_s: float) -> float | None:
        """Estimated seconds until it is spent; None where nobody knows."""
        if self.steps is None:
            return max(0.0, 60.0 * (self.minutes or 0.0) - elapsed_s)
        return max(0.0, self.steps - steps) / steps_s if steps_s > 0 else None
