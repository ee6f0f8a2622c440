"""How much memory this process holds. Bots import it, so it needs the standard library alone."""

from __future__ import annotations

import os
from pathlib import Path

_STATM = Path("/proc/self/statm")
_MIB = 2**20


def resident_mb() -> float:
    """Resident memory of this process in MiB, in about 10 microseconds; 0: not known (it is on
    Linux alone)."""
    try:
        pages = int(_STATM.read_bytes().split()[1])
    except (OSError, IndexError, ValueError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / _MIB
