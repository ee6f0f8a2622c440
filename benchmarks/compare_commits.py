"""Speeds of two commits in interleaved pairs: did a change make anything slower?

    python benchmarks/compare_commits.py BASE [--pairs 7] [--only train_small,serve] [--json]

BASE is a commit; it is checked out beside this working tree. Each pair measures both, in an order
that alternates, with each commit's own benchmark code and source. The table shows the medians, the
ratio of the new commit to BASE, and the spread of BASE against itself (the quartiles of its values
around their median), which tells how large a difference must be to mean something. The exit code is
1 if a median is worse by more than 5%. Figures of the 99th percentile are shown and not judged.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import machine
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
TOLERATED = 0.05


@dataclass(frozen=True)
class Measure:
    """One child process: `code` prints a dict of numbers."""

    code: str
    higher_is_better: frozenset[str] = frozenset()


_TRAIN = """
import train_throughput
made = train_throughput.ours(
    preset={preset!r}, settings={settings!r}, iterations={iterations}, run=None
)
print(json.dumps({{"steps_s": made["steps_s"]}}))
"""
_EPOCHS = {"learner.epochs": 10, "learner.samples_per_insert": 10, "learner.kl_stop": 0.0}
MEASURES = {
    "import": Measure("""
import import_time
import_time.ROUNDS = 7
made = import_time.measure()
print(json.dumps({"facade_more_ms": made["facade_more_ms"]}))
"""),
    "decision": Measure("""
import sys, types
sys.modules["peers"] = types.ModuleType("peers")  # PyTorch is not needed here
import decision_latency
made = decision_latency.with_learner("off", 4.0)
print(json.dumps({"p50_us": made["p50_us"], "p99_us": made["p99_us"]}))
"""),
    "publish": Measure("""
import publish_latency
publish_latency.BATCHES = 8
made = publish_latency.measure()
print(json.dumps({"median_s": made["median_s"]}))
"""),
    "serve": Measure("""
import serve_load
made = serve_load.measure(5000.0, 4.0, 1)["servers"]["generic"]
print(json.dumps({name: made[name] for name in ("p50_ms", "p99_ms", "server_us")}))
"""),
    "train_small": Measure(
        _TRAIN.format(preset="small", settings=_EPOCHS | {"train.games": 64}, iterations=8),
        frozenset({"steps_s"}),
    ),
    "train_seed": Measure(
        _TRAIN.format(preset="seed", settings=_EPOCHS | {"train.games": 16}, iterations=4),
        frozenset({"steps_s"}),
    ),
}


def measured(tree: Path, measure: Measure) -> dict[str, float]:
    """Of one commit, in a fresh interpreter that sees no other source."""
    path = os.pathsep.join([str(tree / "src"), str(tree / "benchmarks")])
    done = subprocess.run(
        [sys.executable, "-c", f"import json\n{measure.code}"],
        cwd=tree, env=os.environ | {"PYTHONPATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{tree}: {measure.code.strip()}\n{done.stderr[-2000:]}")
    made: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return made


def compare(base: Path, names: list[str], pairs: int) -> dict[str, dict[str, list[float]]]:
    """figure -> {"base": values, "new": values}"""
    values: dict[str, dict[str, list[float]]] = {}
    began = time.monotonic()
    for pair in range(pairs):
        for name in names:
            sides = [("base", base), ("new", ROOT)]
            for side, tree in sides if pair % 2 == 0 else sides[::-1]:
                for figure, value in measured(tree, MEASURES[name]).items():
                    both = values.setdefault(f"{name} {figure}", {"base": [], "new": []})
                    both[side].append(value)
        left = (time.monotonic() - began) / (pair + 1) * (pairs - pair - 1)
        print(f"pair {pair + 1} of {pairs}, {left / 60:.0f} min left", file=sys.stderr, flush=True)
    return values


def row(figure: str, both: dict[str, list[float]]) -> dict[str, object]:
    """One line of the table."""
    name, _, unit = figure.partition(" ")
    before, after = float(np.median(both["base"])), float(np.median(both["new"]))
    low, high = np.percentile(both["base"], (25, 75))
    better = before / after if unit in MEASURES[name].higher_is_better else after / before
    return {
        "figure": figure,
        "base": before,
        "new": after,
        "ratio": after / before,
        "base_spread": float(high - low) / before,
        "worse": not unit.startswith("p99") and better > 1.0 + TOLERATED,
        "pairs": len(both["base"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("base", help="a commit")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--only", default=",".join(MEASURES), help=f"of {', '.join(MEASURES)}")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    names = arguments.only.split(",")
    if unknown := [name for name in names if name not in MEASURES]:
        raise SystemExit(f"--only: expected some of {', '.join(MEASURES)}, got {unknown[0]}")
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "base"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), arguments.base], check=True)
        try:
            values = compare(tree, names, arguments.pairs)
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)
    rows = [row(figure, both) for figure, both in values.items()]
    if arguments.json:
        print(json.dumps({"machine": machine.describe("numpy", "jax"), "rows": rows}))
    else:
        print(f"{machine.describe('numpy', 'jax')}; {arguments.pairs} pairs, medians")
        print(f"{'':26}{arguments.base[:9]:>12}{'new':>12}{'ratio':>8}{'spread of base':>16}")
        for one in rows:
            print(
                f"{one['figure']:26}{one['base']:>12.4g}{one['new']:>12.4g}{one['ratio']:>8.3f}"
                f"{one['base_spread']:>16.1%}{'  WORSE' if one['worse'] else ''}"
            )
    sys.exit(any(one["worse"] for one in rows))


if __name__ == "__main__":
    main()
