"""From nothing to strength in brawl: `train brawl --network small --minutes 15`, judged frozen.

    python benchmarks/strength.py brawl [--preset small] [--seeds 9101,9102,...]
                                        [--minutes 15 | --steps 300M] [--json]

The seeds were never used for tuning. Every run is the real command; afterwards it is judged by its
likeliest actions in 200 varied matches against each scripted player, and versions from along the
way in fewer, which gives the curve over steps and seconds. Exit code 1 where the preset misses
a goal.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import machine
import numpy as np

from understudy.core.clock import SystemClock
from understudy.games import catalog
from understudy.match.evaluate import judge
from understudy.match.players import BotPlayer, PolicyPlayer
from understudy.match.tally import EvaluationReport
from understudy.registry.run_folder import RunFolder
from understudy.supervise.compile_cache import keep_compiled

SEEDS = (9101, 9102, 9103, 9104, 9105)
POINTS, FEW = 5, 100
BOTS = tuple(catalog.bots("brawl"))
GOALS = {
    "small": {"constant": 0.99, "random": 0.95, "based": 0.90},
    "seed": dict.fromkeys(BOTS, 0.80) | {"constant": 0.99, "random": 0.99, "based": 0.95},
}
"""Win rates by preset; the others are held to those of `small`."""
CURVE = ("constant", "random", "based")
MINUTES = 15.0
EVERY_STEPS = 500_000


def one_seed(
    seed: int, budget: tuple[str, str], matches: int, preset: str, root: Path
) -> dict[str, object]:
    """The command itself, then its curve; budget: `--minutes` or `--steps`, and how many."""
    run = root / f"seed-{seed}"
    done = subprocess.run(
        [sys.executable, "-m", "understudy", "train", "brawl", "--network", preset,
         *budget, "--seed", str(seed), "--run", str(run), "--json",
         "--set", f"train.checkpoint_steps={EVERY_STEPS}",
         "--set", "registry.keep_versions=100000"],
        check=True, stdout=subprocess.PIPE, text=True, cwd=root,
    )  # fmt: skip
    result = json.loads(done.stdout)
    folder = RunFolder.load(run, SystemClock())
    numbers = folder.versions.numbers()
    picks = sorted({numbers[int(at)] for at in np.linspace(0, len(numbers) - 1, POINTS)})
    points = [point(folder, number, seed) for number in picks]
    frozen = judged(folder, numbers[-1], seed, matches, BOTS)
    return {
        "seed": seed,
        **{key: result[key] for key in ("steps", "seconds", "steps_s", "compiled_s", "matches")},
        "frozen": {name: report.as_dict() for name, report in frozen.items()},
        "curve": points,
    }


def judged(
    folder: RunFolder, version: int, seed: int, matches: int, names: tuple[str, ...]
) -> dict[str, EvaluationReport]:
    """Frozen matches with the likeliest actions."""
    # Not above: JAX, before its cache is chosen.
    from understudy.arena.compiling import compiled_duel

    bots = catalog.bots("brawl")
    return judge(
        catalog.make("brawl"),
        PolicyPlayer(folder.versions.policy(version)),
        {name: BotPlayer(bots[name]) for name in names},
        matches=matches,
        seed=seed,
        engine=compiled_duel,
    )


def point(folder: RunFolder, version: int, seed: int) -> dict[str, object]:
    """One version on the curve."""
    manifest = folder.versions.manifest(version)
    reports = judged(folder, version, seed + 1_000_000, FEW, CURVE)
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
        + "/".join(f"{p[name]:.0%}" for name in CURVE)
        for p in points
    )
    return (
        f"seed {result['seed']}: {result['steps']:,} steps in {result['seconds']:.0f} s "
        f"({result['steps_s']:.0f}/s)\n    {rates}\n    {'/'.join(CURVE)}: {drawn}"
    )


def missed(result: dict[str, object], preset: str) -> list[str]:
    """The opponents against whom a seed does not reach the preset's goal."""
    frozen = result["frozen"]
    assert isinstance(frozen, dict)
    goals = GOALS.get(preset, GOALS["small"])
    return [name for name, goal in goals.items() if frozen[name]["win_rate"] < goal]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default=",".join(map(str, SEEDS)))
    budgets = parser.add_mutually_exclusive_group()
    budgets.add_argument("--minutes", type=float, help=f"of each run (default: {MINUTES:.0f})")
    budgets.add_argument("--steps", help="of each run, such as 300M")
    parser.add_argument("--matches", type=int, default=200)
    parser.add_argument("--preset", default="small")
    parser.add_argument("--keep", type=Path, help="keep the runs in this folder")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    minutes = arguments.minutes or (None if arguments.steps else MINUTES)
    budget = ("--minutes", str(minutes)) if minutes else ("--steps", arguments.steps)
    keep_compiled()
    here = machine.describe("numpy", "jax", "optax")
    print(here, file=sys.stderr)
    results: list[dict[str, object]] = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        root = (arguments.keep or Path(temporary)).resolve()
        root.mkdir(parents=True, exist_ok=True)
        for index, seed in enumerate(seeds):
            each = (time.monotonic() - began) / 60 / index if index else minutes and minutes + 2.5
            left = f", about {(len(seeds) - index) * each:.0f} min left" if each else ""
            print(f"seed {seed} ({index + 1} of {len(seeds)}){left}", file=sys.stderr)
            results.append(one_seed(seed, budget, arguments.matches, arguments.preset, root))
            if not arguments.json:
                print(row(results[-1]), flush=True)
    if arguments.json:
        told = {"machine": here, "device": machine.accelerator(), "preset": arguments.preset}
        told |= {"minutes": minutes, "steps": arguments.steps, "runs": results}
        print(json.dumps(told))
    short = {result["seed"]: missed(result, arguments.preset) for result in results}
    short = {seed: names for seed, names in short.items() if names}
    if short:
        sys.exit(f"goals missed: {short}")


if __name__ == "__main__":
    main()
