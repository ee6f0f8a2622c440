"""A decision gate of one's own for the load: a line of arithmetic over all of a batch.

understudy serve --schema load.toml --gate load_gate:Density
"""

from __future__ import annotations

from understudy.core.arrays import NDArray
from understudy.gates.decision import Verdict


class Density:
    """Expects more where there are more workers than protectors at the busiest place."""

    name = "density"

    def __init__(self, *, threshold: float) -> None:
        self._threshold = threshold

    def evaluate(self, observation: NDArray, action: NDArray) -> Verdict:
        """One."""
        return self.evaluate_all(observation[None], action[None])[0]

    def evaluate_all(self, observations: NDArray, actions: NDArray) -> list[Verdict]:
        """observations [B, 28]."""
        expected = (observations[:, 1] - observations[:, 2]).tolist()
        return [
            Verdict.of(one, threshold=self._threshold, reasons=("workers against protectors",))
            for one in expected
        ]
