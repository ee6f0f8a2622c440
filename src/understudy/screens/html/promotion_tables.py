"""Tables about promotion: tests that run, results of each player, and the story of decisions."""

from __future__ import annotations

from collections.abc import Sequence

from understudy.promotion.history import PromotionHistory
from understudy.screens.html.elements import Element
from understudy.screens.html.parts import table
from understudy.telemetry.promotion_lines import player_name, stratum_name
from understudy.telemetry.promotion_status import (
    ArmResult,
    PromotionStatus,
    TrialStatus,
    VerdictNote,
)
from understudy.telemetry.text import evidence_text, stamp
from understudy.telemetry.verdicts import VERDICTS

_ARMS = 16


def tests_table(tests: Sequence[TrialStatus]) -> Element:
    """Tests that have not ended."""
    return table(
        "Tests that have not ended: mean results of both sides (a tie counts half), and the "
        "evidence so far with how much is enough.",
        ("tested", "its result", "against", "its result", "E for it", "E against it"),
        [_test_row(one) for one in tests],
        kinds="wwwwww",
    )


def _test_row(one: TrialStatus) -> tuple[str, ...]:
    return (
        f"version {one.version}{' (recheck)' if one.recheck else ''}",
        f"{one.canary.mean:.0%} of {one.canary.matches:,}",
        player_name(one.against),
        f"{one.incumbent.mean:.0%} of {one.incumbent.matches:,}",
        f"{evidence_text(one.better)} of {one.better_enough:.0f}",
        f"{evidence_text(one.worse)} of {one.worse_enough:g}",
    )


def shown_arms(now: PromotionStatus) -> list[ArmResult]:
    """Those with a result, the most played first, as many as a table has room for."""
    return [one for one in now.results if one.matches][:_ARMS]


def arms_table(arms: Sequence[ArmResult], *, unit: str) -> Element:
    """Results by player and stratum."""
    return table(
        f"Mean results in assigned {unit} (a win counts 1, a tie one half) with 95% intervals.",
        ("player", "where", unit, "mean result", "95% interval"),
        [
            (player_name(one.version), stratum_name(one.stratum, 60) or "all",
             f"{one.matches:,}", f"{one.mean:.0%}", f"{one.low:.0%} to {one.high:.0%}")
            for one in arms
        ],
        kinds="w.nnn",
    )  # fmt: skip


def verdict_notes(told: PromotionHistory) -> list[VerdictNote]:
    """Every decision about who plays, oldest first."""
    return [
        VerdictNote(
            number=one.sequence,
            at=told.times.get(one.sequence, 0.0),
            version=one.version,
            kind=one.kind,
            words=one.words,
        )
        for one in told.verdicts
    ]


def story_table(notes: Sequence[VerdictNote], *, most: int) -> Element:
    """The last decisions, newest last."""
    shown = notes[-most:]
    left = len(notes) - len(shown)
    earlier = f" {left:,} earlier ones are left out." if left else ""
    return table(
        f"The story so far: every decision about who plays, newest last.{earlier}",
        ("when", "version", "what happened", "why"),
        [
            (stamp(one.at), player_name(one.version),
             f"{one.kind}: {VERDICTS[one.kind].meaning}" if one.kind in VERDICTS else one.kind,
             one.words)
            for one in shown
        ],
        kinds="ww..",
    )  # fmt: skip
