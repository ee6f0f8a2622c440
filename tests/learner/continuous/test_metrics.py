from __future__ import annotations

import numpy as np
import pytest

from understudy.core.spaces import Continuous, Discrete, MultiDiscrete
from understudy.learner.continuous.metrics import (
    Collapse,
    entropy_bound,
    entropy_share,
    entropy_weight,
)


def test_the_largest_entropy_is_what_the_masks_left_open() -> None:
    legal = np.zeros((3, 2, 6), bool)
    legal[..., :4] = True
    legal[0, 0, :] = True
    legal[2, 1, :] = True  # padding: nobody decided there
    valid = np.array([[1, 1], [1, 1], [1, 0]], np.float32)
    names = Discrete(tuple("abcdef"))
    assert entropy_bound(names, legal, valid) == pytest.approx(np.log((6 + 4 * 4) / 5))
    two = MultiDiscrete((4, 2))
    legal[..., 4] = True
    expected = np.log(4.0) + np.log((2 + 4 * 1) / 5)
    assert entropy_bound(two, legal, valid) == pytest.approx(expected)
    assert entropy_bound(names, legal, 0 * valid) == 0.0
    assert entropy_bound(Continuous(("x",), (None,), (None,)), legal[..., :2], valid) == 0.0


def test_where_there_was_no_choice_nothing_is_said_of_the_policy() -> None:
    assert entropy_share(0.0, 0.0) is None
    assert entropy_share(0.5, 2.0) == 0.25
    watch = Collapse(0.1)
    shares = [0.05, None, 0.05, None, None, 0.05, 0.05, None]
    assert not any(watch.add(share) for share in shares)
    assert watch.add(0.05), "the fifth in a row: those between were no evidence of variety"
    assert not watch.healthy(None)


def test_several_batches_in_a_row_are_a_collapse() -> None:
    watch = Collapse(0.1)
    assert [watch.add(0.05) for _ in range(5)] == [False] * 4 + [True]
    watch.forget()
    shares = [0.05] * 4 + [0.1] + [0.05] * 4
    assert not any(watch.add(share) for share in shares)
    assert watch.add(0.0)
    assert watch.healthy(0.2) and not watch.healthy(0.19)
    assert Collapse(0.6).healthy(1.0)


def test_variety_is_worth_more_after_every_collapse_up_to_a_limit() -> None:
    weights = [entropy_weight(0.01, collapses) for collapses in range(7)]
    assert weights == pytest.approx([0.01, 0.02, 0.04, 0.08, 0.16, 0.16, 0.16])
