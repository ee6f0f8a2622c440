"""What a gate expected, in the record and in the answer."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from understudy.core.arrays import NDArray
from understudy.gates.decision import OpenGate, Verdict
from understudy.policy.policy import Policy, untrained
from understudy.session.deciding import PolicyFailed, propose
from understudy.session.territory import DecisionRequest, TerritoryState
from understudy.session.translation import Sight

from .sessions import Table, observation


class Expects:
    """Blocks everything, and expects what it is told to."""

    name = "expects"

    def __init__(self, expected: float) -> None:
        self._expected = expected

    def evaluate(self, observation: NDArray, action: NDArray) -> Verdict:
        return Verdict(False, self._expected)


@pytest.mark.parametrize("expected", [math.nan, math.inf, -math.inf, 1e300])
def test_a_gate_without_an_expectation_is_not_recorded_as_expecting_nothing_good(
    tmp_path: Path, expected: float
) -> None:
    """0 is an expectation, by which gates are judged and blocked actions rewarded; nan is none."""
    table = Table(tmp_path, gate=Expects(expected), explore_share=0.0, segment=2)
    answers = [table.ask(tick=tick) for tick in range(4)]
    assert {answer["expected_reward"] for answer in answers} == {0.0}, "JSON knows no nan"
    opened = table.ledger.opened(answers[-1]["decision_id"])
    assert opened is not None and math.isnan(opened.expected)
    assert table.episodes[0].expected is not None
    assert all(math.isnan(one) for one in table.episodes[0].expected)
    table.ledger.stop()
    after = Table(tmp_path, gate=Expects(expected), explore_share=0.0, segment=2)
    (again,) = after.say(observation(tick=3))
    assert (again["duplicate"], again["expected_reward"]) == (True, 0.0)


def test_an_answer_that_is_not_finite_fails_a_version_that_is_judged_and_no_other(
    tmp_path: Path,
) -> None:
    """Where the newest version decides, nothing else could: there it goes on as it always did."""
    table = Table(tmp_path)
    sound = untrained(table.spec, 0)
    params = {name: np.full_like(value, np.nan) for name, value in sound.weights.params.items()}
    broken = Policy(table.spec, replace(sound.weights, params=params), 7)
    sight = Sight(np.ones(len(table.spec.features), np.float32), None)
    batch = [DecisionRequest(0, None, TerritoryState("north", "alice", 0.0), 0, sight, None)]

    def proposed(policy: Policy, *, blames: bool) -> tuple[int, ...]:
        rng = np.random.default_rng(0)
        (one,) = propose(policy, OpenGate(), batch, rng=rng, explore_share=0.0, blames=blames)
        return one.action

    with pytest.raises(PolicyFailed, match="not finite"):
        proposed(broken, blames=True)
    assert 0 <= proposed(broken, blames=False)[0] < table.spec.actions.options
    assert proposed(sound, blames=True) == proposed(sound, blames=False)
