"""What `understudy learner` shows of itself, made from the events that it writes to the journal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Self

from understudy.cli.progress import ProgressDisplay, ProgressLine
from understudy.screens.console import supports_cursor
from understudy.telemetry import events
from understudy.telemetry.journal import Entry
from understudy.telemetry.layout import Part
from understudy.telemetry.report_parts import waits
from understudy.telemetry.text import many, plain


class LearnerScreen:
    """One line about what the learner does now, and above it what is rare: its start and its end,
    a pause, a rollback, a file that was set aside, a problem."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, *, served: bool = False
    ) -> None:
        # Without a terminal a line comes with an event: an idle learner adds nothing to a log.
        moves = sys.stderr is not None and supports_cursor(sys.stderr)
        self._display = ProgressDisplay(quiet=False, ticks=moves, before=None, clock=clock)
        self._display.show(ProgressLine([Part("starting")]))
        self._served = served
        self._state, self._batches, self._version = "compiling", 0, 0
        self._figures: list[Part] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._display.close()

    def show(self, entry: Entry) -> None:
        """Take in an event of the journal."""
        event = entry.e
        self._follow(event)
        if words := _rare(event, version=self._version, served=self._served):
            self._display.note_wrapped(words)
        parts = [Part(self._state, 5)]
        if self._batches:
            parts += [Part(many(self._batches, "batch", "batches"), 20), *self._figures]
        parts.append(Part(f"version {self._version}"))
        self._display.show(ProgressLine(parts, version=self._version))

    def _follow(self, event: events.Event) -> None:
        match event:
            case events.LearnerStarted() as e:
                self._version = e.version
            case events.BatchTrained() as e:
                self._state, self._batches = "training", self._batches + 1
                self._figures = _figures(e.loss, e.entropy, e.samples_per_insert)
            case events.ContinuousTrained() as e:
                self._state, self._batches = "training", self._batches + e.batches
                self._figures = _figures(e.loss, e.entropy, e.samples_per_insert)
                self._figures.append(Part(f"{e.buffer:,} items held", 40))
                if e.agreement is not None:
                    self._figures.append(Part(f"gate agreement {e.agreement:.0%}", 35))
            case events.VersionPublished() as e:
                self._version = e.version
            case events.WaitingForExperience():
                self._state = "waiting for experience"
            case events.LearnerPaused():
                self._state = "paused"
            case events.LearnerResumed():
                self._state = "training"


def _figures(loss: float, entropy: float, samples: float) -> list[Part]:
    return [
        Part(f"loss {loss:.4f}", 10),
        Part(f"entropy {entropy:.2f}", 15),
        Part(f"{samples:.1f} samples an insert", 30),
    ]


def _rare(event: events.Event, *, version: int, served: bool) -> str:
    """A line that stays; empty: none. `version`: the newest one; `served`: a server's run."""
    match event:
        case events.LearnerStarted() as e:
            waiting = waits(e.pending, served=served)
            return f"learning on from version {e.version}; {waiting}. Ctrl-C stops."
        case events.RolledBack() as e:
            return f"back from version {e.version} to {e.to or 'a fresh start'}: {plain(e.reason)}"
        case events.LearnerPaused() as e:
            return f"paused at version {e.version}; `understudy learner resume` lets it learn on"
        case events.LearnerResumed() as e:
            return f"learning on; {waits(e.pending, served=served)}"
        case events.EpisodeQuarantined() as e:
            return f"set aside {plain(e.name)}: {plain(e.reason)}"
        case events.Problem() as e:
            return f"problem in {plain(e.where)}: {plain(e.message)}"
        case events.LearnerStopped() as e:
            waiting = waits(e.pending, served=served)
            return f"stopped at version {version}; {waiting} for the next learner"
    return ""
