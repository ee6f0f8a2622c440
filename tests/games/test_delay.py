"""A delayed game is the same game, seen late."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.core.errors import ConfigError
from understudy.core.ops import NUMPY, Array
from understudy.games import catalog
from understudy.games.brawl import BOTS, Brawl
from understudy.games.delay import Delayed, undelayed
from understudy.games.swarm import Swarm
from understudy.testing import check_game

SEEDS = np.arange(16, dtype=np.uint32)


def actions(game: Brawl | Delayed, frame: int) -> Array:
    rng = np.random.default_rng(frame)
    return rng.integers(0, 10, (2, 1, len(SEEDS))).astype(np.int32)


@pytest.mark.parametrize("frames", [1, 4, 15])
def test_observations_are_so_many_frames_old_and_first_the_first(frames: int) -> None:
    plain, late = Brawl(), Delayed(Brawl(), frames)
    here, there = plain.start(NUMPY, SEEDS), late.start(NUMPY, SEEDS)
    seen = []
    for frame in range(60):
        seen.append(plain.observe(NUMPY, here))
        shown = late.observe(NUMPY, there)
        np.testing.assert_array_equal(shown, seen[max(frame - frames, 0)])
        for one, two in zip(here, undelayed(there), strict=True):
            np.testing.assert_array_equal(one, two)
        after, later = (
            plain.step(NUMPY, here, actions(plain, frame)),
            late.step(NUMPY, there, actions(late, frame)),
        )
        np.testing.assert_array_equal(
            plain.reward(NUMPY, here, after), late.reward(NUMPY, there, later)
        )
        here, there = after, later


def test_the_state_keeps_the_names_of_the_game() -> None:
    state = Delayed(Brawl(), 3).start(NUMPY, SEEDS)
    assert state._fields == (*Brawl().start(NUMPY, SEEDS)._fields, "past")
    assert state.past.shape == (3, 2, 64, len(SEEDS))
    plain = Brawl().start(NUMPY, SEEDS)
    assert undelayed(plain) is plain


def test_delayed_games_conform() -> None:
    check_game(Delayed(Swarm("hard"), 4), matches=12)
    check_game(catalog.make("brawl", delay="6"), matches=3, engines=False)


def test_a_delay_makes_a_bot_that_reacts_weaker() -> None:
    """`defensive` lives by its dodges: shown everything late, it takes more heavy hits."""

    def taken(game: Brawl | Delayed) -> float:
        state = game.start(NUMPY, np.arange(60, dtype=np.uint32))
        seeds = np.arange(60, dtype=np.uint32)
        total = 0.0
        for _ in range(600):
            seen = game.observe(NUMPY, state)
            fresh = Brawl().observe(NUMPY, undelayed(state))
            acts = [
                BOTS["defensive"].act(NUMPY, seen[0], seeds, state.frame),
                BOTS["aggressive"].act(NUMPY, fresh[1], seeds + np.uint32(500), state.frame),
            ]
            state = game.step(NUMPY, state, np.stack(acts))
            total += float(state.dealt[1].sum())
        return total

    assert taken(Delayed(Brawl(), 10)) > 1.1 * taken(Brawl())


def test_a_delay_of_nothing_is_an_error_that_says_so() -> None:
    with pytest.raises(ConfigError, match="delay: expected 1 frame or more, got 0"):
        Delayed(Brawl(), 0)
