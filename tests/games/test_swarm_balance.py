"""The bounds that swarm's rules were frozen within, on seeds first played after the freeze."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from understudy.core.ops import Array, Ops
from understudy.games.swarm import BOTS, Swarm, tables
from understudy.games.swarm.balance import Outcome, main, play, seeds_held_out
from understudy.games.swarm.features import FEATURES

CONSTANTS = tuple(name.lower() for name in tables.STRATEGIES)


@functools.cache
def outcome(name: str, difficulty: str = "hard") -> Outcome:
    return play(Swarm(difficulty), BOTS[name], seeds_held_out(2000))


@pytest.mark.parametrize("name", CONSTANTS)
def test_no_single_strategy_beats_hard(name: str) -> None:
    assert outcome(name).wins < 0.40


def test_chance_does_not_beat_hard_but_finds_some_wins_to_learn_from() -> None:
    assert 0.05 < outcome("random").wins < 0.20


@pytest.mark.parametrize(
    ("difficulty", "least", "most"),
    [("easy", 0.90, 1.0), ("medium", 0.68, 0.80), ("hard", 0.45, 0.56), ("very_hard", 0.20, 0.32)],
)
def test_the_shipped_rules_mark_the_difficulties(
    difficulty: str, least: float, most: float
) -> None:
    assert least <= outcome("rules", difficulty).wins <= most


def test_matches_are_as_long_as_a_real_one() -> None:
    frames = outcome("rules").frames
    assert 100 < frames.mean() < 220
    assert np.quantile(frames, 0.05) > 50


def test_the_best_single_strategy_depends_on_the_enemy() -> None:
    def best(build: int) -> str:
        return max(CONSTANTS, key=lambda name: outcome(name).wins_against(build))

    answers = {f"{b.race}/{b.name}": best(index) for index, b in enumerate(tables.BUILDS)}
    assert answers["terran/rush"] == "defensive"
    assert answers["protoss/rush"] == "defensive"
    assert answers["terran/timing"] == "economy"
    assert answers["terran/turtle"] == "aggressive"
    assert answers["zerg/greedy"] == "tech"


class Blindfolded:
    """The shipped rules, with the enemy's features covered."""

    def act(self, ops: Ops, obs: Array, seeds: Array, frame: Array) -> Array:
        hidden = [FEATURES.index(name) for name in ("enemy_units", "enemy_bases", "enemy_hp")]
        shown = np.ones((len(FEATURES), 1), np.float32)
        shown[hidden] = 0
        return BOTS["rules"].act(ops, obs * shown, seeds, frame)


def test_rules_that_do_not_look_at_the_enemy_win_less() -> None:
    blind = play(Swarm(), Blindfolded(), seeds_held_out(2000))
    assert blind.wins < outcome("rules").wins - 0.05


def test_every_race_and_build_is_met_about_as_often() -> None:
    share = np.bincount(outcome("rules").build, minlength=len(tables.BUILDS)) / 2000
    assert np.abs(share - 1 / len(tables.BUILDS)).max() < 0.03


def test_the_table_is_printed_by_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--matches", "60", "--difficulty", "easy"])
    printed = capsys.readouterr().out
    assert "easy, 60 matches, swarm version 1" in printed
    assert all(name in printed for name in BOTS)
