"""The rollout gate in the game it ships for: it foretells, and what it blocks is worth blocking."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

from understudy.adapters.gate_factory import make_gate
from understudy.gates.decision import judge
from understudy.gates.lookahead import LookaheadGate

from .worlds import Spawns, spawns

PAGE = (Path(__file__).parents[2] / "docs" / "gates.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tried() -> Spawns:
    return spawns(matches=20, ticks=60)


def test_the_real_game_agrees(tried: Spawns) -> None:
    """Against the truth, which only a test knows: the same tick with the spawn and without."""
    rollout = make_gate("rollout", game="territory", threshold=0.0, budget_ms=float("inf"))
    verdicts = judge(rollout, tried.observations, tried.actions)
    sent = np.array([verdict.send for verdict in verdicts])
    expected = np.array([verdict.expected_reward for verdict in verdicts])
    assert np.corrcoef(expected, tried.rewards)[0, 1] > 0.3
    assert abs((expected - tried.rewards).mean()) < 0.06
    assert 0.1 < sent.mean() < 0.9
    gain = tried.rewards - tried.waiting
    assert gain[sent].mean() > 0.05
    assert gain[~sent].mean() < 0.02
    assert rollout.evaluate(tried.observations[0], tried.actions[0]) == verdicts[0]


def test_a_server_whose_time_is_up_waits(tried: Spawns) -> None:
    rollout = make_gate("rollout", game="territory", threshold=0.0, budget_ms=1e-6)
    for verdict in judge(rollout, tried.observations[:3], tried.actions[:3]):
        assert (verdict.send, verdict.reasons) == (False, ("past the time budget of 1e-06 ms",))
        assert np.isnan(verdict.expected_reward)


def test_the_page_tells_how_far_it_looks() -> None:
    options = inspect.signature(LookaheadGate).parameters
    assert (options["ticks"].default, options["worlds"].default) == (2, 4)
    assert "two ticks ahead" in PAGE and "four worlds" in PAGE
    assert f"γ = {options['gamma'].default}" in PAGE  # noqa: RUF001
