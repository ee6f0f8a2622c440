"""What every session of play and of training has: progress, a loop that ends, and a summary.

`play`, `train` (one agent, a population, an environment) and play on a server derive their own
progress and summary from the classes here and add only the fields that differ.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from understudy.supervise.budget import Budget
from understudy.supervise.interrupts import Interrupts


class BudgetedSession(Protocol):
    """What is asked of a session."""

    @property
    def budget(self) -> Budget:
        """How long it is."""


S = TypeVar("S", bound=BudgetedSession)


@dataclass
class SessionProgress(ABC, Generic[S]):
    """How far a session is. The session updates it; screens read it."""

    session: S
    version: int = 0
    """The newest version of the policy."""
    began: float = field(default_factory=time.monotonic)

    @property
    @abstractmethod
    def done(self) -> int:
        """What the budget counts, so far."""

    @property
    def elapsed_s(self) -> float:
        """Since the session began, compilation included."""
        return time.monotonic() - self.began

    @property
    def share(self) -> float:
        """How much of the session is over, 0 to 1."""
        return self.session.budget.share(done=self.done, elapsed_s=self.elapsed_s)

    @property
    def per_second(self) -> float:
        """How much of what the budget counts is done in a second."""
        return self.done / max(self.elapsed_s, 1e-9)

    @property
    def left_s(self) -> float | None:
        """Estimated seconds until the end; None where there is no estimate."""
        return self.session.budget.left_s(
            done=self.done, elapsed_s=self.elapsed_s, per_second=self.per_second
        )

    def turns(self, interrupts: Interrupts) -> Iterator[None]:
        """One turn after the other, until the budget is spent or a signal asks for the end."""
        while self.share < 1.0 and not interrupts.asked:
            yield


@dataclass(frozen=True, kw_only=True)
class SessionSummary:
    """The result of a session."""

    code: int
    """The exit code of the process: 0, 130 after Ctrl-C, 143 after SIGTERM."""

    @property
    def interrupted(self) -> bool:
        """Whether a signal ended it early."""
        return self.code != 0

    def as_dict(self) -> dict[str, object]:
        """For `--json`."""
        return {"interrupted": self.interrupted}
