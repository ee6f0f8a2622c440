"""From sampled items to the batch that is trained on: re-validated, and laid out in one shape.

Re-validation: the decision gate judges sampled decisions again, by what it knows now. Its functions
are pure, over arrays of one shape [...], a decision each. A decision that is not to be learned from
is masked and never given a made-up reward: it acts in its item as a bootstrap does. Returns before
it end in its value, and returns after it begin anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.config import Config, ContinuousConfig
from understudy.gates.decision import DecisionGate, judge
from understudy.learner.batch import Batch
from understudy.learner.continuous.items import batch_of, decisions
from understudy.policy.spec import PolicySpec


class Recorded(NamedTuple):
    """What the episode says of each decision."""

    rewards: NDArray
    """float32, what followed"""
    sent: NDArray
    """bool: it was executed"""
    explored: NDArray
    """bool: the gate blocked it and it was sent anyway"""
    expected: NDArray
    """float32, what the gate expected then; nan where it had nothing to say"""
    gated: NDArray
    """bool: a gate judged it; where none did, what followed is all there is"""


class Verdicts(NamedTuple):
    """What the gate says of each decision today."""

    send: NDArray
    """bool"""
    expected: NDArray
    """float32"""


class Revalidated(NamedTuple):
    """What is learned from each decision."""

    rewards: NDArray
    """float32"""
    learned: NDArray
    """bool: False where nothing is to be learned"""
    agreed: NDArray
    """bool: the gate judges as it did; False where no gate judged"""


def revalidate(
    config: ContinuousConfig, recorded: Recorded, now: Verdicts | None, *, clip: float
) -> Revalidated:
    """Rewards as the settings want them; `now` is None where no gate looks again.

    | the decision was | the gate agrees with itself | it judges otherwise today |
    |---|---|---|
    | sent | actual_weight x actual + simulated_weight x expected now | on_disagreement |
    | blocked | what `waits` says, with what is expected now | on_disagreement |
    | blocked, sent anyway | actual | actual |

    What a gate expects is clipped to plus and minus `clip`, as rewards were when recorded.
    """
    blocked = recorded.gated & ~recorded.sent
    agreed = np.zeros_like(blocked)
    simulated = _bounded(recorded.expected, recorded.rewards, clip)
    if now is not None:
        agreed = recorded.gated & ((recorded.sent & ~recorded.explored) == now.send)
        today = _bounded(now.expected, recorded.rewards, clip)
        simulated = np.where(agreed, today, simulated)
    rewards, learned = _waits(config, recorded.rewards, blocked, simulated)
    if now is not None:
        sent = recorded.gated & recorded.sent & ~recorded.explored
        mixed = config.actual_weight * recorded.rewards + config.simulated_weight * simulated
        rewards = np.where(agreed & sent, mixed, rewards)
        doubted = recorded.gated & ~agreed & ~recorded.explored
        if config.on_disagreement == "skip":
            learned = learned & ~doubted
        elif config.on_disagreement == "penalty":
            rewards = np.where(doubted, rewards - config.disagreement_penalty, rewards)
    return Revalidated(rewards.astype(np.float32), learned, agreed)


def verdicts(
    gate: DecisionGate, observations: NDArray, actions: NDArray, which: NDArray
) -> Verdicts:
    """Ask about observations [..., F] and actions [..., parts] where `which` bool [...]."""
    send, expected = np.zeros(which.shape, bool), np.zeros(which.shape, np.float32)
    if which.any():
        said = judge(gate, observations[which], actions[which])
        send[which] = [verdict.send for verdict in said]
        expected[which] = [verdict.expected_reward for verdict in said]
    return Verdicts(send, expected)


def _waits(
    config: ContinuousConfig, actual: NDArray, blocked: NDArray, simulated: NDArray
) -> tuple[NDArray, NDArray]:
    """Rewards, and what is learned from, before any doubt."""
    everything = np.ones_like(blocked)
    if config.waits == "skip":
        return actual, ~blocked
    if config.waits == "counterfactual":
        # What is blocked costs what doing nothing costs: it is never worth more than that, whatever
        # the gate expected of it, or proposing it would pay.
        return np.where(blocked, np.minimum(simulated, actual), actual), everything
    # Being blocked never makes a loss smaller: a policy that is punished for doing nothing would
    # learn to propose what the gate blocks.
    held_back = np.minimum(actual, config.wait_multiplier * actual)
    return np.where(blocked, held_back, actual), everything


def _bounded(expected: NDArray, actual: NDArray, clip: float) -> NDArray:
    """Expectations within bounds; one that is not finite gives way to what really followed."""
    return np.clip(np.where(np.isfinite(expected), expected, actual), -clip, clip)


class Ready(NamedTuple):
    """A batch, and how many of its decisions the gate has something to say of."""

    batch: Batch
    skipped: int
    """Nothing is learned from these."""
    judged: int
    """These were judged again."""
    agreed: int
    """Of those, these as they were before."""


def lay_out(
    items: Mapping[str, NDArray],
    spec: PolicySpec,
    config: Config,
    *,
    gate: DecisionGate | None,
    columns: int,
    version: int,
    weights: NDArray,
    max_lag: int | None,
    imitation: float = 1.0,
) -> Ready:
    """Items [N, ...] with importance weights float32 [N], for a learner at `version` with so much
    imitation left. `max_lag`: None is no limit."""
    valid = decisions(items) & items["settled"]
    gated = valid & items["gated"][:, None] & _judged(items)
    recorded = Recorded(
        items["rewards"], items["sent"], items["explored"], items["expected"], gated
    )
    now = None
    if gate is not None:
        now = verdicts(gate, items["obs"][:, :-1], items["actions"], gated)
    found = revalidate(config.continuous, recorded, now, clip=config.live.reward_clip)
    batch = batch_of(
        {**items, "rewards": found.rewards},
        spec,
        columns=columns,
        version=version,
        max_lag=max_lag,
        weights=weights,
        learned=found.learned,
        imitation=imitation,
    )
    return Ready(
        batch,
        skipped=int((valid & ~found.learned).sum()),
        judged=0 if now is None else int(gated.sum()),
        agreed=int((found.agreed & valid).sum()),
    )


def _judged(items: Mapping[str, NDArray]) -> NDArray:
    """bool [N, L]: a gate had a part in it. None has in what no policy sampled, nor in what was
    sent without an expectation; what was blocked for want of time is blocked all the same."""
    spoken = ~np.isnan(items["expected"]) | ~items["sent"]
    return np.asarray(items["sampled"] & spoken)
