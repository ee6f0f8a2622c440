"""What the benchmarks of the takeover share: windows of matches, and seeds in processes.

For `slow_takeover.py`, `serve_takeover.py` and `takeover.py`. Standard library, NumPy and the
package alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.statistics import wilson

Found: TypeAlias = dict[str, Any]
"""What one seed found; JSON."""
Started: TypeAlias = tuple[Sequence[str], Mapping[str, str]]
"""A command line and the environment variables that it has besides."""
MARGIN = 0.05
"""How far below the rules a window may lie."""


class MatchWindow(NamedTuple):
    """Matches `first + 1` to `first + length` of every seed that played all of them."""

    first: int
    length: int
    seeds: int
    mean: float
    low: float
    high: float
    """The 95% interval of Wilson over all matches of the window, those of all seeds together."""

    def below(self, rules: float) -> bool:
        """Whether the whole interval lies more than `MARGIN` below the rules."""
        return self.high < rules - MARGIN


def windows(results: Sequence[Sequence[float]], length: int) -> list[MatchWindow]:
    """Disjoint windows over the `results` [seeds][matches], each in [0, 1]; an incomplete window at
    the end of a seed is left out.

    The interval takes the seeds as they are, without the spread between them: it is narrower than
    that of a mean over seeds, so a window is below the rules rather too early than too late.
    """
    found = []
    for first in range(0, max(map(len, results), default=0), length):
        parts = [one[first : first + length] for one in results]
        rows: NDArray = np.array([part for part in parts if len(part) == length], np.float64)
        if len(rows):
            low, high = wilson(float(rows.sum()), rows.size)
            found.append(
                MatchWindow(first, length, len(rows), round(float(rows.mean()), 4), low, high)
            )
    return found


def worst(found: Sequence[MatchWindow]) -> MatchWindow:
    """The window whose interval ends lowest."""
    return min(found, key=lambda one: one.high)


def window_words(one: MatchWindow) -> str:
    """For people."""
    return (
        f"matches {one.first + 1:,} to {one.first + one.length:,}: {one.mean:.1%} "
        f"({one.low:.1%} to {one.high:.1%}, {one.seeds} seeds)"
    )


def run_seeds(
    seeds: Sequence[int], started: Callable[[int, int], Started], *, workers: int
) -> list[Found]:
    """One process for each seed, `workers` of them at a time; what each prints as JSON.

    `started(seed, place)` is its command; two commands at the same time have different places, from
    0 to `workers` - 1. What a process says on standard error is passed on.
    """
    places = list(range(workers))
    lock = threading.Lock()

    def one(seed: int) -> Found:
        with lock:
            place = places.pop(0)
        command, environment = started(seed, place)
        done = subprocess.run(
            list(command),
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            check=False,
        )
        with lock:
            places.append(place)
        if done.returncode:
            raise SystemExit(f"seed {seed}: {' '.join(command)} ended with {done.returncode}")
        found: Found = json.loads(done.stdout)
        return found

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(one, seeds))


def seed_list(text: str) -> list[int]:
    """`--seeds 1,2,3`."""
    try:
        seeds = [int(part) for part in text.split(",")]
    except ValueError:
        seeds = []
    if not seeds or min(seeds) < 0 or len(set(seeds)) < len(seeds):
        raise SystemExit(f"--seeds: expected different whole numbers as in 1,2,3, got {text!r}")
    return seeds


def say(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


def minutes_left(done: int, of: int, seconds: float) -> str:
    """How long the rest takes at the pace so far."""
    if not done:
        return "time left unknown"
    return f"about {(of - done) * seconds / done / 60.0:.1f} min left"
