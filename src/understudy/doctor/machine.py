"""The machine that a run lies on: room on its disk, memory, and what the run folder takes.

Memory needs psutil (the extra `monitor`); without it, it is not known.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path

import msgspec

from understudy.telemetry.status import Status

_SPOOL = ("buffer", "archive", "quarantine")


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """In bytes; None: not known."""

    disk_free: int | None = None
    disk_total: int | None = None
    memory_available: int | None = None
    memory_total: int | None = None
    learner_memory: int | None = None
    """Resident memory of the learner that runs now, where it runs here."""
    learner_cpu_share: float | None = None
    """CPU seconds a second of that learner, since it started."""
    folders: dict[str, int] = {}
    """What the parts of the run folder take, beside the spool: journal, versions, logs."""


def read_machine(root: Path, status: Status) -> Machine:
    """The machine now; a run folder that is gone, or a learner that is, is not known."""
    disk = None
    with contextlib.suppress(OSError):
        disk = shutil.disk_usage(root)
    return msgspec.structs.replace(
        _processes(status.learner_pid),
        disk_free=None if disk is None else disk.free,
        disk_total=None if disk is None else disk.total,
        folders=_folders(root),
    )


def _processes(pid: int | None) -> Machine:
    """Memory, and what the learner has of it and of the processor."""
    try:
        import psutil
    except ImportError:
        return Machine()
    memory, resident, share = psutil.virtual_memory(), None, None
    if pid is not None:
        with contextlib.suppress(psutil.Error, OSError):
            process = psutil.Process(pid)
            if "python" in process.name().lower():  # not another that has this number by now
                times, lived = process.cpu_times(), time.time() - process.create_time()
                resident = int(process.memory_info().rss)
                share = (times.user + times.system) / max(lived, 1.0)
    return Machine(
        memory_available=int(memory.available),
        memory_total=int(memory.total),
        learner_memory=resident,
        learner_cpu_share=share,
    )


def _folders(root: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    with contextlib.suppress(OSError), os.scandir(root) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and entry.name not in _SPOOL:
                found[entry.name] = _bytes_in(Path(entry.path))
    return found


def _bytes_in(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # deleted this moment
                total += os.stat(os.path.join(place, name), follow_symlinks=False).st_size  # noqa: PTH116, PTH118
    return total
