"""Places that differ: harm is seen on the spread within a shard, and not on that of all of them."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.gates.promotion import trial as gate
from understudy.gates.promotion.records import TrialSettings
from understudy.promotion.served import HARM_SPREAD

RUNS, SEGMENTS = 400, 300
SCATTER = 0.05


def stopped(*, apart: float, worse: float, by_shard: bool) -> tuple[float, float]:
    """The share of tests that end as harmful, and the median of the canary's segments in them. Two
    places whose scores lie `apart`, and a canary whose scores are `worse`."""
    rng = np.random.default_rng(0)
    shape = SEGMENTS, RUNS
    places = rng.integers(0, 2, shape)
    arms = (rng.random(shape) < 0.5).astype(np.float64)
    scattered = SCATTER * rng.standard_normal(shape)
    results = np.clip(0.5 + apart * (places - 0.5) + scattered - worse * arms, 0.0, 1.0)
    _, looks = gate.advance(
        gate.new_trial(strata=2, shape=(RUNS,)),
        TrialSettings(harm_spread=HARM_SPREAD),
        alpha=0.05,
        arms=arms,
        shares=np.full(shape, 0.5),
        results=results,
        strata=places if by_shard else np.zeros_like(places),
    )
    every = np.arange(RUNS)
    ends = np.argmax(looks.verdict != gate.CONTINUE, axis=0)
    harm = looks.verdict[ends, every] == gate.HARM
    canaries = np.cumsum(arms, axis=0)[ends, every]
    return float(harm.mean()), float(np.median(canaries[harm]))


def test_a_worse_version_is_stopped_by_shard_and_missed_without() -> None:
    share, canaries = stopped(apart=0.6, worse=0.05, by_shard=True)
    assert share >= 0.99 and canaries == pytest.approx(39.0, abs=2.0)
    assert stopped(apart=0.6, worse=0.05, by_shard=False)[0] == pytest.approx(0.30, abs=0.05)
    share, canaries = stopped(apart=0.0, worse=0.05, by_shard=True)
    assert share >= 0.99 and canaries == pytest.approx(12.5, abs=1.0)


@pytest.mark.parametrize("by_shard", [True, False])
def test_an_equal_version_is_stopped_in_a_quarter_of_tests_at_most(by_shard: bool) -> None:
    assert stopped(apart=0.6, worse=0.0, by_shard=by_shard)[0] < 0.25
