"""No slot and no side is preferred: exchanged and mirrored matches are equal, bit for bit."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.core import chance
from understudy.core.ops import NUMPY, Array
from understudy.games.brawl import BOTS, Brawl, State, tables
from understudy.games.brawl.rewards import reward
from understudy.games.brawl.state import exchanged, mirrored
from understudy.learner.maths.jax_ops import JAX

MATCHES = 64
GAME = Brawl()


def assert_same(one: State, two: State, when: object) -> None:
    for field, mine, other in zip(State._fields, one, two, strict=True):
        assert np.array_equal(mine, other), (field, when)


def chance_actions(seed: int, frame: int) -> Array:
    """int32 [2, 1, B]; a chord is kept for some frames, so that players get somewhere."""
    key = chance.fold(np.arange(MATCHES, dtype=np.uint32), seed)
    draw = chance.uniform(NUMPY, chance.fold(key, frame // 5), np.arange(2, dtype=np.uint32))
    return (draw * np.float32(10)).astype(np.int32)[:, None]


def chance_switches(seed: int, frame: int) -> Array:
    """int32 [2, keys, B]: each key by itself, down for a quarter of the time, some frames long."""
    key = chance.fold(np.arange(MATCHES, dtype=np.uint32), seed)
    count = np.uint32(2 * len(tables.KEYS))
    draw = chance.uniform(NUMPY, chance.fold(key, frame // 5), np.arange(count, dtype=np.uint32))
    return (draw < np.float32(0.25)).astype(np.int32).reshape(2, len(tables.KEYS), MATCHES)


def bot_actions(names: tuple[str, str], state: State) -> Array:
    seen = GAME.observe(NUMPY, state)
    seeds = [chance.fold(state.key, slot) for slot in (1, 2)]
    acts = [
        BOTS[name].act(NUMPY, seen[slot], seeds[slot], state.frame)
        for slot, name in enumerate(names)
    ]
    return np.stack(acts)


def follow(
    choose: Callable[[State, int], Array], frames: int, seed: int = 0, game: Brawl = GAME
) -> State:
    """Play a match, its exchange and its mirror side by side, and compare all of them."""
    state = game.start(NUMPY, np.arange(MATCHES, dtype=np.uint32) + np.uint32(seed * 1000))
    swapped, flipped = exchanged(state), mirrored(NUMPY, state)
    for frame in range(frames):
        actions = choose(state, frame)
        before = state
        state = game.step(NUMPY, state, actions)
        swapped = game.step(NUMPY, swapped, actions[::-1])
        flipped = game.step(NUMPY, flipped, actions)
        assert_same(exchanged(state), swapped, frame)
        assert_same(mirrored(NUMPY, state), flipped, frame)
        if frame % 10 == 0:
            seen, gains = GAME.observe(NUMPY, state), reward(NUMPY, before, state)
            assert np.array_equal(seen[::-1], GAME.observe(NUMPY, swapped)), frame
            assert np.array_equal(seen, GAME.observe(NUMPY, flipped)), frame
            other = reward(NUMPY, exchanged(before), exchanged(state))
            assert np.array_equal(gains[::-1], other), frame
            turned = reward(NUMPY, mirrored(NUMPY, before), mirrored(NUMPY, state))
            assert np.array_equal(gains, turned), frame
    return state


@settings(max_examples=4)
@given(seed=st.integers(0, 2**20))
def test_matches_of_chance_exchange_and_mirror_exactly(seed: int) -> None:
    follow(lambda state, frame: chance_actions(seed, frame), frames=200, seed=seed % 1000)


@settings(max_examples=3)
@given(seed=st.integers(0, 2**20))
def test_matches_of_random_keys_exchange_and_mirror_exactly(seed: int) -> None:
    """Keys reach what chords do not: dashes, backdashes, taunts, ground-pounds, neutral attacks."""
    reached: set[int] = set()
    dashes = 0

    def choose(state: State, frame: int) -> Array:
        nonlocal dashes
        reached.update(np.unique(state.move).tolist())
        dashes += int((state.dash > 0).sum())
        return chance_switches(seed, frame)

    end = follow(choose, frames=150, seed=seed % 1000, game=Brawl("keys"))
    first = tables.FIRST_MOVE
    wanted = {first + tables.MOVES.index(name) for name in ("light_neutral", "heavy_down")}
    assert wanted | {tables.TAUNT_MOVE, first + tables.GROUND_POUND} <= reached
    assert dashes > 100 and (end.damage.any() or (end.stocks < tables.STOCKS).any())


@pytest.mark.parametrize("names", [("based", "aggressive"), ("defensive", "kiting")])
def test_matches_of_skill_exchange_and_mirror_exactly(names: tuple[str, str]) -> None:
    follow(lambda state, frame: bot_actions(names, state), frames=300)


@functools.cache
def compiled() -> Any:
    return jax.jit(functools.partial(GAME.step, JAX))


def test_they_do_under_jax_too() -> None:
    step = compiled()
    state = GAME.start(NUMPY, np.arange(MATCHES, dtype=np.uint32))
    for frame in range(200):
        actions = chance_actions(3, frame)
        after = State(*map(np.asarray, step(state, actions)))
        swapped = State(*map(np.asarray, step(exchanged(state), actions[::-1])))
        flipped = State(*map(np.asarray, step(mirrored(NUMPY, state), actions)))
        assert_same(exchanged(after), swapped, frame)
        assert_same(mirrored(NUMPY, after), flipped, frame)
        state = after


def test_a_player_in_the_very_middle_is_no_exception() -> None:
    """x = 0 has no side: who is knocked out beside it returns to where its facing says."""
    state = GAME.start(NUMPY, np.arange(MATCHES, dtype=np.uint32))
    x = np.stack([np.zeros(MATCHES), np.full(MATCHES, 10.99)]).astype(np.float32)
    state = state._replace(x=x, vx=np.sign(x) * np.float32(20), y=state.y + np.float32(3))
    actions = np.zeros((2, 1, MATCHES), np.int32)
    after = GAME.step(NUMPY, state, actions)
    assert after.knocked_out[1].all() and not after.knocked_out[0].any()
    assert_same(mirrored(NUMPY, after), GAME.step(NUMPY, mirrored(NUMPY, state), actions), "mirror")
    assert_same(exchanged(after), GAME.step(NUMPY, exchanged(state), actions), "exchange")
    assert set(after.x[1]) == {np.float32(4.5), np.float32(-4.5)}


def test_equal_players_in_mirrored_places_draw() -> None:
    """The old game gave its mirror match to slot 0; here both fall in the same frame."""
    seeds = np.arange(MATCHES, dtype=np.uint32)
    state = GAME.start(NUMPY, seeds)
    side = state.x[:1]
    state = state._replace(
        tilt=state.tilt * np.float32(0),
        platform=state.platform * np.array([[0], [1]], np.float32),
        x=np.concatenate([side, -side]),
        facing=np.concatenate([state.facing[:1], -state.facing[:1]]),
        wait=np.concatenate([state.wait[:1]] * 2),
    )
    for frame in range(700):
        actions = np.concatenate([chance_actions(5, frame)[:1]] * 2)
        state = GAME.step(NUMPY, state, actions)
        assert np.array_equal(state.stocks[0], state.stocks[1]), frame
        assert np.array_equal(state.x[0], -state.x[1]), frame
    assert (state.stocks < 3).any()
    assert not GAME.score(NUMPY, state).any()
