"""The pace of play: reports a bot that outruns its learner, and lets `finish` wait for the learner.

The longer a match waits in the buffer, the older is the version that played it. Nothing here runs
inside `decide`: the watcher's thread counts, and `finish` waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from understudy.core.clock import Clock

PaceName: TypeAlias = Literal["free", "learner"]
PACES: tuple[PaceName, ...] = ("free", "learner")
AHEAD_BATCHES = 4
"""With pace `learner`: the most batches in the buffer. Fewer than the learner takes between two
versions would leave it idle."""
_MANY_BATCHES = 10
_LOOK_EVERY_S = 5.0
_SAY_EVERY_S = 60.0
_LONGEST_WAIT_S = 30.0
_PAUSE_S = 0.02


class Pace:
    """The pace of one bot. `waiting` counts the matches in the buffer, `alive` says whether its
    learner runs, `pause` waits for so many seconds, or less if the bot is closed."""

    def __init__(
        self,
        pace: PaceName,
        *,
        batch: int,
        clock: Clock,
        waiting: Callable[[], int],
        alive: Callable[[], bool],
        pause: Callable[[float], object],
        say: Callable[[str], None],
    ) -> None:
        self._waits = pace == "learner"
        self._batch = batch
        self._clock = clock
        self._waiting = waiting
        self._alive = alive
        self._pause = pause
        self._say = say
        self._looked_at = clock.monotonic()
        self._said_at = -float("inf")
        self._before = 0
        self._at_most = AHEAD_BATCHES * batch
        """An upper bound of the matches in the buffer, known without counting them."""
        self._stuck: int | None = None
        """Matches in the buffer when a wait for the learner last failed."""

    def tick(self) -> None:
        """Every few seconds: counts the buffer, and reports one that is large and grows."""
        now = self._clock.monotonic()
        if self._waits or now - self._looked_at < _LOOK_EVERY_S or not self._alive():
            return
        self._looked_at = now
        before, self._before = self._before, self._waiting()
        if self._before <= max(before, _MANY_BATCHES * self._batch):
            return
        if now - self._said_at >= _SAY_EVERY_S:
            self._said_at = now
            self._say(
                f"the bot plays faster than the learner learns: {self._before:,} matches wait "
                f'to be learned from. To wait for the learner: pace="learner" in '
                f"Understudy.open, or `understudy play --pace learner`"
            )

    def match_finished(self) -> None:
        """With pace `learner`: waits until at most `AHEAD_BATCHES` batches are in the buffer.

        Waits at most half a minute, and only while a learner runs. After a wait in which the
        learner took nothing, it waits again only once the learner has taken a match.
        """
        limit = AHEAD_BATCHES * self._batch
        self._at_most += 1
        if not self._waits or self._at_most <= limit:
            return
        began, first = self._clock.monotonic(), self._waiting()
        self._at_most = first
        if self._stuck is not None and first >= self._stuck:
            return
        self._stuck = None
        while self._at_most > limit and self._alive():
            if self._clock.monotonic() - began >= _LONGEST_WAIT_S:
                if self._at_most >= first:
                    self._stuck = self._at_most
                    self._say(
                        f"the learner took no match in {_LONGEST_WAIT_S:.0f} s: "
                        "the bot plays on, and waits for it again once it does"
                    )
                return
            self._pause(_PAUSE_S)
            self._at_most = self._waiting()
