"""Promotion by evidence in a served game: who decides which stretch of a territory, and for how
long."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from policy.makers import TRANSFORMER
from promotion.runs import assigned, folded, resolved
from server.standing import until

from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY
from understudy.gates.decision import OpenGate, Verdict
from understudy.gates.promotion.records import Ordered
from understudy.policy import distributions
from understudy.policy.weights import normalise
from understudy.promotion.promotion import Promotion
from understudy.registry.versions import WEIGHTS
from understudy.run import segment_writer
from understudy.session.inbox import Incoming

from .played import ATTACK, GATHER, RETREAT, ServedGame

WITHOUT_PRACTICE = {"promotion.practice_share": 0.0}
ALL_CANARY = {**WITHOUT_PRACTICE, "promotion.first_share": 0.999, "promotion.share": 0.999}


def test_the_rules_play_until_a_better_version_has_taken_over(tmp_path: Path) -> None:
    served = ServedGame(tmp_path, settings=WITHOUT_PRACTICE)
    served.play(15.0)
    assert served.champion() == 0
    decisions = served.decide()
    assert {(one["action"], one["by"], one["version"]) for one in decisions} == {
        ("retreat", "rules", 0)
    }
    assert not any(one["degraded"] for one in decisions)
    served.publish(1, ATTACK)
    served.play(900.0, until=lambda: served.champion() == 1)
    assert served.champion() == 1
    assert any("version 1" in one for one in served.said)
    served.play(15.0)
    decisions = served.decide()
    assert {one["version"] for one in decisions} <= {0, 1}  # 0: the holdout
    assert 1 in {one["version"] for one in decisions}
    state = folded(served.folder)
    assert (state.incumbent, state.score) == (1, (0.0, 1.0))
    assert served.problems == []


def test_a_stopped_version_decides_nothing_more_in_the_middle_of_its_segment(
    tmp_path: Path,
) -> None:
    served = ServedGame(tmp_path, settings=ALL_CANARY)
    served.play(15.0)
    served.publish(1, ATTACK)
    served.play(60.0, until=lambda: served.segments.playing.get("canary", 0) == 4)
    assert served.segments.playing == {"canary": 4}
    served.play(1.0)
    Promotion(served.folder).order(Ordered(order="stop", version=1))
    served.play(0.3)
    assert {one["by"] for one in served.decide()} == {"rules"}
    ends = [one for one in resolved(served.folder) if one.words == "its player was stopped"]
    assert {one.ending for one in ends} == {"void"} and len(ends) == 4


def test_a_stopped_version_does_not_practise_either(tmp_path: Path) -> None:
    settings = {"promotion.practice_share": 0.9, "promotion.first_matches": 10**6}
    served = ServedGame(tmp_path, settings=settings)
    served.publish(1, RETREAT)
    served.play(60.0, until=lambda: served.segments.playing.get("practice", 0) > 1)
    served.writer.promotion.nominate(1, experience=50, reason="a person asks")
    Promotion(served.folder).order(Ordered(order="stop", version=1))
    served.play(0.3)
    before = served.segments.decided_by.copy()
    served.play(20.0)
    assert set(served.segments.decided_by - before) == {"rules"}


def test_a_pinned_champion_takes_over_in_the_middle_of_all_segments(tmp_path: Path) -> None:
    served = ServedGame(tmp_path, settings={**ALL_CANARY, "promotion.practice_share": 0.3})
    served.publish(1, RETREAT)
    served.play(60.0, until=lambda: len(served.segments.playing) > 1)
    assert set(served.segments.playing) == {"rules", "practice"}
    served.publish(2, GATHER)
    served.folder.pointers.pin("champion", 2, by="a person")
    served.play(0.3)
    assert {one["version"] for one in served.decide()} == {2}


def test_a_champion_that_cannot_be_loaded_counts_for_no_arm(tmp_path: Path) -> None:
    served = ServedGame(tmp_path, settings=WITHOUT_PRACTICE)
    served.publish(1, ATTACK)
    served.play(900.0, until=lambda: served.champion() == 1)
    served.publish(2, RETREAT)
    weights = served.folder.versions.folder(1) / WEIGHTS
    weights.write_bytes(b"damaged")
    served.writer.promotion.close()
    served.ledger.stop()
    again = ServedGame(tmp_path, clock=served.clock, settings=WITHOUT_PRACTICE)
    again.newest, again.tick = served.newest, served.tick
    before = len(assigned(again.folder))
    again.play(30.0)
    orders = {one.order: one for one in resolved(again.folder)}
    told = [one for one in orders.values() if "cannot be loaded" in one.words]
    assert told and {one.ending for one in told} == {"void"}
    assert len(assigned(again.folder)) - before < 30, "it waits before it tries again"


def test_a_territory_that_ends_and_returns_at_once_is_assigned_one_segment(tmp_path: Path) -> None:
    writer = ServedGame(tmp_path).writer
    writer.ask("t0")
    writer.cancel("t0")
    writer.ask("t0")
    writer.work()
    opened = writer.promotion.state.open
    taken = writer.take("t0")
    assert taken is not None and list(opened) == [taken.order]


def test_a_territory_may_ask_again_after_an_assignment_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = ServedGame(tmp_path).writer
    with monkeypatch.context() as failing:
        failing.setattr(Promotion, "assign", lambda *values, **options: 1 / 0)
        writer.ask("t0")
        with pytest.raises(ZeroDivisionError):
            writer.work()
    writer.ask("t0")
    writer.work()
    assert writer.take("t0") is not None


def test_the_coin_of_a_seed_goes_on_after_a_restart(tmp_path: Path) -> None:
    served = ServedGame(tmp_path, seed=3)
    served.play(0.3)
    served.writer.promotion.close()
    served.ledger.stop()
    again = ServedGame(tmp_path, clock=served.clock, seed=3)
    again.tick = served.tick
    again.play(0.3)
    uniforms = [one.uniform for one in assigned(again.folder)]
    actions = np.random.default_rng(3).random(8).tolist()
    assert len(uniforms) == 8 and len(set(uniforms) | set(actions)) == 16


def test_the_wash_out_counts_for_no_score(tmp_path: Path) -> None:
    """The first 26 of 128 decisions: a reward there changes nothing."""
    made = 0

    def reward(action: str, territory: int) -> float:
        nonlocal made
        made += 1
        return 0.0 if made <= 28 else 1.0  # two decisions before the assignment is durable

    served = ServedGame(
        tmp_path, territories=1, reward=reward, settings={"live.promotion_segment_s": 1e6}
    )
    served.play(12.9 + 1.0)
    (first, *_) = resolved(served.folder)
    assert (first.result, first.ending) == (1.0, "finished")


def test_the_mean_is_clipped_to_the_scale_and_no_single_reward(tmp_path: Path) -> None:
    """Rare large losses must not shrink to the lowest mean that was declared."""
    made = 0

    def reward(action: str, territory: int) -> float:
        nonlocal made
        made += 1
        return 0.25 if made % 5 else -1.0

    settings = {"live.score": (-0.1, 0.4), "live.promotion_segment_s": 1e6}
    served = ServedGame(tmp_path, territories=1, reward=reward, settings=settings)
    served.play(12.9 + 1.0)
    (first, *_) = resolved(served.folder)
    rewards = [0.25 if one % 5 else -1.0 for one in range(29, 131)]
    assert first.result == pytest.approx((np.mean(rewards) + 0.1) / 0.5, abs=1e-6)


def ended_after(served: ServedGame, decisions: int) -> None:
    """One territory ends in the middle of its first segment."""
    for _ in range(2 + decisions):  # the second asks for an assignment
        served.decide()
        served.writer.work()
    served.session.receive([Incoming("alice", b'{"type":"end","territory":"t0"}')])
    served.writer.work()


@pytest.mark.parametrize(("settled", "expected"), [(3, 0.75), (2, 0.5), (0, 0.0)])
def test_a_territory_that_ends_early_is_scored_by_what_it_had(
    tmp_path: Path, settled: int, expected: float
) -> None:
    """Else a version that loses its territories would leave its losses out. A decision without a
    reward counts as 0."""
    served = ServedGame(tmp_path, territories=1, reward=lambda action, territory: 1.0)
    served.rewarded = lambda tick: 2 < tick <= 2 + settled
    ended_after(served, 4)
    assert [(one.ending, one.result) for one in resolved(served.folder)] == [("finished", expected)]


def test_a_decision_that_gets_no_reward_counts_as_zero(tmp_path: Path) -> None:
    served = ServedGame(
        tmp_path, territories=1, reward=lambda action, territory: 1.0,
        settings={"live.promotion_segment_s": 1e6, "live.reward_window_s": 2.0},
    )  # fmt: skip
    served.rewarded = lambda tick: tick % 2 == 0
    served.play(12.9 + 4.0)
    (first, *_) = resolved(served.folder)
    assert (first.result, first.ending) == (0.5, "finished")


class PickyGate(OpenGate):
    """Fails on every second observation."""

    name = "picky"

    def evaluate(self, observation: NDArray, action: NDArray) -> Verdict:
        if observation[0] > 1.5:
            raise ValueError("no map here")
        return super().evaluate(observation, action)

    def evaluate_all(self, observations: NDArray, actions: NDArray) -> list[Verdict]:
        return [
            self.evaluate(observation, action)
            for observation, action in zip(observations, actions, strict=True)
        ]


def test_a_decision_on_which_a_gate_failed_counts_for_its_segment(tmp_path: Path) -> None:
    """The rules meet no gate: else a version would be scored without the moments that are hard."""
    served = ServedGame(
        tmp_path, gate=PickyGate(), settings={**ALL_CANARY, "promotion.first_matches": 1}
    )
    served.features = lambda tick: [2 if tick % 2 == 0 else 1, 2, 3]
    served.reward = lambda action, territory: 0.2 if served.tick % 2 == 0 else 0.8
    served.play(15.0)
    served.publish(1, RETREAT)
    served.play(60.0)
    by_order = {one.order: one for one in resolved(served.folder) if one.ending == "finished"}
    arms = {one.arm for one in assigned(served.folder)}
    assert arms == {"incumbent", "canary"}
    assert by_order and all(one.result == pytest.approx(0.5, abs=0.02) for one in by_order.values())


def test_answers_under_load_belong_to_the_open_segment(tmp_path: Path) -> None:
    served = ServedGame(
        tmp_path, territories=1, settings={"live.promotion_segment_s": 1e6}
    )  # fmt: skip
    served.reward = lambda action, territory: 0.0 if served.degraded else 1.0
    served.play(5.0)
    served.degraded = True
    served.play(5.1)
    served.degraded = False
    served.play(5.0)
    (first, *_) = resolved(served.folder)
    assert first.result == pytest.approx(0.5, abs=0.01)


def test_a_slow_territory_holds_up_no_verdict_on_the_others(tmp_path: Path) -> None:
    served = ServedGame(tmp_path, settings=WITHOUT_PRACTICE)
    for slow in range(10):
        served.say([{"type": "observation", "territory": "slow", "features": [1, 2, 3],
                     "tick": slow}])  # fmt: skip
        served.play(20.0)
    assert len(resolved(served.folder)) > 50
    assert len(served.state.open) <= 4, "those that are played now"


def test_a_game_that_is_slow_everywhere_is_assigned(tmp_path: Path) -> None:
    served = ServedGame(tmp_path, settings=WITHOUT_PRACTICE)
    for _ in range(40):
        served.decide()
        served.writer.work()
        served.clock.now += 5.0
        served.session.tick()
    assert {one.ending for one in resolved(served.folder)} == {"finished"}


def test_one_version_in_two_roles_is_counted_for_each(tmp_path: Path) -> None:
    settings = {"promotion.practice_share": 0.5, "promotion.first_matches": 10**6}
    served = ServedGame(tmp_path, settings={**ALL_CANARY, **settings})
    served.publish(1, RETREAT)
    served.play(60.0, until=lambda: served.segments.playing.get("practice", 0) > 0)
    served.writer.promotion.nominate(1, experience=50, reason="a person asks")
    served.play(60.0, until=lambda: set(served.segments.playing) == {"practice", "canary"})
    before = served.segments.decided_by.copy()
    served.decide()
    assert served.segments.decided_by - before == Counter(served.segments.playing)


def test_the_status_says_why_no_version_is_tried(tmp_path: Path) -> None:
    served = ServedGame(tmp_path)
    served.publish(1, ATTACK)
    served.play(30.0)
    assert served.writer.status.agreement == 0.0, "the rules retreat"
    assert served.writer.status.waits == "no version has practised yet"


def test_segments_of_a_server_that_died_count_for_no_arm(tmp_path: Path) -> None:
    served = ServedGame(tmp_path)
    served.play(1.0)
    opened = len(assigned(served.folder))
    assert opened == 4
    served.writer.promotion.close()  # as its process would by dying
    served.ledger.stop()
    again = ServedGame(tmp_path, clock=served.clock)
    again.writer.work()
    assert [one.ending for one in resolved(again.folder)] == ["void"] * opened


def test_a_version_that_fails_loses_its_segment_and_the_rules_play_on(tmp_path: Path) -> None:
    served = ServedGame(tmp_path, settings=ALL_CANARY)
    served.play(15.0)
    served.publish(1, ATTACK)
    served.play(60.0, until=lambda: served.segments.playing.get("canary", 0) == 4)
    assert served.newest.version == 1

    def broken(*arguments: object, **options: object) -> None:
        raise FloatingPointError("broken weights")

    served.newest.act = broken  # type: ignore[method-assign, assignment]
    decisions = served.decide()
    assert {one["action"] for one in decisions} == {"retreat"}
    served.writer.work()
    faults = [one for one in resolved(served.folder) if one.ending == "fault"]
    assert len(faults) == 4 and "broken weights" in faults[0].words


def test_the_newest_version_practises_once_it_decides_as_the_rules_do(tmp_path: Path) -> None:
    served = ServedGame(
        tmp_path, settings={"promotion.practice_share": 0.5, "promotion.first_matches": 10**6}
    )
    served.publish(1, ATTACK)
    served.play(60.0)
    assert not served.state.practice.begun, "the rules retreat"
    served.publish(2, RETREAT)
    served.play(60.0, until=lambda: served.segments.playing.get("practice", 0) > 0)
    served.publish(3, ATTACK)
    served.play(50.0)
    practised = [one for one in assigned(served.folder) if one.arm == "practice"]
    assert {one.version for one in practised} == {2, 3}
    assert all(one.practice == 0.5 and not one.test for one in practised)
    assert served.segments.decided_by["practice"] > 100
    practice = served.state.practice
    assert practice.recent.mean > practice.incumbent.mean == 0.0
    assert served.champion() == 0, "practice is no evidence"


def test_practice_that_is_worse_is_suspended(tmp_path: Path) -> None:
    served = ServedGame(
        tmp_path,
        reward=lambda action, territory: float(action == RETREAT),
        settings={"promotion.practice_share": 0.5, "promotion.first_matches": 10**6},
    )
    served.publish(1, RETREAT)
    served.play(60.0, until=lambda: served.state.practice.begun)
    served.publish(2, GATHER)
    served.play(300.0, until=lambda: bool(served.state.practice.suspended))
    assert any("worse than the rules" in one for one in served.said)
    served.play(0.2)
    assert {one["by"] for one in served.decide()} == {"rules"}, "in the middle of segments"


def test_practice_begins_without_agreement_after_enough_decisions_of_the_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_writer, "UNAGREED_DECISIONS", 1_000)
    served = ServedGame(tmp_path)
    served.publish(1, ATTACK)
    served.play(20.0)
    assert not served.state.practice.begun
    served.play(60.0)
    assert served.state.practice.begun


def test_a_version_that_failed_practises_no_more(tmp_path: Path) -> None:
    served = ServedGame(tmp_path, settings={"promotion.practice_share": 0.9})
    served.publish(1, RETREAT)
    served.play(60.0, until=lambda: served.segments.playing.get("practice", 0) >= 2)

    def broken(*arguments: object, **options: object) -> None:
        raise FloatingPointError("broken weights")

    served.newest.act = broken  # type: ignore[method-assign, assignment]
    served.play(0.5)
    assert served.segments.counts.fault >= 2
    before = len(assigned(served.folder))
    served.play(30.0)
    after = assigned(served.folder)[before:]
    assert after and {one.arm for one in after} == {"incumbent"}
    served.publish(2, RETREAT)
    served.play(30.0)
    assert "practice" in {one.arm for one in assigned(served.folder)}


def test_a_stopped_version_decides_at_most_until_the_thread_looks_again(tmp_path: Path) -> None:
    """With the writer's own thread, which looks ten times a second."""
    served = ServedGame(tmp_path, settings=ALL_CANARY)
    served.play(15.0)
    served.publish(1, ATTACK)
    served.play(60.0, until=lambda: served.segments.playing.get("canary", 0) == 4)
    writer = served.writer
    writer.background = True
    writer.start()
    Promotion(served.folder).order(Ordered(order="stop", version=1))
    after = 0
    for _ in range(10):
        after += sum(one["by"] == "policy" for one in served.decide())
        served.clock.now += 0.1
        until(lambda: writer.looked >= served.clock.now)
    assert after <= 2 * 4, "two tenths of a second, in four territories"
    assert {one["by"] for one in served.decide()} == {"rules"}
    writer.close()


def test_a_network_with_memory_begins_each_segment_of_play_without_it(tmp_path: Path) -> None:
    """So training on a segment from empty memory repeats what played."""
    settings = {"promotion.practice_share": 0.5, "promotion.first_matches": 10**6}
    served = ServedGame(tmp_path, network=TRANSFORMER, settings=settings)
    served.publish(1, RETREAT)
    served.play(60.0, until=lambda: served.segments.playing.get("practice", 0) > 1)
    served.publish(2, ATTACK)
    served.play(60.0)
    assert served.problems == []
    played = [one for one in served.episodes if one.sampled.any()]
    assert len(played) >= 4 and {int(one.versions[0]) for one in played} == {1, 2}
    for episode in played:
        (version,) = set(episode.versions.tolist())
        policy = served.folder.versions.policy(version)
        seen = normalise(NUMPY, policy.weights, episode.observations)[:, None]
        first = np.zeros((len(seen), 1), np.bool_)
        first[0] = True
        logits, _, _ = policy.spec.network.unroll(
            NUMPY, policy.weights.params, seen, first, policy.begin()
        )
        log_probs = distributions.log_prob(
            NUMPY, policy.spec.actions, logits[:, 0], episode.actions, None
        )
        np.testing.assert_allclose(log_probs, episode.log_probs, atol=1e-5)
