"""How long a session is: a number of steps, matches or ticks, or a number of minutes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from understudy.core.errors import ConfigError

_STEPS = "--steps"


@dataclass(frozen=True)
class Budget:
    """Give `steps` or `minutes`, not both."""

    steps: int | None = None
    """Decisions of the whole run, earlier sessions included. With another `flag`: what that flag
    counts, in this session."""
    minutes: float | None = None
    """Of this session, compilation included; training always has time for one update."""
    flag: str = _STEPS
    """The option that sets `steps`; errors name it."""

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.minutes is None):
            raise ConfigError(f"{self.flag} or --minutes: give one of them")
        if self.steps is not None and self.steps < 1:
            raise ConfigError(f"{self.flag}: expected 1 or more, got {self.steps}")
        # Training has schedules, which need an end; play may be endless.
        endless = self.minutes == math.inf and self.flag == _STEPS
        if endless or not (self.minutes is None or self.minutes > 0):
            raise ConfigError(f"--minutes: expected more than 0, got {self.minutes}")

    def share(self, *, done: int, elapsed_s: float) -> float:
        """How much of it is spent, 0 to 1."""
        if self.steps is not None:
            return min(1.0, done / self.steps)
        return min(1.0, elapsed_s / (60.0 * (self.minutes or 1.0)))

    def left_s(self, *, done: int, elapsed_s: float, per_second: float) -> float | None:
        """Estimated seconds until it is spent; None where there is no estimate."""
        if self.steps is not None:
            return max(0.0, self.steps - done) / per_second if per_second > 0 else None
        left = 60.0 * (self.minutes or 0.0) - elapsed_s
        return max(0.0, left) if left < math.inf else None
