"""Opens and closes decisions until it is killed, and says what it did when it is done. A script.

kill_child.py ROOT SEED      prints `open 1 2 3`, `settled 1`, `expired 2`; `expiring 2` before
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from walk.power import UnsyncedDisk
from walk.toys import SPEC

from experience.ledger.decisions import decision
from understudy.core import files
from understudy.core.clock import SystemClock
from understudy.experience.ledger import Closing, Ledger
from understudy.experience.spool import Spool

TERRITORIES = ("north", "south", "east", "west")


def say(word: str, keys: Iterable[int]) -> None:
    print(word, *keys, flush=True)


def play(root: Path, seed: int) -> None:
    chance = random.Random(seed)
    clock = SystemClock()
    spool = Spool(root, SPEC, clock)
    ledger = Ledger(
        root / "ledger", SPEC, segment=4, clock=clock, put=spool.put, sync_ms=1.0,
        rotate_bytes=4_000,
    )  # fmt: skip
    say("recovered", [])
    while True:
        keys = ledger.take_ids(chance.randint(1, 6))
        ledger.open([decision(key, chance.choice(TERRITORIES)) for key in keys])
        say("open", keys)
        waiting = [one.id for one in ledger.older_than(4e9)]
        chosen = chance.sample(waiting, min(len(waiting), chance.randint(1, 7)))
        expiring = [key for key in chosen if chance.random() < 0.1]
        settling = [key for key in chosen if key not in expiring]
        say("expiring", expiring)
        ledger.close([Closing(id=key, state="expired") for key in expiring])
        say("expired", expiring)
        ledger.close([Closing(id=key, state="settled", reward=key / 8) for key in settling])
        say("settled", settling)
        if ledger.waiting > 100:
            ledger.flush()  # as a server that is told to wait
        if chance.random() < 0.1:
            ledger.cut(chance.choice(TERRITORIES), b"")


if __name__ == "__main__":
    with files.using(UnsyncedDisk()):
        play(Path(sys.argv[1]), int(sys.argv[2]))
