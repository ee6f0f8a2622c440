"""Checks of learning beside a bot: do results get better, and does the policy follow the rewards?

All of them look at runs in which the policy plays to learn. `training` has those of `train`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from understudy.core.statistics import wilson
from understudy.doctor.comparing import first
from understudy.doctor.evidence import Evidence
from understudy.doctor.findings import Finding, section
from understudy.doctor.intervals import Interval, Z, gain, mean_of, share_of
from understudy.doctor.policy_change import Agreement, agreement_with_rewards
from understudy.registry.scores import UNTRAINED, Score

_MATCHES, _VERSION, _BATCHES = 400, 10, 50
"""Matches since that version, and batches. With less there is nothing to say yet: runs on swarm
need 100 to 400 matches to get going, and a starved learner is no policy that cannot learn."""
_FIRST = 150
_FIRST_SHARE = 0.1
_LAST = 500
_FLAT = 0.08
"""An interval of the gain that ends below this excludes that learning helps much."""
_HALF = 0.5
_Z95 = 1.96
_LOST = 0.15
"""Points of the win rate that must be lost for certain."""
_RESULTS = 40
_BLIND = 0.3
"""Won and lost matches whose returns differ by less than so many standard deviations, at most."""
_SHARE_MOVED = 0.35
"""Of the matches with a tag; four standard errors of the difference, at least."""


def not_learning(evidence: Evidence) -> Iterator[Finding]:
    """The win rate does not rise, and most matches are lost."""
    trend, status = evidence.trend("win_rate"), evidence.status
    learned = [one for one in trend.bins if one.version >= _VERSION]
    matches = sum(one.weight for one in learned)
    if not _learns_by_playing(evidence) or matches < _MATCHES or status.batches_trained < _BATCHES:
        return
    start = share_of(first(trend, max(_FIRST, _FIRST_SHARE * trend.weight)), z=_Z95)
    last = share_of(trend.last(min(_LAST, trend.weight - start.size, matches)), z=_Z95)
    least, most = gain(start, last)
    rules = share_of(evidence.trend("rules_win_rate").bins)
    if most >= _FLAT or last.high >= _HALF or not steady_opponents(evidence):
        return
    against = (f"The rules won {rules.percent} of their matches.",) if rules.size else ()
    yield Finding(
        check="not-learning",
        weight="problem",
        certainty="likely",
        title=f"The policy does not learn: it wins {last.mean:.0%}, as at the start.",
        evidence=(
            f"First matches won: {start.percent}.",
            f"Last matches won: {last.percent}.",
            f"The gain is {least:+.0%} to {most:+.0%} (95% interval), after "
            f"{status.batches_trained:,} batches and {status.version:,} versions.",
            *against,
        ),
        next_step="Check the other findings first: most causes have one of their own. Then test "
        "against an easier opponent, and give rewards on the way to a win (match.reward).",
        link=section("not-learning"),
    )


def went_backwards(evidence: Evidence) -> Iterator[Finding]:
    """An earlier version won clearly more than the newest ones."""
    scores = [one for one in _scores(evidence) if one.last > UNTRAINED and one.matches >= _RESULTS]
    if evidence.kind != "ring" or len(scores) < 4 or not steady_opponents(evidence):
        return
    if evidence.folder.by_evidence:  # the champion plays, and those that practise may be worse
        return
    windows = [_pooled(pair) for pair in pairwise(scores)]
    now = windows[-1]
    best = max(windows[:-2], key=lambda one: _interval(one).low)
    before, after = _interval(best), _interval(now)
    # The best of many scores is lucky; intervals of 99.9 % that are apart allow for that.
    if before.low - after.high < 0.0 or before.mean - after.mean < _LOST:
        return
    yield Finding(
        check="went-backwards",
        weight="problem",
        certainty="certain" if before.low - after.high > _LOST else "likely",
        title=f"Learning went backwards: version {best.last} won {before.mean:.0%} of its "
        f"matches, the newest ones win {after.mean:.0%}.",
        evidence=(
            f"Versions {best.first} to {best.last} won {before.percent}.",
            f"Versions {now.first} to {now.last} won {after.percent}.",
        ),
        next_step=f"Let the best one play: understudy models rollback {best.last} --run "
        f"{evidence.folder.root}. Then learn with smaller steps: learner.learning_rate_max="
        f"{evidence.config.learner.learning_rate_max / 3:.2g}.",
        link=section("went-backwards"),
    )


def reward_against_result(evidence: Evidence) -> Iterator[Finding]:
    """Lost matches earn more than won ones, or as much."""
    won, lost = evidence.trend("return_won"), evidence.trend("return_lost")
    if min(won.weight, lost.weight) < _RESULTS or evidence.kind != "ring":
        return
    of_won, of_lost = mean_of(won.bins), mean_of(lost.bins)
    said = (
        f"Rewards of a won match: {of_won}.",
        f"Rewards of a lost match: {of_lost}.",
    )
    if of_won.high < of_lost.low:
        yield Finding(
            check="reward-against-result",
            weight="problem",
            certainty="certain",
            title="Lost matches earn more reward than won ones: the policy learns to lose.",
            evidence=said,
            next_step="Look for a sign error in the rewards of the bot (match.reward, "
            "result_rewards): a reward must be positive where the own side gains.",
            link=section("reward-against-result"),
        )
        return
    spread = max(_spread(of_won), _spread(of_lost))
    if spread > 0.0 and gain(of_lost, of_won)[1] < _BLIND * spread:
        yield Finding(
            check="reward-against-result",
            weight="warning",
            certainty="likely",
            title="Won and lost matches earn nearly the same: rewards on the way drown the result.",
            evidence=(*said, f"Rewards of matches with one result vary by {spread:.3g}."),
            next_step="Make rewards on the way smaller, or the result larger: result_rewards="
            '{"victory": ..., "defeat": ...} of Understudy.open.',
            link=section("reward-against-result"),
        )


def wrong_sign(evidence: Evidence) -> Iterator[Finding]:
    """The policy moves away from what was rewarded."""
    if evidence.kind != "ring" or not _learns_by_playing(evidence):
        return
    found = agreement_with_rewards(evidence, evidence.episodes)
    if found is not None and found.agrees:
        return
    if found is None or not found.opposes:  # a policy that has settled no longer moves: look back
        found = agreement_with_rewards(evidence, evidence.first_episodes)
    if found is None or not found.opposes:
        return
    yield Finding(
        check="wrong-sign",
        weight="problem",
        certainty="likely",
        title="Rewarded actions become less likely: the policy learns in the wrong direction.",
        evidence=_sign_evidence(found),
        next_step="If the learner is your own or changed, look for a lost minus in its loss; if "
        "not, roll back (understudy models list) and report it with this run.",
        link=section("wrong-sign"),
    )


def _sign_evidence(found: Agreement) -> tuple[str, ...]:
    return (
        f"{found.decisions:,} decisions of {found.episodes} matches were compared under the "
        f"version that made them and version {found.version}.",
        f"Advantage and change of log-probability correlate by {found.correlation:+.3f}, "
        f"{found.z:+.1f} standard errors from 0; learning makes that positive.",
    )


CHECKS = (wrong_sign, reward_against_result, went_backwards, not_learning)  # causes first


def _learns_by_playing(evidence: Evidence) -> bool:
    """Whether the newest version plays, whatever its results: elsewhere evidence decides."""
    return evidence.kind == "ring" and evidence.status.mode in ("", "learn")


def steady_opponents(evidence: Evidence) -> bool:
    """Whether the newest matches have the tags that the first ones have: else opponents changed,
    and win rates of different times do not compare."""
    now, then = (
        [one.meta.tags for one in part] for part in (evidence.episodes, evidence.first_episodes)
    )
    if not now or not then:
        return True
    of_now, of_then = (
        Counter(f"{name}={value}" for one in tags for name, value in one.items())
        for tags in (now, then)
    )
    return all(
        abs(of_now[tag] / len(now) - of_then[tag] / len(then)) < _SHARE_MOVED
        for tag in of_now.keys() | of_then.keys()
    )


def _scores(evidence: Evidence) -> tuple[Score, ...]:
    return () if evidence.manifest is None else evidence.manifest.scores


def _pooled(scores: Sequence[Score]) -> Score:
    return msgspec.structs.replace(
        scores[-1],
        first=scores[0].first,
        matches=sum(one.matches for one in scores),
        wins=sum(one.wins for one in scores),
    )


def _interval(score: Score) -> Interval:
    return Interval(
        score.wins / score.matches, *wilson(score.wins, score.matches, Z), score.matches
    )


def _spread(interval: Interval) -> float:
    """The standard deviation of single values, from the interval of their mean."""
    return (interval.high - interval.low) / (2 * Z) * math.sqrt(interval.size)
