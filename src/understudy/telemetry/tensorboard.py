"""The rows of training as scalars for TensorBoard, through tensorboardX.

Tags are `table/column` or `table/column/opponent`; the numbers are those of the CSV tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from understudy.core.dependencies import needs
from understudy.telemetry.table import Value
from understudy.telemetry.text import complain
from understudy.telemetry.training_rows import (
    ALL,
    BEHAVIOUR,
    CHECKPOINTS,
    LEAGUE,
    REWARDS,
    STRATEGY,
    TRAINING,
)

_TABLES = {BEHAVIOUR, CHECKPOINTS, LEAGUE, REWARDS, STRATEGY, TRAINING}
_NO_SCALAR = {"time_s", "steps", "version", "kept"}
_FLUSH_S = 10


def check_installed() -> None:
    """Raises MissingDependency without tensorboardX."""
    with needs("monitor.tensorboard needs tensorboardX", extra="tensorboard"):
        import tensorboardX  # noqa: F401


class TensorBoard:
    """Writes to one folder; a session that goes on hides what it repeats."""

    def __init__(self, folder: Path, *, at_steps: int, start: float) -> None:
        check_installed()
        from tensorboardX import SummaryWriter

        self._start = start
        self._complained = False
        # TensorBoard drops everything from `purge_step` on; rows of `at_steps` itself stay.
        self._writer = SummaryWriter(
            str(folder), purge_step=at_steps + 1 if at_steps else None, flush_secs=_FLUSH_S
        )

    def add(self, table: str, row: Mapping[str, Value]) -> None:
        """The numbers of one row."""
        if table not in _TABLES or row.get("event") in {"snapshot", "stage", "replaced"}:
            return
        opponent = row.get("opponent", ALL)
        end = "" if opponent == ALL else f"/{opponent}"
        steps, time_s = row["steps"], row["time_s"]
        when = self._start + (time_s if isinstance(time_s, float) else 0.0)
        try:
            for name, value in row.items():
                if name not in _NO_SCALAR and isinstance(value, int | float):
                    self._writer.add_scalar(f"{table}/{name}{end}", value, steps, walltime=when)
        except OSError as error:
            if not self._complained:
                self._complained = True
                complain(f"cannot write for TensorBoard: {error}")

    def close(self) -> None:
        """Everything is in the file."""
        try:
            self._writer.close()
        except OSError as error:
            complain(f"cannot write for TensorBoard: {error}")
