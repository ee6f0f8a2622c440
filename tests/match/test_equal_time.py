"""The benchmark of equal time: the peer plays our Gymnasium brawl, and the peer is who is met."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from understudy.core.arrays import NDArray, to_npz
from understudy.core.errors import FileFormatError
from understudy.core.ops import NUMPY
from understudy.core.spaces import Discrete
from understudy.games import catalog
from understudy.games.base import State
from understudy.games.gymnasium_env import GameEnv
from understudy.match.evaluate import judge
from understudy.match.players import BotPlayer, View

COLUMNS, FRAMES = 6, 200
TEN = Discrete(tuple("abcdefghij"))


class Short:
    """Brawl that ends by the clock after half of `FRAMES`: many matches in few frames."""

    def __init__(self) -> None:
        self._game = catalog.make("brawl")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._game, name)

    def over(self, ops: Any, state: State) -> NDArray:
        ended: NDArray = self._game.over(ops, state) | (state.frame >= FRAMES // 2)
        return ended


def test_matches_stepped_at_once_are_the_gymnasium_game(benchmark: Any) -> None:
    game: Any = Short()
    bots = catalog.bots("brawl")
    matches = benchmark("equal_time_matches").Matches(COLUMNS, seed=5, game=game)
    rng = np.random.default_rng(0)
    seen = matches.reset()
    alone: list[GameEnv] = []

    def follow(column: int) -> NDArray:
        """The same match in an environment of its own; its first observation."""
        opponent = bots[matches.names[matches.opponents[column]]]
        env = GameEnv(game, opponent=opponent, side=int(matches.side[column]), bound=1.0)
        env.reset(seed=0)
        env._seeds = matches.seeds[column : column + 1].copy()
        env._state = env.game.start(NUMPY, env._seeds)
        alone[column : column + 1] = [env]
        return env._seen()[0]

    for column in range(COLUMNS):
        np.testing.assert_array_equal(seen[column], follow(column))
    ends, met = 0, set(matches.opponents.tolist())
    for _ in range(FRAMES):
        actions = rng.integers(0, 10, COLUMNS)
        seen, rewards, over, ended = matches.step(actions)
        results = {one.column: one for one in ended}
        for column, env in enumerate(alone):
            obs, reward, done, _, info = env.step(actions[column])
            assert done == over[column]
            assert reward == rewards[column]
            if done:
                ends += 1
                assert results[column].score == info["score"]
                np.testing.assert_array_equal(results[column].last, obs)
                obs = follow(column)
            np.testing.assert_array_equal(seen[column], obs)
        met |= set(matches.opponents.tolist())
    assert ends >= COLUMNS
    assert len(met) > 3


def weights(seed: int = 0, features: int = 64, hidden: int = 8) -> dict[str, NDArray]:
    rng = np.random.default_rng(seed)
    shapes = {
        "lstm.input": (features, 4 * hidden), "lstm.hidden": (hidden, 4 * hidden),
        "lstm.b": (4 * hidden,), "mlp.0.w": (hidden, 5), "mlp.0.b": (5,),
        "action.w": (5, 10), "action.b": (10,),
    }  # fmt: skip
    return {name: rng.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}


def slow_logits(params: dict[str, NDArray], frames: NDArray) -> NDArray:
    """One match, frame by frame and unit by unit as the textbook has it; the last logits."""
    size = len(params["lstm.hidden"])
    hidden, cell = np.zeros(size), np.zeros(size)
    for obs in frames:
        gates = obs @ params["lstm.input"] + hidden @ params["lstm.hidden"] + params["lstm.b"]
        enter, forget, proposal, leave = np.split(gates, 4)
        opened = [1 / (1 + np.exp(-gate)) for gate in (enter, forget, leave)]
        cell = opened[1] * cell + opened[0] * np.tanh(proposal)
        hidden = opened[2] * np.tanh(cell)
    latent = np.maximum(hidden @ params["mlp.0.w"] + params["mlp.0.b"], 0)
    logits: NDArray = latent @ params["action.w"] + params["action.b"]
    return logits


def test_the_forward_is_that_of_a_lstm(benchmark: Any) -> None:
    params = weights()
    player = benchmark("equal_time_player").PeerPlayer(params, "relu", TEN)
    frames = np.random.default_rng(1).uniform(-1, 1, (20, 3, 64)).astype(np.float32)
    memory = player.memory(NUMPY, 3)
    for obs in frames:
        logits, memory = player.logits(NUMPY, player.weights, obs, memory)
    for match in range(3):
        np.testing.assert_allclose(logits[match], slow_logits(params, frames[:, match]), atol=1e-4)


def test_a_saved_peer_plays_alike_whoever_else_is_judged(benchmark: Any, tmp_path: Path) -> None:
    path = tmp_path / "peer.npz"
    path.write_bytes(to_npz(weights() | {"activation": np.array("tanh")}))
    load = benchmark("equal_time_player").load
    game: Any = Short()
    bots = catalog.bots("brawl")
    drawn = load(path, game.actions, sampled=True)
    against = {name: BotPlayer(bots[name]) for name in ("constant", "aggressive")}
    both = judge(game, drawn, against, matches=4, seed=1)
    alone = judge(game, drawn, {"aggressive": against["aggressive"]}, matches=4, seed=1)
    assert both["aggressive"] == alone["aggressive"]
    assert both["aggressive"].distinct == 4


def test_draws_follow_the_policy(benchmark: Any) -> None:
    params = weights() | {"action.w": np.zeros((5, 10), np.float32)}
    params["action.b"] = np.log(np.array([0.3, 0.7] + [1e-9] * 8, np.float32))
    player = benchmark("equal_time_player").PeerPlayer(params, "tanh", TEN, sampled=True)
    count = 4000
    view = View(
        obs=np.zeros((64, count), np.float32),
        legal=np.ones((10, count), np.bool_),
        seeds=np.arange(count, dtype=np.uint32),
        frame=np.zeros(count, np.int32),
    )
    chosen, _ = player.act(NUMPY, player.weights, view, player.memory(NUMPY, count))
    assert chosen.shape == (1, count)
    assert abs(np.mean(chosen == 1) - 0.7) < 0.03


def test_a_file_that_is_no_peer_is_told_apart(benchmark: Any, tmp_path: Path) -> None:
    path = tmp_path / "peer.npz"
    path.write_bytes(to_npz({"activation": np.array("tanh"), "w": np.zeros(2, np.float32)}))
    with pytest.raises(FileFormatError, match=r"equal_time_peer\.py"):
        benchmark("equal_time_player").load(path, TEN)


def test_a_peer_that_others_slowed_down_is_no_result(benchmark: Any) -> None:
    starved = benchmark("equal_time").starved
    told = {"budget_of": "wall", "cores_used": 1.0, "settings": {"threads": 2, "dummy": False}}
    assert starved(told)
    assert not starved(told | {"settings": {"threads": 2, "dummy": True}})  # it has no use for two
    assert not starved(told | {"cores_used": 1.9})
    assert not starved(told | {"budget_of": "cpu"})
    assert not starved({"model": "peer-020.npz"})
