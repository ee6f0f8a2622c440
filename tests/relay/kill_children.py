"""Forks bots, relays, a learner and the wire to the store, kills them with SIGKILL at random
points, and says what it did. Run as a script: kill_children.py ROOT STORE_PORT KILLS SEED

The store keeps its objects in memory, so what is killed of it is its wire: every request that is on
its way is cut, and for a moment there is no store.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from walk.kill_children import fork as fork_quietly
from walk.kill_children import wait
from walk.toys import SPEC, Toy, learner, open_run, settings

from relay.store_servers import environment, forward, free_port
from understudy import Understudy
from understudy.registry.run_folder import RunFolder
from understudy.relay import relay
from understudy.relay.relay import RelayOptions, run_relay

CONFIG = settings(
    learner__publish_interval_s=0.05,
    learner__batch_matches=5,
    relay__poll_s=0.05,
    relay__bundle_matches=7,
)
PLAYERS = 2


def fork(work: Callable[[], None]) -> int:
    def told() -> None:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            raise

    return fork_quietly(told)


def play(root: Path, told: Path) -> None:
    """A bot that finishes one match after another and notes each when `finish` has returned."""
    chance = random.Random()
    notes = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with Understudy.open(
        root,
        features=SPEC.features,
        actions=SPEC.actions,
        network=SPEC.network,
        learner="off",
        mode="learn",
    ) as mind:
        for number in itertools.count():
            name = f"{root.name}-{os.getpid()}-{number}"
            with mind.match(name=name) as match:
                match.decide((0.5, chance.random()))
                match.reward(1.0)
                if match.finish("victory"):
                    os.write(notes, f"{name}\n".encode())
            time.sleep(chance.uniform(0.0, 0.05))


def learn(root: Path) -> None:
    while not (root / "run.json").exists():
        time.sleep(0.01)
    folder = open_run(root, CONFIG)
    mind = learner(folder, Toy(folder.config))
    while True:
        if not mind.work():
            time.sleep(0.01)


def carry(root: Path, side: str) -> None:
    url = f"s3://bucket/{root.parent.name}"
    relay._LONGEST_WAIT_S = 0.2
    run_relay(RelayOptions(run=root, url=url, side=side), stop=lambda: False)  # type: ignore[arg-type]


def kill_at_random(root: Path, store_port: int, kills: int, seed: int) -> dict[str, int]:
    port = free_port()
    os.environ.update(environment(port))
    told = root / "told.txt"
    players = [root / f"player{place}" for place in range(PLAYERS)]
    for one in players:
        open_run(one, CONFIG)
    works: dict[str, Callable[[], None]] = {
        "wire": lambda: asyncio.run(forward(port, store_port)),
        "learner": lambda: learn(root / "learner"),
        "learner's relay": lambda: carry(root / "learner", "learner"),
    }
    for one in players:
        works[f"bot of {one.name}"] = lambda one=one: play(one, told)  # type: ignore[misc]
        works[f"relay of {one.name}"] = lambda one=one: carry(one, "player")  # type: ignore[misc]
    children = {name: fork(work) for name, work in works.items()}
    try:
        found = _kill_some(children, works, kills, random.Random(seed))
        _wait_for_matches(told, kills)  # a busy machine may have played few
        for one in players:
            _end(children, f"bot of {one.name}")
        _drain(root, players)
    finally:  # else they would hold our output open for ever
        for name in list(children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(children[name], signal.SIGKILL)
    for name in list(children):
        _end(children, name)
    return dict(found)


def _kill_some(
    children: dict[str, int],
    works: dict[str, Callable[[], None]],
    kills: int,
    chance: random.Random,
) -> Counter[str]:
    found: Counter[str] = Counter()
    while found["kills"] < kills:
        time.sleep(chance.uniform(0.0, 0.4))
        victim = chance.choice(list(works))
        os.kill(children[victim], signal.SIGKILL)
        code = wait(children[victim])
        assert code == -signal.SIGKILL, f"the {victim} ended by itself with {code}"
        found["kills"] += 1
        found[victim] += 1
        children[victim] = fork(works[victim])
    return found


def _wait_for_matches(told: Path, kills: int) -> None:
    deadline = time.monotonic() + 120.0
    while not told.exists() or len(told.read_bytes().split()) <= kills:
        assert time.monotonic() < deadline, "bots finish no matches"
        time.sleep(0.05)


def _end(children: dict[str, int], name: str) -> None:
    child = children.pop(name)
    os.kill(child, signal.SIGKILL)
    assert wait(child) == -signal.SIGKILL, f"the {name} ended by itself"


def _drain(root: Path, players: list[Path]) -> None:
    """Wait until every match has arrived and every player has the newest version."""
    deadline = time.monotonic() + 120.0
    calm = 0
    while calm < 10:
        assert time.monotonic() < deadline, "matches or versions are still on their way"
        time.sleep(0.1)
        waiting = [list((one / "buffer").glob("*.npz")) for one in (*players, root / "learner")]
        heads = {_champion(one) for one in (*players, root / "learner")}
        calm = calm + 1 if not any(waiting) and len(heads) == 1 and 0 not in heads else 0


def _champion(root: Path) -> int:
    record = RunFolder.load(root, open_run(root, CONFIG).clock).pointers.read("champion")
    return 0 if record is None else record.version


if __name__ == "__main__":
    here, store, count, chosen = sys.argv[1:]
    print(json.dumps(kill_at_random(Path(here), int(store), int(count), int(chosen))))
