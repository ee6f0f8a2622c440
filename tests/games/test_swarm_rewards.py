"""Swarm's reward: named terms that add up, small beside the result, and not to be farmed."""

from __future__ import annotations

import numpy as np

from understudy.core.ops import NUMPY
from understudy.games.swarm import BOTS, Swarm, rewards
from understudy.games.swarm.balance import play, seeds_held_out

SEEDS = np.arange(400, dtype=np.uint32)


def test_reward_is_the_squashed_sum_of_its_named_terms_and_the_result() -> None:
    game = Swarm()
    state = game.start(NUMPY, SEEDS)
    results = set()
    for _ in range(game.max_frames):
        actions = BOTS["rules"].act(NUMPY, game.observe(NUMPY, state)[0], SEEDS, state.frame)
        after = game.step(NUMPY, state, actions[None])
        terms = rewards.terms(NUMPY, state, after)
        assert terms.shape == (len(rewards.WEIGHTS), len(SEEDS))
        total = sum(w * row for w, row in zip(rewards.WEIGHTS.values(), terms, strict=True))
        score = game.score(NUMPY, after)[0]
        result = np.select([score > 0, score < 0], [10.0, -5.0], 0.0)
        results |= set(result.tolist())
        expected = 0.1 * np.tanh(total / 0.1) + result
        got = game.reward(NUMPY, state, after)[0]
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
        assert (np.abs(got - result) <= 0.1 + 1e-6).all()
        state = after
    assert results == {10.0, -5.0, 0.0}


def test_leads_and_ground_are_paid_back_when_lost() -> None:
    """Over a match they sum to the difference between its ends, whatever happened in between."""
    game = Swarm()
    first = state = game.start(NUMPY, SEEDS)
    total = np.zeros((5, len(SEEDS)))
    rows = [0, 1, 2, 3, list(rewards.WEIGHTS).index("map_control")]
    for _ in range(80):
        actions = BOTS["random"].act(NUMPY, game.observe(NUMPY, state)[0], SEEDS, state.frame)
        after = game.step(NUMPY, state, actions[None])
        total += rewards.terms(NUMPY, state, after)[rows]
        state = after
    np.testing.assert_allclose(total, rewards.terms(NUMPY, first, state)[rows], atol=1e-4)
    assert np.abs(total).max() < 1


def test_every_win_is_worth_more_than_every_draw_and_every_draw_more_than_a_typical_loss() -> None:
    for name in ("rules", "random", "economy", "aggressive"):
        outcome = play(Swarm(), BOTS[name], seeds_held_out(600))
        won, lost = outcome.reward[outcome.score > 0], outcome.reward[outcome.score < 0]
        drawn = outcome.reward[outcome.score == 0]
        assert won.min() > drawn.max(), name
        assert drawn.mean() > lost.max() - 1.5, name
        assert drawn.mean() > lost.mean() + 2, name
        assert drawn.max() < 0, name
