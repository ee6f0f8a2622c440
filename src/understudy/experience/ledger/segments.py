"""Segments as episodes: settled decisions of an endless match in the form that the learner reads.

The id is that of the first decision, so the same segment made twice is the same episode twice,
and the learner sets the second one aside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from understudy.core.arrays import NDArray
from understudy.experience.episode import Episode, Meta
from understudy.experience.ledger.records import (
    ENDINGS,
    OUTCOMES,
    Added,
    Closing,
    Opened,
    unpack_legal,
)
from understudy.experience.ledger.track import Segment
from understudy.policy.spec import PolicySpec


def to_episode(segment: Segment, spec: PolicySpec, *, finished_at: float) -> Episode:
    """One episode of T decisions, proposed actions and all."""
    opened = [entry.opened for entry in segment.entries]
    closings = [entry.closing for entry in segment.entries if entry.closing is not None]
    options = spec.actions.options
    settled = np.array([closing.state == "settled" for closing in closings], np.bool_)
    legal = None
    if any(one.legal for one in opened):
        legal = np.stack([unpack_legal(one.legal, options) for one in opened])
    first = opened[0]
    return Episode(
        meta=Meta(
            id=f"live-{first.id}",
            outcome=segment.outcome,
            finished_at=finished_at,
            tags={"territory": first.territory, "client": first.client},
        ),
        observations=_floats(b"".join(one.observation for one in opened)).reshape(len(opened), -1),
        actions=np.array([one.action for one in opened], np.int32),
        log_probs=_column([one.log_prob for one in opened]),
        values=_column([one.value for one in opened]),
        rewards=_column([closing.reward for closing in closings]),
        sampled=np.array([one.sampled for one in opened], np.bool_),
        versions=np.array([one.version for one in opened], np.int64),
        legal=legal,
        bootstrap=_floats(segment.bootstrap) if segment.bootstrap else None,
        sent=np.array([one.sent for one in opened], np.bool_),
        explored=np.array([one.explored for one in opened], np.bool_),
        expected=_column([one.expected for one in opened]),
        settled=None if settled.all() else settled,
    )


def _column(numbers: list[float]) -> NDArray:
    return np.array(numbers, np.float32)


def _floats(data: bytes) -> NDArray:
    """float32 in the machine's own byte order."""
    return np.frombuffer(data, "<f4").astype(np.float32)


def check_opened(entries: list[Opened], spec: PolicySpec) -> str:
    """What is wrong with them, naming the field; empty: nothing is.

    What is wrong here would be found by the learner weeks later, as a file in quarantine.
    """
    width, bits = 4 * len(spec.features), (spec.actions.options + 7) // 8
    parts = spec.actions.parts
    for one in entries:
        if len(one.observation) != width:
            return f"observation: {len(one.observation)} bytes, expected {width}"
        if one.legal and len(one.legal) != bits:
            return f"legal: {len(one.legal)} bytes, expected {bits} or none"
        if len(one.action) != len(parts):
            return f"action: {len(one.action)} parts, expected {len(parts)}"
        for choice, size in zip(one.action, parts, strict=True):
            if not 0 <= choice < size:
                return f"action: {one.action} is outside the {parts} options of this run"
    numbers = [number for one in entries for number in (one.log_prob, one.value)]
    # nan: the gate had nothing to say.
    numbers += [one.expected for one in entries if not math.isnan(one.expected)]
    for name, values in (
        ("observation", np.frombuffer(b"".join(one.observation for one in entries), "<f4")),
        ("log_prob, value or expected", _column(numbers)),
    ):
        if not np.isfinite(values).all():
            return f"{name}: holds a number that is not finite"
    return ""


def check_added(parts: Sequence[Added]) -> str:
    """What is wrong with them, naming the field; empty: nothing is."""
    finite = all(math.isfinite(part.reward) for part in parts)  # float32 is what closes it
    return "" if finite else "reward: not finite"


def check_closings(closings: list[Closing]) -> str:
    """What is wrong with them, naming the field; empty: nothing is."""
    if not np.isfinite(_column([closing.reward for closing in closings])).all():
        return "reward: not finite as float32"
    for closing in closings:
        if closing.state not in ENDINGS:
            return f"state: expected one of {', '.join(ENDINGS)}, got {closing.state!r}"
        if closing.outcome not in OUTCOMES:
            return f"outcome: expected one of {OUTCOMES}, got {closing.outcome!r}"
        if closing.terminal and closing.state != "settled":
            return f"terminal: decision {closing.id} ends {closing.state}, expected settled"
    return ""
