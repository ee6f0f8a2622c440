"""Policies that are sick by the figures of their batches, and healthy ones beside them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from bot.minds import publish

from understudy.doctor.checks.policy import entropy_collapsed
from understudy.doctor.findings import Finding
from understudy.policy.weights import fresh
from understudy.telemetry.status import Estimate, RewardStatus, VersionReward, WinRecord
from understudy.telemetry.trends import Trend

from .ring_runs import ACTIONS, Goalkeeper, WrittenRing
from .written_runs import evidence_on, found

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


@pytest.mark.parametrize(("since", "weight"), [(99, "problem"), (100, "note")])
def test_a_jump_of_the_policy_is_a_problem_for_a_hundred_batches(
    tmp_path: Path, since: int, weight: str
) -> None:
    run = WrittenRing(tmp_path / "run")
    run.matches(100, won=0.2)
    run.batches(1, kl=40.0)
    run.batches(since)
    findings = found(run.folder)
    assert set(findings) == {"steps-too-large"} and findings["steps-too-large"].weight == weight


@pytest.mark.parametrize("joined", [1, 40])
@pytest.mark.parametrize(
    ("returns", "weight"),
    [
        ([1.0, 4.0, 6.0, 8.0, *[50.0] * 40], None),  # solved, and sure of itself
        ([5.0, 4.0, 6.0, 8.0, *[5.0] * 40], "problem"),
        ([1.0, 50.0, 50.0], "note"),  # too few to tell
    ],
)
def test_a_sure_policy_without_winners_is_judged_by_its_returns(
    tmp_path: Path, returns: list[float], weight: str | None, joined: int
) -> None:
    run = WrittenRing(tmp_path / "run")
    run.batches(30, entropy=0.001)
    trend = Trend()
    for turn, value in enumerate(returns):  # a bin of a long run weighs many matches
        trend.add(float(turn), value, version=1, weight=joined)
    evidence = evidence_on(run.folder)
    evidence.trends["return"] = trend
    assert [one.weight for one in entropy_collapsed(evidence)] == ([weight] if weight else [])


@pytest.mark.parametrize(
    ("record", "weight"),
    [
        (WinRecord(wins=300, draws=600, losses=100), None),  # tic-tac-toe, as good as solved
        (WinRecord(wins=100, draws=300, losses=600), "problem"),
        (WinRecord(wins=650, draws=10, losses=340), "problem"),  # hardly any draws: wins decide
    ],
)
def test_a_sure_policy_in_a_game_of_draws_is_judged_by_points(
    tmp_path: Path, record: WinRecord, weight: str | None
) -> None:
    run = WrittenRing(tmp_path / "run")
    run.batches(30, entropy=0.001)
    seen = evidence_on(run.folder)
    status = msgspec.structs.replace(seen.status, opponents={"rules": record})
    trend = Trend()
    for turn in range(200):
        trend.add(float(turn), float(turn % 5 == 0), version=1)
    evidence = dataclasses.replace(seen, view=msgspec.structs.replace(seen.view, status=status))
    evidence.trends["win_rate"] = trend
    assert [one.weight for one in entropy_collapsed(evidence)] == ([weight] if weight else [])


def _reward(first: int, mean: float) -> VersionReward:
    return VersionReward(
        first=first, last=first, count=50, reward=Estimate(mean, mean - 0.1, mean + 0.1)
    )


@pytest.mark.parametrize(
    ("reward", "weight"),
    [
        (None, "note"),
        (RewardStatus(per="decision", now=_reward(9, 1.0)), "note"),
        (RewardStatus(per="decision", start=_reward(1, 0.0), now=_reward(9, 1.0)), None),
        (RewardStatus(per="decision", start=_reward(1, 0.0), now=_reward(9, 0.1)), "problem"),
        (
            RewardStatus(
                per="decision", policy=Estimate(0.5, 0.4, 0.6), random=Estimate(0.0, -0.1, 0.1)
            ),
            None,
        ),
    ],
)
def test_a_sure_policy_behind_a_server_is_judged_by_its_reward(
    tmp_path: Path, reward: RewardStatus | None, weight: str | None
) -> None:
    run = WrittenRing(tmp_path / "run")
    run.batches(30, entropy=0.001)
    seen = evidence_on(run.folder)
    status = msgspec.structs.replace(seen.status, version_rewards=reward)
    view = msgspec.structs.replace(seen.view, status=status)
    evidence = dataclasses.replace(seen, kind="server", view=view)
    assert [one.weight for one in entropy_collapsed(evidence)] == ([weight] if weight else [])


@pytest.mark.parametrize(("bias", "expected"), [(5.0, True), (1.0, False)])
def test_one_action_that_dominates_and_loses_is_named(
    tmp_path: Path, bias: float, expected: bool
) -> None:
    bot = Goalkeeper(tmp_path / "run", learns=False)
    weights = fresh(bot.folder.spec, np.random.default_rng(0))
    weights.params["policy.b"][ACTIONS.index("wait")] = bias
    publish(bot.folder, 1, weights=weights)
    bot.mind.refresh()
    bot.play(70)
    bot.close()
    findings = found(tmp_path / "run")
    assert ("one-action-dominates" in findings) is expected
    if expected:
        title = "The policy chooses wait nearly always, and loses."
        assert findings["one-action-dominates"].title == title
