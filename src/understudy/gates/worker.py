"""A custom gate in a thread of its own, with a deadline and a circuit breaker.

The caller waits for `deadline_ms` and no longer. A gate that is past its deadline keeps its thread
until it returns; meanwhile it is asked nothing, no caller waits, and it counts as one more miss
whenever that time has passed again. After `MISSES` misses in a row the circuit opens: the gate is
not asked for a pause. Then one batch tries it (half-open). If the gate answers that one in time the
circuit closes, else it opens again for twice as long, up to a minute.

A thread is no other process: a gate that computes in pure Python holds the interpreter's lock, and
the caller competes for it. The deadline bounds what the caller waits for, not that competition.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Literal, TypeAlias

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.clock import Clock
from understudy.core.errors import UnderstudyError
from understudy.gates.decision import DecisionGate, Verdict, judge

MISSES = 5
PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0

Circuit: TypeAlias = Literal["closed", "open", "half-open"]


class GateLate(UnderstudyError):
    """A gate did not judge a batch in time, or is not asked because it did not do so before."""


class GateFailed(UnderstudyError):
    """A gate raised, or did not give a verdict, for these rows of a batch."""

    def __init__(self, rows: Sequence[int], error: BaseException) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.rows = frozenset(rows)
        self.__cause__ = error  # so that the log shows where in the gate it was raised


class _Task:
    """A batch, and what the gate said of it once `done` is set."""

    def __init__(self, observations: NDArray, actions: NDArray) -> None:
        self.observations, self.actions = observations, actions
        self.done = threading.Event()
        self.verdicts: list[Verdict] = []
        self.error: GateFailed | None = None


class GateWorker:
    """The gate that it is given, judged in one worker thread. One caller at a time."""

    def __init__(self, gate: DecisionGate, *, deadline_ms: float, clock: Clock) -> None:
        self.name = gate.name
        self.misses = 0
        """Deadlines that it missed, in all"""
        self._gate = gate
        self._deadline_ms = deadline_ms
        self._clock = clock
        self._in_a_row = 0
        self._pause_s = PAUSE_S
        self._missed_at = 0.0
        self._ask_again_at = 0.0
        self._task: _Task | None = None
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        # A daemon: a gate that never returns must not keep the process alive.
        threading.Thread(target=self._work, name="gate", daemon=True).start()

    @property
    def circuit(self) -> Circuit:
        """`open`: the gate is not asked; `half-open`: the next batch tries whether it is well."""
        if self._in_a_row < MISSES:
            return "closed"
        return "open" if self._clock.monotonic() < self._ask_again_at else "half-open"

    def evaluate(self, observation: NDArray, action: NDArray) -> Verdict:
        return self.evaluate_all(observation[None], action[None])[0]

    def evaluate_all(self, observations: NDArray, actions: NDArray) -> list[Verdict]:
        """A verdict for each of observations [B, F] and actions [B, parts].

        Raises `GateLate` past the deadline and while the circuit is open, and `GateFailed` with
        the rows that the gate raises for.
        """
        if self.circuit == "open":
            raise GateLate(
                f"the gate missed its deadline {MISSES} times in a row and is tried again later"
            )
        if self._task is not None and not self._task.done.is_set():
            if 1e3 * (self._clock.monotonic() - self._missed_at) >= self._deadline_ms:
                self._miss()
            raise self._late()
        task = self._task = _Task(observations, actions)
        self._tasks.put(task)
        if not task.done.wait(self._deadline_ms / 1e3):
            self._miss()
            raise self._late()
        self._in_a_row, self._pause_s = 0, PAUSE_S
        if task.error is not None:
            raise task.error
        return task.verdicts

    def close(self) -> None:
        """The thread ends once the gate has returned."""
        self._tasks.put(None)

    def _miss(self) -> None:
        self.misses += 1
        self._in_a_row += 1
        self._missed_at = self._clock.monotonic()
        if self._in_a_row >= MISSES:
            self._ask_again_at = self._missed_at + self._pause_s
            self._pause_s = min(2.0 * self._pause_s, LONGEST_PAUSE_S)

    def _late(self) -> GateLate:
        return GateLate(f"past live.gate_deadline_ms = {self._deadline_ms:g} ms for a batch")

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                task.verdicts = _verdicts(self._gate, task.observations, task.actions)
            except BaseException as error:  # noqa: BLE001  a gate may be a user's code; even if it
                # calls sys.exit() the thread goes on, and the caller is told
                task.error = _failure(self._gate, task, error)
            task.done.set()


def _verdicts(gate: DecisionGate, observations: NDArray, actions: NDArray) -> list[Verdict]:
    with np.errstate(over="ignore", invalid="ignore"):  # as for gates that are asked inline
        verdicts = judge(gate, observations, actions)
    if len(verdicts) != len(observations) or not all(isinstance(one, Verdict) for one in verdicts):
        raise TypeError("expected a Verdict for each observation")
    return verdicts


def _failure(gate: DecisionGate, task: _Task, error: BaseException) -> GateFailed:
    """Which rows the gate fails on, found by asking for each alone, still within the deadline;
    where it fails on none of them alone, it failed on all of them together."""
    rows = []
    for row in range(len(task.observations)):
        try:
            _verdicts(gate, task.observations[row : row + 1], task.actions[row : row + 1])
        except BaseException as alone:  # noqa: BLE001  as above
            rows.append(row)
            error = alone
    return GateFailed(rows or range(len(task.observations)), error)
