"""What the terms of each set of rewards cost beside the game's own reward, compiled, on this CPU.

    python benchmarks/reward_sets.py [--games 128] [--frames 500]

A frame is `based` against itself: observations, both bots, the step, the reward, new matches where
one has ended and, for a set, the sums by term. Times are of the processor, not of the wall, and the
least of several stretches that are taken in turns, since other work on the machine slows both.
"""

from __future__ import annotations

import argparse
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from understudy.arena.compiling import options
from understudy.core import chance
from understudy.core.ops import Array, Tree
from understudy.games import catalog
from understudy.games.rewards import Moment, RewardSet, rewards_of
from understudy.learner.maths.jax_ops import JAX

GAME, BOT = catalog.make("brawl"), catalog.bots("brawl")["based"]
OWN = "game.reward"
STRETCHES = 15


class Carry(NamedTuple):
    state: Tree
    seeds: Array
    """uint32 [B]"""
    returned: Array
    """float32 [2, B]"""
    ledger: Array
    """float32 [K, 2, B]"""


def frame(rewards: RewardSet | None, weights: Array, carry: Carry) -> Carry:
    """One frame of every match, under a set of rewards or the game's own."""
    state, seeds, returned, ledger = carry
    seen = GAME.observe(JAX, state)
    keys = [chance.side_key(JAX, seeds, side) for side in (0, 1)]
    actions = jnp.stack([BOT.act(JAX, seen[k], keys[k], state.frame) for k in (0, 1)])
    state, actions = JAX.barrier((state, actions))
    after = JAX.barrier(GAME.step(JAX, state, actions))
    if rewards is None:
        returned = returned + GAME.reward(JAX, state, after)
    else:
        parts = rewards.parts(JAX, Moment(GAME, state, after, actions), weights)
        returned, ledger = returned + parts.sum(0), ledger + parts
    over = GAME.over(JAX, after)
    fresh = GAME.start(JAX, seeds + 1)
    state = jax.tree.map(lambda new, old: jnp.where(over, new, old), fresh, after)
    return Carry(state, jnp.where(over, seeds + 1, seeds), returned, ledger)


def program(name: str, games: int, frames: int) -> tuple[Any, Carry, Array]:
    """Many frames under one set, compiled; what it starts from, and the weights."""
    rewards, weights = None, np.zeros(0, np.float32)
    if name != OWN:
        rewards, (weights,) = rewards_of("brawl", name, gamma=0.995)

    def many(carry: Carry, weights: Array) -> Carry:
        def one(_: Array, carry: Carry) -> Carry:
            return frame(rewards, weights, carry)

        last: Carry = jax.lax.fori_loop(0, frames, one, carry)
        return last

    seeds = jnp.arange(games, dtype=jnp.uint32)
    ledger = jnp.zeros((len(weights), 2, games), jnp.float32)
    carry = Carry(GAME.start(JAX, seeds), seeds, jnp.zeros((2, games), jnp.float32), ledger)
    return jax.jit(many, compiler_options=options()), carry, jnp.asarray(weights)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, default=128)
    parser.add_argument("--frames", type=int, default=500)
    chosen = parser.parse_args()
    names = (OWN, *catalog.reward_sets("brawl"))
    programs = {name: program(name, chosen.games, chosen.frames) for name in names}
    carries = {name: carry for name, (_, carry, _) in programs.items()}
    least = dict.fromkeys(names, float("inf"))
    for stretch in range(STRETCHES + 1):
        for name, (call, _, weights) in programs.items():
            began = time.process_time()
            carries[name] = call(carries[name], weights)
            carries[name].returned.block_until_ready()
            if stretch:  # the first one compiles
                least[name] = min(least[name], time.process_time() - began)
    print(f"{chosen.games} matches side by side\n\n| | terms | us a frame | beside {OWN} |")
    print("|---|---|---|---|")
    for name in names:
        terms, ratio = len(programs[name][2]), least[name] / least[OWN]
        print(f"| {name} | {terms} | {least[name] / chosen.frames * 1e6:.0f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
