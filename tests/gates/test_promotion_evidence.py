"""The arithmetic of promotion against slow, obvious references; what its promises rest on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.core.arrays import NDArray
from understudy.gates.promotion import evidence as maths
from understudy.gates.promotion import trial as gate
from understudy.gates.promotion.records import TrialSettings

from .promotion_worlds import slow_evidence

UNIT = st.floats(0.0, 1.0)
INSIDE = st.floats(0.01, 0.99)


def columns(matches: list[tuple[bool, float, float, int]]) -> dict[str, Any]:
    arms, shares, results, strata = zip(*matches, strict=True)
    return {
        "arms": np.array(arms, float),
        "shares": np.array(shares),
        "results": np.array(results),
        "strata": np.array(strata),
    }


MATCHES = st.lists(st.tuples(st.booleans(), INSIDE, UNIT, st.integers(0, 2)), min_size=1)


@given(INSIDE, UNIT, INSIDE)
def test_equal_arms_make_the_bet_even_whatever_the_result(q: float, y: float, m: float) -> None:
    canary, incumbent = (
        float(maths.gains(np.array(arm), np.array(q), np.array(y), np.array(m)))
        for arm in (1.0, 0.0)
    )
    assert q * canary + (1 - q) * incumbent == pytest.approx(0.0, abs=1e-12)
    assert max(abs(canary), abs(incumbent)) <= 1.0 + 1e-12


@settings(max_examples=40)
@given(MATCHES)
def test_evidence_is_what_its_definition_says(
    matches: list[tuple[bool, float, float, int]],
) -> None:
    test = columns(matches)
    _, looks = gate.advance(gate.new_trial(strata=3), TrialSettings(), alpha=0.05, **test)
    assert looks.better == pytest.approx(slow_evidence(**test), rel=1e-9)
    assert looks.worse == pytest.approx(slow_evidence(**test, sign=-1.0), rel=1e-9)


@settings(max_examples=40)
@given(MATCHES, st.data())
def test_matches_in_pieces_give_the_same_bits(
    matches: list[tuple[bool, float, float, int]], data: st.DataObject
) -> None:
    test = columns(matches)
    whole, looks = gate.advance(gate.new_trial(strata=3), TrialSettings(), alpha=0.05, **test)
    parts, seen, start = gate.new_trial(strata=3), [], 0
    while start < len(matches):
        end = data.draw(st.integers(start + 1, len(matches)))
        piece = {name: column[start:end] for name, column in test.items()}
        parts, more = gate.advance(parts, TrialSettings(), alpha=0.05, **piece)
        seen += more.verdict.tolist()
        start = end
    assert all(np.array_equal(a, b) for a, b in zip(whole, parts, strict=True))
    assert seen == looks.verdict.tolist()


def simulated(
    *, canary: float, incumbent: float, runs: int, matches: int, share: float, seed: int
) -> NDArray:
    """Whether each of so many endless tests side by side has ever promoted."""
    rng = np.random.default_rng(seed)
    now, shape = gate.new_trial(shape=(runs,)), (matches, runs)
    arms = (rng.random(shape) < share).astype(float)
    results = (rng.random(shape) < np.where(arms == 1, canary, incumbent)).astype(float)
    _, looks = gate.advance(
        now,
        TrialSettings(),
        alpha=0.05,
        arms=arms,
        shares=np.full(shape, share),
        results=results,
        strata=np.zeros(shape, int),
    )
    return np.asarray((looks.better >= 20.0).any(0))


@pytest.mark.parametrize(("rate", "share"), [(0.5, 0.5), (0.85, 0.2)])
def test_equal_canaries_are_rarely_promoted_although_one_looks_after_every_match(
    rate: float, share: float
) -> None:
    equal = {"canary": rate, "incumbent": rate, "share": share}
    assert simulated(**equal, runs=500, matches=500, seed=1).mean() <= 0.055
    better = {"canary": rate + 0.14, "incumbent": rate - 0.14, "share": share}
    assert simulated(**better, runs=100, matches=500, seed=2).mean() >= 0.9


def test_arms_that_do_not_fit_the_coin_are_seen() -> None:
    rng = np.random.default_rng(3)
    shape = (600, 200)

    def misfits(real: float) -> float:
        _, looks = gate.advance(
            gate.new_trial(shape=shape[1:]),
            TrialSettings(),
            alpha=0.05,
            arms=(rng.random(shape) < real).astype(float),
            shares=np.full(shape, 0.5),
            results=np.zeros(shape),
            strata=np.zeros(shape, int),
        )
        return float((looks.verdict == gate.MISFIT).any(0).mean())

    assert misfits(0.5) <= 0.02
    assert misfits(0.65) >= 0.95
    assert misfits(0.35) >= 0.95


# --- the interval --------------------------------------------------------------------------------


def played(
    rng: np.random.Generator, matches: int, *, canary: float, incumbent: float
) -> dict[str, Any]:
    arms = (rng.random(matches) < 0.4).astype(float)
    rates = np.where(arms == 1, canary, incumbent)
    return {
        "arms": arms,
        "shares": np.full(matches, 0.4),
        "results": (rng.random(matches) < rates).astype(float),
        "strata": rng.integers(2, size=matches),
    }


def test_an_interval_holds_the_differences_that_no_test_refuses() -> None:
    test = played(np.random.default_rng(4), 200, canary=0.9, incumbent=0.3)
    kept = []
    for d in np.linspace(-1.0, 1.0, 21):
        raised = np.where(test["arms"] == 0, max(d, 0.0), max(-d, 0.0))
        shifted = {**test, "results": (test["results"] + raised) / (1.0 + abs(d))}
        more = slow_evidence(**shifted)[-1]
        less = slow_evidence(**shifted, sign=-1.0)[-1]
        if more < 20.0 and less < 20.0:
            kept.append(d)
    low, high = maths.difference_interval(**test, confidence=0.9, step=0.1)
    assert [low, high] == pytest.approx([kept[0] - 0.1, kept[-1] + 0.1])
    assert 0.0 < low < 0.6 < high < 1.0


def test_intervals_hold_the_true_difference_and_become_narrow() -> None:
    rng = np.random.default_rng(5)
    held, widths = 0, []
    for _ in range(60):
        test = played(rng, 300, canary=0.7, incumbent=0.5)
        for matches in (20, 300):
            part = {name: column[:matches] for name, column in test.items()}
            low, high = maths.difference_interval(**part, step=0.02)
            held += low <= 0.2 <= high
            widths.append(high - low)
    assert held >= 112  # of 120; 108 are promised
    assert np.mean(widths[1::2]) < 0.5
    assert np.mean(widths[::2]) > 1.0


@given(st.integers(0, 10_000))
@settings(max_examples=20)
def test_an_interval_lies_above_zero_exactly_where_the_test_promotes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    test = played(rng, int(rng.integers(1, 120)), canary=0.95, incumbent=0.3)
    _, looks = gate.advance(gate.new_trial(strata=2), TrialSettings(), alpha=0.05, **test)
    low, _ = maths.difference_interval(**test)
    assert (low >= 0.0) == (looks.better[-1] >= 20.0)


def test_an_interval_without_matches_says_nothing() -> None:
    none = np.zeros(0)
    assert maths.difference_interval(none, none, none, none) == (-1.0, 1.0)
    one = np.ones(1)
    assert maths.difference_interval(one, one / 2, one, np.zeros(1, int)) == (-1.0, 1.0)


def harm_bets(errors: NDArray, coins: NDArray, *, deviations: float = 2.0) -> NDArray:
    whole = np.full(len(errors), 0.123)
    found, _ = maths.losses(
        whole, coins=coins, errors=errors, spread=np.zeros(2), deviations=deviations
    )
    return found


def test_harm_is_judged_in_units_of_the_spread_of_the_matches_before() -> None:
    errors = np.full(40, 0.01)
    found = harm_bets(errors, np.ones(40))
    first = int((found == 0.123).sum())
    assert 1 < first < 20 and (found[:first] == 0.123).all(), "the whole scale at first"
    # From then on one deviation of the errors is half a unit, whatever the scale.
    np.testing.assert_allclose(found[first:], -0.5)
    np.testing.assert_allclose(harm_bets(100.0 * errors, np.ones(40)), found)
    wild = np.append(errors, [5.0, -5.0])
    np.testing.assert_allclose(harm_bets(wild, np.ones(42))[-2:], [-1.0, 1.0], atol=0.3)
    assert np.abs(harm_bets(wild, np.ones(42))).max() <= 1.0, "and clipped"


@given(st.lists(st.floats(-1.0, 1.0), min_size=2, max_size=60), INSIDE, st.integers(1, 59))
def test_harm_on_the_spread_is_an_even_bet_between_equals_in_any_pieces(
    numbers: list[float], q: float, at: int
) -> None:
    errors = np.array(numbers)
    shares = np.full(len(errors), q)
    arms = [maths.coin_gains(np.full(len(errors), arm), shares) for arm in (1.0, 0.0)]
    as_canary, as_incumbent = (
        maths.losses(-coin * errors, coins=coin, errors=errors, spread=np.zeros(2), deviations=2.0)[
            0
        ]
        for coin in arms
    )
    # The unit does not depend on the coin, so what the coin expects of each match is nothing.
    np.testing.assert_allclose(q * as_canary + (1.0 - q) * as_incumbent, 0.0, atol=1e-12)
    spread, pieces = np.zeros(2), []
    for part in (slice(None, at), slice(at, None)):
        found, spread = maths.losses(
            (-arms[0] * errors)[part],
            coins=arms[0][part],
            errors=errors[part],
            spread=spread,
            deviations=2.0,
        )
        pieces.append(found)
    np.testing.assert_array_equal(np.concatenate(pieces), as_canary)
