"""Troubles are noted once, with what is needed to mend them, and never between a person's lines."""

from __future__ import annotations

import logging
from pathlib import Path

from understudy.core.clock import LogicalClock
from understudy.server.error_log import LOG, ErrorLog, logging_to
from understudy.telemetry import events
from understudy.telemetry.journal import Journal, Reader


def test_the_same_trouble_is_noted_once_a_minute(tmp_path: Path) -> None:
    clock = LogicalClock()
    errors = ErrorLog(Journal(tmp_path, "server", clock), clock)
    with logging_to(tmp_path):
        for _ in range(50):
            errors.note("it broke", ValueError("again"))
        clock.now += 61.0
        errors.note("it broke", ValueError("again"))
    noted = [entry.e for entry in Reader(tmp_path).new()]
    assert noted == [events.Problem(where="server", message="it broke: ValueError: again")] * 2
    log = (tmp_path / LOG).read_text(encoding="utf-8")
    assert log.count("ValueError: again") == 2 and "Traceback" not in log.split("it broke")[0]


def test_a_flood_of_different_troubles_takes_no_memory(tmp_path: Path) -> None:
    clock = LogicalClock()
    errors = ErrorLog(Journal(tmp_path, "server", clock), clock)
    with logging_to(tmp_path):
        for number in range(1000):
            errors.note(f"trouble {number}")
    assert len(errors._said) <= 256


def test_afterwards_logging_is_as_it_was(tmp_path: Path) -> None:
    log = logging.getLogger("uvicorn.error")
    before = (list(log.handlers), log.propagate)
    with logging_to(tmp_path):
        assert not log.propagate
    assert (list(log.handlers), log.propagate) == before
