"""Brawl's matches: seeded, varied, they end with a result, and events name the right player."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from understudy.core.errors import ConfigError
from understudy.core.ops import NUMPY, Array
from understudy.core.spaces import Discrete, MultiBinary
from understudy.games.brawl import BOTS, Brawl, State, bots, tables
from understudy.games.brawl.features import FEATURES
from understudy.games.brawl.state import events
from understudy.testing import check_game

from .brawl_scenes import play, scene

SEEDS = np.arange(128, dtype=np.uint32)
GUIDE = Path(__file__).parent.parent.parent / "docs" / "brawl.md"


def run(game: Brawl, frames: int, seeds: Array = SEEDS) -> State:
    """The state after frames of chance."""
    state = game.start(NUMPY, seeds)
    rng = np.random.default_rng(1)
    for _ in range(frames):
        shape = (2, len(game.actions.parts), len(seeds))
        most = game.actions.parts[0]
        state = game.step(NUMPY, state, rng.integers(0, most, shape).astype(np.int32))
    return state


@pytest.mark.parametrize(("controls", "engines"), [("chords", True), ("keys", False)])
def test_it_conforms(controls: str, engines: bool) -> None:
    check_game(Brawl(controls), matches=6, engines=engines)


def test_the_spaces_are_ten_chords_or_ten_keys() -> None:
    chords, keys = Brawl().actions, Brawl("keys").actions
    assert isinstance(chords, Discrete) and len(chords.names) == 10
    assert isinstance(keys, MultiBinary) and keys.names == (
        "w",
        "a",
        "s",
        "d",
        "space",
        "h",
        "l",
        "j",
        "k",
        "g",
    )
    with pytest.raises(ConfigError, match="Did you mean 'chords'"):
        Brawl("chord")


def test_a_chord_is_exactly_its_keys() -> None:
    chords, keys = run(Brawl(), 60), run(Brawl(), 60)
    for number, held in enumerate(tables.CHORDS.values()):
        pressed = np.zeros((2, 10, len(SEEDS)), np.int32)
        pressed[:, [tables.KEYS.index(key) for key in held]] = 1
        chords = Brawl().step(NUMPY, chords, np.full((2, 1, len(SEEDS)), number, np.int32))
        keys = Brawl("keys").step(NUMPY, keys, pressed)
        for one, two in zip(chords, keys, strict=True):
            np.testing.assert_array_equal(one, two)


def test_the_same_seed_is_the_same_match_and_others_differ() -> None:
    one, two = run(Brawl(), 200), run(Brawl(), 200)
    for mine, other in zip(one, two, strict=True):
        np.testing.assert_array_equal(mine, other)
    other = run(Brawl(), 200, SEEDS + np.uint32(128))
    assert (one.x != other.x).mean() > 0.9


def test_seeds_vary_places_facings_delays_and_the_platform() -> None:
    state = Brawl().start(NUMPY, SEEDS)
    assert len(np.unique(state.x)) > 200
    assert (np.abs(state.x) > 2.5).all() and (np.abs(state.x) < 6.5).all()
    assert (np.sign(state.x[0]) == -np.sign(state.x[1])).all()
    assert len({tuple(pair) for pair in state.facing.T.tolist()}) == 4
    assert set(np.sign(state.x[0]).tolist()) == {-1.0, 1.0}
    assert len(np.unique(state.wait)) > 20 and state.wait.max() < 30
    assert len(np.unique(state.phase)) > 60 and set(state.tilt.tolist()) == {-1.0, 1.0}


def test_nobody_acts_before_its_start_delay() -> None:
    states = play(scene(wait=(9, 0)), ["forward"] * 12)
    moved = [bool(state.x[0, 0] != -5) for state in states]
    assert moved == [False] * 9 + [True] * 3


def test_a_timeout_is_an_end_with_a_result() -> None:
    game = Brawl()
    last = tables.MAX_FRAMES - 1
    for stocks, score in (((3, 2), (1, -1)), ((2, 2), (0, 0)), ((1, 3), (-1, 1))):
        before = scene(frame=last, stocks=stocks)
        assert not game.over(NUMPY, before)[0] and not game.score(NUMPY, before).any()
        (after,) = play(before, ["idle"])
        assert game.over(NUMPY, after)[0]
        assert tuple(game.score(NUMPY, after)[:, 0]) == score
        assert game.observe(NUMPY, after)[0, FEATURES.index("own.time_left"), 0] == 0
        won = events(NUMPY, after).won[:, 0]
        assert tuple(won) == (score[0] > 0, score[1] > 0)


@pytest.mark.parametrize("victim", [0, 1])
def test_a_knockout_flags_the_victim_and_the_last_one_the_winner(victim: int) -> None:
    other = 1 - victim
    falls = np.arange(2) == victim
    before = scene(
        x=np.where(falls, 9, -5),
        y=np.where(falls, -7.99, 0),
        vy=np.where(falls, -5, 0),
        grounded=~falls,
        stocks=np.where(falls, 1, 2),
        damage=50,
        weapon=1,
    )
    (after,) = play(before, ["idle"])
    seen = events(NUMPY, after)
    assert seen.knocked_out[victim, 0] and not seen.knocked_out[other, 0]
    assert seen.won[other, 0] and not seen.won[victim, 0]
    assert after.stocks[victim, 0] == 0 and Brawl().over(NUMPY, after)[0]
    assert Brawl().score(NUMPY, after)[other, 0] == 1
    assert after.damage[victim, 0] == 0 and after.weapon[victim, 0] == 0


def test_who_was_knocked_out_waits_returns_and_is_safe_for_a_while() -> None:
    falls = scene(x=(-9, 5), y=(-7.99, 0), vy=(-5, 0), grounded=(False, True))
    states = play(falls, ["forward"] * 120)
    assert states[0].knocked_out[0, 0] and states[0].stocks[0, 0] == 2
    assert states[0].x[0, 0] == -4.5 and states[0].facing[0, 0] == 1
    still = [bool(state.x[0, 0] == -4.5) for state in states]
    assert still.index(False) == 46
    safe = [bool(state.safe[0, 0] > 0) for state in states]
    assert safe.index(False) == 90


def test_a_knockout_of_both_in_one_frame_is_a_draw() -> None:
    falls = scene(x=(-9, 9), y=-7.99, vy=-5, grounded=False, stocks=1)
    (after,) = play(falls, ["idle"])
    assert after.knocked_out.all() and Brawl().over(NUMPY, after)[0]
    assert not Brawl().score(NUMPY, after).any()


@pytest.mark.parametrize("attacker", [0, 1])
def test_a_combo_flags_the_attacker_of_a_stunned_player(attacker: int) -> None:
    stun = [9, 9]
    stun[attacker] = 0
    start = scene(x=(4, 5), stun=stun)
    blows = ["light"] * 5
    states = play(start, blows if attacker == 0 else ["idle"] * 5, blows if attacker else None)
    struck = next(state for state in states if state.dealt.any())
    assert struck.dealt[attacker, 0] > 0 and struck.combo[attacker, 0]
    assert not struck.combo[1 - attacker, 0]
    fresh = play(scene(x=(4, 5)), blows if attacker == 0 else ["idle"] * 5, blows * attacker)
    assert any(state.dealt.any() for state in fresh)
    assert not any(state.combo.any() for state in fresh)


def test_every_event_happens_in_play_and_to_both() -> None:
    seen = np.zeros((5, 2), np.int64)
    game = Brawl()
    state = game.start(NUMPY, SEEDS)
    for _ in range(900):
        obs = game.observe(NUMPY, state)
        mixed = [
            np.where(SEEDS % 5 == 0, BOTS["random"].act(NUMPY, obs[slot], SEEDS, state.frame),
                     BOTS["aggressive"].act(NUMPY, obs[slot], SEEDS + 7, state.frame))
            for slot in range(2)
        ]  # fmt: skip
        state = game.step(NUMPY, state, np.stack(mixed))
        seen += np.array([flags.sum(axis=1) for flags in events(NUMPY, state)])
    assert (seen > 0).all()


def test_everything_seen_is_within_bounds_varies_and_is_float32() -> None:
    game = Brawl()
    low, high = np.full(64, np.inf), np.full(64, -np.inf)
    for names in (("random", "random"), ("aggressive", "kiting")):
        state = game.start(NUMPY, SEEDS)
        for frame in range(1200):
            obs = game.observe(NUMPY, state)
            assert obs.dtype == np.float32 and np.abs(obs).max() <= 1
            low, high = np.minimum(low, obs.min((0, 2))), np.maximum(high, obs.max((0, 2)))
            acts = [
                BOTS[name].act(NUMPY, obs[slot], SEEDS + np.uint32(slot), state.frame)
                for slot, name in enumerate(names)
            ]
            state = game.step(NUMPY, state, np.stack(acts))
            if frame % 100 == 0:
                assert all(leaf.dtype != np.float64 for leaf in state)
    still = [name for name, spread in zip(FEATURES, high - low, strict=True) if spread < 0.2]
    assert not still


def test_each_side_sees_itself_facing_the_same_way() -> None:
    """Two players in mirrored places, alike in all else, see the same numbers."""
    for facing in ((1, -1), (-1, 1)):
        state = scene(x=(-4, 4), facing=facing, vx=(2, -2), damage=30)
        state = state._replace(platform=np.array([[0], [1]], np.float32))
        obs = Brawl().observe(NUMPY, state)
        np.testing.assert_array_equal(obs[0], obs[1])
        gap = obs[0, FEATURES.index("opponent.gap_x"), 0]
        assert np.sign(gap) == facing[0] == obs[0, FEATURES.index("own.facing_other"), 0]


def test_ground_ahead_and_behind_measure_the_way_to_the_edge() -> None:
    ahead, behind = FEATURES.index("own.ground_ahead"), FEATURES.index("own.ground_behind")
    for x, facing, far, near in (
        (-5.0, 1, 3.0, 2.0), (-5.0, -1, 2.0, 3.0), (6.0, 1, 1.0, 4.0), (0.5, 1, -1.5, -2.5),
        (8.0, -1, -1.0, -5.0), (-8.0, -1, -5.0, -1.0),
    ):  # fmt: skip
        obs = Brawl().observe(NUMPY, scene(x=(x, 5), facing=(facing, 1)))
        np.testing.assert_allclose(obs[0, [ahead, behind], 0] * 5, [far, near], rtol=1e-6)


def test_the_guide_lists_every_feature_chord_and_move() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    listed = re.findall(r"^\| (\d+) \| ((?:own|opponent)\.\w+) \|", text, re.MULTILINE)
    assert listed == [(str(index), name) for index, name in enumerate(FEATURES)]
    chords = re.findall(r"^\| (\d) \| (\w+) \| ([\w ]+) \|", text, re.MULTILINE)
    expected = [
        (str(number), name, " ".join(keys) or "none")
        for number, (name, keys) in enumerate(tables.CHORDS.items())
    ]
    assert chords == expected
    for name, move in tables.FISTS.items():
        row = f"| {name} | {move.startup} | {move.active} | {move.recovery} | {move.damage} |"
        assert row in text
    for name in bots():
        assert re.search(rf"^\| {name} \|", text, re.MULTILINE)
