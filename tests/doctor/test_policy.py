"""Policies that are sick by the figures of their batches, and healthy ones beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from understudy.doctor.findings import Finding

from .ring_runs import ACTIONS, Goalkeeper, WrittenRing
from .written_runs import found

LARGEST = math.log(len(ACTIONS))


def _findings(
    path: Path, figures: Mapping[str, Any], *, won: float = 0.2, count: int = 45
) -> dict[str, Finding]:
    run = WrittenRing(path)
    run.matches(100, won=won)
    run.batches(count, **figures)
    return found(run.folder)


def test_healthy_batches_have_no_finding(tmp_path: Path) -> None:
    assert _findings(tmp_path / "run", {}) == {}


@pytest.mark.parametrize(
    ("check", "figures", "weight"),
    [
        ("entropy-collapsed", {"entropy": 0.001}, "problem"),
        ("policy-stands-still", {"kl": 1e-9, "entropy": 0.999 * LARGEST}, "problem"),
        ("policy-stands-still", {"kl": 0.0}, "problem"),
        ("steps-too-large", {"kl": 40.0}, "problem"),
        ("value-loss-absurd", {"value_loss": 1e5}, "problem"),
        ("value-loss-absurd", {"value_loss": 0.3, "explained_variance": -3.0}, "warning"),
        ("far-from-what-played", {"behaviour_kl": 60.0}, "warning"),
        ("over-reused", {"samples_per_insert": 480.0}, "warning"),
    ],
)
def test_a_sick_policy_is_found(
    tmp_path: Path, check: str, figures: dict[str, float], weight: str
) -> None:
    findings = _findings(tmp_path / "run", figures)
    assert set(findings) == {check} and findings[check].weight == weight


@pytest.mark.parametrize(
    ("won", "count", "figures"),
    [
        (0.99, 30, {"entropy": 0.001}),  # sure of itself, and right
        (0.2, 5, {"entropy": 0.001}),  # few batches say nothing
        (0.2, 35, {"kl": 0.0}),
        (0.2, 45, {"kl": 1e-6}),  # little experience a batch
        (0.2, 30, {"value_loss": 1e-6, "explained_variance": -9.0}),  # returns hardly differ
        (0.2, 30, {"entropy": 0.07 * LARGEST, "kl": 0.14, "behaviour_kl": 3.0, "value_loss": 0.5}),
    ],
)
def test_what_healthy_runs_show_is_not_accused(
    tmp_path: Path, won: float, count: int, figures: dict[str, float]
) -> None:
    assert _findings(tmp_path / "run", figures, won=won, count=count) == {}


def test_one_action_that_dominates_and_loses_is_named(tmp_path: Path) -> None:
    """A reward for one action alone: the policy learns to take it, and never wins."""
    bot = Goalkeeper(tmp_path / "run", {"learner.entropy_weight": 0.0})
    bot.play(200, reward=lambda action, ball: float(action == "wait"))
    bot.close()
    finding = found(tmp_path / "run")["one-action-dominates"]
    assert finding.title == "The policy chooses wait nearly always, and loses."
