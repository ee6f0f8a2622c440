"""How many threads NumPy computes with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from understudy.core.dependencies import not_installed


@contextmanager
def one_thread() -> Iterator[None]:
    """Limits NumPy and scikit-learn to one thread inside the block, where threadpoolctl is
    installed (it comes with the learner).

    Products are small here, and two threads mostly wait for each other. Measured on two busy cores:
    a step of attention in 28 matches takes a tenth of the time, a probe a quarter, 40 frozen
    matches of the tournament's stand-in 5.7 s of processor time in place of 24, `status` of a run
    with attention 1.1 s in place of 16.
    """
    if not_installed("threadpoolctl"):
        yield
        return
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1):
        yield
