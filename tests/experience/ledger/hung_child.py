"""Stops a ledger whose disk has hung, and ends. A script.

hung_child.py FOLDER put|sync
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from walk.toys import SPEC

from experience.ledger.decisions import open_some, settled
from understudy.core import files
from understudy.core.clock import SystemClock
from understudy.experience.ledger import Ledger, ledger

HUNG = threading.Event()


def hang(*arguments: object, **options: object) -> None:
    HUNG.set()
    threading.Event().wait()


def main(folder: Path, what: str) -> None:
    ledger._PATIENCE_S = 0.2
    if what == "sync":
        files.sync = hang
    one = Ledger(
        folder, SPEC, segment=1, clock=SystemClock(), put=hang, sync_ms=1.0,
    )  # fmt: skip
    one.close(settled(*open_some(one, 1)))
    open_some(one, 1)
    HUNG.wait()
    one.stop()
    print("stopped", *one.problems, sep="\n", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
