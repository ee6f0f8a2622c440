"""From nothing to strength in brawl: `train brawl --preset small --minutes 15`, judged frozen.

    python benchmarks/strength.py brawl [--seeds 9001,9002,...] [--minutes 15] [--json]

The seeds were never used for tuning. Every run is the real command; afterwards it is judged by its
likeliest actions in 200 varied matches against each scripted player, and versions from along the
way in fewer, which gives the curve over steps and seconds. Exit code 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import machine
import numpy as np

from understudy.arena.judging import compiled
from understudy.core.clock import SystemClock
from understudy.games import catalog
from understudy.match.evaluate import judge
from understudy.match.players import BotPlayer, PolicyPlayer
from understudy.match.tally import Report
from understudy.registry.run_folder import RunFolder
from understudy.run.compile_cache import keep_compiled

SEEDS = (9001, 9002, 9003, 9004, 9005)
POINTS, FEW = 5, 100
GOALS = {"constant": 0.99, "random": 0.95, "based": 0.90}
EVERY_STEPS = 500_000


def one_seed(seed: int, minutes: float, matches: int, preset: str, root: Path) -> dict[str, object]:
    """The command itself, then its curve."""
    run = root / f"seed-{seed}"
    done = subprocess.run(
        [sys.executable, "-m", "understudy", "train", "brawl", "--preset", preset,
         "--minutes", str(minutes), "--seed", str(seed), "--run", str(run), "--json",
         "--set", f"train.checkpoint_steps={EVERY_STEPS}",
         "--set", "registry.keep_versions=100000"],
        check=True, stdout=subprocess.PIPE, text=True, cwd=root,
    )  # fmt: skip
    result = json.loads(done.stdout)
    folder = RunFolder.load(run, SystemClock())
    numbers = folder.versions.numbers()
    picks = sorted({numbers[int(at)] for at in np.linspace(0, len(numbers) - 1, POINTS)})
    points = [point(folder, number, seed) for number in picks]
    frozen = judged(folder, numbers[-1], seed, matches, tuple(catalog.bots("brawl")))
    return {
        "seed": seed,
        **{key: result[key] for key in ("steps", "seconds", "steps_s", "compiled_s", "matches")},
        "frozen": {name: report.as_dict() for name, report in frozen.items()},
        "curve": points,
    }


def judged(
    folder: RunFolder, version: int, seed: int, matches: int, names: tuple[str, ...]
) -> dict[str, Report]:
    """Frozen matches with the likeliest actions."""
    bots = catalog.bots("brawl")
    return judge(
        catalog.make("brawl"),
        PolicyPlayer(folder.versions.policy(version)),
        {name: BotPlayer(bots[name]) for name in names},
        matches=matches,
        seed=seed,
        engine=compiled,
    )


def point(folder: RunFolder, version: int, seed: int) -> dict[str, object]:
    """One version on the curve."""
    manifest = folder.versions.manifest(version)
    reports = judged(folder, version, seed + 1_000_000, FEW, tuple(GOALS))
    return {
        "version": version,
        "steps": manifest.counters["steps"],
        "seconds": round(manifest.created_at - folder.identity.created_at, 1),
        **{name: round(report.tally.win_rate, 4) for name, report in reports.items()},
    }


def row(result: dict[str, object]) -> str:
    """One line a seed, one line its curve."""
    frozen, points = result["frozen"], result["curve"]
    assert isinstance(frozen, dict) and isinstance(points, list)
    rates = "  ".join(
        f"{name} {one['win_rate']:.1%} ({one['distinct']} distinct)" for name, one in frozen.items()
    )
    drawn = "  ".join(
        f"{p['seconds']:.0f}s/{p['steps'] / 1e6:.1f}M: "
        + "/".join(f"{p[name]:.0%}" for name in GOALS)
        for p in points
    )
    return (
        f"seed {result['seed']}: {result['steps']:,} steps in {result['seconds']:.0f} s "
        f"({result['steps_s']:.0f}/s)\n    {rates}\n    {'/'.join(GOALS)}: {drawn}"
    )


def missed(result: dict[str, object]) -> list[str]:
    """The goals that a seed does not reach."""
    frozen = result["frozen"]
    assert isinstance(frozen, dict)
    return [name for name, goal in GOALS.items() if frozen[name]["win_rate"] < goal]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default=",".join(map(str, SEEDS)))
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--matches", type=int, default=200)
    parser.add_argument("--preset", default="small")
    parser.add_argument("--keep", type=Path, help="keep the runs in this folder")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    keep_compiled()
    print(machine.describe("numpy", "jax", "optax"), file=sys.stderr)
    results = []
    with tempfile.TemporaryDirectory() as temporary:
        root = (arguments.keep or Path(temporary)).resolve()
        root.mkdir(parents=True, exist_ok=True)
        for index, seed in enumerate(seeds):
            left = (len(seeds) - index) * (arguments.minutes + 2.5)
            print(
                f"seed {seed} ({index + 1} of {len(seeds)}), about {left:.0f} min left",
                file=sys.stderr,
            )
            results.append(
                one_seed(seed, arguments.minutes, arguments.matches, arguments.preset, root)
            )
            if not arguments.json:
                print(row(results[-1]), flush=True)
    if arguments.json:
        print(json.dumps({"minutes": arguments.minutes, "runs": results}))
    short = {result["seed"]: missed(result) for result in results if missed(result)}
    if short:
        sys.exit(f"goals missed: {short}")


if __name__ == "__main__":
    main()
