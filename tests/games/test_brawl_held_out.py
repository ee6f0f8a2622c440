"""The players that no training meets: real opponents, each in its own style, and out of reach."""

from __future__ import annotations

import functools

import jax
import numpy as np
import pytest

from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY
from understudy.games import catalog
from understudy.games.brawl import BOTS, Brawl, tables
from understudy.games.brawl.balance import seeds_held_out
from understudy.games.brawl.held_out import held_out
from understudy.learner.maths.jax_ops import JAX
from understudy.match.evaluate import judge
from understudy.match.players import BotPlayer

NAMES = ("turtle", "hawk", "matador")
SEEDS = np.arange(64, dtype=np.uint32)
MATCHES = 20


def test_they_are_in_no_list_that_training_draws_from() -> None:
    assert tuple(catalog.held_out("brawl")) == NAMES
    assert not set(NAMES) & set(catalog.bots("brawl"))
    assert not catalog.held_out("swarm")


@pytest.mark.parametrize("name", NAMES)
def test_they_choose_the_same_under_both_engines_and_for_keys(name: str) -> None:
    game, bot, pressed = Brawl(), held_out()[name], held_out("keys")[name]
    compiled = jax.jit(functools.partial(bot.act, JAX))
    state = game.start(NUMPY, SEEDS)
    for frame in range(90):
        seen = game.observe(NUMPY, state)
        acts = np.stack([bot.act(NUMPY, seen[k], SEEDS + 99 * k, state.frame) for k in (0, 1)])
        assert acts.dtype == np.int32 and acts.shape == (2, 1, len(SEEDS))
        assert acts.min() >= 0 and acts.max() < len(tables.CHORDS)
        if frame % 6 == 0:
            np.testing.assert_array_equal(acts[0], compiled(seen[0], SEEDS, state.frame))
            keys = pressed.act(NUMPY, seen[0], SEEDS, state.frame)
            np.testing.assert_array_equal(keys, tables.CHORD_KEYS[:, acts[0, 0]])
        state = game.step(NUMPY, state, acts)


@functools.cache
def wins(opponent: str) -> dict[str, float]:
    """Of each against a bot of the catalog."""
    strangers = {name: BotPlayer(bot) for name, bot in held_out().items()}
    reports = judge(Brawl(), BotPlayer(BOTS[opponent]), strangers, matches=MATCHES, seed=5)
    return {name: report.tally.losses / MATCHES for name, report in reports.items()}


@pytest.mark.parametrize("name", NAMES)
def test_they_beat_those_who_do_not_play(name: str) -> None:
    assert wins("constant")[name] >= 0.9
    assert wins("random")[name] >= 0.9


def moves(name: str) -> tuple[NDArray, NDArray]:
    """What one chooses when it may, against `aggressive`: chords [N], and whether it stood."""
    game, sides = Brawl(), (held_out()[name], BOTS["aggressive"])
    seeds = seeds_held_out(32)
    state, chords, stood = game.start(NUMPY, seeds), [], []
    for _ in range(500):
        seen = game.observe(NUMPY, state)
        pairs = zip(sides, seen, (seeds, seeds + np.uint32(99)), strict=True)
        acts = np.stack([bot.act(NUMPY, obs, noise, state.frame) for bot, obs, noise in pairs])
        free = (state.move[0] == tables.NO_MOVE) & (state.stun[0] + state.out[0] <= 0)
        chords.append(acts[0, 0][free])
        stood.append(state.grounded[0][free])
        state = game.step(NUMPY, state, acts)
    return np.concatenate(chords), np.concatenate(stood)


def share(chords: NDArray, *names: str) -> float:
    numbers = [list(tables.CHORDS).index(name) for name in names]
    return float(np.isin(chords, numbers).mean())


def test_each_fights_in_its_own_way() -> None:
    (turtle, _), (hawk, stood), (matador, _) = (moves(name) for name in NAMES)
    assert share(hawk[stood], "light", "heavy", "low") == 0.0, "it strikes from the air alone"
    assert share(hawk[~stood], "light", "low") > 0.02
    assert share(turtle, "dodge") == share(hawk, "dodge") == 0.0 < share(matador, "dodge")
    assert share(matador, "low") == 0.0 < share(turtle, "low")
    assert share(turtle, "idle") > 1.2 * share(hawk, "idle"), "it waits"
