"""Locks of a run folder between processes: one learner, simulator, server and relay at a time.

The learner's lock refuses a second learner early. Where file locks do not work (some shared
folders), the commit itself fences one of the two off.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from understudy.core import files
from understudy.core.dependencies import needs, needs_learner
from understudy.core.errors import LearnerBusy, RunFolderError, UnderstudyError

_LEARNER = "learner.lock"
_SIMULATOR = "simulator.lock"
_SERVER = "server.lock"
_RELAY = "relay.lock"
_PROBE_S = 0.2
"""How long a learner waits for a lock that is taken: `learner_runs` holds it for a moment."""


@contextlib.contextmanager
def learner_lock(root: Path) -> Iterator[None]:
    """Holds the learner's lock, or raises LearnerBusy after 0.2 s."""
    with needs_learner():
        import filelock  # noqa: F401
    busy = LearnerBusy(f"{root}: another learner works on this run folder; stop it, or let it work")
    with _held(root / _LEARNER, busy, timeout_s=_PROBE_S):
        yield


@contextlib.contextmanager
def simulator_lock(root: Path) -> Iterator[None]:
    """Holds the simulator's lock, or raises LearnerBusy: two would play the same matches."""
    with needs("a simulator needs {}", extra="learn"):
        import filelock  # noqa: F401
    busy = LearnerBusy(f"{root}: another simulator works on this run folder")
    with _held(root / _SIMULATOR, busy, timeout_s=_PROBE_S):
        yield


@contextlib.contextmanager
def relay_lock(root: Path) -> Iterator[None]:
    """Makes the folder and holds the relay's lock, or raises LearnerBusy: two would send the same
    matches."""
    with needs("a relay needs {}", extra="scale"):
        import filelock  # noqa: F401
    files.make_folders(root)
    busy = LearnerBusy(f"{root}: another relay works on this run folder; stop it, or let it work")
    with _held(root / _RELAY, busy, timeout_s=_PROBE_S):
        yield


@contextlib.contextmanager
def server_lock(root: Path) -> Iterator[None]:
    """Makes the folder and holds the server's lock, or raises RunFolderError: two servers would
    write one ledger."""
    with needs("a server needs {}", extra="serve"):
        import filelock  # noqa: F401
    busy = RunFolderError(
        f"{root}: another server works in this run folder; stop it, or name another with --run"
    )
    with contextlib.ExitStack() as stack:
        try:
            files.make_folders(root)
            stack.enter_context(_held(root / _SERVER, busy, timeout_s=0.0))
        except OSError as error:
            raise RunFolderError(
                f"{root}: cannot be used as a run folder ({error.strerror or error}); "
                "choose a folder that can be written to"
            ) from error
        yield


@contextlib.contextmanager
def _held(path: Path, busy: UnderstudyError, *, timeout_s: float) -> Iterator[None]:
    import filelock

    try:
        held = filelock.FileLock(path).acquire(timeout=timeout_s, poll_interval=_PROBE_S / 10)
    except filelock.Timeout as error:
        raise busy from error
    with held:
        yield


def learner_runs(root: Path) -> bool | None:
    """Whether a process holds the learner's lock; None: that cannot be found out.

    The system releases the lock of a killed process. Takes the lock for a moment if it is free, and
    creates no file.
    """
    try:
        import filelock
    except ImportError:
        return None
    if not (root / _LEARNER).exists():
        return False
    try:
        with filelock.FileLock(root / _LEARNER).acquire(timeout=0):
            return False
    except filelock.Timeout:
        return True
    except (OSError, NotImplementedError):  # a folder that this user may only read
        return None
