"""A custom game by name as a Gymnasium and a PettingZoo environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from understudy.core.errors import ConfigError

pytest.importorskip("gymnasium")
pytest.importorskip("pettingzoo")
pytestmark = pytest.mark.usefixtures("fresh_code")
GAME = f"{Path(__file__).parents[3] / 'docs' / 'examples' / 'tictactoe.py'}:TicTacToe"


def test_a_custom_game_is_an_environment_with_its_bots() -> None:
    from understudy.adapters.gymnasium.env import GameEnv

    env = GameEnv(GAME, opponent="rules")
    _, info = env.reset(seed=3)
    over, frames = False, 0
    while not over:
        action = env.action_space.sample(mask=info["action_mask"])
        _, _, over, _, info = env.step(action)
        frames += 1
    assert 5 <= frames <= 9 and info["score"] in (-1.0, 0.0, 1.0)
    with pytest.raises(ConfigError, match="tictactoe has random, rules, not 'best'"):
        GameEnv(GAME, opponent="best")


def test_both_sides_of_it_are_agents() -> None:
    from understudy.adapters.pettingzoo.env import parallel_env

    env = parallel_env(GAME)
    _, infos = env.reset(seed=3)
    assert env.possible_agents == ["player_0", "player_1"]
    waits = infos["player_1"]["action_mask"]
    assert waits.tolist() == [0] * 9 + [1], "the second player waits"
