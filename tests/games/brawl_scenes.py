"""Two players put somewhere, and chords or keys played frame by frame."""

from __future__ import annotations

from typing import Any

import numpy as np

from understudy.core.ops import NUMPY
from understudy.games.brawl import Brawl, State
from understudy.games.brawl.tables import CHORDS, KEYS

CHORD_NUMBER = {name: number for number, name in enumerate(CHORDS)}


def scene(**fields: Any) -> State:
    """One match: slot 0 at x = -5, slot 1 at x = 5, facing each other, free to act.

    A field is one number for both players or a pair of them; shared fields are one number.
    """
    state = Brawl().start(NUMPY, np.zeros(1, np.uint32))
    settings: dict[str, Any] = {"x": (-5, 5), "facing": (1, -1), "wait": 0, "item_clock": 2000}
    changes = {}
    for name, value in (settings | fields).items():
        old = getattr(state, name)
        filled = np.broadcast_to(np.asarray(value, old.dtype).reshape(-1, 1), old[..., :1].shape) \
            if old.ndim == 2 else np.full_like(old, value)  # fmt: skip
        changes[name] = np.array(filled)
    return state._replace(**changes)


def play(state: State, zero: list[str], one: list[str] | None = None) -> list[State]:
    """The states after each frame of chords by name; slot 1 is idle where nothing is said."""
    game = Brawl()
    others = one or []
    states = []
    for frame, name in enumerate(zero):
        other = others[frame] if frame < len(others) else "idle"
        actions = np.array([[[CHORD_NUMBER[name]]], [[CHORD_NUMBER[other]]]], np.int32)
        state = game.step(NUMPY, state, actions)
        states.append(state)
    return states


def press(state: State, zero: list[str]) -> list[State]:
    """The states after each frame in which slot 0 holds keys ("d j") and slot 1 none."""
    game = Brawl("keys")
    states = []
    for held in zero:
        actions = np.zeros((2, len(KEYS), 1), np.int32)
        for key in held.split():
            actions[0, KEYS.index(key)] = 1
        state = game.step(NUMPY, state, actions)
        states.append(state)
    return states
