"""Ratings: estimated together, compared with a slow reference; anchors hold the scale."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from understudy.core.arrays import NDArray
from understudy.league.ratings import (
    BETA,
    MEAN,
    ORIGIN,
    UNKNOWN,
    Counts,
    Joint,
    Rating,
    copied,
    grown,
    joined,
    observed,
    rated_table,
    without,
)

COUNTS = st.tuples(st.integers(0, 12), st.integers(0, 5), st.integers(0, 12))
SCALE = math.sqrt(2.0) * BETA
BOT = {"bot": Rating(30.0, 1.0)}


def chance_to_win(one: float, other: float) -> float:
    return 1.0 / (1.0 + math.exp((other - one) / SCALE))


def played(rng: np.random.Generator, one: float, other: float, matches: int) -> Counts:
    wins = int(rng.binomial(matches, chance_to_win(one, other)))
    return wins, 0, matches - wins


def slowly(
    mean: NDArray, spread: NDArray, results: dict[tuple[int, int], Counts]
) -> tuple[NDArray, NDArray]:
    """Mode and inverse curvature of the posterior, one result after the other, in short steps."""
    trust, most = np.linalg.inv(spread), mean.copy()
    for _ in range(4000):
        slope, curve = -trust @ (most - mean), trust.copy()
        for (one, other), (wins, draws, losses) in results.items():
            side = np.zeros(len(mean))
            side[one], side[other] = 1.0, -1.0
            chance = chance_to_win(most[one], most[other])
            matches, score = wins + draws + losses, wins + draws / 2
            slope += side * (score - matches * chance) / SCALE
            curve += np.outer(side, side) * matches * chance * (1.0 - chance) / SCALE**2
        step = np.linalg.solve(curve, slope)
        if np.abs(step).max() < 1e-10:
            break
        most += 0.2 * step
    return most, np.linalg.inv(curve)


@given(
    counts=st.lists(COUNTS, min_size=3, max_size=3),
    shared=st.floats(0.0, 30.0),
    wide=st.floats(0.5, 40.0),
)
@example(counts=[(12, 0, 0), (12, 0, 0), (12, 0, 0)], shared=0.0, wide=40.0)
def test_against_a_slow_reference(counts: list[Counts], shared: float, wide: float) -> None:
    names, mean = ("a", "b", "c"), np.array([20.0, 26.0, 45.0])
    spread = np.diag([wide**2, 4.0, 9.0]) + shared
    pairs = {("a", "b"): counts[0], ("b", "c"): counts[1], ("a", "c"): counts[2]}
    found = observed(Joint(names, mean, spread), pairs, fixed={})
    indices = {(names.index(one), names.index(other)): n for (one, other), n in pairs.items()}
    most, inverse = slowly(mean, spread, {pair: n for pair, n in indices.items() if any(n)})
    assert found.mean == pytest.approx(most, abs=1e-5)
    assert found.covariance == pytest.approx(inverse, rel=1e-4, abs=1e-6)


def test_a_snapshot_is_the_learner_of_its_moment_whatever_that_turns_out_to_be() -> None:
    joint = Joint.of({"learner": Rating(50.0, 10.0), "trend": Rating(0.0, 1.0)})
    joint = copied(joint, "learner", "step-1")
    assert joint.ratings()["step-1"] == joint.ratings()["learner"]
    joint = observed(joint, {("learner", "bot"): (30, 0, 30)}, fixed=BOT)
    both = joint.ratings()  # it was overrated: then so was its snapshot, without a match
    assert both["step-1"].mu == pytest.approx(both["learner"].mu, abs=1e-6)
    assert both["learner"].mu == pytest.approx(30.0, abs=1.0) and both["learner"].sigma < 2.0
    later = grown(joint, "learner", "trend").ratings()
    assert later["step-1"] == both["step-1"] and later["learner"].sigma > both["learner"].sigma


def test_wins_that_were_certain_say_little_and_losses_much() -> None:
    strong = Joint.of({"learner": Rating(70.0, 10.0)})
    won = observed(strong, {("learner", "bot"): (50, 0, 0)}, fixed=BOT).ratings()["learner"]
    assert won.mu == pytest.approx(70.0, abs=1.5) and won.sigma > 9.0
    lost = observed(strong, {("learner", "bot"): (45, 0, 5)}, fixed=BOT).ratings()["learner"]
    assert lost.mu < 50.0 and lost.sigma < 4.0


def test_a_change_that_nothing_confirms_fades_and_no_player_is_less_known_than_a_new_one() -> None:
    joint = Joint.of({"learner": Rating(30.0, 1.0), "trend": Rating(0.5, 0.1)})
    for _ in range(2000):
        joint = grown(joint, "learner", "trend")
    found = joint.ratings()
    assert found["learner"].sigma == pytest.approx(UNKNOWN, rel=0.01)
    assert found["trend"].mu == pytest.approx(0.0, abs=1e-9)
    assert 50.0 < found["learner"].mu < 70.0  # half of the change is gone after fifty iterations


def test_who_is_forgotten_leaves_what_was_learned_of_the_others() -> None:
    joint = joined(Joint.of({"a": Rating(), "b": Rating()}), {"c": Rating(30.0, 1.0)})
    met = observed(joint, {("a", "b"): (9, 0, 3), ("b", "c"): (5, 2, 5)}, fixed={})
    left = without(met, {"b"})
    assert left.names == ("a", "c")
    assert left.ratings() == {name: met.ratings()[name] for name in ("a", "c")}
    assert met.ratings()["a"].sigma < Rating().sigma


@given(results=st.lists(COUNTS, min_size=1, max_size=4))
@example(results=[(1, 0, 1)])
def test_wins_and_losses_exchanged_mirror_the_rating(results: list[Counts]) -> None:
    counted = {("one", f"anchor {index}"): one for index, one in enumerate(results)}
    anchors = {name: Rating(MEAN, 1.0) for _, name in counted}
    exchanged = {pair: (losses, draws, wins) for pair, (wins, draws, losses) in counted.items()}
    one = rated_table(counted, fixed=anchors)["one"]
    other = rated_table(exchanged, fixed=anchors)["one"]
    assert one.points - 1000.0 == pytest.approx(1000.0 - other.points, abs=1e-3)
    assert one.sigma == pytest.approx(other.sigma)


def test_who_holds_the_scale_alone_does_not_stretch_it() -> None:
    joint = Joint.of({"learner": Rating(), "trend": Rating(0.0, 1.0)})
    for _ in range(100):
        joint = grown(joint, "learner", "trend")
        joint = observed(joint, {("learner", "victim"): (100, 0, 10)}, fixed={"victim": ORIGIN})
    assert joint.ratings()["learner"].points == pytest.approx(1400.0, abs=20.0)
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
    found = rated_table(results, fixed={})  # the mean of the true ones is 25, too
    assert list(found) == names and sorted(names, key=lambda name: found[name].mu) == names
    for name in names:
        assert abs(found[name].mu - true[name]) < 2.5 * found[name].sigma
        assert found[name].sigma < 1.0
    held = rated_table({("a", "b"): (50, 0, 50)}, fixed={"a": Rating(0.0, 1.0)})
    assert held["a"] == Rating(0.0, 1.0)
    assert held["b"].mu == pytest.approx(0.0, abs=0.1)


@pytest.mark.parametrize("true", [-20.0, 5.0, 25.0, 45.0])
def test_a_newcomer_may_be_as_weak_or_as_strong_as_any_bot(true: float) -> None:
    """After two matches with each of seven anchors, intervals hold what is true."""
    rng = np.random.default_rng(3)
    anchors = {f"bot {mu}": Rating(float(mu), 1.0) for mu in (-20, 0, 20, 38, 39, 41, 42)}
    missed = []
    for _ in range(40):
        results = {("new", name): played(rng, true, one.mu, 2) for name, one in anchors.items()}
        found = rated_table(results, fixed=anchors)["new"]
        missed.append(abs(found.mu - true) / found.sigma)
    assert np.mean(np.array(missed) < 2.0) > 0.85


def test_points_read_as_in_chess() -> None:
    assert Rating().points == 1000.0
    ten_to_one = Rating(MEAN + math.log(10.0) * math.sqrt(2.0) * BETA, 1.0)
    assert ten_to_one.points == pytest.approx(1400.0)
    assert chance_to_win(ten_to_one.mu, MEAN) == pytest.approx(10 / 11)
    assert str(ten_to_one) == "1400 ± 59"
    assert ten_to_one.as_dict()["margin"] == pytest.approx(ten_to_one.margin, abs=0.1)
