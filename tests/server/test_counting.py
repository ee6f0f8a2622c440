"""What a server tells the journal: differences that add up to its own counts."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("starlette")

from doctor.written_runs import play, served

from understudy.core.clock import SystemClock
from understudy.registry.run_folder import RunFolder
from understudy.run.view import read_view
from understudy.server.counting import EVERY_S
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Reader


def told(run: Path) -> list[ev.ServerCounted]:
    entries = Reader(run / "journal").new()
    return [one.e for one in entries if isinstance(one.e, ev.ServerCounted)]


def test_a_run_folder_knows_what_its_server_answered(tmp_path: Path) -> None:
    with served(tmp_path / "run", gate="doctor.written_runs:TestGate") as at:
        at.server.beat(0.0)
        play(at, ticks=30)
        at.server.batching.latency.add(0.004)
        at.server.beat(EVERY_S)
        at.server.refusals["rate"] += 2
        play(at, ticks=20)
        live = at.session.status()
    first, second = told(tmp_path / "run")
    assert (first.decisions, second.decisions) == (30, 20)
    assert first.seconds == EVERY_S and first.gate == "test"
    assert first.answers == (0,) * 7 + (1,) and not second.answers
    assert second.errors == {"rate": 2}
    totals = read_view(RunFolder.load(tmp_path / "run", SystemClock())).status.server
    assert totals is not None and totals.answers == first.answers
    names = ("decisions", "sent", "waited", "explored", "degraded")
    assert [getattr(totals, one) for one in names] == [getattr(live, one) for one in names]


def test_an_idle_server_tells_nothing(tmp_path: Path) -> None:
    with served(tmp_path / "run") as at:
        for beat in range(6):
            at.server.beat(beat * EVERY_S)
    assert not told(tmp_path / "run")
