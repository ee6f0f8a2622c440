"""Checks of the experience: rewards, features and actions as episodes recorded them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.feature_bounds import bounds_of
from understudy.core.ops import NUMPY
from understudy.core.spaces import Continuous, Discrete
from understudy.doctor.action_effects import alike_actions
from understudy.doctor.evidence import Evidence
from understudy.doctor.findings import Finding, section
from understudy.policy.network import raw_features
from understudy.policy.weights import CLIP, normalise
from understudy.telemetry.text import many

_MATCHES, _DECISIONS = 16, 500
_MOST_NAMED = 6
_FEW_OPTIONS = 24
"""Of hundreds of options some are bound to be rare."""
_CLIPPED = 0.02
"""Share of decisions in which a feature lies outside what its network sees."""
_HUGE = 1e6
_OUTLIER = 100.0
_RARE = 0.05
_NEVER_LEGAL = 2000
_NEVER_SENT = 100
_ABORTED = 0.9
_ABORTED_MATCHES = 20


def rewards_all_zero(evidence: Evidence) -> Iterator[Finding]:
    """No decision earned anything."""
    rewards = _rewards(evidence)
    if evidence.kind != "ring" or not _enough(rewards) or any(one.any() for one in rewards):
        return
    yield Finding(
        check="rewards-all-zero",
        weight="problem",
        certainty="certain",
        title="Every reward is 0: there is nothing to learn from.",
        evidence=(f"{_told(rewards)}, and none has a reward.",),
        next_step="Call match.reward(amount) after decisions, and check result_rewards of "
        "Understudy.open (default: 10 for a victory, -5 for a defeat).",
        link=section("rewards-all-zero"),
    )


def reward_scale(evidence: Evidence) -> Iterator[Finding]:
    """Returns are absurdly large, or a few matches outweigh all others."""
    rewards = _rewards(evidence)
    if not _enough(rewards):
        return
    returns = np.array([np.abs(one.astype(np.float64)).sum() for one in rewards])
    most, usual = float(returns.max()), float(np.median(returns))
    rare = float((returns > _OUTLIER * usual).mean()) if usual > 0.0 else 0.0  # sparse is no fault
    if most < _HUGE and not 0.0 < rare <= _RARE:
        return
    yield Finding(
        check="reward-scale",
        weight="warning",
        certainty="certain" if most >= _HUGE else "likely",
        title="Rewards are absurdly large."
        if most >= _HUGE
        else "A few matches have rewards that outweigh those of all others.",
        evidence=(
            f"Absolute rewards of a match: {usual:.3g} as a rule, {most:.3g} at most "
            f"({len(rewards)} matches).",
        ),
        next_step="Divide the rewards so that a match adds up to about 1 to 100, and bound each "
        "one: match.reward(max(-1.0, min(1.0, amount))).",
        link=section("reward-scale"),
    )


def constant_features(evidence: Evidence) -> Iterator[Finding]:
    """Features that never change say nothing; often an exception was swallowed."""
    seen = _observations(evidence)
    if seen is None:
        return
    names = evidence.folder.spec.features
    constant = [name for name, column in zip(names, seen.T, strict=True) if np.ptp(column) == 0.0]
    if not constant or len(constant) == len(names) == 1:
        return
    values = ", ".join(f"{name} = {seen[0, names.index(name)]:g}" for name in constant[:3])
    yield Finding(
        check="constant-features",
        weight="warning",
        certainty="certain",
        title=f"{many(len(constant), 'feature never changes', 'features never change')}: "
        f"{_named(constant)}.",
        evidence=(
            f"Constant in {len(seen):,} decisions of {len(evidence.episodes)} matches ({values}).",
        ),
        next_step="Print what the bot computes for it, and look for an exception that is swallowed "
        "there. A feature that is right to be constant can be left out of a new run.",
        link=section("constant-features"),
    )


def exploding_features(evidence: Evidence) -> Iterator[Finding]:
    """Features far outside the range that the normaliser was fitted to are cut off."""
    seen, policy = _observations(evidence), evidence.policy
    if seen is None or policy is None:
        return
    raw = set(raw_features(policy.spec.network))
    declared = evidence.folder.config.features.bounds
    seen = bounds_of(policy.spec.features, declared).within(seen)  # what lies beyond is known
    scaled = np.abs(normalise(NUMPY, policy.weights, seen))
    shares = (scaled >= CLIP).mean(0)
    names = policy.spec.features
    found = [
        index for index in np.argsort(-shares) if shares[index] > _CLIPPED and index not in raw
    ]
    if not found:
        return
    yield Finding(
        check="exploding-features",
        weight="warning",
        certainty="likely",
        title=f"{many(len(found), 'feature leaves', 'features leave')} the range that the "
        f"network was fitted to: {_named([names[index] for index in found])}.",
        evidence=tuple(
            f"{names[index]}: {shares[index]:.0%} of decisions beyond {CLIP:g} spreads, "
            f"{np.abs(seen[:, index]).max():.3g} at most."
            for index in found[:3]
        ),
        next_step="Bound the feature in the bot (a logarithm, a share, a clip); check its unit. "
        "Where it holds nonsense now and then: --set features.bounds.NAME=[LOW,HIGH].",
        link=section("exploding-features"),
    )


def not_finite_features(evidence: Evidence) -> Iterator[Finding]:
    """Features that are nan or infinite hand the decision to the fallback."""
    counts = evidence.status.not_finite
    total, decisions = sum(counts.values()), evidence.status.decisions
    if not total:
        return
    often = total > 0.01 * max(decisions, 1)
    yield Finding(
        check="not-finite-features",
        weight="warning" if often else "note",
        certainty="certain",
        title=f"{many(len(counts), 'feature was', 'features were')} nan or infinite: "
        f"{_named(list(counts))}.",
        evidence=(f"{total:,} of {decisions:,} decisions; the fallback made those.",),
        next_step="Find the division by zero or the missing number in the bot's features.",
        link=section("not-finite-features"),
    )


def unmapped_actions(evidence: Evidence) -> Iterator[Finding]:
    """Actions that can never be taken, that no gate ever lets through, or that do the same."""
    yield from _never_legal(evidence)
    yield from _never_sent(evidence)
    yield from _alike(evidence)


def _never_legal(evidence: Evidence) -> Iterator[Finding]:
    space = evidence.folder.spec.actions
    masks = [one.legal for one in evidence.episodes]
    known = [one for one in masks if one is not None]
    if isinstance(space, Continuous) or len(known) < max(_MATCHES, len(masks)):
        return
    legal = np.concatenate(known)
    never = np.flatnonzero(~legal.any(0))
    if len(legal) < _NEVER_LEGAL or not len(never) or len(never) > space.options / 2:
        return
    if space.options > _FEW_OPTIONS:
        return
    names = [_option(space, int(one)) for one in never]
    yield Finding(
        check="unmapped-actions",
        weight="warning",
        certainty="possible",
        title=f"{many(len(names), 'action is', 'actions are')} never legal: {_named(names)}.",
        evidence=(f"Illegal in all of {len(legal):,} decisions of {len(known)} matches.",),
        next_step="Check the mask that the bot gives as legal=. An action that is not built yet "
        "should be left out of the run.",
        link=section("unmapped-actions"),
    )


def _never_sent(evidence: Evidence) -> Iterator[Finding]:
    """Proposals for one action that the gate, or the game behind it, always refuses."""
    space = evidence.folder.spec.actions
    if not isinstance(space, Discrete) or space.options > _FEW_OPTIONS:
        return
    judged = [one for one in evidence.episodes if one.sent is not None]
    if not judged:
        return
    actions = np.concatenate([one.actions[:, 0] for one in judged])
    sent = np.concatenate([one.sent for one in judged if one.sent is not None])
    proposed = np.bincount(actions, minlength=space.options)
    through = np.bincount(actions[sent], minlength=space.options)
    never = np.flatnonzero((proposed >= _NEVER_SENT) & (through == 0))
    if not len(never) or not sent.any():
        return
    names = [space.names[one] for one in never]
    yield Finding(
        check="unmapped-actions",
        weight="warning",
        certainty="likely",
        title=f"{many(len(names), 'action is', 'actions are')} proposed and never executed: "
        f"{_named(names)}.",
        evidence=tuple(
            f"{space.names[one]}: proposed {proposed[one]:,} times, sent 0 times."
            for one in never[:3]
        ),
        next_step="Ask the gate why: understudy gate --run "
        f"{evidence.folder.root}; an action that the game cannot execute should be illegal.",
        link=section("unmapped-actions"),
    )


def _alike(evidence: Evidence) -> Iterator[Finding]:
    """Actions without any difference in what follows: the bot may map them to nothing."""
    space = evidence.folder.spec.actions
    if evidence.kind != "ring" or not isinstance(space, Discrete):
        return
    if space.options > _FEW_OPTIONS:
        return
    for one in alike_actions(evidence.episodes):
        first, second = space.names[one.first], space.names[one.second]
        yield Finding(
            check="unmapped-actions",
            weight="warning",
            certainty="possible",
            title=f"{first} and {second} do the same, as far as features show.",
            evidence=(
                f"After {one.times[0]:,} and {one.times[1]:,} decisions no feature differs by "
                f"more than {one.distance:.1f} standard errors; other actions differ by "
                f"{one.others:.0f}.",
            ),
            next_step="Check that the bot does something for each name that decide returns: one "
            "that is mapped to nothing looks like any other that is.",
            link=section("unmapped-actions"),
        )


def all_aborted(evidence: Evidence) -> Iterator[Finding]:
    """Matches end without a result."""
    trend = evidence.trend("aborted")
    last = trend.last(_ABORTED_MATCHES)
    share = trend.mean(of=last)
    if trend.weight < _ABORTED_MATCHES or share is None or share < _ABORTED:
        return
    status, returns = evidence.status, evidence.trend("return").last(_ABORTED_MATCHES)
    rewarded = max(one.most for one in returns) > min(one.least for one in returns)
    yield Finding(
        check="all-aborted",
        weight="warning" if rewarded else "problem",  # rewards on the way still teach
        certainty="likely",
        title="Matches end without a result: they are all aborted.",
        evidence=(
            f"{share:.0%} of the last {sum(one.weight for one in last):.0f} matches; "
            f"{status.aborted:,} of {status.matches:,} in the whole run.",
        ),
        next_step='Call match.finish("victory"), ("defeat") or ("tie") when the game ends: a match '
        "that is left without it, or by an exception, is kept as aborted.",
        link=section("all-aborted"),
    )


CHECKS = (
    rewards_all_zero,
    reward_scale,
    constant_features,
    exploding_features,
    not_finite_features,
    unmapped_actions,
    all_aborted,
)


def _rewards(evidence: Evidence) -> list[NDArray]:
    """Of the decisions of each match whose reward is known."""
    return [one.rewards[one.taught] for one in evidence.episodes if one.taught.any()]


def _enough(matches: Sequence[NDArray]) -> bool:
    return len(matches) >= _MATCHES and sum(map(len, matches)) >= _MATCHES


def _observations(evidence: Evidence) -> NDArray | None:
    """float32 [N, F] of all decisions; None: too few."""
    seen = [one.observations for one in evidence.episodes]
    if len(seen) < _MATCHES or sum(map(len, seen)) < _DECISIONS:
        return None
    return np.concatenate(seen)


def _told(matches: Sequence[NDArray]) -> str:
    return f"{sum(map(len, matches)):,} decisions of {len(matches)} matches were looked at"


def _option(space: object, index: int) -> str:
    if isinstance(space, Discrete):
        return space.names[index]
    return f"option {index}"


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
