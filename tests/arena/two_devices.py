"""Trains the small arena on all devices that this process has, and keeps what came of it.

two_devices.py OUT.npz ITERATIONS
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import jax
import numpy as np

from arena.makers import arena
from understudy.arena.iteration import compiled


def main(out: str, iterations: int) -> None:
    one = arena()
    for _ in range(iterations):
        one.iterate()
    columns = one.columns
    np.savez(
        out,
        devices=len(jax.devices()),
        programs=compiled(one.plan)._cache_size(),  # type: ignore[attr-defined]
        columns=len(columns.seeds.sharding.device_set),
        opponents=np.asarray(columns.kind),
        started=np.asarray(columns.started),
        **{f"params.{name}": value for name, value in one.trainer.weights().params.items()},
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
