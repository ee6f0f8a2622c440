"""What a reward is measured against: estimates from decisions whose probabilities are known."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from walk.toys import episode

from understudy.core.arrays import NDArray
from understudy.core.spaces import ActionSpace, Continuous, Discrete, MultiDiscrete
from understudy.experience.episode import Episode
from understudy.learner.scoring import MOST_ACTIONS, alternatives, compared
from understudy.registry.comparisons import Comparison, WeightedMean, best_fixed, with_comparison

NAMES = Discrete(("left", "stay", "right"))
PAID = np.array([[0.0, 0.5, 0.3], [1.4, 0.4, 0.3]])
"""Reward of each action in each of two situations, which are equally likely."""


def segment(rng: np.random.Generator, odds: NDArray, *, length: int = 16) -> Episode:
    """Decisions of a policy with these odds [situations, actions]; `right` is illegal in the
    second situation."""
    situation = rng.integers(0, 2, length)
    legal = np.ones((length, 3), np.bool_)
    legal[situation == 1, 2] = False
    chances = np.where(legal, odds[situation], 0.0)
    chances /= chances.sum(1, keepdims=True)
    actions = (rng.random((length, 1)) > chances.cumsum(1)[:, :-1]).sum(1)
    rewards = PAID[situation, actions] + rng.normal(0.0, 0.2, length)
    return replace(
        episode("a", length=length),
        actions=actions[:, None].astype(np.int32),
        log_probs=np.log(chances[np.arange(length), actions]).astype(np.float32),
        rewards=rewards.astype(np.float32),
        legal=legal,
    )


def total(episodes: list[Episode], space: ActionSpace = NAMES) -> Comparison:
    return sum((compared(one, space) for one in episodes), Comparison())


def played(seed: int, odds: NDArray, segments: int) -> Comparison:
    rng = np.random.default_rng(seed)
    return total([segment(rng, odds) for _ in range(segments)])


LEANING = np.array([[0.2, 0.6, 0.2], [0.7, 0.2, 0.1]])
RANDOM = (PAID[0].mean() + PAID[1, :2].mean()) / 2
FIXED = [PAID[:, 0].mean(), PAID[:, 1].mean(), (PAID[0, 2] + PAID[1, :2].mean()) / 2]


def test_the_estimates_are_near_what_the_alternatives_really_earn() -> None:
    comparison = played(1, LEANING, 200)
    assert (comparison.decisions, comparison.segments) == (3_200, 200)
    random = comparison.random.interval()
    assert random is not None and random.low < RANDOM < random.high
    assert random.high - random.low < 0.1
    for one, truth in zip(comparison.fixed, FIXED, strict=True):
        found = one.interval(confidence=0.999)
        assert found is not None and found.low < truth < found.high
    earned = comparison.policy.interval()
    assert earned is not None and earned.low > random.high, "this policy does better"
    best = best_fixed(comparison)
    assert best is not None
    action, interval, known = best
    assert (NAMES.names[action], known) == ("left", 3)
    single = comparison.fixed[0].interval()
    assert single is not None and interval.mean == single.mean and interval.low < single.low


def test_the_intervals_hold_about_as_often_as_they_say() -> None:
    held = 0
    for seed in range(20):
        random = played(seed, LEANING, 45).random.interval()
        held += random is not None and random.low < RANDOM < random.high
    assert held >= 17, "19 are to be expected, of 20"


def test_a_policy_that_is_decided_tells_nothing_of_other_actions() -> None:
    comparison = played(2, np.array([[0.998, 0.001, 0.001]] * 2), 100)
    assert comparison.policy.interval() is not None
    assert comparison.random.effective_groups < 40 and comparison.random.interval() is None
    best = best_fixed(comparison)
    assert best is not None and best[2] == 1, "the one that it takes"


@pytest.mark.parametrize("parts", [(3,), (2, 3)])
def test_probabilities_are_those_of_a_slow_reference(parts: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    legal = rng.random((50, sum(parts))) < 0.6
    starts = np.cumsum((0, *parts[:-1]))
    legal[:, starts] = True
    actions = np.array(
        [
            [rng.choice(np.flatnonzero(row[s : s + n])) for s, n in zip(starts, parts, strict=True)]
            for row in legal
        ]
    )
    random, fixed = alternatives(actions, legal, parts)
    for t, row in enumerate(legal):
        options = [[o for o in range(n) if row[s + o]] for s, n in zip(starts, parts, strict=True)]
        choices = list(product(*options))
        assert random[t] == pytest.approx(1 / len(choices))
        for number, action in enumerate(product(*map(range, parts))):
            taken = float(tuple(actions[t]) == action)
            expected = taken if action in choices else 1 / len(choices)
            assert fixed[number, t] == pytest.approx(expected)


def test_only_what_was_drawn_and_has_its_reward_counts() -> None:
    rng = np.random.default_rng(3)
    whole = segment(rng, LEANING)
    drawn, settled = rng.random(16) < 0.5, rng.random(16) < 0.5
    assert (
        total([replace(whole, sampled=drawn, settled=settled)]).decisions == (drawn & settled).sum()
    )
    none = replace(whole, sampled=np.zeros(16, np.bool_))
    assert with_comparison((), total([none])) == ()
    one = Continuous(("speed",), (None,), (None,))
    assert compared(whole, one) == Comparison()


def test_too_many_actions_are_not_compared_one_by_one() -> None:
    many = MultiDiscrete((MOST_ACTIONS + 1,))
    plain = replace(segment(np.random.default_rng(0), LEANING), legal=None)
    comparison = total([plain] * 50, many)
    assert comparison.fixed == () and best_fixed(comparison) is None
    assert comparison.random.weight > 0.0


def test_only_the_last_decisions_are_kept() -> None:
    kept: tuple[Comparison, ...] = ()
    for number in range(10):
        one = Comparison(decisions=4, segments=1, policy=WeightedMean(total=float(number)))
        kept = with_comparison(kept, one, window=12)
    assert [one.decisions for one in kept] == [12, 4]
    assert [one.policy.total for one in kept] == [6.0 + 7.0 + 8.0, 9.0]
