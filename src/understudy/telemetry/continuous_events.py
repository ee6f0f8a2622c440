"""What the learner behind a server tells: batches of items, and what was taken back.

They are events like all others: import them from `telemetry.events`.
"""

from __future__ import annotations

import msgspec


class _Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag=True):
    pass


class ContinuousTrained(_Event, frozen=True, kw_only=True):
    """Some batches of items were learned from, since the last of these events."""

    batches: int
    episodes: int
    """That came in."""
    items: int
    """In the batches, together."""
    steps: int
    """Decisions that taught something."""
    skipped: int
    """Decisions that did not, since the gate judges otherwise today or blocked them."""
    seconds: float
    """Spent on the batches."""
    utilisation: float
    """Share of the time that was spent on batches."""
    buffer: int
    """Items held."""
    samples_per_insert: float
    """Over the whole run."""
    agreement: float | None
    """How often the gate judges as it did when it was asked first; falls where things drift. None:
    no gate looked again."""
    entropy_share: float
    """Entropy over the largest possible, of the last batch."""
    loss: float
    policy_loss: float
    value_loss: float
    entropy: float
    kl: float
    explained_variance: float
    clip_share: float
    gradient_norm: float
    learning_rate: float
    gradient_steps: float = 0.0
    """A batch."""
    behaviour_kl: float | None = None
    """How far the trained policy is from the one that played, before the first gradient step: the
    mean of (r - 1) - log r over the sampled decisions of the first minibatch, where r is the ratio
    of their probabilities; 0 where what is trained is what played. None: not measured."""
    behaviour_kl_max: float | None = None
    """The largest of them."""
    step_share: float | None = None
    """How large the learner's steps are, as a share of full ones; None: not said."""


class RolledBack(_Event, frozen=True, kw_only=True):
    """The learner gave up what it had learned, and goes on from an earlier version."""

    reason: str
    """`not finite` or `collapse`"""
    version: int
    """Whose learning was given up; 0: before the first"""
    to: int
    """The version that is learned on from; 0: a fresh start"""
    published: int = 0
    """Where versions had been published since: the number under which that one plays again"""
