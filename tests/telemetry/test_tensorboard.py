from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

from understudy.core.errors import MissingDependency
from understudy.telemetry.tensorboard import TensorBoard
from understudy.telemetry.training_rows import BEHAVIOUR, LEAGUE, MONITOR, REWARDS


def scalars(folder: Path) -> dict[str, tuple[int, float, float]]:
    """Steps, value and wall time by tag, from every record of every file."""
    from tensorboardX.proto.event_pb2 import Event

    found = {}
    for path in sorted(folder.glob("events.*")):
        data, begin = path.read_bytes(), 0
        while begin < len(data):
            (size,) = struct.unpack_from("<Q", data, begin)
            event = Event.FromString(data[begin + 12 : begin + 12 + size])
            begin += 12 + size + 4
            for value in event.summary.value:
                found[value.tag] = (event.step, value.simple_value, event.wall_time)
    return found


def test_numbers_become_scalars_by_table_column_and_opponent(tmp_path: Path) -> None:
    board = TensorBoard(tmp_path, at_steps=0, start=1_000.0)
    common = {"time_s": 2.5, "steps": 64}
    board.add(BEHAVIOUR, {**common, "stage": "one", "opponent": "based", "win_rate": 0.75})
    board.add(REWARDS, {**common, "opponent": "all", "return": 0.5, "term_win": 0.25})
    board.add(LEAGUE, {**common, "event": "rating", "name": "learner", "mu": 25.5, "sigma": 2.0})
    board.add(LEAGUE, {**common, "event": "snapshot", "name": "step-64", "kept": 1, "pool": 3})
    board.add(MONITOR, {"r": 1.0, "l": 30, "t": 2.5, "steps": 64, "opponent": "based"})
    board.close()
    assert scalars(tmp_path) == {
        "behavior_metrics/win_rate/based": (64, 0.75, 1_002.5),
        "reward_breakdown/return": (64, 0.5, 1_002.5),
        "reward_breakdown/term_win": (64, 0.25, 1_002.5),
        "league/mu": (64, 25.5, 1_002.5),
        "league/sigma": (64, 2.0, 1_002.5),
    }


def test_without_the_library_the_error_has_the_line_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(MissingDependency, match=r'pip install "\.\[tensorboard\]"'):
        TensorBoard(tmp_path, at_steps=0, start=0.0)
