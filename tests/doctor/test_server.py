"""Served runs that are sick by a setting, by their client or by one version, and healthy ones."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from walk.toys import SetClock

from understudy.telemetry import events as ev
from understudy.telemetry.journal import Journal

from .written_runs import ACTIONS, found, play, publish_certain, served, switches

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
    finding = found(tmp_path / "run")["server-action-dominates"]
    assert finding.weight == "problem" and finding.evidence[0].startswith("chunk 7: ")


def test_a_policy_that_never_acts_is_found(tmp_path: Path) -> None:
    publish_certain(tmp_path / "run", len(ACTIONS))
    with served(tmp_path / "run", gate=GATE) as at:
        play(at)
    finding = found(tmp_path / "run")["server-action-dominates"]
    assert finding.evidence[0].startswith("none: 400 of the last 400 decisions")


def test_actions_in_many_parts_are_counted_as_they_were_taken(tmp_path: Path) -> None:
    declared = switches()
    publish_certain(tmp_path / "run", *range(1, 80, 2), declared=declared)
    with served(tmp_path / "run", declared=declared) as at:
        play(at)
    finding = found(tmp_path / "run")["server-action-dominates"]
    assert finding.evidence[0].startswith("/".join("1" * 40) + ": 400 of the last 400 decisions")
    assert "1,099,511,627,776 actions to choose from; 1 were used" in finding.evidence[0]


def test_rewards_that_never_come_are_found(tmp_path: Path) -> None:
    with served(tmp_path / "run") as at:
        play(at, rewarded=False)
    finding = found(tmp_path / "run")["undated-rewards"]
    assert finding.weight == "problem" and "0 settled" in finding.evidence[0]


def test_skipped_ticks_are_found(tmp_path: Path) -> None:
    with served(tmp_path / "run") as at:
        play(at, ticks=300)
        play(at, ticks=200, rewarded=False, gap=3)
    finding = found(tmp_path / "run")["undated-rewards"]
    assert finding.weight == "warning" and "300 settled" in finding.evidence[0]


def test_territories_that_never_get_a_reward_are_found(tmp_path: Path) -> None:
    with served(tmp_path / "run") as at:
        play(at)
        play(at, ticks=30, rewarded=False, client="d", territory="u")
    checks = found(tmp_path / "run")
    assert checks.keys() == {"territories-without-reward"}
    assert "1 of 2" in checks["territories-without-reward"].title
    assert "of 30: u" in checks["territories-without-reward"].evidence[0]


def test_a_reward_that_is_always_zero_is_found(tmp_path: Path) -> None:
    with served(tmp_path / "run") as at:
        play(at, rewards=[0.0])
    assert found(tmp_path / "run")["reward-always-zero"].weight == "problem"


def test_rewards_beyond_the_clip_are_found(tmp_path: Path) -> None:
    with served(tmp_path / "run", {"live.reward_clip": 0.25}) as at:
        play(at)
    checks = found(tmp_path / "run")
    assert "live.reward_clip" in checks["reward-clipped"].title
    assert checks["reward-clipped"].certainty == "likely"
    assert "reward-always-zero" not in checks


@pytest.mark.parametrize(
    ("rewards", "clipped"),
    [
        ([1.0, -1.0], False),  # what the game pays is just what the clip is
        ([1.0, 0.0, -1.0, 0.5, -0.5], False),
        ([7.0, 0.1, -7.0, 0.2, 0.3, 0.4], True),
    ],
)
def test_a_game_that_pays_just_what_the_clip_is_is_not_cut_off(
    tmp_path: Path, rewards: list[float], *, clipped: bool
) -> None:
    with served(tmp_path / "run", {"live.reward_clip": 1.0}) as at:
        play(at, rewards=rewards)
    assert set(found(tmp_path / "run")) == ({"reward-clipped"} if clipped else set())


@pytest.mark.parametrize(
    ("changes", "check"),
    [
        ({}, None),
        ({"agreement": 0.4}, "gate-disagrees"),
        ({"samples_per_insert": 20.0}, "server-over-reused"),
        ({"utilisation": 0.97, "samples_per_insert": 0.2}, "server-learner-outrun"),
    ],
)
def test_the_learner_behind_a_server(
    tmp_path: Path, changes: dict[str, float], check: str | None
) -> None:
    with served(tmp_path / "run") as at:
        play(at)
    clock = SetClock()
    journal = Journal(tmp_path / "run" / "journal", "learner", clock)
    told = ev.ContinuousTrained(
        batches=1, episodes=3, items=32, steps=250, skipped=0, seconds=0.3, utilisation=0.2,
        buffer=2_000, samples_per_insert=3.0, agreement=1.0, entropy_share=0.3, loss=0.1,
        policy_loss=0.1, value_loss=0.01, entropy=1.7, kl=0.007, explained_variance=0.6,
        clip_share=0.07, gradient_norm=0.3, learning_rate=5e-4,
    )  # fmt: skip
    for _ in range(40):
        clock.advance(1.0)
        journal.write(msgspec.structs.replace(told, **changes))
    assert set(found(tmp_path / "run")) == ({check} if check else set())
