from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy.makers import MLP, TRANSFORMER, aborted, lively_policy, play, spec_of

from understudy.core.arrays import NDArray
from understudy.core.config import Config, LearnerConfig, with_values
from understudy.experience.episode import Episode
from understudy.learner.batch import Batch, assemble
from understudy.learner.continuous.items import batch_of, cut, decisions, fields, item_length

SPEC = spec_of()
SEEN = np.array([9.0, 8.0, 7.0], np.float32)


def played(length: int, *, seed: int = 0, **changes: Any) -> Episode:
    rng = np.random.default_rng(seed)
    made = play(
        lively_policy(SPEC), rng, length, masked=True, reward=lambda obs, action: float(obs[0])
    )
    return replace(made, **changes)


def laid(items: dict[str, NDArray], **changes: Any) -> Batch:
    count, width = items["rewards"].shape
    values: dict[str, Any] = {
        "columns": max(count, 2),
        "version": 0,
        "max_lag": 10,
        "weights": np.ones(count, np.float32),
        "learned": np.ones((count, width), bool),
    }
    return batch_of(items, SPEC, **(values | changes))


@given(length=st.integers(1, 40), width=st.integers(1, 12), end=st.sampled_from("wsa"))
def test_every_decision_is_in_one_item_with_what_followed_it(
    length: int, width: int, end: str
) -> None:
    """A match that was won, a segment that goes on, and one that was aborted."""
    how: dict[str, dict[str, Any]] = {"w": {}, "s": {"bootstrap": SEEN}, "a": {"meta": aborted()}}
    episode = played(length, **how[end])
    items = cut(episode, SPEC, length=width)
    shapes = {name: shape for name, (shape, _) in fields(SPEC, width).items()}
    assert {name: array.shape[1:] for name, array in items.items()} == shapes
    taught = length - (end == "a")
    rows = decisions(items)
    assert rows.sum() == taught == items["length"].sum()
    for name in ("actions", "log_probs", "rewards", "sampled", "versions"):
        np.testing.assert_array_equal(items[name][rows], getattr(episode, name)[:taught])
    np.testing.assert_array_equal(items["obs"][:, :-1][rows], episode.observations[:taught])
    ends = np.append(episode.observations, SEEN[None], axis=0)[np.cumsum(items["length"])]
    after = items["obs"][np.arange(len(ends)), items["length"]]
    if end == "w" and len(after):
        assert items["terminal"].tolist() == [False] * (len(after) - 1) + [True]
        after, ends = after[:-1], ends[:-1]
    else:
        assert not items["terminal"].any()
    np.testing.assert_array_equal(after, ends)
    assert not items["gated"].any()


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"bootstrap": SEEN},
        {"meta": aborted()},
        {"settled": np.array([0, 1, 1, 1, 0, 1, 1], bool)},
    ],
)
def test_a_batch_of_items_is_the_rings_batch_of_the_same_decisions(how: dict[str, Any]) -> None:
    episode = played(7, sampled=np.array([1, 1, 0, 1, 1, 0, 1], bool), **how)
    got = laid(cut(episode, SPEC, length=9))
    ring = assemble([episode], SPEC, columns=2, version=0, max_lag=10)
    assert got.weights is not None and (got.weights[:9, 0] == 1.0).all()
    assert ring.weights is None
    assert got.value_weights is None and ring.value_weights is None
    assert got.first is None and ring.first is None
    assert got.cut is None and ring.cut is None
    for name, array in got._asdict().items():
        if name in ("weights", "value_weights", "first", "cut"):
            continue
        wanted = getattr(ring, name)[:10]
        assert array.dtype == wanted.dtype
        rows = slice(0, 7) if name == "legal" else slice(0, 10)
        np.testing.assert_array_equal(array[rows, 0], wanted[rows, 0], err_msg=name)
    assert got.legal[7:].all() and got.legal[:, 1].all()
    assert not got.valid[:, 1].any()


@pytest.mark.parametrize("why", ["the gate", "no reward"])
def test_what_teaches_nothing_stands_for_what_follows(why: str) -> None:
    taught = np.array([1, 1, 0, 1, 1, 1], bool)
    episode = played(6, bootstrap=SEEN)
    if why == "no reward":
        episode, learned = replace(episode, settled=taught), np.ones((1, 6), bool)
    else:
        learned = taught[None]
    items = cut(episode, SPEC, length=6)
    batch = laid(items, learned=learned)
    np.testing.assert_array_equal(batch.valid[:, 0], [1, 1, 0, 1, 1, 1, 0])
    np.testing.assert_array_equal(batch.ongoing[:, 0], [1, 1, 0, 1, 1, 1, 0])
    np.testing.assert_array_equal(batch.on_policy[:, 0], [1, 1, 0, 1, 1, 1, 0])
    np.testing.assert_array_equal(batch.obs[2, 0], items["obs"][0, 2])


def test_a_truncated_chain_ends_in_the_value_of_what_was_skipped() -> None:
    import jax

    from understudy.learner.maths.update import _targets, _whole

    player = lively_policy(SPEC)
    config = LearnerConfig(gamma=0.9, gae_lambda=0.8)
    items = cut(played(6, bootstrap=SEEN), SPEC, length=6)
    learned = np.ones((1, 6), bool)
    learned[0, 3] = False
    batch = laid(items, learned=learned)
    logits, values = jax.jit(_whole, static_argnums=(0, 1))(
        SPEC, config, player.weights.params, batch
    )
    batch = batch._replace(log_probs=np.array(batch.log_probs))
    unsampled = batch._replace(sampled=0 * batch.sampled)
    towards = _targets(SPEC, config, logits, values, unsampled, lam=config.gae_lambda)
    v = np.asarray(values)[:, 0]
    errors = batch.rewards[:, 0] + 0.9 * np.append(v[1:], 0.0) - v
    for stretch in ([0, 1, 2], [4, 5]):
        advantage = 0.0
        for t in reversed(stretch):
            advantage = errors[t] + 0.9 * 0.8 * advantage
            assert float(towards.targets[t, 0]) == pytest.approx(v[t] + advantage, abs=1e-4)
    assert float(towards.targets[3, 0]) == pytest.approx(v[3], abs=1e-5)


def test_with_memory_an_item_is_a_whole_segment_from_its_beginning() -> None:
    spec = spec_of(TRANSFORMER)
    config = with_values(Config(), {"live.segment": 12, "continuous.length": 4})
    assert (item_length(spec, config), item_length(spec_of(MLP), config)) == (12, 4)
    whole = cut(played(10, bootstrap=SEEN), spec, length=12)
    assert whole["length"].tolist() == [10]
    longer = played(30)
    first = cut(longer, spec, length=12)
    assert first["length"].tolist() == [12] and not first["terminal"].any()
    np.testing.assert_array_equal(first["obs"][0], longer.observations[:13])


def test_what_a_gate_said_comes_along() -> None:
    sent = np.array([1, 0, 1, 1, 0], bool)
    explored = np.array([0, 0, 1, 0, 0], bool)
    expected = np.arange(5, dtype=np.float32)
    episode = played(5, sent=sent, explored=explored, expected=expected)
    items = cut(episode, SPEC, length=2)
    rows = decisions(items)
    assert items["gated"].all()
    np.testing.assert_array_equal(items["sent"][rows], sent)
    np.testing.assert_array_equal(items["explored"][rows], explored)
    np.testing.assert_array_equal(items["expected"][rows], expected)


def test_old_versions_teach_the_value_alone_and_weights_count_for_whole_items() -> None:
    items = cut(played(4, versions=np.array([1, 2, 3, 12], np.int64)), SPEC, length=2)
    batch = laid(items, version=13, max_lag=11, weights=np.array([0.25, 1.0], np.float32))
    np.testing.assert_array_equal(batch.on_policy[:2].T, [[0, 1], [1, 1]])
    assert batch.valid.sum() == 4
    assert laid(items, version=13, max_lag=None).on_policy.sum() == 4, "None is no limit"
    assert batch.weights is not None
    np.testing.assert_array_equal(batch.weights[:2].T, [[0.25, 0.25], [1.0, 1.0]])


def test_the_safe_answers_of_an_overloaded_server_teach_the_value_and_are_never_imitated() -> None:
    sampled = np.array([True, False, True, False])
    said: dict[str, Any] = {"sent": np.ones(4, bool), "expected": np.zeros(4, np.float32)}
    degraded = laid(cut(played(4, sampled=sampled, **said), SPEC, length=4))
    np.testing.assert_array_equal(degraded.valid[:4, 0], [1, 1, 1, 1])
    np.testing.assert_array_equal(degraded.on_policy[:4, 0], sampled)
    assert not degraded.imitated.any()
    ruled = laid(cut(played(4, sampled=sampled), SPEC, length=4))
    np.testing.assert_array_equal(ruled.imitated[:4, 0], ~sampled)


def of_rules(length: int = 6) -> Episode:
    """A segment of a served game that the rules played: nothing was sampled, no gate judged."""
    nothing = np.zeros(length, np.float32)
    return played(
        length, bootstrap=SEEN, sampled=np.zeros(length, bool), log_probs=nothing, values=nothing
    )


@pytest.mark.parametrize("left", [1.0, 0.25, 0.0])
def test_as_imitation_fades_the_rules_become_experience_of_another_policy(left: float) -> None:
    batch = laid(cut(of_rules(), SPEC, length=8), imitation=left)
    rows = batch.valid[:, 0] > 0
    assert rows.sum() == 6
    np.testing.assert_allclose(batch.imitated[rows, 0], left)
    np.testing.assert_allclose(batch.on_policy[rows, 0], 1.0 - left)
    # A ratio of 1 runs through them only as long as the policy is to become what they are.
    assert (batch.sampled[rows, 0] == (left < 1.0)).all()
    assert (batch.log_probs[rows, 0] == 0.0).all()


@pytest.mark.parametrize("left", [1.0, 0.25, 0.0])
def test_fading_imitation_changes_nothing_of_what_a_policy_or_an_overloaded_server_did(
    left: float,
) -> None:
    everything = np.ones(6, bool)
    sampled = np.array([1, 1, 0, 1, 1, 1], bool)
    judged: dict[str, Any] = {
        "sent": everything,
        "explored": ~everything,
        "expected": np.zeros(6, np.float32),
    }
    items = cut(played(6, bootstrap=SEEN, sampled=sampled, **judged), SPEC, length=8)
    before, after = laid(items), laid(items, imitation=left)
    for name in ("sampled", "on_policy", "imitated", "valid"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
    assert not after.imitated.any()
    assert after.on_policy.sum() == 5
