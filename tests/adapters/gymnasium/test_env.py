from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from games.tag import Chaser, Tag
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

from understudy.adapters.gymnasium.env import GameEnv, action_mask, action_space
from understudy.core.errors import ConfigError
from understudy.core.ops import NUMPY
from understudy.core.spaces import Continuous, Discrete, MultiBinary, MultiDiscrete
from understudy.testing import check_game


def play(env: gymnasium.Env[Any, Any], seed: int) -> list[Any]:
    """A match of legal chance: everything that was seen."""
    env.action_space.seed(seed)
    obs, info = env.reset(seed=seed)
    seen: list[Any] = [obs]
    over = False
    while not over:
        action = env.action_space.sample(mask=info["action_mask"])
        obs, reward, over, truncated, info = env.step(action)
        assert not truncated
        assert env.observation_space.contains(obs)
        seen.append((action, obs, reward))
    assert info["score"] in {-1.0, 0.0, 1.0}
    return seen


def test_the_toy_game_keeps_the_contract() -> None:
    check_game(Tag())


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("understudy/Swarm-v0", {"difficulty": "easy"}),
        ("understudy/Brawl-v0", {"opponent": "based"}),
        ("understudy/Brawl-v0", {"opponent": "random", "actions": "keys", "delay": "6"}),
        ("understudy/Brawl-v0", {"opponent": "based", "delay": 6}),
    ],
)
def test_gymnasiums_own_checker_passes(name: str, options: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(name, **options)
        check_env(env.unwrapped)
        assert env.unwrapped.spec is not None
        assert env.unwrapped.spec.id == name


def test_the_same_seed_gives_the_same_match_and_another_one_another() -> None:
    env = gymnasium.make("understudy/Swarm-v0")
    one, two, other = play(env, 5), play(env, 5), play(env, 6)
    assert len(one) == len(two)
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal([step[2] for step in one[1:]], [step[2] for step in two[1:]])
    assert not np.array_equal(one[0], other[0])


def test_a_match_against_a_scripted_bot_is_played_to_its_end() -> None:
    env = gymnasium.make("understudy/Brawl-v0", opponent="aggressive")
    one, two = play(env, 5), play(env, 5)
    np.testing.assert_array_equal(one[-1][1], two[-1][1])
    assert len({step[2] for step in one[1:]}) > 1  # something happened


def test_matches_after_a_seeded_one_differ_from_it() -> None:
    env = GameEnv("swarm")
    first, _ = env.reset(seed=3)
    second, _ = env.reset()
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(env.reset(seed=3)[0], first)


def test_an_environment_plays_the_match_that_the_rules_play() -> None:
    game = Tag()
    env = GameEnv(game, opponent=Chaser(), side=1)
    obs, _ = env.reset(seed=11)
    state = env._state
    flight, over = np.array([2, 0]), False
    while not over:
        np.testing.assert_array_equal(obs, game.observe(NUMPY, state)[1, :, 0])
        frame = int(state.frame[0])
        actions = np.array([[[2], [1 - frame % 2]], [[2], [0]]], np.int32)
        before, state = state, game.step(NUMPY, state, actions)
        obs, reward, over, truncated, info = env.step(flight)
        assert reward == game.reward(NUMPY, before, state)[1, 0]
        assert over == game.over(NUMPY, state)[0]
        assert not truncated
    assert info["score"] == game.score(NUMPY, state)[1, 0] == -1.0


def test_running_out_of_time_is_an_end_with_a_result() -> None:
    env = GameEnv(Tag(), opponent=Chaser(), side=0)
    env.reset(seed=1)
    for frame in range(12):
        _, reward, terminated, truncated, info = env.step(np.array([0, 0]))
        assert (terminated, truncated) == (frame == 11, False)
    assert reward == info["score"] == -1.0


def test_what_is_not_legal_is_masked() -> None:
    env = GameEnv(Tag(), opponent=Chaser())
    _, info = env.reset(seed=0)
    assert [part.tolist() for part in info["action_mask"]] == [[1, 1, 1], [1, 1]]
    *_, info = env.step(np.array([1, 0]))
    assert [part.tolist() for part in info["action_mask"]] == [[1, 1, 1], [1, 0]]
    env.action_space.seed(0)
    assert all(env.action_space.sample(mask=info["action_mask"])[1] == 0 for _ in range(20))


def test_every_space_has_its_mask() -> None:
    legal = np.array([True, False, True, True, False, True])
    switches = MultiBinary(("x", "y", "z"))
    assert action_mask(switches, legal).tolist() == [0, 2, 1]
    space = action_space(switches)
    space.seed(0)
    drawn = np.stack([space.sample(mask=action_mask(switches, legal)) for _ in range(30)])
    assert drawn.min(0).tolist() == [0, 0, 1]
    assert drawn.max(0).tolist() == [0, 1, 1]
    assert action_mask(Discrete(tuple("abcdef")), legal).tolist() == [1, 0, 1, 1, 0, 1]
    assert action_space(MultiDiscrete((2, 4))) == spaces.MultiDiscrete([2, 4])
    with pytest.raises(ConfigError, match="not real numbers"):
        action_space(Continuous(("x",), (0.0,), (1.0,)))


def test_ansi_names_every_feature() -> None:
    env = GameEnv("swarm", render_mode="ansi")
    assert env.render() is None
    env.reset(seed=0)
    drawn = env.render()
    assert drawn is not None
    assert all(name in drawn for name in env.game.features)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: GameEnv("swarm", opponent="rules"), "opponent: swarm is played alone"),
        (lambda: GameEnv("swarm", side=1), "side: expected 0 to 0, got 1"),
        (lambda: GameEnv("swarm", difficulty="hrad"), "Did you mean 'hard'"),
        (lambda: GameEnv("swarm", render_mode="human"), "render_mode: expected None or 'ansi'"),
        (lambda: GameEnv("brawl"), "opponent: brawl has 2 sides"),
        (lambda: GameEnv("brawl", opponent="basd"), "Did you mean 'based'"),
        (lambda: GameEnv(Tag(), opponent="based"), "opponent: expected a Bot"),
        (lambda: GameEnv(Tag(), opponent=Chaser(), difficulty="hard"), r"options: .*'difficulty'"),
        (lambda: GameEnv("brawl", opponent="based", delay=16), "delay must be one of"),
        (lambda: GameEnv("swarm").step(0), "reset the environment first"),
    ],
)
def test_what_does_not_fit_is_named(make: Any, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        make()
