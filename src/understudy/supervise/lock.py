"""The learner's lock: one learner at a time works on a run folder.

It refuses a second one early and kindly. Where it does not reach (some shared folders), the commit
itself fences the loser off.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from understudy.core.errors import LearnerBusy, MissingDependency

_NAME = "learner.lock"
_PROBE_S = 0.2
"""How long a learner waits for a lock that is taken: `learner_runs` holds it for a moment."""


@contextlib.contextmanager
def learner_lock(root: Path) -> Iterator[None]:
    """Hold the lock, or raise `LearnerBusy` within a moment."""
    try:
        import filelock
    except ImportError as error:
        raise missing(error) from error
    try:
        held = filelock.FileLock(root / _NAME).acquire(
            timeout=_PROBE_S, poll_interval=_PROBE_S / 10
        )
    except filelock.Timeout as error:
        raise LearnerBusy(
            f"{root}: another learner works on this run folder; stop it, or let it work"
        ) from error
    with held:
        yield


def learner_runs(root: Path) -> bool | None:
    """Whether a process holds the lock; None where that cannot be found out.

    The system releases the lock of a process that was killed, so this is also true of a learner
    that could not report its end. Takes the lock for a moment if it is free. Creates no file.
    """
    try:
        import filelock
    except ImportError:
        return None
    if not (root / _NAME).exists():
        return False
    try:
        with filelock.FileLock(root / _NAME).acquire(timeout=0):
            return False
    except filelock.Timeout:
        return True
    except (OSError, NotImplementedError):  # a folder that this user may only read
        return None


def missing(error: ImportError) -> MissingDependency:
    """What to install for a learner."""
    return MissingDependency(
        f'the learner needs {error.name}: pip install ".[learn]" in your clone'
    )
