"""The simulator's process: `python -m understudy.run.simulator RUN --rules BOT`, beside a parent.

It takes at most `promotion.simulator_share` of one core: after each step it rests in proportion to
the CPU time of that step. A kill loses the pairs at hand, which the next one plays again.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from understudy.core.clock import SystemClock
from understudy.core.errors import LearnerBusy
from understudy.gates.promotion.roles import PromotionVerdict
from understudy.judging.simulator import Simulator
from understudy.promotion.promotion import Promotion, role_changed
from understudy.registry.run_folder import RunFolder
from understudy.supervise.child import end_when_told, step_back
from understudy.supervise.lock import simulator_lock
from understudy.supervise.process import REFUSED
from understudy.telemetry import events
from understudy.telemetry.journal import Journal
from understudy.telemetry.text import complain

_NICENESS = 19
_LOOK_EVERY_S = 1.0
"""How often to look for a version to test."""


def simulate_until_stopped(
    root: Path,
    *,
    rules: str,
    options: Mapping[str, str],
    stop: threading.Event,
    practises: bool = False,
) -> None:
    """Test versions of a run by simulated matches, until `stop`."""
    folder = RunFolder.load(root, SystemClock())
    journal = Journal(folder.journal, "simulator", folder.clock)

    def problem(message: str) -> None:
        journal.write(events.Problem(where="simulator", message=message))

    def tell(verdict: PromotionVerdict) -> None:
        if verdict.kind != "nominated":
            journal.write(role_changed(verdict))

    with simulator_lock(root):
        promotion = Promotion(folder, tell=tell, problem=problem)
        simulator = Simulator(
            folder, promotion, rules=rules, options=options, problem=problem, practises=practises
        )
        share = folder.config.promotion.simulator_share
        while not stop.is_set():
            began = time.process_time()
            worked = simulator.step()
            rest_s = rest_after(time.process_time() - began, share=share)
            stop.wait(rest_s if worked else max(rest_s, _LOOK_EVERY_S))


def rest_after(worked_s: float, *, share: float) -> float:
    """Seconds to rest after so many seconds of work, so that work is this share of the time."""
    return worked_s * (1.0 - share) / share


def main(arguments: list[str] | None = None) -> int:
    """The whole life of a simulator's process; returns its exit code."""
    parser = argparse.ArgumentParser(prog="understudy.run.simulator")
    parser.add_argument("run", type=Path)
    parser.add_argument("--rules", required=True)
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--practises", action="store_true")
    given = parser.parse_args(arguments)
    options = dict(one.split("=", 1) for one in given.option)
    step_back(_NICENESS)
    _, stop = end_when_told(supervised=True)
    try:
        simulate_until_stopped(
            given.run,
            rules=given.rules,
            options=options,
            stop=stop,
            practises=given.practises,
        )
    except LearnerBusy as error:
        complain(str(error))
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main())
