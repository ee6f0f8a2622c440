"""The decisions of a server's segments, together: what became of them, and what its gate said.

`understudy gate`, the doctor and the dashboard count these. All arrays are [N], one entry a
decision, but actions [N, parts].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from understudy.core.arrays import NDArray
from understudy.experience.episode import Episode


class ServedDecisions(NamedTuple):
    """Decisions of some segments, in their order."""

    actions: NDArray
    """As proposed by the policy, where a gate has the last word."""
    sampled: NDArray
    """A policy drew it: not the safe answer of an overloaded server."""
    rewards: NDArray
    settled: NDArray
    """Its reward is known."""
    sent: NDArray
    """The gate let it through, or it was explored; True where there was no gate."""
    explored: NDArray
    expected: NDArray
    """By the gate, in units of reward; nan: it gave no estimate."""
    gated: NDArray
    """Whether a gate had a part in its segment."""
    versions: NDArray

    @classmethod
    def of(cls, episode: Episode) -> ServedDecisions:
        count = len(episode)
        gated = episode.sent is not None and episode.expected is not None
        missing = np.full(count, np.nan, np.float32)
        return cls(
            actions=episode.actions,
            sampled=episode.sampled,
            rewards=episode.rewards,
            settled=episode.taught,
            sent=np.ones(count, np.bool_) if episode.sent is None else episode.sent,
            explored=np.zeros(count, np.bool_) if episode.explored is None else episode.explored,
            expected=missing if episode.expected is None else episode.expected,
            gated=np.full(count, gated),
            versions=episode.versions,
        )

    @classmethod
    def joined(cls, several: Sequence[ServedDecisions]) -> ServedDecisions:
        """All together; there is one at least."""
        return cls(*map(np.concatenate, zip(*several, strict=True)))

    @property
    def total(self) -> int:
        """How many there are; `len` is that of the tuple."""
        return len(self.rewards)

    @property
    def judged(self) -> NDArray:
        """bool [N]: the gate gave an estimate."""
        return np.isfinite(self.expected)

    @property
    def asked(self) -> NDArray:
        """bool [N]: the policy proposed it to a gate, and its reward is known."""
        return self.gated & self.sampled & self.settled

    def where(self, chosen: NDArray) -> ServedDecisions:
        """Some of them; chosen bool [N]."""
        return ServedDecisions(*(column[chosen] for column in self))


class GateProposals(NamedTuple):
    """Proposals that a gate can be judged by, and how many it cannot."""

    judged: ServedDecisions
    idle: int
    """Proposals to do nothing, which no gate blocks."""
    unspoken: int
    """Proposals of which the gate had nothing to say, as when its time ran out."""


def gate_proposals(decisions: ServedDecisions, *, idle_action: int | None) -> GateProposals:
    """What a gate was asked about, whose outcome is known. `idle_action`: the action of the game
    that does nothing; None: it has none, or it is not known."""
    asked = decisions.where(decisions.asked)
    idle = np.zeros(asked.total, np.bool_)
    if idle_action is not None:
        idle = (asked.actions == idle_action).all(axis=1)
    unspoken = ~idle & ~asked.judged
    judged = asked.where(~idle & ~unspoken)
    return GateProposals(judged, idle=int(idle.sum()), unspoken=int(unspoken.sum()))
