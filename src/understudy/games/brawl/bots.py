"""Scripted players of brawl: they see what any player sees, and choose among the same chords.

Each has reaction noise from its own seed: now and then it does nothing for some frames. A bot for
the keys presses the keys of the chord that it chose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from understudy.core.ops import Array, Ops
from understudy.games.base import Bot
from understudy.games.brawl import tables
from understudy.games.brawl.features import FULL_DAMAGE, PHASE_FRAMES
from understudy.games.brawl.tables import f32
from understudy.games.brawl.view import View

IDLE, FORWARD, BACK, LEAP, DODGE, LIGHT, HEAVY, LOW, RECOVER, GRAB = (
    np.array(index, np.int32) for index in range(len(tables.CHORDS))
)
_ZERO = f32(0)
_CHORDS = f32(len(tables.CHORDS))
_CHORD_SWITCHES = tables.CHORD_KEYS.astype(np.int32)


def home(view: View) -> Array:
    """The way back to the stage: turn, jump before falling below it, recover as the last thing."""
    where = view.xp.where
    falls = view["own.vy"] < _ZERO
    choice = where(falls & ~view.higher(0.5) & view.can_jump, LEAP, FORWARD)
    last = falls & ~view.higher(-1.0) & (view["own.jumps"] <= _ZERO)
    choice = where(last & (view["own.recovery"] > _ZERO), RECOVER, choice)
    return where(view.beyond & view.outward, BACK, choice)


def approach(view: View) -> Array:
    """Walk at the opponent, over the pit and up to where it is, but not off the stage."""
    where = view.xp.where
    edge = view.ends_within(0.8) & view.grounded
    choice = where(edge, where(view.outward, IDLE, LEAP), FORWARD)
    above = view.opponent_above(1.2) & view.opponent_within(3.0)
    choice = where(above & view.can_jump, LEAP, choice)
    return where(view.faces, choice, BACK)


def fetch(view: View, otherwise: Array, length: float) -> Array:
    """Get a weapon that lies near, when empty-handed."""
    where = view.xp.where
    step = where(view["own.item_x"] < _ZERO, BACK, FORWARD)
    step = where(view.weapon_within(0.8), GRAB, step)
    wants = view.weapon_lies & ~view.armed & view.weapon_within(length) & view.grounded
    return where(wants, step, otherwise)


def fight(view: View, blow: Array, when: Array, otherwise: Array) -> Array:
    """Strike when it is time and high enough to afford it; else come home, or do otherwise."""
    where = view.xp.where
    choice = where(view.off_stage & ~view.grounded, home(view), otherwise)
    return where(when & (~view.off_stage | view.higher(0.3)), blow, choice)


def constant(view: View) -> Array:
    """Does nothing."""
    return view.xp.zeros_like(view.frame)


def random(view: View) -> Array:
    """Any chord, each as likely, another every frame."""
    return (view.die * _CHORDS).astype(view.xp.int32)


def based(view: View) -> Array:
    """Walks at the opponent, and strikes light blows within reach."""
    return fight(view, LIGHT, view.reach(1.5), approach(view))


def aggressive(view: View) -> Array:
    """Hunts, takes weapons on its way, and strikes heavily where it may knock out or punish."""
    where = view.xp.where
    ripe = view["opponent.damage"] > f32(40 / FULL_DAMAGE)
    spent = view["opponent.recovering"] > f32(6 / PHASE_FRAMES)
    choice = fetch(view, approach(view), 2.5)
    over = view.reach(1.0, 2.0) & view.opponent_above(1.2) & (view["own.recovery"] > _ZERO)
    choice = where(over, RECOVER, choice)
    return fight(view, where(ripe | spent, HEAVY, LIGHT), view.reach(1.9), choice)


def defensive(view: View) -> Array:
    """Waits, dodges what is slow enough to be seen coming, and punishes; goes out when it is late.

    Light blows start too quickly for it.
    """
    where = view.xp.where
    slow = view["opponent.startup"] > f32(2.2 / PHASE_FRAMES)
    threat = slow & (view["opponent.facing_other"] > _ZERO) & view.reach(2.4, 1.5)
    threat = threat & (view["own.dodge_wait"] <= _ZERO)
    spent = (view["opponent.recovering"] > _ZERO) & view.reach(1.9)
    late = view["own.time_left"] < f32(0.85)
    choice = where(late, approach(view), where(view.faces, IDLE, BACK))
    blow = where(threat, DODGE, where(spent, HEAVY, LIGHT))
    return fight(view, blow, view.reach(1.3) | threat | spent, choice)


def kiting(view: View) -> Array:
    """Runs from who comes, fetches weapons, strikes from afar and at who has just struck."""
    where = view.xp.where
    comes = (view["opponent.facing_other"] > _ZERO) & (view.xp.abs(view["opponent.vx"]) > f32(0.1))
    flees = view.opponent_within(2.4) & view.grounded & comes
    away = where(view.faces, where(view.room_behind(2.0), BACK, LEAP), FORWARD)
    choice = fetch(view, where(flees, away, approach(view)), 4.0)
    spent = (view["opponent.recovering"] > f32(4 / PHASE_FRAMES)) & view.reach(2.0)
    when = where(view["own.spear"] > _ZERO, view.reach(2.4), view.reach(1.6)) | spent
    return fight(view, where(spent, HEAVY, LIGHT), when, choice)


_SHEET = np.repeat(
    np.array([FORWARD, LEAP, FORWARD, LIGHT, HEAVY, DODGE, LOW, BACK, HEAVY], np.int32),
    [10, 2, 8, 14, 20, 10, 14, 1, 20],
)
_SHEET_FRAMES = np.array(len(_SHEET), np.int32)


def clockwork(view: View) -> Array:
    """Plays the same sheet over and over, whatever happens; it only knows the way home."""
    choice = view.xp.asarray(_SHEET).take(view.frame % _SHEET_FRAMES)
    return view.xp.where(view.off_stage & ~view.grounded, home(view), choice)


@dataclass(frozen=True)
class Scripted:
    """A player who follows a script; `lapses` is the share of time that it does nothing."""

    script: Callable[[View], Array]
    lapses: float = 0.0
    keys: bool = False
    """Whether it answers with the keys of a chord instead of the chord's number."""

    def act(self, ops: Ops, obs: Array, seeds: Array, frame: Array) -> Array:
        """What the script says, int32 [parts, B]."""
        view = View(ops, obs, seeds, frame)
        chord = ops.xp.where(view.lapse < f32(self.lapses), IDLE, self.script(view))
        return ops.xp.asarray(_CHORD_SWITCHES).take(chord, axis=1) if self.keys else chord[None]


_LAPSES: Mapping[Callable[[View], Array], float] = {
    constant: 0.0,
    random: 0.0,
    based: 0.1,
    aggressive: 0.1,
    defensive: 0.09,
    kiting: 0.1,
    clockwork: 0.1,
}


def bots(controls: str = "chords") -> Mapping[str, Bot]:
    """The scripted players by name, for one kind of actions."""
    keys = controls == "keys"
    return {script.__name__: Scripted(script, share, keys) for script, share in _LAPSES.items()}


BOTS = bots()
