"""What a verdict is made of, and how a gate is asked."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np

from understudy.gates.decision import BatchGate, OpenGate, Verdict, judge

SEEN = np.array([[0.1], [0.9]], np.float32)
ACTIONS = np.array([[1], [2]], np.int32)


class OneByOne:
    name = "one by one"

    def evaluate(self, observation: Any, action: Any) -> Verdict:
        return Verdict.of(observation[0] * action[0], threshold=0.5, reasons=["because"])


def test_more_than_the_threshold_is_sent() -> None:
    assert Verdict.of(0.51, threshold=0.5).send
    assert not Verdict.of(0.5, threshold=0.5).send


def test_numbers_of_numpy_become_plain_so_that_they_can_be_written_down() -> None:
    verdict = Verdict.of(np.float32(0.75), threshold=0.5, reasons=["because"])
    assert (type(verdict.send), type(verdict.expected_reward)) == (bool, float)
    assert msgspec.json.decode(msgspec.json.encode(verdict)) == [True, 0.75, ["because"]]


def test_a_gate_that_knows_no_batches_is_asked_one_by_one() -> None:
    assert not isinstance(OneByOne(), BatchGate)
    verdicts = judge(OneByOne(), SEEN, ACTIONS)
    assert [verdict.send for verdict in verdicts] == [False, True]


def test_the_open_gate_sends_everything() -> None:
    verdicts = [*judge(OpenGate(), SEEN, ACTIONS), OpenGate().evaluate(SEEN[0], ACTIONS[0])]
    assert len(verdicts) == 3 and all(verdict.send for verdict in verdicts)
    assert all(math.isnan(verdict.expected_reward) for verdict in verdicts), "nothing to say"
