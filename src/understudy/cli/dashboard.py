"""`understudy dashboard`: runs in a browser, live."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.core.dependencies import install_line, not_installed
from understudy.core.errors import MissingDependency, RunFolderError
from understudy.supervise.dashboard import PORT

_NEEDS = ("starlette", "uvicorn", "websockets")
_RUNS = Path("runs")
_NICENESS = 19
"""The least priority: the bots that are watched come first."""


def dashboard(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(help="Run folders, or folders of runs (default: runs)."),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.")] = PORT,
    token_file: Annotated[
        Path | None, typer.Option(help="A file with the token that readers have to know.")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="A certificate, for https://.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its key.")] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy in front of it speaks TLS.")
    ] = False,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Another name of this machine. Repeatable.")
    ] = None,
    supervised: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Show runs in a browser: is it learning, who plays and why, training, matches, replays.

    It reads the run folders alone, so it may start late and end at any time; bots, servers and
    learners go on. Pages follow what happens. Only this machine can open them, unless --host says
    otherwise, which needs a token.

    Example: understudy dashboard runs
    """
    if missing := not_installed(*_NEEDS):
        raise MissingDependency(
            f"the dashboard needs {', '.join(missing)}: {install_line('dashboard')}"
        )
    from understudy.supervise.child import end_when_told, step_back

    step_back(_NICENESS)
    from understudy.run.dashboard import DashboardOptions
    from understudy.run.dashboard import dashboard as show
    from understudy.telemetry.text import say
    from understudy.web.auth import read_token
    from understudy.web.listening import tls_of

    folders = tuple(runs or [_RUNS])
    for one in folders:
        if not one.is_dir():
            raise RunFolderError(f"{one}: there is no such folder")
    options = DashboardOptions(
        folders=folders,
        host=host,
        port=port,
        token=None if token_file is None else read_token(token_file),
        tls=tls_of(tls_cert, tls_key),
        behind_proxy=behind_proxy,
        allow_hosts=tuple(allow_host or ()),
    )
    ended = end_when_told(supervised=True)[1] if supervised else None
    code = show(
        options,
        started=lambda url: say(f"understudy: dashboard at {url}. Ctrl-C ends."),
        ended=ended,
    )
    raise typer.Exit(code)
