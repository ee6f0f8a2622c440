"""Practice: the newest version plays whole matches to learn, once it decides as the rules do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from understudy import Understudy
from understudy.bot.practice import may_practise
from understudy.core.config import PromotionConfig
from understudy.gates.promotion.practice import LEARNED_MATCHES
from understudy.policy.policy import Policy
from understudy.policy.weights import Weights
from understudy.registry.checkpoints import INGESTED
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events as ev
from understudy.telemetry.agreement import RulesAgreement

from .minds import ACTIONS, auto, episodes, journal, lively, publish


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


def mostly(folder: RunFolder, action: str, seed: int) -> Weights:
    """Weights of a version that nearly always does one thing."""
    weights = lively(folder, seed)
    bias = np.full(len(ACTIONS), -4.0, np.float32)
    bias[ACTIONS.index(action)] = 4.0
    flat = {"policy.w": 0.01 * weights.params["policy.w"], "policy.b": bias}
    return replace(weights, params={**weights.params, **flat})


def test_a_version_that_decides_as_the_rules_do_practises(tmp_path: Path) -> None:
    with auto(tmp_path, practice_share=0.5, first_matches=10**6) as one:
        publish(one.folder, 1, champion=False, weights=mostly(one.folder, "right", 1))
        one.refresh()
        assert {play(one) for _ in range(12)} == {("rules", 0)}, "it decides otherwise"
        status = one.promotion_status()
        assert status is not None and (status.stage, status.agreement) == ("cameos", 0.0)
        assert status.line.endswith("practice at 90% agreement, now 0%")
        publish(one.folder, 2, champion=False, weights=mostly(one.folder, "left", 2))
        one.refresh()
        roles = [play(one) for _ in range(60)]
        first = roles.index(("practice", 2))
        # Of the last 500 decisions of the rules, 20 a match, 90% agree.
        assert 20 < first < 40, "older decisions count until newer ones replace them"
        status = one.promotion_status()
        assert status is not None and status.stage == "practice"
        assert " 2 practises in 50%" in status.line


def test_a_fault_in_practice_is_its_loss_and_that_version_practises_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with auto(tmp_path, practice_share=0.9, first_matches=10**6) as one:
        publish(one.folder, 1, champion=False, counters={INGESTED: LEARNED_MATCHES})
        one.refresh()
        act: Callable[..., Any] = Policy.act

        def failing(self: Policy, *given: Any, uniforms: Any = None, **options: Any) -> Any:
            if self.version == 1 and uniforms is not None:
                raise ValueError("a broken version")
            return act(self, *given, uniforms=uniforms, **options)

        monkeypatch.setattr(Policy, "act", failing)
        roles = [play(one) for _ in range(20)]
        assert roles.count(("practice", 1)) == 1, "the first fault was enough"
        assert one.promotion is not None
        practice = one.promotion.state.practice
        assert (practice.recent.matches, practice.recent.total) == (1, 0.0), "lost, though won"
        publish(one.folder, 2, champion=False)
        one.refresh()
        assert ("practice", 2) in [play(one) for _ in range(20)]
    finished = [e for e in journal(tmp_path) if isinstance(e, ev.MatchFinished)]
    (failed,) = (e for e in finished if e.fault)
    assert (failed.role, failed.assigned, failed.fallback) == ("practice", 1, 20)


@pytest.mark.parametrize(("harm", "suspended"), [(4.0, True), (1000.0, False)])
def test_practice_is_suspended_at_the_harm_of_the_run_from_its_first_match(
    tmp_path: Path, harm: float, suspended: bool
) -> None:
    with auto(tmp_path, practice_share=0.5, first_matches=10**6, harm=harm) as one:
        assert one.promotion is not None
        for number in range(10):
            coin = 0.999 * (number % 2)
            order, assigned = one.promotion.assign(f"match {number}", {}, coin, practice=1)
            result = 0.0 if assigned.arm == "practice" else 1.0
            one.promotion.resolve(order, result, "finished")
        practice = one.promotion.state.practice
        assert bool(practice.suspended) == suspended
        assert suspended or 4.0 < practice.worse < 1000.0, "it is clearly worse"


def test_matches_in_threads_share_the_cameos(tmp_path: Path) -> None:
    """Four matches at a time, whose decisions alternate: windows of one never mark another."""
    share, threads, decisions = 0.2, 4, 200
    with auto(tmp_path, cameo_share=share, first_matches=10**6) as one:
        publish(one.folder, 1, champion=False)
        one.refresh()
        turns = threading.Barrier(threads)
        wrong: list[str] = []

        def several() -> None:
            for _ in range(6):
                with one.match() as match:
                    for step in range(decisions):
                        turns.wait(20)
                        action = match.decide([step % 7, 1.0], fallback="left")
                        if not match.last.sampled and action != "left":
                            wrong.append(f"{action} at {step}")
                    match.finish("victory")

        running = [threading.Thread(target=several) for _ in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    kept = episodes(tmp_path)
    assert len(kept) == 6 * threads and not wrong
    policy = 0
    for episode in kept:
        marks = np.zeros(decisions) if episode.cameos is None else episode.cameos
        assert ((marks > 0) == episode.sampled).all()
        assert (episode.meta.cameo_coin > 0.0) == (episode.cameos is not None)
        policy += int((marks > 0).sum())
    assert 0 < policy <= share * decisions * len(kept)
