"""What a decision costs: everything included, beside PyTorch's forward, and beside a busy learner.

And what it costs a strategist, which streams: goals are a p50 under 0.3 ms for `small` and under
3 ms for `seed`.

python benchmarks/decision_latency.py [--json]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Literal

import machine
import numpy as np
import peers

from understudy import Config, Discrete, Understudy
from understudy.core.config import with_values
from understudy.games import catalog
from understudy.match.live_match import LiveMatch
from understudy.policy.policy import untrained
from understudy.policy.presets import network
from understudy.policy.spec import PolicySpec

GOALS_US = {"small": 300, "seed": 3000}
"""The strategists that are measured, and what the median of their decisions must stay under."""


def play(mind: Understudy, seconds: float) -> np.ndarray:
    """`decide` timed from outside, in microseconds, while matches are played for this long."""
    took: list[int] = []
    space = catalog.make("swarm").actions
    assert isinstance(space, Discrete)
    codes = {name: code for code, name in enumerate(space.names)}
    deadline = time.monotonic() + seconds
    seed = 0
    while time.monotonic() < deadline:
        seed += 1
        live_match = LiveMatch(catalog.make("swarm", difficulty="hard"), seed)
        with mind.match(**live_match.tags) as match:
            while not live_match.over:
                seen, legal = live_match.observe(), live_match.legal()
                began = time.perf_counter_ns()
                action = match.decide(seen, legal=legal)
                took.append(time.perf_counter_ns() - began)
                match.reward(live_match.act(codes[action]))
            match.finish(live_match.outcome())
    return np.array(took) / 1e3


def with_learner(learner: Literal["process", "off"], seconds: float) -> dict[str, float]:
    """p50 and p99 of a session; with a learner, only the part in which it trains."""
    game = catalog.make("swarm")
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        config = with_values(
            Config(), {"report.status_every_s": 0, "report.statistics_every_matches": 0}
        )
        with Understudy.open(
            run, features=game.features, actions=game.actions, mode="learn",
            learner=learner, config=config, seed=1,
        ) as mind:  # fmt: skip
            play(mind, 2.0)
            while learner == "process" and mind.version == 0:
                play(mind, 0.5)  # the learner imports and compiles: not what we measure
            took = play(mind, seconds)
            versions = mind.version
    p50, p99 = np.percentile(took, (50, 99))
    return {"p50_us": p50, "p99_us": p99, "decisions": len(took), "versions": versions}


def strategist(preset: str, seconds: float) -> dict[str, float]:
    """p50 and p99 of one NumPy decision on the brawl's 64 features, after 100 frames of a match."""
    spec = PolicySpec(
        tuple(f"feature_{index}" for index in range(64)),
        Discrete(tuple(f"action_{index}" for index in range(10))),
        network(preset),
    )
    player, rng = untrained(spec, seed=1), np.random.default_rng(1)
    memory = player.begin()
    took: list[int] = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline or len(took) < 200:
        obs = rng.uniform(-1.0, 1.0, (1, 64)).astype(np.float32)
        uniforms = rng.random((1, 1), dtype=np.float32)
        began = time.perf_counter_ns()
        memory = player.act(obs, memory, uniforms=uniforms).memory
        took.append(time.perf_counter_ns() - began)
    p50, p99 = np.percentile(np.array(took[100:]) / 1e3, (50, 99))
    return {"p50_us": p50, "p99_us": p99, "decisions": len(took) - 100}


def measure(seconds: float) -> dict[str, object]:
    """All of it, alternating, so that a slow minute of the machine hits both sides."""
    rounds = [(with_learner("off", seconds), with_learner("process", seconds)) for _ in range(3)]
    alone, beside = ({key: float(np.median([side[key] for side in column])) for key in column[0]}
                     for column in zip(*rounds, strict=True))  # fmt: skip
    peer = json.loads(
        subprocess.run(
            [str(peers.python()), str(Path(__file__).with_name("forward_peer.py"))],
            check=True, capture_output=True, text=True,
        ).stdout
    )  # fmt: skip
    return {
        "alone": alone,
        "beside_learner": beside,
        "p99_ratio": beside["p99_us"] / alone["p99_us"],
        "forward": peer,
        "forward_ratio": peer["ours_us"] / peer["torch_us"],
        "strategist": {preset: strategist(preset, seconds / 2) for preset in GOALS_US},
        "machine": machine.describe("numpy", "jax"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    result = measure(arguments.seconds)
    if arguments.json:
        print(json.dumps(result))
        return
    alone, beside, forward = result["alone"], result["beside_learner"], result["forward"]
    assert isinstance(alone, dict) and isinstance(beside, dict) and isinstance(forward, dict)
    strategists = result["strategist"]
    assert isinstance(strategists, dict)
    print(result["machine"])
    rows = (
        ("a decision, everything included", alone, "goal: p50 within 60 us"),
        ("the same while the learner trains", beside, "goal: p99 at most 2x the p99 above"),
    )
    for name, row, goal in rows:
        print(f"{name:36} p50 {row['p50_us']:6.1f} us   p99 {row['p99_us']:6.1f} us   {goal}")
    print(f"{'ratio of the two p99':36} {result['p99_ratio']:.2f}")
    print(f"{'forward alone, NumPy':36} p50 {forward['ours_us']:6.1f} us")
    name = f"forward alone, PyTorch {forward['torch']} eager"
    print(f"{name:36} p50 {forward['torch_us']:6.1f} us")
    print(f"{'ratio of the two':36} {result['forward_ratio']:.2f}   goal: at most 0.5")
    for preset, goal_us in GOALS_US.items():
        row, name = strategists[preset], f"a decision of preset {preset}"
        print(
            f"{name:36} p50 {row['p50_us']:6.1f} us   p99 {row['p99_us']:6.1f} us   "
            f"goal: p50 under {goal_us} us"
        )


if __name__ == "__main__":
    main()
