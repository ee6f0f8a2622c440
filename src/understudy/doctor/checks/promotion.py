"""Checks of promotion: can a version ever earn play, and is one ever judged?"""

from __future__ import annotations

from collections.abc import Iterator

from understudy.core.config import PromotionConfig
from understudy.doctor.evidence import Evidence
from understudy.doctor.findings import Finding, section
from understudy.telemetry.promotion_status import PromotionStatus, TrialStatus
from understudy.telemetry.text import duration

_LONG_S, _HOPELESS_S = 3 * 86_400.0, 6 * 3_600.0
_UNDECIDED = 0.8
_MATCHES = 50
"""Of a test before its end is foretold."""
_IN_A_ROW = 4
"""Suspensions: by then 750 matches passed without practice. Healthy runs have had two in a row."""
_UNJUDGED_MATCHES = 600
_UNJUDGED_VERSIONS = 5_000
_ENDED_UNDECIDED = 3
_NO_VERDICT = ("undecided", "hopeless")
_TESTED = (*_NO_VERDICT, "promoted", "asks", "continued", "harmful", "misfit", "stopped", "closed")
"""Verdicts on a version that was tried."""


def _by_matches(evidence: Evidence) -> PromotionStatus | None:
    """The promotion of a run that evidence moves now; None: it does not."""
    promotion = evidence.status.promotion
    if promotion is None or promotion.policy == "latest":
        return None
    return promotion


def canary_cannot_conclude(evidence: Evidence) -> Iterator[Finding]:
    """A running test that takes too long, or will end without a verdict."""
    promotion = _by_matches(evidence)
    for test in promotion.tests if promotion is not None else ():
        if promotion is None or test.expected is None or test.recheck:
            continue
        yield from _slow_test(evidence, promotion, test)


def _slow_test(
    evidence: Evidence, promotion: PromotionStatus, test: TrialStatus
) -> Iterator[Finding]:
    expected = test.expected
    assert expected is not None
    undecided = 1.0 - expected.better - expected.worse
    if expected.seconds is None:
        return
    slow = expected.seconds > _LONG_S
    hopeless = (
        test.matches >= _MATCHES and undecided >= _UNDECIDED and expected.seconds > _HOPELESS_S
    )
    if not (slow or hopeless):  # one that soon ends undecided makes room for the next
        return
    words = [
        f"Version {test.version} against {_name(test.against)}: {test.canary.mean:.0%} of "
        f"{test.canary.matches:,} and {test.incumbent.mean:.0%} of {test.incumbent.matches:,}; "
        f"evidence {test.better:.2f} of {test.better_enough:.0f} for it, {test.worse:.2f} of "
        f"{test.worse_enough:g} against it.",
        f"Half of its simulated futures take {expected.matches:,} more matches or fewer; "
        f"{undecided:.0%} end without a verdict, {expected.assumption}.",
    ]
    if expected.pace:
        words.append(
            f"At {expected.pace:.1f} matches an hour that count, this takes "
            f"{duration(expected.seconds)}."
        )
    reason = "at this pace it takes days" if slow else "the two play too much alike for its length"
    more = (
        "" if promotion.served or evidence.folder.config.promotion.evidence == "simulator"
        else " Declare a score in [0, 1] for a match, which tells more than its result "
        "(docs/rules-to-champion.md)."
    )  # fmt: skip
    yield Finding(
        check="canary-cannot-conclude",
        weight="warning",
        certainty="likely",
        title=f"The test of version {test.version} is not expected to conclude: {reason}.",
        evidence=tuple(promotion.in_units(one) for one in words),
        next_step=promotion.in_units(
            "Play more matches at once (several bots may share a run), raise promotion.share, or "
            f"stop it: understudy promotion stop.{more}"
        ),
        link=section("canary-cannot-conclude"),
    )


def tests_end_undecided(evidence: Evidence) -> Iterator[Finding]:
    """The last tests all ended without a verdict."""
    promotion = _by_matches(evidence)
    if promotion is None:
        return
    last = [one for one in promotion.verdicts if one.kind in _TESTED][-_ENDED_UNDECIDED:]
    if len(last) < _ENDED_UNDECIDED or any(one.kind not in _NO_VERDICT for one in last):
        return
    yield Finding(
        check="tests-end-undecided",
        weight="note",
        certainty="certain",
        title=f"The last {len(last)} tests ended without a verdict.",
        evidence=tuple(f"Version {one.version}: {one.words}" for one in last),
        next_step="Versions are about as good as what plays. Let more be learned between two tests "
        "(promotion.growth), allow longer ones (promotion.long, promotion.longest), or declare a "
        "score for a match.",
        link=section("tests-end-undecided"),
    )


def practice_suspended(evidence: Evidence) -> Iterator[Finding]:
    """Practice is worse again and again."""
    promotion = _by_matches(evidence)
    practice = None if promotion is None else promotion.practice
    if promotion is None or practice is None or practice.in_a_row < _IN_A_ROW:
        return
    if practice.promising or promotion.incumbent:  # a champion that wins most is hard to pass
        return
    yield Finding(
        check="practice-suspended",
        weight="warning",
        certainty="certain",
        title="Practice is suspended again and again: what is learned is worse than what plays.",
        evidence=(
            promotion.in_units(
                f"{practice.in_a_row} suspensions in a row; {practice.played:,} matches of "
                f"practice, mean result {practice.played_mean:.0%}, of late {practice.mean:.0%} "
                f"against {practice.incumbent_mean:.0%}."
            ),
        ),
        next_step="Look at the other findings first (entropy, value loss, rewards). Smaller steps "
        "(learner.learning_rate_max), rewards that agree with winning, or a longer "
        "learner.imitation_fade_matches help.",
        link=section("practice-suspended"),
    )


def versions_never_judged(evidence: Evidence) -> Iterator[Finding]:
    """Many matches or versions, and no version was ever tried."""
    status, promotion = evidence.status, evidence.status.promotion
    if promotion is None or promotion.policy == "latest":
        yield from _served_unjudged(evidence)
        return
    tried = promotion.tests or promotion.incumbent or _tried(promotion)
    if tried or promotion.matches < _UNJUDGED_MATCHES:
        return
    if promotion.practice is not None and promotion.practice.in_a_row >= _IN_A_ROW:
        return  # `practice_suspended` says it
    why = promotion.never or promotion.waits or promotion.line
    certain = promotion.never or promotion.pinned is not None or promotion.paused
    yield Finding(
        check="versions-never-judged",
        weight="warning",
        certainty="certain" if certain else "likely",
        title="No version was ever tried, however much was learned.",
        evidence=(
            promotion.in_units(
                f"{promotion.matches:,} matches were assigned, {status.versions:,} versions made, "
                "none was tested."
            ),
            f"Why: {why}.",
        ),
        next_step=_to_be_tried(evidence.config.promotion, promotion),
        link=section("versions-never-judged"),
    )


def _tried(promotion: PromotionStatus) -> bool:
    """Practice is in no result, so a version that has one was tried."""
    return any(one.version for one in promotion.results) or any(
        one.kind in _TESTED for one in promotion.verdicts
    )


def _to_be_tried(config: PromotionConfig, promotion: PromotionStatus) -> str:
    if promotion.pinned is not None:
        return "Let evidence decide again: understudy models release"
    if promotion.paused:
        return "Let tests begin again: understudy promotion resume"
    if not config.practice_share:
        return "Let versions practise: promotion.practice_share=0.2"
    return (
        "Read understudy promotion status. Where versions do not come to agree with rules that "
        "vary, lower promotion.practice_agreement; where practice does not look better, see the "
        "learner's findings."
    )


def _served_unjudged(evidence: Evidence) -> Iterator[Finding]:
    """A server whose newest version always decides, and thousands of versions."""
    status = evidence.status
    if evidence.kind != "server" or status.versions < _UNJUDGED_VERSIONS:
        return
    if evidence.config.live.promotion != "latest":
        return
    yield Finding(
        check="versions-never-judged",
        weight="note",
        certainty="certain",
        title="Each new version decides for all clients, and none is judged before.",
        evidence=(f"{status.versions:,} versions were made; live.promotion is 'latest'.",),
        next_step="Serve with --promotion auto: a version decides for all once segments show that "
        "it is better.",
        link=section("versions-never-judged"),
    )


def _name(version: int) -> str:
    return f"version {version}" if version else "the rules"


CHECKS = (
    canary_cannot_conclude,
    tests_end_undecided,
    practice_suspended,
    versions_never_judged,
)
