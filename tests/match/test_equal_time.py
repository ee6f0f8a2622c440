"""The benchmark of equal time: the peer plays our Gymnasium brawl, and the peer is who is met."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from understudy.adapters.gymnasium.env import GameEnv
from understudy.core.arrays import NDArray, to_npz
from understudy.core.errors import FileFormatError
from understudy.core.ops import NUMPY
from understudy.core.spaces import Discrete
from understudy.games import catalog
from understudy.games.base import State
from understudy.match.evaluate import judge
from understudy.match.players import BotPlayer, PlayerView

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
    view = PlayerView(
        obs=np.zeros((64, count), np.float32),
        legal=np.ones((10, count), np.bool_),
        seeds=np.arange(count, dtype=np.uint32),
        side=np.zeros(count, np.bool_),
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


def wanted(**values: Any) -> Namespace:
    """The arguments of the benchmark."""
    usual = {"seed": 7, "seeds": 3, "only": None, "run": None, "peer_model": None}
    budget = {"minutes": 20.0, "cpu_minutes": None, "matches": 500}
    return Namespace(**(usual | budget | values))


def test_three_seeds_train_on_each_side_and_the_time_is_announced(
    benchmark: Any, tmp_path: Path
) -> None:
    equal_time = benchmark("equal_time")
    planned = equal_time.plan(wanted(), tmp_path)
    assert [seed for seed, _ in planned["ours"]] == [7, 8, 9]
    assert planned["peer"][2] == (9, tmp_path / "peer-9.npz")
    announced = equal_time.announced(planned, wanted())
    assert "120 min in all, then 9 pairings of 500 matches" in announced


def test_one_training_at_a_time_and_the_matches_later(benchmark: Any, tmp_path: Path) -> None:
    equal_time = benchmark("equal_time")
    alone = wanted(only="peer", seed=8, peer_model=[tmp_path / "x.npz"])
    planned = equal_time.plan(alone, tmp_path)
    assert planned == {"ours": [], "peer": [(8, tmp_path / "x.npz")]}
    assert "20 min in all, no matches" in equal_time.announced(planned, alone)
    there = wanted(run=[tmp_path] * 3, peer_model=[tmp_path / "x.npz"] * 2)
    planned = equal_time.plan(there, tmp_path)
    assert planned == {"ours": [], "peer": []}
    assert "0 min in all, then 6 pairings" in equal_time.announced(planned, there)


def test_the_peer_trains_with_the_faster_number_of_threads(benchmark: Any) -> None:
    threads_of = benchmark("equal_time").threads_of
    rates = {1: 4000.0, 2: 3000.0}

    def chosen(settings: list[str], *, cpu: bool = False, cores: int = 2) -> tuple[int, Any]:
        told: tuple[int, Any] = threads_of(
            cpu=cpu, settings=settings, cores=cores, steps_s=lambda threads: rates[threads]
        )
        return told

    assert chosen([]) == (1, {"1": 4000.0, "2": 3000.0})
    assert chosen(["threads=2"]) == (2, {})
    assert chosen([], cpu=True) == (1, {})
    assert chosen([], cores=1) == (1, {})
    rates[2] = 5000.0
    assert chosen(["dummy=true"])[0] == 2


def test_every_one_of_ours_meets_every_peer(benchmark: Any) -> None:
    player, pairings = benchmark("equal_time_player"), benchmark("equal_time_pairings")

    def maker(seed: int) -> Any:
        return lambda sampled: player.PeerPlayer(weights(seed), "tanh", TEN, sampled)

    few: Any = {"matches": 2, "bot_matches": 0, "seed": 3, "game": Short()}
    met = pairings.meet([maker(0), maker(1)], [maker(1), maker(2), maker(3)], **few)
    for rows in met["pairings"].values():
        assert [[one["matches"] for one in row] for row in rows] == [[2] * 3] * 2
    alone = pairings.meet([maker(1)], [maker(3)], **few)
    assert alone["pairings"]["likeliest"][0][0] == met["pairings"]["likeliest"][1][2]


def test_the_summary_has_the_mean_the_worst_pairing_and_an_interval_over_seeds(
    benchmark: Any,
) -> None:
    pairings = benchmark("equal_time_pairings")

    def summed(wins: list[list[int]]) -> Any:
        rows = [
            [{"wins": one, "matches": 500, "win_rate": one / 500} for one in row] for row in wins
        ]
        return pairings.summary(rows)

    even = summed([[450] * 3] * 3)
    assert even["mean"] == 0.9
    low, high = even["interval"]
    assert 0.87 < low < 0.9 < high < 0.93
    uneven = summed([[500] * 3, [500] * 3, [350, 351, 349]])
    assert uneven["mean"] == 0.9
    assert (uneven["worst"]["ours"], uneven["worst"]["peer"]) == (2, 2)
    assert uneven["interval"][0] < 0.8, "one weak seed of three leaves a wide interval"
    one = summed([[500]])["interval"]
    assert 0.99 < one[0] < one[1] <= 1.0
