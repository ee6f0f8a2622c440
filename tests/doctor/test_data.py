"""Experience that is sick: rewards, features and actions, each beside a healthy one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bot.minds import publish

from understudy.experience.spool import Spool
from understudy.policy.weights import Weights, fresh
from understudy.telemetry import events as ev

from .ring_runs import Goalkeeper, WrittenRing
from .written_runs import evidence_on, found

MATCHES = 40


def _played(path: Path, matches: int = MATCHES, **how: object) -> Goalkeeper:
    bot = Goalkeeper(path, learns=False)
    bot.play(matches, **how)  # type: ignore[arg-type]
    bot.close()
    return bot


def test_healthy_experience_has_no_finding(tmp_path: Path) -> None:
    bot = _played(tmp_path / "run")
    publish(bot.folder, 1, weights=fresh(bot.folder.spec, np.random.default_rng(0)))
    assert found(tmp_path / "run") == {}


def test_rewards_that_are_all_zero_are_found(tmp_path: Path) -> None:
    _played(tmp_path / "run", reward=lambda action, ball: 0.0)
    finding = found(tmp_path / "run")["rewards-all-zero"]
    assert finding.weight == "problem" and "640 decisions" in finding.evidence[0]


def test_few_matches_without_a_reward_say_nothing(tmp_path: Path) -> None:
    _played(tmp_path / "run", 8, reward=lambda action, ball: 0.0)
    assert found(tmp_path / "run") == {}


@pytest.mark.parametrize(("size", "words"), [(1e6, "absurdly large"), (5e4, "few matches")])
def test_rewards_of_an_absurd_size_are_found(tmp_path: Path, size: float, words: str) -> None:
    bot = Goalkeeper(tmp_path / "run", learns=False)
    bot.play(MATCHES)
    bot.play(1, reward=lambda action, ball: size)
    bot.close()
    assert words in found(tmp_path / "run")["reward-scale"].title


def test_a_feature_that_never_changes_is_named(tmp_path: Path) -> None:
    _played(tmp_path / "run", luck=lambda rng: 0.25)
    finding = found(tmp_path / "run")["constant-features"]
    assert (
        finding.title == "1 feature never changes: luck." and "luck = 0.25" in finding.evidence[0]
    )


def test_a_feature_outside_the_range_of_its_network_is_named(tmp_path: Path) -> None:
    bot = _played(tmp_path / "run", luck=lambda rng: 1e6 * float(rng.uniform(-1, 1)))
    weights = fresh(bot.folder.spec, np.random.default_rng(0))
    publish(bot.folder, 1, weights=weights)
    finding = found(tmp_path / "run")["exploding-features"]
    assert "luck" in finding.title and "ball" not in finding.title
    fitted = Weights(**{**vars(weights), "obs_scale": np.array([1.0, 1e-6], np.float32)})
    publish(bot.folder, 2, weights=fitted)
    assert "exploding-features" not in found(tmp_path / "run")


def test_features_that_are_not_finite_are_named(tmp_path: Path) -> None:
    run = WrittenRing(tmp_path / "run")
    run.matches(30, won=0.5)
    assert found(run.folder) == {}
    run.bot.write(
        ev.MatchFinished(
            id="x", outcome="defeat", decisions=10, reward=0.0, version=0, seconds=1.0, saved=True,
            fallback=10, not_finite={"luck": 10},
        )
    )  # fmt: skip
    finding = found(run.folder)["not-finite-features"]
    assert finding.weight == "warning" and "luck" in finding.title


def test_an_action_that_is_never_legal_is_named(tmp_path: Path) -> None:
    _played(tmp_path / "run", 130, legal=[True, True, False])
    assert "never legal: wait" in found(tmp_path / "run")["unmapped-actions"].title


def test_an_action_that_is_never_executed_is_named(tmp_path: Path) -> None:
    """A gate, or the game behind it, that refuses one action always."""
    bot = _played(tmp_path / "run")
    spool = Spool(bot.folder.root, bot.folder.spec, bot.folder.clock)
    for episode in evidence_on(bot.folder).episodes:
        refused = episode.actions[:, 0] != 2
        spool.put(replace(episode, sent=refused, explored=np.zeros(len(episode), np.bool_)))
    finding = found(bot.folder)["unmapped-actions"]
    assert "never executed: wait" in finding.title and "sent 0 times" in finding.evidence[0]


def test_matches_that_are_all_aborted_are_found(tmp_path: Path) -> None:
    run = WrittenRing(tmp_path / "run")
    run.matches(30, won=0.5)
    run.matches(1, won=0.0, outcome="aborted")
    assert found(run.folder) == {}
    run.matches(30, won=0.0, outcome="aborted")
    finding = found(run.folder)["all-aborted"]
    assert finding.weight == "problem" and "31 of 61" in finding.evidence[0]
