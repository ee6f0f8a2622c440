"""Starts the simulator beside a session, and reports how it fails."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from understudy.core.dependencies import needs
from understudy.registry.run_folder import RunFolder
from understudy.supervise.process import REFUSED, SupervisedProcess
from understudy.telemetry import events
from understudy.telemetry.journal import Journal
from understudy.telemetry.text import complain


def simulator_command(
    root: Path, *, rules: str, options: Mapping[str, str], practises: bool = False
) -> list[str]:
    """The command line of a supervised simulator on a run folder (`judging.simulator`)."""
    given = [f"{name}={value}" for name, value in options.items()]
    simulator = [sys.executable, "-m", "understudy.run.simulator", str(root), "--rules", rules]
    simulator += ["--practises"] if practises else []
    return [*simulator, *(part for one in given for part in ("--option", one))]


def start_simulator(
    folder: RunFolder,
    journal: Journal,
    *,
    rules: str,
    options: Mapping[str, str],
    practises: bool = False,
) -> SupervisedProcess:
    """Starts the process that tests versions by simulated matches (`run.simulator`).

    `practises`: a bot plays this run, in which versions practise.
    """
    with needs("evidence of a simulator needs {}", extra="learn"):
        import filelock  # noqa: F401
    errors = folder.logs / "simulator.err"

    def died(code: int, restart_in_s: float) -> None:
        if code == REFUSED:  # that of another process on this run works
            return
        message = f"the simulator died with exit code {code}, is started again: see {errors}"
        complain(message)
        journal.write(events.Problem(where="simulator", message=message))

    command = simulator_command(folder.root, rules=rules, options=options, practises=practises)
    return SupervisedProcess(command, errors=errors, died=died)
