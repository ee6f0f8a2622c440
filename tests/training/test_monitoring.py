from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from telemetry.entries import at, batch, iteration, published

from understudy.core.config import MonitorConfig
from understudy.core.errors import MissingDependency
from understudy.core.spaces import Discrete
from understudy.policy.mlp import Mlp
from understudy.policy.spec import PolicySpec
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events as ev
from understudy.telemetry.history import History
from understudy.telemetry.journal import Entry
from understudy.telemetry.training_rows import BEHAVIOUR, MONITOR, REWARDS, TRAINING, columns_of
from understudy.training import monitoring
from understudy.training.monitoring import CURVES, Monitoring

START = 1_000.0


class Hands:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = START

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch, clock: Hands) -> list[float]:
    """When pictures were drawn; each takes a second."""
    moments: list[float] = []

    def draw(*_: object, **__: object) -> bytes:
        moments.append(clock.now)
        clock.now += 1.0
        return b"picture"

    monkeypatch.setattr(monitoring, "draw", draw)
    return moments


def folder_at(root: Path, clock: Hands) -> RunFolder:
    spec = PolicySpec(("a", "b"), Discrete(("x", "y")), Mlp())
    return RunFolder.open(root, spec=spec, config=None, clock=clock, game="brawl 1")


def session(first: int, last: int, *, commit_every: int = 10) -> Iterator[Entry]:
    """Iterations `first` to `last` of 64 steps, a second each, with a version every few."""
    for i in range(first, last + 1):
        t, won = START + i, 1 if i % 3 else -1
        yield at(t, batch(steps=64))
        match = ("based" if i % 2 else "step-64", won, 100 + i, {"win": 65536 * won, "hit": i})
        yield at(t, iteration(64 * i, match))
        if i % commit_every == 0:
            yield at(t, published(i // commit_every, 10))


def feed(monitor: Monitoring, entries: Iterable[Entry], clock: Hands) -> None:
    for entry in entries:
        clock.now = max(clock.now, entry.t)
        monitor.add(entry)


def table(root: Path, name: str) -> list[dict[str, str]]:
    with (root / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        if name == MONITOR:
            next(file)
        return list(csv.DictReader(file))


def totals(root: Path) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    for row in table(root, BEHAVIOUR):
        for column in ("matches", "wins", "losses"):
            key = (row["opponent"], column)
            found[key] = found.get(key, 0.0) + float(row[column])
    return found


def test_all_files_are_there_from_the_start_and_whole_at_the_end(
    tmp_path: Path, clock: Hands, drawn: list[float]
) -> None:
    monitor = Monitoring(folder_at(tmp_path, clock), MonitorConfig(), at_steps=0, clock=clock)
    assert all((tmp_path / f"{name}.csv").exists() for name in columns_of(()))
    feed(monitor, session(1, 33), clock)
    monitor.close()
    assert [int(row["steps"]) for row in table(tmp_path, MONITOR)] == [64 * i for i in range(1, 34)]
    assert sum(float(row["iterations"]) for row in table(tmp_path, TRAINING)) == 33
    assert sum(value for (_, what), value in totals(tmp_path).items() if what == "matches") == 33
    assert {row["residual"] for row in table(tmp_path, REWARDS)} == {"0"}
    assert (tmp_path / CURVES).read_bytes() == b"picture"


def test_monitor_csv_opens_with_the_line_that_readers_of_the_format_expect(
    tmp_path: Path, clock: Hands, drawn: list[float]
) -> None:
    monitor = Monitoring(folder_at(tmp_path, clock), MonitorConfig(), at_steps=0, clock=clock)
    feed(monitor, session(1, 3), clock)
    monitor.close()
    about, header, first = (tmp_path / "monitor.csv").read_text(encoding="utf-8").splitlines()[:3]
    assert json.loads(about.removeprefix("#")) == {"t_start": START, "env_id": "brawl 1"}
    assert header.startswith("r,l,t,")
    assert first == "1.000015,101,1,64,based,win"


def test_a_session_killed_anywhere_leaves_the_same_tables_in_the_end(
    tmp_path: Path, clock: Hands, drawn: list[float]
) -> None:
    once, twice = tmp_path / "once", tmp_path / "twice"
    made = {root: folder_at(root, clock) for root in (once, twice)}  # at the same moment
    whole = Monitoring(made[once], MonitorConfig(), at_steps=0, clock=clock)
    feed(whole, session(1, 40), clock)
    whole.close()
    killed = Monitoring(made[twice], MonitorConfig(), at_steps=0, clock=clock)
    feed(killed, session(1, 29), clock)  # version 2 holds 20 of them; nothing is closed
    assert int(table(twice, MONITOR)[-1]["steps"]) > 64 * 20
    resumed = Monitoring(made[twice], MonitorConfig(), at_steps=64 * 20, clock=clock)
    assert [int(row["steps"]) for row in table(twice, MONITOR)] == [64 * i for i in range(1, 21)]
    feed(resumed, session(21, 40), clock)
    resumed.close()
    assert table(once, MONITOR) == table(twice, MONITOR)
    assert totals(once) == totals(twice)


def test_curves_of_a_resumed_run_begin_where_the_run_began(
    tmp_path: Path, clock: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[int] = []

    def draw(history: History, **_: object) -> bytes:
        shown.append(int(history.win_rates["based"].steps()[0]))
        return b"picture"

    monkeypatch.setattr(monitoring, "draw", draw)
    for begin, end in ((1, 20), (21, 40)):
        monitor = Monitoring(
            folder_at(tmp_path, clock), MonitorConfig(), at_steps=64 * (begin - 1), clock=clock
        )
        feed(monitor, session(begin, end), clock)
        monitor.close()
    assert shown[0] == shown[1]


def test_drawing_takes_half_a_percent_of_the_time(
    tmp_path: Path, clock: Hands, drawn: list[float]
) -> None:
    monitor = Monitoring(folder_at(tmp_path, clock), MonitorConfig(), at_steps=0, clock=clock)
    feed(monitor, session(1, 1_000), clock)
    assert drawn[0] - START >= 120
    assert all(after - before >= 200 for before, after in pairwise(drawn))
    assert len(drawn) >= 3
    count = len(drawn)
    monitor.close()
    assert len(drawn) == count + 1


def test_nothing_new_is_not_drawn_again(tmp_path: Path, clock: Hands, drawn: list[float]) -> None:
    folder = folder_at(tmp_path, clock)
    for at_steps in (0, 0):
        monitor = Monitoring(folder, MonitorConfig(), at_steps=at_steps, clock=clock)
        monitor.close()
    assert drawn == []


def test_switched_off_it_writes_nothing(tmp_path: Path, clock: Hands) -> None:
    folder = folder_at(tmp_path, clock)
    before = sorted(tmp_path.iterdir())
    monitor = Monitoring(folder, MonitorConfig(csv=False), at_steps=0, clock=clock)
    feed(monitor, session(1, 20), clock)
    monitor.close()
    assert sorted(tmp_path.iterdir()) == before


def test_without_matplotlib_tables_are_written_and_that_is_said_once(
    tmp_path: Path,
    clock: Hands,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monitor = Monitoring(folder_at(tmp_path, clock), MonitorConfig(), at_steps=0, clock=clock)
    feed(monitor, session(1, 500), clock)
    monitor.close()
    assert capsys.readouterr().err.count('pip install ".[plots]"') == 1
    assert len(table(tmp_path, MONITOR)) == 500


def test_tensorboard_that_is_asked_for_and_missing_is_told_before_anything_is_written(
    tmp_path: Path, clock: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    folder = folder_at(tmp_path, clock)
    with pytest.raises(MissingDependency):
        Monitoring(folder, MonitorConfig(tensorboard=True), at_steps=0, clock=clock)
    assert not (tmp_path / "monitor.csv").exists()


def test_tensorboard_alone(tmp_path: Path, clock: Hands) -> None:
    config = MonitorConfig(csv=False, tensorboard=True)
    monitor = Monitoring(folder_at(tmp_path, clock), config, at_steps=0, clock=clock)
    feed(monitor, session(1, 20), clock)
    monitor.add(at(clock.now, ev.Note(where="x", message="y")))
    monitor.close()
    assert list((tmp_path / "tensorboard").glob("events.*"))
