"""Durations in buckets, beside the durations themselves."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from understudy.telemetry.latency import BOUNDS_S, Latency, quantile

durations = st.lists(st.floats(0.0, 4.9), min_size=1, max_size=200)


@given(durations, st.floats(0.01, 1.0))
def test_a_quantile_lies_in_the_bucket_of_the_true_one(taken: list[float], share: float) -> None:
    latency = Latency()
    for one in taken:
        latency.add(one)
    told = quantile(latency.counts, share)
    assert told is not None
    true = np.quantile(taken, share, method="inverted_cdf")
    index = int(np.searchsorted(BOUNDS_S, true))
    low = BOUNDS_S[index - 1] if index else 0.0
    assert low - 1e-12 <= told <= BOUNDS_S[index] + 1e-12
    assert sum(latency.counts) == len(taken)


def test_without_answers_there_is_none_and_beyond_the_last_bound_the_bound() -> None:
    latency = Latency()
    assert quantile(latency.counts, 0.99) is None
    latency.add(60.0)
    assert quantile(latency.counts, 0.5) == BOUNDS_S[-1]


@given(durations, st.floats(0.01, 1.0))
def test_empty_buckets_at_the_end_may_be_left_out(taken: list[float], share: float) -> None:
    latency = Latency()
    for one in taken:
        latency.add(one)
    counts = latency.counts
    while counts[-1] == 0:
        counts = counts[:-1]
    assert quantile(counts, share) == quantile(latency.counts, share)
