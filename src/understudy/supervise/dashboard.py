"""The dashboard as a process beside a session (`--dashboard`): it ends with the session.

It is watched like the learner: one that dies is started again at the same address, and open pages
connect again by themselves.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from understudy.core.dependencies import needs
from understudy.registry.run_folder import holds_run
from understudy.supervise.process import SupervisedProcess
from understudy.telemetry.text import complain, say

HOST, PORT = "127.0.0.1", 8710
_LOOK_EVERY_S = 0.2
_STOP_WITHIN_S = 5.0


@contextlib.contextmanager
def dashboard_beside(run: Path, *, wanted: bool) -> Iterator[None]:
    """Shows a run in a browser while the block lasts; the address is said at once."""
    if not wanted:
        yield
        return
    with needs("--dashboard needs {}", extra="dashboard"):
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
        import websockets  # noqa: F401
    port, over = _free_port(), threading.Event()
    say(f"understudy: dashboard at http://{HOST}:{port}", file=sys.stderr)
    thread = threading.Thread(
        target=_show, args=(run, port, over), name="understudy-dashboard", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(2 * _STOP_WITHIN_S)


def _show(run: Path, port: int, over: threading.Event) -> None:
    """Starts the process once there is a run to show, and stops it when the session is over."""
    while not holds_run(run):
        if over.wait(_LOOK_EVERY_S):
            return
    errors = run / "logs" / "dashboard.err"
    errors.parent.mkdir(exist_ok=True)

    def died(code: int, restart_in_s: float) -> None:
        complain(f"the dashboard died with exit code {code}, is started again: see {errors}")

    command = [sys.executable, "-m", "understudy", "dashboard", str(run), "--supervised"]
    process = SupervisedProcess([*command, "--port", str(port)], errors=errors, died=died)
    over.wait()
    process.stop(_STOP_WITHIN_S)


def _free_port() -> int:
    """The usual one, or any other where that is taken."""
    for port in (PORT, 0):
        with contextlib.suppress(OSError), socket.create_server((HOST, port)) as found:
            taken: int = found.getsockname()[1]
            return taken
    return PORT
