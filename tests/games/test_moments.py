"""Weighted terms add up without error, and shaping leaves the best play what it is."""

from __future__ import annotations

from itertools import pairwise

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from understudy.arena import compiling
from understudy.core.ops import NUMPY, Array, Ops
from understudy.games import catalog
from understudy.games.base import Game
from understudy.games.brawl import BOTS, Brawl
from understudy.games.delay import Delayed
from understudy.games.moments import LIMIT, QUANTUM, Moment, RewardSet, Shaped, blended, quantised
from understudy.games.rewards import rewards_of, terms_of
from understudy.learner.maths.jax_ops import JAX

from .brawl_scenes import play, scene
from .tag import State, Tag

SETS = tuple(catalog.reward_sets("brawl"))


def whole_matches(game: Game, matches: int) -> list[tuple[Moment, NDArray[np.bool_]]]:
    """Every frame of matches that bots play, the second half at random, and who still plays."""
    seeds = np.arange(matches, dtype=np.uint32)
    rng = np.random.default_rng(5)
    state, running, frames = game.start(NUMPY, seeds), np.ones(matches, np.bool_), []
    while running.any():
        obs = game.observe(NUMPY, state)
        actions = np.stack(
            [
                BOTS[name].act(NUMPY, obs[slot], seeds + np.uint32(slot), state.frame)
                for slot, name in enumerate(("aggressive", "clockwork"))
            ]
        )
        wild = rng.integers(0, 10, actions.shape).astype(np.int32)
        actions = np.where(seeds < matches // 2, actions, wild)
        after = game.step(NUMPY, state, actions)
        frames.append((Moment(game, state, after, actions), running))
        running = running & ~game.over(NUMPY, after)
        state = after
    return frames


@pytest.fixture(scope="module")
def matches() -> list[tuple[Moment, NDArray[np.bool_]]]:
    return whole_matches(Brawl(), 12)


@pytest.mark.parametrize("name", SETS)
def test_sums_by_term_add_up_to_the_return_bit_for_bit_in_any_order(
    name: str, matches: list[tuple[Moment, NDArray[np.bool_]]]
) -> None:
    rewards, weights = rewards_of("brawl", name, gamma=0.995)
    parts = np.stack(
        [rewards.parts(NUMPY, moment, weights[0]) * running for moment, running in matches]
    )  # [T, K, 2, B]
    assert parts.dtype == np.float32
    assert np.abs(parts).sum((0, 1), dtype=np.float64).max() < LIMIT / 4

    true = parts.sum((0, 1), dtype=np.float64)
    returned = np.zeros_like(parts[0, 0])
    ledger = np.zeros_like(parts[0])
    for frame in parts:  # as the arena adds them up
        returned += frame.sum(0)
        ledger += frame
    for order in (ledger, ledger[::-1], np.random.default_rng(1).permutation(ledger)):
        total = np.zeros_like(returned)
        for row in order:
            total += row
        np.testing.assert_array_equal(total, returned)
    backwards = np.zeros_like(returned)
    for row in parts.reshape(-1, *returned.shape)[::-1]:
        backwards += row
    np.testing.assert_array_equal(backwards, returned)
    np.testing.assert_array_equal(returned.astype(np.float64), true)
    assert len(np.unique(returned)) > 12, "matches differ"


def test_the_default_set_is_the_reward_of_the_game_up_to_rounding(
    matches: list[tuple[Moment, NDArray[np.bool_]]],
) -> None:
    rewards, weights = rewards_of("brawl", "default", gamma=0.995)
    assert rewards.names == ("damage", "knockout", "result", "closing")
    for moment, _ in matches:
        own = moment.game.reward(NUMPY, moment.before, moment.after)
        parts = rewards.parts(NUMPY, moment, weights[0])
        np.testing.assert_allclose(parts.sum(0), own, atol=len(parts) * QUANTUM / 2 + 1e-6)


@given(
    st.lists(st.floats(-2, 2, width=32), min_size=1, max_size=100),
    st.randoms(use_true_random=False),
)
def test_multiples_of_the_quantum_add_up_exactly_below_the_limit(
    values: list[float], random: object
) -> None:
    rounded = quantised(NUMPY, np.array(values, np.float32))
    assert np.abs(rounded - np.array(values, np.float32)).max() <= QUANTUM / 2
    np.testing.assert_array_equal(quantised(NUMPY, -rounded), -rounded)
    true = sum(round(float(value) / QUANTUM) for value in rounded) * QUANTUM
    shuffled = rounded.tolist()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    total = np.float32(0)
    for value in shuffled:
        total = np.float32(total + np.float32(value))
    assert float(total) == true


def test_beyond_the_limit_sums_are_no_longer_exact() -> None:
    """What the limit is for: the step that is lost at 256 is kept just below it."""
    below, at = np.float32(LIMIT - 1), np.float32(LIMIT)
    assert below + np.float32(QUANTUM) - below == np.float32(QUANTUM)
    assert at + np.float32(QUANTUM) - at == 0


def test_a_delayed_game_is_rewarded_for_the_same_things() -> None:
    rewards, weights = rewards_of("brawl", "dense", "shaped", gamma=0.99)
    plain, late = Brawl("keys"), Delayed(Brawl("keys"), 3)
    here, there = (game.start(NUMPY, np.arange(5, dtype=np.uint32)) for game in (plain, late))
    rng = np.random.default_rng(2)
    for _ in range(40):
        actions = rng.integers(0, 2, (2, 10, 5)).astype(np.int32)
        after, later = plain.step(NUMPY, here, actions), late.step(NUMPY, there, actions)
        one = rewards.parts(NUMPY, Moment(plain, here, after, actions), weights[0])
        two = rewards.parts(NUMPY, Moment(late, there, later, actions), weights[0])
        np.testing.assert_array_equal(one, two)
        here, there = after, later


def test_compiled_sums_are_exact_too() -> None:
    """The part that is rewarded and the part that is summed by term are the same number."""
    game = Brawl()
    rewards, weights = rewards_of("brawl", "dense", "shaped", gamma=0.995)
    weights = weights.sum(0)  # every term of both
    state = game.start(JAX, np.arange(32, dtype=np.uint32))
    actions = np.random.default_rng(3).integers(0, 10, (400, 2, 1, 32)).astype(np.int32)

    def frame(carry: Array, acted: Array) -> tuple[Array, None]:
        state, returned, ledger = carry
        state, acted = JAX.barrier((state, acted))
        after = JAX.barrier(game.step(JAX, state, acted))
        parts = rewards.parts(JAX, Moment(game, state, after, acted), weights)
        return (after, returned + parts.sum(0), ledger + parts), None

    def run(state: Array, actions: Array) -> tuple[Array, Array]:
        zeros = np.zeros((len(weights), 2, 32), np.float32)
        (_, returned, ledger), _ = jax.lax.scan(frame, (state, zeros[0], zeros), actions)
        return returned, ledger

    program = jax.jit(run, compiler_options=compiling.options())
    returned, ledger = map(np.asarray, program(state, actions))
    np.testing.assert_array_equal(ledger.sum(0), returned)
    np.testing.assert_array_equal(ledger.sum(0, dtype=np.float64), returned)
    np.testing.assert_array_equal(np.rint(ledger / QUANTUM) * QUANTUM, ledger)
    assert (np.abs(ledger).max((1, 2)) > 0).sum() > 12, "most terms happened"


def test_a_set_is_hashed_by_its_terms_and_without_any_gives_nothing() -> None:
    one, _ = rewards_of("brawl", "shaped", gamma=0.99)
    same, _ = rewards_of("brawl", "shaped", gamma=0.99)
    other, _ = rewards_of("brawl", "shaped", gamma=0.995)
    assert one == same and hash(one) == hash(same) and one != other
    moment = Moment(Brawl(), scene(), scene(), np.zeros((2, 1, 1), np.int32))
    assert RewardSet.of({}).values(NUMPY, moment).shape == (0, 2, 1)


def test_blending_goes_from_one_set_to_the_other() -> None:
    _, (dense, sparse) = rewards_of("brawl", "dense", "sparse", gamma=0.99)
    np.testing.assert_array_equal(blended(dense, sparse, 0.0), dense)
    np.testing.assert_array_equal(blended(dense, sparse, 1.0), sparse)
    half = blended(dense, sparse, 0.5)
    assert half.dtype == np.float32
    np.testing.assert_allclose(half, (dense + sparse) / 2, rtol=1e-6)
    np.testing.assert_array_equal(half[dense == sparse], dense[dense == sparse])


# --- potential-based shaping


@pytest.mark.parametrize("name", ["shaped_closing", "shaped_edge_pressure", "shaped_safety"])
def test_discounted_shaping_adds_up_to_the_start_alone(name: str) -> None:
    gamma, last = 0.99, 200
    term = terms_of("brawl", gamma=gamma)[name]
    sums = set()
    for chord in ("forward", "idle", "leap", "back"):
        first = scene(x=(6, 9), y=(0, 2), grounded=(True, False), frame=Brawl().max_frames - last)
        states = [first, *play(first, [chord] * last)]
        assert Brawl().over(NUMPY, states[-1]).all()
        total = np.zeros((2, 1))
        for frame, (before, after) in enumerate(pairwise(states)):
            moment = Moment(Brawl(), before, after, np.zeros((2, 1, 1), np.int32))
            total += gamma**frame * term(NUMPY, moment)
        assert isinstance(term, Shaped)
        np.testing.assert_allclose(total, -term.potential(NUMPY, first), atol=1e-4)
        sums.add(tuple(np.round(total[:, 0], 3)))
    assert len(sums) == 1
    assert any(sums.pop()), "the start is worth something here"


def chase(ops: Ops, state: State) -> Array:
    """The nearer the better for the chaser, the farther the better for the runner."""
    gap = (state.at[1] - state.at[0]).astype(ops.xp.float32)
    return ops.xp.stack([-gap, gap])


def best_of_chaser(term: object, gamma: float) -> dict[tuple[int, int, int], set[int]]:
    """The chaser's best moves in every state of tag, by backward induction, against a runner that
    runs to the right; rewards are the score and, where there is one, a term."""
    game = Tag()
    value: dict[tuple[int, int, int], float] = {}
    best = {}
    for frame in range(game.max_frames - 1, -1, -1):
        for at in [(a, b) for a in range(9) for b in range(a + 1, 9)]:
            state = State(np.array([frame], np.int32), np.array(at, np.int32)[:, None])
            worth = {}
            for move in range(3):
                actions = np.array([[[move], [0]], [[2], [0]]], np.int32)
                after = game.step(NUMPY, state, actions)
                gain = float(game.score(NUMPY, after)[0, 0])
                if term is not None:
                    moment = Moment(game, state, after, actions)
                    gain += float(term(NUMPY, moment)[0, 0])  # type: ignore[operator]
                if not game.over(NUMPY, after)[0]:
                    gain += gamma * value[frame + 1, int(after.at[0, 0]), int(after.at[1, 0])]
                worth[move] = gain
            most = max(worth.values())
            value[frame, *at] = most
            best[frame, *at] = {move for move, gain in worth.items() if gain > most - 1e-4}
    return best


def test_shaping_keeps_the_best_moves_of_every_state_and_a_plain_bonus_does_not() -> None:
    gamma = 0.9
    plain = best_of_chaser(None, gamma)
    assert best_of_chaser(Shaped(chase, gamma), gamma) == plain
    assert best_of_chaser(lambda ops, moment: chase(ops, moment.after), gamma) != plain
