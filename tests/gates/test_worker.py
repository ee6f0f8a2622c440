"""Custom gates: a deadline, a circuit breaker, and failures that cost their neighbours nothing."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from threading import Event

import numpy as np
import pytest
from session.sessions import FakeClock

from understudy.core.arrays import NDArray
from understudy.gates.decision import Verdict
from understudy.gates.worker import (
    LONGEST_PAUSE_S,
    MISSES,
    PAUSE_S,
    GateFailed,
    GateLate,
    GateWorker,
)

ACTIONS = np.zeros((1, 1), np.int32)
WELL, STUCK, BROKEN = 0.0, 1.0, 2.0
"""What `Custom` does with an observation of this number."""


class Custom:
    name = "custom"

    def __init__(self) -> None:
        self.free, self.entered = Event(), Event()
        self.asked = 0

    def evaluate(self, observation: NDArray, action: NDArray) -> Verdict:
        self.asked += 1
        if observation[0] == STUCK:
            self.entered.set()
            self.free.wait()
        if observation[0] == BROKEN:
            raise ZeroDivisionError("health")
        return Verdict.of(observation[0] + 1.0, threshold=0.0)


class Bench:
    """A worker, and the parts around it that a test looks at."""

    def __init__(self, deadline_ms: float) -> None:
        self.gate, self.clock = Custom(), FakeClock()
        self.worker = GateWorker(self.gate, deadline_ms=deadline_ms, clock=self.clock)

    def ask(self, *numbers: float) -> list[Verdict]:
        rows = np.array(numbers, np.float32)[:, None]
        return self.worker.evaluate_all(rows, np.zeros((len(rows), 1), np.int32))

    @property
    def circuit(self) -> str:
        return self.worker.circuit

    def miss(self) -> None:
        with pytest.raises(GateLate):
            self.ask(STUCK)
        assert self.gate.entered.wait(30.0)

    def miss_again(self) -> None:
        """The same call is still not back when the next deadline is over."""
        self.clock.now += 0.002
        self.miss()

    def finish(self) -> None:
        """The gate returns from what it is stuck in, and its thread is idle again."""
        assert self.worker._task is not None
        self.gate.free.set()
        assert self.worker._task.done.wait(30.0)
        self.gate.free.clear()


@pytest.fixture
def patient() -> Iterator[Bench]:
    bench = Bench(deadline_ms=30_000.0)
    yield bench
    bench.worker.close()


@pytest.fixture
def strict() -> Iterator[Bench]:
    bench = Bench(deadline_ms=1.0)
    yield bench
    bench.gate.free.set()
    bench.worker.close()


def test_the_verdicts_are_the_gates(patient: Bench) -> None:
    assert patient.worker.name == "custom"
    assert patient.ask(WELL, WELL) == [Verdict(True, 1.0)] * 2
    assert patient.worker.evaluate(np.zeros(1, np.float32), ACTIONS[0]) == Verdict(True, 1.0)
    assert (patient.circuit, patient.worker.misses) == ("closed", 0)


def test_a_gate_that_raises_names_the_rows_and_is_asked_again(patient: Bench) -> None:
    with pytest.raises(GateFailed, match="ZeroDivisionError: health") as failed:
        patient.ask(WELL, BROKEN, WELL, BROKEN)
    assert failed.value.rows == {1, 3}
    assert patient.ask(WELL) == [Verdict(True, 1.0)]
    assert (patient.circuit, patient.worker.misses) == ("closed", 0)


def test_what_a_gate_raised_is_told_with_where(patient: Bench) -> None:
    with pytest.raises(GateFailed) as failed:
        patient.ask(BROKEN)
    cause = failed.value.__cause__
    assert isinstance(cause, ZeroDivisionError)
    assert any(
        "test_worker" in frame.filename for frame in traceback.extract_tb(cause.__traceback__)
    )


def test_a_gate_that_exits_ends_no_worker(patient: Bench) -> None:
    def leave(observations: NDArray, actions: NDArray) -> list[Verdict]:
        sys.exit("no more")

    patient.gate.evaluate_all = leave  # type: ignore[attr-defined]
    for _ in range(2):
        with pytest.raises(GateFailed, match="SystemExit: no more") as failed:
            patient.ask(WELL, WELL)
        assert failed.value.rows == {0, 1}


def test_a_gate_without_a_verdict_for_each_failed_on_all(patient: Bench) -> None:
    def short(observations: NDArray, actions: NDArray) -> list[Verdict]:
        return [Verdict(True, 0.0)]

    patient.gate.evaluate_all = short  # type: ignore[attr-defined]
    with pytest.raises(GateFailed, match="a Verdict for each") as failed:
        patient.ask(WELL, WELL)
    assert failed.value.rows == {0, 1}


def test_past_the_deadline_nothing_is_waited_for_and_nothing_more_is_asked(strict: Bench) -> None:
    strict.miss()
    for _ in range(2 * MISSES):  # all within the time of one deadline: still the same miss
        with pytest.raises(GateLate, match="gate_deadline_ms = 1 ms"):
            strict.ask(WELL)
    assert (strict.gate.asked, strict.worker.misses, strict.circuit) == (1, 1, "closed")
    strict.miss_again()
    assert (strict.gate.asked, strict.worker.misses) == (1, 2)


def test_the_circuit_opens_after_five_misses_and_closes_when_a_trial_is_in_time(
    strict: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(MISSES):
        assert strict.circuit == "closed"
        strict.miss_again()
    assert strict.circuit == "open"
    with pytest.raises(GateLate, match="tried again later"):
        strict.ask(WELL)
    assert strict.worker.misses == MISSES  # one that was not asked missed nothing
    pause_s = PAUSE_S
    for _ in range(8):  # every trial fails: the pauses double, up to the longest
        strict.clock.now += pause_s - 0.25
        assert strict.circuit == "open"
        strict.clock.now += 0.25
        assert strict.circuit == "half-open"
        strict.miss()
        assert strict.circuit == "open"
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
    strict.finish()
    strict.clock.now += LONGEST_PAUSE_S
    monkeypatch.setattr(strict.worker, "_deadline_ms", 30_000.0)  # however busy the machine is
    assert strict.ask(WELL) == [Verdict(True, 1.0)]
    assert strict.circuit == "closed"
    monkeypatch.setattr(strict.worker, "_deadline_ms", 1.0)
    for _ in range(MISSES):
        strict.miss_again()
    strict.clock.now += PAUSE_S  # the first pause is short again
    assert strict.circuit == "half-open"
