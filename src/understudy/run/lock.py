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


@contextlib.contextmanager
def learner_lock(root: Path) -> Iterator[None]:
    """Hold the lock, or raise `LearnerBusy` at once."""
    try:
        import filelock
    except ImportError as error:
        raise missing(error) from error
    try:
        held = filelock.FileLock(root / _NAME).acquire(timeout=0)
    except filelock.Timeout as error:
        raise LearnerBusy(
            f"{root}: another learner works on this run folder; stop it, or let it work"
        ) from error
    with held:
        yield


def missing(error: ImportError) -> MissingDependency:
    """What to install for a learner."""
    return MissingDependency(f'the learner needs {error.name}: pip install "understudy[learn]"')
