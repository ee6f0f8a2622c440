from __future__ import annotations

import os
import shutil
import signal
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test, parallel_seed_test

from understudy.adapters.ai2.env import (
    SIDES,
    TournamentEnv,
    TournamentParallelEnv,
    parallel_env,
    resolved,
)
from understudy.adapters.ai2.game_process import AgentAction
from understudy.adapters.ai2.layout import DECISION_FRAMES, FEATURES, KEYS
from understudy.adapters.gymnasium.spaces import SpaceTranslator
from understudy.core.errors import ConfigError, InputError
from understudy.core.spaces import MultiBinary

_NO_KEYS = np.zeros(len(KEYS), np.int8)
_STILL = dict.fromkeys(SIDES, _NO_KEYS)


def test_the_checkers_of_both_libraries_pass(home: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parallel_api_test(parallel_env(home=home), num_cycles=100)
        parallel_seed_test(lambda: parallel_env(home=home), num_cycles=50)
        check_env(TournamentEnv(home, opponent="based"), skip_render_check=True)


def test_features_and_keys_have_their_names(home: Path) -> None:
    env = parallel_env(home=home)
    spaces = SpaceTranslator(env.observation_space(SIDES[0]), env.action_space(SIDES[0]))
    assert spaces.features == FEATURES
    assert spaces.actions == MultiBinary(KEYS)
    assert len(FEATURES) == 64
    assert FEATURES[32:] == tuple(name.replace("own.", "opponent.") for name in FEATURES[:32])
    obs, _ = env.reset(seed=1)
    env.close()
    one, two = (dict(zip(FEATURES, obs[side].tolist(), strict=True)) for side in SIDES)
    assert one["own.stocks"] == two["opponent.stocks"] == 3.0
    assert one["own.x"] == two["opponent.x"] == pytest.approx(-two["own.x"])
    assert obs[SIDES[0]].dtype == np.float32


def test_the_rewards_of_a_match_add_up_to_its_result(home: Path) -> None:
    env = TournamentEnv(home, opponent="random,constant", frames=8)
    scores = []
    for seed in range(4):
        env.reset(seed=seed)
        total, over, info = 0.0, False, dict[str, Any]()
        while not over:
            _, reward, over, truncated, info = env.step(_NO_KEYS)
            assert not truncated
            assert reward == pytest.approx(sum(info["terms"].values()))
            total += float(reward)
        assert set(info["terms"]) == {"stocks", "damage", "result"}
        assert total == pytest.approx(info["score"])
        scores.append((info["opponent"], info["score"]))
    env.close()
    assert {name for name, _ in scores} == {"random", "constant"}
    # An opponent that does nothing is not lost to by doing nothing.
    assert {score for name, score in scores if name == "constant"} == {0.0}


def test_both_sides_have_opposite_rewards_and_scores(stand_in: Path) -> None:
    env = parallel_env(home=stand_in, frames=8)
    env.reset(seed=5)
    actions = {"player_0": AgentAction("based"), "player_1": AgentAction("constant")}
    totals = dict.fromkeys(SIDES, 0.0)
    infos: dict[str, Any] = {}
    while env.agents:
        _, rewards, ended, truncated, infos = env.step(actions)
        assert rewards["player_0"] == -rewards["player_1"]
        totals = {side: totals[side] + rewards[side] for side in SIDES}
    env.close()
    assert all(ended.values()) and not any(truncated.values())
    assert infos["player_0"]["score"] == 1.0 == -infos["player_1"]["score"]
    assert totals["player_0"] == pytest.approx(1.0)


def test_a_side_that_the_caller_plays_moves_by_its_keys(home: Path) -> None:
    env = parallel_env(home=home, frames=1)
    obs, _ = env.reset(seed=3)
    for _ in range(40):  # until both stand on the stage
        obs, *_ = env.step(_STILL)
    began = obs["player_0"][0]
    for _ in range(5):
        right = _NO_KEYS.copy()
        right[KEYS.index("d")] = 1
        obs, *_ = env.step({"player_0": right, "player_1": _NO_KEYS})
    env.close()
    assert obs["player_0"][0] > began + 0.3
    assert obs["player_1"][32] == obs["player_0"][0]


def test_a_decision_lasts_as_many_frames_as_asked(stand_in: Path) -> None:
    def seen(frames: int, steps: int) -> Any:
        env = parallel_env(home=stand_in, frames=frames)
        env.reset(seed=9)
        for _ in range(steps):
            obs, *_ = env.step(_STILL)
        env.close()
        return obs["player_0"]

    np.testing.assert_array_equal(seen(6, 2), seen(1, 12))


def test_wrong_arguments_are_named(stand_in: Path) -> None:
    with pytest.raises(ConfigError, match=r"'basd'\. Did you mean 'based'"):
        TournamentEnv(stand_in, opponent="basd")
    with pytest.raises(ConfigError, match="side: expected 0 or 1, got 2"):
        TournamentEnv(stand_in, opponent="based", side=2)
    for frames in (0, 256, 2.5, "abc"):
        with pytest.raises(ConfigError, match="frames: expected a whole number from 1 to 255, got"):
            parallel_env(home=stand_in, frames=frames)
    with pytest.raises(ConfigError, match=r"--option hme: ai2 takes home, .* Did you mean 'home'"):
        resolved({"hme": stand_in})
    with pytest.raises(ConfigError, match="--option side: belongs to --option opponent"):
        resolved({"home": stand_in, "side": 1})
    env = parallel_env(home=stand_in)
    env.reset(seed=1)
    with pytest.raises(InputError, match="player_1"):
        env.step({"player_0": _NO_KEYS})
    env.close()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal here")
def test_a_killed_game_truncates_its_match_and_another_begins(
    stand_in: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    env: TournamentParallelEnv = parallel_env(home=stand_in)
    env.reset(seed=1)
    obs, *_ = env.step(_STILL)
    first = env.match.process.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    after, rewards, ended, truncated, infos = env.step(_STILL)
    assert set(truncated.values()) == {True} and set(ended.values()) == {False}
    assert set(rewards.values()) == {0.0}
    assert "ended by signal 9" in infos["player_0"]["aborted"]
    assert "score" not in infos["player_0"]
    np.testing.assert_array_equal(after["player_0"], obs["player_0"])
    assert "the process of a game ended by signal 9" in capsys.readouterr().err
    assert env.agents == []
    env.reset()
    assert env.match.process.pid != first
    assert not any(env.step(_STILL)[3].values())
    env.close()


def test_a_run_keeps_whole_paths(
    stand_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = Path(shutil.copy(stand_in / "environment" / "agent.py", tmp_path / "python"))
    monkeypatch.chdir(tmp_path)
    options = resolved({"home": os.path.relpath(stand_in), "python": "python"})
    assert options == {"frames": DECISION_FRAMES, "home": str(stand_in), "python": str(python)}
    assert "python" not in resolved({"home": stand_in})
    (tmp_path / "2024").symlink_to(stand_in, target_is_directory=True)
    assert resolved({"home": 2024})["home"] == str(stand_in), "as --option reads it"
