"""Small runs with a promotion log, for the tests of the promotion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from walk.toys import SetClock, open_run, settings

from understudy.core.clock import Clock
from understudy.gates.promotion import roles
from understudy.gates.promotion.records import Assigned, Record, Resolved
from understudy.gates.promotion.roles import PromotionState
from understudy.promotion.log import PromotionLog
from understudy.promotion.promotion import Promotion
from understudy.registry.run_folder import RunFolder

HASTY = settings(promotion__alpha=0.9, promotion__first_share=0.5, promotion__holdout=0.0)
"""One match that the canary wins promotes it."""
CANARY, INCUMBENT = 0.0, 0.99
"""Coins."""


def run(root: Path, clock: Clock | None = None, **changes: Any) -> RunFolder:
    return open_run(root, settings(**changes) if changes else HASTY, clock or SetClock())


def bot(
    folder: RunFolder, *, session: str | None = None, problems: list[str] | None = None
) -> Promotion:
    """A bot that has opened the run; without `problems` it must have none."""
    said = problems if problems is not None else _NoProblems()
    made = Promotion(folder, problem=said.append, session=session)
    made.declare(rules="rules", score=None)
    return made


class _NoProblems(list[str]):
    def append(self, message: str) -> None:
        raise AssertionError(message)


def records(folder: RunFolder) -> list[tuple[int, Record]]:
    return PromotionLog(folder.promotion).new()


def resolved(folder: RunFolder) -> list[Resolved]:
    return [record for _, record in records(folder) if isinstance(record, Resolved)]


def assigned(folder: RunFolder) -> list[Assigned]:
    return [record for _, record in records(folder) if isinstance(record, Assigned)]


def folded(folder: RunFolder) -> PromotionState:
    """What the log says to a reader that reads it for the first time."""
    return roles.fold(PromotionState(), records(folder))[0]


def counted(state: PromotionState) -> int:
    """Matches that were counted for some version."""
    return sum(record.matches for record in state.records.values())


def pointed(folder: RunFolder) -> dict[str, int]:
    found = {name: folder.pointers.read(name) for name in ("champion", "canary")}
    return {name: record.version for name, record in found.items() if record is not None}


def summary(state: PromotionState) -> dict[str, object]:
    """All that a state says, with its evidence bit for bit."""
    running = [one for one in (state.test, state.recheck) if one is not None]
    return {
        "sequence": state.sequence,
        "reigns": [
            (one.version, one.promise, one.tests, one.alarm.tolist()) for one in state.reigns
        ],
        "roles": state.roles,
        "records": {version: (one.matches, one.total) for version, one in state.records.items()},
        "running": [(one.number, one.version, one.against, one.alpha) for one in running],
        "evidence": [
            (one.trial.better.tolist(), one.trial.worse.tolist(), one.trial.arm_counts.tolist())
            for one in running
        ],
        "open": list(state.open),
        "cool_down": state.cool_down,
    }
