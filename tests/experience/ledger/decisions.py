"""Decisions of the tiny run, and the obvious account of what should become of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from walk.power import UnsyncedDisk
from walk.toys import SPEC, START, SetClock

from understudy.core import files
from understudy.experience.episode import Episode, Outcome, check
from understudy.experience.ledger import Closing, Ledger, Opened
from understudy.policy.spec import PolicySpec


def seen(key: int) -> bytes:
    """The observation of a decision: its number is the first feature."""
    return np.array([key, 0.5], "<f4").tobytes()


def decision(key: int, territory: str = "north", **changes: Any) -> Opened:
    values: dict[str, Any] = {
        "id": key,
        "territory": territory,
        "client": "c1",
        "tick": key,
        "at": START,
        "version": 3,
        "action": (key % 2,),
        "log_prob": -0.7,
        "value": 0.25,
        "sampled": True,
        "sent": True,
        "explored": False,
        "expected": 0.125,
        "observation": seen(key),
    }
    return Opened(**values | changes)


def settled(*keys: int, **changes: Any) -> list[Closing]:
    return [Closing(id=key, state="settled", reward=key / 8, **changes) for key in keys]


class Spooled(list[Episode]):
    """Takes episodes as a spool does, and fails as a full disk does when it is told to."""

    full = False

    def put(self, episode: Episode) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        check(episode, SPEC, what=episode.meta.id)
        self.append(episode)

    @property
    def keys(self) -> list[tuple[int, ...]]:
        return [keys_of(episode) for episode in self]


def keys_of(episode: Episode) -> tuple[int, ...]:
    """Which decisions are in it."""
    return tuple(int(key) for key in episode.observations[:, 0])


def ledger_at(
    folder: Path, spooled: Spooled | None = None, spec: PolicySpec = SPEC, **changes: Any
) -> Ledger:
    """A ledger without threads, of short segments."""
    options: dict[str, Any] = {
        "segment": 3,
        "clock": SetClock(),
        "put": (Spooled() if spooled is None else spooled).put,
        "sync_ms": 50.0,
        "background": False,
    }
    return Ledger(folder, spec, **options | changes)


def open_some(ledger: Ledger, count: int, territory: str = "north", **changes: Any) -> list[int]:
    keys = list(ledger.take_ids(count))
    ledger.open([decision(key, territory, **changes) for key in keys])
    return keys


@contextmanager
def no_waiting() -> Iterator[None]:
    """Nobody cuts the power here: syncs cost nothing."""
    with files.using(UnsyncedDisk()):
        yield


@dataclass
class Known:
    """What the model knows of one decision."""

    key: int
    client: str
    state: str = "open"
    reward: float = 0.0
    terminal: bool = False
    outcome: str = ""
    cut: bytes | None = None


@dataclass(frozen=True)
class Expected:
    """A segment as it should leave."""

    keys: tuple[int, ...]
    rewards: tuple[float, ...]
    bootstrap: bytes
    outcome: Outcome

    @classmethod
    def of(cls, episode: Episode) -> Expected:
        bootstrap = b"" if episode.bootstrap is None else episode.bootstrap.astype("<f4").tobytes()
        rewards = tuple(float(reward) for reward in episode.rewards)
        return cls(keys_of(episode), rewards, bootstrap, episode.meta.outcome)


def expected_segments(decisions: Sequence[Known], limit: int) -> Iterable[Expected]:
    """What should have left of one territory so far, from all its decisions in order."""
    run: list[Known] = []

    def leave(bootstrap: bytes, outcome: Outcome = Outcome.ABORTED) -> Expected:
        segment = Expected(
            tuple(one.key for one in run), tuple(one.reward for one in run), bootstrap, outcome
        )
        run.clear()
        return segment

    for one, following in zip_longest(decisions, decisions[1:]):
        if one.state == "open":
            return
        if one.state != "settled":
            if run:
                yield leave(seen(one.key))
            continue
        run.append(one)
        if one.terminal:
            yield leave(b"", Outcome(one.outcome or "tie"))
        elif one.cut is not None:
            yield leave(one.cut)
        elif following is not None and (len(run) == limit or following.client != one.client):
            yield leave(seen(following.key))
