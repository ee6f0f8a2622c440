"""What windows show: made-up windows, and windows of a made-up match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from walk.toys import episode

from understudy.core.statistics import STAKES
from understudy.experience.episode import Episode, Outcome
from understudy.promotion.cameos import (
    CameoEvidence,
    CameoResult,
    bounded,
    results_of,
    weigh,
)

SCALE = 5.0


def of(value: float) -> float:
    return float(bounded(np.array(value), scale=SCALE))


def weighed(results: Sequence[CameoResult]) -> CameoEvidence:
    return weigh(results, scale=SCALE)


def windows(count: int, *, advantage: float, seed: int, spread: float = 0.05) -> list[CameoResult]:
    """Windows whose bounded values move at random, and further where the policy had them."""
    rng = np.random.default_rng(seed)
    before = rng.uniform(0.3, 0.7, count)
    policy = rng.random(count) < 0.5
    after = np.clip(before + advantage * policy + spread * rng.standard_normal(count), 0.01, 0.99)
    raw = (2.0 * SCALE * np.arctanh(2.0 * one - 1.0) for one in (before, after))
    rows = zip(policy.tolist(), *(one.tolist() for one in raw), strict=True)
    return [CameoResult(one, 0.5, b, a) for one, b, a in rows]


def in_match(*marks: int, values: list[float], rewards: list[float]) -> Episode:
    made = episode("a", length=len(marks))
    return replace(
        made,
        meta=msgspec.structs.replace(made.meta, cameo_coin=0.5),
        cameos=np.array(marks, np.int16),
        sampled=np.array(marks) > 0,
        values=np.array(values, np.float32),
        rewards=np.array(rewards, np.float32),
    )


def test_the_evidence_is_that_of_matches() -> None:
    results = windows(40, advantage=0.05, seed=1)
    rows = [(one.policy, of(one.before), of(one.after)) for one in results]
    gains = [
        (1 if policy else -1) * (after - before) / max(before, 1 - before)
        for policy, before, after in rows
    ]
    for name, sign in (("better", 1), ("worse", -1)):
        capital = [np.prod([1 + stake * sign * gain for gain in gains]) for stake in STAKES]
        assert getattr(weighed(results), name) == pytest.approx(np.mean(capital))
    by_policy = [after - before for policy, before, after in rows if policy]
    by_rules = [after - before for policy, before, after in rows if not policy]
    assert weighed(results).advantage == pytest.approx(np.mean(by_policy) - np.mean(by_rules))
    assert (weighed(results).policy_windows, weighed(results).control_windows) == (
        len(by_policy),
        len(by_rules),
    )


def test_windows_that_are_worse_are_found_and_equal_ones_rarely_are() -> None:
    worse = [weighed(windows(200, advantage=-0.03, seed=seed)).worse for seed in range(200)]
    equal = [weighed(windows(200, advantage=0.0, seed=seed)).worse for seed in range(400)]
    assert np.mean(np.array(worse) >= 4.0) > 0.9
    assert np.mean(np.array(equal) >= 4.0) <= 0.25 / 2, "a quarter would be allowed"


def test_three_hundred_windows_mostly_show_an_advantage_of_two_hundredths() -> None:
    shown = [weighed(windows(300, advantage=0.02, seed=seed, spread=0.03)) for seed in range(100)]
    assert np.mean([one.better > 4.0 for one in shown]) > 0.8
    assert np.mean([one.advantage for one in shown]) == pytest.approx(0.02, abs=0.001)


def test_no_windows_show_nothing() -> None:
    assert weighed([]) == CameoEvidence(0, 0, 0.0, 1.0, 1.0)
    one_sided = weighed([CameoResult(True, 0.5, 0.5, 0.6)])
    assert one_sided.advantage == 0.0 and one_sided[:2] == (1, 0)


def test_a_window_is_worth_what_it_earned_and_the_value_after_it() -> None:
    match = in_match(
        0, 1, 1, 0, -2, -2, 0, values=[9, 1, 9, 4, 2, 9, 3], rewards=[8, 1, 2, 8, -4, 0, 8]
    )
    policy, control = results_of(match, gamma=0.5)
    assert (policy.policy, control.policy, policy.coin) == (True, False, 0.5)
    assert (policy.before, policy.after) == (1.0, 1 + 0.5 * (2 + 0.5 * 4))
    assert (control.before, control.after) == (2.0, -4 + 0.5 * (0 + 0.5 * 3))


def test_the_end_of_a_match_is_worth_its_result_and_an_aborted_one_is_left_out() -> None:
    match = in_match(0, 1, 1, values=[9, 1, 9], rewards=[0, 0, 7])
    (last,) = results_of(match, gamma=1.0)
    assert last.after == 7.0
    aborted = replace(match, meta=msgspec.structs.replace(match.meta, outcome=Outcome.ABORTED))
    assert results_of(aborted, gamma=1.0) == []
    assert results_of(episode("a"), gamma=1.0) == []


def test_a_window_after_which_the_policy_was_not_asked_is_left_out() -> None:
    """It failed or was slow; 0 is no value that it gave."""
    failed = in_match(-1, 0, 2, 2, 0, 0, values=[1, 9, 3, 9, 0, 0], rewards=[0] * 6)
    assert [one.policy for one in results_of(failed, gamma=1.0)] == [False]
    asked = replace(failed, values=np.array([1, 9, 3, 9, 0, 1], np.float32))
    assert [one.policy for one in results_of(asked, gamma=1.0)] == [False, True]


def test_windows_are_weighed_on_one_scale_whatever_the_unit_of_reward() -> None:
    results = windows(40, advantage=-0.05, seed=1)
    larger = [one._replace(before=100 * one.before, after=100 * one.after) for one in results]
    assert weigh(larger, scale=100 * SCALE) == pytest.approx(weighed(results))


def test_values_of_any_size_are_bounded_and_keep_their_order() -> None:
    assert of(0.0) == 0.5 and of(10.0) == pytest.approx(0.5 + 0.5 * np.tanh(1.0))
    assert 0.0 <= of(-1e30) < of(-5.0) < of(1e30) <= 1.0
