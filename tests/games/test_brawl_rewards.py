"""Brawl's reward: each term by itself, and what cannot be farmed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from understudy.core.ops import NUMPY
from understudy.games.brawl import BOTS, Brawl
from understudy.games.brawl.rewards import TERMS, Weights, closing, reward

from .brawl_scenes import play, scene

GAME = Brawl()


def test_damage_is_worth_to_one_what_it_costs_the_other() -> None:
    before = scene(x=(4, 5))
    states = [before, *play(before, ["light"] * 6)]
    sums = np.zeros(2)
    for one, two in pairwise(states):
        sums += TERMS["damage"](NUMPY, one, two)[:, 0]
    assert sums[0] == 9 == -sums[1]


def test_a_knockout_and_the_result_count_for_the_right_player() -> None:
    before = scene(x=(-9, 5), y=(-7.99, 0), vy=(-5, 0), grounded=(False, True), stocks=(1, 3))
    (after,) = play(before, ["idle"])
    for name in ("knockout", "result"):
        np.testing.assert_array_equal(TERMS[name](NUMPY, before, after)[:, 0], [-1, 1])
    total = reward(NUMPY, before, after)[:, 0]
    assert total[0] < -2.5 and total[1] > 2.5


def test_closing_sums_to_the_distance_at_the_start_however_a_match_is_played() -> None:
    seeds = np.arange(40, dtype=np.uint32)
    state = GAME.start(NUMPY, seeds)
    apart = np.abs(state.x[0] - state.x[1]) + np.abs(state.y[0] - state.y[1])
    gained = np.zeros((2, 40))
    running = np.ones(40, np.bool_)
    for _ in range(GAME.max_frames):
        obs = GAME.observe(NUMPY, state)
        acts = [
            BOTS[name].act(NUMPY, obs[slot], seeds, state.frame)
            for slot, name in enumerate(("aggressive", "random"))
        ]
        after = GAME.step(NUMPY, state, np.stack(acts))
        gained += closing(NUMPY, state, after) * running
        running &= ~GAME.over(NUMPY, after)
        state = after
        if not running.any():
            break
    np.testing.assert_allclose(gained, np.broadcast_to(apart, (2, 40)), atol=1e-2)


def test_discounted_closing_is_the_start_less_a_price_for_every_frame_apart() -> None:
    """Without gamma in the term, what a learner adds up depends a little on how it is played."""
    gamma, last = 0.99, 300
    sums = []
    for chord in ("forward", "idle"):
        state = scene(x=(3, 6), facing=(1, -1), frame=GAME.max_frames - last)
        start = float(np.abs(state.x[0] - state.x[1])[0])
        gained = price = 0.0
        for step, after in enumerate(play(state, [chord] * last)):
            gained += gamma**step * float(closing(NUMPY, state, after)[0, 0])
            if step < last - 1:  # at the end there is no distance
                apart = np.abs(after.x[0] - after.x[1]) + np.abs(after.y[0] - after.y[1])
                price += (1 - gamma) * gamma**step * float(apart[0])
            state = after
        assert GAME.over(NUMPY, state).all()
        assert abs(gained - (start - price)) < 1e-3
        sums.append(gained)
    assert sums[0] > sums[1] + 0.5  # who stays apart pays


def test_walking_towards_an_idle_opponent_pays() -> None:
    before = scene()
    after = play(before, ["forward"] * 15)[-1]
    assert reward(NUMPY, before, after)[0, 0] > 0.02
    away = play(scene(facing=(-1, -1), x=(-3, 5)), ["forward"] * 10)[-1]
    assert reward(NUMPY, scene(facing=(-1, -1), x=(-3, 5)), away)[0, 0] < -0.02


def test_weights_say_what_each_term_is_worth() -> None:
    before = scene(x=(4, 5))
    after = next(state for state in play(before, ["light"] * 6) if state.dealt.any())
    nothing = Weights(damage=0, knockout=0, result=0, closing=0)
    assert not reward(NUMPY, before, after, nothing).any()
    only = Weights(damage=1, knockout=0, result=0, closing=0)
    np.testing.assert_array_equal(reward(NUMPY, before, after, only)[:, 0], [9, -9])
