"""One line says who plays, why, and what would change it, in each stage; never above 80 columns."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from understudy.telemetry.events import MatchFinished
from understudy.telemetry.fold import recent_agreement
from understudy.telemetry.journal import Entry
from understudy.telemetry.promotion_lines import describe_promotion, practice_text
from understudy.telemetry.promotion_stage import staged
from understudy.telemetry.promotion_status import (
    ArmResult,
    PracticeStatus,
    PromotionStatus,
    TrialStatus,
)

PRACTICE = PracticeStatus(
    version=812, share=0.2, mean=0.54, matches=60, incumbent_mean=0.5, incumbent_matches=200,
    needed=20,
)  # fmt: skip
TEST = TrialStatus(
    number=2, recheck=False, since=0.0, version=900, against=0, share=0.5,
    canary=ArmResult(version=900), incumbent=ArmResult(version=0),
    better=3.14, better_enough=20.0, worse=0.41, worse_enough=4.0,
    short=100, hopeless=0.2, long=300, promising=2.0, longest=600,
)  # fmt: skip
SHADOW: dict[str, Any] = {
    "incumbent": 0, "cameo_share": 0.05, "practice_share": 0.2, "agreement_enough": 0.9
}  # fmt: skip


def changed(one: Any, **fields: Any) -> Any:
    return msgspec.structs.replace(one, **fields)


LINES = [
    ({}, "shadow", "the rules play; practice begins at 90% agreement with them"),
    ({"newest": 0, "agreement": 0.71}, "shadow", "the rules play; no version yet"),
    (
        {"newest": 3},
        "cameos",
        "the rules play, cameos in at most 5%; "
        "practice begins at 90% agreement with them",
    ),
    (
        {"newest": 3, "agreement": 0.97, "cameo_share": 0.0, "practice_share": 0.0},
        "shadow",
        "the rules play; versions copy them, and none practises; a copy is not better",
    ),
    (
        {"agreement": 0.71},
        "cameos",
        "the rules play, cameos in at most 5%; practice at 90% agreement, now 71%",
    ),
    (
        {"agreement": 0.4, "learned": 200},
        "cameos",
        "the rules play, cameos in at most 5%; practice after 300 matches, now 200",
    ),
    (
        {"agreement": 0.71, "learned": 20, "cameo_share": 0.0},
        "shadow",
        "the rules play; practice at 90% agreement, now 71%; or at 300 matches",
    ),
    (
        {"agreement": 0.71, "cameo_share": 0.0},
        "shadow",
        "the rules play; practice at 90% agreement, now 71%",
    ),
    (
        {"practice_share": 0.0},
        "shadow",
        "the rules play; a version with enough experience is tried",
    ),
    (
        {"practice": changed(PRACTICE, matches=7)},
        "practice",
        "the rules play, version 812 practises in 20%; 13 more of practice to compare",
    ),
    (
        {"incumbent": 81, "practice": changed(PRACTICE, version=95, incumbent_matches=1)},
        "champion",
        "version 81 plays, version 95 practises in 20%; "
        "19 more of version 81 to compare",
    ),
    (
        {"practice": PRACTICE},
        "practice",
        "the rules play (50%), version 812 practises in 20% (54%); it may be tried",
    ),
    (
        {"practice": changed(PRACTICE, mean=0.44)},
        "practice",
        "the rules play (50%), version 812 practises in 20% (44%); tried once it is above",
    ),
    (
        {"practice": changed(PRACTICE, share=0.0, suspended=43, mean=0.31)},
        "practice",
        "the rules play; practice waits 43 more matches; it was worse (31% against 50%)",
    ),
    (
        {"tests": (TEST,), "practice": PRACTICE},
        "canary",
        "the rules play, version 900 in 40%; E 3.1 of 20 for, 0.41 of 4 against",
    ),
    (
        {"incumbent": 812, "holdout": 0.1, "tests": (TEST,)},
        "canary",
        "version 812 plays, version 900 in 45%; E 3.1 of 20 for, 0.41 of 4 against",
    ),
    (
        {"tests": (changed(TEST, simulator=True, share=0.0),)},
        "canary",
        "the rules play, version 900 in simulated pairs; E 3.1 of 20 for, 0.41 of 4 against",
    ),
    (
        {"tests": (changed(TEST, asks=True),), "paused": True},
        "canary",
        "the rules play, version 900 in 50%; it is better: a person is asked",
    ),
    (
        {"incumbent": 812, "holdout": 0.1, "promise": 0.61},
        "champion",
        "version 812 plays, the rules 10%; rechecked if its results fall below 61%",
    ),
    (
        {"incumbent": 812, "holdout": 0.1, "practice": changed(PRACTICE, version=950)},
        "champion",
        "version 812 plays (50%), version 950 practises in 18% (54%); it may be tried",
    ),
    (
        {"incumbent": 812, "tests": (changed(TEST, recheck=True, version=812, share=0.45),)},
        "champion",
        "version 812 plays 45%, the rules the rest; it is rolled back at E 4, now 0.41",
    ),
    (
        {"paused": True},
        "shadow",
        "the rules play; promotion is paused: no version is tried or promoted",
    ),
    ({"cool_down": 30}, "shadow", "the rules play; 30 more matches before a version is tried"),
    (
        {"pinned": 5},
        "pinned",
        "version 5, pinned, plays every match; `models release` lets evidence decide",
    ),
    (
        {"policy": "latest"},
        "latest",
        "the newest version plays every match; promotion.policy is 'latest'",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "stage", "line"), LINES)
def test_each_stage_has_its_line(fields: dict[str, Any], stage: str, line: str) -> None:
    status = staged(PromotionStatus(**{**SHADOW, **fields}))
    shown = line if len(line) <= 80 else line.rpartition("; ")[0]
    assert (status.stage, status.line) == (stage, shown)


@pytest.mark.parametrize(("fields", "stage", "line"), LINES)
def test_a_line_fits_80_columns_with_the_largest_numbers(
    fields: dict[str, Any], stage: str, line: str
) -> None:
    many = 1_234_567
    large = {
        "pinned": many if fields.get("pinned") else None,
        "incumbent": many if fields.get("incumbent") else 0,
        "practice": changed(PRACTICE, version=many) if fields.get("practice") else None,
        "tests": tuple(
            changed(one, version=many, better=1e9, worse=1e9) for one in fields.get("tests", ())
        ),
    }
    status = staged(PromotionStatus(**{**SHADOW, **fields, **large}))
    assert status.line.isascii() and 0 < len(status.line) <= 80


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"matches": 19}, "; E 1.0 of 4 against it"),
        ({"matches": 40}, "; 54% in 40; the rules 50% in about the last 50; E 1.0 of 4 against it"),
        (
            {"played": 80},
            "; 54% in about the last 50, 48% in all 80; the rules 50% in about the last 50; "
            "E 1.0 of 4 against it",
        ),
    ],
)
def test_practice_is_compared_in_about_as_many_matches(fields: dict[str, Any], words: str) -> None:
    practice = changed(PRACTICE, **{"played": 40, "played_mean": 0.48, **fields})
    text = practice_text(practice, against=0)
    assert text.partition(" matches, which count for no test")[2] == words


@pytest.mark.parametrize(
    ("fields", "missing"),
    [
        ({"newest": 0}, "a first version"),
        (
            {"newest": 3, "agreement": 0.84, "learned": 153},
            "practice: it begins at 90% agreement with the rules (now 84%), or with 300 matches "
            "learned from (now 153)",
        ),
        (
            {"practice": changed(PRACTICE, matches=7)},
            "20 compared matches of each: practice has 7, the rules 200",
        ),
        (
            {"practice": changed(PRACTICE, mean=0.44)},
            "practice that looks better: 44% now, the rules 50%",
        ),
        (
            {"practice": changed(PRACTICE, share=0.0, suspended=43)},
            "practice: it is suspended for 43 more matches",
        ),
        ({"practice": PRACTICE}, "a version with enough new experience, which is then tried"),
    ],
)
def test_what_is_missing_before_a_test_is_told(fields: dict[str, Any], missing: str) -> None:
    status = staged(PromotionStatus(**{**SHADOW, **fields}))
    text = describe_promotion(status, run="r", at=0.0).replace("\n            ", " ")
    assert f"Missing     {missing}\n" in text


def test_the_agreement_is_that_of_the_last_matches_of_the_rules() -> None:
    def match(fallback: int, agreed: int, *, version: int = 1, role: str = "rules") -> Entry:
        event = MatchFinished(
            id="m", outcome="victory", decisions=10, reward=0.0, version=version, seconds=1.0,
            saved=True, fallback=fallback, agreed=agreed, role=role,
        )  # fmt: skip
        return Entry(t=0.0, by="bot", e=event)

    assert recent_agreement([]) is None
    assert recent_agreement([match(10, 9)] * 19) is None, "too few decisions"
    old, new = [match(10, 0)] * 30, [match(10, 9)] * 50
    assert recent_agreement([*old, *new, match(0, 0)]) == pytest.approx(0.9)
    untrained, practice = match(10, 0, version=0), match(10, 0, role="practice")
    assert recent_agreement([*new, untrained, practice]) == pytest.approx(0.9)
