"""The bounds that territory's rules were frozen within, on seeds first played after the freeze."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from understudy.core.ops import Array, Ops
from understudy.games.territory import BOTS, tables
from understudy.games.territory.balance import (
    Outcome,
    best_single_chunk,
    main,
    play,
    seeds_held_out,
)
from understudy.games.territory.observation import FEATURES


@functools.cache
def outcome(name: str) -> Outcome:
    return play(BOTS[name], seeds_held_out(40))


def test_looking_at_protectors_is_worth_much_more_than_not() -> None:
    queen, wary = outcome("queen"), outcome("wary")
    assert wary.reward.mean() > queen.reward.mean() + 0.03
    assert wary.mined.mean() < queen.mined.mean() - 0.1


@pytest.mark.parametrize("style", range(len(tables.STYLES)))
def test_against_every_style_of_player(style: int) -> None:
    assert outcome("wary").reward_against(style) > outcome("queen").reward_against(style) + 0.01


def test_the_queen_beats_doing_nothing_and_chance() -> None:
    rewards = {name: outcome(name).reward.mean() for name in BOTS}
    assert rewards["queen"] > rewards["nothing"] + 0.03
    assert rewards["nothing"] > rewards["random"], "parasites far from everybody only cost"
    assert (outcome("nothing").score < 0).all()


def test_always_the_best_single_chunk_is_beaten() -> None:
    """The best in hindsight, chosen anew for every match."""
    seeds = seeds_held_out(12)
    earned = best_single_chunk(seeds)
    assert earned.shape == (12,)
    assert play(BOTS["queen"], seeds).reward.mean() > earned.mean() + 0.02


class Blindfolded:
    """The wary queen with protectors covered."""

    def act(self, ops: Ops, obs: Array, seeds: Array, frame: Array) -> Array:
        shown = np.array([[not name.endswith("protectors")] for name in FEATURES], np.float32)
        return BOTS["wary"].act(ops, obs * shown, seeds, frame)


def test_where_to_spawn_depends_on_what_is_seen() -> None:
    blind = play(Blindfolded(), seeds_held_out(40))
    assert blind.reward.mean() < outcome("wary").reward.mean() - 0.03


def test_good_play_spreads() -> None:
    for name in ("queen", "wary"):
        assert outcome(name).largest_share < 0.05


def test_the_table_is_printed_by_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--matches", "8"])
    printed = capsys.readouterr().out
    assert "8 matches, territory version 1" in printed
    assert all(name in printed for name in (*BOTS, *(style.name for style in tables.STYLES)))
