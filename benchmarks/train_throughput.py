"""End-to-end training of preset `seed`: ours beside sb3-contrib's RecurrentPPO, in one run.

    python benchmarks/train_throughput.py [--device cpu|gpu] [--games N] [--iterations N] [--json]

Ours is the whole iteration: game, opponents, rollout and every epoch, without compilation. The peer
(`train_peer.py`) has a game that costs nothing, the same network to within 5% of its parameters
(else the exit code is 1) and the same number of epochs. Its environments, steps, minibatch and
threads, on a GPU TF32, are climbed until it stops gaining, or for `--sweep-minutes` beside the
starting points of `--sweep`; the best counts, and the table says which of the two ended the sweep.
Gradient steps stand beside every figure: larger minibatches are faster and make fewer of them. A
ratio that the peer lost to other programs on the machine is marked as no result (`peer_starved`).
On a machine without network, `--peer-python python3` names an interpreter that has PyTorch;
`train_peer.py` says how to carry the rest there.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import machine
import peers
from flops import flops_per_step, peer_flops_per_step
from peer_sweep import Configuration, Row, configurations, fastest, stopped_gaining

from understudy.core.clock import SystemClock
from understudy.core.config import with_values
from understudy.policy import presets
from understudy.policy.strategist import Strategist
from understudy.registry.run_folder import RunFolder
from understudy.supervise.budget import Budget
from understudy.training import named_configs
from understudy.training.session import TrainProgress, TrainSession
from understudy.training.train import train_agent

PLAYER, ACTIONS = 32, 10
SWEEPS = {
    "cpu": "1x512x64,8x64x256",
    "gpu": "16x512x256,64x128x4096,256x128x16384,256x128x16384+tf32",
}
"""Where the climb starts: environments x steps x minibatch. On two cores each takes about 45 s."""
SWEEP_MINUTES = {"cpu": 15.0, "gpu": 5.0}
ITERATIONS = {"cpu": 1, "gpu": 305}
"""With 512 games and segments of 64 frames: about 2.5 minutes on two cores; on a GPU 10,027,008
steps with the first iteration, which is not timed."""
TEN_MILLION = 10_000_000
NEAR = 0.05
"""By how much the number of parameters may differ."""
STARVED = 0.75
"""Below this share of its threads on a CPU, the peer was slowed by other programs. A busy machine
once left it 0.4 of 2 cores and about a tenth of its speed, which flatters us by as much."""


def peer(
    device: str, *, sweep: str, minutes: float, epochs: int, measured_epochs: int, interpreter: Path
) -> list[Row]:
    """Every configuration of the sweep as `train_peer.py` prints it; its progress goes to stderr.

    A peer that the system ends (out of memory on a CPU) has the configuration that it was at
    marked as failed, and what it measured before still counts.
    """
    command = [
        str(interpreter), str(Path(__file__).with_name("train_peer.py")),
        "--device", "cuda" if device == "gpu" else "cpu", "--sweep", sweep,
        "--sweep-minutes", str(minutes),
        "--epochs", str(epochs), "--measured-epochs", str(measured_epochs),
    ]  # fmt: skip
    rows, at = list[Row](), Row()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            row = json.loads(line)
            if "measuring" in row:
                at = row["measuring"]
            else:
                rows.append(row)
    if child.returncode:
        why = "does not fit: the system ended it" if child.returncode == -9 else "failed"
        rows.append({**at, "failed": f"{why} (exit code {child.returncode})", "aborted": True})
    if fastest(rows) is None:
        raise SystemExit(f"the peer measured nothing: {rows}")
    return rows


def ours(
    *, preset: str, settings: Mapping[str, object], iterations: int, run: Path | None
) -> dict[str, float]:
    """What `understudy train brawl --network ...` does, journal and versions included.

    The first iteration compiles and is left out; `whole_s` has it and the start. A run that is
    kept (`run`) can be judged: no speed counts unless what was trained is also strong.
    """
    config = with_values(named_configs.config(preset), settings)
    ends: list[tuple[float, float, float]] = []

    def show(progress: TrainProgress) -> None:
        now = time.perf_counter(), time.process_time()
        ends.append((*now, progress.metrics.get("gradient_steps", 0.0)))
        if len(ends) > 2 and (len(ends) - 2) % max(1, iterations // 5) == 0:
            done = len(ends) - 2
            left_s = (ends[-1][0] - ends[1][0]) / done * (iterations - done)
            print(f"ours {done} of {iterations} iterations, {left_s:.0f} s left", file=sys.stderr)

    steps = config.train.games * config.train.segment
    began = time.perf_counter()
    # The run lies in a folder of its own, with the note of which run was the latest.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        where = run or Path(folder) / "run"
        session = TrainSession(
            game="brawl", game_options={}, run=where, config=config,
            network=presets.network(preset), budget=Budget(steps=steps * (iterations + 1)),
        )  # fmt: skip
        train_agent(session, show=show)
        whole_s = time.perf_counter() - began
        versions = RunFolder.load(where, SystemClock()).versions
        params = versions.policy(versions.numbers()[-1]).weights.params
    # `show` was called before the first iteration and after each.
    (first, cpu_first, _), (last, cpu_last, _) = ends[1], ends[-1]
    return {
        "steps": steps * iterations,
        "seconds": last - first,
        "steps_s": steps * iterations / (last - first),
        "gradient_steps": sum(gradient_steps for _, _, gradient_steps in ends[2:]),
        "parameters": sum(one.size for one in params.values()),
        "compiled_s": first - ends[0][0],
        "whole_s": whole_s,
        "slowest_s": max(b[0] - a[0] for a, b in pairwise(ends[1:])),
        "cores_used": (cpu_last - cpu_first) / (last - first),
        "games": config.train.games,
        "segment": config.train.segment,
    }


def measure(arguments: argparse.Namespace) -> dict[str, object]:
    """The peer first: once JAX has the GPU, little of its memory is left."""
    device, epochs = arguments.device, arguments.epochs
    network, seed = presets.network(arguments.preset), presets.network("seed")
    if not (isinstance(network, Strategist) and isinstance(seed, Strategist)):
        raise SystemExit(f"--preset: expected small, medium or seed, got {arguments.preset}")
    minutes = arguments.sweep_minutes
    minutes = SWEEP_MINUTES[device] if minutes is None else minutes
    sweep = arguments.sweep or SWEEPS[device]
    list(configurations(sweep))  # a wrong one is an error before anything is started
    swept = peer(
        device, sweep=sweep, minutes=minutes, epochs=epochs,
        measured_epochs=min(arguments.measured_epochs, epochs),
        interpreter=arguments.peer_python or peers.python(),
    )  # fmt: skip
    best = fastest(swept)
    assert best is not None
    before = machine.matrix_flops_s(device)
    mine = ours(
        preset=arguments.preset, settings=_settings(arguments),
        iterations=arguments.iterations or ITERATIONS[device],
        run=arguments.run and arguments.run.resolve(),
    )  # fmt: skip
    rate = max(before, machine.matrix_flops_s(device))
    flops = flops_per_step(network, 2 * PLAYER, ACTIONS, epochs)
    theirs = peer_flops_per_step(seed, 2 * PLAYER, ACTIONS, epochs)
    return {
        "ours_steps_s": mine["steps_s"],
        "peer_steps_s": best["steps_s"],
        "ratio": mine["steps_s"] / best["steps_s"],
        "parameters": mine["parameters"],
        "peer_parameters": best["parameters"],
        "parameters_match": abs(mine["parameters"] / best["parameters"] - 1.0) <= NEAR,
        "peer_starved": device == "cpu" and best["cores_used"] < STARVED * best["torch_threads"],
        "stopped_gaining": minutes > 0.0 and stopped_gaining(swept),
        "gradient_steps_10m": _over_10m(mine),
        "peer_gradient_steps_10m": _over_10m(best),
        "flops_per_step": flops,
        "peer_flops_per_step": theirs,
        "matrix_flops_s": rate,
        "matrix_rate_share": mine["steps_s"] * flops / rate,
        "peer_matrix_rate_share": best["steps_s"] * theirs / rate,
        "epochs": epochs,
        "preset": arguments.preset,
        "ours": mine,
        "peer": best,
        "sweep": swept,
        "device": machine.accelerator(),
        "machine": machine.describe("numpy", "jax"),
    }


def _settings(arguments: argparse.Namespace) -> dict[str, object]:
    """What the flags change in the settings that the preset comes with; epochs never stop early."""
    changed = {"train.games": arguments.games, "train.opponents": arguments.opponents}
    fixed = {"learner.epochs": arguments.epochs, "learner.samples_per_insert": arguments.epochs}
    return fixed | {"learner.kl_stop": 0.0} | {k: v for k, v in changed.items() if v is not None}


def _over_10m(run: dict[str, float]) -> int:
    return round(run["gradient_steps"] / run["steps"] * TEN_MILLION)


def table(result: dict[str, object]) -> str:
    """The figures for people."""
    swept, mine, best = result["sweep"], result["ours"], result["peer"]
    assert isinstance(swept, list) and isinstance(mine, dict) and isinstance(best, dict)
    lines = [
        f"{result['machine']}, {result['device']}",
        f"{'':47} {'':>12} {'gradient steps':>14} {'':>9} {'':>9} {'cores':>6} {'ours':>9}",
        f"{'':47} {'steps/s':>12} {'in 10M steps':>14} {'rollout':>9} {'update':>9} {'used':>6} "
        f"{'is':>9}",
        f"{_named(mine):47} {mine['steps_s']:12,.1f} {_over_10m(mine):14,}",
        f"sb3-contrib {best['sb3_contrib']}, PyTorch {best['torch']}",
    ]
    for row in swept:
        name = "  " + str(Configuration(*(row[key] for key in Configuration._fields)))
        if "failed" in row:
            lines.append(f"{name:47} {row['failed']}")
            continue
        lines.append(
            f"{name:47} {row['steps_s']:12,.2f} {_over_10m(row):14,} {row['rollout_s']:8.1f}s "
            f"{row['update_s']:8.1f}s {row['cores_used']:6.1f} "
            f"{mine['steps_s'] / row['steps_s']:8,.1f}x{' <- best' if row is best else ''}"
        )
    if best["measured_epochs"] < best["epochs"]:
        lines.append(f"  (ran {best['measured_epochs']} of its {best['epochs']} equal epochs)")
    lines.append(
        "the sweep ended because no neighbour of the best gains more than 5%"
        if result["stopped_gaining"]
        else "the sweep did not reach its end: the peer may still gain (--sweep-minutes)"
    )
    width = 34
    lines += [
        f"{'':{width}} {'ours':>12} {'peer':>12}",
        f"{'steps/s, end to end':{width}} {mine['steps_s']:12,.1f} {best['steps_s']:12,.2f}",
        f"{'parameters':{width}} {mine['parameters']:12,} {best['parameters']:12,}",
        f"{'gradient steps in 10M steps':{width}} {_over_10m(mine):12,} {_over_10m(best):12,}",
        f"{'GFLOP a step':{width}} {_giga(result, 'flops_per_step'):12.2f} "
        f"{_giga(result, 'peer_flops_per_step'):12.2f}",
        f"{'share of the matrix rate':{width}} {result['matrix_rate_share']:12.1%} "
        f"{result['peer_matrix_rate_share']:12.1%}   of {_giga(result, 'matrix_flops_s'):,.0f} "
        "GFLOP/s",
        f"{'ratio to the best of the sweep':{width}} {result['ratio']:11.1f}x",
    ]
    if not result["parameters_match"]:
        lines.append(f"the networks differ by more than {NEAR:.0%}: the ratio says nothing")
    if result["peer_starved"]:
        lines.append(
            f"the peer got {best['cores_used']:.1f} cores for its {best['torch_threads']} threads: "
            "other programs were running, and the ratio is no result; measure on a quiet machine"
        )
    return "\n".join(lines)


def _named(mine: dict[str, float]) -> str:
    return f"ours, {mine['games']} games x {mine['segment']} steps"


def _giga(result: dict[str, object], key: str) -> float:
    value = result[key]
    assert isinstance(value, float)
    return value / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", default="seed")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--games", type=int, help="side by side (default: the preset's)")
    parser.add_argument("--opponents", help="as in `understudy train` (default: the preset's)")
    parser.add_argument("--iterations", type=int, help=f"after compilation (default: {ITERATIONS})")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--sweep", help=f"where the peer's climb starts (default: {SWEEPS})")
    parser.add_argument(
        "--sweep-minutes", type=float,
        help=f"of the peer's climb and its starts; 0: the starts alone (default: {SWEEP_MINUTES})",
    )  # fmt: skip
    parser.add_argument("--measured-epochs", type=int, default=2, help="of the peer; counts all")
    parser.add_argument("--peer-python", type=Path, help="default: that of .venv-bench")
    parser.add_argument("--run", type=Path, help="keep ours here, to judge it with `eval`")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.device == "cpu":
        os.environ["JAX_PLATFORMS"] = "cpu"
    result = measure(arguments)
    print(json.dumps(result) if arguments.json else table(result))
    if not result["parameters_match"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
