"""Budgets are refused by the name of their option, and progress ends by its budget or a signal."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import pytest

from understudy.core.errors import ConfigError
from understudy.supervise.budget import Budget
from understudy.supervise.interrupts import Interrupts
from understudy.supervise.sessions import SessionProgress, SessionSummary


@dataclass
class Asked:
    budget: Budget


@dataclass
class Counted(SessionProgress[Asked]):
    count: int = 0

    @property
    def done(self) -> int:
        return self.count


@pytest.mark.parametrize(
    ("steps", "minutes", "flag", "said"),
    [
        (None, None, "--ticks", "--ticks or --minutes: give one of them"),
        (1, 1.0, "--matches", "--matches or --minutes: give one of them"),
        (0, None, "--steps", "--steps: expected 1 or more, got 0"),
        (None, 0.0, "--steps", "--minutes: expected more than 0"),
        (None, math.nan, "--ticks", "--minutes: expected more than 0"),
        (None, math.inf, "--steps", "--minutes: expected more than 0"),
    ],
)
def test_what_cannot_be_a_budget(
    steps: int | None, minutes: float | None, flag: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        Budget(steps, minutes, flag)


def test_play_may_be_endless() -> None:
    budget = Budget(minutes=math.inf, flag="--matches")
    assert budget.share(done=10**9, elapsed_s=1e9) == 0.0
    assert budget.left_s(done=10**9, elapsed_s=1e9, per_second=1.0) is None


def test_the_estimate_follows_the_speed_or_the_clock() -> None:
    counted, timed = Budget(steps=100), Budget(minutes=2.0)
    assert counted.left_s(done=40, elapsed_s=20.0, per_second=2.0) == 30.0
    assert counted.left_s(done=0, elapsed_s=20.0, per_second=0.0) is None
    assert counted.left_s(done=110, elapsed_s=1.0, per_second=2.0) == 0.0
    assert timed.left_s(done=0, elapsed_s=30.0, per_second=0.0) == 90.0
    assert (counted.share(done=40, elapsed_s=0.0), timed.share(done=0, elapsed_s=30.0)) == (
        0.4,
        0.25,
    )


@pytest.mark.parametrize(("signalled_at", "count"), [(None, 3), (2, 2)])
def test_turns_end_with_the_budget_or_with_a_signal(signalled_at: int | None, count: int) -> None:
    progress, interrupts = Counted(Asked(Budget(steps=3))), Interrupts()
    for _ in progress.turns(interrupts):
        progress.count += 1
        interrupts.code = 130 if progress.count == signalled_at else 0
    assert progress.count == count
    summary = SessionSummary(code=interrupts.code)
    assert summary.interrupted == (signalled_at is not None)


def test_progress_estimates_by_what_was_done_so_far() -> None:
    progress = Counted(Asked(Budget(steps=4)), began=time.monotonic() - 10.0, count=1)
    assert progress.share == 0.25
    assert progress.per_second == pytest.approx(0.1, rel=0.1)
    assert progress.left_s == pytest.approx(30.0, rel=0.1)
