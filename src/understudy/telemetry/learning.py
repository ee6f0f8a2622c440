"""Whether learning goes on: experience that waits while no version comes is a stall.

Judged by what lies in the buffer and by when the last version came, never by what the learner says
of itself, so that a learner that hangs, dies again and again or rejects every batch looks the same.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from understudy.core.config import Config
from understudy.telemetry.status import Learning, Status
from understudy.telemetry.text import duration

_AT_LEAST_S = 60.0
_INTERVALS = 5.0


class Patience(NamedTuple):
    """When waiting is a stall."""

    stalled_s: float = _AT_LEAST_S
    """Experience that has waited for so long without a version."""
    batch: int = 1
    """Episodes that always make a batch; with fewer, a learner may say that it waits for more."""


def patience(config: Config) -> Patience:
    """A minute, or several intervals of publishing; so many episodes as can be too few to learn."""
    learner, continuous = config.learner, config.continuous
    passes = max(1.0, learner.epochs / continuous.samples_per_insert)
    return Patience(
        max(_AT_LEAST_S, _INTERVALS * learner.publish_interval_s),
        math.ceil(continuous.min_batch * passes),
    )


def learning_of(status: Status, *, waiting: bool, patience: Patience) -> Learning:
    """Of a learner that should run; `waiting`: it has said that it has too little to learn from."""
    if status.paused_since is not None:
        return "paused"
    if waiting and status.buffer_file_count < patience.batch:
        return "waiting for experience"
    return "stalled" if status.experience_waits_s > patience.stalled_s else "on"


def stalled(status: Status) -> str:
    """What to tell of a stall; empty where there is none."""
    if status.learning != "stalled":
        return ""
    count = status.buffer_file_count
    since = f"since version {status.version}" if status.versions else "yet"
    words = (
        f"no version {since}, though experience has waited {duration(status.experience_waits_s)} "
        f"({count:,} {'episode' if count == 1 else 'episodes'})"
    )
    if status.fruitless:
        times = "once" if status.fruitless == 1 else f"{status.fruitless:,} times"
        words += f"; training failed and was rolled back {times}"
    return f"{words}; the learner: {status.learner}"
