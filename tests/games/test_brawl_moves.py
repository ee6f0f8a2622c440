"""Each chord and key does what its name says; attacks, dodges and weapons keep their rules."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.core.ops import NUMPY
from understudy.games.brawl import Brawl, tables
from understudy.games.brawl.combat import knockback
from understudy.games.brawl.state import State
from understudy.games.brawl.tables import FIRST_MOVE, FISTS, MOVES, WEAPONS

from .brawl_scenes import play, press, scene

CLOSE = {"x": (4.0, 5.0)}


def move_name(state: State) -> str:
    number = int(state.move[0, 0])
    return "" if number < FIRST_MOVE else MOVES[(number - FIRST_MOVE) % len(MOVES)]


def test_forward_walks_then_runs_and_idle_stands() -> None:
    walked = play(scene(x=(-6.5, 5)), ["forward"] * 14)
    speeds = [float(state.vx[0, 0]) for state in walked]
    assert speeds[5] == tables.WALK and speeds[-1] > tables.WALK
    stood = play(scene(), ["idle"] * 20)
    assert stood[-1].x[0, 0] == -5 and stood[-1].grounded.all()


def test_back_turns_around_once_however_long_it_is_held_for_a_moment() -> None:
    turned = play(scene(), ["back"] * 4)
    assert [float(state.facing[0, 0]) for state in turned] == [-1, -1, -1, -1]
    assert turned[0].vx[0, 0] < 0
    again = play(turned[-1], ["back"] * 6)
    assert again[-1].facing[0, 0] == 1


def test_leaps_cross_the_pit() -> None:
    states = play(scene(x=(-2.2, 5)), ["leap"] + ["forward"] * 40)
    assert states[0].vy[0, 0] > 0 and states[0].vx[0, 0] >= tables.LEAP_SPEED * 0.9
    assert states[-1].x[0, 0] > 2 and states[-1].grounded[0, 0]


def test_two_air_jumps_and_no_third() -> None:
    states = play(scene(), ["leap"] * 40)
    heights = [float(state.vy[0, 0]) for state in states]
    starts = [frame for frame in range(1, 40) if heights[frame] > heights[frame - 1] + 1]
    assert starts == [8, 16]
    assert states[16].jumps[0, 0] == 0


def test_who_falls_beside_the_stage_or_into_the_pit_can_come_back() -> None:
    beside = scene(x=(-8.5, 5), y=(-1, 0), grounded=(False, True))
    home = play(beside, ["leap"] * 9 + ["forward"] * 4 + ["leap"] * 8 + ["forward"] * 40)
    assert home[-1].grounded[0, 0] and home[-1].stocks[0, 0] == 3
    pit = scene(x=(-1, 5), y=(-2.5, 0), vy=(-5, 0), grounded=(False, True))
    up = play(pit, ["leap"] * 16 + ["recover"] * 20 + ["forward"] * 22)
    assert up[-1].grounded[0, 0] and up[-1].stocks[0, 0] == 3


def test_recovery_lifts_once_in_an_airtime() -> None:
    air = scene(y=(3, 0), grounded=(False, True))
    states = play(air, ["recover"] * 24)
    assert states[0].vy[0, 0] > 10 and states[0].recoveries[0, 0] == 0
    assert move_name(states[0]) == "recovery"
    over = next(state for state in states if state.move[0, 0] == 0)
    again = play(over, ["recover"])[0]
    assert move_name(again) == "" and again.vy[0, 0] < over.vy[0, 0]
    landed = play(over, ["idle"] * 90)[-1]
    assert landed.grounded[0, 0] and landed.recoveries[0, 0] == 1


def test_nothing_hurts_a_dodger_and_dodges_wait() -> None:
    hit = play(scene(**CLOSE), ["light"] * 6)[-1]
    assert hit.damage[1, 0] > 0
    dodged = play(scene(**CLOSE), ["light"] * 6, ["dodge"] * 6)[-1]
    assert dodged.damage[1, 0] == 0
    states = play(scene(), ["dodge"] * 120)
    starts = [frame for frame in range(120) if states[frame].dodge[0, 0] == tables.DODGE_FRAMES - 1]
    assert starts == [0, 35, 70, 105]


@pytest.mark.parametrize(
    ("keys", "airborne", "name"),
    [
        ("j", False, "light_neutral"),
        ("d j", False, "light_side"),
        ("s j", False, "light_down"),
        ("k", False, "heavy_neutral"),
        ("d k", False, "heavy_side"),
        ("s k", False, "heavy_down"),
        ("j", True, "air_neutral"),
        ("d j", True, "air_side"),
        ("d k", True, "air_side"),
        ("s j", True, "air_down"),
        ("s k", True, "ground_pound"),
        ("w k", False, "recovery"),
        ("w k", True, "recovery"),
    ],
)
def test_keys_name_their_attack(keys: str, airborne: bool, name: str) -> None:
    start = scene(y=(3, 0), grounded=(False, True)) if airborne else scene()
    assert move_name(press(start, [keys])[0]) == name


def test_dash_backdash_and_taunt_are_reached_by_keys() -> None:
    dashed = press(scene(), ["d l"] + [""] * 4)
    assert dashed[-1].vx[0, 0] == tables.DASH_SPEED and dashed[-1].facing[0, 0] == 1
    backed = press(scene(), ["a l"] + [""] * 4)
    assert backed[-1].vx[0, 0] == -tables.BACKDASH_SPEED and backed[-1].facing[0, 0] == 1
    taunted = press(scene(), ["g"] * 5)
    assert taunted[-1].move[0, 0] == tables.TAUNT_MOVE
    assert press(taunted[-1], ["d j"])[-1].move[0, 0] == tables.TAUNT_MOVE


def test_down_falls_faster_and_drops_through_the_platform() -> None:
    high = scene(y=(6, 0), grounded=(False, True))
    assert press(high, ["s"] * 10)[-1].y[0, 0] < press(high, [""] * 10)[-1].y[0, 0] - 1
    state = scene()
    x, y = (float(value) for value in state.platform[:, 0])
    above = scene(x=(x, 5), y=(y + 0.2, 0), grounded=(False, True))
    stood = press(above, [""] * 20)[-1]
    assert stood.carried[0, 0] and stood.y[0, 0] == stood.platform[1, 0]
    assert press(stood, ["s"] * 10)[-1].y[0, 0] < stood.y[0, 0] - 0.5


def test_a_move_hits_in_its_active_frames_alone_and_once() -> None:
    move = FISTS["heavy_side"]
    states = play(scene(**CLOSE), ["heavy"] + ["idle"] * 30)
    hits = [frame for frame, state in enumerate(states) if state.dealt[0, 0] > 0]
    assert hits == [int(move.startup)]
    assert states[hits[0]].damage[1, 0] == move.damage
    late = scene(x=(-5, 5), safe=(0, int(move.startup) + 2))._replace(x=np.array([[4], [5]], "f4"))
    states = play(late, ["heavy"] + ["idle"] * 30)
    hits = [frame for frame, state in enumerate(states) if state.dealt[0, 0] > 0]
    assert hits == [int(move.startup) + 2]


def test_an_attack_reaches_ahead_and_not_behind() -> None:
    assert play(scene(x=(4, 5), facing=(1, -1)), ["light"] * 8)[-1].damage[1, 0] > 0
    assert play(scene(x=(4, 5), facing=(-1, -1)), ["light"] * 8)[-1].damage[1, 0] == 0
    assert play(scene(x=(2.5, 5)), ["light"] * 8)[-1].damage[1, 0] == 0


def test_who_is_hit_is_stunned_and_loses_its_own_move() -> None:
    states = play(scene(**CLOSE), ["light"] * 6, ["heavy"] * 6)
    struck = next(state for state in states if state.dealt[0, 0] > 0)
    assert struck.stun[1, 0] > 5 and struck.move[1, 0] == 0
    assert play(struck, ["idle"], ["light"])[0].move[1, 0] == 0


def test_both_may_hit_in_the_same_frame() -> None:
    states = play(scene(**CLOSE), ["light"] * 6, ["light"] * 6)
    struck = next(state for state in states if state.dealt[0, 0] > 0)
    assert struck.dealt[0, 0] == struck.dealt[1, 0] > 0
    assert struck.stun[0, 0] == struck.stun[1, 0]
    assert struck.vx[0, 0] == -struck.vx[1, 0] < 0


def test_knockback_follows_its_formula_and_grows_with_damage() -> None:
    for before in (0.0, 50.0, 100.0, 150.0):
        states = play(scene(**CLOSE, damage=(0, before)), ["heavy"] * 12)
        struck = next(state for state in states if state.dealt[0, 0] > 0)
        move, total = FISTS["heavy_side"], before + FISTS["heavy_side"].damage
        speed = 0.128 * (move.fixed + move.variable * (total / 70 + total**2 / 12000))
        np.testing.assert_allclose(struck.vx[1, 0], speed * move.away, rtol=1e-5)
        np.testing.assert_allclose(struck.vy[1, 0], speed * move.up, rtol=1e-5)
    f = np.float32
    speeds = [float(knockback(f(x), f(40), f(60))) for x in (0, 50, 100, 200)]
    assert speeds == sorted(speeds) and speeds[3] > 3 * speeds[0]


def test_a_heavy_hit_at_high_damage_knocks_out() -> None:
    fresh = play(scene(**CLOSE), ["heavy"] + ["idle"] * 60)
    assert not any(state.knocked_out.any() for state in fresh[:40])
    worn = play(scene(**CLOSE, damage=(0, 150)), ["heavy"] + ["idle"] * 60)
    assert any(state.knocked_out[1, 0] for state in worn)


def test_bodies_block_each_other_but_not_a_dodger() -> None:
    into = play(scene(**CLOSE), ["forward"] * 30)
    assert into[-1].x[0, 0] < 5
    past = play(scene(x=(4.4, 5)), ["forward"] * 9, ["dodge"] * 9)
    assert past[-1].x[0, 0] > 5


def test_weapons_are_picked_up_thrown_away_and_change_the_moves() -> None:
    for kind, weapon in enumerate(WEAPONS[1:], start=1):
        lies = scene(x=(3.0, 5.0), item=kind, item_x=3.4, item_clock=300)
        taken = play(lies, ["grab"])[0]
        assert taken.equipped[0, 0] and not taken.equipped[1, 0]
        assert WEAPONS[int(taken.weapon[0, 0])] == weapon
        assert play(taken, ["idle"])[0].item[0] == 0
        armed = play(taken, ["idle"] * 20)[-1]
        state = play(armed, ["heavy"])[0]
        number = FIRST_MOVE + kind * len(MOVES) + MOVES.index("heavy_side")
        assert state.move[0, 0] == number
        thrown = play(armed, ["grab"])[0]
        assert thrown.dropped[0, 0] and thrown.weapon[0, 0] == 0
    table = dict(zip(tables.Move._fields, tables.MOVE_TABLE, strict=True))
    bare, spear, hammer = (FIRST_MOVE + kind * len(MOVES) + 4 for kind in range(3))
    assert table["ahead"][spear] > table["ahead"][hammer] > table["ahead"][bare]
    assert table["damage"][hammer] > table["damage"][spear] > table["damage"][bare]
    assert table["startup"][hammer] > table["startup"][bare]


def test_a_weapon_out_of_reach_stays_and_both_may_take_one() -> None:
    far = play(scene(item=1, item_x=3.4, item_clock=300), ["grab"])[0]
    assert not far.equipped.any() and far.item[0] == 1
    both = play(scene(x=(3, 4), item=2, item_x=3.5, item_clock=300), ["grab"], ["grab"])[0]
    assert both.equipped.all() and (both.weapon == 2).all()


def test_weapons_appear_on_both_blocks_and_vanish() -> None:
    game = Brawl()
    state = game.start(NUMPY, np.arange(200, dtype=np.uint32))
    idle = np.zeros((2, 1, 200), np.int32)
    kinds, sides, shown = set(), set(), 0
    for _ in range(900):
        before, state = state, game.step(NUMPY, state, idle)
        new = (before.item == 0) & (state.item > 0)
        kinds |= set(state.item[new].tolist())
        sides |= set(np.sign(state.item_x[new]).tolist())
        shown += int(new.sum())
        lies = state.item > 0
        assert (np.abs(state.item_x[lies]) >= 3).all() and (np.abs(state.item_x[lies]) <= 6).all()
    assert kinds == {1, 2} and sides == {-1.0, 1.0}
    assert 250 < shown < 450
