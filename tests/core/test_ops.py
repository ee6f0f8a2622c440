from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from understudy.core.ops import NUMPY, Ops
from understudy.learner.maths.jax_ops import JAX


class Pair(NamedTuple):
    left: Any
    right: Any


def running_sums(ops: Ops) -> Any:
    """A scan over nested trees: carries a pair, gives a dict of tuples."""
    xs = {
        "a": ops.xp.arange(6, dtype=np.float32).reshape(3, 2),
        "b": (ops.xp.ones((3, 2), np.float32),),
    }

    def step(carry: Pair, x: Any) -> tuple[Pair, Any]:
        carry = Pair(carry.left + x["a"], carry.right * (x["b"][0] + 1.0))
        return carry, {"sum": carry.left, "both": Pair(carry.left, (carry.right,))}

    start = Pair(ops.xp.zeros(2, np.float32), ops.xp.ones(2, np.float32))
    return ops.scan(step, start, xs)


def test_scan_is_a_loop_over_the_leading_axis() -> None:
    carry, ys = running_sums(NUMPY)
    assert isinstance(carry, Pair)
    assert carry.left.tolist() == [6.0, 9.0] and carry.right.tolist() == [8.0, 8.0]
    assert ys["sum"].tolist() == [[0.0, 1.0], [2.0, 4.0], [6.0, 9.0]]
    assert isinstance(ys["both"], Pair)
    assert ys["both"].right[0].shape == (3, 2)


def test_both_engines_scan_alike() -> None:
    ours, theirs = running_sums(NUMPY), running_sums(JAX)
    assert type(ours[0]) is type(theirs[0])
    for mine, other in (
        (ours[0].left, theirs[0].left),
        (ours[0].right, theirs[0].right),
        (ours[1]["sum"], theirs[1]["sum"]),
        (ours[1]["both"].right[0], theirs[1]["both"].right[0]),
    ):
        assert mine.dtype == np.asarray(other).dtype == np.float32
        assert np.array_equal(mine, np.asarray(other))


def test_each_is_one_call_for_every_index_of_the_leading_axis() -> None:
    def shifted(params: Any, pair: Pair) -> Any:
        return {"sum": params["w"] + pair.left}, (pair.right[0] * params["w"],)

    params = {"w": np.arange(3, dtype=np.float32)}
    pair = Pair(np.ones((3, 2), np.float32), (np.full((3, 2), 2, np.float32),))
    ours, theirs = (ops.each(shifted, params, pair) for ops in (NUMPY, JAX))
    assert ours[0]["sum"].tolist() == [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]
    assert ours[1][0].tolist() == [[0.0, 0.0], [2.0, 2.0], [4.0, 4.0]]
    assert np.array_equal(ours[0]["sum"], theirs[0]["sum"])
    assert np.array_equal(ours[1][0], theirs[1][0])


def test_a_barrier_changes_nothing() -> None:
    tree = {"a": np.ones(2, np.float32)}
    for ops in (NUMPY, JAX):
        assert np.array_equal(np.asarray(ops.barrier(tree)["a"]), tree["a"])
