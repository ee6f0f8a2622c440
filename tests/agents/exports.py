"""Small policies of every kind of network and action space, and their exported files, loaded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from policy.makers import MLP, STRATEGIST, TRANSFORMER, lively_policy, random_legal

from understudy.agents.exported import ExportedAgent, load_exported
from understudy.agents.module_file import AgentSource, module_text, plain_agent
from understudy.core.arrays import NDArray
from understudy.core.spaces import (
    ActionSpace,
    Continuous,
    Discrete,
    MultiBinary,
    MultiDiscrete,
)
from understudy.policy.mlp import Mlp
from understudy.policy.pointer import Pointer
from understudy.policy.policy import Policy
from understudy.policy.spec import AnyNetwork, PolicySpec

POINTER = Pointer(slots=2, slot_width=3, places=6, kinds=2, widths=(8, 8))
_ABC = Discrete(("a", "b", "c"))
_NUMBERS = Continuous(("steer", "gas"), (-1.0, None), (2.0, 1.0))
KINDS: dict[str, tuple[AnyNetwork, ActionSpace]] = {
    "mlp": (MLP, _ABC),
    "mlp without layers": (Mlp(()), _ABC),
    "mlp of choices": (MLP, MultiDiscrete((3, 2))),
    "mlp of numbers": (MLP, _NUMBERS),
    "transformer": (TRANSFORMER, MultiBinary(("w", "a"))),
    "transformer of numbers": (TRANSFORMER, _NUMBERS),
    "strategist": (STRATEGIST, MultiBinary(("w", "a", "s", "d"))),
    "pointer": (POINTER, Discrete(tuple(str(index) for index in range(13)))),
}


def policy_of(kind: str) -> Policy:
    network, actions = KINDS[kind]
    features = tuple(f"f{index}" for index in range(8))
    return lively_policy(PolicySpec(features, actions, network), version=3)


def exported(policy: Policy, path: Path, *, float16: bool = False) -> ExportedAgent:
    source = AgentSource("zerg", "brawl 4", {"delay": "6"})
    text = module_text(policy, source, plain_agent(greedy=False), float16=float16)
    path.write_text(text, encoding="utf-8")
    return load_exported(path)


def match(seed: int, policy: Policy, *, frames: int = 40) -> tuple[NDArray, NDArray, NDArray]:
    """Observations [T, F], what is legal [T, options] and uniforms [T, parts] of one match."""
    rng = np.random.default_rng(seed)
    spec = policy.spec
    scale = 1.0 / np.asarray(policy.weights.obs_scale)
    noise = rng.standard_normal((frames, len(spec.features)))
    observations = (policy.weights.obs_mean + scale * noise).astype(np.float32)
    legal = random_legal(rng, spec, frames)
    if isinstance(spec.network, Pointer):
        ids = rng.integers(-1, 6, (frames, 2)) / np.float32(5)
        observations[:, [0, 3]] = ids
    return observations, legal, rng.random((frames, len(spec.actions.parts)), dtype=np.float32)
