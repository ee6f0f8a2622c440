"""Scripted players of brawl that no training meets: what does an agent make of strangers?

Written like `bots`, over the same view, with reaction noise; each fights in a way that none of
those does. Only `catalog.held_out` gives them out, never `catalog.bots` (ADR 0013).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from understudy.core.ops import Array
from understudy.games.base import Bot
from understudy.games.brawl.bots import (
    BACK,
    DODGE,
    FORWARD,
    HEAVY,
    IDLE,
    LEAP,
    LIGHT,
    LOW,
    RECOVER,
    Scripted,
    approach,
    fight,
)
from understudy.games.brawl.features import NEAR, PHASE_FRAMES
from understudy.games.brawl.tables import FRAMES_PER_S, f32
from understudy.games.brawl.view import View

_ZERO = f32(0)
_SPEED, _HELPLESS_FRAMES = 20.0, 45.0
"""What 1 means in an observation: units a second, and frames."""
_WATCH, _SALLY = np.array(300, np.int32), np.array(180, np.int32)
"""A turtle's watch: so many frames, and the frame of it from which the turtle goes out."""


def _meets(view: View, frames: float, length: float, low: float, high: float) -> Array:
    """At the present speeds the opponent will be, in so many frames, ahead and nearer than length,
    and between low and high above."""
    seconds = f32(frames * _SPEED / FRAMES_PER_S)
    ahead = view["opponent.near_x"] * f32(NEAR)
    ahead = ahead + (view["opponent.vx"] - view["own.vx"]) * seconds
    rise = view["opponent.near_y"] * f32(NEAR)
    rise = rise + (view["opponent.vy"] - view["own.vy"]) * seconds
    level = (rise > f32(low)) & (rise < f32(high))
    return (ahead > f32(-0.3)) & (ahead < f32(length)) & level


def turtle(view: View) -> Array:
    """Holds the middle of its block and sweeps who comes; goes out by the clock, 4 s of every 10.

    Who is swept off its feet is struck heavily, who is above is met with an uppercut.
    """
    where = view.xp.where
    cramped = ~view.room_behind(1.5) & ~view.ends_within(1.5) & view.grounded
    hold = where(view.faces, where(cramped, FORWARD, IDLE), BACK)
    out = (view.frame % _WATCH) >= _SALLY
    choice = where(out, approach(view), hold)
    struck = view["opponent.helpless"] > f32(5 / _HELPLESS_FRAMES)
    spent = struck | (view["opponent.recovering"] > f32(5 / PHASE_FRAMES))
    spent = spent & _meets(view, 7, 2.0, -0.9, 0.9) & (view["opponent.safe"] <= _ZERO)
    over = _meets(view, 3, 1.1, 0.8, 1.9) & (view["own.recovery"] > _ZERO)
    blow = where(over, RECOVER, where(spent, HEAVY, LOW))
    return fight(view, blow, _meets(view, 3, 1.6, -0.9, 0.4) | spent | over, choice)


def hawk(view: View) -> Array:
    """Fights from jumps alone: leaps in, strikes ahead in the air, and dives at who is below."""
    where = view.xp.where
    near = view.opponent_within(3.0)
    stay = view.ends_within(0.8) & view.outward & ~view.opponent_within(1.2)
    choice = where(view.grounded & near & ~stay & view.faces, LEAP, approach(view))
    aloft = ~view.grounded
    dives = aloft & _meets(view, 5, 1.0, -1.6, -0.5)
    strikes = aloft & _meets(view, 4, 1.7, -0.8, 0.8)
    return fight(view, where(strikes, LIGHT, LOW), dives | strikes, choice)


def matador(view: View) -> Array:
    """Waits just out of reach, dodges through what comes, and answers who has missed.

    While it may not dodge, it keeps the opponent off with light blows.
    """
    where = view.xp.where
    ready = view["own.dodge_wait"] <= _ZERO
    comes = (view["opponent.startup"] > _ZERO) | (view["opponent.active"] > _ZERO)
    threat = comes & ready & view.opponent_within(2.2) & (view["opponent.facing_other"] > _ZERO)
    threat = threat & (view.die < f32(0.4))  # it sees what comes, but not always in time
    bold = view.lapse > f32(0.85)  # else two who wait would wait for ever
    missed = (view["opponent.recovering"] > f32(2 / PHASE_FRAMES)) & _meets(view, 3, 1.8, -0.9, 0.9)
    fully = view["opponent.recovering"] > f32(7 / PHASE_FRAMES)
    pokes = _meets(view, 3, 1.7, -0.8, 0.8) & (~ready | bold)
    near = view.reach(2.2) & view.grounded & ready & ~bold
    choice = where(near, IDLE, approach(view))
    blow = where(threat, DODGE, where(missed & fully, HEAVY, LIGHT))
    return fight(view, blow, threat | missed | pokes, choice)


# Their blows are aimed at where the opponent will be, so they lapse more than the bots do: with as
# few lapses they won four of five matches or more against nearly all of those.
_LAPSES: Mapping[Callable[[View], Array], float] = {turtle: 0.3, hawk: 0.3, matador: 0.3}


def held_out(controls: str = "chords") -> Mapping[str, Bot]:
    """Those players by name, for one kind of actions."""
    keys = controls == "keys"
    return {script.__name__: Scripted(script, share, keys) for script, share in _LAPSES.items()}
