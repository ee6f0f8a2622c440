"""A process beside a bot or a training: it takes little of the machine, and ends with its parent.

The other side of `supervise.process`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading


def step_back(niceness: int) -> None:
    """One maths thread and low priority: the game comes first. Must run before JAX is imported."""
    os.environ["NPROC"] = "1"  # what XLA takes as the number of cores; no flag of its own does it
    if hasattr(os, "nice"):
        os.nice(niceness)


def end_when_told(*, supervised: bool) -> tuple[threading.Event, threading.Event]:
    """The events `wake` and `stop`, set by signals and, under a supervisor, by its pipe."""
    wake, stop = threading.Event(), threading.Event()

    def end(number: int, frame: object) -> None:
        stop.set()
        wake.set()

    signal.signal(signal.SIGTERM, end)
    # Under a supervisor Ctrl-C is the bot's affair; it closes the pipe when it is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN if supervised else end)
    if supervised:
        threading.Thread(target=_listen, args=(wake, stop), daemon=True).start()
    return wake, stop


def _listen(wake: threading.Event, stop: threading.Event) -> None:
    """Every byte is a wake-up; the end of the pipe means that the parent is gone."""
    while os.read(sys.stdin.fileno(), 4096):
        wake.set()
    stop.set()
    wake.set()
