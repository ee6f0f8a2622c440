"""Collapse: has the policy stopped choosing, and how much harder is it held open afterwards.

Pure but for one streak: a single batch without variety may be the game's doing, several in a row
are the policy's.
"""

from __future__ import annotations

import math

from understudy.core.arrays import NDArray
from understudy.core.spaces import ActionSpace, Continuous
from understudy.policy import distributions

_BATCHES = 5
"""Batches in a row below the floor that are a collapse."""
_HEALTHY = 2.0
"""A version is good enough to go back to at this many floors: at the floor it would fall again."""
_MOST_DOUBLINGS = 4


def entropy_bound(space: ActionSpace, legal: NDArray, valid: NDArray) -> float:
    """What the mean entropy of decisions valid [...] with masks legal bool [..., options] is never
    above, in nats: the log of the mean number of legal options, summed over parts. 0 where there
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
        """The policy is another one now."""
        self._streak = 0
