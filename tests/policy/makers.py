"""Small networks, specs and episodes that the tests of policy and learner share.

JAX compiles once per shape and spec, so tests take these rather than sizes of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.spaces import ActionSpace, Discrete
from understudy.experience.episode import Episode, Meta, Outcome
from understudy.policy.mlp import Mlp
from understudy.policy.policy import Policy
from understudy.policy.spec import AnyNetwork, PolicySpec
from understudy.policy.strategist import Strategist
from understudy.policy.transformer import Transformer
from understudy.policy.weights import Weights

MLP = Mlp(widths=(8,))
TRANSFORMER = Transformer(width=8, heads=2, layers=2, feed=16, window=5)
STRATEGIST = Strategist(
    width=8, heads=2, layers=2, feed=16, window=5, latent=6, lstm=7, head_widths=(9,), opponent=2,
    kinds=4,
)  # fmt: skip
NETWORKS: dict[str, AnyNetwork] = {
    "mlp": MLP,
    "transformer": TRANSFORMER,
    "strategist": STRATEGIST,
}
FEATURES = 3
ABC = Discrete(("a", "b", "c"))


def spec_of(network: AnyNetwork = MLP, actions: ActionSpace = ABC) -> PolicySpec:
    return PolicySpec(tuple(f"f{index}" for index in range(FEATURES)), actions, network)


def lively_params(
    network: AnyNetwork, seed: int = 0, *, inputs: int = FEATURES, outputs: int = 3
) -> dict[str, NDArray]:
    """Parameters far from their start, so that every part of a network matters."""
    rng = np.random.default_rng(seed)
    return {
        name: (value + 0.3 * rng.standard_normal(value.shape)).astype(np.float32)
        for name, value in network.init(rng, inputs, outputs).items()
    }


def lively_policy(spec: PolicySpec, seed: int = 0, *, version: int = 0) -> Policy:
    """A policy with preferences, a normaliser and a return scale."""
    rng = np.random.default_rng(seed)
    inputs = len(spec.features)
    return Policy(
        spec,
        Weights(
            lively_params(spec.network, seed, inputs=inputs, outputs=spec.actions.options),
            obs_mean=rng.normal(50.0, 10.0, inputs).astype(np.float32),
            obs_scale=rng.uniform(0.01, 0.2, inputs).astype(np.float32),
            value_scale=np.float32(7.5),
        ),
        version,
    )


def random_legal(rng: np.random.Generator, spec: PolicySpec, length: int) -> NDArray:
    """Masks [length, options] with at least one legal option in each part."""
    legal = rng.random((length, spec.actions.options)) < 0.6
    start = 0
    for size in spec.actions.parts:
        legal[np.arange(length), start + rng.integers(0, size, length)] = True
        start += size
    return legal


def play(
    policy: Policy,
    rng: np.random.Generator,
    length: int,
    *,
    reward: Callable[[NDArray, NDArray], float] = lambda obs, action: 0.0,
    masked: bool = False,
    observations: NDArray | None = None,
    **fields: Any,
) -> Episode:
    """An episode of sampled decisions on random observations; `fields` replace what it has."""
    spec = policy.spec
    if observations is None:
        observations = rng.normal(0.0, 1.0, (length, len(spec.features))).astype(np.float32)
    legal = random_legal(rng, spec, length) if masked else None
    memory = policy.begin()
    rows = []
    for index in range(length):
        choice = policy.act(
            observations[index : index + 1],
            memory,
            legal=None if legal is None else legal[index : index + 1],
            uniforms=rng.random((1, len(spec.actions.parts)), dtype=np.float32),
        )
        memory = choice.memory
        gained = reward(observations[index], choice.actions[0])
        rows.append((choice.actions[0], choice.log_probs[0], choice.values[0], gained))
    actions, log_probs, values, rewards = zip(*rows, strict=True)
    recorded: dict[str, Any] = {
        "meta": Meta(id="match", outcome=Outcome.VICTORY, finished_at=0.0),
        "observations": observations,
        "actions": np.array(actions, np.int32),
        "log_probs": np.array(log_probs, np.float32),
        "values": np.array(values, np.float32),
        "rewards": np.array(rewards, np.float32),
        "sampled": np.ones(length, np.bool_),
        "versions": np.full(length, policy.version, np.int64),
        "legal": legal,
    }
    return Episode(**(recorded | fields))


def aborted() -> Meta:
    return Meta(id="match", outcome=Outcome.ABORTED, finished_at=0.0)
