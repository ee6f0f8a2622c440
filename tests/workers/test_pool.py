"""When a pool gives a worker up, and when it does not."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

import pytest

from understudy.core.errors import InputError
from understudy.workers import wire
from understudy.workers.pool import WorkerDied, WorkerPool


class Scripted:
    """Where workers run, and one of them: every start of worker 1 dies as the script says, and the
    others answer whenever they are asked."""

    logs = "the script"

    def __init__(self, deaths: Sequence[WorkerDied]) -> None:
        self.deaths = deque(deaths)

    def link(self, name: str, wake: threading.Event) -> Scripted:
        wake.set()
        return self if name == "worker 1" else Answering()

    def send(self, message: wire.Message, bodies: Sequence[Any]) -> None:
        pass

    def poll(self) -> tuple[wire.Message, list[bytes]] | None:
        if self.deaths:
            raise self.deaths.popleft()
        return None

    def end(self) -> None:
        pass

    def close(self, *, deadline: float = 0.0) -> None:
        pass

    def share(self, data: bytes) -> Any:
        return data

    def local_path(self, source: str) -> str:
        return source

    def shortage(self) -> str:
        return ""


class Answering(Scripted):
    """A worker that answers, once at each look."""

    def __init__(self) -> None:
        super().__init__([])
        self._looks = 0

    def poll(self) -> tuple[wire.Message, list[bytes]] | None:
        self._looks += 1
        return (wire.SeriesAnswer(matches=[]), []) if self._looks % 2 else None


def deaths_told(*deaths: WorkerDied, workers: int = 1) -> list[str]:
    """What a person is told while worker 1 dies like this."""
    told: list[str] = []
    script = Scripted(deaths)
    with WorkerPool(script, workers, problem=told.append) as pool:
        for worker in pool.workers:
            pool.start(worker)
        while script.deaths:
            list(pool.gather())
    return told


def test_nodes_that_are_lost_again_and_again_do_not_end_a_session() -> None:
    told = deaths_told(*(WorkerDied("its node is lost", of_node=True) for _ in range(7)))
    assert len(told) == 7 and all("is started again" in words for words in told)
    with pytest.raises(InputError, match=r"its node is lost.*20 times in a row"):
        deaths_told(*(WorkerDied("its node is lost", of_node=True) for _ in range(20)))


def test_a_process_that_ends_three_times_ends_it_also_between_lost_nodes() -> None:
    process, node = WorkerDied("exit code 7"), WorkerDied("its node is lost", of_node=True)
    assert len(deaths_told(process, node, process, node)) == 4
    with pytest.raises(InputError, match=r"exit code 7.*3 times in a row: see the script"):
        deaths_told(process, node, process, node, process)


def test_a_process_that_ends_while_others_answer_is_given_more_tries() -> None:
    """It was killed from outside, or its machine has too little memory: the environment works."""
    process = WorkerDied("its process is lost")
    assert len(deaths_told(*[process] * 19, workers=2)) == 19
    with pytest.raises(InputError, match=r"its process is lost.*20 times in a row"):
        deaths_told(*[process] * 20, workers=2)
