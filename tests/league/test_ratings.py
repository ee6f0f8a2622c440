"""Ratings: recover what is true, hold anchors still, and follow a learner that changes."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from understudy.core.errors import MissingDependency
from understudy.league import ratings
from understudy.league.ratings import (
    BETA,
    MEAN,
    ORIGIN,
    Counts,
    Rating,
    aged,
    rated,
    rated_table,
    spread,
)  # fmt: skip

COUNTS = st.tuples(st.integers(0, 12), st.integers(0, 5), st.integers(0, 12))


def chance_to_win(one: float, other: float) -> float:
    return 1.0 / (1.0 + math.exp((other - one) / (math.sqrt(2.0) * BETA)))


def played(rng: np.random.Generator, one: float, other: float, matches: int) -> Counts:
    wins = int(rng.binomial(matches, chance_to_win(one, other)))
    return wins, 0, matches - wins


def bradley_terry(one: Rating, other: Rating, score: int) -> tuple[Rating, Rating]:
    """Weng and Lin (2011), algorithm 1 for two players, written out."""
    c = math.sqrt(one.sigma**2 + other.sigma**2 + 2.0 * BETA**2)
    p = 1.0 / (1.0 + math.exp((other.mu - one.mu) / c))
    after = []
    for player, gain in ((one, (score + 1) / 2 - p), (other, p - (score + 1) / 2)):
        shrink = player.sigma / c * player.sigma**2 / c**2 * p * (1.0 - p)
        after.append(
            Rating(
                player.mu + player.sigma**2 / c * gain,
                player.sigma * math.sqrt(max(1.0 - shrink, 1e-4)),
            )
        )
    return after[0], after[1]


@given(results=st.lists(COUNTS, min_size=1, max_size=4), fix=st.booleans())
def test_against_a_slow_reference(results: list[Counts], fix: bool) -> None:
    names = [f"step-{index}" for index in range(len(results))]
    start = {name: Rating(20.0 + 3.0 * index, 2.0) for index, name in enumerate(names)}
    counted = dict(zip(names, results, strict=True))
    fixed = names[:1] if fix else []
    found, others = rated(Rating(), start, counted, fixed=fixed)
    one, expected = Rating(), dict(start)
    for (name,), score in spread([((name,), counts) for name, counts in counted.items()]):
        one, theirs = bradley_terry(one, expected[name], score)
        if name not in fixed:
            expected[name] = theirs
    assert (found.mu, found.sigma) == pytest.approx((one.mu, one.sigma))
    assert list(others) == names
    for name in names:
        assert others[name].mu == pytest.approx(expected[name].mu)
        assert others[name].sigma == pytest.approx(expected[name].sigma)
    if fix:
        assert others[names[0]] is start[names[0]]


@given(counts=st.lists(COUNTS, max_size=4))
def test_matches_counted_together_are_spread_evenly(counts: list[Counts]) -> None:
    listed = [((str(index),), one) for index, one in enumerate(counts)]
    matches = spread(listed)
    for who, (wins, draws, losses) in listed:
        own = [score for name, score in matches if name == who]
        pairs = wins - own.count(1)  # of a win and a loss, as two draws
        assert pairs >= 0
        assert (own.count(-1), own.count(0)) == (losses - pairs, draws + 2 * pairs)
        half = own[: len(own) // 2]
        assert abs(half.count(1) - own.count(1) / 2) <= 1.5
        assert abs(half.count(-1) - own.count(-1) / 2) <= 1.5


@given(results=st.lists(COUNTS, min_size=1, max_size=4))
@example(results=[(1, 0, 1)])
@example(results=[(3, 1, 1), (2, 2, 2)])
def test_wins_and_losses_exchanged_mirror_the_rating(results: list[Counts]) -> None:
    """Around the anchors; so whoever wins and loses alike is rated as they are."""
    counted = {f"anchor {index}": one for index, one in enumerate(results)}
    anchors = dict.fromkeys(counted, Rating(MEAN, 1.0))
    exchanged = {name: (losses, draws, wins) for name, (wins, draws, losses) in counted.items()}
    one, _ = rated(Rating(), anchors, counted, fixed=anchors)
    other, _ = rated(Rating(), anchors, exchanged, fixed=anchors)
    assert one.points - 1000.0 == pytest.approx(1000.0 - other.points, abs=1.0)
    assert one.sigma == pytest.approx(other.sigma)


def test_who_holds_the_scale_alone_does_not_stretch_it() -> None:
    one = Rating()
    for _ in range(200):
        one, _ = rated(aged(one), {"victim": ORIGIN}, {"victim": (100, 0, 10)}, fixed=["victim"])
    assert one.points == pytest.approx(1400.0, abs=20.0)
    assert str(ORIGIN) == "1000 ± 0"


def test_strengths_are_recovered_from_a_round_robin() -> None:
    rng = np.random.default_rng(0)
    true = {"a": 17.0, "b": 22.0, "c": 25.0, "d": 28.0, "e": 33.0}
    names = list(true)
    results = {
        (one, other): played(rng, true[one], true[other], 100)
        for index, one in enumerate(names)
        for other in names[index + 1 :]
    }
    found = rated_table({name: Rating() for name in names}, results)
    assert sorted(names, key=lambda name: found[name].mu) == names
    for name in names:
        assert abs(found[name].mu - true[name]) < 2.5 * found[name].sigma
        assert found[name].sigma < 2.0
    held = rated_table({"a": Rating(0.0, 1.0), "b": Rating()}, {("a", "b"): (50, 0, 50)}, fixed="a")
    assert held["a"] == Rating(0.0, 1.0)
    assert abs(held["b"].mu) < 2.5 * held["b"].sigma


def follow(true: list[float], *, seed: int) -> list[Rating]:
    """A learner among three anchors and its own snapshots, thirty matches an iteration."""
    rng = np.random.default_rng(seed)
    anchors = {
        "weak": Rating(10.0, 1.0),
        "middling": Rating(25.0, 1.0),
        "strong": Rating(40.0, 1.0),
    }
    strength = {name: rating.mu for name, rating in anchors.items()}
    others, one, history = dict(anchors), Rating(), []
    for iteration, now in enumerate(true):
        met = [*anchors, *list(others)[3:][-6:]]
        results = {name: played(rng, now, strength[name], 30 // len(met)) for name in met}
        one, after = rated(aged(one), {name: others[name] for name in met}, results, fixed=anchors)
        others |= after
        if iteration % 5 == 0:
            others[f"step-{iteration}"], strength[f"step-{iteration}"] = one, now
        history.append(one)
    assert {name: others[name] for name in anchors} == anchors  # to the last bit
    return history


def test_a_learner_that_stands_still_is_not_rated_up_by_its_own_league() -> None:
    history = follow([34.0] * 300, seed=1)
    late = np.array([one.mu for one in history[100:]])
    assert abs(late.mean() - 34.0) < 1.0
    assert np.mean(np.abs(late - 34.0) < 2.0 * history[-1].sigma) > 0.9


def test_a_learner_that_climbs_is_followed() -> None:
    true = list(np.linspace(15.0, 55.0, 300))
    history = follow(true, seed=2)
    behind = np.array(true[50:]) - np.array([one.mu for one in history[50:]])
    assert abs(behind.mean()) < 2.5
    assert 0.5 < history[-1].sigma < 2.0


@pytest.mark.parametrize("true", [-20.0, 5.0, 25.0, 45.0])
def test_a_newcomer_may_be_as_weak_or_as_strong_as_any_bot(true: float) -> None:
    """After two matches with each of seven anchors, intervals hold what is true."""
    rng = np.random.default_rng(3)
    anchors = {f"bot {mu}": Rating(float(mu), 1.0) for mu in (-20, 0, 20, 38, 39, 41, 42)}
    missed = []
    for _ in range(40):
        results = {name: played(rng, true, one.mu, 2) for name, one in anchors.items()}
        found, _ = rated(Rating(), anchors, results, fixed=anchors)
        missed.append(abs(found.mu - true) / found.sigma)
    assert np.mean(np.array(missed) < 2.0) > 0.85


def test_uncertainty_grows_by_change_alone_and_never_beyond_a_newcomers() -> None:
    one = Rating(30.0, 1.0)
    assert aged(one, 0.0) == one
    assert aged(one, 1.0) == Rating(30.0, math.sqrt(2.0))
    for _ in range(10_000):
        one = aged(one, 0.5)
    assert one == Rating(30.0, Rating().sigma)


def test_a_snapshot_moves_less_and_less() -> None:
    """It never changes, so every match leaves less to be learned about it."""
    one, snapshot = Rating(30.0, 1.0), Rating(30.0, 1.0)
    sigmas = []
    for _ in range(5):
        _, after = rated(one, {"step-1": snapshot}, {"step-1": (20, 0, 20)}, fixed=())
        snapshot = after["step-1"]
        sigmas.append(snapshot.sigma)
    assert sigmas == sorted(sigmas, reverse=True) and sigmas[0] < 1.0


def test_points_read_as_in_chess() -> None:
    assert Rating().points == 1000.0
    ten_to_one = Rating(MEAN + math.log(10.0) * math.sqrt(2.0) * BETA, 1.0)
    assert ten_to_one.points == pytest.approx(1400.0)
    assert chance_to_win(ten_to_one.mu, MEAN) == pytest.approx(10 / 11)
    assert str(ten_to_one) == "1400 ± 59"
    assert ten_to_one.as_dict()["margin"] == pytest.approx(ten_to_one.margin, abs=0.1)


def test_without_openskill_one_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    ratings._model.cache_clear()
    monkeypatch.setitem(sys.modules, "openskill.models", None)
    with pytest.raises(MissingDependency, match=r'pip install "understudy\[learn\]"'):
        rated(Rating(), {}, {}, fixed=())
