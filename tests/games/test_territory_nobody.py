"""Rows that are nobody: they feed no parasite, mine nothing, and are neither seen nor counted."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY, Array, Ops, mapped
from understudy.games.territory import BOTS, State, Territory, tables
from understudy.games.territory.imagine import imagine
from understudy.games.territory.observation import Seen
from understudy.games.territory.state import at_work, on_guard
from understudy.learner.maths.jax_ops import JAX

GAME = Territory()
SEEDS = np.arange(40, dtype=np.uint32)
TICKS = 120


class Tick(NamedTuple):
    """One tick of B matches, and all that anybody is told of it."""

    after: Any
    seen: Any
    observed: Array
    reward: Array


Play = Callable[[State, Array], Tick]


def _tick(ops: Ops, state: State, actions: Array) -> Tick:
    after = GAME.step(ops, state, actions)
    return Tick(
        after,
        GAME.seen(ops, after),
        GAME.observe(ops, after),
        GAME.reward(ops, state, after),
    )


@pytest.fixture(params=["numpy", "jax"], scope="module")
def play(request: pytest.FixtureRequest) -> Play:
    """A tick under one of the engines, told in NumPy."""
    if request.param == "numpy":
        return functools.partial(_tick, NUMPY)
    compiled = jax.jit(functools.partial(_tick, JAX))
    return lambda state, actions: mapped(np.asarray, compiled(state, actions))


def ticks(play: Play, bot: str, state: State | None = None) -> Iterator[tuple[State, Array, Tick]]:
    """Before, actions and tick, over and over."""
    state = GAME.start(NUMPY, SEEDS) if state is None else state
    for _ in range(TICKS):
        chosen = BOTS[bot].act(NUMPY, GAME.observe(NUMPY, state)[0], SEEDS, state.frame)
        tick = play(state, chosen[None])
        yield state, chosen[None], tick
        state = tick.after


@functools.cache
def imagined() -> State:
    """States that have the looks of matches under way; some have very few workers."""
    state = GAME.start(NUMPY, SEEDS)
    for _, _, tick in ticks(functools.partial(_tick, NUMPY), "queen"):
        state = tick.after
    looks = GAME.observe(NUMPY, state)[0]
    looks[5:25, ::2] = 0.0
    looks[5:25:5, ::2] = -1 / 255
    return imagine(NUMPY, looks, SEEDS)


def scrambled(state: State, rng: np.random.Generator) -> State:
    """The same match, but whoever is nobody stands, works and waits anywhere."""

    def but(somebody: NDArray, field: NDArray, other: NDArray) -> NDArray:
        return np.where(somebody, field, other.astype(field.dtype))

    def anywhere(field: NDArray, most: int) -> NDArray:
        return rng.integers(0, most, field.shape)

    works, guards, lives = at_work(state), on_guard(state), state.health > 0
    employed = np.arange(tables.PROTECTORS_MOST)[:, None] < state.protectors
    return state._replace(
        worker=but(works, state.worker, anywhere(state.worker, tables.GRID)),
        errand=but(works, state.errand, anywhere(state.errand, tables.VEINS)),
        mining=but(works, state.mining, anywhere(state.mining, 2)),
        protector=but(guards, state.protector, anywhere(state.protector, tables.GRID)),
        absence=but(employed, state.absence, anywhere(state.absence, tables.ABSENCE)),
        parasite=but(lives, state.parasite, anywhere(state.parasite, tables.GRID)),
        kind=but(lives, state.kind, anywhere(state.kind, len(tables.KINDS))),
    )


def somebody(state: State) -> dict[str, NDArray]:
    """All of a state that is anybody's; what is nobody's is 0."""
    works, guards, lives = at_work(state), on_guard(state), state.health > 0
    employed = np.arange(tables.PROTECTORS_MOST)[:, None] < state.protectors
    return state._asdict() | {
        "worker": state.worker * works,
        "errand": state.errand * works,
        "mining": state.mining & works,
        "protector": state.protector * guards,
        "absence": state.absence * employed,
        "parasite": state.parasite * lives,
        "kind": state.kind * lives,
    }


@pytest.mark.parametrize("start", ["played", "imagined"])
@pytest.mark.parametrize("bot", ["queen", "wary"])
def test_where_nobody_stands_changes_nothing(play: Play, bot: str, start: str) -> None:
    rng = np.random.default_rng(5)
    state = imagined() if start == "imagined" else None
    for before, actions, tick in ticks(play, bot, state):
        again = play(scrambled(before, rng), actions)
        for name, value in somebody(tick.after).items():
            np.testing.assert_array_equal(somebody(again.after)[name], value, err_msg=name)
        for field in Seen._fields:
            np.testing.assert_array_equal(
                getattr(again.seen, field), getattr(tick.seen, field), err_msg=field
            )
        np.testing.assert_array_equal(again.observed, tick.observed)
        np.testing.assert_array_equal(again.reward, tick.reward)


@pytest.mark.parametrize("start", ["played", "imagined"])
@pytest.mark.parametrize("bot", ["queen", "random"])
def test_whoever_is_seen_accounts_for_all_that_is_drained_and_mined(
    play: Play, bot: str, start: str
) -> None:
    """The player's side of a tick from what a client reports, and from nothing else."""
    state = imagined() if start == "imagined" else None
    drains = 0.0
    for before, _, (after, seen, _, _) in ticks(play, bot, state):
        np.testing.assert_array_equal(seen.workers.sum(axis=0), before.workers)
        assert (seen.mining <= seen.workers).all()
        assert (seen.protectors.sum(axis=0) <= before.protectors).all()
        np.testing.assert_array_equal(after.minerals[1] - before.minerals[1], seen.mining.sum(0))
        np.testing.assert_array_equal(after.minerals[0], before.minerals[1])

        feeding = (seen.energy_parasites * (seen.workers > 0)).sum(axis=0)
        upkeep = seen.protectors.sum(axis=0) * tables.PLAYER_ENERGY_UPKEEP
        gain = tables.PLAYER_ENERGY_GAIN - upkeep - feeding * tables.DRAIN
        energy = np.clip(before.player_energy[1] + gain, 0.0, tables.PLAYER_ENERGY_MAX)
        np.testing.assert_allclose(after.player_energy[1], energy, atol=1e-4)
        drains += feeding.sum()
    assert bot == "random" or drains > 100, "there was something to get wrong"


def test_every_style_of_player_is_among_these() -> None:
    assert set(GAME.start(NUMPY, SEEDS).style.tolist()) == set(range(len(tables.STYLES)))


def test_nobody_mines_when_a_match_begins() -> None:
    for ops in (NUMPY, JAX):
        state = GAME.start(ops, SEEDS)
        np.testing.assert_array_equal(state.mining, at_work(state))


def test_a_parasite_among_nobody_stays_hungry() -> None:
    """The smallest case: somebody at one vein, nobody at the other, a parasite at either."""
    state = mapped(np.copy, GAME.start(NUMPY, SEEDS))
    here, there = 3, 12
    state.workers[:], state.protectors[:], state.ore[:] = 1, 0, 50.0
    state.vein[:, 0], state.vein[:, 1:] = here, there
    state.errand[0], state.errand[1:] = 0, 1
    state.worker[:, 0], state.worker[:, 1:] = here, there

    def energy(action: int) -> NDArray:
        actions = np.full((1, 1, len(SEEDS)), action, np.int32)
        left: NDArray = GAME.step(NUMPY, state, actions).player_energy[1]
        return left

    quiet = energy(tables.NO_SPAWN)
    nobody, one = (
        energy(tables.action_of(place * tables.GRID + place, tables.ENERGY))
        for place in (there, here)
    )
    np.testing.assert_array_equal(nobody, quiet)
    # Whoever takes fright at once walks away: then there is nothing to drain.
    assert set((quiet - one).tolist()) == {0.0, tables.DRAIN} and (one < quiet).mean() > 0.7
