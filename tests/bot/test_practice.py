"""Practice: the newest version plays whole matches to learn, once it decides as the rules do."""

from __future__ import annotations

from pathlib import Path

import pytest

from understudy import Understudy
from understudy.bot.practice import LEARNED_MATCHES, RulesAgreement, may_practise
from understudy.core.config import PromotionConfig
from understudy.registry.checkpoints import INGESTED

from .minds import auto, episodes, publish


def play(one: Understudy) -> tuple[str, int]:
    with one.match(cameos=False) as match:
        for step in range(20):
            match.decide([step % 7, 1.0], fallback="left")
        match.finish("victory")
    return match.role, match.version


def test_recent_agreement_counts_and_old_agreement_does_not() -> None:
    agreement = RulesAgreement()
    agreement.add(90, 100)
    assert agreement.share is None, "too few decisions"
    for _ in range(20):
        agreement.add(50, 100)
    assert agreement.share == 0.5


@pytest.mark.parametrize(
    ("begun", "agreement", "learned", "expected"),
    [
        (False, None, 10, False),
        (False, 0.89, LEARNED_MATCHES - 1, False),
        (False, 0.9, 10, True),
        (False, 0.1, LEARNED_MATCHES, True),
        (True, 0.1, 10, True),
    ],
)
def test_practice_begins_by_agreement_or_experience_and_stays(
    begun: bool, agreement: float | None, learned: int, expected: bool
) -> None:
    found = [
        may_practise(
            begun=begun,
            agreement=agreement,
            learned_enough=lambda: learned >= LEARNED_MATCHES,
            config=PromotionConfig(practice_share=share),
        )
        for share in (0.2, 0.0)
    ]
    assert found == [expected, False], "a share of 0 allows none"


def test_the_newest_version_practises_and_the_matches_count_for_no_test(tmp_path: Path) -> None:
    with auto(tmp_path, practice_share=0.5, first_matches=10**6) as one:
        publish(one.folder, 1, champion=False)
        one.refresh()
        assert {play(one) for _ in range(6)} == {("rules", 0)}, "it does not decide as the rules do"
        publish(one.folder, 2, champion=False, counters={INGESTED: LEARNED_MATCHES})
        one.refresh()
        roles = [play(one) for _ in range(30)]
        assert set(roles) == {("rules", 0), ("practice", 2)}
        publish(one.folder, 3, champion=False)
        one.refresh()
        assert ("practice", 3) in {play(one) for _ in range(20)}, "once begun it stays"
        assert one.promotion is not None
        state = one.promotion.state
        assert state.practice.begun and not {2, 3} & state.records.keys()
    for kept, (role, _) in zip(episodes(tmp_path)[6:], roles, strict=False):
        assert kept.sampled.all() if role == "practice" else not kept.sampled.any()
