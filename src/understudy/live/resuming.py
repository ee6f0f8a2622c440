"""Going on after a restart: what the ledger knows of a territory that has not left it yet."""

from __future__ import annotations

import math

import numpy as np

from understudy.experience.ledger import Opened, unpack_legal
from understudy.live.protocol import Decision
from understudy.live.territories import Territory, Waiting
from understudy.live.translation import Sight, Translator


def resume(territory: Territory, newest: Opened, translator: Translator, *, is_open: bool) -> None:
    """Put a new territory where its newest decision left it, whether that is open or not.

    What a policy carried is gone, so the next decision begins a segment.
    """
    territory.tick = newest.tick
    territory.last = answered_before(newest, translator)
    territory.decisions = 1
    territory.forget()
    if is_open and translator.rewards_by_observation:
        territory.waiting = Waiting(newest, seen_before(newest, translator))


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
        expected_reward=0.0 if math.isnan(opened.expected) else opened.expected,
        explored=opened.explored,
        degraded=not opened.sampled,
    )
