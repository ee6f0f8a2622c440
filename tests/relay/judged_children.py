"""Kills a side of a relay with SIGKILL at every effect on the disk, one after another, while it
carries evidence, and says what it did. Run as a script: judged_children.py ROOT player|learner

The store is a folder, so what is killed at are the effects on the store too.
"""

from __future__ import annotations

import itertools
import json
import signal
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from promotion.runs import folded
from walk.kill_children import DeadlyDisk, fork, wait
from walk.power import UnsyncedDisk

from relay.judged import EVEN, World
from understudy.core import files


def kill_at_every_effect(root: Path, whose: str) -> dict[str, int]:
    found: Counter[str] = Counter()
    for effect in itertools.count():
        with files.using(UnsyncedDisk()):
            world = prepared(root / f"{effect:04d}", whose)
        victim = world.players[0] if whose == "player" else world.learner
        with files.using(DeadlyDisk(effect)):
            code = wait(fork(victim.look))
        with files.using(UnsyncedDisk()):
            if folded(world.learner.folder).open:
                found["between an assignment and its result"] += 1
            for one in (*world.players, world.learner):
                one.restart()
            world.settle()
            state = world.check()
            assert sum(one.matches for one in state.records.values()) == 8
        if code == 0:
            return dict(found)
        assert code == -signal.SIGKILL, f"died of {code} at effect {effect}"
        found["kills"] += 1
    raise AssertionError


def prepared(root: Path, whose: str) -> World:
    """Machines that have evidence to send, to receive and to judge."""
    world = World(root)
    world.settle(2)
    world.nominate(1)
    for bot in world.bots:
        bot.play(2, EVEN)
    for one in world.players:
        one.look()
    if whose == "player":
        world.learner.look()  # and so the first has a part of the log to copy
    for bot in world.bots:
        bot.play(2, EVEN)
    if whose == "learner":
        for one in world.players:
            one.look()
    return world


if __name__ == "__main__":
    print(json.dumps(kill_at_every_effect(Path(sys.argv[1]), sys.argv[2])))
