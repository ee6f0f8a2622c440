"""How decisions end that no observation settles: by their client's word, by an end, or in silence.

Pure: open decisions in, closings out.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Literal, TypeAlias

from understudy.core.config.serving import LiveConfig
from understudy.experience.ledger import Closing, Opened
from understudy.live.protocol import End

Before: TypeAlias = Literal["duplicate", "expired", "superseded", "orphaned", "unknown"]
_BEFORE: dict[str, Before] = {
    "settled": "duplicate",
    "expired": "expired",
    "superseded": "superseded",
    "orphaned": "orphaned",
}


def clipped(reward: float, limit: float) -> float:
    """Within plus and minus the limit."""
    return max(-limit, min(limit, reward))


def rewarded_before(state: str) -> Before:
    """What to say of a reward for a decision that has ended so, or that nobody knows."""
    return _BEFORE.get(state, "unknown")


def endings(
    opened: Sequence[Opened],
    end: End,
    *,
    added: float | None,
    now: float,
    config: LiveConfig,
) -> list[Closing]:
    """A territory ends with these open decisions, oldest first.

    The last one is settled by what its client said of it, here or before; of the others, nobody
    will say anything any more. `added`: what was said of the last one before.
    """
    if not opened:
        return []
    *earlier, last = opened
    closings = [Closing(id=one.id, state="orphaned") for one in earlier]
    worth = [reward for reward in (end.reward, added) if reward is not None]
    if not worth:
        return [*closings, Closing(id=last.id, state="orphaned")]
    if now - last.at > config.reward_window_s:
        return [*closings, Closing(id=last.id, state="expired")]
    settled = Closing(
        id=last.id,
        state="settled",
        reward=clipped(sum(worth), config.reward_clip),
        terminal=end.outcome != "aborted",
        outcome="" if end.outcome == "aborted" else end.outcome,
    )
    return [*closings, settled]


def overdue(opened: Sequence[Opened], connected: Container[str]) -> list[Closing]:
    """Decisions that waited too long: orphaned where their client has left, else expired."""
    return [
        Closing(id=one.id, state="expired" if one.client in connected else "orphaned")
        for one in opened
    ]
