"""Progress: batches added up until they are told, at most one event a second.

A learner that trains many times a second must not fill the disk with its own story.
"""

from __future__ import annotations

from collections import Counter

from understudy.core.clock import Clock
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

_EVERY_S = 1.0
_MEANS = (
    "loss", "policy_loss", "value_loss", "entropy", "kl", "explained_variance", "behaviour_kl",
    "clip_share", "gradient_norm", "gradient_steps",
)  # fmt: skip


class BatchProgress:
    """What happened since it was last told."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock
        self._told_at = clock.monotonic()
        self._sums: Counter[str] = Counter()
        self._last: dict[str, float] = {}
        self._behaviour_kl_max = 0.0
        self._entropy_share = 1.0
        """Of the last batch in which there was something to choose."""

    def came_in(self, episodes: int) -> None:
        """Episodes were ingested."""
        self._sums["episodes"] += episodes

    def batch(
        self,
        metrics: dict[str, float],
        *,
        items: int,
        skipped: int,
        judged: int,
        agreed: int,
        seconds: float,
    ) -> None:
        """One batch of so many items; of its decisions `judged` were looked at again by a gate."""
        self._sums.update(batches=1, items=items, skipped=skipped, judged=judged, agreed=agreed)
        self._add(seconds=seconds, steps=metrics["steps"], **{n: metrics[n] for n in _MEANS})
        self._last = metrics
        self._behaviour_kl_max = max(self._behaviour_kl_max, metrics["behaviour_kl_max"])
        self._entropy_share = metrics.get("entropy_share", self._entropy_share)

    def due(self) -> bool:
        """Whether there is something to tell, and it is time to."""
        waited_s = self._clock.monotonic() - self._told_at
        return self._sums["batches"] > 0 and waited_s >= _EVERY_S

    def tell(self, *, buffer: int, samples_per_insert: float) -> None:
        """Write it down, and begin anew; nothing where there was no batch."""
        sums, batches = self._sums, self._sums["batches"]
        if not batches:
            return
        now = self._clock.monotonic()
        passed_s = now - self._told_at
        self._journal.write(
            events.ContinuousTrained(
                batches=batches,
                episodes=sums["episodes"],
                items=sums["items"],
                steps=int(sums["steps"]),
                skipped=sums["skipped"],
                seconds=float(sums["seconds"]),
                utilisation=min(sums["seconds"] / passed_s, 1.0) if passed_s > 0.0 else 1.0,
                buffer=buffer,
                samples_per_insert=samples_per_insert,
                agreement=sums["agreed"] / sums["judged"] if sums["judged"] else None,
                entropy_share=self._entropy_share,
                learning_rate=self._last["learning_rate"],
                behaviour_kl_max=self._behaviour_kl_max,
                step_share=self._last.get("step_share"),
                **{name: sums[name] / batches for name in _MEANS},
            )
        )
        self._told_at, self._sums, self._behaviour_kl_max = now, Counter(), 0.0

    def _add(self, **values: float) -> None:
        for name, value in values.items():
            self._sums[name] += value  # type: ignore[assignment]  # a counter adds floats as well
