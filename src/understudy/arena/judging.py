"""Frozen matches compiled by JAX: the duel of `match.duel`, a stride of frames in one program.

Weights are an argument of the program, not part of it: duels of equal form share one, so an agent
that is judged again and again while it learns is compiled for once.
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
    """An `Engine`: compiled at the first stride of the first duel of this form."""
    form = duel.form
    one = _program(duel) if form is None else _shared_program(form)
    weights = jax.device_put(duel.weights)

    def carry_on(standing: DuelState) -> DuelState:
        after: DuelState = one(weights, standing)
        return after

    return carry_on


@lru_cache(maxsize=_KEPT)
def _shared_program(form: Duel) -> jax.stages.Wrapped:
    return _program(form)


def _program(duel: Duel) -> jax.stages.Wrapped:
    return jax.jit(partial(stride, JAX, duel), donate_argnums=1, compiler_options=options())
