from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from games.tag import Tag
from pettingzoo.test import parallel_api_test, parallel_seed_test

from understudy.adapters.pettingzoo.env import GameParallelEnv, parallel_env
from understudy.core.errors import ConfigError, InputError

GAMES: dict[str, Any] = {"tag": Tag(), "swarm": "swarm", "brawl": "brawl"}


@pytest.mark.parametrize("game", GAMES.values(), ids=list(GAMES))
def test_pettingzoos_own_checkers_pass(game: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parallel_api_test(parallel_env(game), num_cycles=300)
        parallel_seed_test(lambda: parallel_env(game))


def test_a_whole_match_is_the_same_for_the_same_seed() -> None:
    def play(seed: int) -> list[Any]:
        env = parallel_env("swarm")
        obs, infos = env.reset(seed=seed)
        env.action_space("player_0").seed(seed)
        seen: list[Any] = [obs["player_0"]]
        while env.agents:
            action = env.action_space("player_0").sample(mask=infos["player_0"]["action_mask"])
            obs, rewards, _, _, infos = env.step({"player_0": action})
            seen += [obs["player_0"], rewards["player_0"]]
        return seen

    one, two, other = play(4), play(4), play(5)
    assert len(one) == len(two)
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    assert not np.array_equal(one[0], other[0])


def test_both_sides_play_one_match() -> None:
    env = GameParallelEnv(Tag())
    obs, _ = env.reset(seed=2)
    assert env.agents == ["player_0", "player_1"]
    np.testing.assert_array_equal(obs["player_0"][:2], obs["player_1"][1::-1])
    rewards: dict[str, float] = {}
    ended: dict[str, bool] = {}
    while env.agents:
        agents = list(env.agents)
        still = {"player_0": np.array([2, 0]), "player_1": np.array([1, 0])}
        obs, rewards, ended, truncated, infos = env.step(still)
        assert set(obs) == set(rewards) == set(infos) == set(agents)
        assert not any(truncated.values())
    assert ended == {"player_0": True, "player_1": True}
    assert rewards == {"player_0": 1.0, "player_1": -1.0}
    assert infos["player_1"]["score"] == -1.0
    assert env.step({}) == ({}, {}, {}, {}, {})


def test_what_does_not_fit_is_named() -> None:
    env = parallel_env(Tag())
    env.reset(seed=0)
    with pytest.raises(InputError, match=r"'player_1'\] gave none"):
        env.step({"player_0": np.array([0, 0])})
    with pytest.raises(ConfigError, match="difficulty"):
        parallel_env(Tag(), difficulty="hard")


def test_observations_reach_as_far_as_is_asked_for() -> None:
    for game in (Tag(), "swarm"):
        env = parallel_env(game, bound=0.125)
        obs, _ = env.reset(seed=3)
        assert float(env.observation_space("player_0").high.max()) == 0.125
        assert np.abs(obs["player_0"]).max() <= 0.125
    wide, _ = parallel_env("swarm").reset(seed=3)
    np.testing.assert_array_equal(obs["player_0"], np.clip(wide["player_0"], -0.125, 0.125))
    assert np.abs(wide["player_0"]).max() > 0.125
