"""Monitoring of a training run: its tables, its curves and TensorBoard, fed by the journal.

Nothing here stops training: a full disk is reported once. Nothing here stalls it either: rows are
appended every few seconds, and drawing takes at most 0.5% of the time.
`benchmarks/monitoring_overhead.py` measures both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from understudy.core import files
from understudy.core.clock import Clock
from understudy.core.config import MonitorConfig
from understudy.core.errors import MissingDependency
from understudy.games import catalog
from understudy.registry.run_folder import RunFolder
from understudy.screens.curves import draw
from understudy.telemetry.history import History
from understudy.telemetry.journal import Entry
from understudy.telemetry.table import Table
from understudy.telemetry.tensorboard import TensorBoard
from understudy.telemetry.text import complain
from understudy.telemetry.training_rows import MONITOR, TableRow, TrainingRows, columns_of

CURVES = "training_curves.png"
_FIRST_DRAWING_S, _DRAWINGS_S = 120.0, 60.0
"""The first waits longer: it imports matplotlib, and the time of a drawing is not known yet."""
_SHARE = 0.005
"""Of the time, at most, goes into drawing."""
_NOT_DRAWN = {MONITOR}
"""A row a match: everything that curves show of it is in the other tables."""


class Monitoring:
    """Writes tables, curves and TensorBoard of one session, which begins at `at_steps`."""

    def __init__(
        self, folder: RunFolder, config: MonitorConfig, *, at_steps: int, clock: Clock
    ) -> None:
        start = folder.identity.created_at
        ratios = {column.name: column.ratio for column in catalog.measure_columns() if column.ratio}
        self._rows = TrainingRows(start, ratios=ratios)
        self._tables: dict[str, Table] = {}
        self._curves: _Curves | None = None
        self._board: TensorBoard | None = None
        if config.tensorboard:  # first: a missing dependency is an error before any file is touched
            board = folder.root / "tensorboard"
            self._board = TensorBoard(board, at_steps=at_steps, start=start)
        if config.csv:
            self._tables = _tables(folder, start)
            self._curves = _Curves(folder, clock)
            for name, table in self._tables.items():
                table.begin(at_steps)
                if name not in _NOT_DRAWN:
                    self._curves.recall(name, table)

    def add(self, entry: Entry) -> None:
        if self._tables or self._board:
            over = self._write(self._rows.add(entry))
            if over:
                self._flush()

    def close(self) -> None:
        """Write and draw what is left."""
        self._write(self._rows.close())
        self._flush(last=True)
        if self._board is not None:
            self._board.close()

    def _write(self, rows: Iterable[TableRow]) -> bool:
        """Whether anything else than single matches was written: an interval is over."""
        over = False
        for name, row in rows:
            over |= name != MONITOR
            if self._tables:
                self._tables[name].add(row)
            if self._curves is not None and name not in _NOT_DRAWN:
                self._curves.history.add(name, row)
            if self._board is not None:
                self._board.add(name, row)
        return over

    def _flush(self, *, last: bool = False) -> None:
        for table in self._tables.values():
            table.flush()
        if self._curves is not None:
            self._curves.draw(last=last)


class _Curves:
    """The picture, drawn at most once a minute and for at most 0.5% of the time.

    Not in a thread: matplotlib holds the interpreter's lock, so it would delay training all the
    same, at moments that cannot be chosen.
    """

    def __init__(self, folder: RunFolder, clock: Clock) -> None:
        self.history = History()
        self._path = folder.root / CURVES
        self._title = f"{folder.root.resolve().name} ({folder.identity.game})"
        self._clock = clock
        self._due = clock.monotonic() + _FIRST_DRAWING_S
        self._drawn_at_steps = 0
        self._able = True

    def recall(self, name: str, table: Table) -> None:
        """Load what an earlier session wrote."""
        for row in table.rows():
            self.history.add(name, row)
        self._drawn_at_steps = self.history.steps

    def draw(self, *, last: bool) -> None:
        """Draw if it is time to, or if nothing comes after and there is anything new."""
        began = self._clock.monotonic()
        new = self.history.steps > self._drawn_at_steps
        if not self._able or not new or (began < self._due and not last):
            return
        self._drawn_at_steps = self.history.steps
        try:
            files.write_atomic(self._path, draw(self.history, title=self._title))
        except (MissingDependency, OSError) as error:
            self._able = False
            complain(f"{CURVES} is not drawn: {error}")
        now = self._clock.monotonic()
        self._due = now + max(_DRAWINGS_S, (now - began) / _SHARE)


def _tables(folder: RunFolder, start: float) -> dict[str, Table]:
    measures = [column.name for column in catalog.measure_columns()]
    about = json.dumps({"t_start": start, "env_id": folder.identity.game})
    return {
        name: Table(
            folder.root / f"{name}.csv", columns, preamble=f"#{about}" if name == MONITOR else ""
        )
        for name, columns in columns_of(measures).items()
    }
