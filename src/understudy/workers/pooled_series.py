"""Series of frozen matches, shared among the workers of a pool.

A part is some environments of one series. Parts need nothing of each other, so that a part which a
worker lost is played again by another, and the result is the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from understudy.adapters.environments.matches import FrozenMatch
from understudy.policy import weights as weight_files
from understudy.policy.policy import Policy
from understudy.workers import wire
from understudy.workers.pool import StartPatience, Worker, WorkerPool
from understudy.workers.series import Series, SideSource


class _Part(NamedTuple):
    series: int
    numbers: tuple[int, ...]


class PooledSeries:
    """Plays series in a pool; the pool stays open."""

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool
        self._shared: dict[int, tuple[Policy, Any]] = {}
        """Weights that were shared with the workers, by the id of their policy, which is kept."""

    def play(
        self, series: Sequence[Series], *, show: Callable[[float], None] = lambda share: None
    ) -> list[list[FrozenMatch]]:
        parts = self._divided(series)
        todo = deque(parts)
        busy: dict[str, _Part] = {}
        done: dict[_Part, list[list[FrozenMatch]]] = {}
        workers = self._pool.workers
        for worker in workers[: len(parts)]:  # others would have nothing to play
            if worker.link is None:
                self._pool.start(worker)
        patience = StartPatience(self._pool, self._pool.problem)
        while len(done) < len(parts):
            if any(worker.ready for worker in workers):
                patience = StartPatience(self._pool, self._pool.problem)
            else:
                patience.check(len(workers))
            for worker in workers:
                if todo and worker.ready and worker.name not in busy:
                    busy[worker.name] = todo.popleft()
                    self._send(worker, series, busy[worker.name])
            for worker, message, _ in self._pool.gather():
                if isinstance(message, wire.SeriesAnswer):
                    done[busy.pop(worker.name)] = wire.series_of(message)
                    show(len(done) / len(parts))
                elif message is None and worker.name in busy:
                    todo.appendleft(busy.pop(worker.name))
        return [
            one.joined([done[part] for part in parts if part.series == index])
            for index, one in enumerate(series)
        ]

    def _divided(self, series: Sequence[Series]) -> list[_Part]:
        """Parts of all series, in order: enough for all workers, and no more, since a network
        computes as much for a few environments of a series as for 32."""
        each = -(-len(self._pool.workers) // max(len(series), 1))
        return [
            _Part(index, tuple(numbers.tolist()))
            for index, one in enumerate(series)
            for numbers in np.array_split(
                np.arange(one.plan.environments), min(each, one.plan.environments)
            )
        ]

    def _send(self, worker: Worker, series: Sequence[Series], part: _Part) -> None:
        one = series[part.series]
        bots = tuple(self._pool.transport.local_path(source) for source in one.plan.bots)
        message = wire.PlaySeries(
            plan=one.plan.with_bots(bots),
            numbers=list(part.numbers),
            judged=one.judged.kind,
            other=one.other.kind if one.other else None,
        )
        sides = [side for side in (one.judged, one.other) if side and side.policy]
        self._pool.send(worker, message, [self._weights(side) for side in sides])

    def _weights(self, side: SideSource) -> Any:
        policy = side.policy
        assert policy is not None
        if id(policy) not in self._shared:
            data = weight_files.encode(policy.weights)
            self._shared[id(policy)] = policy, self._pool.transport.share(data)
        return self._shared[id(policy)][1]
