"""A version that fails loses the match to the rules, and the game goes on."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from understudy import MultiDiscrete
from understudy.bot import match as match_module
from understudy.core.errors import UnderstudyError
from understudy.gates.promotion.records import Ordered, Resolved
from understudy.policy.policy import Choice, Policy
from understudy.policy.weights import Weights
from understudy.promotion.log import PromotionLog
from understudy.promotion.promotion import Promotion
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events as ev

from .minds import REMEMBERING, SMALL, auto, episodes, journal, lively, mind, publish, tried


def endings(root: Path) -> list[tuple[str, float, str]]:
    read = (record for _, record in PromotionLog(root / "promotion").new())
    return [(one.ending, one.result, one.words) for one in read if isinstance(one, Resolved)]


def problems(root: Path) -> list[str]:
    return [one.message for one in journal(root) if isinstance(one, ev.Problem)]


def failing(at: int, how: Callable[[Choice], Choice]) -> Callable[..., Choice]:
    """`Policy.act`, of which version 1 fails at its decision number `at`."""
    act, decisions = Policy.act, iter(range(10**6))

    def fails(self: Policy, obs: Any, memory: Any, **options: Any) -> Choice:
        choice = act(self, obs, memory, **options)
        return how(choice) if self.version == 1 and next(decisions) == at else choice

    return fails


def raising(choice: Choice) -> Choice:
    raise ZeroDivisionError("of a layer")


WRONG: dict[str, tuple[Callable[[Choice], Choice], str]] = {
    "raises": (raising, "it raised ZeroDivisionError: of a layer"),
    "value": (lambda c: c._replace(values=c.values * np.nan), r"it answered action .*value nan"),
    "log-probability": (
        lambda c: c._replace(log_probs=c.log_probs - np.inf),
        "it answered action .*log-probability -inf",
    ),
    "out of range": (lambda c: c._replace(actions=c.actions * 0 + 3), r"action \[3\]"),
    "negative": (lambda c: c._replace(actions=c.actions * 0 - 1), r"action \[-1\]"),
    "illegal": (lambda c: c._replace(actions=c.actions * 0 + 2), r"action \[2\]"),
    "shape": (lambda c: c._replace(actions=np.zeros((1, 2), np.int32)), r"action \[0, 0\]"),
    "two answers": (lambda c: c._replace(values=np.zeros(2)), "it raised ValueError"),
}


@pytest.mark.parametrize("network", ["plain", "remembers"])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_canary_that_fails_gives_the_match_to_the_rules_and_pays(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    wrong: str,
    network: str,
) -> None:
    how, words = WRONG[wrong]
    shape = REMEMBERING if network == "remembers" else SMALL
    monkeypatch.setattr(Policy, "act", failing(2, how))
    legal = [True, True, False]
    with auto(tmp_path, network=shape) as bot:
        tried(bot, 1)
        with bot.match() as match:
            for step in range(5):
                action = match.decide([step, 1.0], fallback="left", legal=legal)
                assert step < 2 or action == "left"
                match.reward(1.0)
            assert not match.last.sampled and (match.role, match.version) == ("canary", 1)
            assert match.fault
            match.finish("victory")
        with bot.match() as match:
            match.decide([0.0, 1.0], fallback="left")
            match.finish("defeat")
            assert not match.fault, "the next match is another chance"
    (fault, clean) = endings(tmp_path)
    assert fault[:2] == ("fault", 0.0) and clean[:2] == ("finished", 0.0)
    episode = episodes(tmp_path)[0]
    assert episode.sampled.tolist() == [True, True, False, False, False]
    assert episode.actions[2:, 0].tolist() == [0, 0, 0]
    assert not episode.log_probs[2:].any() and not episode.values[2:].any()
    assert np.isfinite(episode.values).all()
    assert episode.meta.outcome == "victory" and episode.rewards.tolist() == [1, 1, 1, 1, 11]
    cuts = None if network == "plain" else [False, False, True, False, False]
    assert (None if episode.cuts is None else episode.cuts.tolist()) == cuts
    said = capsys.readouterr().err
    assert said.count("version 1 failed, and the rules play on: ") == 1
    (problem,) = problems(tmp_path)
    assert problem == f"version 1 failed: {fault[2]}"
    assert re.search(words, fault[2])


class SlowClock:
    """A clock on which a decision takes 10 ms, and 60 ms where `slow` says so."""

    def __init__(self, slow: list[bool]) -> None:
        self.now, self.slow, self.calls = 0, slow, 0

    def __call__(self) -> int:
        if self.calls % 2:
            self.now += 60_000_000 if self.slow[self.calls // 2] else 10_000_000
        self.calls += 1
        return self.now


def test_a_canary_that_is_slow_three_times_in_a_row_gives_up_the_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = [True, True, False, True, True, True, True, False]
    with auto(tmp_path, slow_ms=50.0) as bot:
        tried(bot, 1)
        with bot.match() as match, monkeypatch.context() as patch:
            patch.setattr(match_module, "perf_counter_ns", SlowClock(slow))
            faults = []
            for step in range(len(slow)):
                match.decide([step, 1.0], fallback="left")
                faults.append(bool(match.fault))
            match.finish("victory")
    assert faults == [False] * 5 + [True] * 3
    ((ending, result, words),) = endings(tmp_path)
    assert (ending, result) == ("fault", 0.0)
    assert words == "its last decisions took 60, 60, 60 ms, above promotion.slow_ms = 50"
    assert episodes(tmp_path)[0].sampled.tolist() == [True] * 6 + [False] * 2


def test_slow_rules_and_a_slow_learner_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for mode in ("shadow", "learn"):
        with mind(tmp_path / mode, mode=mode) as bot, bot.match() as match:
            with monkeypatch.context() as patch:
                patch.setattr(match_module, "perf_counter_ns", SlowClock([True] * 5))
                for step in range(5):
                    match.decide([step, 1.0], fallback="left")
            assert not match.fault


def spoiled(folder: RunFolder) -> Weights:
    """Finite weights that put every option far below an illegal one."""
    weights = lively(folder, 1)
    params = dict(weights.params)
    params["policy.b"] = np.full_like(params["policy.b"], -3e9)
    return replace(weights, params=params)


def test_a_real_network_can_answer_illegally_and_is_caught(tmp_path: Path) -> None:
    with auto(tmp_path) as bot:
        tried(bot, 1, weights=spoiled(bot.folder))
        with bot.match() as match:
            for step in range(20):
                assert (
                    match.decide([step, 1], fallback="left", legal=[True, False, False]) == "left"
                )
            match.finish("tie")
    ((ending, result, words),) = endings(tmp_path)
    assert (ending, result) == ("fault", 0.0) and "action [" in words


def test_several_parts_are_checked_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = MultiDiscrete((3, 2))
    legal = [True, True, True, True, False]

    def played(wrong: list[int]) -> str:
        def answer(choice: Choice) -> Choice:
            return choice._replace(actions=np.array([wrong], np.int32))

        root = tmp_path / "-".join(map(str, wrong))
        with monkeypatch.context() as patch, mind(root, mode="learn", actions=space) as bot:
            publish(bot.folder, 1)
            bot.refresh()
            patch.setattr(Policy, "act", failing(0, answer))
            with bot.match() as match:
                match.decide([0, 1], fallback=(0, 0), legal=legal)
                return match.fault

    assert played([2, 0]) == ""
    for wrong in ([3, 0], [0, 2], [-1, 0], [2, 1]):
        assert f"action {wrong}" in played(wrong)


def test_a_measured_version_that_fails_costs_the_rules_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with auto(tmp_path, first_matches=1000) as bot:
        publish(bot.folder, 1, champion=False)
        bot.refresh()
        monkeypatch.setattr(Policy, "act", failing(1, raising))
        with bot.match() as match:
            for step in range(4):
                assert match.decide([step, 1.0], fallback="wait") == "wait"
            assert match.role == "rules" and not match.fault
            match.finish("victory")
    assert endings(tmp_path) == [("finished", 1.0, "")]
    assert problems(tmp_path) == ["version 1 failed: it raised ZeroDivisionError: of a layer"]
    assert np.flatnonzero(episodes(tmp_path)[0].values).tolist() == [0]


@pytest.mark.parametrize("mode", ["learn", "play"])
def test_without_a_fallback_a_failure_is_an_error_that_names_the_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    with mind(tmp_path) as bot:
        publish(bot.folder, 1)
    monkeypatch.setattr(Policy, "act", failing(1, raising))
    with mind(tmp_path, mode=mode) as bot, bot.match() as match:
        match.decide([1, 2])
        with pytest.raises(
            UnderstudyError, match=r"version 1 failed \(it raised ZeroDivisionError.*no fallback"
        ):
            match.decide([1, 2])
        assert match.decisions == 1
        match.decide([1, 2])
        match.finish("tie")
        assert match.decisions == 2


def test_a_champion_that_fails_pays_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with auto(tmp_path) as bot:
        publish(bot.folder, 1, champion=False)
        Promotion(bot.folder).order(Ordered(order="approve", version=1))
        bot.refresh()
        monkeypatch.setattr(Policy, "act", failing(0, raising))
        with bot.match() as match:
            assert (match.role, match.version) == ("champion", 1)
            assert match.decide([1, 2], fallback="wait") == "wait"
            match.finish("victory")
    assert [ending[:2] for ending in endings(tmp_path)] == [("fault", 0.0)]
