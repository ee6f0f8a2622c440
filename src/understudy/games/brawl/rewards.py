"""What a frame of brawl is worth: damage, knockouts, the result, and coming closer.

Each term is a pure function of the state before and after, [2, B], and worth to one player what it
costs the other, except for closing distance, which both gain. That one is the distance before less
the distance after, a_(t-1) - a_t, without gamma: over a match it sums to a_0, the distance at the
start, however it is played. What a learner with gamma < 1 adds up is not exactly potential-based:
a_0 - (1 - gamma) * sum of gamma^(t-1) * a_t over all frames, a small price for being apart in each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from understudy.core.ops import Array, Ops
from understudy.games.brawl.state import State, events, is_over, scores
from understudy.games.brawl.tables import f32

_ZERO = f32(0)


@dataclass(frozen=True)
class Weights:
    """What each term is multiplied by."""

    damage: float = 0.01
    """For each point dealt, less each point taken; about a hundred points make a knockout."""
    knockout: float = 1.0
    result: float = 2.0
    closing: float = 0.02
    """For each unit of distance; the blocks' outer edges are 14 units apart."""


DEFAULT = Weights()


def damage(ops: Ops, before: State, after: State) -> Array:
    """Points dealt less points taken."""
    return after.dealt - after.dealt[::-1]


def knockout(ops: Ops, before: State, after: State) -> Array:
    """+1 for knocking the opponent out, -1 for being knocked out, by whatever cause."""
    victim = events(ops, after).knocked_out.astype(ops.xp.float32)
    return victim[::-1] - victim


def result(ops: Ops, before: State, after: State) -> Array:
    """+1 for the frame that wins the match, -1 for the one that loses it."""
    return scores(ops, after)


def closing(ops: Ops, before: State, after: State) -> Array:
    """Units by which the players came closer; a match that is over has no distance."""
    return apart(ops, before) - apart(ops, after)


def apart(ops: Ops, state: State) -> Array:
    """How far the players are from each other along x and y, added; 0 once a match is over."""
    xp = ops.xp
    distance = xp.abs(state.x[::-1] - state.x) + xp.abs(state.y[::-1] - state.y)
    return xp.where(is_over(ops, state), _ZERO, distance)


Term = Callable[[Ops, State, State], Array]
TERMS: Mapping[str, Term] = {
    "damage": damage,
    "knockout": knockout,
    "result": result,
    "closing": closing,
}


def reward(ops: Ops, before: State, after: State, weights: Weights = DEFAULT) -> Array:
    """The weighted sum of all terms, float32 [2, B]."""
    total = ops.xp.zeros_like(after.dealt)
    for name, term in TERMS.items():
        total = total + term(ops, before, after) * f32(getattr(weights, name))
    return total
