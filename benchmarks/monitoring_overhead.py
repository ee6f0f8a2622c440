"""What monitoring costs: the same training with and without its tables and curves, in one run.

    python benchmarks/monitoring_overhead.py [--json]

Sessions with `monitor.csv` on and off take turns after one that compiles. Compared is the process
CPU time and the wall time of all iterations but the first; the picture at the end is apart. What an
iteration costs alone is measured on events of a busy league: ten opponents, twelve reward terms,
ten matches that ended. A session of seconds cannot tell a tenth of a percent from noise; that
second table can.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import machine
import numpy as np

from understudy.core.clock import SystemClock
from understudy.core.config import MonitorConfig, with_values
from understudy.core.spaces import Discrete
from understudy.policy import presets
from understudy.policy.mlp import Mlp
from understudy.policy.spec import PolicySpec
from understudy.registry.run_folder import RunFolder
from understudy.supervise.budget import Budget
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Entry, Journal
from understudy.telemetry.training_log import TrainingLog
from understudy.training import named_configs
from understudy.training.monitoring import Monitoring
from understudy.training.session import TrainProgress, TrainSession
from understudy.training.train import train_agent

PAIRS, ITERATIONS = 3, 12
SETTINGS = {"train.games": 64, "train.segment": 64, "monitor.benchmark_steps": 0}
EVENTS, ITERATION_S = 2_000, 0.17
"""Of the second table; so long is an iteration on a GPU, hence rows are as often as there."""
TYPICAL_S = {"two cores": 1.2, "one H200": 0.17}
OPPONENTS, TERMS, ENDED = 10, 12, 10


def session(root: Path, *, csv: bool) -> tuple[float, float]:
    """CPU and wall seconds of the iterations after the first."""
    config = with_values(named_configs.config("small"), {**SETTINGS, "monitor.csv": csv})
    steps = config.train.games * config.train.segment * (ITERATIONS + 1)
    moments: list[tuple[float, float]] = []

    def show(_: TrainProgress) -> None:
        moments.append((time.process_time(), time.perf_counter()))

    train_agent(
        TrainSession(
            game="brawl", game_options={}, run=root, network=presets.network("small"),
            config=config, budget=Budget(steps=steps),
        ),
        show=show,
    )  # fmt: skip
    (cpu, wall), (cpu_end, wall_end) = moments[1], moments[-1]  # [0] is before the first
    return cpu_end - cpu, wall_end - wall


def told() -> Iterator[ev.Event]:
    """The events of an iteration in a league, over and over."""
    rng = np.random.default_rng(0)
    names = ["constant", "based", "random", *(f"step-{65536 * i}" for i in range(1, 8))]
    for i in range(1, EVENTS + 1):
        terms = rng.integers(-65536, 65536, (OPPONENTS, TERMS)) / 65536
        yield ev.BatchTrained(
            matches=ENDED, replayed=0, steps=16384, seconds=ITERATION_S, loss=0.1,
            policy_loss=-0.01, value_loss=0.1, entropy=2.0, kl=0.01, explained_variance=0.8,
            behaviour_kl=0.0, behaviour_kl_max=0.0, clip_share=0.1, gradient_norm=0.3,
            learning_rate=5e-4, samples_per_insert=3.0,
        )  # fmt: skip
        yield ev.MatchesTrained(
            steps=16384 * i,
            stage="3 league",
            results=dict.fromkeys(names, (1, 1, 0, 0)),
            returns={name: float(terms[j].sum()) for j, name in enumerate(names)},
            terms={
                name: {f"term {k}": float(x) for k, x in enumerate(terms[j])}
                for j, name in enumerate(names)
            },
            measures={
                name: {"damage_dealt": 90.5, "damage_taken": 60.5, "knockouts": 2.0, "falls": 1.0}
                for name in names
            },
            ended=[(name, 1, 1400, float(terms[j].sum())) for j, name in enumerate(names)],
        )
        yield ev.LearnerRated(steps=16384 * i, mu=25.0, sigma=1.0)
        yield ev.StrategyMeasured(
            steps=16384 * i, latent_mean=0.1, latent_spread=0.5, attention_entropy=3.0, drift=0.1,
            by_opponent=dict.fromkeys(names, (0.1, 0.2, 0.3)),
        )  # fmt: skip


def alone(root: Path) -> dict[str, float]:
    """CPU microseconds an iteration of each reader of its events."""
    spec = PolicySpec(("a",), Discrete(("x", "y")), Mlp())
    clock = SystemClock()
    folder = RunFolder.open(root, spec=spec, config=None, clock=clock, game="brawl 1")
    start = folder.identity.created_at
    events = list(told())
    entries = [
        Entry(start + ITERATION_S * (index // 4), "train", event)
        for index, event in enumerate(events)
    ]
    journal = Journal(folder.journal, "train", clock)
    log = TrainingLog(folder.logs / "training.log")
    tables = Monitoring(folder, MonitorConfig(), at_steps=0, clock=clock)
    board = Monitoring(folder, MonitorConfig(csv=False, tensorboard=True), at_steps=0, clock=clock)
    costs = {
        "journal": _cost(lambda entry: journal.write(entry.e), entries),
        "training log": _cost(log.add, entries),
        "tables": _cost(tables.add, entries),
        "TensorBoard (optional)": _cost(board.add, entries),
    }
    began = time.perf_counter()
    tables.close()
    board.close()
    return {**costs, "last picture, once": 1e6 * (time.perf_counter() - began)}


def _cost(read: Callable[[Entry], None], entries: list[Entry]) -> float:
    began = time.process_time()
    for entry in entries:
        read(entry)
    return 1e6 * (time.process_time() - began) / EVENTS


def measure() -> dict[str, object]:
    taken: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    with tempfile.TemporaryDirectory() as folder:
        session(Path(folder) / "compiles", csv=True)
        for pair in range(PAIRS):
            for csv in (True, False) if pair % 2 else (False, True):
                taken[csv].append(session(Path(folder) / f"{pair}-{csv}", csv=csv))
        costs = alone(Path(folder) / "alone")
    ratios = {
        what: [with_[i] / without[i] for with_, without in zip(*taken.values(), strict=True)]
        for i, what in enumerate(("cpu", "wall"))
    }
    return {
        "machine": machine.describe("jax", "matplotlib"),
        "ratios": ratios,
        "microseconds": costs,
    }


def words(
    *, ratios: Mapping[str, list[float]], microseconds: Mapping[str, float], **_: object
) -> str:
    lines = [
        f"training with monitoring over without, {what} time: {statistics.median(all_):.3f} "
        f"({min(all_):.3f} to {max(all_):.3f} in {len(all_)} pairs of {ITERATIONS} iterations)"
        for what, all_ in ratios.items()
    ]
    lines.append("\nCPU time of an iteration's events alone:")
    for name, us in microseconds.items():
        if name.endswith("once"):
            lines.append(f"  {name:<24}{us / 1e6:7.2f} s")
            continue
        shares = ", ".join(
            f"{us / (1e6 * seconds):.3%} of {where} ({seconds} s)"
            for where, seconds in TYPICAL_S.items()
        )
        lines.append(f"  {name:<24}{us:7.0f} us   {shares}")
    return "\n".join(lines)


if __name__ == "__main__":
    machine.tell(__doc__, measure, words)
