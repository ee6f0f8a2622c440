"""One match: what is recorded is what happened, and a mistake is named before it does harm."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from understudy import MultiBinary, MultiDiscrete
from understudy.core.clock import SystemClock
from understudy.core.errors import InputError
from understudy.core.ops import NUMPY
from understudy.policy import distributions
from understudy.policy.policy import Policy
from understudy.policy.weights import normalise
from understudy.registry.pointers import PointerRecord, Pointers
from understudy.telemetry.report import describe
from understudy.telemetry.status_reader import StatusReader

from .minds import ACTIONS, REMEMBERING, episodes, mind, publish


def log_probs(policy: Policy, observations: Any, actions: Any, legal: Any = None) -> Any:
    """Recomputed from raw features, as a learner does."""
    weights = policy.weights
    logits, _, _ = policy.spec.network.step(
        NUMPY, weights.params, normalise(NUMPY, weights, observations), policy.begin()
    )
    return distributions.log_prob(NUMPY, policy.spec.actions, logits, actions, legal)


def test_every_number_of_a_match_is_recorded_where_it_belongs(tmp_path: Path) -> None:
    with mind(tmp_path) as bot, bot.match(opponent="Terran", map="Ridge") as match:
        taken = []
        for step in range(600):  # beyond the first 256 rows and uniforms, twice
            taken.append(match.decide([step, -step]))
            match.reward(step)
            match.reward(0.5)
        assert match.decisions == 600
        assert match.finish("victory") is True
    (episode,) = episodes(tmp_path)
    steps = np.arange(600, dtype=np.float32)
    assert np.array_equal(episode.observations, np.stack([steps, -steps], 1))
    assert [ACTIONS[action] for action in episode.actions[:, 0]] == taken
    assert set(taken) == set(ACTIONS)
    expected = steps + 0.5
    expected[-1] += 10.0  # the result belongs to the last decision
    assert np.array_equal(episode.rewards, expected)
    assert episode.sampled.all() and (episode.versions == 0).all()
    assert episode.legal is None
    assert episode.meta.outcome == "victory"
    assert episode.meta.tags == {"opponent": "Terran", "map": "Ridge"}
    again = log_probs(bot.policy, episode.observations, episode.actions)
    assert np.abs(again - episode.log_probs).max() < 1e-5


@pytest.mark.parametrize(
    ("outcome", "reward"), [("victory", 10), ("defeat", -5), ("tie", 0), ("aborted", 0)]
)
def test_the_result_is_a_reward_of_the_last_decision(
    tmp_path: Path, outcome: str, reward: float
) -> None:
    with mind(tmp_path) as bot, bot.match() as match:
        match.decide([0, 0])
        match.decide([0, 0])
        match.reward(0.25)
        match.finish(outcome)
    assert episodes(tmp_path)[0].rewards.tolist() == [0.0, reward + 0.25]


def test_result_rewards_can_be_changed_and_are_checked(tmp_path: Path) -> None:
    with mind(tmp_path, result_rewards={"victory": 1.0}) as bot, bot.match() as match:
        match.decide([0, 0])
        match.finish("victory")
    assert episodes(tmp_path)[0].rewards.tolist() == [1.0]
    with pytest.raises(InputError, match=r"'victroy' is not an outcome.*'victory'"):
        mind(tmp_path, result_rewards={"victroy": 1.0})
    with pytest.raises(InputError, match="'tie' is nan"):
        mind(tmp_path, result_rewards={"tie": float("nan")})
    with pytest.raises(InputError, match=r"result_rewards: 'aborted' is -1.0, expected 0"):
        mind(tmp_path, result_rewards={"aborted": -1.0})
    with mind(tmp_path, result_rewards={"aborted": 0.0}) as bot:
        assert bot.matches == 0, "nothing is what it is anyway"


def test_in_shadow_the_rules_play_and_the_policy_looks_on(tmp_path: Path) -> None:
    with mind(tmp_path, mode="shadow") as bot, bot.match() as match:
        for action in ACTIONS:
            assert match.decide([1, 2], fallback=action) == action
        assert match.decide([1, 2], fallback=1) == "right"
        match.finish("tie")
    (episode,) = episodes(tmp_path)
    assert episode.actions[:, 0].tolist() == [0, 1, 2, 1]
    assert not episode.sampled.any() and not episode.log_probs.any()


@pytest.mark.parametrize("mode", ["shadow", "learn"])
def test_where_a_feature_is_not_finite_the_fallback_decides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    nan, inf = float("nan"), float("inf")
    with mind(tmp_path, mode=mode, network=REMEMBERING) as bot:
        for _ in range(2):
            with bot.match() as match:
                for features in ([nan, 3.0], [1, 4], [2, 5], [nan, inf], [3, nan], [4, 6], [5, 7]):
                    action = match.decide(features, fallback="wait")
                    assert action == "wait" or (mode == "learn" and np.isfinite(features).all())
                assert match.last.sampled == (mode == "learn")
                match.finish("victory")
    said = capsys.readouterr().err
    assert said.count("not finite again") == 2, "each feature once"
    assert "'minerals' is nan at decision 0" in said and "'army' is inf at decision 3" in said
    for episode in episodes(tmp_path):
        seen = [[0, 3], [1, 4], [2, 5], [2, 5], [3, 5], [4, 6], [5, 7]]
        assert episode.observations.tolist() == seen
        sampled = [False, True, True, False, False, True, True] if mode == "learn" else [False] * 7
        assert episode.sampled.tolist() == sampled
        assert episode.cuts is not None
        assert episode.cuts.tolist() == [False, True, False, False, True, True, False]
        memory = bot.policy.begin()
        for row in range(7):  # what was expected, with the memory that the policy had
            memory = bot.policy.begin() if episode.cuts[row] else memory
            choice = bot.policy.act(episode.observations[row : row + 1], memory)
            memory = choice.memory
            assert episode.values[row] == choice.values[0]
    status = StatusReader(tmp_path, SystemClock()).read()
    assert status.not_finite == {"minerals": 4, "army": 4}
    assert "features not finite: minerals (4), army (4)" in describe(status)
    assert (status.matches, status.fallback) == (2, 6 if mode == "learn" else 14)


def test_mistakes_are_named_and_leave_no_trace(tmp_path: Path) -> None:
    with mind(tmp_path, mode="shadow", network=REMEMBERING) as bot, bot.match() as match:
        for features, expected in (
            ([1.0], "expected 2 numbers, got 1"),
            (["many", 1.0], "expected plain numbers"),
            (np.ones((2, 2)), "expected plain numbers"),
            (7, "expected plain numbers"),
        ):
            with pytest.raises(InputError, match=f"features: .*{expected}"):
                match.decide(features, fallback="left")  # type: ignore[arg-type]
        for features, expected in (
            ([1.0, float("nan")], "'army' is nan"),
            ([float("-inf"), 1.0], "'minerals' is -inf"),
            ([float("inf"), float("-inf")], "'minerals' is inf"),
        ):
            with pytest.raises(InputError, match=f"features: {expected}, .* no fallback"):
                match.decide(features)
        with pytest.raises(InputError, match="needs fallback="):
            match.decide([1, 2])
        with pytest.raises(InputError, match=r"'lft' is not one of .*'left'"):
            match.decide([1, 2], fallback="lft")
        with pytest.raises(InputError, match="fallback: 3 is not one of"):
            match.decide([1, 2], fallback=3)
        with pytest.raises(InputError, match="'left' is illegal under the mask"):
            match.decide([1, 2], fallback="left", legal=[False, True, True])
        with pytest.raises(InputError, match="expected 3 booleans"):
            match.decide([1, 2], fallback="left", legal=[True])
        with pytest.raises(InputError, match="no action is legal"):
            match.decide([1, 2], fallback="left", legal=[False] * 3)
        with pytest.raises(InputError, match="reward: before the first decision"):
            match.reward(1.0)
        assert match.decisions == 0
        assert not match._memory[-1].any()  # a refused decision is not remembered either
        match.decide([1, 2], fallback="left")  # legal, though the mask above forbade it
        for reward in (float("nan"), float("inf"), "much", None):
            with pytest.raises(InputError, match="reward: "):
                match.reward(reward)  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"'victroy' is not an outcome.*'victory'"):
            match.finish("victroy")
        match.finish("victory")
    (episode,) = episodes(tmp_path)  # loading checks that what was executed was legal
    assert episode.rewards.tolist() == [10.0]


def test_after_finish_a_match_is_over(tmp_path: Path) -> None:
    with mind(tmp_path) as bot, bot.match() as match:
        match.decide([0, 0])
        match.finish("tie")
        for act in (
            lambda: match.decide([0, 0]),
            lambda: match.reward(1.0),
            lambda: match.finish("victory"),
        ):
            with pytest.raises(InputError, match="finished"):
                act()
    assert [episode.meta.outcome for episode in episodes(tmp_path)] == ["tie"]
    with pytest.raises(InputError, match="closed"):
        bot.match()


def test_masks_are_respected_and_kept(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    masks = rng.random((200, 3)) < 0.5
    masks[~masks.any(1)] = True
    with mind(tmp_path) as bot, bot.match() as match:
        for index, mask in enumerate(masks):
            legal = None if index % 10 == 0 else mask.tolist()
            action = match.decide([0, 1], legal=legal)
            assert legal is None or mask[ACTIONS.index(action)]
        match.finish("tie")
    (episode,) = episodes(tmp_path)
    masks[::10] = True
    assert episode.legal is not None and np.array_equal(episode.legal, masks)
    again = log_probs(bot.policy, episode.observations, episode.actions, masks)
    assert np.abs(again - episode.log_probs).max() < 1e-5


def test_several_choices_at_once(tmp_path: Path) -> None:
    space = MultiDiscrete([3, 2])  # type: ignore[arg-type]  # a list will do
    with mind(tmp_path, actions=space) as bot, bot.match() as match:
        seen = {match.decide([0, 1], legal=[True, True, False, True, True]) for _ in range(200)}
        match.finish("tie")
    assert seen == {(a, b) for a in range(2) for b in range(2)}
    with mind(tmp_path, actions=space, mode="shadow") as bot, bot.match() as match:
        assert match.decide([0, 1], fallback=(2, 1)) == (2, 1)
        for wrong in ((3, 0), (-1, 0), (0,), 1, "left", (0.5, 1), [[0], [0, 1]]):
            with pytest.raises(InputError, match="fallback: "):
                match.decide([0, 1], fallback=wrong)
        with pytest.raises(InputError, match="illegal"):
            match.decide([0, 1], fallback=(2, 1), legal=[True, True, True, True, False])
        match.finish("tie")
    assert episodes(tmp_path)[1].actions.tolist() == [[2, 1]]


def test_switches_that_can_be_on_together(tmp_path: Path) -> None:
    space = MultiBinary(("jump", "fire"))
    with mind(tmp_path, actions=space) as bot, bot.match() as match:
        seen = {match.decide([0, 1]) for _ in range(100)}
        match.finish("tie")
    assert seen == {(a, b) for a in (False, True) for b in (False, True)}
    with mind(tmp_path, actions=space, mode="shadow") as bot, bot.match() as match:
        assert match.decide([0, 1], fallback=[True, False]) == (True, False)
        match.finish("tie")
    assert episodes(tmp_path)[1].actions.tolist() == [[1, 0]]


def test_a_version_that_arrives_in_mid_match_plays_at_once(tmp_path: Path) -> None:
    with mind(tmp_path) as bot, bot.match() as match:
        for number in (1, 2):
            match.decide([1, 2])
            publish(bot.folder, number)
            assert bot.refresh() == bot.version == number
        match.decide([1, 2])
        match.finish("tie")
    assert episodes(tmp_path)[0].versions.tolist() == [0, 1, 2]


def test_a_bot_can_ask_who_decided_and_how_surely(tmp_path: Path) -> None:
    with mind(tmp_path) as bot, bot.match() as match:
        publish(bot.folder, 1)
        bot.refresh()
        action = match.decide([1, 2])
        last = match.last
        match.finish("tie")
    (episode,) = episodes(tmp_path)
    assert (last.action, last.version, last.sampled) == (action, 1, True)
    assert last.probability == pytest.approx(float(np.exp(episode.log_probs[0])))
    assert last.value == pytest.approx(float(episode.values[0]))
    with mind(tmp_path, mode="shadow") as bot, bot.match() as match:
        match.decide([1, 2], fallback="wait")
        assert match.last.action == "wait"
        assert match.last.probability is None and not match.last.sampled


def test_a_policy_with_memory_changes_between_matches_only(tmp_path: Path) -> None:
    """What it remembers was encoded with the weights of one version."""
    with mind(tmp_path, network=REMEMBERING) as bot:
        for number in (1, 2):
            with bot.match() as match:
                match.decide([1, 2])
                publish(bot.folder, number)
                assert bot.refresh() == number
                match.decide([1, 2])
                match.finish("tie")
    assert [one.versions.tolist() for one in episodes(tmp_path)] == [[0, 0], [1, 1]]


def test_no_decision_is_ever_torn_between_two_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One thread swaps versions as fast as it can; every answer is that of the version it names."""
    done = threading.Event()
    pick = np.random.default_rng(0)

    def somebody_moved_it(self: Pointers, name: str) -> PointerRecord:
        return PointerRecord(
            sequence=1, version=int(pick.integers(1, 7)), pinned=False, by="", at=0.0
        )

    with mind(tmp_path) as bot:
        for number in range(1, 7):
            publish(bot.folder, number, champion=False)
        monkeypatch.setattr(Pointers, "read", somebody_moved_it)
        bot.refresh()

        def swap() -> None:
            while not done.is_set():
                bot.refresh()

        swapper = threading.Thread(target=swap)
        swapper.start()
        rng = np.random.default_rng(2)
        deadline = time.monotonic() + 30.0
        met: list[int] = []
        try:
            while len(met) < 60 and time.monotonic() < deadline:
                with bot.match() as match:
                    for seen in rng.standard_normal((1000, 2)):
                        match.decide(seen)
                        if bot.version != (met or [0])[-1]:
                            met.append(bot.version)
                    match.finish("tie")
        finally:
            done.set()
            swapper.join()
        policies = {number: bot.folder.versions.policy(number) for number in range(1, 7)}
    swaps = mismatches = 0
    for episode in episodes(tmp_path):
        swaps += int((np.diff(episode.versions) != 0).sum())
        for number in np.unique(episode.versions):
            rows = episode.versions == number
            again = log_probs(policies[number], episode.observations[rows], episode.actions[rows])
            mismatches += int((np.abs(again - episode.log_probs[rows]) > 1e-5).sum())
    assert swaps > 20
    assert mismatches == 0
