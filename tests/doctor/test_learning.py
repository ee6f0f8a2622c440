"""Bots whose learning is sick, and a healthy one beside them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pytest
from bot.minds import publish

from understudy.learner.maths import update
from understudy.learner.maths.returns import standardised_beside
from understudy.registry.scores import Score

from .ring_runs import CHANCE, Goalkeeper, WrittenRing, saved
from .written_runs import evidence_on, found

MATCHES = 200


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A goalkeeper that has learned."""
    root = tmp_path_factory.mktemp("healthy") / "run"
    bot = Goalkeeper(root)
    bot.play(MATCHES)
    bot.close()
    return root


@pytest.fixture(scope="module")
def too_fast(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same one with a learning rate of 20: 1 is no harm in so small a game."""
    root = tmp_path_factory.mktemp("fast") / "run"
    bot = Goalkeeper(root, {"learner.learning_rate": 20.0, "learner.learning_rate_max": 20.0})
    bot.play(MATCHES)
    bot.close()
    return root


@pytest.fixture(scope="module")
def negated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The same one, whose learner has lost a minus."""
    root = tmp_path_factory.mktemp("negated") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(update, "standardised_beside", lambda *args: -standardised_beside(*args))
        bot = Goalkeeper(root, {"learner.seed": 1})  # another program than the right one
        bot.play(MATCHES)
        bot.close()
    yield root


def test_a_bot_that_learns_has_no_finding(healthy: Path) -> None:
    evidence = evidence_on(healthy)
    assert (evidence.status.win_rate_last or 0.0) > 0.9 and len(evidence.episodes) == 128
    assert found(healthy) == {}


def test_an_absurd_learning_rate_is_found_by_what_it_does(too_fast: Path) -> None:
    findings = found(too_fast)
    assert findings["steps-too-large"].weight == "problem"
    assert "target: 0.01" in findings["steps-too-large"].evidence[0]
    assert {"entropy-collapsed", "value-loss-absurd"} <= findings.keys()
    assert "one-action-dominates" not in findings, "a collapse is told once"


def test_a_lost_minus_is_found(negated: Path) -> None:
    finding = found(negated)["wrong-sign"]
    assert finding.weight == "problem"
    assert "learning makes that positive" in finding.evidence[-1]


def test_rewards_of_the_wrong_sign_are_found(tmp_path: Path) -> None:
    bot = Goalkeeper(tmp_path / "run", learns=False)
    bot.play(130, needed=CHANCE, reward=lambda action, ball: -saved(action, ball))
    bot.close()
    finding = found(tmp_path / "run")["reward-against-result"]
    assert finding.weight == "problem" and finding.certainty == "certain"
    assert "learns to lose" in finding.title


def _noisy(won: float, *, size: float, noise: Iterator[float]) -> float:
    return size * won + next(noise)


def test_rewards_that_drown_the_result_are_found(tmp_path: Path) -> None:
    for name, result, expected in (("sick", 1.0, True), ("healthy", 30.0, False)):
        run = WrittenRing(tmp_path / name)
        noise = iter(np.random.default_rng(0).normal(0.0, 100.0, 1600).tolist())
        run.matches(1600, won=0.5, reward=partial(_noisy, size=result, noise=noise))
        findings = found(run.folder)
        assert ("reward-against-result" in findings) is expected
        if expected:
            assert findings["reward-against-result"].weight == "warning"


def test_a_win_rate_that_does_not_rise_is_found(tmp_path: Path) -> None:
    run = WrittenRing(tmp_path / "run")
    run.matches(200, won=0.12)
    run.batches(60)
    run.matches(600, won=0.12)
    finding = found(run.folder)["not-learning"]
    assert finding.weight == "problem" and "12%" in finding.title


@pytest.mark.parametrize(
    ("before", "after", "batches", "matches"),
    [
        (0.12, 0.30, 60, 600),  # it learns
        (0.70, 0.70, 60, 600),  # it wins already
        (0.12, 0.12, 60, 200),  # too few matches
        (0.12, 0.12, 9, 600),  # the learner has hardly begun
    ],
)
def test_what_may_yet_learn_is_not_accused(
    tmp_path: Path, before: float, after: float, batches: int, matches: int
) -> None:
    run = WrittenRing(tmp_path / "run")
    run.matches(200, won=before)
    run.batches(batches)
    run.matches(matches, won=after)
    assert "not-learning" not in found(run.folder)


def _scored(path: Path, wins: list[int]) -> WrittenRing:
    run = WrittenRing(path)
    scores = tuple(
        Score(first=number, last=number, matches=40, wins=one)
        for number, one in enumerate(wins, start=1)
    )
    publish(run.folder, len(wins), scores=scores)
    return run


def test_learning_that_went_backwards_names_the_best_version(tmp_path: Path) -> None:
    run = _scored(tmp_path / "run", [10, 20, 36, 37, 30, 12, 8])
    finding = found(run.folder)["went-backwards"]
    assert finding.weight == "problem"
    assert "understudy models rollback 4 " in finding.next_step


def test_where_a_champion_plays_worse_versions_that_practise_are_no_step_backwards(
    tmp_path: Path,
) -> None:
    run = _scored(tmp_path / "run", [10, 20, 36, 37, 30, 12, 8])
    run.folder.promotion.mkdir()
    assert "went-backwards" not in found(run.folder)


def test_a_lucky_version_is_no_step_backwards(tmp_path: Path) -> None:
    run = _scored(tmp_path / "run", [20, 22, 28, 24, 21, 19, 20, 23, 18, 20])
    assert "went-backwards" not in found(run.folder)


def test_other_opponents_are_no_step_backwards(tmp_path: Path) -> None:
    bot = Goalkeeper(tmp_path / "run", learns=False)
    bot.play(20, tags={"opponent": "weak"})
    bot.play(128, tags={"opponent": "strong"})
    bot.close()
    scores = [10, 20, 36, 37, 30, 12, 8]
    publish(
        bot.folder,
        1,
        scores=tuple(
            msgspec.structs.replace(Score(first=n, last=n, matches=40), wins=one)
            for n, one in enumerate(scores, start=1)
        ),
    )
    assert "went-backwards" not in found(tmp_path / "run")
