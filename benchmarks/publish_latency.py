"""From `finish` to a new version visible to the bot, for batches of 10 matches on a local disk.

python benchmarks/publish_latency.py [--json]
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import machine
import numpy as np

from understudy import Config, Understudy
from understudy.core.config import with_values

BATCHES, MATCHES, DECISIONS = 30, 10, 150


def batch(mind: Understudy, rng: np.random.Generator) -> None:
    """Ten matches of swarm's size, as fast as they can be recorded."""
    for _ in range(MATCHES):
        with mind.match(opponent="nobody") as match:
            for _ in range(DECISIONS):
                match.decide(rng.random(15, dtype=np.float32))
                match.reward(float(rng.standard_normal()))
            match.finish("tie")


def measure() -> dict[str, object]:
    """Seconds from the last `finish` of each batch until `mind.version` has grown past it."""
    rng = np.random.default_rng(0)
    took = []
    with tempfile.TemporaryDirectory() as folder:
        config = with_values(
            Config(), {"report.status_every_s": 0, "report.statistics_every_matches": 0}
        )
        with Understudy.open(
            Path(folder) / "run",
            features=[f"f{index}" for index in range(15)],
            actions=["a", "b", "c", "d", "e"],
            mode="learn",
            config=config,
        ) as mind:
            for index in range(BATCHES + 3):
                ingested = _ingested(mind)
                batch(mind, rng)
                finished = time.perf_counter()
                while _ingested(mind) < ingested + MATCHES:
                    time.sleep(0.002)
                if index >= 3:  # the first ones wait for the import and the compiler
                    took.append(time.perf_counter() - finished)
                time.sleep(0.6)  # let the publish interval pass, as between real matches
    return {
        "median_s": float(np.median(took)),
        "p90_s": float(np.percentile(took, 90)),
        "batches": len(took),
        "machine": machine.describe("numpy", "jax"),
    }


def _ingested(mind: Understudy) -> int:
    """Matches that the version which decides now has learned from."""
    if mind.version == 0:
        return 0
    return mind.folder.versions.manifest(mind.version).counters["ingested"]


def words(median_s: float, p90_s: float, batches: int, machine: str) -> str:
    return (
        f"from finish to a version that decides: median {median_s:.3f} s, p90 {p90_s:.3f} s "
        f"over {batches} batches of {MATCHES} matches; goal: median under 1 s"
    )


if __name__ == "__main__":
    machine.tell(__doc__, measure, words)
