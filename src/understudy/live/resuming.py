"""Going on after a restart: what the ledger knows of a territory whose decision is still open."""

from __future__ import annotations

import math

import numpy as np

from understudy.experience.ledger import Opened, unpack_legal
from understudy.live.protocol import Decision
from understudy.live.territories import Territory, Waiting
from understudy.live.translation import Sight, Translator


def resume(territory: Territory, opened: Opened, translator: Translator) -> None:
    """Put a new territory where its newest open decision left it.

    What a policy carried is gone, so the next decision begins a segment.
    """
    territory.tick = opened.tick
    territory.last = answered_before(opened, translator)
    territory.decisions = 1
    territory.forget()
    if translator.rewards_by_observation:
        territory.waiting = Waiting(opened, seen_before(opened, translator))


def seen_before(opened: Opened, translator: Translator) -> Sight:
    """The observation of a decision, without whatever else was told."""
    features = np.frombuffer(opened.observation, np.dtype("<f4")).astype(np.float32)
    options = translator.actions.options
    return Sight(features, unpack_legal(opened.legal, options) if opened.legal else None)


def answered_before(opened: Opened, translator: Translator) -> Decision:
    """The answer that was given; the gate's reasons are not kept."""
    return Decision(
        decision_id=opened.id,
        territory=opened.territory,
        tick=opened.tick,
        action=translator.label(opened.action),
        confidence=math.exp(opened.log_prob) if opened.sampled else 0.0,
        version=opened.version,
        verdict="SEND" if opened.sent else "WAIT",
        expected_reward=opened.expected,
        explored=opened.explored,
        degraded=not opened.sampled,
    )
