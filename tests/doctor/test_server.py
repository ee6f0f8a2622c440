"""Served runs that are sick by a setting, by their client or by one version, and healthy ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from .written_runs import ACTIONS, found, play, publish_certain, served

pytest.importorskip("starlette")
GATE = "doctor.written_runs:TestGate"


def test_a_healthy_server_has_no_finding(tmp_path: Path) -> None:
    with served(tmp_path / "run", gate=GATE) as at:
        play(at)
    assert found(tmp_path / "run") == {}


def test_a_threshold_that_lets_all_through_is_found(tmp_path: Path) -> None:
    with served(tmp_path / "run", {"live.threshold": -1.0}, gate=GATE) as at:
        play(at)
    finding = found(tmp_path / "run")["gate-lets-all-through"]
    assert finding.certainty == "certain"
    assert "live.threshold is -1" in finding.evidence[0]


def test_a_threshold_that_blocks_nearly_all_is_found(tmp_path: Path) -> None:
    with served(tmp_path / "run", {"live.threshold": 0.99}, gate=GATE) as at:
        play(at)
    finding = found(tmp_path / "run")["gate-blocks-nearly-all"]
    assert finding.weight == "problem" and "live.explore_share" in finding.next_step


def test_a_policy_that_has_collapsed_on_one_chunk_is_found(tmp_path: Path) -> None:
    publish_certain(tmp_path / "run", 7)
    with served(tmp_path / "run", gate=GATE) as at:
        play(at)
    finding = found(tmp_path / "run")["one-action-dominates"]
    assert finding.weight == "problem" and finding.evidence[0].startswith("chunk 7: ")


def test_a_policy_that_never_acts_is_found(tmp_path: Path) -> None:
    publish_certain(tmp_path / "run", len(ACTIONS))
    with served(tmp_path / "run", gate=GATE) as at:
        play(at)
    finding = found(tmp_path / "run")["one-action-dominates"]
    assert finding.evidence[0].startswith("none: 400 of the last 400 decisions")


def test_rewards_that_never_come_are_found(tmp_path: Path) -> None:
    with served(tmp_path / "run") as at:
        play(at, rewarded=False)
    finding = found(tmp_path / "run")["undated-rewards"]
    assert finding.weight == "problem" and "0 settled" in finding.evidence[0]


def test_skipped_ticks_are_found(tmp_path: Path) -> None:
    with served(tmp_path / "run") as at:
        play(at, ticks=300)
        play(at, ticks=200, rewarded=False, gap=3, client="d")
    finding = found(tmp_path / "run")["undated-rewards"]
    assert finding.weight == "warning" and "300 settled" in finding.evidence[0]


def test_a_reward_that_is_always_zero_is_found(tmp_path: Path) -> None:
    with served(tmp_path / "run") as at:
        play(at, reward=0.0)
    assert found(tmp_path / "run")["reward-always-zero"].weight == "problem"


def test_rewards_beyond_the_clip_are_found(tmp_path: Path) -> None:
    with served(tmp_path / "run", {"live.reward_clip": 0.25}) as at:
        play(at)
    checks = found(tmp_path / "run")
    assert "live.reward_clip" in checks["reward-clipped"].title
    assert "reward-always-zero" not in checks
