"""Forks a StarCraft II bot, its game (the stand-in) and a learner, and kills them with SIGKILL.

    sc2_kill_children.py ROOT KILLS SEED

Each process is started again when it was killed. The bot plays over a socket, through burnysc2, and
notes the name of each match once it is kept: also of those that ended with the game's death. One
process imports everything once and forks, because importing burnysc2 takes seconds. The trainer is
the toy of the other kill tests; nothing here may import JAX.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import random
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import aiohttp
import numpy as np
from adapters.sc2.matches import NO_PORTS, STRATEGIES, PassiveBot

from understudy import Understudy
from understudy.core.clock import SystemClock
from understudy.core.config import Config
from understudy.core.spaces import Discrete
from understudy.policy import weights as weight_files
from understudy.policy.mlp import Mlp
from understudy.policy.spec import PolicySpec
from understudy.registry.run_folder import RunFolder
from understudy.sc2 import FEATURES, contained, play_async, stand_in
from walk.kill_children import fork, wait
from walk.toys import Toy, learner, settings, work_to_the_end

with contained():
    from sc2.data import Race
    from sc2.main import play_from_websocket
    from sc2.player import Bot

SPEC = PolicySpec(FEATURES, Discrete(STRATEGIES), Mlp(widths=(4,)))
CONFIG = settings(
    learner__publish_interval_s=0.05,
    learner__batch_matches=3,
    learner__replay_matches=2,
    learner__replay_capacity=10,
    report__status_every_s=0,
)
_LONGEST_S = 0.9
"""Between two kills."""


class Sc2Toy(Toy):
    """The toy, with weights of the fifteen features."""

    def __init__(self, config: Config, slow_s: float = 0.0) -> None:
        super().__init__(config, meet=lambda ids: time.sleep(slow_s))
        fresh = weight_files.fresh(SPEC, np.random.default_rng(0))
        self._weights = weight_files.encode(fresh)


def open_run(root: Path) -> RunFolder:
    return RunFolder.open(root, spec=SPEC, config=CONFIG, clock=SystemClock())


async def serve(port: int) -> None:
    """The game."""
    async with stand_in.serving(port=port):
        await asyncio.Event().wait()


async def play(root: Path, port: int, told: Path) -> None:
    """The bot: one match after the other, each noted when it is kept."""
    notes = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    address = f"ws://127.0.0.1:{port}/sc2api"
    with Understudy.open(
        root,
        features=SPEC.features,
        actions=SPEC.actions,
        network=SPEC.network,
        mode="learn",
        learner="off",
    ) as mind:
        for number in itertools.count():
            name = f"{os.getpid()}-{number}"
            bot = PassiveBot(mind, tags={"name": name})
            try:
                async with stand_in.connected(address) as connection:
                    game = play_from_websocket(connection, Bot(Race.Zerg, bot), False, NO_PORTS)
                    await play_async(game, bot.strategist)
            except aiohttp.ClientError:  # the game is dead, and not started again yet
                await asyncio.sleep(0.01)
            match = bot.strategist.match
            if match is not None and match.kept and match.decisions:
                os.write(notes, f"{name} {match.outcome}\n".encode())


def learn(root: Path) -> None:
    """The learner, around a trainer that takes its time."""
    folder = open_run(root)
    mind = learner(folder, Sc2Toy(folder.config, slow_s=random.uniform(0.0, 0.01)))
    while True:
        if not mind.work():
            time.sleep(0.002)


def kill_at_random(root: Path, kills: int, seed: int) -> dict[str, int]:
    """Keeps all three alive, and kills one of them again and again."""
    folder, told = open_run(root), root / "told.txt"
    told.touch()
    port = free_port()
    works: dict[str, Callable[[], None]] = {
        "bot": lambda: asyncio.run(play(root, port, told)),
        "game": lambda: asyncio.run(serve(port)),
        "learner": lambda: learn(root),
    }
    chance = random.Random(seed)
    found: Counter[str] = Counter()
    children = {name: fork(work) for name, work in works.items()}
    while sum(found.values()) < kills or (
        sum(found.values()) < 10 * kills and not _eventful(told, kills)
    ):
        time.sleep(chance.uniform(0.0, _LONGEST_S))
        victim = chance.choice(list(works))
        os.kill(children[victim], signal.SIGKILL)
        assert wait(children[victim]) == -signal.SIGKILL, f"the {victim} died by itself"
        found[victim] += 1
        children[victim] = fork(works[victim])
    for child in children.values():
        os.kill(child, signal.SIGKILL)
        wait(child)
    work_to_the_end(learner(folder, Sc2Toy(folder.config)))
    return dict(found)


def free_port() -> int:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number


def _eventful(told: Path, kills: int) -> bool:
    """Whether matches were finished, and some were cut off by the game's death."""
    lines = told.read_text(encoding="utf-8").splitlines()
    cut = sum(line.endswith("aborted") for line in lines)
    return len(lines) - cut >= kills // 4 and cut > 0


def main() -> None:
    root, kills, seed = sys.argv[1:]
    with contextlib.redirect_stdout(sys.stderr):
        found = kill_at_random(Path(root), int(kills), int(seed))
    assert "jax" not in sys.modules
    print(json.dumps(found))


if __name__ == "__main__":
    main()
