"""Which version is tried next, and what must not play at all."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bot.minds import REMEMBERING, SMALL, auto, journal, lively, publish
from walk.toys import SetClock, episode

from promotion.runs import folded, records
from understudy import Understudy
from understudy.core.arrays import NDArray
from understudy.core.config import PromotionConfig
from understudy.core.ops import NUMPY
from understudy.gates.promotion.practice import LEARNED_MATCHES, PracticeArm, RecentResults
from understudy.gates.promotion.records import Nominated, Ordered
from understudy.policy import distributions
from understudy.policy.policy import Policy
from understudy.policy.weights import Weights, normalise
from understudy.promotion import candidates
from understudy.promotion.cameos import CameoResult
from understudy.promotion.candidates import (
    CandidateSearch,
    RecentMatch,
    divergence,
    log_probs,
    practice_objection,
    reason_to_try,
    unfit,
)
from understudy.promotion.promotion import Promotion
from understudy.registry.versions import Versions
from understudy.telemetry import events as ev

CONFIG = PromotionConfig()


@pytest.mark.parametrize(
    ("experience", "last", "kl", "expected"),
    [
        (49, None, 9.9, ""),
        (50, None, 0.0, "it has learned from 50 matches"),
        (119, 100, 0.049, ""),
        (120, 100, 0.0, "it has learned from 120 matches, the last one tried from 100"),
        (101, 100, 0.05, "it decides otherwise than the last one tried: KL 0.05 a decision"),
    ],
)
def test_a_version_is_due_by_experience_or_by_what_it_does(
    experience: int, last: int | None, kl: float, expected: str
) -> None:
    reason = reason_to_try(experience=experience, last=last, divergence=kl, config=CONFIG)
    assert reason == expected


def recent(rows: int = 30, *, seed: int = 0) -> list[RecentMatch]:
    rng = np.random.default_rng(seed)
    legal = rng.random((rows, 3)) < 0.8
    legal[~legal.any(1)] = True
    return [RecentMatch(rng.standard_normal((rows, 2)).astype(np.float32), legal)]


def by_hand(policy: Policy, match: RecentMatch) -> NDArray:
    """log-probabilities [T, options], one decision after the other."""
    weights, memory, rows = policy.weights, policy.begin(), []
    for seen, legal in zip(match.observations, match.legal, strict=True):
        logits, _, memory = policy.spec.network.step(
            NUMPY, weights.params, normalise(NUMPY, weights, seen[None]), memory
        )
        rows.append(distributions.log_probs(NUMPY, policy.spec.actions, logits, legal[None])[0])
    return np.array(rows)


@pytest.mark.parametrize("network", [SMALL, REMEMBERING])
def test_divergence_is_that_of_the_decisions_one_by_one(tmp_path: Path, network: Any) -> None:
    with auto(tmp_path, network=network) as bot:
        old, new = (Policy(bot.spec, lively(bot.folder, one), one) for one in (1, 2))
    matches = recent() + recent(7, seed=1)
    total = 0.0
    for match in matches:
        p, q = by_hand(old, match), by_hand(new, match)
        total += float((np.exp(p) * (p - q))[match.legal].sum())
    before = [log_probs(old, match) for match in matches]
    assert divergence(before, new, matches) == pytest.approx(total / 37, rel=1e-4)
    assert divergence(before, old, matches) == 0.0


def sharpened(weights: Weights, *, by: float) -> Weights:
    scaled = {name: weights.params[name] * np.float32(by) for name in ("policy.w", "policy.b")}
    return replace(weights, params={**weights.params, **scaled})


def test_what_must_not_play_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with auto(tmp_path) as bot:
        good = lively(bot.folder, 1)

        def words(weights: Weights) -> str:
            return unfit(Policy(bot.spec, weights, 1), recent(), slow_ms=50.0)

        assert words(good) == ""
        bad = dict(good.params)
        bad["trunk.0.w"] = bad["trunk.0.w"].copy()
        bad["trunk.0.w"][0, 0] = np.nan
        assert words(replace(good, params=bad)) == "its weights are not finite"
        assert words(replace(good, obs_mean=good.obs_mean * np.inf)) == "its weights are not finite"
        assert "answers to recent" in words(sharpened(good, by=1e38))
        assert words(sharpened(good, by=100)).startswith("it is certain nearly everywhere: entropy")
        forced = recent()[0]._replace(legal=np.tile([True, False, False], (30, 1)))
        certain = Policy(bot.spec, sharpened(good, by=100), 1)
        assert unfit(certain, [forced], slow_ms=50.0) == "", "nothing could be chosen"
        assert unfit(certain, recent(), slow_ms=50.0, certain=True) == "", "practice looks better"
        assert words(sharpened(good, by=0.01)).startswith("it chooses nearly evenly: entropy 0.99")
        clock = iter(range(0, 10**12, 60_000_000))
        monkeypatch.setattr(candidates, "perf_counter_ns", lambda: next(clock))
        assert words(good) == "a decision takes 60 ms, above promotion.slow_ms = 50"


# --- in a bot ------------------------------------------------------------------------------------


def play(bot: Understudy, decisions: int = 25, outcome: str = "victory") -> None:
    with bot.match() as match:
        for step in range(decisions):
            match.decide([np.sin(step), np.cos(2 * step)], fallback="left")
        match.finish(outcome)


def tried(bot: Understudy) -> list[int]:
    bot.refresh()
    found = (record for _, record in records(bot.folder))
    return [record.version for record in found if isinstance(record, Nominated)]


def learned(bot: Understudy, number: int, matches: int, **fields: Any) -> None:
    bot._watcher.stop()  # its thread would look at the version at the same time as the test
    publish(bot.folder, number, champion=False, counters={"ingested": matches}, **fields)


def stop(bot: Understudy, version: int) -> None:
    Promotion(bot.folder).order(Ordered(order="stop", version=version))


def test_versions_are_tried_one_after_the_other_and_never_twice(tmp_path: Path) -> None:
    with auto(tmp_path, least_kl=1e9) as bot:
        play(bot)
        learned(bot, 1, 49)
        assert tried(bot) == []
        learned(bot, 2, 50)
        assert tried(bot) == [2]
        learned(bot, 3, 100)
        assert tried(bot) == [2], "one at a time"
        stop(bot, 2)
        assert tried(bot) == [2, 3]
        stop(bot, 3)
        assert tried(bot) == [2, 3], "never one twice"
        learned(bot, 4, 119)
        assert tried(bot) == [2, 3]
        learned(bot, 5, 120)
        assert tried(bot) == [2, 3, 5]
        nominated = [one for _, one in records(bot.folder) if isinstance(one, Nominated)]
    assert [one.experience for one in nominated] == [50, 100, 120]
    assert nominated[-1].reason == "it has learned from 120 matches, the last one tried from 100"


def test_a_version_that_decides_otherwise_is_tried_with_little_more_experience(
    tmp_path: Path,
) -> None:
    clock = SetClock()
    with auto(tmp_path, clock=clock) as bot:
        play(bot)
        learned(bot, 1, 50)
        assert tried(bot) == [1]
        stop(bot, 1)
        learned(bot, 2, 51, weights=lively(bot.folder, 1))
        assert tried(bot) == [1], "the same weights"
        learned(bot, 3, 51)
        assert tried(bot) == [1], "they were compared just now"
        clock.advance(candidates.COMPARE_EVERY_S)
        assert tried(bot) == [1, 3]


def test_comparing_is_seldom_and_does_the_work_for_the_old_version_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, asked, read = SetClock(), list[int](), list[int]()
    of_policy, policy = candidates.log_probs, Versions.policy

    def counted(one: Policy, match: RecentMatch) -> NDArray:
        asked.append(one.version)
        return of_policy(one, match)

    def loaded(self: Versions, number: int) -> Policy:
        read.append(number)
        return policy(self, number)

    with auto(tmp_path, clock=clock, least_kl=1e9) as bot:
        bot._watcher.stop()
        play(bot)
        learned(bot, 1, 50)
        assert tried(bot) == [1]
        stop(bot, 1)
        tried(bot)
        monkeypatch.setattr(candidates, "log_probs", counted)
        monkeypatch.setattr(Versions, "policy", loaded)
        for number in range(2, 8):
            learned(bot, number, 51)
            tried(bot)
        assert asked == [1, 2] and read.count(1) == 1
        clock.advance(candidates.COMPARE_EVERY_S)
        tried(bot)
        tried(bot)
        assert asked == [1, 2, 7] and read.count(1) == 1


@pytest.mark.parametrize(("network", "most"), [(SMALL, 512), (REMEMBERING, 128)])
def test_recent_observations_are_few_and_copied(tmp_path: Path, network: Any, most: int) -> None:
    with auto(tmp_path, network=network) as bot:
        search = CandidateSearch(
            bot.folder, Promotion(bot.folder), refused=lambda version, words: None
        )
        long = np.zeros((5000, 2), np.float32)
        for _ in range(20):
            search.remember(replace(episode("long"), observations=long))
        short = replace(episode("a"), observations=long[:10], legal=np.ones((10, 3), np.bool_))
        search.remember(short)
    kept = list(search._recent)
    assert most <= sum(len(one.observations) for one in kept) <= most * 1.25
    for one in kept:
        assert one.observations.base is None and one.legal.base is None
        assert len(one.observations) == len(one.legal)


def test_recent_matches_are_needed_first(tmp_path: Path) -> None:
    with auto(tmp_path) as bot:
        learned(bot, 1, 50)
        play(bot, decisions=19)
        assert tried(bot) == []
        play(bot, decisions=1)
        assert tried(bot) == [1]


def test_an_unfit_version_is_refused_once_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with auto(tmp_path) as bot:
        play(bot)
        certain = sharpened(lively(bot.folder, 1), by=100)
        for number, matches in ((1, 100), (2, 104), (3, 105)):
            learned(bot, number, matches, weights=certain)
            assert tried(bot) == []
        learned(bot, 4, 200)
        assert tried(bot) == [4]
    refused = [one for one in journal(tmp_path) if isinstance(one, ev.RoleChanged)]
    assert [(one.version, one.kind) for one in refused] == [(1, "refused"), (3, "refused")]
    assert all(one.words.startswith("it is certain nearly everywhere") for one in refused)
    assert capsys.readouterr().err.count("version 1 is not tried: it is certain") == 1


def test_a_version_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with auto(tmp_path) as bot:
        learned(bot, 1, 50)
        bot._watcher.look()
        (bot.folder.versions.folder(1) / "manifest.json").write_bytes(b"?")
        play(bot)  # before a match no version is looked at, so its thread has not read it either
        assert tried(bot) == []
        learned(bot, 2, 50)
        assert tried(bot) == [2]
    (refused,) = (one for one in journal(tmp_path) if isinstance(one, ev.RoleChanged))
    assert refused.version == 1 and "it cannot be read: version 1" in refused.words


def test_a_version_that_cannot_be_read_is_told_once_where_versions_practise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with auto(tmp_path, practice_share=0.5) as bot:
        bot._watcher.stop()
        learned(bot, 1, LEARNED_MATCHES)
        bot._watcher.look()
        (bot.folder.versions.folder(1) / "manifest.json").write_bytes(b"?")
        for _ in range(3):
            bot.refresh()
            play(bot)
    (refused,) = (one for one in journal(tmp_path) if isinstance(one, ev.RoleChanged))
    assert refused.version == 1 and "it cannot be read: version 1" in refused.words
    assert capsys.readouterr().err.count("version 1 is not tried") == 1


def test_threads_that_ask_for_other_versions_do_not_change_an_answer(tmp_path: Path) -> None:
    with auto(tmp_path) as bot:
        bot._watcher.stop()
        learned(bot, 1, 10)
        learned(bot, 2, 20)

        class Interrupted(int):
            """A version; while it is compared, another thread asks for version 2."""

            def __eq__(self, other: object) -> bool:
                asks = threading.Thread(target=search(bot).learned, args=(2,))
                asks.start()
                asks.join()
                return int(self) == other

            __ne__ = object.__ne__
            __hash__ = int.__hash__

        assert search(bot).learned(1) == 10
        assert search(bot).learned(Interrupted(1)) == 10


@pytest.mark.parametrize("policy", ["latest", "paused", "manual"])
def test_only_policies_that_promote_try_versions(tmp_path: Path, policy: str) -> None:
    with auto(tmp_path, policy=policy) as bot:
        play(bot)
        learned(bot, 1, 50)
        assert tried(bot) == ([1] if policy == "manual" else [])


def test_nothing_is_tried_while_a_champion_is_pinned(tmp_path: Path) -> None:
    with auto(tmp_path) as bot:
        play(bot)
        learned(bot, 1, 50)
        bot.folder.pointers.pin("champion", 1, by="rollback")
        learned(bot, 2, 90)
        assert tried(bot) == []
        bot.folder.pointers.release("champion")
        assert tried(bot) == [2]


def test_the_last_one_tried_may_be_gone(tmp_path: Path) -> None:
    with auto(tmp_path) as bot:
        play(bot)
        learned(bot, 1, 50)
        assert tried(bot) == [1]
        stop(bot, 1)
        for path in (bot.folder.versions.folder(1)).iterdir():
            path.unlink()
        learned(bot, 2, 51)
        assert tried(bot) == [1], "what it did is not known any more"
        learned(bot, 3, 60)
        assert tried(bot) == [1, 3]


def test_the_watchers_thread_finds_the_version_to_try(tmp_path: Path) -> None:
    found = threading.Event()
    with auto(tmp_path) as bot:
        play(bot)
        assert bot.promotion is not None
        nominate = bot.promotion.nominate

        def noted(version: int, *, experience: int, reason: str, simulator: bool = False) -> bool:
            made = nominate(version, experience=experience, reason=reason, simulator=simulator)
            assert threading.current_thread().name == "understudy-follow"
            found.set()
            return made

        bot.promotion.nominate = noted  # type: ignore[method-assign]
        publish(bot.folder, 1, champion=False, counters={"ingested": 50})
        assert found.wait(20)
    state = folded(bot.folder)
    assert state.test is not None and state.test.version == 1


def test_practice_may_have_to_be_clearly_better_before_a_version_is_tried() -> None:
    config, better, rules = PromotionConfig(), RecentResults(), RecentResults()
    for turn in range(40):
        better = better.with_result(0.52 + 0.1 * (turn % 2))
        rules = rules.with_result(0.50 + 0.1 * (turn % 2))
    arm = PracticeArm(begun=True, recent=better, incumbent=rules)
    assert 1.0 < arm.lead < 3.0
    assert candidates.practice_objection(arm, config) == ""
    assert candidates.practice_objection(arm, config, least_lead=1.0) == ""
    words = candidates.practice_objection(arm, config, least_lead=3.0)
    assert words.startswith("practice is better by") and "3 are needed" in words
    off = PromotionConfig(practice_share=0.0)
    assert candidates.practice_objection(PracticeArm(), off, least_lead=3.0) == ""


# --- what practice and cameos say ----------------------------------------------------------------


def results(matches: int, mean: float) -> RecentResults:
    """Wins and losses, all of the same weight."""
    total = mean * matches
    return RecentResults(matches, float(matches), total, total, float(matches))


@pytest.mark.parametrize(
    ("arm", "expected"),
    [
        (PracticeArm(), "no version has practised yet"),
        (
            PracticeArm(begun=True, suspended=30, recent=results(50, 0.1)),
            "practice is suspended for 30 more matches",
        ),
        (
            PracticeArm(begun=True, recent=results(19, 0.9), incumbent=results(80, 0.5)),
            "practice has 19 matches, the rules 80: too few",
        ),
        (
            PracticeArm(begun=True, recent=results(50, 0.4), incumbent=results(80, 0.5)),
            "practice does not look better: 40% recently, the rules 50%",
        ),
        (
            PracticeArm(begun=True, recent=results(50, 0.5), incumbent=results(80, 0.5), against=3),
            "practice does not look better: 50% recently, version 3 50%",
        ),
        (PracticeArm(begun=True, recent=results(20, 0.6), incumbent=results(20, 0.5)), ""),
    ],
)
def test_a_version_is_tried_once_practice_looks_better(arm: PracticeArm, expected: str) -> None:
    assert practice_objection(arm, CONFIG) == expected
    assert practice_objection(arm, PromotionConfig(practice_share=0.0)) == "", "there is none"


def test_practice_beside_the_rules_is_no_reason_to_test_against_a_champion() -> None:
    arm = PracticeArm(begun=True, recent=results(20, 0.9), incumbent=results(20, 0.4))
    assert practice_objection(arm, CONFIG) == ""
    words = practice_objection(arm, CONFIG, incumbent=7)
    assert words == "practice is not yet compared with version 7"
    assert practice_objection(replace(arm, against=7), CONFIG, incumbent=7) == ""


def test_a_lead_of_practice_can_be_asked_for() -> None:
    arm = PracticeArm(begun=True, recent=results(20, 0.6), incumbent=results(20, 0.5))
    # sqrt(0.24 / 19) and sqrt(0.25 / 19) are the errors of both.
    assert arm.lead == pytest.approx(0.1 / np.sqrt(0.49 / 19))
    words = practice_objection(arm, CONFIG, least_lead=3.0)
    assert words == "practice is better by 0.6 standard errors, 3 are needed"
    assert practice_objection(arm, CONFIG, least_lead=0.6) == ""


def practise(bot: Understudy, *, result: float) -> None:
    """30 matches of practice with this result, and as many of the rules with one half."""
    assert bot.promotion is not None
    for number in range(30):
        for coin, of_arm in ((0.0, result), (0.999, 0.5)):
            match = f"{number}/{coin}/{result}"
            order, one = bot.promotion.assign(match, {}, coin, practice=1)
            assert one.arm == ("incumbent" if coin else "practice")
            bot.promotion.resolve(order, of_arm, "finished")


def bad_windows() -> list[CameoResult]:
    """Windows of the policy that ended clearly worse than those of the rules, in a game whose
    returns are about 100."""
    return [CameoResult(bool(one % 2), 0.5, 0.0, -80.0 if one % 2 else 40.0) for one in range(60)]


def search(bot: Understudy) -> CandidateSearch:
    assert bot._roster is not None
    return bot._roster._candidates


def test_cameos_refuse_where_no_version_practises(tmp_path: Path) -> None:
    with auto(tmp_path, practice_share=0.0) as bot:
        bot._watcher.stop()
        play(bot)
        search(bot)._cameos.extend(bad_windows())
        hundred = replace(lively(bot.folder, 1), value_scale=np.float32(100.0))
        learned(bot, 1, 50, weights=hundred)
        assert tried(bot) == []
        # (tanh(-0.4) - tanh(0.2)) / 2: on the scale of the version, though the windows are older.
        assert search(bot).waits.startswith("cameos: -0.289 of the scale in 30 windows against 30")
        search(bot)._cameos.clear()
        assert tried(bot) == [1], "it is looked at again"


def test_practice_overrules_cameos(tmp_path: Path) -> None:
    with auto(tmp_path, practice_share=0.2) as bot:
        bot._watcher.stop()  # it would look while matches are still assigned
        play(bot)
        search(bot)._cameos.extend(bad_windows())
        learned(bot, 1, 50)
        assert tried(bot) == [] and search(bot).waits == "no version has practised yet"
        practise(bot, result=0.47)
        assert tried(bot) == []
        assert search(bot).waits == "practice does not look better: 47% recently, the rules 50%"
        practise(bot, result=1.0)
        assert tried(bot) == [1] and search(bot).waits == ""
        nominated = [one for _, one in records(bot.folder) if isinstance(one, Nominated)]
    assert "; practice " in nominated[0].reason


def test_a_version_may_be_certain_where_practice_looks_better(tmp_path: Path) -> None:
    with auto(tmp_path, practice_share=0.2) as bot:
        bot._watcher.stop()
        play(bot)
        learned(bot, 1, 50, weights=sharpened(lively(bot.folder, 1), by=100))
        practise(bot, result=0.47)
        assert tried(bot) == [] and search(bot).waits.startswith("practice does not look better")
        practise(bot, result=1.0)
        assert tried(bot) == [1]


def test_why_nothing_is_tried_is_in_the_status_line(tmp_path: Path) -> None:
    with auto(tmp_path, practice_share=0.0, least_kl=1e9) as bot:
        play(bot)
        learned(bot, 1, 30)
        assert tried(bot) == []
        status = bot.promotion_status()
        assert status is not None and status.line.endswith("; a version is due within 20 matches")
        learned(bot, 2, 60, weights=sharpened(lively(bot.folder, 1), by=100))
        assert tried(bot) == []
        status = bot.promotion_status()
        assert status is not None and status.line.endswith("; version 2 was unfit")
        learned(bot, 3, 100)
        assert tried(bot) == [3]
