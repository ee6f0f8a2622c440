"""What a trainer takes from the first segment of a run, before it learns: what numbers look like
here, and what a state like any other is worth.

The critic begins by saying the same of everything. One that has to sink (or rise) a long way first
does so further where features are large, and the policy flees (or seeks) those places before
anything was found there: Acrobot stayed at -500 on five seeds of five, and is between -88 and -116
after 100,000 steps on four of the same five with this.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from understudy.core.arrays import NDArray
from understudy.policy import weights as weight_files
from understudy.registry.versions import WEIGHTS

if TYPE_CHECKING:
    from understudy.learner.segments import Segments
    from understudy.learner.trainer import Trainer


def begin(trainer: Trainer, segments: Segments, gamma: float) -> None:
    """Fit the normaliser and the return scale, and level the critic."""
    level = usual_return(segments, gamma)
    returns = returns_of(segments, gamma, beyond=level)
    trainer.absorb(seen(segments), return_square=float(np.square(returns).mean()))
    weights = trainer.weights()
    params = {
        name: np.zeros_like(value) if name.startswith("value.") else value
        for name, value in weights.params.items()
    }
    params["value.b"] = params["value.b"] + np.float32(level) / weights.value_scale
    levelled = weight_files.encode(replace(weights, params=params))
    trainer.restore({**trainer.snapshot(), WEIGHTS: levelled}, what="the first segment")


def seen(segments: Segments) -> NDArray:
    """The observations [N, F] that count."""
    counted: NDArray = segments.obs[segments.valid > 0]
    return counted


def usual_return(segments: Segments, gamma: float) -> float:
    """The number that, said of every decision, agrees with itself: v = reward + gamma ongoing v."""
    counted = segments.valid > 0
    ends = 1.0 - gamma * float(segments.ongoing[counted].mean())
    return float(segments.rewards[counted].mean()) / max(ends, 1.0 / len(segments.rewards))


def returns_of(segments: Segments, gamma: float, *, beyond: float) -> NDArray:
    """Discounted returns [N]; `beyond` is what follows the segment."""
    total = np.zeros_like(segments.rewards)
    following = np.full_like(segments.rewards[0], beyond)
    for t in reversed(range(len(total))):
        following = segments.rewards[t] + np.float32(gamma) * segments.ongoing[t] * following
        total[t] = following
    counted: NDArray = total[segments.valid > 0]
    return counted
