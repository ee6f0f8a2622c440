"""Cameos: short windows inside matches that the rules play, in which a coin lets the policy decide.

Rules that always do the same in a situation show one action for each, so the policy can only copy
them. In a window it draws its own actions and sees what comes of them; the windows that the coin
leaves to the rules are the control. Over any number of decisions the policy makes at most the given
share of them: every decision adds that share to a budget, and a window of the policy is paid for in
full before it begins.
"""

from __future__ import annotations

import sys
import threading
from typing import NamedTuple

import numpy as np

from understudy.core.arrays import NDArray

COIN = 0.5
"""The probability that a window is the policy's."""
SHORTEST, LONGEST = 5, 20
"""Decisions of a window."""
_CHANCE_OF_SHARE, _LARGEST_CHANCE = 0.4, 0.2
"""A window begins at a decision with this chance, as a multiple of the share, if the budget allows.
It is small, so that a window may begin at any moment, and large enough to spend the share."""
_FULL_BUDGETS = 2
"""The longest windows that can be saved up: after a long time without a policy the share holds for
the decisions that follow as well."""
_MOST_WINDOWS = 2**15 - 1
"""Of one match: they are recorded as int16."""


class CameoWindow(NamedTuple):
    """Decisions [begin, end) of a match."""

    begin: int
    end: int
    policy: bool
    """False: the rules went on, as control."""


class CameoBudget:
    """How many decisions the policy may still make. The matches of a bot and its threads share it.

    Args:
        share: Of all decisions in matches that may have windows, in [0, 1); 0: there are none.
    """

    def __init__(self, share: float) -> None:
        self.share = share
        self._left = 0.0
        self._lock = threading.Lock()

    def add(self, decisions: int) -> None:
        """So many decisions were made."""
        with self._lock:
            self._left = min(self._left + self.share * decisions, _FULL_BUDGETS * LONGEST)

    def pay(self, decisions: int) -> bool:
        """Takes a window of so many decisions from the budget; 0 for one of the rules.

        False: the budget does not cover the longest window yet. That says nothing about the coin,
        so both players' windows begin in the same situations.
        """
        with self._lock:
            if self._left < LONGEST:
                return False
            self._left -= decisions
            return True

    def refund(self, decisions: int) -> None:
        """A window was so many decisions shorter than planned."""
        with self._lock:
            self._left += decisions


class MatchCameos:
    """The windows of one match. `decide` compares a row with `turn`, and calls `look` from there.

    Args:
        budget: Shared by all matches of the bot.
        rng: Draws moments, lengths and coins.
    """

    def __init__(self, budget: CameoBudget, rng: np.random.Generator) -> None:
        self._budget = budget
        self._rng = rng
        self._chance = min(_CHANCE_OF_SHARE * budget.share, _LARGEST_CHANCE)
        self._counted = 0
        """Decisions that the budget knows of."""
        self._windows: list[CameoWindow] = []
        self.window: CameoWindow | None = None
        """The open window, with its planned end."""
        self.turn = 0
        """The next row at which a window may begin or ends."""
        self._wait(0)

    def look(self, row: int, *, usable: bool) -> CameoWindow | None:
        """The window that the decision `row` belongs to; None: the rules decide as ever.

        `usable`: whether a policy could decide here; else an open window ends before this row.
        """
        if self.window is not None and (row >= self.window.end or not usable):
            self.end(row)
        if self.window is None and row >= self.turn:
            self._count(row)
            if usable and len(self._windows) < _MOST_WINDOWS:
                self._begin(row)
            if self.window is None:
                self._wait(row + 1)
        return self.window

    def end(self, row: int) -> None:
        """Ends an open window before this row, and waits for the next."""
        window, self.window = self.window, None
        if window is None:
            return
        if window.policy:
            self._budget.refund(window.end - row)
        if row > window.begin:
            self._windows.append(window._replace(end=row))
        self._wait(row)

    def stop(self, row: int) -> None:
        """No window is open from this row on; may be called again."""
        self.end(row)
        self._count(row)
        self.turn = sys.maxsize

    def marks(self, rows: int) -> NDArray | None:
        """int16 [rows], as `Episode.cameos`; None: there was no window."""
        if not self._windows:
            return None
        marks = np.zeros(rows, np.int16)
        for number, (begin, end, policy) in enumerate(self._windows, start=1):
            marks[begin:end] = number if policy else -number
        return marks

    def _begin(self, row: int) -> None:
        length = int(self._rng.integers(SHORTEST, LONGEST + 1))
        policy = bool(self._rng.random() < COIN)
        if self._budget.pay(length if policy else 0):
            self.window = CameoWindow(row, row + length, policy)
            self.turn = row + length

    def _wait(self, row: int) -> None:
        """Draws the next row, from `row` on, at which a window may begin: a chance a decision."""
        drawn = self._rng.geometric(self._chance) if self._chance > 0.0 else sys.maxsize
        self.turn = row + int(drawn) - 1

    def _count(self, row: int) -> None:
        """Tells the budget of the decisions before this row."""
        self._budget.add(max(row - self._counted, 0))
        self._counted = max(row, self._counted)
