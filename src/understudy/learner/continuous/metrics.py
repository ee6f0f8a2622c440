"""What the metrics of a batch come to: one event a second, and whether the policy has collapsed.

`BatchProgress` adds batches up: a learner that trains many times a second must not fill the disk
with events. `Collapse` watches the entropy of the policy. It is pure but for one streak: a single
batch without variety may be the game's doing, several in a row are the policy's.
"""

from __future__ import annotations

import math
from collections import Counter

from understudy.core.arrays import NDArray
from understudy.core.clock import Clock
from understudy.core.spaces import ActionSpace, Continuous
from understudy.policy import distributions
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

_EVERY_S = 1.0
_MEANS = (
    "loss", "policy_loss", "value_loss", "entropy", "kl", "explained_variance", "behaviour_kl",
    "clip_share", "gradient_norm", "gradient_steps",
)  # fmt: skip
_BATCHES = 5
"""Batches in a row below the floor that are a collapse."""
_HEALTHY = 2.0
"""A version is good enough to go back to at this many floors: at the floor it would fall again."""
_MOST_DOUBLINGS = 4


class BatchProgress:
    """What happened since the last event."""

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
        """Whether an event should be written now."""
        waited_s = self._clock.monotonic() - self._told_at
        return self._sums["batches"] > 0 and waited_s >= _EVERY_S

    def tell(self, *, buffer: int, samples_per_insert: float) -> None:
        """Write the event and start over; nothing where there was no batch."""
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


def entropy_bound(space: ActionSpace, legal: NDArray, valid: NDArray) -> float:
    """An upper bound, in nats, of the mean entropy of decisions valid [...] with masks legal bool
    [..., options]: the log of the mean number of legal options, summed over parts. 0 where there
    was no choice, or none is bounded."""
    masks = legal[valid > 0]
    if isinstance(space, Continuous) or not len(masks):
        return 0.0
    counts = distributions.legal_options(space, masks)
    return sum(math.log(max(float(count.mean()), 1.0)) for count in counts)


def entropy_share(entropy: float, largest: float) -> float | None:
    """How much of the largest possible entropy there is; None: there was nothing to choose, which
    says nothing of the policy."""
    return entropy / largest if largest > 0.0 else None


def entropy_weight(base: float, collapses: int) -> float:
    """Twice the bonus for keeping options open after every collapse, sixteen times at most."""
    return base * 2.0 ** min(collapses, _MOST_DOUBLINGS)


class Collapse:
    """Watches the share of the largest possible entropy, batch by batch."""

    def __init__(self, floor: float) -> None:
        self._floor = floor
        self._streak = 0

    def add(self, share: float | None) -> bool:
        """One more batch; True: the policy has collapsed. None is no evidence either way."""
        if share is None:
            return False
        self._streak = self._streak + 1 if share < self._floor else 0
        return self._streak >= _BATCHES

    def healthy(self, share: float | None) -> bool:
        """Whether a version with this share is known to be one that can be gone back to."""
        return share is not None and share >= min(_HEALTHY * self._floor, 1.0)

    def forget(self) -> None:
        self._streak = 0
