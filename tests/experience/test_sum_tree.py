from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.experience.sum_tree import SumTree

CAPACITIES = (1, 5, 4096, 4097, 70_000)
"""On both sides of every number of levels up to two; a million has two as well."""


def slow_find(values: npt.NDArray[np.float64], mass: float) -> int:
    """The obvious walk along all numbers."""
    running = 0.0
    for index in np.flatnonzero(values):
        running += values[index]
        if mass < running:
            return int(index)
    raise AssertionError("mass is not below the total")


@settings(max_examples=60)
@given(data=st.data(), capacity=st.sampled_from(CAPACITIES))
def test_finds_what_a_walk_along_all_numbers_finds(data: st.DataObject, capacity: int) -> None:
    tree, values = SumTree(capacity), np.zeros(capacity)
    entry = st.tuples(st.integers(0, capacity - 1), st.integers(0, 1000))
    for batch in data.draw(st.lists(st.lists(entry, min_size=1, max_size=20), max_size=5)):
        indices, numbers = (np.array(side) for side in zip(*batch, strict=True))
        tree.put(indices, numbers.astype(np.float64))
        values[indices] = numbers  # of an index that comes twice the later one stays, here as there
    assert tree.total == values.sum()
    np.testing.assert_array_equal(tree.take(np.arange(capacity)), values)
    if tree.total:
        masses = data.draw(st.lists(st.integers(0, int(tree.total) - 1), min_size=1, max_size=20))
        found = tree.find(np.array(masses, np.float64))
        assert found.tolist() == [slow_find(values, mass) for mass in masses]


@settings(max_examples=60)
@given(
    numbers=st.lists(st.floats(0.0, 1e150), min_size=1, max_size=40),
    capacity=st.sampled_from(CAPACITIES[1:]),
    seed=st.integers(0, 2**32 - 1),
)
def test_zero_is_never_found_whatever_is_lost_by_rounding(
    numbers: list[float], capacity: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    tree = SumTree(capacity)
    tree.put(rng.integers(capacity, size=len(numbers)), np.array(numbers))
    if tree.total > 0.0:
        masses = np.append(rng.random(64), [0.0, 1.0 - 2**-53, 1.0]) * tree.total
        assert (tree.take(tree.find(masses)) > 0.0).all()


def test_sums_do_not_drift() -> None:
    rng = np.random.default_rng(3)
    tree, fresh = SumTree(70_000), SumTree(70_000)
    for _ in range(300):
        scale = 10.0 ** rng.integers(-9, 9)
        tree.put(rng.integers(70_000, size=256), rng.random(256) * scale)
    everything = np.arange(70_000)
    fresh.put(everything, tree.take(everything))
    assert tree.total == fresh.total
    assert tree.total == pytest.approx(tree.take(everything).sum(), rel=1e-12)
    tree.put(everything, 0.0)
    assert tree.total == 0.0


def test_numbers_are_found_in_proportion_to_their_size() -> None:
    tree = SumTree(5000)
    indices = np.array([0, 17, 4095, 4999])
    tree.put(indices, np.array([1.0, 2.0, 3.0, 4.0]))
    found = tree.find(np.random.default_rng(0).random(40_000) * tree.total)
    counts = np.array([(found == index).sum() for index in indices])
    expected = np.array([4000, 8000, 12_000, 16_000])
    assert counts.sum() == 40_000
    assert ((counts - expected) ** 2 / expected).sum() < 11.3  # chi-square, 3 degrees, 1%


def test_a_million_numbers_take_17_bytes_each() -> None:
    assert SumTree(1_000_000).nbytes == pytest.approx(17.1e6, rel=0.01)
