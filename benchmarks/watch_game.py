"""A game of a watchman, for measuring how a server takes over from a client's own rules.

Eight numbers are seen and one of four reports is made. Which report is right follows from two
sums, near + 0.8 far and loud + 0.8 faint; the rules look at `near` and `loud` alone, so they are
right in 61% of situations. What a report is worth depends on `trust`, which right reports build up
and wrong ones use up: a decision matters for those after it. Rewards are noisy.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FEATURES = ("near", "far", "loud", "faint", "fog", "dust", "light", "trust")
ACTIONS = ("quiet", "voices", "riders", "attack")
SCHEMA = f"""[game]
name = "watch"
features = {list(FEATURES)}
actions = {list(ACTIONS)}
fallback = "quiet"
"""
_KEPT, _RIGHT, _WRONG, _NOISE = 0.8, 0.5, -0.25, 0.2


class Watch:
    """Some territories side by side."""

    def __init__(self, territories: int, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._trust = np.full(territories, 0.5)
        self._look()

    def seen(self) -> npt.NDArray[np.float64]:
        """[territories, features]"""
        return np.concatenate([self._readings, self._trust[:, None]], axis=1)

    def rules(self) -> npt.NDArray[np.int64]:
        """What the client's own rules report, [territories]."""
        near, loud = (self._readings[:, index] > 0 for index in (0, 2))
        return np.asarray(2 * near + loud, np.int64)

    def right(self) -> npt.NDArray[np.int64]:
        """What should be reported, [territories]."""
        one, two, three, four = self._readings[:, :4].T
        return np.asarray(2 * (one + 0.8 * two > 0) + (three + 0.8 * four > 0), np.int64)

    def play(self, reports: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """One tick; the rewards [territories]."""
        right = reports == self.right()
        noise = _NOISE * self._rng.normal(size=len(right))
        worth = np.where(right, _RIGHT, _WRONG) * (0.4 + 0.6 * self._trust) + noise
        self._trust = _KEPT * self._trust + (1.0 - _KEPT) * right
        self._look()
        return worth

    def _look(self) -> None:
        self._readings = self._rng.normal(size=(len(self._trust), len(FEATURES) - 1))


def rules_alone(territories: int, seed: int, *, ticks: int, last: int) -> float:
    """The mean reward of the last ticks where the rules decide everything."""
    game = Watch(territories, seed)
    rewards = [float(game.play(game.rules()).mean()) for _ in range(ticks)]
    return float(np.mean(rewards[-last:]))
