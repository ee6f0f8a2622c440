"""What each of the strategist's two memories can learn, and what it cannot reach without it.

A cue is shown at the first frame of a match and asked for 40 frames later; all else is noise.
"""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax

from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY, Array
from understudy.learner.maths.jax_ops import JAX
from understudy.policy.layers import Params
from understudy.policy.strategist import Strategist

AGO = 40
BATCH = 32
FEATURES, OPPONENT = 4, 2


def strategist(window: int) -> Strategist:
    return Strategist(
        width=16, heads=2, layers=1, feed=16, window=window, latent=8, lstm=32, head_widths=(16,),
        opponent=OPPONENT,
    )  # fmt: skip


def matches(rng: np.random.Generator, count: int, column: int) -> tuple[NDArray, NDArray]:
    """obs [AGO + 1, count, F], and the cue, 0 or 1, that stood in this column at frame 0."""
    cue = rng.integers(0, 2, count)
    obs = 0.3 * rng.standard_normal((AGO + 1, count, FEATURES))
    obs[0, :, column] = 6.0 * cue - 3.0
    return obs.astype(np.float32), cue


def learned(
    network: Strategist, *, column: int, reader: Literal["logits", "opponent_logits"]
) -> float:
    """Share of right answers at the end of new matches, under NumPy, after 120 gradient steps."""
    rng = np.random.default_rng(0)
    params: Params = jax.tree.map(jnp.asarray, network.init(rng, FEATURES, 2))
    optimiser = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(5e-3))
    first = np.zeros((AGO + 1, BATCH), bool)
    memory = network.memory(JAX, BATCH)

    def loss(params: Params, obs: Array, cue: Array) -> Array:
        answers = getattr(network.unroll_insight(JAX, params, obs, first, memory), reader)[-1]
        return optax.softmax_cross_entropy_with_integer_labels(answers, cue).mean()

    @jax.jit
    def update(
        params: Params, state: optax.OptState, obs: Array, cue: Array
    ) -> tuple[Params, optax.OptState]:
        change, state = optimiser.update(jax.grad(loss)(params, obs, cue), state)
        return optax.apply_updates(params, change), state

    state = optimiser.init(params)
    for _ in range(120):
        params, state = update(params, state, *matches(rng, BATCH, column))
    obs, cue = matches(rng, 512, column)
    played = network.unroll_insight(
        NUMPY,
        {name: np.asarray(value) for name, value in params.items()},
        obs,
        np.zeros((AGO + 1, 512), bool),
        network.memory(NUMPY, 512),
    )
    return float((getattr(played, reader)[-1].argmax(-1) == cue).mean())


def test_a_cue_of_the_opponent_is_learned_through_attention_and_no_further_than_it_reaches() -> (
    None
):
    """Read from the latent, which the LSTM has no part in. One layer and the pool, of 20 frames
    each, reach 38 frames back."""
    assert learned(strategist(window=45), column=FEATURES - 1, reader="opponent_logits") > 0.95
    assert learned(strategist(window=20), column=FEATURES - 1, reader="opponent_logits") < 0.6


def test_a_cue_of_its_own_is_learned_through_the_lstm() -> None:
    """Attention sees the opponent's frames alone, and here no more than eight of them back."""
    assert learned(strategist(window=5), column=0, reader="logits") > 0.95
