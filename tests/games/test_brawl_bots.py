"""The scripted players: who beats whom, on seeds first played after the freeze."""

from __future__ import annotations

import functools
import re
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from understudy.arena.compiling import options
from understudy.core import chance
from understudy.core.ops import NUMPY, Array
from understudy.games import catalog
from understudy.games.brawl import BOTS, Brawl, State, balance, bots, tables
from understudy.games.brawl.balance import Outcome, meet, seeds_held_out
from understudy.learner.maths.jax_ops import JAX

SEEDS = np.arange(64, dtype=np.uint32)
PAIRS = (
    ("based", "constant"),
    ("based", "random"),
    ("constant", "random"),
    ("aggressive", "based"),
    ("based", "defensive"),
    ("defensive", "aggressive"),
    ("aggressive", "kiting"),
    ("based", "clockwork"),
)
MATCHES = 160
"""For each pair, half of them in exchanged slots."""


def _play(seats: Array, seeds: Array) -> Outcome:
    """One match for each seed under JAX, all pairs side by side; seats: [2, B] into `BOTS`."""
    game = Brawl()
    noise = [chance.side_key(JAX, seeds, side) for side in range(2)]

    def frame(state: State) -> State:
        seen = JAX.barrier(game.observe(JAX, state))
        chosen = jnp.zeros((2, 1, len(seeds)), jnp.int32)
        for slot in range(2):
            for seat, bot in enumerate(BOTS.values()):
                acts = bot.act(JAX, seen[slot], noise[slot], state.frame)
                chosen = chosen.at[slot].set(jnp.where(seats[slot] == seat, acts, chosen[slot]))
        after = JAX.barrier(game.step(JAX, state, JAX.barrier(chosen)))
        over = game.over(JAX, state)
        return State(*(jnp.where(over, old, new) for old, new in zip(state, after, strict=True)))

    state = jax.lax.fori_loop(0, game.max_frames, lambda _, s: frame(s), game.start(JAX, seeds))
    return Outcome(game.score(JAX, state), state.frame, state.stocks)


@functools.cache
def _outcomes() -> dict[tuple[str, str], Outcome]:
    names = list(BOTS)
    there = [[names.index(name) for name in pair] for pair in PAIRS]
    seats = np.repeat(np.array(there).T, MATCHES, axis=1)
    swaps = np.tile(np.arange(MATCHES) % 2 == 1, len(PAIRS))
    seats = np.where(swaps, seats[::-1], seats)
    seeds = np.tile(seeds_held_out(1000)[500 : 500 + MATCHES], len(PAIRS))
    # A minute of frames for a thousand matches: here LLVM pays.
    fast = {**(options() or {}), "xla_backend_optimization_level": "3"}
    compiled = jax.jit(_play, compiler_options=fast)
    score, frames, stocks = map(np.asarray, compiled(seats, seeds))
    score, stocks = (np.where(swaps, rows[::-1], rows) for rows in (score, stocks))
    cuts = [slice(k * MATCHES, (k + 1) * MATCHES) for k in range(len(PAIRS))]
    return {
        pair: Outcome(score[:, cut], frames[cut], stocks[:, cut])
        for pair, cut in zip(PAIRS, cuts, strict=True)
    }


def outcome(one: str, two: str) -> Outcome:
    return _outcomes()[one, two]


def wins(one: str, two: str) -> float:
    return float((outcome(one, two).score[0] > 0).mean())


@pytest.mark.parametrize("opponent", ["constant", "random"])
def test_based_beats_those_who_do_not_play(opponent: str) -> None:
    assert wins("based", opponent) >= 0.95


def test_chance_does_not_beat_doing_nothing() -> None:
    assert wins("constant", "random") >= 0.95


def test_nobody_beats_everybody() -> None:
    circle = ("aggressive", "based", "defensive", "aggressive")
    for pair in (*pairwise(circle), ("aggressive", "kiting"), ("based", "clockwork")):
        assert outcome(*pair).score[0].mean() > 0.1, pair


def test_matches_of_the_better_ones_end_by_knockouts() -> None:
    ended = outcome("aggressive", "based")
    assert (ended.frames < tables.MAX_FRAMES).mean() > 0.8
    assert (ended.stocks.min(axis=0) == 0).mean() > 0.8
    assert 20 < ended.frames.mean() / tables.FRAMES_PER_S < 75


def test_a_still_opponent_is_knocked_out_three_times_in_a_third_of_a_match() -> None:
    assert outcome("based", "constant").frames.mean() / tables.FRAMES_PER_S < 30


@pytest.mark.parametrize("name", list(BOTS))
def test_bots_choose_the_same_under_both_engines_and_for_keys(name: str) -> None:
    game = Brawl()
    state = game.start(NUMPY, SEEDS)
    compiled = jax.jit(functools.partial(BOTS[name].act, JAX))
    pressed = bots("keys")[name]
    for frame in range(60):
        seen = game.observe(NUMPY, state)
        acts = np.stack(
            [BOTS[name].act(NUMPY, seen[k], SEEDS + 99 * k, state.frame) for k in (0, 1)]
        )
        assert acts.dtype == np.int32 and acts.shape == (2, 1, len(SEEDS))
        assert acts.min() >= 0 and acts.max() < 10
        if frame % 6 == 0:
            np.testing.assert_array_equal(acts[0], compiled(seen[0], SEEDS, state.frame))
            keys = pressed.act(NUMPY, seen[0], SEEDS, state.frame)
            np.testing.assert_array_equal(keys, tables.CHORD_KEYS[:, acts[0, 0]])
        state = game.step(NUMPY, state, acts)


def test_reaction_noise_is_seeded_and_differs_between_seeds() -> None:
    seen = Brawl().observe(NUMPY, Brawl().start(NUMPY, SEEDS))[0]
    frame = np.full(64, 30, np.int32)
    same = np.repeat(seen[:, :1], 64, axis=1)
    one, two = (BOTS["based"].act(NUMPY, same, SEEDS, frame) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    idle = [(BOTS["based"].act(NUMPY, same, SEEDS, frame + 6 * k) == 0).mean() for k in range(40)]
    assert 0.05 < np.mean(idle) < 0.15


def test_the_catalog_gives_bots_for_the_game_that_it_makes() -> None:
    chosen = {"actions": "keys", "delay": "3"}
    game = catalog.make("brawl", **chosen)
    state = game.start(NUMPY, SEEDS)
    for bot in catalog.bots("brawl", **chosen).values():
        acts = bot.act(NUMPY, game.observe(NUMPY, state)[1], SEEDS, state.frame)
        assert acts.shape == (len(game.actions.parts), len(SEEDS))


def test_a_meeting_is_half_in_either_slot() -> None:
    met = meet("based", "constant", SEEDS[:6])
    assert met.score.shape == (2, 6) and met.stocks.shape == (2, 6)
    assert (met.score[0] == 1).all() and (met.score[1] == -1).all()
    assert (met.stocks[1] == 0).all() and (met.frames < tables.MAX_FRAMES).all()


def test_the_table_is_printed_by_a_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(balance, "BOTS", {"random": BOTS["random"]})
    balance.main(["--matches", "4", "--first-seed", "5"])
    printed = capsys.readouterr().out
    assert "brawl version 1, 4 matches a pair" in printed
    (row,) = re.findall(r"\| \*\*random\*\* \| (\d)-(\d)-(\d) \|", printed)
    assert sum(map(int, row)) == 4
