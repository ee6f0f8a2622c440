"""Steps shrink once they lead nowhere, and grow again when they lead somewhere."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from understudy.core.arrays import NDArray
from understudy.learner import settling
from understudy.learner.settling import MATCHES, WITH_MEMORY, Settling, SettlingWindows

WINDOW, LEAST = MATCHES.window, 0.01
SHAPES = {"policy.w": (60, 50), "policy.b": (50,)}


def params_of(rng: np.random.Generator) -> dict[str, NDArray]:
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}


def plus(params: dict[str, NDArray], step: dict[str, NDArray]) -> dict[str, NDArray]:
    return {name: value + step[name] for name, value in params.items()}


def walk(
    old: Settling,
    *,
    drift: float,
    windows: int,
    seed: int = 0,
    pace: SettlingWindows = MATCHES,
) -> list[Settling]:
    """Windows that move one direction times `drift`, and as far in one of their own."""
    rng = np.random.default_rng(seed)
    params, ahead = params_of(rng), params_of(rng)
    now, told = settling.begun(old, params), []
    for _ in range(windows):
        params = plus(params, params_of(rng))
        params = plus(params, {name: np.float32(drift) * step for name, step in ahead.items()})
        now = settling.settled(now, params, decisions=pace.window, pace=pace)
        told.append(now)
    return told


def test_steps_of_a_random_walk_shrink_to_the_floor() -> None:
    told = walk(Settling(), drift=0.0, windows=130)
    assert 0.3 < told[15].share < 0.8, "not at once"
    assert told[-1].share == pytest.approx(LEAST)
    assert max(abs(one.agreement) for one in told) < 0.1


def test_steps_of_a_network_with_memory_keep_enough_to_climb_on() -> None:
    told = walk(Settling(), drift=0.0, windows=60, pace=WITH_MEMORY)
    assert told[-1].share == pytest.approx(0.04)


def test_steps_that_keep_their_direction_stay_as_large_as_the_settings_say() -> None:
    assert {one.share for one in walk(Settling(), drift=1.0, windows=10)} == {1.0}


def test_steps_that_lead_somewhere_again_grow_again() -> None:
    told = walk(Settling(LEAST), drift=1.0, windows=60)
    assert told[-1].share == 1.0
    steps = [after.share / before.share for before, after in pairwise(told)]
    assert max(steps) <= 2.0, "not at once"


def test_small_steps_that_sway_more_than_they_advance_grow_again() -> None:
    """Each window alone is turned back by the next one; eight of them together are not."""
    rng = np.random.default_rng(0)
    place, ahead = params_of(rng), params_of(rng)
    now = settling.begun(Settling(LEAST), place)
    shares = []
    for _ in range(100):
        place = plus(place, {name: np.float32(0.5) * step for name, step in ahead.items()})
        swayed = plus(place, params_of(rng))
        now = settling.settled(now, swayed, decisions=WINDOW, pace=MATCHES)
        shares.append(now.share)
    assert max(shares[:15]) == LEAST, "two long windows come first"
    assert min(shares[50:]) >= 2.0 * LEAST
    assert max(shares) < 0.2, "windows of large steps are short again, and see the swaying"


def test_small_steps_that_only_sway_stay_small() -> None:
    rng = np.random.default_rng(0)
    place = params_of(rng)
    now = settling.begun(Settling(0.05), place)
    for _ in range(100):
        swayed = plus(place, params_of(rng))
        now = settling.settled(now, swayed, decisions=WINDOW, pace=MATCHES)
    assert now.agreement < -0.3 and now.share == LEAST


def test_steps_that_go_back_and_forth_shrink_soonest() -> None:
    rng = np.random.default_rng(0)
    params, step = params_of(rng), params_of(rng)
    now = settling.begun(Settling(), params)
    for number in range(4):
        there = params if number % 2 else plus(params, step)
        now = settling.settled(now, there, decisions=WINDOW, pace=MATCHES)
    assert now.agreement == pytest.approx(-1.0, abs=1e-3)
    assert now.share == pytest.approx(0.5**3), "halved by each window after the first"


def test_a_window_is_as_long_as_it_takes_and_begins_where_the_last_ended() -> None:
    rng = np.random.default_rng(0)
    params = params_of(rng)
    now = settling.begun(Settling(), params)
    np.testing.assert_array_equal(now.start, settling.sketch(params))
    half = settling.settled(now, plus(params, params), decisions=WINDOW / 2, pace=MATCHES)
    assert (half.decisions, len(half.moved), half.share) == (WINDOW / 2, 0, 1.0)
    assert settling.begun(half, params) is half
    whole = settling.settled(half, plus(params, params), decisions=WINDOW / 2, pace=MATCHES)
    np.testing.assert_allclose(whole.moved, settling.sketch(params), rtol=1e-4, atol=1e-4)
    assert whole.decisions == 0.0 and whole.share == 1.0, "one window agrees with nothing yet"


def test_parameters_that_do_not_move_agree_with_nothing() -> None:
    params = params_of(np.random.default_rng(0))
    now = settling.begun(Settling(), params)
    for _ in range(3):
        now = settling.settled(now, params, decisions=WINDOW, pace=MATCHES)
    assert now.agreement == 0.0 and 0.0 < now.share < 1.0


def test_an_interruption_keeps_the_share_and_nothing_else() -> None:
    told = walk(Settling(), drift=0.0, windows=20)[-1]
    again = settling.interrupted(told)
    assert again.share == told.share < 1.0
    assert len(again.start) == len(again.moved) == 0 and again.decisions == 0.0


@pytest.mark.parametrize("alike", [-0.8, -0.3, 0.0, 0.05, 0.5, 0.95])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_sketch_keeps_cosines(alike: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = params_of(rng), params_of(rng)
    mixed = {
        name: np.float32(alike) * one[name] + np.float32(np.sqrt(1.0 - alike**2)) * other[name]
        for name in one
    }

    def cosine(a: NDArray, b: NDArray) -> float:
        return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))

    def flat(params: dict[str, NDArray]) -> NDArray:
        return np.concatenate([value.ravel() for value in params.values()])

    exact = cosine(flat(one), flat(mixed))
    assert cosine(settling.sketch(one), settling.sketch(mixed)) == pytest.approx(exact, abs=0.05)


@pytest.mark.parametrize(
    ("later", "grows"), [(0.5, False), (0.52, False), (0.7, True), (0.3, True)]
)
def test_steps_of_a_network_with_memory_grow_only_where_results_change(
    later: float, *, grows: bool
) -> None:
    """They agree for hundreds of batches in which nothing is gained."""
    rng = np.random.default_rng(0)
    params, ahead = params_of(rng), params_of(rng)
    now = settling.begun(Settling(0.05), params)
    for won in (0.5, 0.5, 0.5, later):
        params = plus(params, ahead)
        results = (np.arange(200) < 200 * won).astype(float).tolist()
        now = settling.settled(now, params, decisions=WINDOW, pace=WITH_MEMORY, returns=results)
    assert now.agreement > 0.99
    assert now.share == pytest.approx(0.1 if grows else 0.05, rel=1e-2)


def test_results_are_compared_with_those_of_the_last_few_windows() -> None:
    params = params_of(np.random.default_rng(0))
    now = settling.begun(Settling(), params)
    for window in range(20):
        now = settling.settled(
            now, params, decisions=WINDOW, pace=WITH_MEMORY, returns=[float(window)] * 10
        )
    assert now.results.size == 0 and now.earlier.size == 50
    assert 15.0 < now.earlier.mean < 17.0, "the older ones have faded"


def test_a_version_keeps_all_of_it_and_an_older_one_has_no_results() -> None:
    params = params_of(np.random.default_rng(0))
    now = settling.begun(Settling(), params)
    for returns in ([1.0, 2.0], [3.0], [5.0]):
        params = plus(params, params)
        now = settling.settled(
            now, params, decisions=0.6 * WINDOW, pace=WITH_MEMORY, returns=returns
        )
    arrays = settling.to_arrays(now)
    again = settling.to_arrays(settling.from_arrays(arrays))
    assert now.results.size == 1 and now.earlier.size == 3
    assert again.keys() == arrays.keys()
    for name, value in arrays.items():
        np.testing.assert_array_equal(again[name], value)
    del arrays["settling.results"]
    old = settling.from_arrays(arrays)
    assert old.share == now.share and old.results.size == old.earlier.size == 0
