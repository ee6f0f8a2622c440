"""Brawl's reward terms, potentials, sets and measures by name.

A weight says what one of whatever its term counts is worth; a deed has a positive one where it is
good for who does it, a mishap a negative one for whom it befalls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from understudy.core.ops import Array, Ops
from understudy.games.brawl import rewards, terms
from understudy.games.brawl.state import State
from understudy.games.moments import MeasureColumn, Moment, Potential, Term


def _of_game(own: Callable[[Ops, State, State], Array]) -> Term:
    """A term of the game's own reward, which knows nothing of actions."""

    def counted(ops: Ops, moment: Moment) -> Array:
        return own(ops, moment.before, moment.after)

    return counted


TERMS: Mapping[str, Term] = {
    **{name: _of_game(own) for name, own in rewards.TERMS.items()},
    "damage_dealt": terms.damage_dealt,
    "damage_taken": terms.damage_taken,
    "knockout_dealt": terms.knockout_dealt,
    "knocked_out": terms.knocked_out,
    "win": terms.win,
    "loss": terms.loss,
    "combo": terms.combo,
    "stun": terms.stun,
    "equip": terms.equip,
    "drop": terms.drop,
    "whiff": terms.whiff,
    "danger_zone": terms.danger_zone,
    "edge_pressure": terms.edge_pressure,
    "over_pit": terms.over_pit,
    "camping": terms.camping,
    "apart": terms.apart,
    "key_spam": terms.key_spam,
    "time": terms.time,
}

POTENTIALS: Mapping[str, Potential] = {
    "closing": lambda ops, state: -rewards.apart(ops, state),
    "edge_pressure": lambda ops, state: terms.cornered(ops, state)[::-1],
    "safety": lambda ops, state: -terms.danger(ops, state),
}

_SPARSE = {
    "damage_dealt": 0.01,
    "damage_taken": -0.01,
    "knockout_dealt": 0.5,
    "knocked_out": -0.5,
    "win": 1.0,
    "loss": -1.0,
}
_DENSE = {
    **_SPARSE,
    "closing": 0.02,
    "combo": 0.02,
    "stun": 0.0002,
    "equip": 0.05,
    "drop": -0.05,
    "whiff": -0.002,
    "danger_zone": -0.0005,
    "edge_pressure": 0.0002,
    "over_pit": -0.0002,
    "camping": -0.0002,
    "key_spam": -0.001,
}
SETS: Mapping[str, Mapping[str, float]] = {
    "default": {name: getattr(rewards.DEFAULT, name) for name in rewards.TERMS},
    "sparse": _SPARSE,
    "dense": _DENSE,
    # For the first steps: staying away costs more than a fall, and swinging at nothing is free.
    "approach": {
        **{name: weight for name, weight in _DENSE.items() if name != "whiff"},
        "apart": -0.0001,
    },
    "shaped": {
        **_SPARSE,
        "shaped_closing": 0.02,
        "shaped_edge_pressure": 0.1,
        "shaped_safety": 0.2,
    },
}
"""What counts in every frame is small: over a whole match, no such term outweighs the result."""

MEASURES: Mapping[str, Term] = {
    "damage_dealt": terms.damage_dealt,
    "damage_taken": terms.damage_taken,
    "knockouts": terms.knockout_dealt,
    "falls": terms.knocked_out,
    "attacks": terms.attack,
    "hits": terms.hit,
    "equips": terms.equip,
    "combos": terms.combo,
}
"""Summed over a match, never rewarded."""

MEASURE_COLUMNS = (
    MeasureColumn("damage_dealt"),
    MeasureColumn("damage_taken"),
    MeasureColumn("damage_ratio", ratio=("damage_dealt", "damage_taken"), heading="damage"),
    MeasureColumn("knockouts", heading="KOs"),
    MeasureColumn("falls", heading="falls"),
)
