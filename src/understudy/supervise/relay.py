"""Starts a relay beside a server, and reports how it fails."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path

from understudy.registry.run_folder import RunFolder
from understudy.supervise.process import REFUSED, SupervisedProcess

_LAST_BYTES = 4096


def relay_command(root: Path, url: str) -> list[str]:
    """The command line of a supervised relay, on the player's side. Credentials are not part of it:
    the process inherits the environment."""
    relay = [sys.executable, "-m", "understudy", "relay", "--supervised", "--side", "player"]
    return [*relay, str(root), url]


def start_relay(
    folder: RunFolder, url: str, *, problem: Callable[[str], None]
) -> SupervisedProcess:
    """Start the process that carries matches and versions; `problem` gets why it ended, and it is
    started again."""
    errors = folder.logs / "relay.err"

    def died(code: int, restart_in_s: float) -> None:
        if code == REFUSED:
            problem("another relay works on this run folder; this server looks again")
            return
        problem(f"the relay ended with exit code {code}, is started again: {_last_line(errors)}")

    return SupervisedProcess(relay_command(folder.root, url), errors=errors, died=died)


def _last_line(path: Path) -> str:
    data = b""
    with contextlib.suppress(OSError):
        data = path.read_bytes()[-_LAST_BYTES:]
    lines = [line for line in data.decode("utf-8", "replace").split("\n") if line.strip()]
    return lines[-1].strip() if lines else f"see {path}"
