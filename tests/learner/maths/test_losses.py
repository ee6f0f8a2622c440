from __future__ import annotations

from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from msgspec import structs

from understudy.core.arrays import NDArray
from understudy.core.config import LearnerConfig
from understudy.core.ops import Array
from understudy.core.spaces import Discrete
from understudy.learner.maths.jax_ops import JAX
from understudy.learner.maths.losses import Losses, LossTerms, losses
from understudy.policy import distributions

Algorithm = Literal["actor_critic", "reinforce"]
PLAIN = LearnerConfig(  # pinned: these tests are about formulas, not about what is tuned
    entropy_weight=0.0,
    value_weight=0.5,
    clip=0.2,
    behaviour_clip=1.0,
    imitation_weight=1.0,
    imitation="advantage",
    imitation_entropy=0.1,
    imitation_temperature=1.0,
    imitation_cap=20.0,
)
CLONE = structs.replace(PLAIN, imitation="clone")
REINFORCE = structs.replace(PLAIN, algorithm="reinforce")
CONFIGS: dict[Algorithm, LearnerConfig] = {"actor_critic": PLAIN, "reinforce": REINFORCE}
SPACE = Discrete(("a", "b", "c"))
LOGITS = np.array([[0.3, -0.2, 0.1], [0.0, 0.5, -0.5]], np.float32)[:, None]  # [T=2, B=1, 3]
ACTIONS = np.array([[[0]], [[2]]], np.int32)
ZEROS, ONES = np.zeros((2, 1), np.float32), np.ones((2, 1), np.float32)
each_algorithm = pytest.mark.parametrize("algorithm", ["actor_critic", "reinforce"])
each_imitation = pytest.mark.parametrize("config", [CLONE, PLAIN], ids=["clone", "advantage"])


def log_probs_of(logits: Array) -> Array:
    return distributions.log_prob(JAX, SPACE, logits, ACTIONS, None)


@partial(jax.jit, static_argnums=0)
def _graded(
    config: LearnerConfig, logits: Array, values: Array, fields: dict[str, Array]
) -> tuple[tuple[Array, Array], Losses]:
    def total(logits: Array, values: Array) -> tuple[Array, Losses]:
        terms = LossTerms(
            log_probs=log_probs_of(logits),
            entropy=distributions.entropy(JAX, SPACE, logits, None),
            values=values,
            **fields,
        )
        result = losses(config, terms, share=jnp.float32(2.0), entropy_weight=config.entropy_weight)
        return result.total, result

    return jax.grad(total, argnums=(0, 1), has_aux=True)(logits, values)  # type: ignore[no-any-return]


def graded(config: LearnerConfig, logits: NDArray = LOGITS, **changes: Any) -> Any:
    """Gradients for logits and values, and the losses, of two fresh decisions."""
    now = np.asarray(log_probs_of(logits))
    fields = {
        "anchor_log_probs": now,
        "behaviour_log_probs": now,
        "targets": ZEROS,
        "advantages": ZEROS,
        "entropy_floor": ZEROS,
        "on_policy": ONES,
        "imitated": ZEROS,
        "opponent_log_probs": ZEROS,
        "kind_log_probs": ZEROS,
        "foretold": ZEROS,
        "valid": ONES,
    } | changes
    (by_logits, by_values), result = _graded(config, logits, ZEROS, fields)
    return np.asarray(by_logits), np.asarray(by_values), result


@each_algorithm
def test_rewarded_becomes_likelier_and_punished_unlikelier(algorithm: Algorithm) -> None:
    advantages = np.array([[1.0], [-1.0]], np.float32)
    gradient, _, _ = graded(CONFIGS[algorithm], advantages=advantages)
    before, after = log_probs_of(LOGITS), log_probs_of(LOGITS - 0.1 * gradient)
    assert after[0, 0] > before[0, 0]
    assert after[1, 0] < before[1, 0]


def test_better_than_average_is_imitated_most_and_nothing_is_pushed_away() -> None:
    rules = {"on_policy": ZEROS, "imitated": ONES}
    advantages = np.array([[1.0], [-1.0]], np.float32)
    gradient, _, _ = graded(PLAIN, advantages=advantages, **rules)
    gain = np.asarray(log_probs_of(LOGITS - 0.1 * gradient) - log_probs_of(LOGITS))
    assert gain[0, 0] > 3.0 * gain[1, 0] > 0.0


def test_the_weight_of_one_imitated_decision_is_capped() -> None:
    rules = {"on_policy": ZEROS, "imitated": ONES}
    huge, huger = (
        graded(PLAIN, advantages=np.full((2, 1), size, np.float32), **rules)[0]
        for size in (50.0, 60.0)
    )
    assert np.isfinite(huge).all()
    np.testing.assert_array_equal(huge, huger)


def test_a_clone_imitates_all_alike() -> None:
    rules = {"on_policy": ZEROS, "imitated": ONES}
    one, other = (
        graded(CLONE, advantages=np.array(each, np.float32), **rules)[0]
        for each in ([[1.0], [-1.0]], [[-7.0], [99.0]])
    )
    np.testing.assert_array_equal(one, other)
    gain = np.asarray(log_probs_of(LOGITS - 0.1 * one) - log_probs_of(LOGITS))
    assert (gain > 0.0).all()


@each_imitation
def test_imitation_raises_entropy_below_its_floor_and_only_there(config: LearnerConfig) -> None:
    """The first decision has less entropy than its floor, the second has more."""
    rules = {"on_policy": ZEROS, "imitated": ONES}
    now = np.asarray(distributions.entropy(JAX, SPACE, LOGITS, None))
    floor = now + np.array([[0.1], [-0.1]], np.float32)
    free, _, _ = graded(config, **rules)
    held, _, _ = graded(config, **rules, entropy_floor=floor)
    np.testing.assert_array_equal(held[1], free[1])
    after = np.asarray(distributions.entropy(JAX, SPACE, LOGITS - 0.1 * (held - free), None))
    assert after[0, 0] > now[0, 0]
    sampled, _, _ = graded(config, entropy_floor=floor)
    assert np.abs(sampled).max() == 0.0, "the floor is for what is imitated"


@each_imitation
def test_imitated_decisions_never_see_a_ratio(config: LearnerConfig) -> None:
    rules = {"on_policy": ZEROS, "imitated": ONES, "advantages": ONES}
    plain, _, one = graded(config, **rules)
    odd = np.array([[-7.0], [-0.01]], np.float32)
    strange, _, other = graded(config, **rules, anchor_log_probs=odd, behaviour_log_probs=2 * odd)
    np.testing.assert_array_equal(plain, strange)
    assert one.total == other.total
    assert other.clip_share == 0.0
    assert other.behaviour_kl == other.behaviour_kl_max == 0.0, "nothing was sampled"


def test_the_entropy_bonus_is_a_gradient_that_raises_entropy() -> None:
    config = structs.replace(PLAIN, entropy_weight=0.5)
    gradient, _, result = graded(config)
    before = distributions.entropy(JAX, SPACE, LOGITS, None)
    after = distributions.entropy(JAX, SPACE, LOGITS - 0.1 * gradient, None)
    assert (after > before).all()
    assert result.entropy == pytest.approx(float(before.mean()), rel=1e-6)


@pytest.mark.parametrize(
    ("moved", "advantage", "held"),
    [(0.3, 1.0, True), (0.3, -1.0, False), (-0.3, -1.0, True), (-0.3, 1.0, False)],
)
def test_the_clip_holds_what_moved_too_far_and_lets_it_come_back(
    moved: float, advantage: float, held: bool
) -> None:
    anchor = np.asarray(log_probs_of(LOGITS)) - np.float32(moved)
    gradient, _, result = graded(
        PLAIN, anchor_log_probs=anchor, behaviour_log_probs=anchor, advantages=advantage * ONES
    )
    assert (np.abs(gradient).max() == 0.0) == held
    assert result.clip_share == 1.0


def test_old_experience_is_weighted_by_its_ratio_up_to_a_cap() -> None:
    now = np.asarray(log_probs_of(LOGITS))
    fresh, _, _ = graded(PLAIN, advantages=ONES)
    unlikely_now, _, _ = graded(
        PLAIN, advantages=ONES, behaviour_log_probs=now + np.float32(np.log(2.0))
    )
    likely_now, _, _ = graded(PLAIN, advantages=ONES, behaviour_log_probs=now - 5.0)
    np.testing.assert_allclose(unlikely_now, 0.5 * fresh, rtol=1e-5)
    np.testing.assert_allclose(likely_now, PLAIN.behaviour_clip * fresh, rtol=1e-5)


@each_algorithm
def test_what_is_neither_sampled_nor_imitated_teaches_the_value_alone(
    algorithm: Algorithm,
) -> None:
    gradient, by_values, result = graded(
        CONFIGS[algorithm], on_policy=ZEROS, advantages=ONES, targets=ONES
    )
    assert np.abs(gradient).max() == 0.0
    assert (by_values < 0.0).all(), "a step raises values towards higher targets"
    assert result.value == pytest.approx(0.5)


@each_algorithm
def test_padding_teaches_nothing(algorithm: Algorithm) -> None:
    config = structs.replace(CONFIGS[algorithm], entropy_weight=0.5)
    masks = {"on_policy": ZEROS, "imitated": ZEROS, "valid": ZEROS}
    gradient, by_values, result = graded(config, advantages=ONES, targets=9 * ONES, **masks)
    assert np.abs(gradient).max() == np.abs(by_values).max() == 0.0
    assert result.total == 0.0


@each_imitation
def test_every_part_is_that_of_a_slow_loop(config: LearnerConfig) -> None:
    """All that a decision can be: sampled, imitated, neither, foretold or not."""
    config = structs.replace(
        config,
        entropy_weight=0.03,
        opponent_weight=0.4,
        recognition_weight=0.3,
        imitation_weight=0.7,
        behaviour_clip=1.1,
    )
    rng = np.random.default_rng(2)
    shape = (7, 9)
    kinds = rng.integers(0, 4, shape)  # sampled, imitated, for the value alone, padding
    names = (
        "log_probs", "entropy", "entropy_floor", "values", "anchor_log_probs",
        "behaviour_log_probs", "targets", "advantages", "opponent_log_probs", "kind_log_probs",
    )  # fmt: skip
    fields = {name: rng.normal(-1.0, 0.4, shape).astype(np.float32) for name in names}
    fields |= {
        "on_policy": (kinds == 0).astype(np.float32),
        "imitated": (kinds == 1).astype(np.float32),
        "valid": (kinds < 3).astype(np.float32),
        "foretold": (rng.random(shape) < 0.5).astype(np.float32),
    }
    share = 10.0
    total = clipped = moved = 0.0
    apart: list[float] = []
    for index in np.ndindex(shape):
        now = {name: float(column[index]) for name, column in fields.items()}
        ratio = np.exp(now["log_probs"] - now["anchor_log_probs"])
        if now["on_policy"]:
            weight = min(np.exp(now["anchor_log_probs"] - now["behaviour_log_probs"]), 1.1)
            bounded = min(max(ratio, 0.8), 1.2)
            total -= weight * min(ratio * now["advantages"], bounded * now["advantages"])
            clipped += abs(ratio - 1.0) > 0.2
            played = np.exp(now["log_probs"] - now["behaviour_log_probs"])
            apart.append(played - 1.0 - np.log(played))
        if now["imitated"]:
            weight = min(np.exp(now["advantages"]), 20.0) if config.imitation != "clone" else 1.0
            total -= 0.7 * weight * now["log_probs"]
            total -= 0.7 * min(now["entropy"], now["entropy_floor"])
        if now["on_policy"] or now["imitated"]:
            moved += ratio - 1.0 - np.log(ratio)
        if now["valid"]:
            total += 0.5 * 0.5 * (now["values"] - now["targets"]) ** 2 - 0.03 * now["entropy"]
            total -= 0.3 * now["kind_log_probs"]
        if now["foretold"]:
            total -= 0.4 * now["opponent_log_probs"]
    got = losses(
        config, LossTerms(**fields), share=jnp.float32(share), entropy_weight=config.entropy_weight
    )
    assert float(got.total) == pytest.approx(total / share, rel=1e-4)
    assert float(got.clip_share) == pytest.approx(clipped / share) and clipped > 0
    assert float(got.kl) == pytest.approx(moved / share, rel=1e-4)
    assert float(got.behaviour_kl) == pytest.approx(np.mean(apart), rel=1e-4)
    assert float(got.behaviour_kl_max) == pytest.approx(np.max(apart), rel=1e-4)


def test_a_policy_that_is_not_the_one_that_played_shows_in_the_behaviour_kl() -> None:
    """The mean ratio does not show it: it is 1 in expectation, whatever is trained."""
    played, trained = np.array([0.5, 0.3, 0.2]), np.array([0.14, 0.4, 0.46])
    apart = float((played * np.log(played / trained)).sum())
    actions = np.random.default_rng(0).choice(3, (100, 100), p=played)
    now = np.log(trained[actions]).astype(np.float32)
    then = np.log(played[actions]).astype(np.float32)
    zeros, ones = np.zeros_like(now), np.ones_like(now)
    terms = LossTerms(
        log_probs=now,
        entropy=zeros,
        entropy_floor=zeros,
        values=zeros,
        anchor_log_probs=now,
        behaviour_log_probs=then,
        targets=zeros,
        advantages=zeros,
        on_policy=ones,
        imitated=zeros,
        valid=ones,
        opponent_log_probs=zeros,
        foretold=zeros,
        kind_log_probs=zeros,
    )
    got = losses(PLAIN, terms, share=jnp.float32(now.size), entropy_weight=0.0)
    assert np.exp(now - then).mean() == pytest.approx(1.0, abs=0.01)
    assert float(got.behaviour_kl) == pytest.approx(apart, rel=0.05)
    assert apart == pytest.approx(0.38, abs=0.01)
    part = losses(
        PLAIN, terms._replace(on_policy=0.25 * ones), share=jnp.float32(1), entropy_weight=0.0
    )
    assert float(part.behaviour_kl) == pytest.approx(float(got.behaviour_kl), rel=1e-4)
    assert float(got.behaviour_kl_max) == pytest.approx(0.28 - 1.0 - np.log(0.28), rel=1e-4)


def test_foretelling_weighs_what_it_is_told_to() -> None:
    said = np.array([[-0.5], [-2.0]], np.float32)
    known = np.array([[1.0], [0.0]], np.float32)
    for weight in (0.0, 0.1, 2.0):
        config = structs.replace(PLAIN, opponent_weight=weight)
        _, _, result = graded(config, opponent_log_probs=said, foretold=known)
        assert float(result.opponent) == pytest.approx(0.25)  # one of two, over a share of two
        assert float(result.total) == pytest.approx(0.25 * weight)
