"""The array rules against the same game in plain Python, from the same states."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from understudy.core import chance
from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY, Array
from understudy.games.brawl import BOTS, Brawl, State, bots, tables

PLAIN = Path(__file__).parent.parent.parent / "benchmarks" / "plain_brawl.py"
MATCHES = 12


def plain() -> Any:
    spec = importlib.util.spec_from_file_location("plain_brawl", PLAIN)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_a_match_starts_alike() -> None:
    peer = plain()
    seeds = np.arange(MATCHES, dtype=np.uint32) + np.uint32(77)
    seen = Brawl().observe(NUMPY, Brawl().start(NUMPY, seeds))
    for index, seed in enumerate(seeds.tolist()):
        theirs = peer.PlainBrawl().reset(seed)
        np.testing.assert_allclose(theirs, seen[:, :, index], atol=1e-5)


EVENTS = ("dealt", "knocked_out", "equipped", "dropped", "combo")
SHARED = ("item", "item_x", "item_clock")


def eventful(game: Brawl, state: State) -> NDArray:
    """In which matches the last frame did something, bool [B]."""
    flags = [getattr(state, name).astype(np.bool_).any(axis=0) for name in EVENTS]
    happened: NDArray = np.logical_or.reduce([*flags, game.over(NUMPY, state)])
    return happened


def played(game: Brawl, match: Any, acts: Array) -> Any:
    """One frame in plain Python; acts: int32 [2, parts]."""
    if game.controls == "chords":
        return match.step(tuple(acts[:, 0].tolist()))
    return match.press(
        [{key for key, on in zip(tables.KEYS, row, strict=True) if on} for row in acts]
    )


def alike(game: Brawl, before: State, after: State, index: int, acts: Array, peer: Any) -> bool:
    """Whether one match of plain Python comes from the same state to the same, in everything."""
    match = peer.from_state(before, index)
    views, gains, ended = played(game, match, acts[:, :, index])
    same = np.allclose(views, game.observe(NUMPY, after)[:, :, index], atol=1e-4)
    same &= np.allclose(gains, game.reward(NUMPY, before, after)[:, index], atol=1e-4)
    same &= bool(ended == game.over(NUMPY, after)[index])
    ours = [getattr(after, name)[index] for name in SHARED]
    theirs = [getattr(match, name) for name in SHARED]
    for slot, fighter in enumerate(match.fighters):
        ours += [getattr(after, name)[slot, index] for name in vars(fighter)]
        theirs += vars(fighter).values()
    return bool(same and np.allclose(ours, theirs, atol=1e-3))


def compare(game: Brawl, frames: int, choose: Callable[[State], Array]) -> dict[str, int]:
    """How often each event was seen; every frame with one in it is compared, and must be alike.

    Of quiet ones every twelfth. Plain Python has twice the digits: on other seeds a threshold might
    fall on the last one of float32; on these none does.
    """
    peer = plain()
    state = game.start(NUMPY, np.arange(MATCHES, dtype=np.uint32))
    counted = dict.fromkeys((*EVENTS, "over"), 0)
    for frame in range(frames):
        acts = choose(state)
        after = game.step(NUMPY, state, acts)
        going = ~game.over(NUMPY, state)
        looked_at = eventful(game, after) & going
        looked_at[frame % MATCHES] |= going[frame % MATCHES]
        for index in np.flatnonzero(looked_at).tolist():
            assert alike(game, state, after, index, acts, peer), (frame, index)
        for name in EVENTS:
            counted[name] += int(np.count_nonzero(getattr(after, name)[:, going]))
        counted["over"] += int(game.over(NUMPY, after)[going].sum())
        state = after
    return counted


@pytest.mark.parametrize(
    ("names", "least"),
    [
        (("random", "random"), {"knocked_out": 30, "equipped": 5, "dropped": 5, "over": 8}),
        (("aggressive", "kiting"), {"dealt": 150, "knocked_out": 15, "equipped": 15, "combo": 15}),
    ],
)
def test_every_frame_goes_alike(names: tuple[str, str], least: dict[str, int]) -> None:
    game = Brawl()

    def choose(state: State) -> Array:
        seen = game.observe(NUMPY, state)
        seeds = [chance.fold(np.arange(MATCHES, dtype=np.uint32), slot) for slot in (1, 2)]
        acts = [
            BOTS[name].act(NUMPY, seen[k], seeds[k], state.frame) for k, name in enumerate(names)
        ]
        return np.stack(acts)

    counted = compare(game, 900, choose)
    assert all(counted[name] >= count for name, count in least.items()), counted


def test_every_frame_of_random_keys_goes_alike() -> None:
    """Keys reach dashes, taunts, ground-pounds, neutral and heavy down attacks.

    By chance alone two players hardly meet: half of the time a script plays.
    """
    game, script = Brawl("keys"), bots("keys")["aggressive"]
    rng = np.random.default_rng(3)
    shape = (2, len(tables.KEYS), MATCHES)
    seeds = np.arange(MATCHES, dtype=np.uint32)
    drawn, wild = np.zeros(shape, np.int32), np.zeros(shape, np.bool_)
    moves: set[int] = set()
    dashes = 0

    def choose(state: State) -> Array:
        nonlocal drawn, wild, dashes
        moves.update(np.unique(state.move).tolist())
        dashes += int((state.dash > 0).sum())
        if state.frame[0] % 5 == 0:
            drawn = (rng.random(shape) < 0.25).astype(np.int32)
            wild = np.broadcast_to(rng.random((2, 1, MATCHES)) < 0.5, shape)
        seen = game.observe(NUMPY, state)
        bot = [script.act(NUMPY, seen[slot], seeds + slot, state.frame) for slot in (0, 1)]
        return np.where(wild, drawn, np.stack(bot))

    counted = compare(game, 900, choose)
    assert counted["dealt"] >= 100 and counted["knocked_out"] >= 20, counted
    assert min(counted.values()) >= 2 and dashes >= 100, counted
    bare = {tables.FIRST_MOVE + number for number in range(len(tables.MOVES))}
    assert bare | {tables.TAUNT_MOVE} <= moves
