"""Ctrl-C, with real processes and real signals: at no moment does it print a traceback."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

AT_IMPORT = """
import signal, sys
module = sys.argv.pop(1)

class Press:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Press())
from understudy.__main__ import main
main()
"""
THREE_TIMES = """
import signal
from understudy.supervise.interrupts import Interrupts

with Interrupts() as interrupts:
    signal.raise_signal(signal.SIGINT)
    assert interrupts.asked
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        print("does not wait", flush=True)
        signal.raise_signal(signal.SIGINT)
        print("still there", flush=True)
"""

TERMINATED_TWICE = """
import signal
from understudy.supervise.interrupts import Interrupts

with Interrupts() as interrupts:
    interrupts.gentle = False
    try:
        signal.raise_signal(signal.SIGTERM)
    except KeyboardInterrupt:
        signal.raise_signal(signal.SIGTERM)
        print("ends in good order,", interrupts.code)
"""


def python(script: str, *args: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *args],
        cwd=folder, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("module", "line", "code"),
    [
        ("understudy.cli.app", "play swarm", -signal.SIGINT),
        ("understudy.run.play", "play swarm", 130),
        ("understudy.cli.train_screen", "train brawl", 130),
        ("understudy.run.serve", "serve territory", 130),
    ],
)
def test_before_a_session_begins(tmp_path: Path, module: str, line: str, code: int) -> None:
    done = python(AT_IMPORT, module, *line.split(), folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")
    assert not list(tmp_path.iterdir())


def test_the_third_ends_the_process_at_once(tmp_path: Path) -> None:
    done = python(THREE_TIMES, folder=tmp_path)
    assert done.returncode == -signal.SIGINT
    assert (done.stdout, done.stderr) == ("does not wait\n", "")


def test_a_second_sigterm_while_it_ends_changes_nothing(tmp_path: Path) -> None:
    done = python(TERMINATED_TWICE, folder=tmp_path)
    assert (done.stdout, done.stderr) == ("ends in good order, 143\n", "")
