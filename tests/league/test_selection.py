"""Rounds of a population: evidence decides, luck does not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.league.lineage import LineageRow, Settings
from understudy.league.selection import (
    MIN_MATCHES,
    AgentStanding,
    Evidence,
    Limits,
    changed,
    first_settings,
    held_round,
    pairs,
    standings,
)

LIMITS = Limits((1e-5, 1e-3))
GIVEN = Settings(5e-4, 0.02)


def a_round(
    evidence: list[Evidence],
    settings: list[Settings],
    broken: list[bool] | None = None,
    seed: int = 1,
) -> list[LineageRow]:
    return held_round(
        number=3,
        steps=900,
        evidence=evidence,
        settings=settings,
        broken=broken or [False] * len(settings),
        replaced=0.25,
        spread=1.2,
        limits=LIMITS,
        seed=seed,
    )


def test_fitness_is_the_mean_over_opponents_and_draws_count_half() -> None:
    first, second, third = standings(
        [
            {"easy": (90, 0, 0), "hard": (1, 2, 7)},  # many quick wins count once
            {"hard": (10, 0, 0), "easy": (30, 20, 50), "rare": (0, 0, 9)},
            {"easy": (MIN_MATCHES - 1, 0, 0)},
        ]
    )
    assert first is not None and second is not None and third is None
    assert first.fitness == pytest.approx((1.0 + 0.2) / 2)
    assert second.fitness == pytest.approx((1.0 + 0.4) / 2), "a bot that not all met is left out"
    assert 0.0 < second.error < first.error, "ten hard matches say less than a hundred"
    assert standings([{}, {}]) == [None, None]


def test_the_error_is_that_of_simulated_matches() -> None:
    chance = np.random.default_rng(3)
    counts = chance.multinomial(80, (0.5, 0.2, 0.3), size=4000)
    found = [one for one in standings([{"x": tuple(row)} for row in counts.tolist()]) if one]
    scatter = np.std([one.fitness for one in found])
    assert np.mean([one.error for one in found]) == pytest.approx(scatter, rel=0.05)


def test_the_worst_gives_way_to_the_best_and_the_second_worst_to_the_second() -> None:
    found = [AgentStanding(f, 0.01) for f in (0.2, 0.9, 0.5, 0.3, 0.8, 0.6, 0.55, 0.52)]
    assert pairs(found, replaced=0.25) == [(0, 1), (3, 4)]
    assert pairs(found, replaced=0.5) == [(0, 1), (3, 4), (2, 5)], "0.52 and 0.55 are too near"
    assert pairs(found, replaced=0.01) == [(0, 1)], "a round replaces one, or there is no round"
    assert pairs(found, replaced=0.0) == []
    assert pairs(found[:2], replaced=0.25) == [(0, 1)]


def test_whoever_has_no_evidence_is_neither_best_nor_worst() -> None:
    low, high = AgentStanding(0.1, 0.01), AgentStanding(0.9, 0.01)
    assert pairs([None, low, high, None], replaced=0.5) == [(1, 2)]
    assert pairs([None, high], replaced=0.5) == []
    assert pairs([None, None], replaced=0.5) == []


@pytest.mark.parametrize("agents", [2, 4, 8, 16])
def test_equal_agents_stay_with_95_percent_confidence(agents: int) -> None:
    chance = np.random.default_rng(agents)
    rounds, held = 400, 0
    for _ in range(rounds):
        wins = chance.binomial(300, 0.6, size=agents).tolist()
        held += bool(pairs(standings([{"x": (w, 0, 300 - w)} for w in wins]), replaced=0.5))
    assert held / rounds < 0.05 + 3 * math.sqrt(0.05 * 0.95 / rounds)


def test_an_agent_that_is_much_worse_gives_way_almost_always() -> None:
    chance = np.random.default_rng(9)
    held = 0
    for _ in range(200):
        wins = chance.binomial(300, (0.45, 0.6, 0.6, 0.6)).tolist()
        found = standings([{"x": (w, 0, 300 - w)} for w in wins])
        held += any(worst == 0 for worst, _ in pairs(found, replaced=0.25))
    assert held / 200 > 0.9


@given(st.floats(1.0, 3.0), st.integers(0, 2**31), st.integers(0, 50))
def test_a_change_is_within_the_spread_and_the_limits(spread: float, seed: int, word: int) -> None:
    after = changed(GIVEN, spread=spread, limits=LIMITS, key=(seed, word))
    assert after == changed(GIVEN, spread=spread, limits=LIMITS, key=(seed, word))
    for name, value in after.as_dict().items():
        before = getattr(GIVEN, name)
        least, most = getattr(LIMITS, name)
        assert least <= value <= most
        assert before / spread * 0.999 <= value <= before * spread * 1.001


def test_agents_begin_apart_and_the_first_one_as_it_was_asked() -> None:
    first = first_settings(GIVEN, agents=8, spread=1.2, limits=LIMITS, seed=0)
    assert first[0] == GIVEN and len(set(first)) == 8
    assert first != first_settings(GIVEN, agents=8, spread=1.2, limits=LIMITS, seed=1)
    assert first[:4] == first_settings(GIVEN, agents=4, spread=1.2, limits=LIMITS, seed=0)
    rates = [one.learning_rate for one in first]
    assert max(rates) / min(rates) > 1.4 and max(rates) <= 1e-3


def test_a_round_copies_halves_and_keeps() -> None:
    good, bad, none = {"x": (90, 0, 10)}, {"x": (10, 0, 90)}, {"x": (2, 0, 0)}
    settings = [Settings(1e-4 * (1 + index), 0.01) for index in range(4)]
    rows = a_round([bad, good, good, none], settings, [True, False, True, False])
    assert [row.parent for row in rows] == [2, 2, 3, 4], "who is replaced need not be halved"
    assert [row.agent for row in rows] == [1, 2, 3, 4] and {row.round for row in rows} == {3}
    assert rows[0].fitness == pytest.approx(0.1) and rows[0].parent_fitness == pytest.approx(0.9)
    assert rows[0].before == settings[0] and rows[0].after != settings[1]
    assert 1 / 1.21 < rows[0].after.learning_rate / settings[1].learning_rate < 1.21
    assert rows[1].after == settings[1] and rows[3].after == settings[3]
    assert rows[2].after.learning_rate == pytest.approx(settings[2].learning_rate / 2)
    assert rows[3].fitness is None and "few" in rows[3].why
    assert rows == a_round([bad, good, good, none], settings, [True, False, True, False])
    assert rows != a_round([bad, good, good, none], settings, [True, False, True, False], seed=2)
