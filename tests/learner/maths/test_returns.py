from __future__ import annotations

import jax
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.core.arrays import NDArray
from understudy.learner.maths.returns import (
    Moments,
    discounted_returns,
    gae,
    moments,
    standardised_beside,
    vtrace,
)

T, B = 7, 3
fast_returns, fast_gae, fast_vtrace, fast_moments, fast_standardised = (
    jax.jit(function)
    for function in (discounted_returns, gae, vtrace, moments, standardised_beside)
)
seeds = st.integers(0, 2**16)
lambdas = st.floats(0.0, 1.0, width=32)


class Case:
    """Random rewards, values and ratios; some matches end on the way."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.rewards = rng.normal(0.0, 2.0, (T, B)).astype(np.float32)
        self.values = rng.normal(0.0, 2.0, (T + 1, B)).astype(np.float32)
        self.discounts = np.where(rng.random((T, B)) < 0.2, 0.0, 0.9).astype(np.float32)
        self.ratios = np.exp(rng.normal(0.0, 1.0, (T, B))).astype(np.float32)


def slow_returns(case: Case) -> NDArray:
    out = np.zeros((T, B))
    for b in range(B):
        for t in range(T):
            weight = 1.0
            for s in range(t, T):
                out[t, b] += weight * case.rewards[s, b]
                weight *= case.discounts[s, b]
            out[t, b] += weight * case.values[T, b]
    return out


def slow_gae(case: Case, lam: float) -> NDArray:
    out = np.zeros((T, B))
    for b in range(B):
        for t in range(T):
            weight = 1.0
            for s in range(t, T):
                after = case.discounts[s, b] * case.values[s + 1, b]
                out[t, b] += weight * (case.rewards[s, b] + after - case.values[s, b])
                weight *= lam * case.discounts[s, b]
    return out


def slow_vtrace(case: Case, lam: float, cap: float) -> tuple[NDArray, NDArray]:
    """The sums of the paper (eq. 1), each from its definition, with c = lambda min(1, ratio)."""
    targets, advantages = np.zeros((T + 1, B)), np.zeros((T, B))
    targets[T] = case.values[T]
    for b in range(B):
        for t in range(T):
            targets[t, b] = case.values[t, b]
            weight = 1.0
            for s in range(t, T):
                after = case.discounts[s, b] * case.values[s + 1, b]
                error = case.rewards[s, b] + after - case.values[s, b]
                targets[t, b] += weight * min(cap, case.ratios[s, b]) * error
                weight *= case.discounts[s, b] * lam * min(1.0, case.ratios[s, b])
    for b in range(B):
        for t in range(T):
            after = lam * targets[t + 1, b] + (1.0 - lam) * case.values[t + 1, b]
            advantages[t, b] = case.rewards[t, b] + case.discounts[t, b] * after - case.values[t, b]
    return targets[:T], advantages


@settings(max_examples=25)
@given(seed=seeds)
def test_discounted_returns_are_sums_of_what_follows(seed: int) -> None:
    case = Case(seed)
    fast = fast_returns(rewards=case.rewards, discounts=case.discounts, bootstrap=case.values[T])
    np.testing.assert_allclose(fast, slow_returns(case), rtol=1e-4, atol=1e-4)


@settings(max_examples=25)
@given(seed=seeds, lam=lambdas)
def test_gae_agrees_with_its_definition(seed: int, lam: float) -> None:
    case = Case(seed)
    fast = fast_gae(rewards=case.rewards, discounts=case.discounts, values=case.values, lam=lam)
    np.testing.assert_allclose(fast, slow_gae(case, lam), rtol=1e-4, atol=1e-4)


@settings(max_examples=25)
@given(seed=seeds, lam=lambdas, cap=st.sampled_from([0.5, 1.0, 3.0]))
def test_vtrace_agrees_with_its_definition(seed: int, lam: float, cap: float) -> None:
    case = Case(seed)
    fast = fast_vtrace(
        rewards=case.rewards,
        discounts=case.discounts,
        values=case.values,
        ratios=case.ratios,
        lam=lam,
        cap=cap,
    )
    targets, advantages = slow_vtrace(case, lam, cap)
    np.testing.assert_allclose(fast.targets, targets, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(fast.advantages, advantages, rtol=1e-4, atol=1e-4)


@settings(max_examples=25)
@given(seed=seeds, lam=lambdas, cap=st.sampled_from([1.0, 3.0]))
def test_vtrace_on_policy_is_gae(seed: int, lam: float, cap: float) -> None:
    case = Case(seed)
    corrected = fast_vtrace(
        rewards=case.rewards,
        discounts=case.discounts,
        values=case.values,
        ratios=np.ones((T, B), np.float32),
        lam=lam,
        cap=cap,
    )
    plain = fast_gae(rewards=case.rewards, discounts=case.discounts, values=case.values, lam=lam)
    np.testing.assert_allclose(corrected.advantages, plain, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(corrected.targets, case.values[:T] + plain, rtol=1e-4, atol=1e-4)


def test_an_action_that_the_policy_would_not_take_again_teaches_nothing_through_the_trace() -> None:
    case = Case(0)
    case.ratios[2] = 0.0
    kept = fast_vtrace(
        rewards=case.rewards,
        discounts=case.discounts,
        values=case.values,
        ratios=case.ratios,
        lam=0.9,
        cap=1.0,
    )
    case.rewards[3:] += 100.0
    changed = fast_vtrace(
        rewards=case.rewards,
        discounts=case.discounts,
        values=case.values,
        ratios=case.ratios,
        lam=0.9,
        cap=1.0,
    )
    np.testing.assert_allclose(kept.targets[:3], changed.targets[:3])


def slow_moments(numbers: list[float]) -> tuple[float, float, float]:
    mean = square = 0.0
    for number in numbers:
        mean += number / len(numbers)
        square += number**2 / len(numbers)
    return mean, square, float(len(numbers))


@settings(max_examples=25)
@given(seed=seeds, before=st.integers(0, 40), share=st.sampled_from([0.0, 0.5, 1.0]))
def test_advantages_are_standardised_beside_all_that_came_before(
    seed: int, before: int, share: float
) -> None:
    rng = np.random.default_rng(seed)
    earlier = rng.normal(1.0, 3.0, before)
    x = rng.normal(-1.0, 2.0, (T, B)).astype(np.float32)
    mask = (rng.random((T, B)) < share).astype(np.float32)
    here = [float(x[index]) for index in np.ndindex(T, B) if mask[index]]
    np.testing.assert_allclose(fast_moments(x, mask), slow_moments(here), rtol=1e-4, atol=1e-5)
    together = [*earlier.tolist(), *here]
    mean, square, _ = slow_moments(together)
    spread = float(np.sqrt(max(square - mean**2, 0.0)))
    known = Moments(*(np.float32(number) for number in slow_moments(earlier.tolist())))
    got = np.asarray(fast_standardised(x, mask, known))
    assert np.isfinite(got).all()
    for index in np.ndindex(T, B):
        if mask[index] and len(together) > 1:
            assert abs(got[index] - (x[index] - mean) / (spread + 1e-6)) < 2e-3


def test_a_batch_of_one_match_keeps_its_result_beside_earlier_matches() -> None:
    """Within itself it would have none: half of the decisions of a victory would be punished."""
    rng = np.random.default_rng(0)
    results = np.repeat(rng.choice([10.0, -5.0], 40), 60)
    earlier = Moments(*(np.float32(number) for number in slow_moments(results.tolist())))
    for result, sign in ((10.0, 1.0), (-5.0, -1.0)):
        x = (result + rng.normal(0.0, 0.5, (60, 1))).astype(np.float32)
        got = np.asarray(fast_standardised(x, np.ones_like(x), earlier))
        assert (sign * got > 0.5).all()
