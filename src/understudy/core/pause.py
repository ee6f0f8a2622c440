"""The pause of a run's learner: one small file in the run folder, which a person switches.

The file is read before every batch, so it works from another terminal and outlives every restart.
A folder without the file is not paused.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from understudy.core import files
from understudy.core.clock import Clock

PAUSE = "pause.json"


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the learner of a run is paused."""

    paused: bool = False
    at: float = 0.0
    """When that was switched last, in seconds since 1970; 0: never."""


def read_pause(root: Path) -> Pause:
    """As a person left it; a file that cannot be read pauses nothing."""
    try:
        return msgspec.json.decode((root / PAUSE).read_bytes(), type=Pause)
    except (OSError, msgspec.MsgspecError):
        return Pause()


def switch_pause(root: Path, *, paused: bool, clock: Clock) -> bool:
    """Pause the learner of a run, or let it go on; False: it was so already."""
    if read_pause(root).paused == paused:
        return False
    data = msgspec.json.encode(Pause(paused=paused, at=clock.time()))
    files.write_atomic(root / PAUSE, data)
    return True
