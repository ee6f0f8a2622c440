from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from understudy.experience.sum_tree import draw_bounded, fitting


@given(
    st.lists(st.integers(0, 4), max_size=20), st.lists(st.integers(0, 3), min_size=5, max_size=5)
)
def test_what_fits_is_what_a_count_along_the_way_lets_through(
    drawn: list[int], room: list[int]
) -> None:
    left, expected = list(room), []
    for item in drawn:
        expected.append(left[item] > 0)
        left[item] -= 1
    items = np.array(drawn, np.intp)
    assert fitting(items, np.array(room, np.intp)[items]).tolist() == expected


def test_draws_are_those_of_one_after_the_other() -> None:
    likely, room = np.array([6.0, 3.0, 1.0]), np.array([1, 2, 9])
    rng = np.random.default_rng(2)
    counts, slow = np.zeros(3), np.zeros(3)
    for _ in range(4000):
        counts += np.bincount(draw_bounded(rng, 4, likely=likely, room=room), minlength=3)
        left = room.copy()
        for _ in range(4):
            ready = likely * (left > 0)
            left[rng.choice(3, p=ready / ready.sum())] -= 1
        slow += room - left
    np.testing.assert_allclose(counts / 4000, slow / 4000, atol=0.04)


def test_no_more_is_drawn_than_there_is_room_for() -> None:
    picks = draw_bounded(
        np.random.default_rng(0), 99, likely=np.array([1.0, 0.0, 1e30]), room=np.array([2, 5, 3])
    )
    assert np.bincount(picks).tolist() == [2, 0, 3]
