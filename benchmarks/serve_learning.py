"""What learning costs the answers: p99 at 1,000 decisions a second, with and without the learner.

    python benchmarks/serve_learning.py [--rate 1000] [--seconds 15] [--rounds 3] [--json]

Territory with an MLP policy, the cost gate and the ledger, over 100 WebSockets, open-loop
(`open_loop.py`). Servers with and without a learner take turns. The learner trains without a pause
between batches, far more than the once a second of its default, and at the priority that it always
has; measuring begins once it has published, so that neither its import nor its compiler counts.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import machine
import msgspec
import numpy as np
import open_loop
import served
import territory_messages

CONNECTIONS = 100
GOAL = 1.5
BUSY = (
    "continuous.training_interval_s=0.01",
    "continuous.batch=256",
    "continuous.samples_per_insert=1000",
)
_WARM_UPS = 40


class _Version(msgspec.Struct):
    version: int = -1


def turn(run: Path, *, learner: bool, rate: float, seconds: float) -> dict[str, float]:
    """One server, warm, under one load."""

    def load(seconds: float, seed: int) -> open_loop.Outcome:
        # Territories belong to their clients, so every load has new ones.
        order = open_loop.spread(int(rate * seconds), CONNECTIONS, seed=seed)
        return open_loop.drive(
            server.url, territory_messages.queen(order, seed=seed), rate=rate, order=order,
            hello=territory_messages.HELLO, seed=seed,
        )  # fmt: skip

    how = "process" if learner else "off"
    with served.understudy(run, "territory", "--learner", how, settings=BUSY) as server:
        for seed in range(1, _WARM_UPS + 1):
            warm = load(2.0, seed)
            if not learner or version_of(warm) > 0:
                break
        else:
            raise SystemExit("the learner published nothing")
        before, began = version_of(warm), server.cpu_s()
        outcome = load(seconds, 0)
        cpu = (server.cpu_s() - began) / outcome.seconds
    return {
        "p50_ms": outcome.of(50),
        "p99_ms": outcome.of(99),
        "max_ms": float(outcome.latency_ms.max()),
        "held": float(outcome.held),
        "versions": version_of(outcome) - before,
        "server_cores": cpu,
    }


def version_of(outcome: open_loop.Outcome) -> int:
    """The highest version that an answer names."""
    said = (msgspec.json.decode(one, type=_Version) for one in outcome.answers if one is not None)
    return max((one.version for one in said), default=-1)


def measure(rate: float, seconds: float, rounds: int) -> dict[str, object]:
    taken: dict[str, list[dict[str, float]]] = {"alone": [], "learning": []}
    with tempfile.TemporaryDirectory() as place:
        for index in range(rounds):
            order = ("alone", "learning") if index % 2 == 0 else ("learning", "alone")
            for name in order:
                run = Path(place) / f"{name}-{index}"
                taken[name].append(
                    turn(run, learner=name == "learning", rate=rate, seconds=seconds)
                )
    middle = {
        name: {key: float(np.median([one[key] for one in all_])) for key in all_[0]}
        for name, all_ in taken.items()
    }
    return {
        "machine": machine.describe("numpy", "jax", "uvicorn"),
        **middle,
        "p99_ratio": middle["learning"]["p99_ms"] / middle["alone"]["p99_ms"],
        "rounds": taken,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=1000.0)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    result = measure(arguments.rate, arguments.seconds, arguments.rounds)
    ratio = result["p99_ratio"]
    assert isinstance(ratio, float)
    lines = [f"{arguments.rate:,.0f} decisions a second over {CONNECTIONS} WebSockets, medians"]
    for name, title in (("alone", "without the learner"), ("learning", "while it trains")):
        one = result[name]
        assert isinstance(one, dict)
        lines.append(
            f"{title:22} p50 {one['p50_ms']:6.1f} ms   p99 {one['p99_ms']:6.1f} ms   "
            f"max {one['max_ms']:6.1f} ms   {one['versions']:.0f} versions   "
            f"server {one['server_cores']:.2f} cores"
        )
    lines.append(f"{'ratio of the two p99':22} {ratio:.2f}   goal: at most {GOAL}")
    missed = [] if ratio <= GOAL else [f"p99 grows {ratio:.2f} times while the learner trains"]
    served.report(result, lines, missed, as_json=arguments.json)


if __name__ == "__main__":
    main()
