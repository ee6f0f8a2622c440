"""A worker: plays some of a session's environments with NumPy, without JAX.

`EnvironmentWorker` answers messages, whatever brought them. As a process it is started as
`python -m understudy.workers.worker`. Messages come on standard input, answers go to standard
output as it was at the start; whatever an environment prints goes to standard error instead. The
end of standard input means that the session has ended.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import BinaryIO

from understudy.core.errors import UnderstudyError
from understudy.policy import weights as weight_files
from understudy.policy.policy import Policy
from understudy.workers import wire
from understudy.workers.plan import RolloutPlan
from understudy.workers.rollout import EnvironmentRollout, SideRollout
from understudy.workers.series import Series, SideKind, SideSource

Reply = tuple[wire.Message, list[bytes]]


class EnvironmentWorker:
    """Plays what it is asked for: segments of a rollout, parts of series."""

    def __init__(self, *, host: str = "") -> None:
        """Where it is, for `WorkerReady`."""
        self._host = host
        self._plan: RolloutPlan | None = None
        self._rollout: EnvironmentRollout | None = None

    def answer(self, message: wire.Message, bodies: Sequence[bytes]) -> Reply:
        """The answer to a message; an error of the environment or of a bot is `Failed`."""
        try:
            match message:
                case wire.Start():
                    return self._start(message), []
                case wire.Play():
                    return self._play(message, bodies)
                case wire.PlaySeries():
                    return self._play_series(message, bodies), []
        except UnderstudyError as error:
            return wire.Failed(message=str(error)), []
        raise wire.Broken(f"a worker takes no {type(message).__name__}")

    def close(self) -> None:
        if self._rollout is not None:
            self._rollout.close()
            self._rollout = None

    def _start(self, start: wire.Start) -> wire.WorkerReady:
        self._plan = start.plan
        if start.plan is not None:
            self._rollout = start.plan.rollout(start.numbers, restarts=start.restarts)
        return wire.WorkerReady(pid=os.getpid(), host=self._host)

    def _play(self, message: wire.Play, bodies: Sequence[bytes]) -> Reply:
        assert self._plan is not None and self._rollout is not None
        began, spec = time.monotonic(), self._plan.spec
        weights, *snapshots = (
            weight_files.decode(spec, data, what="weights of the session") for data in bodies
        )
        if isinstance(self._rollout, SideRollout):
            for name, one in zip(message.snapshots, snapshots, strict=True):
                self._rollout.add_snapshot(name, Policy(spec, one, 0))
        played = self._rollout.play(
            Policy(spec, weights, 0), message.steps, gamma=message.gamma, order=message.order
        )
        assert played is not None
        return wire.answer_of(played, seconds=time.monotonic() - began)

    def _play_series(self, message: wire.PlaySeries, bodies: Sequence[bytes]) -> wire.SeriesAnswer:
        self.close()  # the session is over: its environments may need much memory
        left = list(bodies)

        def source(kind: SideKind) -> SideSource:
            if kind.spec is None:
                return SideSource(kind)
            weights = weight_files.decode(kind.spec, left.pop(0), what="weights of a player")
            return SideSource(kind, Policy(kind.spec, weights, 0))

        judged = source(message.judged)
        other = None if message.other is None else source(message.other)
        matches = Series(message.plan, judged, other).play_part(message.numbers)
        return wire.series_answer_of(matches)


def work(orders: BinaryIO, answers: BinaryIO) -> None:
    """Answer messages until they end, or until one failed."""
    worker = EnvironmentWorker()
    try:
        while (received := wire.receive(orders)) is not None:
            reply, bodies = worker.answer(*received)
            wire.send(answers, reply, bodies)
            if isinstance(reply, wire.Failed):
                return
    finally:
        worker.close()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the session closes the pipe when it is done
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with answers:
        try:
            work(sys.stdin.buffer, answers)
        except (BrokenPipeError, wire.Broken):
            return  # the session was killed


if __name__ == "__main__":
    main()
