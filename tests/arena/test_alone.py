"""Games of one player in the arena: nothing is met, everything is counted, and it replays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest

from understudy.arena.arena import Arena, check
from understudy.arena.mix import parse
from understudy.arena.recording import replayed
from understudy.core import chance
from understudy.core.config import Config, with_values
from understudy.core.errors import ConfigError
from understudy.core.opponents import GAME
from understudy.core.ops import NUMPY, Array, Ops
from understudy.core.spaces import Discrete
from understudy.games.moments import RewardSet, own_reward
from understudy.learner.trainer import Trainer
from understudy.match.replaying import checksum
from understudy.policy.mlp import Mlp
from understudy.policy.spec import AnyNetwork, PolicySpec
from understudy.policy.strategist import Strategist
from understudy.testing import check_game

CONFIG = with_values(
    Config(),
    {
        "train.games": 16,
        "train.segment": 16,
        "train.record": 4,
        "train.checkpoint_steps": 64,
        "learner.minibatches": 2,
        "learner.epochs": 1,
        "learner.learning_rate": 5e-3,
        "learner.learning_rate_max": 1e-2,
    },
)


class Walk(NamedTuple):
    frame: Array
    place: Array
    goal: Array


class Seek:
    """One player walks a line to a goal on its left or right: right to see, easy to learn."""

    name = "seek"
    version = 1
    players = 1
    features = ("goal", "place")
    actions = Discrete(("left", "right"))
    max_frames = 6

    def start(self, ops: Ops, seeds: Array) -> Walk:
        draw = chance.uniform(ops, chance.fold(seeds, 1), np.zeros(1, np.uint32))[0]
        one = ops.xp.ones_like(draw)
        zero = (one * np.float32(0)).astype(ops.xp.int32)
        return Walk(zero, zero, ops.xp.where(draw < 0.5, -one, one))

    def step(self, ops: Ops, state: Walk, actions: Array) -> Walk:
        stride = actions[0, 0] * np.int32(2) - np.int32(1)
        return state._replace(frame=state.frame + np.int32(1), place=state.place + stride)

    def observe(self, ops: Ops, state: Walk) -> Array:
        return ops.xp.stack([state.goal, state.place.astype(ops.xp.float32)])[None]

    def legal(self, ops: Ops, state: Walk) -> Array:
        return ops.xp.ones((1, 2, *state.place.shape), ops.xp.bool_)

    def reward(self, ops: Ops, before: Walk, after: Walk) -> Array:
        return self.score(ops, after)

    def over(self, ops: Ops, state: Walk) -> Array:
        return (abs(state.place) >= 3) | (state.frame >= 6)

    def score(self, ops: Ops, state: Walk) -> Array:
        there = state.place.astype(ops.xp.float32) * state.goal
        return (there >= 3).astype(ops.xp.float32)[None] - (there <= -3).astype(ops.xp.float32)

    def tags(self, state: Any, index: int) -> Mapping[str, str]:
        return {}


def arena(network: AnyNetwork) -> Arena:
    game = Seek()
    spec = PolicySpec(game.features, game.actions, network)
    made = Arena(
        Trainer(spec, CONFIG.learner),
        CONFIG,
        game,
        {},
        meets_itself=False,
        rewards=RewardSet.of({"reward": own_reward}),
        seed=3,
    )
    made.order(parse("all", (GAME,)), np.ones(1, np.float32))
    return made


def test_the_toy_is_sound() -> None:
    check_game(Seek())


@pytest.mark.parametrize(
    "network",
    [
        Mlp(widths=(16,)),
        Strategist(width=8, heads=2, layers=1, feed=8, window=5, latent=4, lstm=6,
                   head_widths=(8,), opponent=2, kinds=2),
    ],
    ids=["mlp", "strategist"],
)  # fmt: skip
def test_matches_of_one_player_are_counted_recorded_and_replayed(network: AnyNetwork) -> None:
    playing = arena(network)
    iterations = [playing.iterate() for _ in range(4)]
    for iteration in iterations:
        assert set(iteration.results) == {GAME} and iteration.residual == 0.0
        assert iteration.metrics.get("opponent_loss", 0.0) == 0.0, "there is nobody to foretell"
    ended = [match for iteration in iterations for match in iteration.ended]
    results = [iteration.results[GAME] for iteration in iterations]
    assert len(ended) == sum(sum(result.counts) for result in results) > 50
    assert {match.score for match in ended} <= {-1, 0, 1}
    assert sum(result.terms["reward"] for result in results) == sum(m.score for m in ended)
    recorded = playing.recorder.take()
    assert len(recorded) > 3, "of columns with odd numbers, too"
    for match in recorded:
        assert match.actions.shape[1:] == (1, 1) and match.opponent == GAME and match.side == 0
        states = replayed(playing.plan.game, match.seed, match.actions)
        sums = [int(checksum(NUMPY, state)[0]) for state in states[1:]]
        assert sums == match.checksums.tolist()
        assert playing.plan.game.score(NUMPY, states[-1])[0, 0] == match.score


def test_a_game_of_one_is_learned() -> None:
    playing = arena(Mlp(widths=(16,)))
    wins = [playing.iterate().results[GAME].counts[0] for _ in range(80)]
    matches = [sum(playing.iterate().results[GAME].counts) for _ in range(5)]
    assert sum(wins[:5]) < 0.7 * sum(matches)
    assert sum(wins[-5:]) > 0.9 * sum(matches)


def test_one_player_cannot_meet_itself_and_three_are_too_many() -> None:
    with pytest.raises(ConfigError, match="seek has one player, who cannot meet itself"):
        check(Seek(), CONFIG, meets_itself=True)

    class Crowd(Seek):
        players = 3

    with pytest.raises(ConfigError, match="one or two players; seek has 3"):
        check(Crowd(), CONFIG, meets_itself=False)
