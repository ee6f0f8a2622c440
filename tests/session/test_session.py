"""A session without sockets: every message, every order, every fault, and who is affected by it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from policy.makers import STRATEGIST, TRANSFORMER

from understudy.core.arrays import NDArray
from understudy.core.errors import InputError
from understudy.experience.episode import Outcome
from understudy.experience.ledger import Closing, Opened
from understudy.gates.decision import DecisionGate, Verdict
from understudy.gates.worker import GateWorker
from understudy.policy.spec import AnyNetwork
from understudy.session.deciding import FAILED
from understudy.session.inbox import Incoming

from .sessions import ACTIONS, BY_GOLD, FakeClock, Table, Wait, game, observation, recomputed


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Observations tell the reward: the change of gold."""
    return Table(tmp_path, explore_share=0.0)


@pytest.fixture
def told(tmp_path: Path) -> Table:
    """Clients tell the reward."""
    return Table(tmp_path, translator=game(), explore_share=0.0)


class SetClock(FakeClock):
    """A wall clock that somebody may set."""

    off_by = 0.0

    def time(self) -> float:
        return self.now + self.off_by


def balanced(table: Table) -> bool:
    counts = table.ledger.counts
    return counts.opened == sum(counts) - counts.opened


# --- one message, one answer ---------------------------------------------------------------------


def test_an_observation_is_answered_with_a_decision_that_the_ledger_has(table: Table) -> None:
    answer = table.ask(tick=7, id="q1")
    assert answer["type"] == "decision"
    assert (answer["territory"], answer["tick"], answer["id"]) == ("north", 7, "q1")
    assert answer["action"] in ACTIONS
    assert 0.0 < answer["confidence"] <= 1.0
    assert (answer["verdict"], answer["version"], answer["duplicate"]) == ("SEND", 0, False)
    opened = table.ledger.opened(answer["decision_id"])
    assert opened is not None
    assert (opened.client, opened.tick, opened.sampled, opened.sent) == ("alice", 7, True, True)
    assert np.exp(opened.log_prob) == pytest.approx(answer["confidence"])


def test_ping_hello_and_answers_in_the_order_of_the_inbox(table: Table) -> None:
    answers = table.say(
        {"type": "ping", "id": 1},
        observation("a"),
        b"nonsense",
        {"type": "hello", "protocol": 1, "id": 2},
        observation("b"),
        {"type": "end", "territory": "a"},
    )
    kinds = [one["type"] for one in answers]
    assert kinds == ["pong", "decision", "error", "welcome", "decision", "ended"]
    assert answers[3]["features"] == ["health", "enemies", "gold"]
    assert answers[3]["actions"]["names"] == ACTIONS
    assert (answers[0]["id"], answers[3]["client"]) == (1, "alice")


def test_a_hello_in_anothers_name_is_refused(table: Table) -> None:
    (answer,) = table.say({"type": "hello", "protocol": 1, "client": "bob"})
    assert (answer["code"], answer["field"]) == ("not_yours", "client")


def test_the_welcome_of_the_server(table: Table) -> None:
    welcome = json.loads(table.session.welcome("alice", resume="key", request=4))
    assert (welcome["resume"], welcome["protocol"], welcome["id"]) == ("key", 1, 4)


def test_legal_is_obeyed_and_recorded(table: Table) -> None:
    for tick in range(20):
        answer = table.ask(tick=tick, legal=[False, False, True])
        assert answer["action"] == "gather"
        assert answer["confidence"] == pytest.approx(1.0)
    opened = table.ledger.opened(answer["decision_id"])
    assert opened is not None
    assert opened.legal == np.packbits([False, False, True]).tobytes()


def test_several_parts_are_answered_by_name(tmp_path: Path) -> None:
    parts = {"move": ["left", "right"], "weapon": ["none", "bow", "axe"]}
    translator = game(actions=parts, fallback={"move": "left", "weapon": "none"})
    answer = Table(tmp_path, translator=translator).ask()
    assert answer["action"]["move"] in parts["move"]
    assert answer["action"]["weapon"] in parts["weapon"]


# --- rewards that the next observation tells -----------------------------------------------------


def test_the_next_observation_settles_the_decision_before_it(table: Table) -> None:
    first = table.ask(tick=0, gold=1.0)["decision_id"]
    second = table.ask(tick=1, gold=1.25)["decision_id"]
    table.say({"type": "end", "territory": "north", "reward": 0.5})
    assert table.states(first, second) == ["settled", "settled"]
    (episode,) = table.episodes
    assert episode.rewards.tolist() == pytest.approx([0.25, 0.5])
    assert episode.meta.outcome == Outcome.TIE
    assert episode.bootstrap is None
    assert table.session.status().mean_reward == pytest.approx(0.375)


def test_rewards_are_clipped(table: Table) -> None:
    for tick, gold in enumerate((0.0, 1e6, 0.0)):
        table.ask(tick=tick, gold=gold)
    table.say({"type": "end", "territory": "north"})
    assert table.episodes[0].rewards.tolist() == [1.0, -1.0]


def test_a_skipped_tick_never_misdates_a_reward(table: Table) -> None:
    first = table.ask(tick=0, gold=0.0)["decision_id"]
    second = table.ask(tick=2, gold=0.9)["decision_id"]
    third = table.ask(tick=3, gold=1.0)["decision_id"]
    assert table.states(first, second, third) == ["superseded", "settled", "open"]
    table.say({"type": "end", "territory": "north"})
    assert [one.rewards.tolist() for one in table.episodes] == [pytest.approx([0.1])]


def test_a_gap_within_max_gap_is_no_gap(tmp_path: Path) -> None:
    table = Table(tmp_path, max_gap=2)
    first = table.ask(tick=0)["decision_id"]
    second = table.ask(tick=2)["decision_id"]
    table.ask(tick=5)
    assert table.states(first, second) == ["settled", "superseded"]


def test_what_the_client_says_meanwhile_is_added(table: Table) -> None:
    key = table.ask(tick=0, gold=0.0)["decision_id"]
    (answer,) = table.say({"type": "reward", "decision_id": key, "reward": 0.5, "id": 9})
    assert answer == {"type": "rewarded", "decision_id": key, "status": "added", "id": 9}
    table.ask(tick=1, gold=0.25)
    table.say({"type": "end", "territory": "north"})
    assert table.episodes[0].rewards.tolist() == [0.75]


def test_a_reward_after_the_observation_that_settled_it_is_a_duplicate(table: Table) -> None:
    key = table.ask(tick=0)["decision_id"]
    answers = table.say(
        observation(tick=1, gold=0.5), {"type": "reward", "decision_id": key, "reward": 9.0}
    )
    assert answers[1]["status"] == "duplicate"
    table.say({"type": "end", "territory": "north"})
    assert table.episodes[0].rewards.tolist() == [0.5]


def test_numbers_at_the_edge_of_32_bits_are_answered_and_settle_nothing_odd(table: Table) -> None:
    first = table.ask(tick=0, gold=3e38)["decision_id"]
    second = table.ask(tick=1, gold=-3e38)["decision_id"]
    table.ask(tick=2, gold=0.0)
    assert table.states(first, second) == ["settled", "settled"]


# --- rewards that the client tells ---------------------------------------------------------------


def test_a_reward_settles_its_own_decision_whatever_was_seen_meanwhile(told: Table) -> None:
    first = told.ask(tick=0)["decision_id"]
    second = told.ask(tick=9)["decision_id"]
    answers = told.say(
        {"type": "reward", "decision_id": first, "reward": 0.5},
        {"type": "reward", "decision_id": first, "reward": 0.7},
        {"type": "reward", "decision_id": 4_000_000, "reward": 0.7},
    )
    assert [one["status"] for one in answers] == ["settled", "duplicate", "unknown"]
    assert told.states(first, second) == ["settled", "open"]
    (again,) = told.say({"type": "reward", "decision_id": first, "reward": 0.1})
    assert again["status"] == "duplicate"


def test_nothing_is_learned_across_a_gap_though_both_sides_are_settled(told: Table) -> None:
    keys = [told.ask(tick=tick, gold=float(tick))["decision_id"] for tick in (0, 1, 9, 10)]
    for key in keys:
        told.say({"type": "reward", "decision_id": key, "reward": 0.5})
    told.say({"type": "end", "territory": "north"})
    assert [len(one) for one in told.episodes] == [2, 2]
    assert told.episodes[0].bootstrap is not None
    assert told.episodes[0].bootstrap[2] == 9.0


def test_a_late_reward_within_the_window_still_counts(told: Table) -> None:
    key = told.ask(tick=0)["decision_id"]
    for tick in range(1, 6):
        told.later(10.0)
        told.ask(tick=tick)
    (answer,) = told.say({"type": "reward", "decision_id": key, "reward": 0.5})
    assert answer["status"] == "settled"


def test_a_reward_after_the_window_comes_too_late(told: Table) -> None:
    told.session.joined("alice")
    first = told.ask(tick=0)["decision_id"]
    told.clock.now += 61.0  # nobody has looked yet
    (answer,) = told.say({"type": "reward", "decision_id": first, "reward": 0.5})
    assert answer["status"] == "expired"
    second = told.ask(tick=1)["decision_id"]
    told.later(61.0)
    (answer,) = told.say({"type": "reward", "decision_id": second, "reward": 0.5})
    assert answer["status"] == "expired"
    assert told.states(first, second) == ["expired", "expired"]


@pytest.mark.parametrize("reward", [1e39, -1e39])
def test_a_reward_has_to_fit_into_32_bits(told: Table, reward: float) -> None:
    key = told.ask()["decision_id"]
    answers = told.say(
        {"type": "reward", "decision_id": key, "reward": reward},
        {"type": "end", "territory": "north", "reward": reward},
    )
    assert [(one["code"], one["field"]) for one in answers] == [("bad_number", "reward")] * 2
    assert told.states(key) == ["open"]


# --- order, duplicates, owners -------------------------------------------------------------------


def test_the_same_tick_again_is_the_same_decision(table: Table) -> None:
    first = table.ask(tick=3, id=1)
    again = table.ask(tick=3, id=2, gold=99.0)
    assert again == {**first, "duplicate": True, "id": 2}
    assert table.ledger.counts.opened == 1
    assert table.session.status().duplicates == 1


def test_an_earlier_tick_is_out_of_order_and_changes_nothing(table: Table) -> None:
    key = table.ask(tick=3)["decision_id"]
    answer = table.ask(tick=2)
    assert (answer["code"], answer["field"]) == ("out_of_order", "tick")
    assert table.states(key) == ["open"]
    assert table.ask(tick=4)["type"] == "decision"
    assert table.states(key) == ["settled"]


def test_without_ticks_every_observation_is_the_next(table: Table) -> None:
    ticks = [table.ask()["tick"] for _ in range(3)]
    assert ticks == [0, 1, 2]
    assert table.ledger.counts.settled == 2


def test_two_observations_of_one_territory_in_one_inbox_keep_their_order(table: Table) -> None:
    answers = table.say(
        observation("a", tick=0),
        observation("b", tick=0),
        observation("a", tick=1, gold=0.5),
        observation("a", tick=1),
        observation("a", tick=0),
        observation("b", tick=1),
    )
    assert [one.get("tick") for one in answers] == [0, 0, 1, 1, None, 1]
    assert [one.get("duplicate") for one in answers] == [False, False, False, True, None, False]
    assert answers[4]["code"] == "out_of_order"
    assert table.states(answers[0]["decision_id"]) == ["settled"]
    ids = [answers[place]["decision_id"] for place in (0, 1, 2, 5)]
    assert ids == sorted(ids)


def test_a_territory_belongs_to_the_client_that_named_it(table: Table) -> None:
    key = table.ask("north", client="alice")["decision_id"]
    answers = table.say(
        observation("north", tick=1),
        {"type": "reward", "decision_id": key, "reward": 1.0},
        {"type": "end", "territory": "north"},
        observation("south"),
        client="bob",
    )
    assert [one.get("code") for one in answers] == ["not_yours"] * 3 + [None]
    assert [one.get("field") for one in answers[:3]] == ["territory", "decision_id", "territory"]
    assert table.states(key) == ["open"]
    assert table.ask("north", tick=1)["type"] == "decision"


def test_a_stranger_is_told_that_a_decision_is_not_theirs_however_it_ended(tmp_path: Path) -> None:
    table = Table(tmp_path, translator=game())
    settled, orphaned = (table.ask(name)["decision_id"] for name in ("north", "south"))
    rewards = [{"type": "reward", "decision_id": key, "reward": 1} for key in (settled, orphaned)]
    table.say(rewards[0], {"type": "end", "territory": "south"})
    answers = table.say(*rewards, client="mallory")
    assert [one.get("code") for one in answers] == ["not_yours"] * 2
    assert [one["status"] for one in table.say(*rewards)] == ["duplicate", "orphaned"]
    table.ledger.stop()
    after = Table(tmp_path, translator=game())
    assert [one.get("code") for one in after.say(*rewards, client="mallory")] == ["not_yours"] * 2
    assert [one["status"] for one in after.say(*rewards)] == ["duplicate", "orphaned"]


def test_a_bad_message_touches_nobody_else(tmp_path: Path) -> None:
    table, alone = Table(tmp_path / "one"), Table(tmp_path / "other")
    noise = [b"{", b"\xff", observation("north", features=[1e39, 0, 0]), {"type": "nothing"}]
    messages = [("alice", observation("north", tick=0)), ("alice", observation("east", tick=0))]
    mixed = table.inbox([messages[0], *(("mallory", one) for one in noise), messages[1]])
    assert [mixed[0], mixed[-1]] == alone.inbox(messages)
    assert [one["type"] for one in mixed[1:-1]] == ["error"] * 4


# --- ends ----------------------------------------------------------------------------------------


def test_an_end_without_a_reward_orphans_what_is_open(table: Table) -> None:
    key = table.ask(tick=0)["decision_id"]
    (answer,) = table.say({"type": "end", "territory": "north", "id": 5})
    assert answer == {
        "type": "ended", "territory": "north", "decisions": 1, "last": "orphaned", "id": 5,
    }  # fmt: skip
    assert table.states(key) == ["orphaned"]
    (gone,) = table.say({"type": "end", "territory": "north"})
    assert gone["code"] == "unknown_territory"
    assert table.ask(tick=0)["type"] == "decision"  # the name is free for another match


def test_an_end_settles_the_last_decision_alone(told: Table) -> None:
    keys = [told.ask(tick=tick)["decision_id"] for tick in range(3)]
    (answer,) = told.say({"type": "end", "territory": "north", "reward": 1.0, "outcome": "victory"})
    assert answer["last"] == "settled"
    assert told.states(*keys) == ["orphaned", "orphaned", "settled"]
    assert told.episodes[-1].meta.outcome == Outcome.VICTORY


def test_an_end_after_everything_was_settled(told: Table) -> None:
    key = told.ask()["decision_id"]
    answers = told.say(
        {"type": "reward", "decision_id": key, "reward": 0.5},
        {"type": "end", "territory": "north", "reward": 1.0},
    )
    assert answers[1]["last"] == "closed"
    assert told.episodes[0].rewards.tolist() == [0.5]
    # It ended: a learner that took it for broken off would give up its last decision.
    assert told.episodes[0].meta.outcome == Outcome.TIE


# --- silence, leaving and coming back ------------------------------------------------------------


def test_a_decision_without_reward_expires(table: Table) -> None:
    table.session.joined("alice")
    key = table.ask(tick=0)["decision_id"]
    table.later(60.0)
    assert table.states(key) == ["open"]
    table.later(0.5)
    assert table.states(key) == ["expired"]
    assert table.session.status().territories == 0
    assert balanced(table)


def test_an_observation_after_the_window_does_not_settle(table: Table) -> None:
    key = table.ask(tick=0)["decision_id"]
    table.clock.now += 61.0  # nobody has looked yet
    table.ask(tick=1, gold=1.0)
    assert table.states(key) == ["expired"]


def test_a_client_that_comes_back_in_time_goes_on(table: Table) -> None:
    table.session.joined("alice")
    key = table.ask(tick=0, gold=0.0)["decision_id"]
    table.session.left("alice")
    table.later(30.0)
    table.session.joined("alice")
    assert table.ask(tick=0)["duplicate"]
    table.ask(tick=1, gold=0.5)
    assert table.states(key) == ["settled"]


def test_what_a_vanished_client_left_open_is_orphaned(table: Table) -> None:
    table.session.joined("alice")
    key = table.ask(tick=0)["decision_id"]
    table.later(30.0)
    table.session.left("alice")
    table.later(29.0)
    assert table.states(key) == ["open"]
    assert table.session.status().territories == 1  # it may still come back under its tick
    table.later(2.0)
    assert table.states(key) == ["orphaned"]
    assert table.session.status().territories == 0
    assert balanced(table)


def test_a_client_with_two_connections_is_there_until_both_are_gone(table: Table) -> None:
    table.session.joined("alice")
    table.session.joined("alice")
    table.session.left("alice")
    assert table.session.status().clients == 1
    key = table.ask(tick=0)["decision_id"]
    table.later(61.0)
    assert table.states(key) == ["expired"]


def test_whoever_comes_and_goes_keeps_no_territory_that_it_abandoned(table: Table) -> None:
    """As over plain HTTP, where every request is a connection of its own."""
    table.ask("abandoned", tick=0)
    for tick in range(7):
        table.session.joined("alice")
        table.ask("north", tick=tick)
        table.session.left("alice")
        table.later(10.0)
    assert table.session.status().territories == 1
    assert table.ask("north", tick=6)["duplicate"]


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
def test_a_wall_clock_that_is_set_neither_keeps_nor_forgets_a_territory(
    tmp_path: Path, jump: float
) -> None:
    clock = SetClock()
    table = Table(tmp_path, clock=clock)
    table.ask()
    clock.off_by = jump
    table.later(30.0)
    assert table.session.status().territories == 1
    table.later(31.0)
    assert table.session.status().territories == 0


def test_settled_decisions_of_a_vanished_client_leave_all_the_same(told: Table) -> None:
    key = told.ask()["decision_id"]
    told.say({"type": "reward", "decision_id": key, "reward": 0.5})
    assert not told.episodes
    told.later(61.0)
    assert told.episodes[0].rewards.tolist() == [0.5]


@pytest.mark.parametrize("rewards", [BY_GOLD, None])
def test_after_a_restart_everything_goes_on(tmp_path: Path, rewards: Any) -> None:
    before = Table(tmp_path, translator=game(rewards=rewards), explore_share=0.0)
    first = before.ask(tick=4, gold=0.5)
    # No stop(): the process is killed here.
    after = Table(tmp_path, translator=game(rewards=rewards), clock=before.clock, seed=1)
    assert after.ask("north", client="bob", tick=5)["code"] == "not_yours"
    assert after.ask(tick=3)["code"] == "out_of_order"
    assert after.ask(tick=4) == {**first, "duplicate": True}
    (answer,) = after.say({"type": "reward", "decision_id": first["decision_id"], "reward": 0.25})
    assert answer["status"] == ("added" if rewards else "settled")
    second = after.ask(tick=5, gold=0.6)
    assert second["decision_id"] > first["decision_id"]
    assert after.states(first["decision_id"]) == ["settled"]
    after.say({"type": "end", "territory": "north"})
    assert after.episodes[0].rewards.tolist() == pytest.approx([0.35 if rewards else 0.25])
    assert balanced(after)


def test_what_was_added_is_still_there_after_a_restart(tmp_path: Path) -> None:
    before = Table(tmp_path)
    key = before.ask(tick=0)["decision_id"]
    for reward in (0.25, 0.125):
        before.say({"type": "reward", "decision_id": key, "reward": reward})
    # No stop(): the process is killed here.
    after = Table(tmp_path, clock=before.clock)
    after.say({"type": "reward", "decision_id": key, "reward": 0.125})
    after.ask(tick=1, gold=0.25)
    after.say({"type": "end", "territory": "north"})
    assert after.episodes[0].rewards.tolist() == [0.75]


@pytest.mark.parametrize("rewarded", [[0, 1], [1]], ids=["all settled", "the newest settled"])
def test_after_a_restart_the_newest_decision_counts_though_it_is_settled(
    tmp_path: Path, rewarded: list[int]
) -> None:
    before = Table(tmp_path, translator=game())
    answers = [before.ask(tick=tick) for tick in range(2)]
    for index in rewarded:
        key = answers[index]["decision_id"]
        before.say({"type": "reward", "decision_id": key, "reward": 0.5})
    after = Table(tmp_path, translator=game(), clock=before.clock)
    assert after.ask(tick=1) == {**answers[1], "duplicate": True}
    assert after.ask(tick=0)["code"] == "out_of_order"
    assert after.ask()["tick"] == 2
    assert after.ledger.counts.opened == 3


def test_whoever_never_comes_back_after_a_restart_leaves_nothing_open(tmp_path: Path) -> None:
    before = Table(tmp_path)
    keys = [before.ask(f"t{number}")["decision_id"] for number in range(5)]
    after = Table(tmp_path, clock=before.clock)
    after.later(61.0)
    assert after.states(*keys) == ["orphaned"] * 5
    assert balanced(after)


def test_what_was_settled_before_a_restart_leaves_though_nobody_comes_back(tmp_path: Path) -> None:
    before = Table(tmp_path, translator=game(rewards=None))
    key = before.ask()["decision_id"]
    before.say({"type": "reward", "decision_id": key, "reward": 0.5})
    after = Table(tmp_path, translator=game(rewards=None), clock=before.clock)
    assert not after.episodes
    after.later(61.0)
    assert after.episodes[0].rewards.tolist() == [0.5]
    assert after.session.status().territories == 0


# --- gates ---------------------------------------------------------------------------------------


def test_a_blocked_action_is_told_and_recorded_as_not_sent(tmp_path: Path) -> None:
    table = Table(tmp_path, gate=Wait(), explore_share=0.0)
    answer = table.ask()
    assert (answer["verdict"], answer["reasons"]) == ("WAIT", ["too dangerous"])
    assert answer["action"] in ACTIONS
    assert answer["expected_reward"] == -0.25
    opened = table.ledger.opened(answer["decision_id"])
    assert opened is not None
    assert (opened.sent, opened.explored, opened.expected) == (False, False, -0.25)


def test_a_known_share_of_what_is_blocked_is_sent_anyway(tmp_path: Path) -> None:
    table = Table(tmp_path, gate=Wait(), explore_share=0.25, messages_per_s=1e6)
    answers = table.say(*(observation(f"t{number}") for number in range(800)))
    explored = [one for one in answers if one["explored"]]
    assert 150 < len(explored) < 250
    assert {one["verdict"] for one in explored} == {"SEND"}
    assert {one["verdict"] for one in answers if not one["explored"]} == {"WAIT"}
    status = table.session.status()
    assert (status.explored, status.waited) == (len(explored), 800 - len(explored))
    opened = table.ledger.opened(explored[0]["decision_id"])
    assert opened is not None
    assert opened.sent
    assert opened.explored


class Wary:
    """A gate of one's own that fails on some observations: on those with health below zero."""

    name = "wary"

    def evaluate(self, observation: NDArray, action: NDArray) -> Verdict:
        if observation[0] < 0:
            raise ZeroDivisionError("health")
        return Verdict(True, 0.0)


BAD = [-1.0, 40.0, 0.0]


@pytest.mark.parametrize("worker", [False, True])
def test_a_gate_that_fails_on_one_observation_costs_its_neighbours_nothing(
    tmp_path: Path, worker: bool
) -> None:
    problems: list[str] = []
    gate: DecisionGate = Wary()
    if worker:
        gate = GateWorker(gate, deadline_ms=30_000.0, clock=FakeClock())
    table = Table(
        tmp_path,
        gate=gate,
        explore_share=0.0,
        problem=lambda words, error: problems.append(f"{words}: {error}"),
    )
    first = [one["decision_id"] for one in table.say(*(observation(name) for name in "abc"))]
    answers = table.say(
        {"type": "reward", "decision_id": first[0], "reward": 0.25},
        {"type": "reward", "decision_id": first[1], "reward": 0.25},
        observation("a", gold=0.5),
        observation("b", features=BAD, id=7),
        {"type": "end", "territory": "c", "reward": 0.125},
    )
    assert [one["type"] for one in answers] == [
        "rewarded", "rewarded", "decision", "decision", "ended",
    ]  # fmt: skip
    assert (answers[2]["tick"], answers[2]["degraded"], answers[4]["last"]) == (1, False, "settled")
    assert (answers[3]["action"], answers[3]["verdict"], answers[3]["id"]) == ("retreat", "SEND", 7)
    assert (answers[3]["degraded"], answers[3]["reasons"]) == (True, [FAILED.words])
    words = (
        "the gate failed: ZeroDivisionError" if worker else "an observation could not be decided"
    )
    assert problems == [f"{words}: health"]
    status = table.session.status()
    assert (status.degraded, status.safe_actions, status.errors) == (1, {"error": 1}, {})
    assert table.states(*first) == ["settled"] * 3
    opened = table.ledger.opened(answers[3]["decision_id"])
    assert opened is not None and not opened.sampled
    for name in "ab":
        table.say({"type": "end", "territory": name, "reward": 0.5})
    rewards = {one.meta.tags["territory"]: one.rewards.tolist() for one in table.episodes}
    assert rewards == {"a": [0.75, 0.5], "b": [0.25, 0.5], "c": [0.125]}
    assert balanced(table)


def test_numbers_that_the_ledger_refuses_cost_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found only when it is written: what the batch closed before that stays closed, once."""
    table = Table(tmp_path, explore_share=0.0, problem=lambda words, error: None)
    first = [one["decision_id"] for one in table.say(observation("a"), observation("b"))]
    write = table.ledger.open

    def picky(entries: list[Opened]) -> None:
        if any(np.frombuffer(one.observation, "<f4")[0] < 0 for one in entries):
            raise InputError("value: holds a number that is not finite")
        write(entries)

    monkeypatch.setattr(table.ledger, "open", picky)
    answers = table.say(observation("a", gold=0.5), observation("b", features=BAD))
    assert [one["degraded"] for one in answers] == [False, True]
    assert (answers[1]["action"], answers[1]["decision_id"]) == ("retreat", None)
    assert table.states(*first) == ["settled", "settled"]
    assert table.session.status().settled == 2
    assert balanced(table)


class Odd:
    """A gate of one's own that has not been thought through."""

    name = "odd"

    def evaluate(self, observation: NDArray, action: NDArray) -> Verdict:
        return Verdict(True, float("nan"))


def test_a_gate_that_expects_no_number_does_not_spoil_the_record(tmp_path: Path) -> None:
    answer = Table(tmp_path, gate=Odd()).ask()
    assert answer["expected_reward"] == 0.0


# --- when there is no time, or no room -----------------------------------------------------------


def test_degraded_answers_are_safe_and_never_sampled(table: Table) -> None:
    (answer,) = table.say(observation(tick=0), degraded=True)
    assert (answer["action"], answer["verdict"], answer["degraded"]) == ("retreat", "SEND", True)
    opened = table.ledger.opened(answer["decision_id"])
    assert opened is not None
    assert (opened.sampled, opened.sent, opened.log_prob) == (False, True, 0.0)
    assert table.ask(tick=1)["degraded"] is False
    assert table.states(opened.id) == ["settled"]
    assert table.session.status().degraded == 1


def test_where_there_is_no_time_the_clients_own_action_comes_before_the_fallback(
    table: Table,
) -> None:
    asked = observation(tick=0, proposed="gather"), observation("south", tick=0)
    own, safe = table.say(*asked, degraded=True)
    assert (own["action"], own["by"]) == ("gather", "rules")
    assert (safe["action"], safe["by"]) == ("retreat", "rules")
    assert table.ask(tick=1, proposed="gather")["by"] == "policy"


class FullDisk:
    """Makes a ledger fail the way that a full disk does."""

    def __init__(self, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = False
        for name in ("open", "close", "add"):
            monkeypatch.setattr(table.ledger, name, self._guarded(getattr(table.ledger, name)))

    def _guarded(self, write: Any) -> Any:
        def guarded(entries: list[Opened] | list[Closing]) -> None:
            if self.full:
                raise OSError(28, "No space left on device")
            write(entries)

        return guarded


def test_a_full_disk_is_answered_with_the_safe_action_and_no_id(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FullDisk(table, monkeypatch)
    first = table.ask(tick=0, gold=0.0)["decision_id"]
    second = table.ask(tick=1, gold=0.1)["decision_id"]
    disk.full = True
    lost = table.ask(tick=2, gold=0.2)
    assert (lost["decision_id"], lost["action"], lost["degraded"]) == (None, "retreat", True)
    assert table.ask(tick=2)["duplicate"]
    table.session.tick()
    disk.full = False
    third = table.ask(tick=3, gold=0.9)["decision_id"]
    table.ask(tick=4, gold=1.0)
    table.session.joined("alice")
    table.later(61.0)
    # What was settled before the gap ends with what was seen in it; nothing bridges it.
    assert table.states(first, second, third) == ["settled", "expired", "settled"]
    assert [one.rewards.tolist() for one in table.episodes] == [
        pytest.approx([0.1]),
        pytest.approx([0.1]),
    ]
    status = table.session.status()
    assert (status.unrecorded, status.degraded, status.ledger_errors) == (1, 1, 1)
    assert balanced(table)


def test_nothing_bridges_what_the_ledger_does_not_have(
    told: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FullDisk(told, monkeypatch)
    first = told.ask(tick=0, gold=1.0)["decision_id"]
    told.say({"type": "reward", "decision_id": first, "reward": 0.5})
    disk.full = True
    for tick, gold in ((1, 2.0), (2, 3.0)):
        assert told.ask(tick=tick, gold=gold)["decision_id"] is None
    disk.full = False
    second = told.ask(tick=3, gold=4.0)["decision_id"]
    told.say({"type": "reward", "decision_id": second, "reward": 0.25})
    told.say({"type": "end", "territory": "north"})
    before, after = told.episodes
    assert before.bootstrap is not None
    assert before.bootstrap[2] == 2.0  # what came next, not what was recorded next
    assert after.rewards.tolist() == [0.25]


def test_a_reward_that_could_not_be_added_is_not_confirmed(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FullDisk(table, monkeypatch)
    key = table.ask(tick=0)["decision_id"]
    told = {"type": "reward", "decision_id": key, "reward": 0.5, "id": 3}
    disk.full = True
    (answer,) = table.say(told)
    assert (answer["code"], answer["id"]) == ("unavailable", 3)
    disk.full = False
    assert table.say(told)[0]["status"] == "added"
    table.ask(tick=1, gold=0.25)
    table.say({"type": "end", "territory": "north"})
    assert table.episodes[0].rewards.tolist() == [0.75]


def test_a_reward_that_could_not_be_written_is_not_confirmed(
    told: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FullDisk(told, monkeypatch)
    key = told.ask()["decision_id"]
    disk.full = True
    answers = told.say(
        {"type": "reward", "decision_id": key, "reward": 0.5, "id": 1},
        {"type": "end", "territory": "north", "reward": 0.5, "id": 2},
    )
    assert [(one["code"], one["id"]) for one in answers] == [("unavailable", 1), ("unavailable", 2)]
    disk.full = False
    (answer,) = told.say({"type": "reward", "decision_id": key, "reward": 0.5})
    assert answer["status"] == "settled"


# --- limits --------------------------------------------------------------------------------------


def test_territories_are_limited_per_client_and_in_all(tmp_path: Path) -> None:
    table = Table(tmp_path, territories_per_client=2, max_territories=3)
    answers = table.say(*(observation(name, tick=7, id=name) for name in "abc"))
    assert [one["degraded"] for one in answers] == [False, False, True]
    safe = answers[2]
    assert (safe["action"], safe["verdict"], safe["decision_id"]) == ("retreat", "SEND", None)
    assert (safe["territory"], safe["tick"], safe["id"]) == ("c", 7, "c")
    assert "this client has" in safe["reasons"][0]
    answers = table.say(*(observation(name) for name in "xy"), client="bob")
    assert [one["degraded"] for one in answers] == [False, True]
    assert "the server has" in answers[1]["reasons"][0]
    table.say({"type": "end", "territory": "a"})
    assert not table.ask("y", client="bob")["degraded"]
    status = table.session.status()
    assert (status.safe_actions, status.unrecorded) == ({"territories": 2}, 2)
    assert (status.errors, status.territories, status.ledger.opened) == ({}, 3, 4)


def test_clients_without_a_name_cannot_take_the_room_of_other_addresses(tmp_path: Path) -> None:
    """Each request over HTTP without a name is another client, so that only its address counts."""
    table = Table(tmp_path, territories_per_address=3, max_territories=5)
    flood = [(f"anonymous-{n}", observation(f"room-{n}")) for n in range(9)]
    answers = table.inbox(flood, address="10.0.0.1")
    assert [one["degraded"] for one in answers] == [False] * 3 + [True] * 6
    assert "this address has" in answers[-1]["reasons"][0]
    (other,) = table.inbox([("bob", observation("mine"))], address="10.0.0.2")
    assert not other["degraded"]
    (unknown,) = table.inbox([("carol", observation("hers"))])  # behind a proxy that says nothing
    assert not unknown["degraded"]


def test_an_idle_territory_makes_room_and_loses_nothing(tmp_path: Path) -> None:
    table = Table(tmp_path, explore_share=0.0, max_territories=2, evict_after_s=10.0, max_gap=1)
    old = table.ask("old")["decision_id"]
    table.later(9.0)
    busy = table.ask("busy")["decision_id"]
    assert table.ask("new", client="bob")["degraded"]  # nothing is idle for long enough
    table.later(1.0)
    assert not table.ask("new", client="bob")["degraded"]
    assert (table.session.status().territories, table.session.status().evictions) == (2, 1)
    assert table.states(old, busy) == ["open", "open"]
    stranger = table.ask("old", client="bob")
    assert stranger["code"] == "not_yours"
    (added,) = table.say({"type": "reward", "decision_id": old, "reward": 0.25})
    assert added["status"] == "added"
    # No room to come back: the safe action, and still what came before is settled by it.
    full = table.ask("old", gold=0.5)
    assert (full["tick"], full["degraded"]) == (1, True)
    assert full["decision_id"] is not None
    assert table.states(old) == ["settled"]
    table.later(10.0)
    table.ask("new", client="bob")
    again = table.ask("old", gold=0.75)  # `busy` is idle now, and makes room in turn
    assert (again["tick"], again["degraded"]) == (2, False)
    table.say({"type": "end", "territory": "old", "reward": 1.0})
    (episode,) = table.episodes
    assert episode.rewards.tolist() == [0.75, 0.25, 1.0]
    assert episode.meta.tags["territory"] == "old"
    # `busy` never comes back: it is forgotten after the window, as any other.
    table.later(60.5)
    assert table.states(busy) == ["orphaned"]
    assert not table.ledger.territories()
    assert balanced(table)


def test_what_an_evicted_territory_settled_leaves_for_the_learner(tmp_path: Path) -> None:
    table = Table(tmp_path, translator=game(), max_territories=1, evict_after_s=1.0)
    key = table.ask("old")["decision_id"]
    table.later(1.0)
    table.ask("new")
    (rewarded,) = table.say({"type": "reward", "decision_id": key, "reward": 0.5})
    assert rewarded["status"] == "settled"
    assert table.episodes == []
    table.later(61.0)
    (episode,) = [one for one in table.episodes if one.meta.tags["territory"] == "old"]
    assert episode.rewards.tolist() == [0.5]


def test_evicted_territories_are_their_clients_after_a_restart_too(tmp_path: Path) -> None:
    table = Table(tmp_path, max_territories=1)
    old = table.ask("old", client="alice")["decision_id"]
    table.later(11.0)
    new = table.ask("new", client="bob")["decision_id"]
    table.ledger.stop()
    again = Table(tmp_path, clock=table.clock, max_territories=1)
    assert again.session.status().territories == 1
    assert again.session.holds("alice") and again.session.holds("bob")
    for territory in ("old", "new"):
        (ended,) = again.say({"type": "end", "territory": territory}, client="mallory")
        assert ended["code"] == "not_yours"
    assert again.states(old, new) == ["open", "open"]
    assert not again.ask("new", client="bob")["degraded"], "the newest is the active one"


def test_a_client_is_held_as_long_as_it_has_a_territory_evicted_or_not(tmp_path: Path) -> None:
    table = Table(tmp_path, max_territories=1)
    table.ask("a", client="alice")
    table.later(11.0)
    table.ask("b", client="bob")  # evicts
    assert table.session.holds("alice")
    table.later(11.0)
    table.ask("a", client="alice")  # comes back, and evicts
    assert table.session.holds("alice") and table.session.holds("bob")
    table.say({"type": "end", "territory": "a"}, client="alice")
    table.say({"type": "end", "territory": "b"}, client="bob")
    assert not table.session.holds("alice") and not table.session.holds("bob")


def test_evicted_territories_are_bounded(tmp_path: Path) -> None:
    table = Table(tmp_path, max_territories=1, evict_after_s=30.0)  # half a reward window
    names = ("a", "b", "c", "d")
    for name in names:
        answer = table.ask(name)
        assert answer["degraded"] == (name == "d"), "two are evicted, and no more"
        for other in names[: names.index(name)]:
            table.ask(other)  # keeps it from being forgotten
        table.later(31.0)


def test_messages_are_limited_in_length_and_rate(tmp_path: Path) -> None:
    table = Table(tmp_path, max_message_bytes=100, messages_per_s=2.0)
    long = {"type": "ping", "id": "x" * 100}
    answers = table.say(long, {"type": "ping"}, {"type": "ping"})
    assert [one.get("code") for one in answers] == ["too_large", None, "rate"]
    assert table.say({"type": "ping"}, client="bob")[0]["type"] == "pong"
    assert table.session.status().errors == {"too_large": 1, "rate": 1}


def test_an_observation_beyond_the_rate_gets_the_safe_action_and_nothing_bridges_it(
    tmp_path: Path,
) -> None:
    table = Table(tmp_path, messages_per_s=1.0, explore_share=0.0)
    first = table.ask(gold=0.0)
    assert not first["degraded"]
    beyond, elsewhere = table.say(observation(gold=1.0), observation("south"))
    for one in (beyond, elsewhere):
        assert (one["action"], one["degraded"], one["decision_id"]) == ("retreat", True, None)
        assert "messages a second" in one["reasons"][0]
    assert (beyond["tick"], table.session.status().territories) == (1, 1)
    table.clock.now += 1.0
    assert table.ask(gold=3.0)["tick"] == 2
    # The reward would be that of an action which nobody wrote down.
    assert table.states(first["decision_id"]) == ["open"]
    assert table.session.status().safe_actions == {"rate": 2}


def test_what_is_told_at_the_end_is_not_of_a_decision_before_the_last(tmp_path: Path) -> None:
    table = Table(tmp_path, translator=game(), messages_per_s=1.0)
    first = table.ask()["decision_id"]
    assert table.ask()["decision_id"] is None, "beyond the rate: not recorded"
    table.clock.now += 1.0
    end = {"type": "end", "territory": "north", "reward": 1.0, "outcome": "victory"}
    (ended,) = table.say(end)
    assert ended["last"] == "orphaned" and table.states(first) == ["orphaned"]


def test_a_territory_that_is_observed_beyond_the_rate_is_not_forgotten(tmp_path: Path) -> None:
    table = Table(tmp_path, messages_per_s=1.0)
    table.ask()
    for _ in range(14):
        table.later(5.0)
        _, beyond = table.say({"type": "ping"}, observation())
        assert beyond["decision_id"] is None
    table.later(1.0)
    assert table.ask()["tick"] == 15


def test_messages_are_limited_per_address_however_many_clients_send_them(tmp_path: Path) -> None:
    table = Table(tmp_path, messages_per_s_per_address=2.0)
    pings = [(f"c{n}", {"type": "ping"}) for n in range(3)]
    answers = table.inbox(pings, address="10.0.0.1")
    assert [one.get("code") for one in answers] == [None, None, "rate"]
    assert "from one address" in answers[2]["message"]
    assert table.inbox(pings[:2], address="10.0.0.2")[1]["type"] == "pong"
    assert table.session.refused("d", "10.0.0.1") is not None
    assert table.session.refused("d", "10.0.0.3") is None


def test_messages_are_limited_in_all_however_many_clients_send_them(tmp_path: Path) -> None:
    table = Table(tmp_path, messages_per_s=2.0, messages_per_s_in_all=4.0)
    inbox = [("greedy", {"type": "ping"})] * 9 + [(f"c{n}", {"type": "ping"}) for n in range(3)]
    answers = table.inbox(inbox)
    # What was refused to one alone took nothing from the others.
    assert [one.get("code") for one in answers] == [None] * 2 + ["rate"] * 7 + [None] * 2 + ["rate"]
    assert "from all clients" in answers[-1]["message"]
    refused = table.session.refused("another")
    assert refused is not None
    assert refused.code == "rate"
    table.clock.now += 1.0
    assert table.session.refused("another") is None


# --- versions ------------------------------------------------------------------------------------


def test_every_answer_is_one_whole_version(tmp_path: Path) -> None:
    table = Table(tmp_path, explore_share=0.0, messages_per_s=1e9)
    rng = np.random.default_rng(0)
    for tick in range(40):
        table.versions.current = int(rng.integers(0, 7))
        features = rng.normal(50.0, 20.0, (10, 3)).astype(np.float32)
        answers = table.say(
            *(
                observation(f"t{index % 5}", features=row.tolist(), tick=2 * tick + index // 5)
                for index, row in enumerate(features)
            )
        )
        assert {one["version"] for one in answers} == {table.versions.current}
        for row, answer in zip(features, answers, strict=True):
            policy = table.versions[answer["version"]]
            expected = recomputed(policy, row, ACTIONS.index(answer["action"]))
            assert answer["confidence"] == pytest.approx(expected, rel=1e-4)


def test_a_swap_in_the_middle_of_an_inbox_waits_for_the_next_one(table: Table) -> None:
    read = table.translator.read

    def swapping(requests: Any) -> Any:
        table.versions.current += 1
        return read(requests)

    table.translator.read = swapping  # type: ignore[method-assign]
    answers = table.say(observation(tick=0), observation(tick=1), observation("b"))
    assert [one["version"] for one in answers] == [0, 0, 0]
    assert table.ask(tick=2)["version"] == 1


# --- memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize("network", [TRANSFORMER, STRATEGIST], ids=["transformer", "strategist"])
def test_many_territories_remember_as_each_would_alone(tmp_path: Path, network: AnyNetwork) -> None:
    table = Table(tmp_path, network=network, segment=6, explore_share=0.0, messages_per_s=1e9)
    policy = table.versions()
    alone = {name: policy.begin() for name in "abcd"}
    rng = np.random.default_rng(1)
    for tick in range(14):
        # Not everybody is heard in every tick, and never in the same order.
        present = [name for name in rng.permutation(list("abcd")) if rng.random() < 0.7]
        features = rng.normal(50.0, 20.0, (len(present), 3)).astype(np.float32)
        counts = {name: table.session._parts.territories.get(name) for name in present}
        asked = [
            observation(str(name), features=row.tolist())
            for name, row in zip(present, features, strict=True)
        ]
        full = {name: one is not None and one.remembered >= 6 for name, one in counts.items()}
        for name, row, answer in zip(present, features, table.say(*asked), strict=True):
            if full[name]:
                alone[str(name)] = policy.begin()
            chosen = ACTIONS.index(answer["action"])
            legal = np.zeros((1, 3), np.bool_)
            legal[0, chosen] = True
            probability, alone[str(name)] = _step(policy, row, alone[str(name)], chosen)
            assert answer["confidence"] == pytest.approx(probability, rel=1e-4), (tick, name)


def _step(policy: Any, row: NDArray, memory: Any, action: int) -> tuple[float, Any]:
    from understudy.core.ops import NUMPY
    from understudy.policy import distributions
    from understudy.policy.weights import normalise

    obs = normalise(NUMPY, policy.weights, row[None])
    logits, _, memory = policy.spec.network.step(NUMPY, policy.weights.params, obs, memory)
    log_p = distributions.log_probs(NUMPY, policy.spec.actions, logits, None)
    return float(np.exp(log_p[0, action])), memory


@pytest.mark.parametrize("disturbance", ["version", "degraded", "gap", "full", "disk"])
def test_training_from_empty_memory_repeats_what_was_played(
    tmp_path: Path, disturbance: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every segment, stepped from empty memory under its version, gives its log-probabilities."""
    table = Table(tmp_path, network=TRANSFORMER, segment=5, explore_share=0.0)
    disk = FullDisk(table, monkeypatch)
    rng = np.random.default_rng(2)
    tick = 0
    for step in range(17):
        disturbed = step in {3, 8, 9}
        if disturbed and disturbance == "version":
            table.versions.current += 1
        tick += 3 if disturbed and disturbance == "gap" else 1
        disk.full = disturbed and disturbance == "disk"
        table.say(
            observation(tick=tick, features=rng.normal(50.0, 20.0, 3).tolist()),
            degraded=disturbed and disturbance == "degraded",
        )
        disk.full = False
    table.say({"type": "end", "territory": "north", "reward": 0.0})
    assert sum(len(episode) for episode in table.episodes) > 10
    assert_repeated(table)


@pytest.mark.parametrize("ending", ["late", "expired", "orphaned", "ended", "restarted"])
def test_training_repeats_what_was_played_around_decisions_that_nobody_rewarded(
    tmp_path: Path, ending: str
) -> None:
    """Clients tell the rewards, several decisions are open at once, and some never get theirs."""
    config: dict[str, Any] = {"segment": 5, "explore_share": 0.0, "reward_window_s": 7.0}
    table = Table(tmp_path, translator=game(), network=TRANSFORMER, **config)
    episodes = table.episodes
    if ending == "expired":
        table.session.joined("alice")  # what waits too long for a client that left is orphaned
    rng = np.random.default_rng(2)
    asked: list[int] = []

    def reward(step: int) -> None:
        table.say({"type": "reward", "decision_id": asked[step], "reward": 1.0})

    lost = {3, 7, 8, 15, 21} if ending != "ended" else {21, 23}
    for step in range(25):
        if ending == "restarted" and step in {5, 11, 18}:  # killed: nothing was stopped
            options = config | {"clock": table.clock, "seed": step}
            table = Table(tmp_path, translator=game(), network=TRANSFORMER, **options)
            episodes += table.episodes
            table.episodes = episodes
            table.ledger._put = episodes.append
        features = rng.normal(50.0, 20.0, 3).tolist()
        asked.append(table.ask(tick=step, features=features)["decision_id"])
        table.clock.now += 1.0
        if ending in {"expired", "orphaned"}:
            table.session.tick()
        if step >= 2 and step - 2 not in lost:
            reward(step - 2)
        if ending in {"late", "restarted"} and step - 8 in lost:
            reward(step - 8)
    table.say({"type": "end", "territory": "north", "reward": 1.0})
    counts = table.ledger.counts
    # The end settles the newest decision alone: the one before it is lost with those above.
    assert counts.settled == 25 - len(lost | {23})
    assert counts.open == 0
    assert_repeated(table)
    rewards = np.concatenate([episode.rewards for episode in table.episodes])
    assert rewards.sum() == counts.settled  # none is lost with its neighbour, none is made up
    assert rewards.tolist() == np.concatenate([one.taught for one in episodes]).tolist()
    if ending != "restarted":  # a reward that never came empties nobody's memory
        assert max(len(one) for one in episodes[:-1]) == 5 and len(episodes) == 5


def assert_repeated(table: Table) -> None:
    """Every segment, stepped from empty memory under its version, gives its log-probabilities."""
    for episode in table.episodes:
        (version,) = set(episode.versions.tolist())
        policy, memory = table.versions[version], table.versions[version].begin()
        for index in range(len(episode)):
            action = int(episode.actions[index, 0])
            probability, memory = _step(policy, episode.observations[index], memory, action)
            if episode.sampled[index]:
                assert np.exp(episode.log_probs[index]) == pytest.approx(probability, rel=1e-4)


# --- fuzz ----------------------------------------------------------------------------------------

_VALID = [
    observation("yours", tick=1),
    observation("yours", features={"health": 1.0, "enemies": 2.0, "gold": 3.0}),
    observation("yours", legal=[True, False, True], id="a"),
    {"type": "reward", "decision_id": 1, "reward": 0.5, "id": 3},
    {"type": "end", "territory": "yours", "reward": 1.0, "outcome": "tie"},
    {"type": "hello", "protocol": 1, "client": "mallory", "token": "secret"},
    {"type": "ping"},
    {"type": "observation_data", "data": {"timestamp": 1.0, "territoryId": "yours"}},
]
_ODD: list[Any] = [
    None,
    True,
    -1,
    2**70,
    1e39,
    1e300,
    "",
    "x" * 200,
    [],
    {},
    [[[]]],
    {"a": 1},
    [0.5] * 3,
]


def fuzzed(chance: random.Random) -> bytes:
    """A message that was good once: with other values, fields too many, or bytes gone wrong."""
    message: dict[str, Any] = dict(chance.choice(_VALID))
    for _ in range(chance.randrange(3)):
        key = chance.choice([*message, "type", "territory", "data", "tick", "extra", ""])
        if chance.random() < 0.3:
            message.pop(key, None)
        else:
            message[key] = chance.choice(_ODD)
    data = bytearray(json.dumps(message).encode())
    for _ in range(chance.choice([0, 0, 1, 3])):
        place = chance.randrange(len(data) + 1)
        data[place : place + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
    return bytes(data)


@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32), more=st.lists(st.binary(max_size=30), max_size=5))
def test_ten_thousand_fuzzed_messages_get_an_answer_each_and_touch_no_neighbour(
    seed: int, more: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    chance = random.Random(seed)
    noise = [*more, *(fuzzed(chance) for _ in range(500))]
    table = Table(tmp_path_factory.mktemp("fuzz"), explore_share=0.0, messages_per_s=1e9)
    good = [Incoming("alice", json.dumps(observation("mine", tick=tick))) for tick in range(3)]
    mixed = [Incoming("mallory", one) for one in noise]
    for index, message in enumerate(good):
        mixed.insert((index + 1) * len(noise) // 4, message)
    answers = table.session.receive(mixed)
    assert [one.client for one in answers] == [one.client for one in mixed]
    decoded = [json.loads(one.data) for one in answers]
    assert {one["type"] for one in decoded} >= {"error", "decision", "pong"}
    mine = [one for one in decoded if one.get("territory") == "mine"]
    assert [one["tick"] for one in mine] == [0, 1, 2]
    assert table.states(*(one["decision_id"] for one in mine)) == ["settled", "settled", "open"]
    assert balanced(table)
