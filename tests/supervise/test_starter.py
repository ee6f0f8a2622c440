"""What a person hears of the learner's troubles: why, and once."""

from __future__ import annotations

from pathlib import Path

import pytest
from bot.minds import journal, mind

from understudy.core.clock import SystemClock
from understudy.registry.run_folder import RunFolder
from understudy.supervise.process import REFUSED
from understudy.supervise.starter import LearnerFailures, LearnerParent, stop
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Journal


def test_the_last_words_of_a_learner_are_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mind(tmp_path).close()
    errors = tmp_path / "logs" / "learner.err"
    errors.write_bytes(b"of an earlier session\n")
    clock = SystemClock()
    folder = RunFolder.load(tmp_path, clock)
    problems: list[str] = []
    failures = LearnerFailures(
        folder,
        LearnerParent(
            journal=Journal(folder.journal, "bot", clock),
            note=problems.append,
            problem=problems.append,
            alone="",
            meanwhile="this bot looks again",
            prints=True,
        ),
    )

    def dies(words: bytes, code: int = 1) -> str:
        with errors.open("ab") as file:
            file.write(words)
        failures.died(code, 0.5)
        return capsys.readouterr().err

    said = dies(b"Traceback\n" + b"x" * 9000 + b"\nMemoryError: \x1b[31m\xff\n\n")
    assert said.endswith("MemoryError: \\x1b[31m\ufffd\n") and said.count("\n") == 1
    assert dies(b"MemoryError: \x1b[31m\xff\n") == ""
    assert "no word" in dies(b"", -9) and dies(b"", -9) == ""
    assert "no GPU" in dies(b"no GPU")
    assert len([event for event in journal(tmp_path) if isinstance(event, ev.LearnerDied)]) == 5
    assert dies(b"refused\n", REFUSED) == dies(b"refused\n", REFUSED) == ""
    assert len(problems) == 1 and "looks again" in problems[0]


class _Busy:
    """A learner that ends only when it is killed."""

    alive = True

    def wake(self) -> None:
        """It does not listen."""

    def stop(self, timeout_s: float) -> bool:
        assert timeout_s > 20.0, "a moment longer than it may drain, to publish"
        return False


def test_a_learner_that_had_to_be_killed_is_told_with_how_long_it_had() -> None:
    told = stop(_Busy(), drain_s=20.0)
    assert "still starting or at work after 30 s" in told and "nothing is lost" in told
