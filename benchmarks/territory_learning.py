"""Does it learn? `understudy serve territory` with its learner, played by 20 territories at speed.

    python benchmarks/territory_learning.py [--seeds 5] [--minutes 2] [--set KEY=VALUE] [--json]

For each seed a new run, from an untrained policy: serve, play over a WebSocket, learn, all on this
machine. There are three zero lines, on matches that nothing was learned from: the scripted queen as
she plays, the queen behind the same gate, and the untrained policy behind it (which beats the queen
already, so that she alone would prove nothing). A seed counts when its last version, frozen, beats
all three on those matches by more than two standard errors. No chunk may have more than 30% of the
spawns. `passed` is when the mean reward of the last 5,000 live decisions first lay above all three.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import machine
import numpy as np
import served

from understudy.adapters.territory.cost_gate import CostGate
from understudy.adapters.territory.remote_play import RemoteProgress, RemoteSession, play_remote
from understudy.core.clock import SystemClock
from understudy.core.config import Config
from understudy.core.ops import NUMPY
from understudy.games.territory import BOTS, Territory, tables
from understudy.gates.decision import DecisionGate, OpenGate, judge
from understudy.match.live_match import EVALUATION, match_seeds
from understudy.policy.policy import Policy, untrained
from understudy.policy.presets import network
from understudy.policy.spec import PolicySpec
from understudy.registry.run_folder import RunFolder

TERRITORIES, MATCHES, WINDOW = 20, 100, 5_000
MOST_IN_ONE_CHUNK = 0.3
GATE = CostGate(threshold=Config().live.threshold)
SETTINGS = ("live.messages_per_s=10000",)
"""A client's rate at an accelerated clock; everything else is as a person gets it."""


@dataclass
class Frozen:
    """What somebody is worth on matches that nothing was learned from."""

    mean: float
    error: float
    largest_chunk_share: float
    spawns: float


def frozen(
    seed: int,
    policy: Policy | None,
    *,
    gate: DecisionGate,
    sampled: bool = True,
    matches: int = MATCHES,
) -> Frozen:
    """A policy that draws, as it is served, or takes the likeliest action; None is the scripted
    queen."""
    game, rng = Territory(), np.random.default_rng(seed)
    seeds = match_seeds(seed, np.arange(matches), purpose=EVALUATION)
    state = game.start(NUMPY, seeds)
    total, chunks, frames = np.zeros(matches), Counter[int](), game.max_frames
    for frame in range(frames):
        obs, legal = game.observe(NUMPY, state)[0], game.legal(NUMPY, state)[0]
        if policy is None:
            actions = BOTS["queen"].act(NUMPY, obs, seeds, np.full(matches, frame, np.int32)).T
        else:
            uniforms = rng.random((matches, 1), dtype=np.float32)
            memory = policy.begin(matches)  # of a network without any
            actions = policy.act(
                obs.T, memory, legal=legal.T, uniforms=uniforms if sampled else None
            ).actions
        send = [verdict.send for verdict in judge(gate, obs.T, actions)]
        executed = np.where(send, actions[:, 0], tables.NO_SPAWN).astype(np.int32)
        after = game.step(NUMPY, state, executed[None, None])
        total += game.reward(NUMPY, state, after)[0]
        chunks.update(tables.spawn_of(executed[executed > 0])[0].tolist())
        state = after
    spawned = max(chunks.total(), 1)
    return Frozen(
        mean=float(total.mean() / frames),
        error=float(total.std() / frames / np.sqrt(matches)),
        largest_chunk_share=max(chunks.values(), default=0) / spawned,
        spawns=chunks.total() / frames / matches,
    )


def fresh(seed: int) -> Policy:
    """What a server begins with."""
    game = Territory()
    return untrained(PolicySpec(game.features, game.actions, network("pointer")), seed)


def learn(
    seed: int,
    *,
    minutes: float,
    speed: float,
    goal: float,
    root: Path,
    settings: Sequence[str] = (),
) -> dict[str, Any]:
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
        if enough and passed_s is None and progress.mean_reward > goal:
            passed_s = now - began

    with served.understudy(
        run, "territory", "--seed", str(seed), settings=(*SETTINGS, *settings)
    ) as server:
        left = minutes - (time.monotonic() - began) / 60.0
        session = RemoteSession(
            url=server.url, territories=TERRITORIES, speed=speed, minutes=left, seed=seed
        )
        play_remote(session, show=show)
        version = told[0].version
        folder = RunFolder.load(run, SystemClock())
        policy = folder.versions.policy(version) if version else None
    progress = told[0]
    judged = frozen(seed, policy, gate=GATE) if policy is not None else None
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
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--speed", type=float, default=600.0)
    parser.add_argument("--set", action="append", default=[], help="a setting of the server")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as place:
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
            zero = {
                "queen": frozen(seed, None, gate=OpenGate()).mean,
                "gated": frozen(seed, None, gate=GATE).mean,
                "untrained": frozen(seed, fresh(seed), gate=GATE).mean,
            }
            row = learn(
                seed, minutes=arguments.minutes, speed=arguments.speed, goal=max(zero.values()),
                root=Path(place), settings=arguments.set,
            )  # fmt: skip
            rows.append({**row, **zero, "goal": max(zero.values())})
    lines = [
        f"{'seed':>4}{'passed':>9}{'decisions':>11}{'version':>9}{'queen':>9}{'gated':>9}"
             f"{'untrained':>11}{'live':>9}{'frozen':>9}{'+-':>8}{'busiest chunk':>15}"
    ]  # fmt: skip
    for row in rows:
        frozen_mean, passed_s = row["frozen_mean"], row["passed_s"]
        ok = frozen_mean is not None and frozen_mean - 2 * row["frozen_error"] > row["goal"]
        share = row["largest_chunk_share"]
        if not ok:
            missed.append(f"seed {row['seed']} did not beat all zero lines")
        if share > MOST_IN_ONE_CHUNK:
            missed.append(f"seed {row['seed']}: {share:.0%} of spawns in one chunk")
        lines.append(
            f"{row['seed']:>4}{'never' if passed_s is None else f'{passed_s:.0f} s':>9}"
            f"{row['decisions']:>11}{row['version']:>9}{row['queen']:>+9.4f}"
            f"{row['gated']:>+9.4f}{row['untrained']:>+11.4f}{row['live_mean']:>+9.4f}"
            f"{'-' if frozen_mean is None else f'{frozen_mean:+.4f}':>9}"
            f"{'-' if frozen_mean is None else format(row['frozen_error'], '.4f'):>8}{share:>14.0%}"
        )
    lines.append(f"goal: every seed within {60 * arguments.minutes:.0f} s, no chunk over 30%")
    result = {"machine": machine.describe("numpy", "jax"), "rows": rows}
    served.report(result, lines, missed, as_json=arguments.json)


if __name__ == "__main__":
    main()
