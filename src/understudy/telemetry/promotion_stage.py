"""The stage that promotion is in, and one line: who plays, why, and what would change it.

    shadow -> cameos -> practice -> canary -> champion

The line is ASCII and has at most 80 columns. The bot's console, `understudy status` and
`understudy promotion status` show the same one.
"""

from __future__ import annotations

import msgspec

from understudy.telemetry.promotion_status import (
    PracticeStatus,
    PromotionStatus,
    Stage,
    TrialStatus,
)
from understudy.telemetry.text import evidence_text

STAGES: tuple[Stage, ...] = ("shadow", "cameos", "practice", "canary", "champion")
_WIDTH = 80
_OFTEN = 3
"""Suspensions in a row after which practice is not expected to become better."""


def staged(status: PromotionStatus, *, agreement: float | None = None) -> PromotionStatus:
    """The same with its stage and its line; `agreement` of the newest version with the rules."""
    if agreement is not None:
        status = msgspec.structs.replace(status, agreement=agreement)
    return msgspec.structs.replace(
        status, stage=stage_of(status), line=stage_line(status), never=never_due(status)
    )


def never_due(status: PromotionStatus) -> str:
    """Why no verdict is due as things are; empty: one is, or a version may be tried soon."""
    if status.pinned is not None:
        return "a champion is pinned, and nothing is tried"
    if status.policy == "latest":
        return "promotion.policy is 'latest', and no version is tried"
    if status.tests:
        return ""
    if status.paused:
        return "promotion is paused, and no test begins"
    practice, copies = status.practice, (status.agreement or 0.0) >= status.agreement_enough
    if not status.practice_share:
        if status.incumbent or not copies or status.newest == 0:
            return ""
        return (
            f"versions decide as the rules do ({status.agreement:.0%} of decisions), and none "
            "practises (promotion.practice_share is 0): a copy is not better"
        )
    if practice is not None and practice.in_a_row >= _OFTEN and not practice.promising:
        return (
            f"practice was suspended {practice.in_a_row} times in a row, since the newest versions "
            "are worse; none is tried before practice looks better"
        )
    return ""


def stage_of(status: PromotionStatus) -> Stage:
    """How far the run has come. A canary beside a champion is the stage `canary`."""
    if status.pinned is not None:
        return "pinned"
    if status.policy == "latest":
        return "latest"
    if any(not one.recheck for one in status.tests):
        return "canary"
    if status.incumbent:
        return "champion"
    if status.practice is not None and (status.practice.share or status.practice.suspended):
        return "practice"
    return "cameos" if _has_cameos(status) else "shadow"


def _has_cameos(status: PromotionStatus) -> bool:
    """A version may decide in windows of the rules' matches; one that is known at all."""
    if status.newest is None:
        return bool(status.cameo_share) and status.agreement is not None
    return bool(status.cameo_share and status.newest)


def stages_text(stage: Stage | None = None) -> str:
    """`shadow -> cameos -> [practice] -> canary -> champion`, with the present stage marked; one
    that is none of those alone."""
    if stage is not None and stage not in STAGES:
        return stage
    return " -> ".join(f"[{one}]" if one == stage else one for one in STAGES)


def stage_line(status: PromotionStatus) -> str:
    """Who plays, why, and what would change it: as much of it as fits one line."""
    parts = [status.in_units(part) for part in _parts(status)]
    while len(text := "; ".join(parts)) > _WIDTH and len(parts) > 1:
        parts = parts[:-1]
    return text


def _parts(status: PromotionStatus) -> list[str]:
    """What the line says, the most important first."""
    if status.pinned is not None:
        who = f"version {status.pinned}" if status.pinned else "the rules"
        plays = "plays" if status.pinned else "play"
        return [f"{who}, pinned, {plays} every match", "`models release` lets evidence decide"]
    if status.policy == "latest":
        return ["the newest version plays every match", "promotion.policy is 'latest'"]
    if status.tests:
        one = status.tests[0]
        return _recheck(status, one) if one.recheck else _test(status, one)
    if status.paused:
        return [_who(status), "promotion is paused: no version is tried or promoted"]
    if status.practice is not None and (status.practice.share or status.practice.suspended):
        return _practice(status, status.practice)
    if status.cool_down:
        return [_who(status), f"{status.cool_down:,} more matches before a version is tried"]
    if status.incumbent:
        return _champion(status)
    return _before_practice(status)


def _who(status: PromotionStatus) -> str:
    return f"version {status.incumbent} plays" if status.incumbent else "the rules play"


def _recheck(status: PromotionStatus, one: TrialStatus) -> list[str]:
    return [
        f"{_who(status)} {one.share:.0%}, the rules the rest",
        f"it is rolled back at E {one.worse_enough:g}, now {evidence_text(one.worse)}",
    ]


def _test(status: PromotionStatus, one: TrialStatus) -> list[str]:
    share = "in simulated pairs"
    if not one.simulator:
        share = f"in {one.share * (1.0 - status.holdout) * (1.0 - status.practice_now):.0%}"
    who = f"{_who(status)}, version {one.version} {share}"
    if one.asks:
        return [who, "it is better: a person is asked"]
    figures = (
        f"E {evidence_text(min(one.better, 999.0))} of {one.better_enough:.0f} for, "
        f"{evidence_text(min(one.worse, 999.0))} of {one.worse_enough:g} against"
    )
    return [who, figures]


def _practice(status: PromotionStatus, practice: PracticeStatus) -> list[str]:
    if practice.suspended:
        means = f"{practice.mean:.0%} against {practice.incumbent_mean:.0%}"
        suspended = f"practice waits {practice.suspended:,} more matches"
        return [_who(status), suspended, f"it was worse ({means})"]
    share = practice.share * (1.0 - status.holdout)
    if not practice.compared:
        return [
            f"{_who(status)}, version {practice.version} practises in {share:.0%}",
            f"{practice.missing} more of {_fewer(status, practice)} to compare",
        ]
    next_ = "tried once it is above"
    if practice.mean > practice.incumbent_mean:
        next_ = status.waits or "it may be tried"
    return [
        f"{_who(status)} ({practice.incumbent_mean:.0%}), version {practice.version} practises in "
        f"{share:.0%} ({practice.mean:.0%})",
        next_,
    ]


def _fewer(status: PromotionStatus, practice: PracticeStatus) -> str:
    """The arm whose matches are missing before both are compared."""
    if practice.matches < practice.incumbent_matches:
        return "practice"
    return f"version {status.incumbent}" if status.incumbent else "the rules"


def _champion(status: PromotionStatus) -> list[str]:
    who = f"{_who(status)}, the rules {status.holdout:.0%}" if status.holdout else _who(status)
    if not status.promise:
        return [who, "its first matches show what it is held to"]
    return [who, f"rechecked if its results fall below {status.promise:.0%}"]


def _before_practice(status: PromotionStatus) -> list[str]:
    who = "the rules play"
    if status.newest == 0:
        return [who, "no version yet"]
    if _has_cameos(status):
        who = f"the rules play, cameos in at most {status.cameo_share:.0%}"
    if not status.practice_share:
        if never_due(status):
            return [who, "versions copy them, and none practises", "a copy is not better"]
        return [who, status.waits or "a version with enough experience is tried"]
    if status.agreement is None:
        begins = f"practice begins at {status.agreement_enough:.0%} agreement with them"
    else:
        begins = f"practice at {status.agreement_enough:.0%} agreement, now {status.agreement:.0%}"
    if status.compared_enough:
        return [who, begins, f"or after {status.compared_enough:,} decisions"]
    if status.learned is None or not status.learned_enough:
        return [who, begins]
    # The nearer of both is what would change who plays.
    by_matches = status.learned / status.learned_enough
    by_agreement = (status.agreement or 0.0) / status.agreement_enough
    if by_matches > by_agreement:
        return [who, f"practice after {status.learned_enough:,} matches, now {status.learned:,}"]
    return [who, begins, f"or at {status.learned_enough:,} matches"]
