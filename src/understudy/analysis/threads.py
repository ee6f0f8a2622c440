"""One maths thread where products are small: two would mostly wait for each other.

Measured on two cores, busy ones most of all: a step of attention in 28 matches takes a tenth of the
time, a probe a quarter.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_thread() -> Iterator[None]:
    """For what NumPy and scikit-learn do inside (which brings threadpoolctl)."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1):
        yield
