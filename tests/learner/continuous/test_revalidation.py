from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.core.arrays import NDArray
from understudy.core.config import ContinuousConfig
from understudy.gates.decision import OpenGate, Verdict
from understudy.learner.continuous.batches import Recorded, Verdicts, revalidate, verdicts

CLIP = 1.0


def slowly(
    config: ContinuousConfig, recorded: dict[str, Any], now: tuple[bool, float] | None
) -> tuple[float, bool, bool]:
    """One decision, as the table says it: reward, learned, agreed."""
    actual, sent, explored = recorded["rewards"], recorded["sent"], recorded["explored"]
    if not recorded["gated"]:
        return actual, True, False
    before = max(-CLIP, min(CLIP, recorded["expected"]))
    if now is None:
        agreed, expected, doubted, mixes = False, before, False, False
    else:
        said_send = sent and not explored
        agreed = said_send == now[0]
        expected = max(-CLIP, min(CLIP, now[1])) if agreed else before
        doubted = not agreed and not explored
        mixes = agreed and said_send
    if mixes:
        reward, learned = config.actual_weight * actual + config.simulated_weight * expected, True
    elif sent:
        reward, learned = actual, True
    elif config.waits == "skip":
        reward, learned = actual, False
    elif config.waits == "counterfactual":
        reward, learned = min(expected, actual), True
    else:
        reward, learned = min(actual, config.wait_multiplier * actual), True
    if doubted and config.on_disagreement == "skip":
        learned = False
    if doubted and config.on_disagreement == "penalty":
        reward -= config.disagreement_penalty
    return reward, learned, agreed


NUMBERS = st.floats(-2.0, 2.0, width=32)


@st.composite
def decisions(draw: st.DrawFn) -> dict[str, Any]:
    sent = draw(st.booleans())
    return {
        "rewards": draw(NUMBERS),
        "sent": sent,
        "explored": sent and draw(st.booleans()),
        "expected": draw(NUMBERS),
        "gated": draw(st.booleans()),
        "now": (draw(st.booleans()), draw(NUMBERS)),
    }


@given(
    some=st.lists(decisions(), min_size=1, max_size=12),
    waits=st.sampled_from(["actual", "counterfactual", "skip"]),
    doubt=st.sampled_from(["keep", "skip", "penalty"]),
    asked=st.booleans(),
)
def test_decision_by_decision_it_is_what_the_table_says(
    some: list[dict[str, Any]], waits: Any, doubt: Any, asked: bool
) -> None:
    config = ContinuousConfig(waits=waits, on_disagreement=doubt, wait_multiplier=0.25)
    kinds = {"rewards": np.float32, "sent": bool, "explored": bool, "expected": np.float32}
    fields = {name: np.array([one[name] for one in some], kind) for name, kind in kinds.items()}
    recorded = Recorded(**fields, gated=np.array([one["gated"] for one in some]))
    send, expected = zip(*(one["now"] for one in some), strict=True)
    now = Verdicts(np.array(send), np.array(expected, np.float32)) if asked else None
    got = revalidate(config, recorded, now, clip=CLIP)
    wanted = [slowly(config, one, one["now"] if asked else None) for one in some]
    np.testing.assert_allclose(got.rewards, [one[0] for one in wanted], atol=1e-6)
    np.testing.assert_array_equal(got.learned, [one[1] for one in wanted])
    np.testing.assert_array_equal(got.agreed, [one[2] for one in wanted])
    assert got.rewards.dtype == np.float32


@pytest.mark.parametrize("nonsense", [np.nan, np.inf, -np.inf, 1e30])
def test_a_gate_that_expects_nonsense_poisons_nothing(nonsense: float) -> None:
    one = np.ones(1, bool)
    recorded = Recorded(np.full(1, 0.5, np.float32), one, ~one, np.zeros(1, np.float32), one)
    now = Verdicts(one, np.full(1, nonsense, np.float32))
    got = revalidate(ContinuousConfig(), recorded, now, clip=CLIP)
    assert np.isfinite(got.rewards).all() and np.abs(got.rewards).max() <= 1.0


class Positive:
    """Sends where the first feature is positive, one by one."""

    name = "positive"

    def __init__(self) -> None:
        self.asked: list[float] = []

    def evaluate(self, observation: NDArray, action: NDArray) -> Verdict:
        self.asked.append(float(observation[0]))
        return Verdict.of(float(observation[0]) + float(action[0]), threshold=0.0)


def test_the_gate_is_asked_only_about_what_was_judged() -> None:
    gate = Positive()
    observations = np.array([[[1.0], [-5.0]], [[-9.0], [3.0]]], np.float32)
    actions = np.full((2, 2, 1), 2, np.int32)
    which = np.array([[True, True], [False, True]])
    said = verdicts(gate, observations, actions, which)
    assert gate.asked == [1.0, -5.0, 3.0]
    np.testing.assert_array_equal(said.send, [[True, False], [False, True]])
    np.testing.assert_array_equal(said.expected, [[3.0, -3.0], [0.0, 5.0]])
    nobody = verdicts(OpenGate(), observations, actions, np.zeros((2, 2), bool))
    assert not nobody.send.any()


def test_what_is_blocked_is_never_worth_more_than_doing_nothing() -> None:
    """A gate that expects much of what it blocks (by a high threshold) must not pay for it."""
    rewards = np.array([-0.2, 0.4, 0.0], np.float32)
    expected = np.array([0.9, 0.1, np.nan], np.float32)
    blocked = Recorded(rewards, np.zeros(3, bool), np.zeros(3, bool), expected, np.ones(3, bool))
    for now in (None, Verdicts(np.zeros(3, bool), expected)):
        got = revalidate(ContinuousConfig(waits="counterfactual"), blocked, now, clip=CLIP)
        np.testing.assert_allclose(got.rewards, [-0.2, 0.1, 0.0])
        assert got.learned.all()
