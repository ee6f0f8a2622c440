"""The tournament's stand-in: how fast it is, and how well `train ai2 --config tournament` learns.

    python benchmarks/tournament_stand_in.py [--speed] [--first-seed 101] [--seeds 2] [--minutes 45]
                                                [--json]

Speed: frames a second of one process, with random keys on both sides: the stand-in by itself, and
behind the pipe of the adapter, with one and with `DECISION_FRAMES` frames a decision. `--speed`
measures this alone.

Learning: for each seed a new run with two worker processes and the league, as a person starts it;
after `--minutes`, and after as many again, frozen matches against the tournament's `based`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import machine
import numpy as np

from understudy.adapters.ai2.env import SIDES, parallel_env
from understudy.adapters.ai2.layout import DECISION_FRAMES, KEYS
from understudy.adapters.ai2.stand_in import write_stand_in

FRAMES, MATCHES, WORKERS = 40_000, 200, 2
GOALS = (0.75, 0.9)
"""Win rates against `based` after the first and the second half."""
LEAST_FRAMES_S = 5_000


def alone(home: Path) -> float:
    """Frames a second of the stand-in in a process of its own, without an adapter."""
    script = (
        "import sys, time, random, io, contextlib\n"
        "import numpy as np\n"
        "from environment.environment import WarehouseBrawl\n"
        f"keys = np.random.default_rng(0).random(({FRAMES}, 2, {len(KEYS)}))\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        "    env = WarehouseBrawl(train_mode=True)\n"
        "    began = time.perf_counter()\n"
        "    for one, two in keys:\n"
        "        _, _, terminated, truncated, _ = env.step({0: one, 1: two})\n"
        "        if terminated or truncated:\n"
        "            env.reset()\n"
        "    took = time.perf_counter() - began\n"
        "print(len(keys) / took)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=home, capture_output=True, check=True, text=True
    )
    return float(done.stdout)


def behind_a_pipe(home: Path, frames: int) -> float:
    """Frames a second of one game through the adapter."""
    env = parallel_env(home=home, frames=frames)
    env.reset(seed=1)
    keys = np.random.default_rng(0).integers(0, 2, (FRAMES // 4, 2, len(KEYS)), dtype=np.int8)
    played, began = 0, time.perf_counter()
    for both in keys:
        if not env.agents:
            env.reset()
        env.step(dict(zip(SIDES, both, strict=True)))
        played += frames
    took = time.perf_counter() - began
    env.close()
    return played / took


def trained(home: Path, run: Path, seed: int, minutes: float) -> dict[str, Any]:
    """One session of a run, from its beginning or from where it is; the JSON that it prints."""
    command = [
        *(sys.executable, "-m", "understudy", "train", "ai2", "--option", f"home={home}"),
        *("--config", "tournament", "--workers", str(WORKERS), "--minutes", str(minutes)),
        *("--seed", str(seed), "--run", str(run), "--eval", str(MATCHES), "--json"),
        *(["--resume"] if run.exists() else []),
    ]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--first-seed", type=int, default=101)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=45.0)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    result: dict[str, Any] = {"machine": machine.describe("numpy", "jax", "gymnasium")}
    failed = []
    first = arguments.first_seed
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "stand_in"
        write_stand_in(home)
        speeds = {
            "alone": alone(home),
            "pipe, 1 frame": behind_a_pipe(home, 1),
            f"pipe, {DECISION_FRAMES} frames": behind_a_pipe(home, DECISION_FRAMES),
        }
        result["frames_s"] = speeds
        if speeds["alone"] < LEAST_FRAMES_S:
            failed.append(f"the stand-in plays fewer than {LEAST_FRAMES_S} frames a second")
        if not arguments.json:
            print(result["machine"])
            print("".join(f"\n{name:16} {one:10,.0f} frames/s" for name, one in speeds.items()))
        for seed in [] if arguments.speed else range(first, first + arguments.seeds):
            run = Path(folder) / f"seed-{seed}"
            for half, goal in enumerate(GOALS, start=1):
                summary = trained(home, run, seed, arguments.minutes)
                based = summary["eval"]["opponents"]["based"]
                row = {"seed": seed, "minutes": half * arguments.minutes, "goal": goal} | {
                    key: summary[key] for key in ("steps", "matches", "steps_s", "stage")
                }
                result.setdefault("learning", []).append(row | {"based": based})
                if based["win_rate"] < goal:
                    failed.append(f"seed {seed}: {based['win_rate']:.1%} v based, under {goal:.0%}")
                if not arguments.json:
                    low, high = based["interval"]
                    print(
                        f"seed {seed}, {row['minutes']:g} minutes, {row['steps']:,} decisions "
                        f"({row['steps_s']:,.0f} a second), stage {row['stage']}: "
                        f"{based['win_rate']:.1%} v based ({low:.1%} to {high:.1%})",
                        flush=True,
                    )
    if arguments.json:
        print(json.dumps(result))
    if failed:
        sys.exit("\n".join(failed))


if __name__ == "__main__":
    main()
