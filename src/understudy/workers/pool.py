"""A pool of workers, and how one is reached: a process beside this one, or a Ray actor.

A pool knows a worker as a `WorkerLink` (send, poll, end, close) and where workers run as a
`Transport`. A worker that dies is started again at once; what it was doing is lost, and the caller
hears of it. A worker is asked for work only when it is ready, so that one which waits for a place
on a cluster holds up nothing.
"""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from understudy.core.errors import InputError
from understudy.workers import wire

_DEATHS = 3
"""Deaths of one worker without an answer of any that are too many: its environment, or what it
imports, ends it."""
_EXCUSED_DEATHS = 20
"""The same where that is less likely: the others answer, or it died with its node."""
_PATIENCE_S = 5.0
"""How long workers may take to end by themselves."""
_LOOK_S = 0.1
"""How long a wait for answers is at most."""
_TELL_S, _START_S = 10.0, 300.0
"""How long a start may take before it is told, and before it is given up."""
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""A worker has one core; threads of its maths library would wait for each other."""


class WorkerDied(Exception):
    """A worker ended by itself: why, in words; `of_node`: with the machine that it was on."""

    def __init__(self, why: str, *, of_node: bool = False) -> None:
        super().__init__(why)
        self.of_node = of_node


class WorkerLink(Protocol):
    """One worker, as the pool sees it."""

    def send(self, message: wire.Message, bodies: Sequence[Any]) -> None:
        """Give it work, with bodies that the transport shared; raises nothing where it is dead:
        `poll` says so."""

    def poll(self) -> tuple[wire.Message, list[bytes]] | None:
        """Its next answer, or None so far; `WorkerDied` where none will come."""

    def end(self) -> None:
        """Ask it to end; does not wait."""

    def close(self, *, deadline: float) -> None:
        """Wait for its end; kills it after the deadline, of `time.monotonic`."""


class Transport(Protocol):
    """Where workers run."""

    logs: str
    """Where what they print goes."""

    def link(self, name: str, wake: threading.Event) -> WorkerLink:
        """Start a worker, which sets `wake` whenever there is something to poll."""

    def share(self, data: bytes) -> Any:
        """Bytes as a body that may be sent to many workers."""

    def local_path(self, source: str) -> str:
        """Where workers find a file or a module with the user's code."""

    def shortage(self) -> str:
        """What workers may wait for, in words; empty where nothing is known."""

    def close(self) -> None: ...


@dataclass
class Worker:
    """A worker that is started again when it dies."""

    name: str
    first: wire.Start = field(default_factory=wire.Start)
    """What it is told at every start, but for `restarts`."""
    link: WorkerLink | None = None
    ready: wire.WorkerReady | None = None
    """None while it starts."""
    since: float = 0.0
    """When it was started, by `time.monotonic`."""
    deaths: int = 0
    """By itself, since its last answer."""
    dying_since: float = 0.0
    """When the first of these was, by `time.monotonic`."""
    lost_nodes: int = 0
    """Deaths with its node, since its last answer."""
    restarts: int = 0

    @property
    def where(self) -> str:
        """`worker 3 on host-b`, as far as it is known."""
        host = self.ready.host if self.ready else ""
        return f"{self.name} on {host}" if host else self.name


class StartPatience:
    """Waits for workers to start, for one caller: says once why it takes long, and gives up."""

    def __init__(self, pool: WorkerPool, note: Callable[[str], None]) -> None:
        self._pool = pool
        self._note = note
        self._began = time.monotonic()
        self._told = False

    def check(self, waiting: int) -> None:
        """So many workers are still waited for; `InputError` where that took too long."""
        waited = time.monotonic() - self._began
        if waited <= _TELL_S or (self._told and waited <= _START_S):
            return
        whole = f"{waiting} of {len(self._pool.workers)} workers"
        why = self._pool.transport.shortage()
        if waited > _START_S:
            raise InputError(
                f"--workers: {whole} did not start within {_START_S:.0f} s{why}; ask for fewer"
            )
        self._told = True
        self._note(f"{whole} are not ready yet{why}")


class WorkerPool:
    """Workers of one transport; use it as a context, or close it."""

    def __init__(
        self, transport: Transport, size: int, *, problem: Callable[[str], None] = lambda _: None
    ) -> None:
        """`problem` is told in words when a worker dies."""
        self.transport = transport
        self.workers = [Worker(f"worker {k + 1}") for k in range(size)]
        self.lost = 0
        """Workers that died, all in all."""
        self.problem = problem
        self._answered_at = 0.0
        """When a worker last answered, by `time.monotonic`."""
        self._wake = threading.Event()

    def start(self, worker: Worker) -> None:
        """Start a worker, or start it again."""
        worker.ready, worker.since = None, time.monotonic()
        worker.link = self.transport.link(worker.name, self._wake)
        start = worker.first
        worker.link.send(
            wire.Start(plan=start.plan, numbers=start.numbers, restarts=worker.restarts), []
        )

    def send(self, worker: Worker, message: wire.Message, bodies: Sequence[Any]) -> None:
        assert worker.link is not None
        worker.link.send(message, bodies)

    def gather(self) -> Iterator[tuple[Worker, wire.Message | None, list[bytes]]]:
        """What came since the last time, after a short wait: answers of workers, and None for each
        that died. `InputError` where an environment failed, or a worker died again and again."""
        self._wake.wait(_LOOK_S)
        self._wake.clear()
        for worker in self.workers:
            while worker.link is not None:
                try:
                    answer = worker.link.poll()
                except WorkerDied as error:
                    self._lose(worker, error)
                    yield worker, None, []
                    break
                if answer is None:
                    break
                message, bodies = answer
                if isinstance(message, wire.Failed):
                    raise InputError(message.message)
                if isinstance(message, wire.WorkerReady):
                    worker.ready = message
                else:
                    worker.deaths = worker.lost_nodes = 0
                    self._answered_at = time.monotonic()
                yield worker, message, bodies

    def close(self) -> None:
        now = time.monotonic()
        links = [
            # One that is not ready has nothing to end in good order.
            (worker.link, now + _PATIENCE_S if worker.ready else now)
            for worker in self.workers
            if worker.link is not None
        ]
        for worker in self.workers:
            worker.link = worker.ready = None
        for link, _ in links:
            link.end()
        for link, deadline in links:
            link.close(deadline=deadline)
        self.transport.close()

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _lose(self, worker: Worker, error: WorkerDied) -> None:
        """Note a death, and start the worker again."""
        assert worker.link is not None
        worker.link.end()
        worker.link.close(deadline=time.monotonic())
        worker.link = None
        if not worker.deaths:
            worker.dying_since = time.monotonic()
        worker.deaths += not error.of_node
        worker.lost_nodes += error.of_node
        worker.restarts += 1
        self.lost += 1
        held = f" with {len(worker.first.numbers)} environments" if worker.first.numbers else ""
        lost = f"{worker.where} died ({error}){held}"
        alone = self._answered_at < worker.dying_since
        most_deaths = _DEATHS if alone else _EXCUSED_DEATHS
        for deaths, most in ((worker.deaths, most_deaths), (worker.lost_nodes, _EXCUSED_DEATHS)):
            if deaths >= most:
                raise InputError(
                    f"{lost}, {most} times in a row: see {self.transport.logs}"
                ) from error
        what = "their matches are lost, and it" if held else "its matches are played again, and it"
        self.problem(f"{lost}; {what} is started again")
        self.start(worker)


def worker_pool(
    workers: int,
    *,
    ray: str = "",
    errors: Path | None = None,
    problem: Callable[[str], None] = lambda message: None,
) -> WorkerPool:
    """A pool of so many workers: processes beside this one, or, where `ray` says `local` or `auto`,
    Ray actors. What they print goes to the file `errors`; None: to standard error."""
    if ray:
        from understudy.workers.ray_actors import RayTransport

        return WorkerPool(RayTransport(ray, workers, errors=errors), workers, problem=problem)
    return WorkerPool(ProcessTransport(errors), workers, problem=problem)


class ProcessTransport:
    """Workers as processes beside this one. What they print goes to the file `errors`; None: to
    standard error."""

    def __init__(self, errors: Path | None = None) -> None:
        self._errors = errors
        self.logs = "logs/workers.err in the run folder" if errors else "what they printed above"

    def link(self, name: str, wake: threading.Event) -> ProcessLink:
        return ProcessLink(self._errors, wake)

    def share(self, data: bytes) -> bytes:
        return data

    def local_path(self, source: str) -> str:
        return source

    def shortage(self) -> str:
        return ""

    def close(self) -> None:
        pass


class ProcessLink:
    """A worker as a process beside this one; its output goes to the file `errors`."""

    def __init__(self, errors: Path | None, wake: threading.Event) -> None:
        """`wake` is set whenever there is something to `poll`."""
        self._wake = wake
        env = {**os.environ, **ONE_THREAD}
        env["PYTHONPATH"] = os.pathsep.join(part for part in sys.path if part)
        with contextlib.ExitStack() as stack:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "understudy.workers.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None if errors is None else stack.enter_context(errors.open("ab")),
                env=env,
                # Ctrl-C in a terminal reaches the trainer alone; a worker hears of it by its pipe.
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
                process_group=None if os.name == "nt" else 0,
            )
        self._answers: queue.SimpleQueue[tuple[wire.Message, list[bytes]] | None] = (
            queue.SimpleQueue()
        )
        threading.Thread(target=self._listen, name="understudy-worker", daemon=True).start()

    def send(self, message: wire.Message, bodies: Sequence[Any]) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):  # it is dead, and its output has ended
            wire.send(self.process.stdin, message, bodies)

    def poll(self) -> tuple[wire.Message, list[bytes]] | None:
        try:
            answer = self._answers.get_nowait()
        except queue.Empty:
            return None
        if answer is None:
            self._answers.put(None)
            raise WorkerDied(f"exit code {self.process.wait()}")
        return answer

    def end(self) -> None:
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()

    def close(self, *, deadline: float) -> None:
        try:
            self.process.wait(max(deadline - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def _listen(self) -> None:
        """Every answer; None at the end of its output."""
        assert self.process.stdout is not None
        with contextlib.suppress(OSError, ValueError, wire.Broken):
            while (answer := wire.receive(self.process.stdout)) is not None:
                self._answers.put(answer)
                self._wake.set()
        self._answers.put(None)
        self._wake.set()
