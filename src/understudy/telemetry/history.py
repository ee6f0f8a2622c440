"""What curves are drawn from: the rows of a whole run in bounded memory.

Each curve holds at most `_MOST` bins of (steps, weight, total), made of equally many rows. A full
one joins neighbours, which changes no mean over them: a run that is twice as long has wider bins.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.opponents import kind_of
from understudy.core.statistics import margin, points
from understudy.telemetry.table import GrowingTable, Value, number
from understudy.telemetry.training_rows import (
    ALL,
    BEHAVIOUR,
    CHECKPOINTS,
    LEAGUE,
    REWARDS,
    TRAINING,
)

SNAPSHOTS = "snapshots"
"""The one curve of all snapshots (`step-N`): there can be hundreds."""

HISTORY_TABLES = (BEHAVIOUR, REWARDS, CHECKPOINTS, TRAINING, LEAGUE)
"""Those that curves are made of."""
_MOST = 600
_MOST_MARKS = 2_000
_TERM = "term_"


_Bin: TypeAlias = tuple[int, float, float]


class Curve:
    """A number over steps, as weighted means of neighbouring rows."""

    def __init__(self) -> None:
        self._bins: list[_Bin] = []
        self._rows = 1
        """that a bin is made of: all alike, or the newest part of a curve would look restless"""
        self._room = 0

    def __len__(self) -> int:
        """How many bins there are."""
        return len(self._bins)

    @property
    def weight(self) -> float:
        """Of all rows together."""
        return sum(weight for _, weight, _ in self._bins)

    def add(self, steps: int, value: float, weight: float = 1.0) -> None:
        """One more row; what is not finite or weighs nothing is left out."""
        if not (np.isfinite(value) and weight > 0):
            return
        if self._room == 0:
            if len(self._bins) == _MOST:
                self._bins = [
                    _joined(a, b) for a, b in zip(self._bins[::2], self._bins[1::2], strict=True)
                ]
                self._rows *= 2
            self._bins.append((steps, 0.0, 0.0))
            self._room = self._rows
        self._bins[-1] = _joined(self._bins[-1], (steps, weight, value * weight))
        self._room -= 1

    def steps(self) -> NDArray:
        """Where each bin ends, int64 [N]."""
        return np.array([steps for steps, _, _ in self._bins], np.int64)

    def values(self, *, over: float = 0.0) -> NDArray:
        """The mean at each bin, float64 [N]: of it and the bins before it that together weigh
        `over` at least, or of all that there are."""
        bins = np.array(self._bins, np.float64).reshape(-1, 3)
        weight, total = (np.concatenate([[0.0], np.cumsum(bins[:, i])]) for i in (1, 2))
        ends = np.arange(1, len(bins) + 1)
        wanted = np.searchsorted(weight, weight[1:] - over, side="right") - 1
        begins = np.clip(wanted, 0, ends - 1)
        mean: NDArray = (total[ends] - total[begins]) / (weight[ends] - weight[begins])
        return mean

    def at(self, steps: NDArray, *, over: float = 0.0) -> NDArray:
        """The same at other steps [N], float64 [N]; 0 before the first bin."""
        values: NDArray = np.interp(steps, self.steps(), self.values(over=over), left=0.0)
        return values


class History:
    """All curves of a run."""

    def __init__(self) -> None:
        self.win_rates: dict[str, Curve] = defaultdict(Curve)
        """of training matches, by opponent; weighed by matches"""
        self.judged: dict[str, Curve] = defaultdict(Curve)
        """of frozen matches, by opponent"""
        self.returns = Curve()
        self.terms: dict[str, Curve] = defaultdict(Curve)
        self.training: dict[str, Curve] = defaultdict(Curve)
        """every number of `training_metrics.csv`"""
        self.rating, self.doubt = Curve(), Curve()
        """in points: the mean, and how far up and down the true ones are with 95% confidence"""
        self.snapshots: list[int] = []
        """steps of those that were kept"""
        self.stages: list[tuple[int, str]] = []
        """the steps at which each began"""
        self.stage_times: list[tuple[float, str]] = []
        """when each began, in seconds since the run was made"""
        self.steps = 0
        self._trained = 0

    def add(self, table: str, row: Mapping[str, Value]) -> None:
        """One more row, as it was made or as it was read from a file."""
        steps = int(number(row["steps"]))
        self.steps = max(self.steps, steps)
        if table == BEHAVIOUR:
            self.win_rates[_group(row)].add(
                steps, number(row.get("win_rate")), number(row["matches"])
            )
        elif table == CHECKPOINTS:
            self.judged[_group(row)].add(steps, number(row.get("win_rate")), number(row["matches"]))
        elif table == REWARDS and row["opponent"] == ALL:
            self._rewards(steps, row)
        elif table == TRAINING:
            self._stage(steps, str(row.get("stage") or ""))
            for name, value in row.items():
                if name not in {"steps", "time_s", "stage"}:
                    self.training[name].add(steps, number(value), number(row["iterations"]))
        elif table == LEAGUE:
            self._league(steps, row)

    def reward_terms(self, *, over: float) -> tuple[NDArray, dict[str, NDArray], NDArray]:
        """What a match earned: int64 steps [N], each reward term there, float64 [N], the largest
        first, and their sum, the return [N]. All are means over matches that weigh `over`."""
        steps = self.returns.steps()
        sizes = {
            name: float(np.abs(curve.values()).mean())
            for name, curve in self.terms.items()
            if len(curve)
        }
        largest = sorted((name for name in sizes if sizes[name] > 0), key=lambda n: -sizes[n])
        terms = {name: self.terms[name].at(steps, over=over) for name in largest}
        return steps, terms, self.returns.values(over=over)

    def _rewards(self, steps: int, row: Mapping[str, Value]) -> None:
        matches = number(row["matches"])
        self.returns.add(steps, number(row["return"]), matches)
        for name, value in row.items():
            if name.startswith(_TERM):
                self.terms[name.removeprefix(_TERM)].add(steps, number(value), matches)

    def _league(self, steps: int, row: Mapping[str, Value]) -> None:
        if row["event"] == "rating":
            self.rating.add(steps, points(number(row["mu"])))
            self.doubt.add(steps, margin(number(row["sigma"])))
        elif row["event"] == "snapshot" and number(row["kept"]) == 1:
            self.snapshots.append(steps)
            if len(self.snapshots) > _MOST_MARKS:
                self.snapshots = self.snapshots[::2]
        elif row["event"] == "stage":
            self.stage_times.append((number(row["time_s"]), str(row["name"])))
            self.stage_times = self.stage_times[-_MOST_MARKS:]

    def _stage(self, steps: int, name: str) -> None:
        """Rows of a stage say so; it began where the row before them ended."""
        if name and (not self.stages or self.stages[-1][1] != name):
            self.stages.append((self._trained, name))
            self.stages = self.stages[-_MOST_MARKS:]
        self._trained = steps


class HistoryFiles:
    """The history in the tables of a run, read as they grow. One thread.

    Args:
        root: The run folder.
        tables: Names of those that are read; MONITOR has a row a match, and adds nothing.
    """

    def __init__(self, root: Path, tables: Iterable[str] = HISTORY_TABLES) -> None:
        self._files = {name: GrowingTable(root / f"{name}.csv") for name in tables}
        self._history = History()

    def stamp(self) -> tuple[object, ...]:
        """Changes when there is more to read."""
        return tuple(one.stamp() for one in self._files.values())

    def read(self) -> History | None:
        """All rows up to now; None: there is none."""
        if any(one.replaced() for one in self._files.values()):
            # A session that resumed cut off what is not part of it, or a table has new columns.
            self._history = History()
            for one in self._files.values():
                one.rewind()
        for name, one in self._files.items():
            for row in one.new_rows():
                self._history.add(name, row)
        return self._history if self._history.steps else None


def _joined(a: _Bin, b: _Bin) -> _Bin:
    return b[0], a[1] + b[1], a[2] + b[2]


def _group(row: Mapping[str, Value]) -> str:
    name = str(row["opponent"])
    return kind_of(name, SNAPSHOTS)
