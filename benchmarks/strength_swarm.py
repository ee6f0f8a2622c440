"""From nothing to strength: `play swarm --minutes 3 --difficulty hard`, judged on frozen matches.

    python benchmarks/strength.py swarm [--seeds 7001,7002,...] [--minutes 3] [--json]

The seeds were never used for tuning. Every run is the real command, with the learner in its own
process; afterwards versions from along the way are judged on the same frozen matches, which gives
the curve over matches and seconds. Untrained, the policy is judged twice: drawing its actions, as
it plays (`start`), and taking the likeliest ones, as versions are judged (`start_argmax`).
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

from understudy.core.clock import SystemClock
from understudy.games import catalog
from understudy.match.evaluate import evaluate
from understudy.match.live_match import EVALUATION, match_seeds
from understudy.match.players import PolicyPlayer
from understudy.match.tally import Tally
from understudy.policy.policy import Policy, untrained
from understudy.registry.run_folder import RunFolder

SEEDS = (7001, 7002, 7003, 7004, 7005)
POINTS = 10


def one_seed(seed: int, minutes: float, matches: int, root: Path) -> dict[str, object]:
    """The command itself, then its curve."""
    run = root / f"seed-{seed}"
    done = subprocess.run(
        [sys.executable, "-m", "understudy", "play", "swarm", "--minutes", str(minutes),
         "--difficulty", "hard", "--seed", str(seed), "--eval", str(matches), "--run", str(run),
         "--set", "registry.keep_versions=100000", "--json"],
        check=True, stdout=subprocess.PIPE, text=True, cwd=root,
    )  # fmt: skip
    result = json.loads(done.stdout)
    folder = RunFolder.load(run, SystemClock())
    at_first = judged(untrained(folder.spec, folder.config.learner.seed), seed, matches)
    points = curve(folder, seed, matches)
    return {"seed": seed, **result, "start_argmax": at_first.as_dict(), "curve": points}


def judged(policy: Policy, seed: int, matches: int) -> Tally:
    """Frozen matches with the likeliest actions."""
    seeds = match_seeds(seed, np.arange(matches), purpose=EVALUATION)
    game = catalog.make("swarm", difficulty="hard")
    return evaluate(game, PolicyPlayer(policy), seeds)


def curve(folder: RunFolder, seed: int, matches: int) -> list[dict[str, float]]:
    """Frozen win rates of versions spread evenly over the run."""
    numbers = folder.versions.numbers()
    picks = sorted({numbers[int(at)] for at in np.linspace(0, len(numbers) - 1, POINTS)})
    points = []
    for number in picks:
        manifest = folder.versions.manifest(number)
        tally = judged(folder.versions.policy(number), seed, matches)
        points.append(
            {
                "version": number,
                "matches": manifest.counters["ingested"],
                "seconds": round(manifest.created_at - folder.identity.created_at, 1),
                "win_rate": round(tally.win_rate, 4),
            }
        )
    return points


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default=",".join(map(str, SEEDS)))
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--matches", type=int, default=400)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    print(machine.describe("numpy", "jax", "optax"), file=sys.stderr)
    results = []
    with tempfile.TemporaryDirectory() as root:
        for index, seed in enumerate(seeds):
            left = (len(seeds) - index) * (arguments.minutes + 0.3)
            print(
                f"seed {seed} ({index + 1} of {len(seeds)}), about {left:.0f} min left",
                file=sys.stderr,
            )
            results.append(one_seed(seed, arguments.minutes, arguments.matches, Path(root)))
            if not arguments.json:
                print(row(results[-1]), flush=True)
    if arguments.json:
        print(json.dumps({"minutes": arguments.minutes, "runs": results}))


def row(result: dict[str, object]) -> str:
    """One line a seed, one line its curve."""
    start, likeliest, end, rules = (
        result[key] for key in ("start", "start_argmax", "eval", "rules")
    )
    assert isinstance(start, dict) and isinstance(likeliest, dict)
    assert isinstance(end, dict) and isinstance(rules, dict)
    points = result["curve"]
    assert isinstance(points, list)
    drawn = "  ".join(f"{p['seconds']:.0f}s/{p['matches']}: {p['win_rate']:.0%}" for p in points)
    return (
        f"seed {result['seed']}: untrained {start['win_rate']:.1%} (its likeliest actions "
        f"{likeliest['win_rate']:.1%}) -> {end['win_rate']:.1%} "
        f"({end['interval'][0]:.1%} to {end['interval'][1]:.1%}, {end['matches']} frozen matches), "
        f"rules {rules['win_rate']:.1%}, {result['matches']} matches, "
        f"{result['versions']} versions\n"
        f"    {drawn}"
    )


if __name__ == "__main__":
    main()
