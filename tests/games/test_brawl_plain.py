"""The array rules against the same game in plain Python, from the same states."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from understudy.core import chance
from understudy.core.ops import NUMPY
from understudy.games.brawl import BOTS, Brawl

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


@pytest.mark.parametrize("names", [("random", "random"), ("aggressive", "kiting")])
def test_every_frame_goes_alike(names: tuple[str, str]) -> None:
    """One frame from equal states; a threshold may fall on the last digit, seldom."""
    peer, game = plain(), Brawl()
    seeds = np.arange(MATCHES, dtype=np.uint32)
    noise = [chance.fold(seeds, slot) for slot in (1, 2)]
    state = game.start(NUMPY, seeds)
    strays = 0
    for frame in range(900):
        seen = game.observe(NUMPY, state)
        acts = np.stack(
            [BOTS[name].act(NUMPY, seen[k], noise[k], state.frame) for k, name in enumerate(names)]
        )
        after = game.step(NUMPY, state, acts)
        ours = game.observe(NUMPY, after)
        rewards, over = game.reward(NUMPY, state, after), game.over(NUMPY, after)
        index = frame % MATCHES
        match = peer.from_state(state, index)
        views, gains, ended = match.step(tuple(acts[:, 0, index].tolist()))
        same = np.allclose(views, ours[:, :, index], atol=1e-4)
        same &= np.allclose(gains, rewards[:, index], atol=1e-4) and ended == over[index]
        for slot, fighter in enumerate(match.fighters):
            for name, value in vars(fighter).items():
                same &= bool(np.isclose(value, getattr(after, name)[slot, index], atol=1e-3))
        strays += not same
        state = after
    assert strays <= 5
