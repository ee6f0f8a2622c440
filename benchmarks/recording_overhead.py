"""What recording matches costs: the same arena with and without it, iteration by iteration.

    python benchmarks/recording_overhead.py [--json]

Arenas that differ in `train.record` alone take turns in one process after an iteration that
compiles; the files of recorded matches are written, as training does. Printed are medians of the
ratios of CPU time and of wall time to the arena that records nothing, and whether all of them
learned the same weights, bit for bit.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import machine
import numpy as np

from understudy.supervise.compile_cache import keep_compiled

keep_compiled()

from understudy.arena.arena import Arena  # noqa: E402
from understudy.arena.mix import parse  # noqa: E402
from understudy.core.clock import SystemClock  # noqa: E402
from understudy.core.config import Config, with_values  # noqa: E402
from understudy.games import catalog  # noqa: E402
from understudy.games.moments import RewardSet  # noqa: E402
from understudy.learner.trainer import Trainer  # noqa: E402
from understudy.match.recordings import MatchRecordings  # noqa: E402
from understudy.policy import presets  # noqa: E402
from understudy.policy.spec import PolicySpec  # noqa: E402
from understudy.registry.run_folder import RunFolder  # noqa: E402
from understudy.telemetry.journal import Journal  # noqa: E402
from understudy.training.recording import RecordingWriter  # noqa: E402

NETWORK = "mlp"
"""The cheapest one, in which recording weighs most."""
ITERATIONS, INTERVAL_STEPS = 24, 200_000
RECORDED = (0, 10, 100)


def arena(record: int) -> Arena:
    """Brawl against every scripted bot, with default settings."""
    settings = {"train.record": record, "train.checkpoint_steps": INTERVAL_STEPS}
    config = with_values(Config(), settings)
    game, bots = catalog.make("brawl"), catalog.bots("brawl")
    weights = catalog.reward_sets("brawl")["default"]
    terms = catalog.terms("brawl")
    made = Arena(
        Trainer(PolicySpec(game.features, game.actions, presets.network(NETWORK)), config.learner),
        config,
        game,
        bots,
        meets_itself=False,
        rewards=RewardSet.of({name: terms[name] for name in weights}),
        measures=RewardSet.of(catalog.measures("brawl")),
        seed=3,
    )
    made.order(parse(",".join(bots), tuple(bots)), np.array([*weights.values()], np.float32))
    return made


def writer(root: Path, one: Arena) -> RecordingWriter:
    """Of a run folder of its own."""
    game = f"brawl {one.plan.game.version}"
    clock = SystemClock()
    folder = RunFolder.open(root, spec=one.plan.spec, config=Config(), clock=clock, game=game)
    return RecordingWriter(folder, Journal(folder.journal, "train", clock))


def measure() -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        return _measure(Path(folder))


def _measure(root: Path) -> dict[str, object]:
    arenas = {record: arena(record) for record in RECORDED}
    writers = {record: writer(root / str(record), one) for record, one in arenas.items()}
    for one in arenas.values():
        one.iterate()
    taken: dict[int, list[tuple[float, float]]] = {record: [] for record in RECORDED}
    for index in range(ITERATIONS):
        for record in RECORDED if index % 2 else RECORDED[::-1]:
            cpu, wall = time.process_time(), time.perf_counter()
            arenas[record].iterate()
            writers[record].write(arenas[record].recorder.take(), version=1, steps=index)
            taken[record].append((time.process_time() - cpu, time.perf_counter() - wall))
    ratios = {
        record: np.median(np.array(times) / np.array(taken[0]), axis=0).tolist()
        for record, times in taken.items()
    }
    learned = {record: one.trainer.snapshot() for record, one in arenas.items()}
    return {
        "machine": machine.describe("jax"),
        "iteration_cpu_s": float(np.median([cpu for cpu, _ in taken[0]])),
        "cpu_ratio": {record: round(cpu, 3) for record, (cpu, _) in ratios.items()},
        "wall_ratio": {record: round(wall, 3) for record, (_, wall) in ratios.items()},
        "matches": {
            record: len(MatchRecordings(root / str(record)).numbers()) for record in RECORDED
        },
        "same_weights": all(learned[record] == learned[0] for record in RECORDED),
    }


def words(
    *,
    iteration_cpu_s: float,
    cpu_ratio: Mapping[int, float],
    wall_ratio: Mapping[int, float],
    matches: Mapping[int, int],
    same_weights: bool,
    **_: object,
) -> str:
    return "\n".join(
        [
            f"an iteration of {NETWORK} takes {iteration_cpu_s:.2f} s of CPU time; with "
            f"train.record in {INTERVAL_STEPS:,} steps, against 0:",
            *(
                f"  {record:>4}: CPU time {cpu_ratio[record]:.3f}, wall time "
                f"{wall_ratio[record]:.3f}, {matches[record]} matches"
                for record in RECORDED
            ),
            f"same weights, bit for bit: {'yes' if same_weights else 'NO'}",
        ]
    )


if __name__ == "__main__":
    machine.tell(__doc__, measure, words)
