"""The payoff matrix: the same from both sides, and every cycle found once."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.core.arrays import NDArray
from understudy.league.payoffs import Payoffs, simple_cycles
from understudy.league.ratings import Counts
from understudy.match.tally import Tally, wilson

SURE: Counts = (90, 0, 10)
EVEN: Counts = (52, 0, 48)


def test_what_one_won_the_other_lost() -> None:
    results = {("a", "b"): (5, 2, 3), ("a", "c"): (0, 0, 4)}
    payoffs = Payoffs.of(("a", "b", "c"), results)
    assert payoffs.tally(0, 1) == Tally(5, 2, 3)
    assert payoffs.tally(1, 0) == Tally(3, 2, 5)
    assert payoffs.tally(1, 2).matches == 0
    assert payoffs.total(0) == Tally(5, 2, 7)
    assert payoffs.total(2) == Tally(4, 0, 0)
    assert payoffs.pairs() == results
    bounds = payoffs.lower_bounds()
    assert bounds[0, 1] == wilson(5, 10)[0]
    assert bounds[2, 0] == wilson(4, 4)[0]
    assert bounds[1, 2] == bounds[0, 0] == 0.0  # nothing is known: nobody beats anybody


def test_a_cycle_and_how_sure_it_is() -> None:
    results = {
        ("rock", "scissors"): SURE,
        ("rock", "paper"): (30, 0, 70),
        ("scissors", "paper"): SURE,
    }
    (cycle,) = Payoffs.of(("rock", "scissors", "paper"), results).cycles()
    assert str(cycle) == "rock > scissors > paper > rock"
    assert cycle.surety == pytest.approx(wilson(70, 100)[0])


def test_a_lead_that_may_be_luck_makes_no_cycle() -> None:
    results = {("a", "b"): SURE, ("b", "c"): SURE, ("c", "a"): EVEN}
    assert Payoffs.of(("a", "b", "c"), results).cycles() == []
    drawn: Counts = (49, 51, 0)  # never lost, but draws are not wins
    results = {("a", "b"): SURE, ("b", "c"): SURE, ("c", "a"): drawn}
    assert Payoffs.of(("a", "b", "c"), results).cycles() == []


def test_the_shortest_and_the_surest_come_first() -> None:
    results = {
        ("a", "b"): SURE, ("b", "c"): SURE, ("c", "a"): (65, 0, 35),
        ("d", "e"): SURE, ("e", "f"): SURE, ("f", "d"): SURE,
        ("g", "h"): SURE, ("h", "i"): SURE, ("i", "j"): SURE, ("j", "g"): SURE,
    }  # fmt: skip
    found = Payoffs.of(tuple("abcdefghij"), results).cycles()
    assert ["".join(cycle.names) for cycle in found] == ["def", "abc", "ghij"]


def brute_force(beats: NDArray, longest: int) -> set[tuple[int, ...]]:
    """Every order of every group of players, tried."""
    count = len(beats)
    return {
        path
        for length in range(2, longest + 1)
        for path in permutations(range(count), length)
        if path[0] == min(path)
        and all(beats[i, j] for i, j in zip(path, (*path[1:], path[0]), strict=True))
    }


@given(count=st.integers(0, 6), longest=st.integers(2, 5), bits=st.integers(0, 2**36 - 1))
def test_cycles_are_those_that_brute_force_finds(count: int, longest: int, bits: int) -> None:
    beats = np.array(
        [[i != j and bits >> (6 * i + j) & 1 for j in range(count)] for i in range(count)], np.bool_
    ).reshape(count, count)
    found = list(simple_cycles(beats, longest=longest))
    assert len(found) == len(set(found))
    assert set(found) == brute_force(beats, longest)


@given(
    results=st.dictionaries(
        st.sampled_from([(a, b) for i, a in enumerate("abcde") for b in "abcde"[i + 1 :]]),
        st.tuples(st.integers(0, 40), st.integers(0, 9), st.integers(0, 40)),
    )
)
def test_no_cycle_of_two_and_every_step_is_sure(results: dict[tuple[str, str], Counts]) -> None:
    """Two cannot both win more than half, so the shortest cycle has three."""
    payoffs = Payoffs.of(tuple("abcde"), results)
    bounds = payoffs.lower_bounds()
    for cycle in payoffs.cycles():
        assert len(cycle.names) >= 3
        steps = zip(cycle.names, (*cycle.names[1:], cycle.names[0]), strict=True)
        sure = [bounds["abcde".index(a), "abcde".index(b)] for a, b in steps]
        assert min(sure) == cycle.surety > 0.5
