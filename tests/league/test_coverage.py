"""The truth lies within `±`: a simulated learner climbs far beyond the bots, in the real league."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from understudy.core.arrays import NDArray
from understudy.core.config import LeagueConfig
from understudy.league.league import League
from understudy.league.ratings import BETA, Counts, Rating

from .makers import ANCHORS, SPEC, weights

SEEDS = 24
ITERATIONS, MATCHES, EVERY = 200, 32, 10
WEIGHTS = weights()


def climbed(kind: str) -> NDArray:
    """The learner's true strength by iteration; the strongest bot has 40, and one has 400 points
    more than it with 54."""
    share = np.linspace(0.0, 1.0, ITERATIONS)
    return {
        "steady": 15.0 + 70.0 * share,
        "ends half-way": 15.0 + 70.0 * np.minimum(1.0, 2.0 * share),
        "among the bots": np.full(ITERATIONS, 34.0),
    }[kind]


def played(rng: np.random.Generator, one: float, other: float, matches: int) -> Counts:
    chance = 1.0 / (1.0 + math.exp((other - one) / (math.sqrt(2.0) * BETA)))
    wins = int(rng.binomial(matches, chance))
    return wins, 0, matches - wins


def trained(folder: Path, path: NDArray, seed: int, *, itself: bool) -> tuple[League, NDArray]:
    """A league after a run, and float [N, 2]: by how much each rating is off, and its `±`, in
    points; the learner's every ten iterations once it is known, and the pool's at the end."""
    rng = np.random.default_rng(seed)
    settings = LeagueConfig(save_freq=EVERY, max_saved=12)
    league = League(settings, folder, SPEC, ANCHORS)
    true = {name: one.mu for name, one in ANCHORS.items()}
    found = []

    def compare(rating: Rating, strength: float) -> None:
        found.append((rating.points - Rating(strength).points, rating.margin))

    for iteration, now in enumerate(path.tolist(), 1):
        past = [name for _ in range(4) if (name := league.draw(rng.random())) and itself]
        each = MATCHES // (2 * len(ANCHORS) if past else len(ANCHORS))
        results = {name: played(rng, now, true[name], each) for name in ANCHORS}
        for name in sorted(set(past)):
            results[name] = played(rng, now, true[name], past.count(name) * MATCHES // 8)
        league.note(results)
        if iteration % EVERY == 0 and itself:
            true[f"step-{iteration}"] = now
            league.offer(iteration, WEIGHTS)
        if iteration % 10 == 0 and iteration > 30:
            compare(league.learner, now)
    for name in league.names:
        compare(league.rating(name), true[name])
    return league, np.array(found)


@pytest.mark.parametrize("kind", ["steady", "ends half-way", "among the bots"])
def test_intervals_hold_the_truth_in_most_seeds(kind: str, tmp_path: Path) -> None:
    path = climbed(kind)
    at_the_end, on_the_way, pool = [], [], []
    for seed in range(SEEDS):
        league, found = trained(tmp_path / str(seed), path, seed, itself=True)
        off, margin = np.abs(found).T
        snapshots = len(league.names)
        inside = off <= margin
        at_the_end.append(inside[-snapshots - 1])
        on_the_way.append(inside[:-snapshots].mean())
        pool.append(inside[-snapshots:].mean())
        assert margin.max() < 500.0  # and it says something
    assert np.mean(at_the_end) >= 0.9
    assert np.mean(on_the_way) >= 0.9
    assert np.mean(pool) >= 0.9


def test_who_has_outgrown_the_bots_and_met_nobody_else_has_a_wide_interval(tmp_path: Path) -> None:
    """All matches are won: how far above the bots the learner stands, no result can say."""
    path = np.minimum(15.0 + 85.0 * np.linspace(0.0, 2.0, ITERATIONS), 100.0)
    inside, margins = [], []
    for seed in range(SEEDS):
        league, found = trained(tmp_path / str(seed), path, seed, itself=False)
        inside.append(abs(found[-1, 0]) <= found[-1, 1])
        margins.append(league.learner.margin)
    assert np.mean(inside) >= 0.9
    assert np.median(margins) > 1000.0
