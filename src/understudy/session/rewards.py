"""Which decision a reward belongs to, and how decisions end.

Four things end a decision: the next observation of its territory, a `reward` message with its id,
the `end` of its territory, and time. A decision is `settled` with a reward, or it ends without one:
`expired` after the reward window, `superseded` where an observation is missing in between, and
`orphaned` where no reward can come any more. A reward never goes to another decision than its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

from understudy.core.config.serving import LiveConfig
from understudy.experience.ledger import Added, Closing, Ledger, Opened
from understudy.session.protocol import End, Reward
from understudy.session.territory import DecisionRequest, WaitingDecision
from understudy.session.translation import Step, Translator

RewardAnswer: TypeAlias = Literal[
    "settled", "added", "duplicate", "expired", "superseded", "orphaned", "unknown"
]
"""What the answer to a `reward` message says."""
_ENDED_BEFORE: dict[str, RewardAnswer] = {
    "settled": "duplicate",
    "expired": "expired",
    "superseded": "superseded",
    "orphaned": "orphaned",
}
"""The answer to a late reward, by how its decision ended."""


def settled_by_observations(
    batch: Sequence[DecisionRequest],
    *,
    translator: Translator,
    ledger: Ledger,
    config: LiveConfig,
    widest_gap: float,
    now: float,
) -> list[Closing]:
    """How the decisions end that these observations follow.

    An observation tells the reward of the decision before it, if it is the next one: at most
    `widest_gap` ticks later. Rewards that a client added to the decision count as well.
    """
    steps: list[Step] = []
    waiting: list[tuple[DecisionRequest, WaitingDecision]] = []
    closings: list[Closing] = []
    for one in batch:
        due = one.due
        if due is None:
            continue
        if now - due.opened.at > config.reward_window_s:
            closings.append(_unsettled(one, due, "expired"))
        elif one.tick - due.opened.tick > widest_gap:
            closings.append(_unsettled(one, due, "superseded"))
        else:
            steps.append(Step(due.sight, due.opened.action, due.opened.sent, one.sight))
            waiting.append((one, due))
    if not steps:
        return closings
    for (one, due), reward in zip(waiting, translator.rewards(steps), strict=True):
        if reward is None or math.isnan(reward):
            closings.append(_unsettled(one, due, "superseded"))
        else:
            added = ledger.added(due.opened.id) or 0.0
            worth = _clipped(reward + added, config.reward_clip)
            closings.append(Closing(id=due.opened.id, state="settled", reward=worth))
    return closings


def settled_by_message(
    request: Reward,
    opened: Opened | None,
    waiting: WaitingDecision | None,
    *,
    ledger: Ledger,
    by_observation: bool,
    config: LiveConfig,
    now: float,
) -> tuple[RewardAnswer, Closing | Added | None]:
    """What a `reward` message does to its decision: what is answered, and what is recorded.

    `opened` is the decision while it is open, `waiting` the decision of that territory whose reward
    the next observation tells. `by_observation`: observations tell rewards in this game, and those
    of messages are added to them.
    """
    key = request.decision_id
    if opened is None:
        return _ENDED_BEFORE.get(ledger.state_of(key), "unknown"), None
    if now - opened.at > config.reward_window_s:
        return "expired", Closing(id=key, state="expired")
    if not by_observation:
        worth = _clipped(request.reward, config.reward_clip)
        return "settled", Closing(id=key, state="settled", reward=worth)
    if waiting is None or waiting.opened.id != key:
        # The ledger could not write how it ended, and no observation settles it now.
        return "superseded", None
    return "added", Added(id=key, reward=request.reward)


def ended_with_territory(
    opened: Sequence[Opened],
    end: End,
    *,
    added: float | None,
    now: float,
    config: LiveConfig,
) -> list[Closing]:
    """How the open decisions of a territory (oldest first) end with the territory.

    The last one is settled by the rewards that its client sent for it: with `end`, and before
    (`added`). No reward can come for the others.
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
        reward=_clipped(sum(worth), config.reward_clip),
        terminal=end.outcome != "aborted",
        outcome="" if end.outcome == "aborted" else end.outcome,
    )
    return [*closings, settled]


def _unsettled(
    one: DecisionRequest, due: WaitingDecision, state: Literal["expired", "superseded"]
) -> Closing:
    """No reward: the policy's memory began before the gap, and is emptied."""
    one.territory.forget()
    return Closing(id=due.opened.id, state=state)


def _clipped(reward: float, limit: float) -> float:
    return max(-limit, min(limit, reward))
