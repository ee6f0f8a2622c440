"""From sampled items to the batch that is trained on: judged again, and laid out in one shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.config import Config
from understudy.gates.decision import DecisionGate
from understudy.learner.batch import Batch
from understudy.learner.items import batch_of, decisions
from understudy.learner.revalidation import Recorded, revalidate, verdicts
from understudy.policy.spec import PolicySpec


class Ready(NamedTuple):
    """A batch, and how many of its decisions the gate has something to say of."""

    batch: Batch
    skipped: int
    """Nothing is learned from these."""
    judged: int
    """These were judged again."""
    agreed: int
    """Of those, these as they were before."""


def lay_out(
    items: Mapping[str, NDArray],
    spec: PolicySpec,
    config: Config,
    *,
    gate: DecisionGate | None,
    columns: int,
    version: int,
    weights: NDArray,
) -> Ready:
    """Items [N, ...] with importance weights float32 [N], for a learner at `version`."""
    valid = decisions(items) & items["settled"]
    gated = valid & items["gated"][:, None] & _judged(items)
    recorded = Recorded(
        items["rewards"], items["sent"], items["explored"], items["expected"], gated
    )
    now = None
    if gate is not None:
        now = verdicts(gate, items["obs"][:, :-1], items["actions"], gated)
    found = revalidate(config.continuous, recorded, now, clip=config.live.reward_clip)
    batch = batch_of(
        {**items, "rewards": found.rewards},
        spec,
        columns=columns,
        version=version,
        max_lag=config.learner.max_version_lag,
        weights=weights,
        learned=found.learned,
    )
    return Ready(
        batch,
        skipped=int((valid & ~found.learned).sum()),
        judged=0 if now is None else int(gated.sum()),
        agreed=int((found.agreed & valid).sum()),
    )


def _judged(items: Mapping[str, NDArray]) -> NDArray:
    """bool [N, L]: a gate had a part in it. None has in what no policy sampled, nor in what was
    sent without an expectation; what was blocked for want of time is blocked all the same."""
    spoken = ~np.isnan(items["expected"]) | ~items["sent"]
    return np.asarray(items["sampled"] & spoken)
