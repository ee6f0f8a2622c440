"""Settings of learning, and of what is kept: `[learner]`, `[features]`, `[spool]` and others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from understudy.core.config.section import (
    Section,
    at_least_zero,
    check,
    is_float32,
    positive,
    share,
)
from understudy.core.errors import ConfigError, nearest


class LearnerConfig(Section, frozen=True, kw_only=True):
    """How the learner learns (`[learner]`)."""

    algorithm: Literal["actor_critic", "reinforce"] = "actor_critic"
    """`actor_critic`: clipped, corrected for old experience. `reinforce`: the simple one."""
    learning_rate: float = 5e-4
    """Where the adaptive learning rate starts."""
    learning_rate_min: float = 1e-5
    """The adaptive learning rate never falls below this (in the ring: times its step share)."""
    learning_rate_max: float = 7e-4
    """The adaptive learning rate never rises above this (likewise)."""
    kl_target: float = 0.01
    """How far a batch should move the policy: the learning rate adapts to that."""
    gamma: float = 0.995
    """Discount a decision."""
    gae_lambda: float = 0.95
    """1: whole returns (high variance); 0: one step (high bias)."""
    clip: float = 0.2
    """How far one batch may move the probability of an action, as a ratio."""
    behaviour_clip: float = 1.0
    """Cap of the weight that corrects for experience of an older version (V-trace's rho)."""
    entropy_weight: float = 0.02
    """Bonus for keeping options open."""
    value_weight: float = 0.5
    """Weight of the value loss."""
    opponent_weight: float = 0.1
    """Weight of foretelling the opponent's next action, for networks that do (strategist)."""
    recognition_weight: float = 0.1
    """Weight of naming the opponent, in `train` and for networks that do (strategist)."""
    imitation_weight: float = 1.0
    """Weight of imitating decisions without a known probability (rules, imports)."""
    imitation: Literal["clone", "advantage"] = "clone"
    """Imitate all of them alike, or rather those that turned out well."""
    imitation_entropy: float = 0.1
    """Imitation leaves the policy at least this share of the largest entropy."""
    kept_entropy: float = 0.15
    """Once imitation fades, the policy keeps this share of the largest entropy where it learns: a
    clone of rules that always choose alike would explore too little."""
    imitation_cap: float = 20.0
    """Largest weight of one decision, where imitation goes by advantage."""
    imitation_temperature: float = 0.5
    """There, advantages (in units of their scale) are divided by this before the exponential."""
    max_gradient_norm: float = 0.5
    """Gradients are scaled down to this norm."""
    epochs: int = 4
    """Passes over a batch; each counts as one sample of every match in it. One, where a policy
    played and a batch has one or two new matches."""
    minibatches: int = 8
    """Gradient steps a pass; likewise. In the ring a minibatch of a network with memory has at
    least four matches, so that there may be fewer."""
    kl_stop: float = 0.0
    """Passes end early once the policy has moved this far from where the batch began; 0: never."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """What networks of the arena compute in; parameters stay float32. auto: bfloat16 on a GPU.
    Bots, servers and environments play with NumPy: that is always trained in float32."""
    batch_matches: int = 10
    """At most this many new matches a batch."""
    gather_s: float = 0.3
    """How long to wait for a batch to fill before training on what there is."""
    replay_matches: int = 6
    """At most this many earlier matches beside them; where a batch has one or two new matches, up
    to `samples_per_insert` for each. 0: none."""
    samples_per_insert: int = 8
    """No match is ever sampled more often than this."""
    replay_capacity: int = 200
    """How many earlier matches stay ready to be sampled again."""
    priority: Literal["uniform", "won", "surprise"] = "uniform"
    """Which earlier matches are sampled again: any, rather won ones, or rather surprising ones.
    What is preferred trains the policy alone: the value would learn that most matches are won."""
    imitation_fade_matches: float = 50.0
    """Rules' decisions are imitated less as own experience grows, and no longer once the policy has
    learned from decisions of its own that are worth so many matches."""
    max_version_lag: int = 100
    """Decisions of versions older than this teach the value only, except where evidence moves the
    champion."""
    max_behaviour_kl: float = 1.0
    """There, matches teach the value only if the policy is farther than this from what played, as
    KL divergence a decision; with one or two matches a batch 0.03 at most."""
    anchor_kl: float = 1.0
    """There, the policy is pulled back once it is farther than this from the champion, as KL
    divergence a decision."""
    max_age_s: float = 3600.0
    """Matches that a policy played and that are older than this are archived without training."""
    publish_interval_s: float = 0.5
    """At most one new version in this time."""
    drain_s: float = 20.0
    """How long stopping may take to train on what is pending."""
    niceness: int = 10
    """How far the learner's process steps back for the game (POSIX)."""
    seed: int = 0
    """Seeds the initial parameters, the order of minibatches and, in `train`, the matches."""

    @property
    def target_lambda(self) -> float:
        """Lambda of the returns that the value is trained towards."""
        return self.gae_lambda if self.algorithm == "actor_critic" else 1.0

    def __post_init__(self) -> None:
        positive(self, "learner", "learning_rate", "learning_rate_min", "learning_rate_max")
        positive(self, "learner", "clip", "behaviour_clip", "max_gradient_norm", "kl_target")
        positive(self, "learner", "imitation_temperature", "imitation_cap", "max_age_s")
        positive(self, "learner", "imitation_fade_matches", "max_behaviour_kl", "anchor_kl")
        positive(self, "learner", "epochs", "minibatches", "batch_matches", "samples_per_insert")
        at_least_zero(self, "learner", "entropy_weight", "value_weight", "imitation_weight")
        at_least_zero(self, "learner", "replay_matches", "replay_capacity", "max_version_lag")
        at_least_zero(self, "learner", "publish_interval_s", "gather_s")
        at_least_zero(self, "learner", "drain_s", "niceness", "kl_stop")
        check(self, "learner", ["seed"], "0 to 2**63 - 1", lambda value: 0 <= value < 2**63)
        at_least_zero(self, "learner", "opponent_weight", "recognition_weight")
        share(self, "learner", "imitation_entropy", "kept_entropy")
        if not 0.0 <= self.gamma <= 1.0:
            raise ConfigError(f"learner.gamma: expected 0 to 1, got {self.gamma}")
        if not 0.0 <= self.gae_lambda <= 1.0:
            raise ConfigError(f"learner.gae_lambda: expected 0 to 1, got {self.gae_lambda}")
        if self.epochs > self.samples_per_insert:
            raise ConfigError(
                f"learner.epochs: {self.epochs} passes a batch are more than "
                f"learner.samples_per_insert = {self.samples_per_insert} allows"
            )
        if not self.learning_rate_min <= self.learning_rate <= self.learning_rate_max:
            raise ConfigError(
                "learner.learning_rate: expected a value between learning_rate_min "
                f"({self.learning_rate_min}) and learning_rate_max ({self.learning_rate_max}), "
                f"got {self.learning_rate}"
            )


class FeaturesConfig(Section, frozen=True, kw_only=True):
    """What is known of the features (`[features]`)."""

    bounds: dict[str, tuple[float, float]] = msgspec.field(default_factory=dict)
    """The lowest and the highest value of a feature that mean something, by its name:
    features.bounds.gold=[0, 5000]. For the normaliser, what lies beyond counts as the bound. Games
    of the arena have features of a known range, and no use for it."""

    def __post_init__(self) -> None:
        for name, (low, high) in self.bounds.items():
            if not (is_float32(low) and is_float32(high) and low < high):
                raise ConfigError(
                    f"features.bounds.{name}: expected the lowest and the highest value, such as "
                    f"[0, 100], got [{low}, {high}]"
                )

    def check(self, names: Sequence[str]) -> None:
        """`ConfigError` where bounds are of a feature that is none of these."""
        for name in self.bounds:
            if name not in names:
                raise ConfigError(
                    f"features.bounds.{name}: this game has no such feature.{nearest(name, names)}"
                )


class SpoolConfig(Section, frozen=True, kw_only=True):
    """How much experience is kept after it was learned from (`[spool]`)."""

    archive_matches: int = 5000
    """At most this many episodes in the archive."""
    archive_bytes: int = 2 * 2**30
    """At most this many bytes in the archive."""
    archive_age_s: float = 30 * 86400.0
    """Episodes older than this leave the archive."""

    def __post_init__(self) -> None:
        positive(self, "spool", "archive_matches", "archive_bytes", "archive_age_s")


class RegistryConfig(Section, frozen=True, kw_only=True):
    """How many versions are kept (`[registry]`)."""

    keep_versions: int = 50
    """The newest versions kept, beside every one that a pointer names or a person pinned."""
    keep_bytes: int = 2**30
    """At most this many bytes of older versions: the best, the last of each mode and session, and
    one a minute, an hour and a day; 0: none of these."""

    def __post_init__(self) -> None:
        positive(self, "registry", "keep_versions")
        at_least_zero(self, "registry", "keep_bytes")


class RetentionConfig(Section, frozen=True, kw_only=True):
    """How long what happened is kept (`[retention]`). Each bound is said when it acts."""

    journal_days: float = 400.0
    """Journals that were not written to for so many days are deleted, once a summary holds what
    they tell."""
    journal_bytes: int = 2 * 2**30
    """At most this many bytes of journals: the oldest go first, none of the last day."""
    remembered_episodes: int = 1_000_000
    """Episodes of removed versions whose ids are remembered, so that none is learned from twice.
    What was finished before the oldest of them is too old to learn from."""
    imported_files: int = 1_000_000
    """Imported files that are remembered, so that none is imported twice."""
    quarantine_files: int = 1000
    """At most this many files in quarantine: the oldest go first."""
    quarantine_bytes: int = 2**28
    """At most this many bytes in quarantine."""

    def __post_init__(self) -> None:
        positive(self, "retention", "journal_days", "journal_bytes", "remembered_episodes")
        positive(self, "retention", "imported_files", "quarantine_files", "quarantine_bytes")


class ReportConfig(Section, frozen=True, kw_only=True):
    """What a bot prints about the learner beside it (`[report]`)."""

    status_every_s: float = 30.0
    """Seconds between lines on the console; the last comes when the bot closes. 0: none."""
    statistics_every_matches: int = 0
    """Matches between lines on the console; 0: by time alone."""
    verbose: bool = False
    """Reports with every figure (15 to 27 lines) instead of one line."""

    def __post_init__(self) -> None:
        at_least_zero(self, "report", "status_every_s", "statistics_every_matches")
