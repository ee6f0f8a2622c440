"""Files as the old bot wrote them, and its network as it read them: the slow, obvious reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from understudy.core.arrays import NDArray


def experience(path: Path, *, seed: int = 0, length: int = 20, good: int = 3) -> Path:
    """A match in which action `good` earned 1 a time and every other nothing."""
    rng = np.random.default_rng(seed)
    actions = rng.integers(0, 5, length)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        path,
        states=rng.random((length, 15), np.float32),
        actions=actions,
        rewards=(actions == good).astype(np.float64),
    )
    return path


def model(path: Path, *, seed: int = 0, episodes: int = 41, baseline: float = -3.5) -> Path:
    rng = np.random.default_rng(seed)
    sizes = (15, 64, 64, 5)
    arrays: dict[str, Any] = {}
    for index in range(3):
        scale = np.sqrt(2.0 / sizes[index])
        arrays[f"W{index + 1}"] = rng.normal(0.0, scale, sizes[index : index + 2])
        arrays[f"b{index + 1}"] = rng.normal(0.0, 0.1, sizes[index + 1])
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, baseline=np.array([baseline]), episode_count=np.array([episodes]), **arrays)
    return path


def probabilities(path: Path, states: NDArray) -> NDArray:
    """softmax(relu(relu(s W1 + b1) W2 + b2) W3 + b3), from the file as it lies there."""
    with np.load(path) as old:
        hidden = np.maximum(states @ old["W1"] + old["b1"], 0.0)
        hidden = np.maximum(hidden @ old["W2"] + old["b2"], 0.0)
        logits = hidden @ old["W3"] + old["b3"]
    odds = np.exp(logits - logits.max(-1, keepdims=True))
    shares: NDArray = odds / odds.sum(-1, keepdims=True)
    return shares
