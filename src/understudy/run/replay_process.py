"""The process that replays one recorded match: `python -m understudy.run.replay_process RUN ID`.

It writes the lines of `judging.replay_frames` to stdout, each as soon as it is computed, and
nothing else. A page starts it with `subprocess`, so that neither JAX nor a custom game runs in the
server; it ends early when its reader goes away. The exit status is 0 unless the arguments are
wrong: a match that cannot be replayed is a line that says so.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from understudy.core.clock import SystemClock
from understudy.core.errors import UnderstudyError
from understudy.supervise.child import step_back
from understudy.telemetry.text import complain

_NICENESS = 5
"""A person waits for it, beside a bot that must not."""
_USAGE = 2


def replay_command(run: Path, match: str) -> list[str]:
    """What starts the process."""
    return [sys.executable, "-m", "understudy.run.replay_process", str(run), match]


def main(arguments: Sequence[str]) -> int:
    """Replay one match."""
    if len(arguments) != 2:
        complain("replay_process: expected RUN ID")
        return _USAGE
    step_back(_NICENESS)
    from understudy.judging.replay_frames import problem_line, replay_lines
    from understudy.registry.run_folder import RunFolder

    run, match = arguments
    out = sys.stdout.buffer
    # What a custom game prints must not end up between the lines.
    sys.stdout = sys.stderr
    try:
        try:
            lines = replay_lines(RunFolder.load(Path(run), SystemClock()), match)
        except UnderstudyError as error:
            lines = iter([problem_line(error)])
        for line in lines:
            out.write(line)
            out.flush()
    except BrokenPipeError:
        # Python would complain of the same pipe once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
