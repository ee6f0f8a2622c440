"""What a version answers to fixed observations: recorded by an old program, asked of a new one.

Runs under both programs, so it uses `RunFolder` and `Policy.act` alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from understudy.core.clock import SystemClock
from understudy.registry.run_folder import RunFolder

STEPS, ROWS = 6, 8


def questions(run: Path) -> dict[str, Any]:
    """Observations [T, B, F] and uniforms [T, B, parts] that fit a run, as numbers for JSON."""
    spec = RunFolder.load(run, SystemClock()).spec
    rng = np.random.default_rng(7)
    observations = rng.normal(0.0, 2.0, (STEPS, ROWS, len(spec.features)))
    uniforms = rng.uniform(0.02, 0.98, (STEPS, ROWS, len(spec.actions.parts)))
    return {"observations": observations.round(2).tolist(), "uniforms": uniforms.round(3).tolist()}


def answers(run: Path, version: int, asked: dict[str, Any]) -> dict[str, Any]:
    """Actions [T, B, parts], log_probs [T, B] and values [T, B] of a version, from empty memory."""
    policy = RunFolder.load(run, SystemClock()).versions.policy(version)
    memory = policy.begin(ROWS)
    said: dict[str, list[Any]] = {"actions": [], "log_probs": [], "values": []}
    for observations, uniforms in zip(asked["observations"], asked["uniforms"], strict=True):
        choice = policy.act(
            np.array(observations, np.float32), memory, uniforms=np.array(uniforms, np.float32)
        )
        memory = choice.memory
        said["actions"].append(choice.actions.tolist())
        said["log_probs"].append(choice.log_probs.tolist())
        said["values"].append(choice.values.tolist())
    return said
