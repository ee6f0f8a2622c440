"""Promotion of one run: assigns matches, notes their results, and follows what others note.

Every change goes through the log. The pointers `champion` and `canary` mirror what the log says:
whichever process sees that they differ moves them, so a kill between a verdict and its move costs
nothing. A champion that a person pinned plays every match, and no pointer is moved.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Callable, Mapping
from uuid import uuid4

import msgspec

from understudy.core.arrays import NDArray
from understudy.core.config import PromotionConfig
from understudy.gates.promotion import roles
from understudy.gates.promotion.records import (
    RULES,
    Assigned,
    Declared,
    Ending,
    Nominated,
    Ordered,
    Paired,
    Record,
    Resolved,
    TrialSettings,
)
from understudy.gates.promotion.roles import PromotionState, PromotionVerdict
from understudy.promotion.log import PromotionLog
from understudy.registry.pointers import PROMOTION, Name
from understudy.registry.run_folder import RunFolder


class Promotion:
    """The promotion of one run folder, as one process sees it. Threads may share it."""

    def __init__(
        self,
        folder: RunFolder,
        *,
        tell: Callable[[PromotionVerdict], None] = lambda verdict: None,
    ) -> None:
        self._folder = folder
        self._config: PromotionConfig = folder.config.promotion
        self._log = PromotionLog(folder.promotion)
        self._tell = tell
        self._lock = threading.Lock()
        self.session = f"{platform.node()}/{os.getpid()}/{uuid4().hex[:8]}"
        self.state = PromotionState()
        self.verdicts: list[PromotionVerdict] = []
        """All verdicts of the run so far."""
        self._follow()

    # --- reading ---------------------------------------------------------------------------------

    def follow(self) -> PromotionState:
        """The state after everything that any process has written."""
        with self._lock:
            self._follow()
            return self.state

    def _follow(self) -> None:
        records = self._log.new()
        if records:
            self._fold(records)
        self._mirror()

    def _fold(self, records: list[tuple[int, Record]]) -> None:
        self.state, verdicts = roles.fold(self.state, records)
        self.verdicts += verdicts
        for verdict in verdicts:
            self._tell(verdict)

    def _mirror(self) -> None:
        """Move the pointers to what the log says, unless a person pinned them."""
        if not self.state.sequence:
            return
        test = self.state.test
        named: dict[Name, int] = {
            "champion": self.state.incumbent,
            "canary": RULES if test is None else test.version,
        }
        for name, version in named.items():
            record = self._folder.pointers.read(name)
            if record is None or (record.version, record.by) != (version, PROMOTION):
                self._folder.pointers.move(name, version, by=PROMOTION)

    # --- writing ---------------------------------------------------------------------------------

    def declare(self, *, rules: str, score: tuple[float, float] | None) -> None:
        """A bot opens the run with these rules and this scale."""
        self._append(lambda state: Declared(rules=rules, score=score, policy=self._config.policy))

    def assign(self, match: str, tags: Mapping[str, str], uniform: float) -> tuple[int, Assigned]:
        """Decide who plays a match, durable when this returns: its number, and the assignment."""
        stratum = " ".join(f"{tag}={tags[tag]}" for tag in self._config.strata if tag in tags)

        def made(state: PromotionState) -> Assigned:
            coin = roles.shares(state)
            arm, version = roles.draw(coin, uniform)
            return Assigned(
                match=match,
                arm=arm,
                version=version,
                test=coin.test,
                share=coin.share,
                holdout=coin.holdout,
                uniform=uniform,
                stratum=stratum,
            )

        sequence, record = self._append(made)
        assert isinstance(record, Assigned)
        return sequence, record

    def resolve(self, order: int, result: float, ending: Ending, words: str = "") -> None:
        """An assigned match is over."""
        self._append(lambda state: Resolved(order=order, result=result, ending=ending, words=words))

    def nominate(
        self, version: int, *, experience: int, reason: str, simulator: bool = False
    ) -> bool:
        """Open a test of a version, by assigned matches or by pairs of a `simulator`; False if it
        cannot be tested now."""
        settings = msgspec.convert(
            {
                name: getattr(self._config, name)
                for name in TrialSettings.__struct_fields__
                if hasattr(self._config, name)
            },
            TrialSettings,
        )
        nominated = Nominated(
            version=version,
            experience=experience,
            reason=reason,
            settings=settings,
            simulator=simulator,
        )

        def made(state: PromotionState) -> Record | None:
            return None if roles.nomination_refused(state, version) else nominated

        return self._append(made)[1] is not None

    def pair(
        self, test: int, *, first: int, seeds: NDArray, results: tuple[NDArray, NDArray]
    ) -> bool:
        """Write the results of canary and incumbent, [N] each, on simulated matches.

        `first` is the number of pairs that were counted before them. False: the test is over, or
        another simulator has written these pairs.
        """
        canary, incumbent = results
        paired = Paired(
            test=test,
            canary=tuple(canary.tolist()),
            incumbent=tuple(incumbent.tolist()),
            seed=int(seeds[0]),
        )

        def made(state: PromotionState) -> Record | None:
            running = state.test
            if running is None or running.number != test or running.paired != first:
                return None
            return paired

        return self._append(made)[1] is not None

    def order(self, ordered: Ordered) -> None:
        """A person's word."""
        self._append(lambda state: ordered)

    def _append(self, made: Callable[[PromotionState], Record | None]) -> tuple[int, Record | None]:
        """Write the record that fits the newest state; None writes nothing."""
        with self._lock:
            while True:
                self._follow()
                record = made(self.state)
                if record is None:
                    return 0, None
                record = msgspec.structs.replace(
                    record, at=self._folder.clock.time(), session=self.session
                )
                try:
                    sequence = self._log.create(record)
                except FileExistsError:  # another process was faster: its record may change ours
                    continue
                self._fold([(sequence, record)])
                self._mirror()
                return sequence, record
