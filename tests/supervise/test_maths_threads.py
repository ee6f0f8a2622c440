"""Small products are computed by one thread, and what was set before comes back."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits  # type: ignore[import-untyped]

from understudy.supervise.maths_threads import one_thread


def threads() -> set[int]:
    """Of the libraries that NumPy computes with."""
    np.ones((2, 2)) @ np.ones((2, 2))
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_one_thread_inside_and_as_before_outside() -> None:
    with threadpool_limits(2):
        before = threads()
        with one_thread():
            assert threads() == {1}
        assert threads() == before
