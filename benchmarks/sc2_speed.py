"""How fast the StarCraft II adapter is: matches a minute in the stand-in, and a step at 200 units.

    python benchmarks/sc2_speed.py [--seconds 60] [--json]

The bot of `understudy new sc2-bot` plays the stand-in in one process, through burnysc2 and its
protocol, with `game_step` 8 and a learner in another process, in mode `learn`; measuring begins
once the learner has published. Then one step of the strategist (sightings, and every eleventh time
features and a decision) is timed in a match that shows some 200 units of ours and 90 of the enemy.

Goals: at least 120 matches a minute, of 20 to 30 decisions; p99 of a step under 1 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

import machine
import numpy as np
from sc2_matches import ACTIONS, NO_PORTS, matches

from understudy import Understudy
from understudy.adapters.sc2.template.bot import LearningBot
from understudy.sc2 import FEATURES, contained, play_async, stand_in

with contained():
    from sc2.data import Race
    from sc2.main import play_from_websocket
    from sc2.player import Bot

MATCHES_PER_MINUTE, STEP_MS = 120.0, 1.0
QUIET = {"report.status_every_s": 0}
_WARM_UP_S = 300.0
_UNITS_STEPS = 4000
_ARMY = 92.0
"""Soldiers on each side: 184 zerglings of ours, 92 marines of the enemy."""


async def throughput(run: Path, seconds: float) -> dict[str, float]:
    """Matches a minute beside a learner that trains."""
    with Understudy.open(
        run, features=FEATURES, actions=ACTIONS, mode="learn", settings=QUIET, seed=1
    ) as mind:
        counts: list[int] = []
        waited = time.monotonic()
        began = cpu = None
        async for bot in matches(mind, first_seed=7_000_000):
            now = time.monotonic()
            if began is None:
                if mind.version:
                    began, cpu = now, time.process_time()
                elif now - waited > _WARM_UP_S:
                    raise SystemExit("the learner published nothing")
                continue
            assert bot.strategist.match is not None
            counts.append(bot.strategist.match.decisions)
            if now - began >= seconds:
                break
        assert began is not None and cpu is not None
        took, busy = time.monotonic() - began, time.process_time() - cpu
        return {
            "matches_per_minute": 60.0 * len(counts) / took,
            "matches": len(counts),
            "decisions_per_match": float(np.mean(counts)),
            "cpu_s_per_match": busy / len(counts),
            "cpu_share": busy / took,
            "versions": mind.version,
        }


class TimedBot(LearningBot):
    """Times the strategist, and commands nothing."""

    def __init__(self, mind: Understudy) -> None:
        super().__init__(mind)
        self.took_ns: list[int] = []
        self.cpu_ns: list[int] = []
        self.shown = 0

    async def on_step(self, iteration: int) -> None:
        self.shown = max(self.shown, len(self.units))
        began, cpu = time.perf_counter_ns(), time.thread_time_ns()
        self.strategist.step(fallback="ECONOMY")
        self.cpu_ns.append(time.thread_time_ns() - cpu)
        self.took_ns.append(time.perf_counter_ns() - began)


async def step_times(run: Path) -> dict[str, float]:
    """p50 and p99 of a step in milliseconds, with a real `BotAI` full of units."""
    scenario = stand_in.Scenario(peaceful=True, army=_ARMY, closes_at=8 * _UNITS_STEPS)
    with Understudy.open(
        run, features=FEATURES, actions=ACTIONS, mode="learn", learner="off", settings=QUIET
    ) as mind:
        bot = TimedBot(mind)
        socket = stand_in.local_socket(scenario)
        game = play_from_websocket(socket, Bot(Race.Zerg, bot), False, NO_PORTS)
        await play_async(game, bot.strategist)
    p50, p99 = np.percentile(np.array(bot.took_ns) / 1e6, (50, 99))
    cpu_p50, cpu_p99 = np.percentile(np.array(bot.cpu_ns) / 1e6, (50, 99))
    return {
        "p50_ms": float(p50),
        "p99_ms": float(p99),
        "cpu_p50_ms": float(cpu_p50),
        "cpu_p99_ms": float(cpu_p99),
        "units": bot.shown,
        "steps": len(bot.took_ns),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    about = machine.describe("numpy", "jax", "burnysc2", "protobuf")
    with tempfile.TemporaryDirectory() as folder:
        steps = asyncio.run(step_times(Path(folder) / "steps"))
        played = asyncio.run(throughput(Path(folder) / "played", asked.seconds))
    held = {
        "matches": played["matches_per_minute"] >= MATCHES_PER_MINUTE,
        "step": steps["p99_ms"] < STEP_MS,
    }
    if asked.json:
        print(json.dumps({"machine": about, "played": played, "steps": steps, "held": held}))
    else:
        print(about)
        print(
            f"{played['matches_per_minute']:.0f} matches a minute ({played['matches']:.0f} of "
            f"{played['decisions_per_match']:.1f} decisions, {played['cpu_s_per_match']:.2f} s of "
            f"CPU each, {played['cpu_share']:.0%} of a core), beside a learner that published "
            f"{played['versions']:.0f} versions; goal {MATCHES_PER_MINUTE:.0f}"
        )
        print(
            f"a step at {steps['units']:.0f} units of ours and {_ARMY:.0f} of the enemy: p50 "
            f"{steps['p50_ms']:.3f} ms, p99 {steps['p99_ms']:.3f} ms (of CPU: "
            f"{steps['cpu_p50_ms']:.3f} and {steps['cpu_p99_ms']:.3f} ms) over "
            f"{steps['steps']:,.0f} steps; goal {STEP_MS:.0f}"
        )
    sys.exit(0 if all(held.values()) else 1)


if __name__ == "__main__":
    main()
