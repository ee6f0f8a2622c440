"""The cost gate: each factor pulls the right way, in words too, and the real game agrees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gates.worlds import Spawns, looks, spawn, spawns
from hypothesis import given
from hypothesis import strategies as st

from understudy.adapters.territory.cost_gate import (
    COST,
    MANY,
    NEAR,
    POOR,
    WEIGHTS,
    CostGate,
    factors,
)
from understudy.games.territory import observation, tables
from understudy.gates.calibration import calibrate
from understudy.gates.decision import NOTHING_TO_BLOCK, BatchGate, Verdict, judge

HERE, FAR = 5 * tables.GRID + 5, 15 * tables.GRID + 15
IDLE = NOTHING_TO_BLOCK.reasons
THETA = 0.0


def said(seen: Any, action: Any, threshold: float = THETA) -> Verdict:
    return CostGate(threshold=threshold).evaluate(seen, action)


def of(seen: Any, action: Any) -> Any:
    return factors(seen[None], action)


def test_the_formula_by_hand() -> None:
    """Six workers, a protector six chunks from the target: threat 1/3; a queen who can pay six."""
    seen = looks((HERE, 6.0, 0.0), (HERE + 6, 0.0, 1.0))
    found = of(seen, spawn(HERE))
    assert found.threat[0] == pytest.approx(1 / 3)
    assert found.survival[0] == pytest.approx(np.exp(-1 / 3))
    assert (found.workers[0], found.disruption[0]) == (pytest.approx(6.0), 1.0)
    assert (found.distance[0], found.location[0]) == (0.0, 1.0)
    assert found.capacity[0] == pytest.approx(1 - (1 - POOR) / 6)
    w1, w2, w3 = WEIGHTS[tables.ENERGY]
    expected = COST + found.capacity[0] * (w1 * np.exp(-1 / 3) + w2 + w3)
    assert said(seen, spawn(HERE)).expected_reward == pytest.approx(expected)
    explores = CostGate(threshold=THETA, exploration=0.05)
    assert explores.evaluate(seen, spawn(HERE)).expected_reward == pytest.approx(expected + 0.05)


def test_threats_are_the_rules_own() -> None:
    """1 within the kill range, 0 from the safe range on, and several protectors add up."""
    for away in range(tables.SAFE_RANGE + 2):
        seen = looks((HERE, 3.0, 0.0), (HERE + away, 0.0, 2.0))
        threat = 2.0 * float(tables.THREAT[HERE, HERE + away])
        found = of(seen, spawn(HERE))
        assert found.threat[0] == pytest.approx(threat, abs=1e-5)
        assert found.survival[0] == pytest.approx(np.exp(-threat), abs=1e-5)
    assert of(looks((HERE, 3.0, 0.0), (HERE + 8, 0, 5.0)), spawn(HERE)).survival[0] == 1.0


def test_a_chunk_that_is_not_described_is_judged_by_those_near_it() -> None:
    seen = looks((HERE, 3.0, 2.0), (FAR, 3.0, 0.0))
    near_guard = of(seen, spawn(HERE + 1)).threat[0]
    near_nobody = of(seen, spawn(FAR - 1)).threat[0]
    assert near_guard > 1.5 and near_nobody < 0.1


def test_disruption_counts_whom_nobody_holds_yet() -> None:
    assert of(looks((HERE, 6.0, 0.0)), spawn(HERE)).workers[0] == pytest.approx(6.0)
    held = of(looks((HERE, 6.0, 0.0), parasites=1.0), spawn(HERE))
    assert held.workers[0] == pytest.approx(6.0 - tables.HELD)
    assert of(looks((HERE, 6.0, 0.0), parasites=2.0), spawn(HERE)).disruption[0] == 0.0
    beside = of(looks((HERE, 6.0, 0.0)), spawn(HERE + tables.KILL_RANGE))
    assert beside.workers[0] == pytest.approx(NEAR * 6.0)
    assert of(looks((HERE, 6.0, 0.0)), spawn(HERE + tables.KILL_RANGE + 1)).workers[0] == 0.0


def test_a_combat_parasite_wants_what_an_energy_parasite_fears() -> None:
    guarded, free = looks((HERE, 3.0, MANY)), looks((HERE, 3.0, 0.0))
    energy, combat = spawn(HERE), spawn(HERE, tables.COMBAT)
    assert said(guarded, energy).expected_reward < said(free, energy).expected_reward
    assert said(guarded, combat).expected_reward > said(free, combat).expected_reward
    assert said(guarded, combat).reasons[-1] == "two protectors to bite"


def test_location_is_the_distance_to_the_nearest_workers() -> None:
    seen = looks((HERE, 3.0, 0.0))
    rewards = [said(seen, spawn(HERE + away)).expected_reward for away in range(1, 9)]
    assert rewards == sorted(rewards, reverse=True)
    assert of(seen, spawn(HERE + 1)).location[0] == 1.0
    assert of(seen, spawn(HERE + tables.SAFE_RANGE)).location[0] == 0.0


def test_capacity_is_whether_and_how_well_she_can_pay() -> None:
    broke, once, rich = (looks((HERE, 6.0, 0.0), energy=energy) for energy in (10, 20, 100))
    assert said(broke, spawn(HERE)) == (False, COST, ("cannot pay",))
    assert of(once, spawn(HERE)).capacity[0] == pytest.approx(POOR)
    assert of(once, spawn(HERE, tables.COMBAT)).capacity[0] == 0.0
    assert POOR < of(rich, spawn(HERE)).capacity[0] < 1.0


@pytest.mark.parametrize(
    ("seen", "action", "send", "reason"),
    [
        (looks((HERE, 6.0, 0.0)), spawn(HERE), True, "among workers"),
        (looks((HERE, 1.0, 2.0)), spawn(HERE), False, "two protectors in reach"),
        (looks((HERE, 1.0, 1.0)), spawn(HERE), False, "one worker to hold"),
        (looks((HERE, 3.0, 0.0)), spawn(FAR), False, "10 chunks from workers"),
        (looks((HERE, 1.0, 0.0)), spawn(HERE + 3), False, "no workers near"),
        (looks(), spawn(HERE), False, "no unit seen"),
        (looks((HERE, 3.0, 0.0)), spawn(HERE, tables.COMBAT), False, "no protectors to bite"),
        (looks((HERE, 3.0, 0.0), energy=5), spawn(HERE), False, "cannot pay"),
    ],
)
def test_the_weightiest_factor_comes_first_and_in_words(
    seen: Any, action: Any, send: bool, reason: str
) -> None:
    verdict = said(seen, action)
    assert verdict.send is send
    assert verdict.reasons[0] == reason


def test_the_threshold_has_one_meaning() -> None:
    seen, action = looks((HERE, 6.0, 0.0)), spawn(HERE)
    expected = said(seen, action).expected_reward
    assert said(seen, action, threshold=expected - 1e-6).send
    assert not said(seen, action, threshold=expected).send


def test_to_spawn_nothing_is_never_blocked() -> None:
    nothing = np.array([tables.NO_SPAWN], np.int32)
    assert said(looks(), nothing, threshold=9.0) == NOTHING_TO_BLOCK


@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_a_batch_says_what_its_members_say_alone(seed: int, count: int) -> None:
    """Even of numbers that no territory has: live clients send what they like."""
    rng = np.random.default_rng(seed)
    seen = rng.standard_cauchy((count, len(observation.FEATURES))).astype(np.float32)
    actions = rng.integers(0, tables.OPTIONS, (count, 1)).astype(np.int32)
    gate = CostGate(threshold=THETA)
    assert isinstance(gate, BatchGate)
    together = judge(gate, seen, actions)
    assert together == [gate.evaluate(o, a) for o, a in zip(seen, actions, strict=True)]
    assert all(np.isfinite(one.expected_reward) for one in together if one.reasons != IDLE)
    assert {type(verdict.send) for verdict in together} == {bool}


@pytest.fixture(scope="module")
def tried() -> Spawns:
    return spawns(matches=60, ticks=120)


def test_the_real_game_agrees(tried: Spawns) -> None:
    """On seeds that nothing was fitted to: expectations foretell, and are of the right size."""
    verdicts = judge(CostGate(threshold=THETA), tried.observations, tried.actions)
    passed = np.array([verdict.send for verdict in verdicts])
    found = calibrate(
        sent=np.ones_like(passed),
        explored=~passed,
        expected=np.array([verdict.expected_reward for verdict in verdicts]),
        rewards=tried.rewards,
        threshold=THETA,
        explore_share=1.0,
    )
    sight = found.foresight
    assert sight.correlation is not None and sight.correlation > 0.3
    assert sight.slope is not None and 0.6 < sight.slope < 1.6
    assert sight.bias is not None and abs(sight.bias) < 0.05
    assert 0.1 < passed.mean() < 0.9  # a gate that lets everything or nothing through is none
    good = tried.rewards > THETA
    assert good[passed].mean() > good[~passed].mean() + 0.2
