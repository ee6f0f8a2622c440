"""Calls the command line in this process, exactly as the `understudy` command does."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec

from understudy.cli.app import run


@dataclass(frozen=True)
class Called:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON value that stdout is."""
        return msgspec.json.decode(self.out.encode())


class Terminal(io.StringIO):
    """A console that takes escape codes."""

    def isatty(self) -> bool:
        return True


def in_terminal(*args: object, columns: int, colour: bool = False) -> Called:
    """`understudy ARGS…` in a terminal that is so wide; stdout alone is one."""
    env = {"COLUMNS": str(columns), "TERM": "xterm", "NO_COLOR": "" if colour else "1"}
    with mock.patch.dict(os.environ, env):
        return understudy(*args, out=Terminal())


def understudy(
    *args: object, out: io.StringIO | None = None, err: io.StringIO | None = None
) -> Called:
    """Exit code, stdout and stderr of `understudy ARGS…`."""
    out, err = out or io.StringIO(), err or io.StringIO()
    argv = ["understudy", *map(str, args)]
    with (
        mock.patch.object(sys, "argv", argv),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            run()
        except SystemExit as end:
            assert isinstance(end.code, int), end.code
            return Called(end.code, out.getvalue(), err.getvalue())
    raise AssertionError("run() always exits")


_ALONE = """
import sys
for name in ("jax", "jaxlib", "optax", "PIL", "filelock", "psutil", "gymnasium", "pettingzoo"):
    sys.modules[name] = None
sys.argv = ["understudy", *sys.argv[1:]]
from understudy.__main__ import main
main()
"""


def alone(*args: object, folder: Path) -> Called:
    """The same in a process of its own, in which NumPy, msgspec and Typer are all there is."""
    done = subprocess.run(
        [sys.executable, "-c", _ALONE, *map(str, args)],
        capture_output=True, text=True, check=False, timeout=120, cwd=folder,
    )  # fmt: skip
    return Called(done.returncode, done.stdout, done.stderr)


SMALL = ("--set", "learner.batch_matches=2", "--set", "learner.replay_matches=2")
"""Batches of the shapes that all tests share: compiling is what takes time."""


def lockstep(run: object, *args: object, matches: int) -> Called:
    """A short session with the learner taking turns."""
    options = ("--difficulty", "easy", "--lockstep", "--run", run, "--json", *SMALL)
    return understudy("play", "swarm", "--matches", matches, *options, *args)
