"""Checks of the policy: entropy, KL divergence and value as the learner's batches reported them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from understudy.core.ops import NUMPY
from understudy.core.spaces import Continuous, Discrete
from understudy.doctor.evidence import Evidence
from understudy.doctor.findings import Finding, section
from understudy.doctor.intervals import gain, mean_of, share_of
from understudy.policy import distributions
from understudy.telemetry.status import RewardStatus
from understudy.telemetry.trends import Trend, TrendBin

_LAST = 20.0
"""Batches that must agree; healthy ones differ from batch to batch."""
_COLLAPSED = 0.02
"""Share of the largest entropy. Healthy runs on swarm go down to 0.07, at 99 % of matches won."""
_UNIFORM = 0.98
_STILL_KL, _STILL_BATCHES = 1e-7, 40.0
"""A batch moves a healthy policy by 0.0005 to 0.1, and a tiny one by 0.0000004."""
_FAR_KL, _RECENT_BATCHES = 2.0, 100.0
_VALUE_LOSS = 100.0
"""In units of the spread of returns; healthy runs stay below 0.5."""
_EXPLAINED = -0.5
_TELLING_LOSS = 0.05
"""Where returns hardly differ, no share of their variance means anything, and the loss is tiny."""
_BEHAVIOUR_KL = 10.0
_DOMINATES = 0.95
_DECISIONS = 1000
_GOOD = 0.6
_MANY_DRAWS = 0.2
"""Share of matches; games that are hardly ever drawn are judged by wins alone."""
_STRETCH = 4
"""Bins of returns that are compared: of fewer the spread, and so the interval, is not known. A bin
of a long run holds many matches."""


def entropy_collapsed(evidence: Evidence) -> Iterator[Finding]:
    """The policy chooses as good as one action in each situation, and loses."""
    share = _entropy_share(evidence)
    if share is None or share >= _COLLAPSED:
        return
    wins = _wins(evidence)
    if wins:
        return
    config = evidence.config.learner
    yield Finding(
        check="entropy-collapsed",
        weight="note" if wins is None else "problem",
        certainty="possible" if wins is None else "certain" if _won(evidence) else "likely",
        title="The policy no longer explores: its entropy has collapsed.",
        evidence=(
            f"Entropy over the last {_LAST:.0f} batches: {share:.2%} of the largest possible.",
            *_won(evidence),
            f"learner.entropy_weight={config.entropy_weight:g}, "
            f"learner.learning_rate_max={config.learning_rate_max:g}.",
        ),
        next_step="Go back to a version that explored (understudy models list, understudy models "
        "rollback), then raise learner.entropy_weight (default: 0.02) or lower "
        "learner.learning_rate and learning_rate_max (default: 0.0005, 0.0007).",
        link=section("entropy-collapsed"),
    )


def policy_stands_still(evidence: Evidence) -> Iterator[Finding]:
    """Batches are trained, and the policy does not move."""
    kl = evidence.trend("kl")
    last = kl.last(_STILL_BATCHES) if kl.weight >= _STILL_BATCHES else []
    share = _entropy_share(evidence)
    if not last or max(one.most for one in last) >= _STILL_KL:
        return
    if share is not None and share < _COLLAPSED:  # that is a finding of its own
        return
    uniform = share is not None and share > _UNIFORM
    rate = evidence.trend("learning_rate").bins[-1].mean
    yield Finding(
        check="policy-stands-still",
        weight="problem",
        certainty="certain",
        title="Batches do not move the policy"
        + (": it still chooses uniformly." if uniform else "."),
        evidence=(
            f"KL divergence of the last {_STILL_BATCHES:.0f} batches: at most "
            f"{max(one.most for one in last):.2g} (healthy: 0.0005 to 0.1).",
            *([] if share is None else [f"Entropy: {share:.1%} of the largest possible."]),
            f"Learning rate: {rate:.2g}.",
        ),
        next_step="Check that rewards differ (understudy doctor names rewards that are all 0) and "
        "that learner.learning_rate and learning_rate_min are not tiny (default: 0.0005, 0.00001).",
        link=section("policy-stands-still"),
    )


def steps_too_large(evidence: Evidence) -> Iterator[Finding]:
    """A batch moves the policy so far that it forgets what it knew."""
    kl = evidence.trend("kl")
    most, newest = (
        max((one.most for one in bins), default=0.0) for bins in (kl.bins, kl.last(_RECENT_BATCHES))
    )
    if most < _FAR_KL:
        return
    config, recent = evidence.config.learner, newest >= _FAR_KL
    yield Finding(
        check="steps-too-large",
        weight="problem" if recent else "note",
        certainty="certain",
        title="One batch changes the policy beyond recognition: the learning steps are too large."
        if recent
        else "One batch, long ago, changed the policy beyond recognition.",
        evidence=(
            f"Largest KL divergence of a batch: {most:.3g} (target: {config.kl_target:g}).",
            *([] if recent else [f"Of the last {_RECENT_BATCHES:.0f} batches: {newest:.3g}."]),
            f"learner.learning_rate={config.learning_rate:g}, "
            f"learner.learning_rate_max={config.learning_rate_max:g}.",
            *_won(evidence),
        ),
        next_step="Lower learner.learning_rate and learner.learning_rate_max (default: 0.0005, "
        "0.0007), and start again or roll back to a version before the jump: understudy models "
        f"list --run {evidence.folder.root}.",
        link=section("steps-too-large"),
    )


def value_loss_absurd(evidence: Evidence) -> Iterator[Finding]:
    """The value is wrong by many times the spread of returns, or worse than a constant."""
    loss, explained = evidence.trend("value_loss"), evidence.trend("explained_variance")
    last, told = _last(loss), _last(explained)
    if not last or not told:
        return
    size, share = _mean(last), _mean(told)
    if size > _VALUE_LOSS:
        title = "The value loss is absurd: values are wrong by many times the spread of returns."
    elif share < _EXPLAINED and size > _TELLING_LOSS:
        title = "Values foretell returns worse than a constant would, for many batches."
    else:
        return
    yield Finding(
        check="value-loss-absurd",
        weight="problem" if size > _VALUE_LOSS else "warning",
        certainty="certain" if size > _VALUE_LOSS else "likely",
        title=title,
        evidence=(
            f"Value loss over the last {_LAST:.0f} batches: {size:.3g} (healthy: below 0.5).",
            f"Explained variance: {share:.2f} (1: perfect; 0: as good as a constant).",
        ),
        next_step="Look for single huge rewards (the findings on rewards), then lower "
        "learner.learning_rate_max.",
        link=section("value-loss-absurd"),
    )


def far_from_what_played(evidence: Evidence) -> Iterator[Finding]:
    """Experience comes from a policy that has little to do with the trained one."""
    last = _last(evidence.trend("behaviour_kl"))
    if not last or _mean(last) < _BEHAVIOUR_KL:
        return
    lag = evidence.trend("version_lag").mean()
    yield Finding(
        check="far-from-what-played",
        weight="warning",
        certainty="likely",
        title="The trained policy is far from the one that played: old experience teaches little.",
        evidence=(
            f"Behaviour KL of the last {_LAST:.0f} batches: {_mean(last):.3g} a decision "
            "(0: what is trained is what played; healthy: below 3).",
            *([] if lag is None else [f"Decisions were {lag:.1f} versions old on average."]),
        ),
        next_step="Let the bot wait for a learner that is behind (Understudy.open(pace="
        '"learner"), play --pace learner), or lower learner.learning_rate_max.',
        link=section("far-from-what-played"),
    )


def one_action_dominates(evidence: Evidence) -> Iterator[Finding]:
    """A policy that loses takes one action nearly always."""
    space = evidence.folder.spec.actions
    entropy = _entropy_share(evidence)
    collapsed = entropy is not None and entropy < _COLLAPSED
    if evidence.kind != "ring" or not isinstance(space, Discrete) or collapsed:
        return
    chosen = [
        one.actions[one.sampled & _had_choice(one.legal, len(one)), 0] for one in evidence.episodes
    ]
    actions = (np.concatenate(chosen) if chosen else np.empty(0, np.int32))[-_DECISIONS:]
    if len(actions) < _DECISIONS or _wins(evidence):
        return
    counts = np.bincount(actions, minlength=space.options)
    top = int(counts.argmax())
    share = float(counts[top] / len(actions))
    if share < _DOMINATES or not _won(evidence):  # without results, one may be the right one
        return
    yield Finding(
        check="one-action-dominates",
        weight="warning",
        certainty="likely",
        title=f"The policy chooses {space.names[top]} nearly always, and loses.",
        evidence=(
            f"{share:.1%} of the last {len(actions):,} decisions with a choice.",
            *_won(evidence),
        ),
        next_step="Raise learner.entropy_weight (default: 0.02), and check that no reward on the "
        "way pays for this action alone.",
        link=section("one-action-dominates"),
    )


CHECKS = (  # causes before what they cause: equally bad findings are shown in this order
    steps_too_large,
    entropy_collapsed,
    policy_stands_still,
    value_loss_absurd,
    far_from_what_played,
    one_action_dominates,
)


def _last(trend: Trend) -> list[TrendBin]:
    """The newest bins with `_LAST` batches; none: there are fewer."""
    return trend.last(_LAST) if trend.weight >= _LAST else []


def _mean(bins: list[TrendBin]) -> float:
    return sum(one.total for one in bins) / sum(one.weight for one in bins)


def _entropy_share(evidence: Evidence) -> float | None:
    """Of the last batches, over the largest possible; None: too few, or real numbers, whose entropy
    has no bound."""
    if shares := _last(evidence.trend("entropy_share")):
        return _mean(shares)
    space, last = evidence.folder.spec.actions, _last(evidence.trend("entropy"))
    if isinstance(space, Continuous) or not last:
        return None
    masks = [one.legal for one in evidence.episodes if one.legal is not None]
    largest = sum(math.log(size) for size in space.parts)
    if masks:
        legal = np.concatenate(masks)
        largest = float(distributions.largest_entropy(NUMPY, space, legal).mean())
    return _mean(last) / largest if largest > 0.0 else None


def _wins(evidence: Evidence) -> bool | None:
    """Whether the policy wins most of its last matches, or, where there are no winners, earns more
    than at first: then being sure of itself is right. None: it cannot be told."""
    last = share_of(evidence.trend("win_rate").last(100))
    if last.size:
        return last.size >= 20 and (last.mean >= _GOOD or _drawn_points(evidence) >= _GOOD)
    if evidence.kind == "server":
        return _earns_more(evidence.status.version_rewards)
    bins = evidence.trend("return").bins
    if len(bins) < 2 * _STRETCH:
        return None
    then, now = mean_of(bins[:_STRETCH]), mean_of(bins[-max(_STRETCH, len(bins) // 10) :])
    return gain(then, now)[0] > 0.0


def _drawn_points(evidence: Evidence) -> float:
    """The share of points in a game with many draws, where few matches can be won; else 0."""
    records = evidence.status.opponents.values()
    matches, draws = sum(one.matches for one in records), sum(one.draws for one in records)
    if not matches or draws < _MANY_DRAWS * matches:
        return 0.0
    return (sum(one.wins for one in records) + draws / 2) / matches


def _earns_more(reward: RewardStatus | None) -> bool | None:
    """Whether versions of today earn more than the first ones, or than random actions would. None:
    neither is known."""
    if reward is None:
        return None
    pairs = [(reward.policy, reward.random)]
    if reward.now is not None and reward.start is not None and reward.start != reward.now:
        pairs.append((reward.now.reward, reward.start.reward))
    known = [a.low > b.high for a, b in pairs if a is not None and b is not None]
    return any(known) if known else None


def _won(evidence: Evidence) -> tuple[str, ...]:
    last = share_of(evidence.trend("win_rate").last(100), z=1.96)
    return (f"Last matches won: {last.percent}.",) if last.size else ()


def _had_choice(legal: np.ndarray | None, length: int) -> np.ndarray:
    return np.ones(length, np.bool_) if legal is None else legal.sum(1) > 1
