"""Matches in environments: turns of parallel and AEC environments, players on sides, and bots."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pettingzoo.classic import connect_four_v3, tictactoe_v3
from pettingzoo.utils.conversions import parallel_to_aec
from policy.makers import MLP, STRATEGIST, TRANSFORMER, lively_policy
from training.environments.contest import ROUNDS, Contest

from understudy.adapters.environments.bots import load_bots
from understudy.adapters.environments.matches import EnvironmentMatches, by_rounds, play_matches
from understudy.adapters.environments.sides import (
    BLOCK,
    PolicyRows,
    PolicySide,
    RandomSide,
    ScriptedSide,
)
from understudy.adapters.environments.turns import AecTurns, ParallelTurns, turns_of
from understudy.core.arrays import NDArray
from understudy.core.errors import ConfigError, InputError
from understudy.core.ops import NUMPY
from understudy.core.spaces import Discrete
from understudy.policy.network import emptied
from understudy.policy.spec import AnyNetwork, PolicySpec


def seeds(count: int) -> NDArray:
    return np.arange(count, dtype=np.uint32)


def random_series(make: Callable[[], Any], count: int, matches: int) -> Any:
    environments = EnvironmentMatches(make, range(count))
    one, two = (RandomSide(environments.spaces, rows=environments.rows, seed=s) for s in (1, 2))
    return by_rounds(play_matches(environments, one, two, matches // count, seeds=seeds(count)))


def test_parallel_and_aec_environments_play_the_same_matches() -> None:
    parallel = random_series(Contest, 3, 12)
    in_turn = random_series(lambda: parallel_to_aec(Contest()), 3, 12)
    assert isinstance(turns_of(Contest()), ParallelTurns)
    assert isinstance(turns_of(parallel_to_aec(Contest())), AecTurns)
    assert [one.finished.sides for one in parallel] == [one.finished.sides for one in in_turn]
    assert [one.path for one in parallel] == [one.path for one in in_turn]
    assert {one.finished.steps for one in parallel} == {ROUNDS}
    assert {one.finished.steps for one in in_turn} == {2 * ROUNDS}, "one step a turn"
    assert {one.score for one in parallel} == {-1, 0, 1}


@pytest.mark.parametrize("game", [tictactoe_v3, connect_four_v3])
def test_board_games_are_played_by_their_masks(game: Any) -> None:
    """An illegal move ends a match at once, and the side that made it loses alone."""
    matches = random_series(game.env, 4, 40)
    assert all(sum(one.finished.sides) == 0.0 for one in matches)
    least = 5 if game is tictactoe_v3 else 7
    assert all(one.finished.steps >= least for one in matches)
    assert len({one.path for one in matches}) > 35
    assert {one.side for one in matches} == {0, 1}


@pytest.mark.parametrize("network", [MLP, TRANSFORMER, STRATEGIST], ids=lambda n: type(n).__name__)
def test_a_row_is_computed_alike_beside_any_other_rows(network: AnyNetwork) -> None:
    """Bit for bit: workers hold other rows than a session without them."""
    rng = np.random.default_rng(0)
    spec = PolicySpec(("a", "b", "c"), Discrete(("x", "y")), network)
    policy = lively_policy(spec, 1)
    count = BLOCK + 5
    whole, some = PolicyRows(policy, count), PolicyRows(policy, count)
    rows, part = np.arange(count), np.array([2, 3, BLOCK - 1, BLOCK, BLOCK + 4])
    for step in range(4):
        obs = rng.normal(size=(count, 3)).astype(np.float32)
        first = rng.random(count) < (1.0 if step == 0 else 0.3)
        uniforms = rng.random((count, 1), dtype=np.float32)
        one = whole.act(rows, obs, first, uniforms=uniforms)
        two = some.act(part, obs[part], first[part], uniforms=uniforms[part])
        np.testing.assert_array_equal(one.values[part], two.values)
        np.testing.assert_array_equal(one.log_probs[part], two.log_probs)
        np.testing.assert_array_equal(one.actions[part], two.actions)


def test_rows_remember_what_a_policy_would_and_a_look_ahead_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    spec = PolicySpec(("a",), Discrete(("x", "y")), TRANSFORMER)
    policy = lively_policy(spec, 1)
    rows, memory = PolicyRows(policy, 3), policy.begin(3)
    at = np.arange(3)
    for step in range(5):
        obs = rng.normal(size=(3, 1)).astype(np.float32)
        first = np.array([step == 0, step in (0, 3), step == 0])
        expected = policy.act(obs, emptied(NUMPY, memory, first))
        rows.act(at, obs + 9.0, first, keep=False)
        np.testing.assert_array_equal(rows.act(at, obs, first).values, expected.values)
        memory = expected.memory


def test_a_policy_on_a_side_obeys_masks_and_takes_turns() -> None:
    environments = EnvironmentMatches(connect_four_v3.env, range(3))
    spec = PolicySpec(environments.spaces.features, environments.spaces.actions, MLP)
    assert len(spec.features) == 84
    player = PolicySide(lively_policy(spec, 1), environments.spaces, rows=6, seed=1)
    other = RandomSide(environments.spaces, rows=6, seed=2)
    matches = by_rounds(play_matches(environments, player, other, 3, seeds=seeds(3)))
    assert all(sum(one.finished.sides) == 0.0 for one in matches)
    assert [one.side for one in matches] == [0, 1, 0, 1, 0, 1, 0, 1, 0]


def middle(observation: Any, legal: NDArray, rng: np.random.Generator) -> Any:
    return min(np.flatnonzero(legal), key=lambda option: abs(int(option) - 3))


def test_any_callable_is_a_bot() -> None:
    environments = EnvironmentMatches(connect_four_v3.env, range(4))
    bot = ScriptedSide("middle", middle, environments.spaces, seed=0)
    other = RandomSide(environments.spaces, rows=8, seed=2)
    played = by_rounds(play_matches(environments, bot, other, 10, seeds=seeds(4)))
    scores = [one.score for one in played]
    assert scores.count(1) > 25, "the middle wins most matches v random"


@pytest.mark.parametrize(
    ("bot", "expected"),
    [
        (lambda obs, legal, rng: 9, r"--bots: odd chose 9, which is not legal.*Discrete\(7\)"),
        (lambda obs, legal, rng: obs["x"], "--bots: odd failed with KeyError: 'x'"),
        (lambda obs, legal, rng: None, "odd chose None, which is not legal"),
    ],
)
def test_a_bot_that_errs_in_a_match_is_named(bot: Any, expected: str) -> None:
    environments = EnvironmentMatches(connect_four_v3.env, range(1))
    odd = ScriptedSide("odd", bot, environments.spaces, seed=0)
    with pytest.raises(InputError, match=expected):
        play_matches(environments, odd, odd, 1, seeds=seeds(1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def a(observation, legal, rng): return 0\n", "expected a mapping BOTS"),
        ("BOTS = 3\n", "expected a mapping BOTS.* got int"),
        ("BOTS = {'a': 3}\n", r"a: expected a callable a\(observation, legal, rng\).*got 3"),
        ("BOTS = {'a': lambda obs: 0}\n", r"but it takes \(obs\)"),
        ("BOTS = {'random': lambda o, l, r: 0}\n", "there is an opponent 'random' already"),
        ("BOTS = {'step-7': lambda o, l, r: 0}\n", "'step-7' cannot be the name of a bot"),
        ("BOTS = {\n", "cannot be imported"),
    ],
)
def test_a_bad_file_of_bots_says_what_is_wrong(text: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong_bots.py"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=expected) as raised:
        load_bots([str(path)])
    assert str(raised.value).startswith(f"--bots {path}: ")
    with pytest.raises(ConfigError, match="--bots: there is no file"):
        load_bots([str(tmp_path / "none.py")])
