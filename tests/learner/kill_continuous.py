"""Forks a server that spools segments and a continuous learner, and kills the learner with SIGKILL.

    kill_continuous.py ROOT KILLS SEED

One process imports everything once and forks; nothing here may import JAX.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from walk.kill_children import fork, wait
from walk.toys import manifests, open_run, spool_of

from learner.toy_items import ToyItems, continuous, segment, settings

CONFIG = settings(
    continuous__training_interval_s=0.002,
    learner__publish_interval_s=0.01,
    continuous__samples_per_insert=3.0,
    continuous__capacity=40,
)


def serve(root: Path, told: Path) -> None:
    """Segments of settled decisions, one after the other, each noted when it is durable."""
    spool = spool_of(open_run(root, CONFIG))
    notes = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number in itertools.count():
        spool.put(segment(number, finished_at=time.time()))
        os.write(notes, f"{number}\n".encode())
        time.sleep(0.004)


def learn(root: Path) -> None:
    chance = random.Random()
    toy = ToyItems(meet=lambda ids: time.sleep(chance.uniform(0.0, 0.004)))
    mind = continuous(open_run(root, CONFIG), toy)
    while True:
        if not mind.work():
            time.sleep(0.001)


def main() -> None:
    root, kills, chance = Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3]))
    folder = open_run(root, CONFIG)
    server = fork(lambda: serve(root, root / "told.txt"))
    found: Counter[str] = Counter()
    while found["kills"] < kills or (found["kills"] < 5 * kills and not _eventful(found)):
        learner = fork(lambda: learn(root))
        time.sleep(chance.uniform(0.05, 0.2))
        os.kill(learner, signal.SIGKILL)
        assert wait(learner) == -signal.SIGKILL, "the learner died by itself"
        found["kills"] += 1
        found["in_training"] += b'"attempt":["' in _content(root / "suspects.json")
        waiting = set(spool_of(folder).pending())
        named = {name for one in manifests(folder)[-1:] for name in one.ingested.values()}
        found["between_commit_and_archive"] += bool(named & waiting)
    os.kill(server, signal.SIGKILL)
    wait(server)
    assert "jax" not in sys.modules
    print(json.dumps(dict(found)))


def _eventful(found: Counter[str]) -> bool:
    """Whether kills came where they hurt; on a busy machine that can take some more of them."""
    return bool(found["in_training"] and found["between_commit_and_archive"])


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


if __name__ == "__main__":
    main()
