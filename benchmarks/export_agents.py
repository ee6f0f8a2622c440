"""Exported agents: the same actions as their runs over whole matches, as fast, and loaded quickly.

Every kind of network plays whole matches; in each frame the file and the policy of the run choose,
the likeliest action and one drawn with the same uniforms. Goals: all actions are equal, `act` takes
at most 1.2 times as long as ours, and a file of at most 8 MB loads in under 200 ms beyond NumPy.
Times are CPU time with one maths thread, so that other programs on the machine hardly count.

python benchmarks/export_agents.py [--matches 100] [--large-matches 10] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy: else its threads are what is timed

import gymnasium
import machine
import numpy as np

from understudy.adapters.gymnasium.spaces import SpaceTranslator
from understudy.agents.agent import PolicyAgent
from understudy.agents.exported import ExportedAgent, load_exported
from understudy.agents.module_file import AgentSource, module_text, plain_agent
from understudy.core import chance
from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY
from understudy.games import catalog
from understudy.match.live_match import EVALUATION, match_seeds
from understudy.policy import weights as weight_files
from understudy.policy.policy import Policy
from understudy.policy.presets import network
from understudy.policy.spec import PolicySpec
from understudy.policy.weights import Weights

PRESETS = ("mlp", "decision-transformer", "small", "medium", "seed", "pointer", "numbers")
LARGE = ("medium", "seed")
"""Networks of a kind that a smaller one shows as well: fewer matches of them."""
MOST_RATIO, MOST_LOAD_MS, LOADED_MB = 1.2, 200.0, 8.0
_LOAD = """
import sys, time
import numpy
sys.path.insert(0, {folder!r})
began = time.process_time()
from agent import Agent
Agent()
print(1e3 * (time.process_time() - began))
"""


@dataclass(frozen=True)
class Row:
    network: str
    game: str
    matches: int
    decisions: int
    equal_likeliest: int
    equal_drawn: int
    ours_us: float
    file_us: float
    megabytes: float
    load_ms: float

    @property
    def ratio(self) -> float:
        return self.file_us / self.ours_us

    @property
    def met(self) -> bool:
        equal = self.equal_likeliest == self.equal_drawn == self.decisions
        quick = self.load_ms < MOST_LOAD_MS or self.megabytes > LOADED_MB
        return equal and quick and self.ratio <= MOST_RATIO


def lively(spec: PolicySpec, seed: int) -> Policy:
    """Parameters away from their start, so that choices differ and depend on every part. They are
    read as those of a run are: where arrays lie in memory changes the time of a large network by
    several percent."""
    rng = np.random.default_rng(seed)
    fresh = spec.network.init(rng, len(spec.features), spec.actions.options)
    params = {
        name: (value + 0.05 * rng.standard_normal(value.shape)).astype(np.float32)
        for name, value in fresh.items()
    }
    zeros, ones = (np.full(len(spec.features), one, np.float32) for one in (0.0, 1.0))
    made = weight_files.encode(Weights(params, zeros, ones, np.float32(1.0)))
    return Policy(spec, weight_files.decode(spec, made, what="parameters"), 1)


class Comparison:
    """The agents of the run and of its file, asked the same in each frame of so many matches."""

    def __init__(self, policy: Policy, exported: ExportedAgent, matches: int) -> None:
        self._pairs = [
            [
                (PolicyAgent(policy, greedy=greedy), exported.agent(greedy=greedy))
                for _ in range(matches)
            ]
            for greedy in (True, False)
        ]
        self._rng = np.random.default_rng(2)
        self._parts = len(policy.spec.actions.parts)
        self.decisions = 0
        self.equal = [0, 0]
        """Likeliest, drawn."""
        self.took: tuple[list[int], list[int]] = ([], [])
        """Nanoseconds of CPU time: ours, the file's."""

    def choose(self, match: int, features: NDArray, legal: NDArray | None) -> Any:
        """What our agent draws."""
        actions: list[Any] = [None, None]
        uniforms = self._rng.random(self._parts, dtype=np.float32)
        for kind, drawn in enumerate((None, uniforms)):
            for which in (0, 1) if self.decisions % 2 else (1, 0):
                agent = self._pairs[kind][match][which]
                began = time.thread_time_ns()
                actions[which] = agent.act(features, legal=legal, uniforms=drawn)
                self.took[which].append(time.thread_time_ns() - began)
            self.equal[kind] += bool(np.array_equal(*actions))
        self.decisions += 1
        return actions[0]


def play_game(name: str, comparison: Comparison, matches: int) -> None:
    """All matches side by side; every agent still decides alone. `based` is the opponent."""
    game = catalog.make(name)
    seeds = match_seeds(0, np.arange(matches), purpose=EVALUATION)
    state, frame, bot = game.start(NUMPY, seeds), 0, catalog.bots(name).get("based")
    actions = np.zeros((game.players, len(game.actions.parts), matches), np.int32)
    while not (over := game.over(NUMPY, state)).all():
        obs, legal = game.observe(NUMPY, state), game.legal(NUMPY, state)
        for match in np.flatnonzero(~over).tolist():
            actions[0, :, match] = comparison.choose(match, obs[0, :, match], legal[0, :, match])
        if game.players == 2:
            assert bot is not None
            key = chance.side_key(NUMPY, seeds, 1)
            actions[1] = bot.act(NUMPY, obs[1], key, np.full(matches, frame, np.int32))
        state, frame = game.step(NUMPY, state, actions), frame + 1


def play_environment(env: gymnasium.Env[Any, Any], comparison: Comparison, matches: int) -> None:
    """One match after the other."""
    for match in range(matches):
        obs, _ = env.reset(seed=match)
        over = False
        while not over:
            action = comparison.choose(match, np.asarray(obs, np.float32), None)
            obs, _, ended, cut, _ = env.step(action)
            over = ended or cut


def compared(preset: str, matches: int, folder: Path) -> Row:
    env = gymnasium.make("Pendulum-v1") if preset == "numbers" else None
    name = "territory" if preset == "pointer" else "brawl"
    if env is not None:
        name, translator = "Pendulum-v1", SpaceTranslator(env.observation_space, env.action_space)
        spec = PolicySpec(translator.features, translator.actions, network("mlp"))
    else:
        game = catalog.make(name)
        spec = PolicySpec(game.features, game.actions, network(preset))
    policy = lively(spec, seed=1)
    path = folder / "agent.py"
    text = module_text(policy, AgentSource("run", name), plain_agent(greedy=False))
    path.write_text(text, encoding="utf-8")
    comparison = Comparison(policy, load_exported(path), matches)
    if env is not None:
        play_environment(env, comparison, matches)
    else:
        play_game(name, comparison, matches)
    ours, theirs = (statistics.median(one) / 1e3 for one in comparison.took)
    return Row(
        network=preset,
        game=name,
        matches=matches,
        decisions=comparison.decisions,
        equal_likeliest=comparison.equal[0],
        equal_drawn=comparison.equal[1],
        ours_us=ours,
        file_us=theirs,
        megabytes=path.stat().st_size / 1e6,
        load_ms=load_ms(folder),
    )


def load_ms(folder: Path) -> float:
    """From `import agent` to an agent that can act, in a new process that has NumPy already.

    CPU time of one thread: what a clock shows on a machine that does nothing else.
    """
    command = [sys.executable, "-B", "-c", _LOAD.format(folder=str(folder))]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(5)]
    return statistics.median(float(one.stdout) for one in runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matches", type=int, default=100)
    parser.add_argument("--large-matches", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.json:
        print(machine.describe("numpy"))
    rows = []
    for preset in PRESETS:
        matches = options.large_matches if preset in LARGE else options.matches
        with tempfile.TemporaryDirectory() as folder:
            rows.append(compared(preset, matches, Path(folder)))
        if not options.json:
            show(rows[-1])
    if options.json:
        print(json.dumps([{**asdict(row), "ratio": row.ratio, "met": row.met} for row in rows]))
    if not all(row.met for row in rows):
        sys.exit("a goal was missed")


def show(row: Row) -> None:
    print(
        f"{row.network:>20} in {row.game:<12} {row.matches:>4} matches, {row.decisions:>7,} "
        f"decisions: equal {row.equal_likeliest / row.decisions:.2%} likeliest, "
        f"{row.equal_drawn / row.decisions:.2%} drawn; act {row.file_us:.0f} us v "
        f"{row.ours_us:.0f} us ours ({row.ratio:.2f}x); {row.megabytes:.1f} MB loads in "
        f"{row.load_ms:.0f} ms "
        f"[{'met' if row.met else 'MISSED'}]",
        flush=True,
    )


if __name__ == "__main__":
    main()
