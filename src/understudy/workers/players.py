"""Who plays the segments of a session: this process, or workers side by side.

Both take the same work and hand back the same segment, bit for bit. A worker holds consecutive
environments and the NumPy policy, without JAX. Weights travel to it as `.npz` bytes, and segments
come back as plain arrays (`wire`). The columns of a worker that dies are masked in that segment, so
that nothing is learned from what was not played; so are those of one that is not back yet.

`AheadPlayers` does not wait: workers play on with the weights that they have while the learner
learns, and a segment is made of those parts that came first, each at most one update old.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from understudy.adapters.environments.sides import joined
from understudy.core.arrays import NDArray
from understudy.policy import weights as weight_files
from understudy.policy.policy import Policy
from understudy.policy.weights import Weights
from understudy.workers import wire
from understudy.workers.plan import RolloutPlan
from understudy.workers.pool import StartPatience, Worker, WorkerPool
from understudy.workers.rollout import OpponentOrder, Played, SideRollout

_COMES_BACK_S = 5.0
"""How long a segment waits for a worker that was started again, unless its node is lost."""
_BY_COLUMN = ("bootstrap", "next_obs", "next_first")
"""Arrays of a segment without an axis of time."""
_RECENT = 20
"""Segments that the speed of workers is taken from."""


class PlayWork(NamedTuple):
    """One segment that is to be played."""

    policy: Policy
    steps: int
    gamma: float
    order: OpponentOrder | None = None
    snapshots: Mapping[str, Weights] = {}
    """The weights of every snapshot that the order names."""
    ahead: bool = True
    """Whether workers may play on with it while the learner learns."""


@dataclass(frozen=True)
class WorkersReport:
    """How workers do, over the last segments."""

    count: int
    ready: int
    lost: int
    """Workers that died, all in all."""
    slowest: str
    """The worker that took longest; empty: none stands out."""
    slowdown: float
    """Its time over that of the median worker."""
    busy: float
    """The share of the time of a segment in which the median worker played."""
    wait_s: float
    """Mean seconds that the session waited for a segment."""

    def as_dict(self) -> dict[str, object]:
        """For `--json`."""
        slowest = {"slowest": self.slowest, "slowdown": round(self.slowdown, 2)}
        return {
            "count": self.count,
            "ready": self.ready,
            "lost": self.lost,
            **(slowest if self.slowest else {}),
            "busy": round(self.busy, 3),
            "wait_s": round(self.wait_s, 4),
        }


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


@dataclass
class _Share:
    """A worker's part of the environments."""

    worker: Worker
    known: frozenset[str] = frozenset()
    """Snapshots that it has."""
    seconds: deque[float] | None = None

    @property
    def columns(self) -> int:
        return len(self.worker.first.numbers)


class _Orders:
    """One work as messages; weights are encoded and shared once for all workers."""

    def __init__(self, pool: WorkerPool, work: PlayWork) -> None:
        self._pool = pool
        self.work = work
        self._weights = pool.transport.share(weight_files.encode(work.policy.weights))
        self._snapshots: dict[str, Any] = {}

    def send(self, share: _Share) -> None:
        work = self.work
        new = [name for name in work.snapshots if name not in share.known]
        for name in new:
            if name not in self._snapshots:
                data = weight_files.encode(work.snapshots[name])
                self._snapshots[name] = self._pool.transport.share(data)
        share.known = frozenset(work.snapshots)
        message = wire.Play(
            steps=work.steps, gamma=work.gamma, order=work.order, snapshots=tuple(new)
        )
        self._pool.send(
            share.worker, message, [self._weights, *(self._snapshots[name] for name in new)]
        )


class WorkerPlayers:
    """The environments of a plan in workers, as evenly as they can be divided."""

    def __init__(
        self,
        plan: RolloutPlan,
        pool: WorkerPool,
        *,
        note: Callable[[str], None] = lambda message: None,
    ) -> None:
        """`note` is told what a person should know who waits."""
        self._plan = plan
        self.pool = pool
        self._note = note
        parts = np.array_split(np.arange(plan.games), len(pool.workers))
        there = plan.with_bots(tuple(pool.transport.local_path(source) for source in plan.bots))
        self._shares = []
        for worker, numbers in zip(pool.workers, parts, strict=True):
            worker.first = wire.Start(plan=there, numbers=numbers.tolist())
            self._shares.append(_Share(worker, seconds=deque(maxlen=_RECENT)))
            pool.start(worker)
        self._waits: deque[float] = deque(maxlen=_RECENT)
        self._begun = False

    def play(self, work: PlayWork, *, stop: Callable[[], bool] = lambda: False) -> Played | None:
        began = time.monotonic()
        if not self._begin(stop):
            return None
        orders = _Orders(self.pool, work)
        answers: dict[str, Played | None] = {}
        asked: set[str] = set()
        while not self._complete(answers):
            if stop():
                return None
            for share in self._shares:
                worker = share.worker
                if worker.ready and worker.name not in asked | answers.keys():
                    orders.send(share)
                    asked.add(worker.name)
            for share, played in self._gather(work.policy):
                answers[share.worker.name] = played
            if self._stalled(answers):
                answers.clear()
                asked.clear()
        self._waits.append(time.monotonic() - began)
        return self._merged([answers.get(share.worker.name) for share in self._shares], work)

    def report(self) -> WorkersReport:
        """How the workers do."""
        workers = self.pool.workers
        times = {
            one.worker.name: float(np.mean(one.seconds)) for one in self._shares if one.seconds
        }
        median = float(np.median(list(times.values()))) if times else 0.0
        slowest = max(times, key=lambda name: times[name]) if len(times) > 1 else ""
        slowdown = times[slowest] / max(median, 1e-9) if slowest else 1.0
        wait_s = float(np.mean(self._waits)) if self._waits else 0.0
        return WorkersReport(
            count=len(workers),
            ready=sum(worker.ready is not None for worker in workers),
            lost=self.pool.lost,
            slowest=slowest,
            slowdown=slowdown,
            busy=min(median / max(wait_s, 1e-9), 1.0),
            wait_s=wait_s,
        )

    def close(self) -> None:
        self.pool.close()

    def _begin(self, stop: Callable[[], bool]) -> bool:
        """Wait until all workers are ready, once: what is played must not depend on how long each
        takes to start. False where `stop` ended it."""
        patience = StartPatience(self.pool, self._note)
        while not self._begun:
            waiting = sum(worker.ready is None for worker in self.pool.workers)
            if not waiting:
                self._begun = True
                break
            patience.check(waiting)
            if stop():
                return False
            for _ in self.pool.gather():
                pass
        return True

    def _gather(self, policy: Policy) -> list[tuple[_Share, Played | None]]:
        """Segments that came, and None where a worker died."""
        found: list[tuple[_Share, Played | None]] = []
        by_name = {share.worker.name: share for share in self._shares}
        for worker, message, bodies in self.pool.gather():
            share = by_name[worker.name]
            if message is None:
                share.known = frozenset()
                found.append((share, None))
            elif isinstance(message, wire.Answer):
                assert share.seconds is not None
                share.seconds.append(message.seconds)
                found.append((share, wire.played_of(message, bodies[0], policy)))
        return found

    def _complete(self, answers: Mapping[str, Played | None]) -> bool:
        """Whether nothing is to be waited for: every worker has answered or died, or is not back
        yet although the others are done and it had its time."""
        missing = [one.worker for one in self._shares if one.worker.name not in answers]
        if not missing:
            return True
        if not any(answers.values()) or any(worker.ready for worker in missing):
            return False
        now = time.monotonic()
        return all(worker.lost_nodes or now - worker.since > _COMES_BACK_S for worker in missing)

    def _stalled(self, answers: Mapping[str, Played | None]) -> bool:
        """Whether all that were asked have died while the others are not back: those that come
        back first must be asked, or the segment would wait for workers that may never start."""
        missing = [one.worker for one in self._shares if one.worker.name not in answers]
        waiting = bool(missing) and not any(worker.ready for worker in missing)
        return waiting and not any(answers.values())

    def _merged(self, parts: Sequence[Played | None], work: PlayWork) -> Played | None:
        """All columns in the order of the environments; those that were lost are masked."""
        whole = next((one for one in parts if one is not None), None)
        if whole is None:
            return None
        index = next(k for k, one in enumerate(parts) if one is whole)
        agents = whole.arrays["valid"].shape[1] // self._shares[index].columns
        return _beside(
            [
                played if played is not None else _masked(whole, share.columns * agents, work)
                for share, played in zip(self._shares, parts, strict=True)
            ]
        )


class _Flight(NamedTuple):
    """A part of a segment that a worker plays."""

    number: int
    """In the order in which they began."""
    update: int
    """The number of the work whose weights play it."""
    orders: _Orders
    environments: int


class AheadPlayers(WorkerPlayers):
    """Workers that play on while the learner learns.

    A segment is as many parts as there are workers, in any assignment: a fast worker may play
    two while a slow one plays none. At most two segments of parts are begun at a time, so when one
    has been handed out at most another is left, all of the newest work. The next `play` waits for
    those before it hands anything out, and hands them out first. A part is therefore learned from
    by the update of its own work (lag 0) or by the next one (lag 1), never later.

    Of a worker that dies the part is lost, and another part is begun in its place.
    """

    def __init__(
        self,
        plan: RolloutPlan,
        pool: WorkerPool,
        *,
        note: Callable[[str], None] = lambda message: None,
    ) -> None:
        super().__init__(plan, pool, note=note)
        self._update = 0
        self._begun_parts = 0
        self._flights: dict[str, _Flight] = {}
        self._played: list[tuple[_Flight, Played]] = []

    def play(self, work: PlayWork, *, stop: Callable[[], bool] = lambda: False) -> Played | None:
        began, size = time.monotonic(), len(self._shares)
        if not self._begin(stop):
            return None
        self._update += 1
        orders = _Orders(self.pool, work)
        while not self._due():
            if stop():
                return None
            self._send(orders, most=2 * size if work.ahead else size)
            self._collect(work.policy)
        self._played.sort(key=lambda one: one[0].number)
        taken, self._played = self._played[:size], self._played[size:]
        if work.ahead:
            self._send(orders, most=size)
        self._waits.append(time.monotonic() - began)
        return self._segment(taken, work)

    def _due(self) -> bool:
        """Whether there is a segment, and none of the parts in flight would be too old later."""
        older = any(flight.update < self._update for flight in self._flights.values())
        return len(self._played) >= len(self._shares) and not older

    def _send(self, orders: _Orders, *, most: int) -> None:
        """Begin parts with the newest work, wherever a worker waits; `most` may be there then."""
        for share in self._shares:
            worker = share.worker
            there = len(self._flights) + len(self._played)
            if there < most and worker.ready and worker.name not in self._flights:
                orders.send(share)
                self._begun_parts += 1
                self._flights[worker.name] = _Flight(
                    self._begun_parts, self._update, orders, share.columns
                )

    def _collect(self, policy: Policy) -> None:
        for share, played in self._gather(policy):
            flight = self._flights.pop(share.worker.name, None)
            if flight is not None and played is not None:
                self._played.append((flight, played))

    def _segment(self, taken: Sequence[tuple[_Flight, Played]], work: PlayWork) -> Played:
        """The parts beside each other, each as wide as the widest; values in units of now."""
        flight, played = taken[0]
        agents = played.arrays["valid"].shape[1] // flight.environments
        width = agents * max(share.columns for share in self._shares)
        parts = []
        for flight, played in taken:
            scale = flight.orders.work.policy.weights.value_scale / work.policy.weights.value_scale
            arrays = dict(played.arrays)
            if scale != 1.0:
                for key in ("values", "bootstrap"):
                    arrays[key] = (arrays[key] * scale).astype(np.float32)
            part = played._replace(arrays=arrays)
            missing = width - arrays["valid"].shape[1]
            parts.append(_beside([part, _masked(part, missing, work)]) if missing else part)
        lags = [self._update - flight.update for flight, _ in taken]
        return _beside(parts)._replace(lag=np.repeat(lags, width))


def _beside(parts: Sequence[Played]) -> Played:
    """Columns of several segments as one."""
    return Played(
        {
            key: np.concatenate([one.arrays[key] for one in parts], int(key not in _BY_COLUMN))
            for key in parts[0].arrays
        },
        joined([one.memory for one in parts]),
        [match for one in parts for match in one.finished],
        [start for one in parts for start in one.started],
    )


def _masked(like: Played, columns: int, work: PlayWork) -> Played:
    """A segment of columns in which nothing was played."""

    def blank(key: str, array: NDArray) -> NDArray:
        shape = list(array.shape)
        shape[int(key not in _BY_COLUMN)] = columns
        fill = {"legal": 1, "first": 1, "next_first": 1, "opponent_kinds": -1}.get(key, 0)
        return np.full(shape, fill, array.dtype)

    arrays = {key: blank(key, array) for key, array in like.arrays.items()}
    return Played(arrays, work.policy.begin(columns), [], [])
