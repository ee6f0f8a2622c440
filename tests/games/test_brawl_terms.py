"""Each term of brawl counts for the right player: in either slot, and on either side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from understudy.core.ops import NUMPY, Array
from understudy.games import catalog
from understudy.games.brawl import BOTS, Brawl, State
from understudy.games.brawl.state import exchanged, mirrored
from understudy.games.brawl.tables import CHORDS, KEYS
from understudy.games.brawl.terms import REACH_X, REACH_Y, cornered, danger
from understudy.games.moments import Moment, RewardSet
from understudy.games.rewards import terms_of

from .brawl_scenes import CHORD_NUMBER, scene

GAME = Brawl()
TERMS = RewardSet.of({**terms_of("brawl", gamma=0.99), **catalog.measures("brawl")})


def chords(zero: str, one: str = "idle") -> Array:
    return np.array([[[CHORD_NUMBER[zero]]], [[CHORD_NUMBER[one]]]], np.int32)


def moment(before: State, actions: Array, game: Brawl = GAME) -> Moment:
    return Moment(game, before, game.step(NUMPY, before, actions), actions)


def when(
    happens: Callable[[State], Any], before: State, zero: str, one: str = "idle", frames: int = 90
) -> Moment:
    """The frame in which it happens, while both hold their chords."""
    for _ in range(frames):
        seen = moment(before, chords(zero, one))
        if np.any(happens(seen.after)):
            return seen
        before = seen.after
    raise AssertionError("it never happened")


def counted(name: str, seen: Moment) -> list[float]:
    """What a term gives to slot 0 and slot 1; the same for the exchanged and the mirrored match."""
    index = TERMS.names.index(name)
    got: list[float] = TERMS.values(NUMPY, seen)[index, :, 0].tolist()
    assert TERMS.values(NUMPY, swapped(seen))[index, ::-1, 0].tolist() == got
    assert TERMS.values(NUMPY, flipped(seen))[index, :, 0].tolist() == got
    return got


def swapped(seen: Moment) -> Moment:
    before, after = exchanged(seen.before), exchanged(seen.after)
    return Moment(seen.game, before, after, seen.actions[::-1])


def flipped(seen: Moment) -> Moment:
    before, after = (mirrored(NUMPY, state) for state in (seen.before, seen.after))
    return Moment(seen.game, before, after, seen.actions)


def hit() -> Moment:
    """Slot 0 hits slot 1 for 9."""
    return when(lambda after: after.dealt.any(), scene(x=(4, 5)), "light")


def fall(**fields: Any) -> Moment:
    """Slot 0 falls out of the stage."""
    before = scene(
        **({"x": (-9, 5), "y": (-7.99, 0), "vy": (-5, 0), "grounded": (False, True)} | fields)
    )
    return moment(before, chords("idle"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("damage_dealt", [9, 0]),
        ("damage_taken", [0, 9]),
        ("damage", [9, -9]),
        ("hits", [1, 0]),
        ("stun", [1, -1]),
        ("combo", [0, 0]),
        ("attacks", [0, 0]),
        ("knockout_dealt", [0, 0]),
        ("win", [0, 0]),
    ],
)
def test_a_hit(name: str, expected: list[float]) -> None:
    assert counted(name, hit()) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("knocked_out", [1, 0]),
        ("knockout_dealt", [0, 1]),
        ("knockout", [-1, 1]),
        ("falls", [1, 0]),
        ("knockouts", [0, 1]),
        ("win", [0, 0]),
        ("loss", [0, 0]),
        ("result", [0, 0]),
        ("damage", [0, 0]),
    ],
)
def test_a_knockout(name: str, expected: list[float]) -> None:
    assert counted(name, fall()) == expected


@pytest.mark.parametrize(
    ("name", "expected"), [("win", [0, 1]), ("loss", [1, 0]), ("result", [-1, 1])]
)
def test_the_last_knockout(name: str, expected: list[float]) -> None:
    assert counted(name, fall(stocks=(1, 3))) == expected


def test_a_draw_is_neither_won_nor_lost() -> None:
    both = fall(x=(-9, 9), y=(-7.99, -7.99), vy=(-5, -5), grounded=False, stocks=1)
    assert GAME.over(NUMPY, both.after).all()
    assert counted("win", both) == counted("loss", both) == counted("result", both) == [0, 0]
    assert counted("knocked_out", both) == counted("knockout_dealt", both) == [1, 1]
    assert counted("knockout", both) == [0, 0]


def test_a_combo_counts_for_the_attacker_of_a_stunned_player() -> None:
    seen = when(lambda after: after.dealt.any(), scene(x=(4, 5), stun=(0, 30)), "light")
    assert counted("combo", seen) == counted("combos", seen) == [1, 0]


def test_weapons_count_for_the_hand_that_takes_or_throws_them() -> None:
    taken = moment(scene(item=1, item_x=-5), chords("grab"))
    assert counted("equip", taken) == counted("equips", taken) == [1, 0]
    assert counted("drop", taken) == [0, 0]
    thrown = moment(scene(weapon=(1, 1)), chords("grab"))
    assert counted("drop", thrown) == [1, 0]
    assert counted("equip", thrown) == [0, 0]


def test_an_attack_that_reaches_nobody_is_a_miss_when_it_begins() -> None:
    far = moment(scene(), chords("light"))
    assert counted("whiff", far) == counted("attacks", far) == [1, 0]
    later = moment(far.after, chords("light"))
    assert counted("whiff", later) == counted("attacks", later) == [0, 0], "once a move"
    near = moment(scene(x=(4, 5)), chords("light"))
    assert counted("whiff", near) == [0, 0] and counted("attacks", near) == [1, 0]
    home = moment(scene(x=(-9, 5), y=(-1, 0), grounded=(False, True)), chords("recover"))
    assert counted("attacks", home) == [1, 0]
    assert counted("whiff", home) == [0, 0], "a recovery is the way back"
    taunt = np.zeros((2, len(KEYS), 1), np.int32)
    taunt[0, KEYS.index("g")] = 1
    assert counted("attacks", moment(scene(), taunt, Brawl("keys"))) == [0, 0]


def test_no_hit_ever_lands_from_out_of_reach() -> None:
    seeds = np.arange(16, dtype=np.uint32)
    state, hits = GAME.start(NUMPY, seeds), 0
    for _ in range(400):
        obs = GAME.observe(NUMPY, state)
        acts = [
            BOTS["aggressive"].act(NUMPY, obs[k], seeds + np.uint32(k), state.frame) for k in (0, 1)
        ]
        after = GAME.step(NUMPY, state, np.stack(acts))
        landed = (after.dealt > 0) & ~after.knocked_out.any(0)
        away = np.abs(after.x[0] - after.x[1]), np.abs(after.y[0] - after.y[1])
        assert not (landed & ((away[0] > REACH_X) | (away[1] > REACH_Y))).any()
        hits += int(landed.sum())
        state = after
    assert hits > 50
    np.testing.assert_allclose([REACH_X, REACH_Y], [2.865, 1.8], atol=1e-3)


def test_holding_many_keys_is_counted_and_chords_never_are_many() -> None:
    keys = np.zeros((2, len(KEYS), 1), np.int32)
    keys[0, :4] = 1
    keys[1, :3] = 1
    assert counted("key_spam", moment(scene(), keys, Brawl("keys"))) == [1, 0]
    for name in CHORDS:
        assert counted("key_spam", moment(scene(), chords(name, "leap"))) == [0, 0]


def test_closing_in_pays_both_alike() -> None:
    walk = moment(scene(), chords("forward"))
    closer = counted("closing", walk)
    assert closer[0] == closer[1] > 0
    shaped = counted("shaped_closing", walk)
    np.testing.assert_allclose(shaped, 10 - 0.99 * (10 - closer[0]), rtol=1e-5)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"x": (7, 0)}, [0, 0]),
        ({"x": (-9, 0)}, [0.25, 0]),
        ({"x": (9, 0), "damage": (100, 100)}, [0.5, 0]),
        ({"x": (9, 0), "damage": (300, 0)}, [0.5, 0]),
        ({"x": (11, -11)}, [0.5, 0.5]),
        ({"x": (0, 5), "y": (-4, 0)}, [0.25, 0]),
        ({"x": (0, 5), "y": (3.9, 7.75)}, [0, 0.25]),
    ],
)
def test_danger_grows_towards_the_blast_zones_and_with_damage(
    fields: dict[str, Any], expected: list[float]
) -> None:
    state = scene(**fields)
    np.testing.assert_allclose(danger(NUMPY, state)[:, 0], expected, atol=1e-6)


def test_danger_costs_the_player_who_is_in_it() -> None:
    seen = moment(scene(x=(9, 3), y=(2, 0), grounded=(False, True)), chords("idle"))
    zone = counted("danger_zone", seen)
    assert zone[0] > 0.2 and zone[1] == 0
    out = moment(scene(x=(-5, 9), y=(0, 2), vx=(0, 10), grounded=(True, False)), chords("idle"))
    safety = counted("shaped_safety", out)
    assert safety[1] < 0 == safety[0], "on its way out"


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ((3.0, 5.75), [0, 0.5]),
        ((-3.0, -5.75), [0, 0.5]),
        ((5.0, 8.0), [0, 1]),
        ((3.9, 8.0), [0, 0]),
        ((5.0, 4.9), [0.2, 0]),
        ((-6.5, 6.5), [0, 0]),
        ((7.0, 7.0), [0, 0]),
    ],
)
def test_a_player_near_the_edge_is_cornered_by_one_who_stands_inside_and_near(
    x: tuple[float, float], expected: list[float]
) -> None:
    np.testing.assert_allclose(cornered(NUMPY, scene(x=x))[:, 0], expected, atol=1e-5)


def test_edge_pressure_pays_who_corners() -> None:
    seen = moment(scene(x=(4, 6.5), wait=5), chords("idle"))
    np.testing.assert_allclose(counted("edge_pressure", seen), [0.8, 0], atol=1e-5)
    assert counted("shaped_edge_pressure", seen)[1] == 0


def test_the_air_over_the_pit_and_the_pit_itself() -> None:
    for y in (2.0, -3.0):
        seen = moment(scene(x=(1, 5), y=(y, 0), grounded=(False, True)), chords("idle"))
        assert counted("over_pit", seen) == [1, 0]
    on_platform = scene(x=(0, 5))
    on_platform = on_platform._replace(x=np.stack([on_platform.platform[0], on_platform.x[1]]))
    on_platform = on_platform._replace(
        y=np.stack([on_platform.platform[1], on_platform.y[1]]),
        carried=np.array([[True], [False]]),
    )
    assert counted("over_pit", moment(on_platform, chords("idle"))) == [0, 0]


def test_camping_is_standing_still_far_away_when_one_could_act() -> None:
    assert counted("camping", moment(scene(), chords("forward", "idle"))) == [0, 1]
    assert counted("camping", moment(scene(), chords("light", "leap"))) == [0, 0]
    assert counted("camping", moment(scene(x=(4, 5)), chords("idle"))) == [0, 0], "near"
    assert counted("camping", moment(scene(wait=9), chords("idle"))) == [0, 0], "may not act"
    assert counted("camping", moment(scene(stun=(9, 0)), chords("idle"))) == [0, 1]
    assert counted("camping", moment(scene(out=(9, 0)), chords("idle"))) == [0, 0], "nobody there"


def test_time_passes_for_both() -> None:
    assert counted("time", hit()) == [1, 1]


def test_exchanging_and_mirroring_players_exchanges_every_term_in_real_matches() -> None:
    game, bot = Brawl("keys"), catalog.bots("brawl", actions="keys")["aggressive"]
    seeds = np.arange(32, dtype=np.uint32)
    rng = np.random.default_rng(7)
    state = game.start(NUMPY, seeds)
    happened = np.zeros(len(TERMS.names), np.bool_)
    for frame in range(500):
        if frame % 6 == 0:
            wild = (rng.random((2, len(KEYS), 32)) < 0.3).astype(np.int32)
        obs = game.observe(NUMPY, state)
        acts = [bot.act(NUMPY, obs[k], seeds + np.uint32(k), state.frame) for k in (0, 1)]
        seen = moment(state, np.where(seeds < 8, np.stack(acts), wild), game)
        if frame % 3 == 0:
            got = TERMS.values(NUMPY, seen)
            assert got.dtype == np.float32
            np.testing.assert_array_equal(TERMS.values(NUMPY, swapped(seen)), got[:, ::-1])
            np.testing.assert_array_equal(TERMS.values(NUMPY, flipped(seen)), got)
            happened |= got.any((1, 2))
        state = seen.after
    assert happened.all(), [n for n, h in zip(TERMS.names, happened, strict=True) if not h]


def test_whole_sums_are_the_difference_of_their_halves() -> None:
    """What one deals the other takes, and a result is a win less a loss."""
    seen = [hit(), fall(), fall(stocks=(1, 3))]
    for whole, gain, cost in (
        ("damage", "damage_dealt", "damage_taken"),
        ("knockout", "knockout_dealt", "knocked_out"),
        ("result", "win", "loss"),
    ):
        for each in seen:
            halves = np.subtract(counted(gain, each), counted(cost, each))
            np.testing.assert_array_equal(counted(whole, each), halves)
