"""Who plays the environments of a session: this process, or worker processes side by side.

Both take the same work and hand back the same segment, bit for bit. A worker holds consecutive
environments and the NumPy policy, without JAX. Weights travel to it as `.npz` bytes, and segments
come back as plain arrays (`wire`). A worker that dies is started again; the columns that it was
playing are masked in that segment, so that nothing is learned from what was not played.

`WorkerLink` is all that a pool knows of a worker: another transport needs another link.
"""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.errors import InputError
from understudy.core.ops import Tree
from understudy.policy import weights as weight_files
from understudy.policy.policy import Policy
from understudy.policy.weights import Weights
from understudy.training.environments import wire
from understudy.training.environments.plan import RolloutPlan
from understudy.training.environments.rollout import OpponentOrder, Played, SideRollout

_TRIES = 3
"""Deaths of one worker without a segment in between that are too many."""
_PATIENCE_S = 5.0
_LOOK_S = 0.1
"""How often a wait for workers looks whether the session is to end."""
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class PlayWork(NamedTuple):
    """One segment that is to be played."""

    policy: Policy
    steps: int
    gamma: float
    order: OpponentOrder | None = None
    snapshots: Mapping[str, Weights] = {}
    """The weights of every snapshot that the order names."""


class EnvironmentPlayers(Protocol):
    """Plays the environments of a plan, segment after segment."""

    def play(self, work: PlayWork, *, stop: Callable[[], bool] = lambda: False) -> Played | None:
        """The next segment; None if `stop` ended it early."""

    def close(self) -> None: ...


class LocalPlayers:
    """All environments in this process."""

    def __init__(self, plan: RolloutPlan, *, make: Callable[[], Any] | None = None) -> None:
        self._plan = plan
        self._rollout = plan.rollout(range(plan.games), make=make)
        self._known: set[str] = set()

    def play(self, work: PlayWork, *, stop: Callable[[], bool] = lambda: False) -> Played | None:
        if isinstance(self._rollout, SideRollout):
            for name, weights in work.snapshots.items():
                if name not in self._known:
                    self._rollout.add_snapshot(name, Policy(self._plan.spec, weights, 0))
            self._known = set(work.snapshots)
        return self._rollout.play(
            work.policy, work.steps, gamma=work.gamma, order=work.order, stop=stop
        )

    def close(self) -> None:
        self._rollout.close()


class WorkerDied(Exception):
    """A worker ended by itself; its exit code."""


class WorkerLink(Protocol):
    """One worker, as the pool sees it."""

    def send(self, message: wire.Message, body: bytes) -> None:
        """Give it work; raises nothing where it is dead: `poll` says so."""

    def poll(self) -> tuple[wire.Message, bytes] | None:
        """Its answer, or None so far; `WorkerDied` where none will come."""

    def close(self) -> None:
        """End it; kills it where it does not end."""


class ProcessLink:
    """A worker as a process beside this one; its output goes to the file `errors`."""

    def __init__(self, errors: Path, wake: threading.Event) -> None:
        """`wake` is set whenever there is something to `poll`."""
        self._wake = wake
        env = {**os.environ, **_ONE_THREAD}
        env["PYTHONPATH"] = os.pathsep.join(part for part in sys.path if part)
        with errors.open("ab") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "understudy.training.environments.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                env=env,
                # Ctrl-C in a terminal reaches the trainer alone; a worker hears of it by its pipe.
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
                process_group=None if os.name == "nt" else 0,
            )
        self._answers: queue.SimpleQueue[tuple[wire.Message, bytes] | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, name="understudy-worker", daemon=True).start()

    def send(self, message: wire.Message, body: bytes) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):  # it is dead, and its output has ended
            wire.send(self.process.stdin, message, body)

    def poll(self) -> tuple[wire.Message, bytes] | None:
        try:
            answer = self._answers.get_nowait()
        except queue.Empty:
            return None
        if answer is None:
            self._answers.put(None)
            raise WorkerDied(self.process.wait())
        return answer

    def close(self) -> None:
        for pipe in (self.process.stdin,):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            self.process.wait(_PATIENCE_S)
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


class _Worker:
    """A link that is started again when it dies, and the environments behind it."""

    def __init__(self, name: str, numbers: Sequence[int], link: Callable[[], WorkerLink]) -> None:
        self.name = name
        self.numbers = list(numbers)
        self.deaths = 0
        """Since its last segment."""
        self.restarts = 0
        self.known: set[str] = set()
        """Snapshots that it has."""
        self._new_link = link
        self.link: WorkerLink | None = None

    def start(self, plan: RolloutPlan) -> WorkerLink:
        self.known = set()
        self.link = self._new_link()
        start = wire.Start(plan=plan, numbers=self.numbers, restarts=self.restarts)
        self.link.send(start, b"")
        return self.link

    def close(self) -> None:
        if self.link is not None:
            self.link.close()
            self.link = None


class WorkerPlayers:
    """The environments of a plan in worker processes, as evenly as they can be divided."""

    def __init__(
        self,
        plan: RolloutPlan,
        workers: int,
        *,
        link: Callable[[threading.Event], WorkerLink],
        problem: Callable[[str], None],
    ) -> None:
        """`link` starts a worker that sets an event whenever there is something to poll; `problem`
        is told in words when one dies."""
        self._plan = plan
        self._wake = threading.Event()
        self._problem = problem
        shares = np.array_split(np.arange(plan.games), min(workers, plan.games))
        self._workers = [
            _Worker(f"worker {k + 1}", share.tolist(), lambda: link(self._wake))
            for k, share in enumerate(shares)
        ]
        for worker in self._workers:
            worker.start(plan)

    @property
    def links(self) -> list[WorkerLink | None]:
        """Of all workers; None where one is to be started again."""
        return [worker.link for worker in self._workers]

    def play(self, work: PlayWork, *, stop: Callable[[], bool] = lambda: False) -> Played | None:
        weights = weight_files.encode(work.policy.weights)
        snapshots: dict[str, bytes] = {}
        for worker in self._workers:
            link = worker.link or worker.start(self._plan)
            new = [name for name in work.snapshots if name not in worker.known]
            for name in new:
                if name not in snapshots:
                    snapshots[name] = weight_files.encode(work.snapshots[name])
            worker.known = set(work.snapshots)
            bodies = [weights, *(snapshots[name] for name in new)]
            message = wire.Play(
                steps=work.steps,
                gamma=work.gamma,
                order=work.order,
                snapshots=tuple(new),
                sizes=tuple(map(len, bodies)),
            )
            link.send(message, b"".join(bodies))
        answers: dict[int, Played | None] = {}
        while len(answers) < len(self._workers):
            if stop():
                return None
            self._wake.wait(_LOOK_S)
            self._wake.clear()
            for index, worker in enumerate(self._workers):
                if index not in answers:
                    self._collect(index, worker, answers, work.policy)
        return self._merged(answers, work)

    def close(self) -> None:
        for worker in self._workers:
            worker.close()

    def _collect(
        self, index: int, worker: _Worker, answers: dict[int, Played | None], policy: Policy
    ) -> None:
        assert worker.link is not None
        try:
            answer = worker.link.poll()
        except WorkerDied as error:
            worker.close()
            worker.deaths += 1
            worker.restarts += 1
            lost = f"{worker.name} died (exit code {error}) with {len(worker.numbers)} environments"
            if worker.deaths == _TRIES:
                raise InputError(
                    f"{lost}, {_TRIES} times in a row: see logs/workers.err in the run folder"
                ) from error
            self._problem(f"{lost}; their matches are lost, and it is started again")
            answers[index] = None
            return
        if answer is None:
            return
        message, body = answer
        if isinstance(message, wire.Failed):
            raise InputError(message.message)
        assert isinstance(message, wire.Answer)
        worker.deaths = 0
        answers[index] = wire.played_of(message, body, policy)

    def _merged(self, answers: Mapping[int, Played | None], work: PlayWork) -> Played | None:
        """All columns in the order of the environments; those that were lost are masked."""
        whole = next((one for one in answers.values() if one is not None), None)
        if whole is None:
            return None
        agents = whole.arrays["valid"].shape[1] // self._columns_of(answers, whole)
        parts = [
            played if played is not None else _masked(whole, len(worker.numbers) * agents, work)
            for worker, played in zip(
                self._workers, (answers[index] for index in range(len(answers))), strict=True
            )
        ]
        arrays = {
            key: np.concatenate([one.arrays[key] for one in parts], 0 if key == "bootstrap" else 1)
            for key in whole.arrays
        }
        return Played(
            arrays,
            wire.joined([one.memory for one in parts]),
            [match for one in parts for match in one.finished],
            [start for one in parts for start in one.started],
        )

    def _columns_of(self, answers: Mapping[int, Played | None], whole: Played) -> int:
        """The environments of the worker that played `whole`."""
        index = next(index for index, one in answers.items() if one is whole)
        return len(self._workers[index].numbers)


def _masked(like: Played, columns: int, work: PlayWork) -> Played:
    """A segment of columns in which nothing was played."""

    def blank(key: str, array: NDArray) -> NDArray:
        shape = list(array.shape)
        shape[0 if key == "bootstrap" else 1] = columns
        fill = {"legal": 1, "first": 1, "opponent_kinds": -1}.get(key, 0)
        return np.full(shape, fill, array.dtype)

    arrays = {key: blank(key, array) for key, array in like.arrays.items()}
    memory: Tree = work.policy.begin(columns)
    return Played(arrays, memory, [], [])


def worker_players(
    plan: RolloutPlan, workers: int, *, errors: Path, problem: Callable[[str], None]
) -> WorkerPlayers:
    """Worker processes on this machine; what they print goes to the file `errors`."""
    return WorkerPlayers(
        plan, workers, link=lambda wake: ProcessLink(errors, wake), problem=problem
    )
