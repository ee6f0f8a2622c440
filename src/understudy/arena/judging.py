"""Frozen matches compiled by JAX: the duel of `match.duel`, a stride of frames in one program.

Weights are an argument of the program, not part of it: duels with equal program keys share one, so
an agent that is judged again and again while it learns is compiled for once.
"""

from __future__ import annotations

from functools import lru_cache, partial

import jax

from understudy.arena.compiling import options
from understudy.learner.maths.jax_ops import JAX
from understudy.match.duel import Duel, DuelState, stride
from understudy.match.series import Stride

_KEPT = 64
"""Programs that are kept: an evaluation needs a handful, as its matches end and columns go."""


def compiled(duel: Duel) -> Stride:
    """An `Engine`: compiled at the first stride of the first duel with this program key."""
    key = duel.program_key
    one = _program(duel) if key is None else _shared_program(key)
    weights = jax.device_put(duel.weights)

    def carry_on(duel_state: DuelState) -> DuelState:
        after: DuelState = one(weights, duel_state)
        return after

    return carry_on


@lru_cache(maxsize=_KEPT)
def _shared_program(key: Duel) -> jax.stages.Wrapped:
    return _program(key)


def _program(duel: Duel) -> jax.stages.Wrapped:
    return jax.jit(partial(stride, JAX, duel), donate_argnums=1, compiler_options=options())
