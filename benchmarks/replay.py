"""Replay at a million entries: prioritised beside TorchRL's, uniform beside stable-baselines3's.

    python benchmarks/replay.py [--json] [--entries 1000000] [--rounds 7] [--seconds 0.3]

One process with one thread for each library (`replay_peer.py` says what is timed), taking turns in
rounds; figures are medians of rounds, and those of a round medians of its batches, in processor
time: on a busy machine a clock on the wall would count how often a long batch is interrupted.
Goals: prioritised at least 2 times as fast as TorchRL, uniform no slower than stable-baselines3.
Exits 1 where one is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import machine
import numpy as np
import peers

BATCHES = (32, 256, 1024)
GOALS = {("prioritised", "torchrl"): 2.0, ("uniform", "stable-baselines3"): 1.0}
"""How many times as fast as this peer ours must be."""
ROW = 2 * 28 * 4 + 3 * 4
"""Bytes of an entry."""


class Library:
    """A process that times one library when told to."""

    def __init__(self, name: str, *, entries: int) -> None:
        script = Path(__file__).with_name("replay_peer.py")
        limits = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        self._process = subprocess.Popen(
            [str(peers.python()), str(script), name, "--entries", str(entries)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **dict.fromkeys(limits, "1")},
        )  # fmt: skip
        self.name = name
        hello = self._answer()
        self.what: str = hello["what"]
        self.kinds: list[str] = hello["kinds"]

    def median_us(self, kind: str, batch: int, seconds: float) -> float:
        assert self._process.stdin
        asked = {"kind": kind, "batch": batch, "seconds": seconds}
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        return float(np.median(self._answer()))

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(timeout=60)

    def _answer(self) -> Any:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"replay_peer.py {self.name} ended early: {self._process.wait()}")
        return json.loads(line)


def compared(
    ours: Library, peer: Library, kind: str, batch: int, *, rounds: int, seconds: float
) -> dict[str, Any]:
    """Medians of rounds in which they take turns; the peer's quickest form of the kind counts."""
    forms = [form for form in peer.kinds if form.startswith(kind)]
    turns = np.array([
        [ours.median_us(kind, batch, seconds), ours.median_us("gather", batch, seconds)]
        + [peer.median_us(form, batch, seconds) for form in forms]
        for _ in range(rounds)
    ])  # fmt: skip
    own_us, gather_us, *peer_us = np.median(turns, axis=0).tolist()
    quickest = int(np.argmin(peer_us))
    ratios = turns[:, 2 + quickest] / turns[:, 0]
    return {
        "kind": kind, "peer": peer.name, "form": forms[quickest], "batch": batch,
        "ours_us": own_us, "peer_us": peer_us[quickest], "gather_us": gather_us,
        "ratio": float(np.median(ratios)), "low": ratios.min(), "high": ratios.max(),
    }  # fmt: skip


def copied_bytes_s() -> float:
    """The best rate of one thread that copies memory which is in no cache: bytes read a second."""
    source, target = np.ones((2, 2**25))
    took = []
    for _ in range(10):
        began = time.process_time()
        np.copyto(target, source)
        took.append(time.process_time() - began)
    return source.nbytes / min(took)


def measure(*, entries: int, rounds: int, seconds: float) -> dict[str, object]:
    names = ("understudy", *(peer for _, peer in GOALS))
    libraries: dict[str, Library] = {}
    rows: list[dict[str, Any]] = []
    try:
        for name in names:
            libraries[name] = Library(name, entries=entries)
        ours = libraries["understudy"]
        for (kind, peer), goal in GOALS.items():
            rows += [
                compared(ours, libraries[peer], kind, batch, rounds=rounds, seconds=seconds)
                | {"goal": goal}
                for batch in BATCHES
            ]
    finally:
        for library in libraries.values():
            library.close()
    return {
        "machine": machine.describe("numpy"),
        "peers": [libraries[peer].what for _, peer in GOALS],
        "entries": entries,
        "copied_bytes_s": copied_bytes_s(),
        "rows": rows,
    }


def words(result: dict[str, Any]) -> str:
    rate = result["copied_bytes_s"]
    lines = [
        f"{result['entries']:,} entries of {ROW} bytes, one thread, "
        f"beside {' and '.join(result['peers'])}",
        f"{'':12}{'batch':>6}{'ours':>10}{'peer':>11}{'ratio':>7}{'rounds':>15}{'goal':>6}"
        f"{'gathering':>11}{'limit':>9}   quickest of the peer",
    ]
    for row in result["rows"]:
        limit = row["batch"] * ROW / rate * 1e6
        spread = f"{row['low']:.2f} to {row['high']:.2f}"
        lines.append(
            f"{row['kind']:12}{row['batch']:6,}{row['ours_us']:7.1f} us{row['peer_us']:8.1f} us"
            f"{row['ratio']:7.2f}{spread:>15}{row['goal']:6.1f}{row['gather_us']:8.1f} us"
            f"{limit:6.1f} us   {row['form']}"
        )
    lines.append(f"limit: the bytes of a batch at {rate / 1e9:.1f} GB/s, the rate of a plain copy")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.3, help="each turn (%(default)s)")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    result: dict[str, Any] = measure(
        entries=arguments.entries, rounds=arguments.rounds, seconds=arguments.seconds
    )
    print(json.dumps(result) if arguments.json else f"{result['machine']}\n{words(result)}")
    missed = [row for row in result["rows"] if row["ratio"] < row["goal"]]
    if missed:
        sys.exit("missed: " + ", ".join(f"{row['kind']} {row['batch']}" for row in missed))


if __name__ == "__main__":
    main()
