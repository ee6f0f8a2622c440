"""Healthy runs on which `understudy doctor` must be silent: three ways, four seeds each.

    python benchmarks/healthy_runs.py [--minutes 3] [--seeds 4] [--keep DIR] [--json]

Each run is made by the commands that a person uses: `play swarm` (a bot with its learner),
`serve territory` with `play territory --url` (a live game), `train brawl` (the arena).
A problem or a warning in any of them is a false alarm, and the exit code is 1; notes are printed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import machine
import served

from understudy.core.clock import SystemClock
from understudy.doctor.evidence import gather
from understudy.doctor.examine import examine
from understudy.doctor.findings import Finding
from understudy.registry.run_folder import RunFolder
from understudy.run.view import read_view

_COMMAND = (sys.executable, "-m", "understudy")


@dataclass(frozen=True)
class Row:
    way: str
    seed: int
    matches: int
    batches: int
    versions: int
    first: float | None
    last: float | None
    seconds: float
    findings: tuple[Finding, ...]

    @property
    def alarms(self) -> list[str]:
        return [one.check for one in self.findings if one.weight != "note"]


def ring(run: Path, seed: int, minutes: float) -> None:
    _call("play", "swarm", "--difficulty", "medium", "--eval", 0, "--run", run, "--seed", seed,
          "--minutes", minutes)  # fmt: skip


def server(run: Path, seed: int, minutes: float) -> None:
    with served.understudy(run, "territory", "--seed", str(seed)) as up:
        _call("play", "territory", "--url", up.url, "--seed", seed, "--minutes", minutes)


def arena(run: Path, seed: int, minutes: float) -> None:
    _call("train", "brawl", "--run", run, "--seed", seed, "--minutes", minutes)


WAYS: dict[str, Callable[[Path, int, float], None]] = {
    "ring": ring,
    "server": server,
    "arena": arena,
}


def _call(*args: object) -> None:
    subprocess.run([*_COMMAND, *map(str, args), "--json"], check=True, stdout=subprocess.DEVNULL)


def examined(way: str, seed: int, run: Path) -> Row:
    """What the doctor says of a run that has ended."""
    folder = RunFolder.load(run, SystemClock())
    evidence = gather(folder, read_view(folder))
    began = time.perf_counter()
    findings = tuple(examine(evidence))
    status = evidence.status
    counted = status.ledger.opened if status.ledger is not None else status.matches
    return Row(
        way=way, seed=seed, matches=counted, batches=status.batches_trained,
        versions=status.versions, first=status.win_rate_first, last=status.win_rate_last,
        seconds=time.perf_counter() - began, findings=findings,
    )  # fmt: skip


def table(rows: list[Row]) -> str:
    head = (
        "| way | seed | matches or decisions | batches | versions | won, first fifth to last "
        "| findings | doctor took |\n|---|---|---|---|---|---|---|---|"
    )
    lines = [head]
    for one in rows:
        won = "-" if one.first is None or one.last is None else f"{one.first:.0%} to {one.last:.0%}"
        found = ", ".join(f"{f.check} ({f.weight})" for f in one.findings) or "none"
        lines.append(
            f"| {one.way} | {one.seed} | {one.matches:,} | {one.batches:,} | {one.versions:,} "
            f"| {won} | {found} | {one.seconds:.2f} s |"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--keep", type=Path, help="a folder for the runs (default: thrown away)")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        root = args.keep or Path(temporary)
        root.mkdir(parents=True, exist_ok=True)
        for seed in range(1, args.seeds + 1):
            for way in args.ways.split(","):
                run = root / f"{way}-{seed}"
                WAYS[way](run, seed, args.minutes)
                rows.append(examined(way, seed, run))
                for one in rows[-1].findings:
                    print(f"{run.name}: {one.check}: {one.title} {one.evidence}", file=sys.stderr)
    alarms = sum(len(one.alarms) for one in rows)
    if args.json:
        print(json.dumps([{**asdict(one), "findings": one.alarms} for one in rows]))
    else:
        print(machine.describe("numpy", "jax"))
        print(f"\n{table(rows)}\n\nFalse alarms: {alarms} in {len(rows)} healthy runs.")
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
