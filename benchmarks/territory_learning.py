"""Does it learn? `understudy serve territory` with its learner, played by 20 territories at speed.

    python benchmarks/territory_learning.py [--seeds 5] [--minutes 5] [--speed 600] [--json]

For each seed a new run, from an untrained policy: serve, play over a WebSocket, learn, all on this
machine. The zero line is the scripted queen behind the same gate, on matches that nothing was
learned from. A seed counts when the mean reward of the last 5,000 live decisions passes hers
before the time is over, *and* the version of that moment, frozen, beats her on those matches. No
chunk may have more than 30% of the spawns.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import machine
import numpy as np
import served

from understudy.core.clock import SystemClock
from understudy.core.ops import NUMPY
from understudy.games.territory import BOTS, Territory, tables
from understudy.gates.cost import CostGate
from understudy.gates.decision import judge
from understudy.match.stage import EVALUATION, match_seeds
from understudy.policy.policy import Policy
from understudy.registry.run_folder import RunFolder
from understudy.run.remote_play import RemoteProgress, RemoteSession, play_remote

TERRITORIES, MATCHES, WINDOW = 20, 100, 5_000
MOST_IN_ONE_CHUNK = 0.3
SETTINGS = ("live.messages_per_s=10000",)
"""A client's rate at an accelerated clock; everything else is as a person gets it."""


@dataclass
class Frozen:
    """What somebody is worth on matches that nothing was learned from."""

    mean: float
    error: float
    largest_chunk_share: float
    spawns: float


def frozen(seed: int, policy: Policy | None) -> Frozen:
    """A version as it is served (drawn, and gated); None is the scripted queen, gated alike."""
    game, gate, rng = Territory(), CostGate(threshold=0.0), np.random.default_rng(seed)
    seeds = match_seeds(seed, np.arange(MATCHES), purpose=EVALUATION)
    state = game.start(NUMPY, seeds)
    total, chunks, frames = np.zeros(MATCHES), Counter[int](), game.max_frames
    for frame in range(frames):
        obs, legal = game.observe(NUMPY, state)[0], game.legal(NUMPY, state)[0]
        if policy is None:
            actions = BOTS["queen"].act(NUMPY, obs, seeds, np.full(MATCHES, frame, np.int32)).T
        else:
            uniforms = rng.random((MATCHES, 1), dtype=np.float32)
            memory = policy.begin(MATCHES)  # of a network without any
            actions = policy.act(obs.T, memory, legal=legal.T, uniforms=uniforms).actions
        send = [verdict.send for verdict in judge(gate, obs.T, actions)]
        executed = np.where(send, actions[:, 0], tables.NO_SPAWN).astype(np.int32)
        after = game.step(NUMPY, state, executed[None, None])
        total += game.reward(NUMPY, state, after)[0]
        chunks.update(((executed[executed > 0] - 1) // len(tables.KINDS)).tolist())
        state = after
    spawned = max(chunks.total(), 1)
    return Frozen(
        mean=float(total.mean() / frames),
        error=float(total.std() / frames / np.sqrt(MATCHES)),
        largest_chunk_share=max(chunks.values(), default=0) / spawned,
        spawns=chunks.total() / frames / MATCHES,
    )


class Passed(Exception):
    """The zero line is behind us."""


def learn(seed: int, *, minutes: float, speed: float, goal: float, root: Path) -> dict[str, Any]:
    """One seed: how long it took, if it did, and what the version is worth frozen."""
    run = root / f"seed-{seed}"
    began = time.monotonic()
    told: list[RemoteProgress] = []
    passed_s: float | None = None
    said = 0.0

    def show(progress: RemoteProgress) -> None:
        nonlocal passed_s, said
        told[:] = [progress]
        now = time.monotonic()
        if now - said > 10.0:
            said = now
            print(
                f"seed {seed}  {now - began:5.0f} s  {progress.decisions:>7} decisions  "
                f"version {progress.version:>4}  reward {progress.mean_reward:+.4f}  "
                f"goal {goal:+.4f}  busiest chunk {progress.largest_chunk_share:.0%}",
                file=sys.stderr,
            )
        enough = len(progress.rewards) == WINDOW and progress.version > 0
        if enough and progress.mean_reward > goal:
            passed_s = now - began
            raise Passed

    with served.understudy(run, "territory", "--seed", str(seed), settings=SETTINGS) as server:
        left = minutes - (time.monotonic() - began) / 60.0
        session = RemoteSession(
            url=server.url, territories=TERRITORIES, speed=speed, minutes=left, seed=seed
        )
        with contextlib.suppress(Passed):
            play_remote(session, show=show)
        version = told[0].version
        folder = RunFolder.load(run, SystemClock())
        policy = folder.versions.policy(version) if version else None
    progress = told[0]
    judged = frozen(seed, policy) if policy is not None else None
    return {
        "seed": seed,
        "passed_s": passed_s,
        "version": version,
        "decisions": progress.decisions,
        "live_mean": progress.mean_reward,
        "frozen_mean": None if judged is None else judged.mean,
        "frozen_error": None if judged is None else judged.error,
        "largest_chunk_share": max(
            progress.largest_chunk_share, 0.0 if judged is None else judged.largest_chunk_share
        ),
        "degraded": progress.degraded,
        "refused": progress.refused,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--speed", type=float, default=600.0)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as place:
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
            queen = frozen(seed, None)
            row = learn(
                seed, minutes=arguments.minutes, speed=arguments.speed, goal=queen.mean,
                root=Path(place),
            )  # fmt: skip
            rows.append({**row, "queen_mean": queen.mean, "queen_error": queen.error})
    lines = [f"{'seed':>4}{'passed':>9}{'decisions':>11}{'version':>9}{'queen':>9}{'live':>9}"
             f"{'frozen':>9}{'+-':>8}{'busiest chunk':>15}"]  # fmt: skip
    for row in rows:
        frozen_mean, passed_s = row["frozen_mean"], row["passed_s"]
        ok = passed_s is not None and frozen_mean is not None and frozen_mean > row["queen_mean"]
        share = row["largest_chunk_share"]
        if not ok:
            missed.append(f"seed {row['seed']} did not beat the scripted queen")
        if share > MOST_IN_ONE_CHUNK:
            missed.append(f"seed {row['seed']}: {share:.0%} of spawns in one chunk")
        lines.append(
            f"{row['seed']:>4}{'never' if passed_s is None else f'{passed_s:.0f} s':>9}"
            f"{row['decisions']:>11}{row['version']:>9}{row['queen_mean']:>+9.4f}"
            f"{row['live_mean']:>+9.4f}"
            f"{'-' if frozen_mean is None else f'{frozen_mean:+.4f}':>9}"
            f"{'-' if frozen_mean is None else format(row['frozen_error'], '.4f'):>8}{share:>14.0%}"
        )
    lines.append(f"goal: every seed within {60 * arguments.minutes:.0f} s, no chunk over 30%")
    result = {"machine": machine.describe("numpy", "jax"), "rows": rows}
    served.report(result, lines, missed, as_json=arguments.json)


if __name__ == "__main__":
    main()
