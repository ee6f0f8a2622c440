"""Frames of brawl a second: NumPy, and JAX on whatever it finds, beside a loop in plain Python.

    python benchmarks/game_throughput.py [--sizes 64,1024,4096] [--seconds 3] [--json]

A frame is everything that training needs of the game: actions by chance for both sides, the step,
rewards, the end, a new match where one has ended, and the observations of both sides. The peer is
the same game as one writes it without arrays (`plain_brawl.py`), one match at a time, in the loop
of a Gymnasium environment.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Callable
from typing import Any

import machine
import numpy as np
from plain_brawl import PlainBrawl

from understudy.core import chance
from understudy.core.ops import NUMPY, Array, Ops, Tree
from understudy.games.brawl import Brawl, State

GAME = Brawl()
CPU_SIZES, GPU_SIZES = (1, 64, 256, 1024, 4096), (1024, 4096, 16384, 65536, 262144)
_CHORDS = np.float32(GAME.actions.options)
_SIDES = np.arange(2, dtype=np.uint32)


def frame(ops: Ops, state: State, clock: Array, seeds: Array) -> tuple[State, Array, Array]:
    """The next state, observations [2, 64, B] and rewards [2, B]; clock uint32 [1]."""
    xp = ops.xp
    key = chance.fold(seeds, clock)
    actions = (chance.uniform(ops, key, _SIDES) * _CHORDS).astype(xp.int32)[:, None]
    after = GAME.step(ops, state, ops.barrier(actions))
    after, rewards = ops.barrier((after, GAME.reward(ops, state, after)))
    over = GAME.over(ops, after)
    if ops.name == "jax" or over.any():
        fresh = GAME.start(ops, key)
        after = State(*(xp.where(over, new, old) for new, old in zip(fresh, after, strict=True)))
    after = ops.barrier(after)
    return after, GAME.observe(ops, after), rewards


def rate(run: Callable[[], int], seconds: float) -> float:
    """The best of three stretches of this many seconds together, in frames a second."""
    best = 0.0
    for _ in range(3):
        frames, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds / 3:
            frames += run()
        best = max(best, frames / (time.perf_counter() - began))
    return best


def plain(seconds: float) -> float:
    """The loop of a Gymnasium environment around plain Python."""
    match, rng, seeds = PlainBrawl(), random.Random(0), iter(range(10**9))
    match.reset(next(seeds))

    def run() -> int:
        for _ in range(100):
            _obs, _rewards, over = match.step((rng.randrange(10), rng.randrange(10)))
            if over:
                match.reset(next(seeds))
        return 100

    return rate(run, seconds)


def numpy(size: int, seconds: float) -> float:
    """The array game under NumPy."""
    seeds = np.arange(size, dtype=np.uint32)
    state = GAME.start(NUMPY, seeds)
    clock = np.zeros(1, np.uint32)

    def run() -> int:
        nonlocal state, clock
        for _ in range(10):
            state, _obs, _rewards = frame(NUMPY, state, clock, seeds)
            clock = clock + np.uint32(1)
        return 10 * size

    return rate(run, seconds)


def jax(size: int, seconds: float) -> float:
    """The array game compiled, 100 frames a call; all observations and rewards are written out."""
    import jax
    import jax.numpy as jnp

    from understudy.arena.compiling import options
    from understudy.learner.maths.jax_ops import JAX

    seeds = jnp.arange(size, dtype=jnp.uint32)

    def many(state: State, clock: Array, seeds: Array) -> tuple[State, Array, Array, Array]:
        def one(_: Array, carry: Tree) -> Tree:
            state, clock, _obs, total = carry
            state, obs, rewards = frame(JAX, state, clock, seeds)
            return state, clock + np.uint32(1), obs, total + rewards

        obs = jnp.zeros((2, len(GAME.features), size), jnp.float32)
        total = jnp.zeros((2, size), jnp.float32)
        carry = jax.lax.fori_loop(0, 100, one, (state, clock, obs, total))
        return carry[0], carry[1], carry[2], carry[3]

    state, clock = GAME.start(JAX, seeds), jnp.zeros(1, jnp.uint32)
    call: Any = jax.jit(many, compiler_options=options())

    def run() -> int:
        nonlocal state, clock
        state, clock, obs, total = call(state, clock, seeds)
        total.block_until_ready()
        obs.block_until_ready()
        return 100 * size

    run()
    return rate(run, seconds)


def measure(sizes: tuple[int, ...], seconds: float) -> dict[str, object]:
    """Everything, in one run."""
    peer = plain(seconds)
    rows = []
    for size in sizes:
        row: dict[str, float] = {"matches": size}
        if size <= max(CPU_SIZES):
            row["numpy"] = numpy(size, seconds)
        row["jax"] = jax(size, seconds)
        rows.append(row)
    best = max(rows, key=lambda row: row["jax"])
    return {
        "machine": machine.describe("numpy", "jax"),
        "device": machine.accelerator(),
        "plain_frames_s": peer,
        "rows": rows,
        "best_frames_s": best["jax"],
        "best_matches": best["matches"],
        "ratio": best["jax"] / peer,
    }


def main() -> None:
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", help="matches side by side, such as 64,1024")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    import jax

    usual = CPU_SIZES if jax.default_backend() == "cpu" else GPU_SIZES
    sizes = tuple(map(int, arguments.sizes.split(","))) if arguments.sizes else usual
    result = measure(sizes, arguments.seconds)
    if arguments.json:
        print(json.dumps(result))
        return
    rows, peer = result["rows"], result["plain_frames_s"]
    assert isinstance(rows, list) and isinstance(peer, float)
    print(f"{result['machine']}; JAX on {result['device']}")
    print(f"plain Python, one match: {peer:,.0f} frames/s")
    print(f"{'matches':>8} {'NumPy':>12} {'JAX':>14} {'JAX / plain':>12}")
    for row in rows:
        ours = f"{row['numpy']:,.0f}" if "numpy" in row else "-"
        print(f"{row['matches']:>8} {ours:>12} {row['jax']:>14,.0f} {row['jax'] / peer:>12,.0f}")
    print("goal: 2,000,000 frames/s on two cores, 100,000,000 on an H200")


if __name__ == "__main__":
    main()
