"""Promotion of one run: assigns matches, notes their results, and follows what others note.

Every change goes through the log. The pointers `champion` and `canary` mirror what the log says, as
does the note of what pruning must keep: a process that sees a difference moves them, so a kill
between a verdict and its move costs nothing. A champion that a person pinned plays every match, and
no pointer is moved.

Where `promotion.judge` is `learner`, the log is a copy that a relay keeps, and the relay moves the
pointers too. This process then only reads it; what it writes goes to a log of this machine
(`promotion/own/`), which the relay carries to the machine that judges (ADR 0052).

A disk that is full or broken never stops a game. A match whose assignment cannot be written is
played by the rules, outside of any test; a result that cannot be written is kept, and written
before the next record. A process that ends before that leaves a lost match, which counts 0.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TypeAlias

import msgspec

from understudy.core.arrays import NDArray
from understudy.core.config import PromotionConfig
from understudy.core.errors import FileFormatError, RunFolderError
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
from understudy.promotion.log import OWN, PromotionLog
from understudy.promotion.lost import OpenMatches, begin_session, end_session, new_session_name
from understudy.registry import retention
from understudy.registry.pointers import LATEST, PROMOTION, Name, PointerRecord
from understudy.registry.run_folder import RunFolder
from understudy.telemetry.events import RoleChanged
from understudy.telemetry.text import complain

_MEANWHILE = "meanwhile the rules play, outside of any test, and results are kept in memory"
_POINTERS = "the pointers champion and canary are moved later"
_Made: TypeAlias = Callable[[PromotionState], Record | None]
"""The record that fits a state; None: nothing is to be written."""


class Promotion:
    """The promotion of one run folder, as one process sees it. Threads may share it.

    Args:
        tell: Called with each verdict that a record of this process brings about, so that of
            several bots one tells it.
        problem: Called with what a person must know, once for each trouble.
        session: The name of this session (machine/process/random), for tests.
        lost: How a match ends that gets no result any more. A bot's match that `vanished` counts 0,
            since its version may be to blame. The segments of a server are `void`: its end hits
            all that are open, of every arm.
        harm_spread: See `TrialSettings.harm_spread`.
        alone: Whether no other session assigns matches of this run, as a lock makes sure of.
    """

    def __init__(
        self,
        folder: RunFolder,
        *,
        tell: Callable[[PromotionVerdict], None] = lambda verdict: None,
        problem: Callable[[str], None] = complain,
        session: str | None = None,
        lost: Ending = "vanished",
        harm_spread: float = 0.0,
        alone: bool = False,
    ) -> None:
        self._lost: Ending = lost
        self._harm_spread = harm_spread
        self._folder = folder
        self._config: PromotionConfig = folder.config.promotion
        self.judges = self._config.judge == "here"
        """Whether this machine's log is what decides; else it is one of several that are carried to
        the learner's machine."""
        self._log = PromotionLog(folder.promotion, problem=problem)
        """What decides."""
        self._own = self._log
        """Where this process writes."""
        if not self.judges:
            self._own = PromotionLog(folder.promotion / OWN, problem=problem)
        self._tell = tell
        self._problem = problem
        self._lock = threading.Lock()
        self.session = session or new_session_name()
        begin_session(self.session, self)
        self._owned = PromotionState()
        self.state = roles.snapshot(self._owned)
        """What the log says, as far as it was read."""
        self.verdicts: list[PromotionVerdict] = []
        """All verdicts of the run so far."""
        self._open = OpenMatches(self.session, timeout_s=self._config.match_timeout_s, alone=alone)
        self._waiting: list[_Made] = []
        """What could not be written yet, in order."""
        self._given_up: set[str] = set()
        """Matches that the rules play because their assignment failed; it may have been written."""
        self._champion: PointerRecord | None = None
        self.declared: tuple[str, tuple[float, float] | None] | None = None
        """The rules and the scale of this bot; None: it has declared none."""
        self._troubles: set[str] = set()
        """What was said, and holds still."""
        with self._lock, self._tolerating(_MEANWHILE):
            self._follow()

    def close(self) -> None:
        """End this session. A match that is still open can be resolved until this process opens the
        run again: then it is lost."""
        end_session(self.session)

    # --- reading ---------------------------------------------------------------------------------

    def follow(self) -> PromotionState:
        """The state after everything that any process has written.

        Raises:
            OSError: The log cannot be read.
            FileFormatError: A newer program wrote a record of a kind that this one does not know.
        """
        with self._lock:
            self._follow()
            return self.state

    def _follow(self) -> None:
        for records in self._log.new_blocks():
            self._fold(records)
        if not self.judges:
            for records in self._own.new_blocks():
                self._note(records)
        self._mirror()

    def _fold(self, records: list[tuple[int, Record]]) -> list[PromotionVerdict]:
        verdicts = roles.fold_owned(self._owned, records)
        self.state = roles.snapshot(self._owned)
        self.verdicts += verdicts
        if self.judges:
            self._note(records)
        return verdicts

    def _note(self, records: list[tuple[int, Record]]) -> None:
        """Take in what was written to this machine's log: which matches are open."""
        for number, record in records:
            self._open.note(number, record)
            if isinstance(record, Assigned) and record.match in self._given_up:
                self._given_up.remove(record.match)
                self._waiting.append(_resolved(number, 0.0, "void", "the rules played it"))

    def _mirror(self) -> None:
        """Move the pointers to what the log says, unless a person pinned them or a relay does."""
        with self._tolerating(_POINTERS):
            self._champion = self._folder.pointers.read("champion")
            if not self.state.sequence:
                return
            if self.judges:
                self._point_roles()
            retention.note_needed(self._folder, self.state.sequence, self.state.needed)
            self._troubles.discard(_POINTERS)

    def _point_roles(self) -> None:
        if self.state.policy == "latest":
            self._point("champion", self._newest(), by=LATEST)
        else:
            self._point("champion", self.state.incumbent, by=PROMOTION)
        test = self.state.test
        self._point("canary", RULES if test is None else test.version, by=PROMOTION)

    def _point(self, name: Name, version: int, *, by: str) -> None:
        record = self._champion if name == "champion" else self._folder.pointers.read(name)
        if record is None or (not record.pinned and (record.version, record.by) != (version, by)):
            self._folder.pointers.move(name, version, by=by)

    def _newest(self) -> int:
        record = self._folder.pointers.read("candidate")
        return RULES if record is None else record.version

    # --- writing ---------------------------------------------------------------------------------

    def declare(self, *, rules: str, score: tuple[float, float] | None) -> None:
        """A bot opens the run with these rules and this scale. Never raises OSError.

        From then on no match is assigned here while another bot has declared something else. Where
        the last declaration says the same, nothing is written: a run that is opened a thousand
        times has no longer log.
        """
        policy, harm = self._config.policy, self._config.harm
        declared = Declared(rules=rules, score=score, policy=policy, harm=harm)

        def made(state: PromotionState) -> Declared | None:
            known = state.rules, state.score, state.policy, state.harm
            return None if known == (rules, score, policy, harm) else declared

        with self._lock:
            self.declared = rules, score
            self._waiting.append(made)
            with self._tolerating(_MEANWHILE):
                self._note_lost()
                self._flush()
                self._compact()

    def assign(
        self, match: str, tags: Mapping[str, str], uniform: float, *, practice: int = 0
    ) -> tuple[int, Assigned]:
        """Decide who plays a match, durable when this returns: its number, and the assignment.

        `practice` is the version that would practise, with `promotion.practice_share`; 0: none.

        Number 0: it could not be written, or another bot declared other rules or another scale, so
        that results cannot be compared. Then the rules play, and no result is expected.
        """
        stratum = " ".join(f"{tag}={tags[tag]}" for tag in self._config.strata if tag in tags)
        by_rules = Assigned(match=match, arm="incumbent", version=RULES, stratum=stratum)
        with self._lock:
            with self._tolerating(_MEANWHILE):
                self._flush()
                self._note_lost()
                number, record = self._append(
                    lambda state: self._assigned(state, match, stratum, uniform, practice)
                )
                return number, record if isinstance(record, Assigned) else by_rules
            self._given_up.add(match)
            return 0, by_rules

    def _assigned(
        self, state: PromotionState, match: str, stratum: str, uniform: float, practice: int
    ) -> Assigned | None:
        if self.declared is not None and (state.rules, state.score) != self.declared:
            return None
        everywhere = self._plays_every_match()
        if everywhere is not None:
            return Assigned(
                match=match,
                arm="incumbent",
                version=everywhere,
                uniform=uniform,
                stratum=stratum,
                forced=True,
                seen=0 if self.judges else state.sequence,
            )
        coin = roles.shares(state, practice=practice, practice_share=self._config.practice_share)
        made = roles.assigned(coin, uniform, match=match, stratum=stratum)
        return made if self.judges else msgspec.structs.replace(made, seen=state.sequence)

    @property
    def plays(self) -> int:
        """The version that plays outside of any test; 0: the rules."""
        everywhere = self._plays_every_match()
        return self.state.incumbent if everywhere is None else everywhere

    @property
    def is_pinned(self) -> bool:
        """Whether a person pinned the champion, which plays every match then."""
        return self._champion is not None and self._champion.pinned

    def _plays_every_match(self) -> int | None:
        """What plays without a coin: a pinned champion, else by policy `latest` the newest."""
        if self._champion is not None and self._champion.pinned:
            return self._champion.version
        return self._newest() if self.state.policy == "latest" else None

    def resolve(self, order: int, result: float, ending: Ending, words: str = "") -> bool:
        """An assigned match is over. False: this cannot be written now, and is tried again."""
        with self._lock:
            self._waiting.append(_resolved(order, result, ending, words))
            with self._tolerating(_MEANWHILE):
                self._flush()
                self._compact()  # here, since no game waits for it
            return not self._waiting

    def note_lost(self) -> None:
        """Give the matches that are lost a result; for a process that assigns none itself."""
        with self._lock, self._tolerating(_MEANWHILE):
            self._note_lost()

    def bring(self, record: Record) -> int:
        """Append a record of another machine, which a relay brought, as it is; its number.

        Raises:
            OSError: It cannot be written.
            FileFormatError: As of `follow`.
        """
        with self._lock:
            number, _ = self._append(lambda state: record)
            self._compact()
            return number

    def flush(self) -> bool:
        """Write what could not be written so far; False if there is something left."""
        with self._lock:
            with self._tolerating(_MEANWHILE):
                self._flush()
            return not self._waiting

    def nominate(
        self, version: int, *, experience: int, reason: str, simulator: bool = False
    ) -> bool:
        """Open a test of a version, by assigned matches or by pairs of a `simulator`; False if it
        cannot be tested now, or not from this machine."""
        if not self.judges:
            return False
        settings = msgspec.convert(
            {
                name: getattr(self._config, name)
                for name in TrialSettings.__struct_fields__
                if hasattr(self._config, name)
            },
            TrialSettings,
        )
        settings = msgspec.structs.replace(settings, harm_spread=self._harm_spread)
        nominated = Nominated(
            version=version,
            experience=experience,
            reason=reason,
            settings=settings,
            simulator=simulator,
        )

        def made(state: PromotionState) -> Record | None:
            return None if roles.nomination_refused(state, version) else nominated

        with self._lock, self._tolerating(_MEANWHILE):
            return self._append(made)[1] is not None
        return False

    def pair(
        self, test: int, *, first: int, seeds: NDArray, results: tuple[NDArray, NDArray]
    ) -> bool:
        """Write the results of canary and incumbent, [N] each, on simulated matches.

        `first` is the number of pairs that were counted before them. False: the test is over, or
        another simulator has written these pairs.

        Raises:
            OSError: They cannot be written.
            FileFormatError: As of `follow`.
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

        with self._lock:
            return self._append(made)[1] is not None

    def order(self, ordered: Ordered) -> None:
        """A person's word.

        Raises:
            OSError: It cannot be written.
            FileFormatError: As of `follow`.
            RunFolderError: Matches are judged on another machine.
        """
        if not self.judges:
            raise RunFolderError(
                f"{self._folder.root}: matches are judged on the learner's machine "
                "(promotion.judge): say it there"
            )
        with self._lock:
            self._append(lambda state: ordered)

    # --- inside: under the lock ------------------------------------------------------------------

    def _append(self, made: _Made) -> tuple[int, Record | None]:
        """Write the record that fits the newest state; None writes nothing."""
        while True:
            self._follow()
            record = made(self.state)
            if record is None:
                return 0, None
            if not record.origin:
                record = msgspec.structs.replace(
                    record, at=self._folder.clock.time(), session=self.session
                )
            try:
                number = self._own.create(record)
            except FileExistsError:  # another process was faster: its record may change ours
                continue
            self._troubles.discard(_MEANWHILE)
            if not self.judges:
                self._note([(number, record)])
                return number, record
            verdicts = self._fold([(number, record)])
            for verdict in verdicts:
                self._tell(verdict)
            if verdicts or isinstance(record, Declared):  # nothing else changes a role
                self._mirror()
            return number, record

    def _compact(self) -> None:
        self._log.compact()
        if not self.judges:
            self._own.compact()

    def _flush(self) -> None:
        while self._waiting:
            self._append(self._waiting[0])
            del self._waiting[0]

    def _note_lost(self) -> None:
        """Give the matches that are lost a result, so that those after them are counted."""
        for order, why in self._open.lost(self._folder.clock.time()):
            lost = Resolved(order=order, ending=self._lost, words=why)

            def made(state: PromotionState, lost: Resolved = lost) -> Resolved | None:
                return lost if self._open.is_open(lost.order) else None

            self._append(made)

    def _tolerating(self, meanwhile: str) -> _Tolerating:
        return _Tolerating(self._problem, self._troubles, meanwhile)


class _Tolerating:
    """A block in which a log that cannot be read or written is reported, once until it is."""

    def __init__(self, problem: Callable[[str], None], troubles: set[str], meanwhile: str) -> None:
        self._problem = problem
        self._troubles = troubles
        self._meanwhile = meanwhile

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """True: the block failed, and what follows it goes on."""
        if not isinstance(error, OSError | FileFormatError):
            return False
        if self._meanwhile not in self._troubles:
            self._problem(f"the promotion log cannot be used: {error}; {self._meanwhile}")
        self._troubles.add(self._meanwhile)
        return True


def role_changed(verdict: PromotionVerdict) -> RoleChanged:
    """A verdict as an event of the journal."""
    return RoleChanged(
        version=verdict.version, kind=verdict.kind, words=verdict.words, test=verdict.test
    )


def _resolved(order: int, result: float, ending: Ending, words: str) -> _Made:
    resolved = Resolved(order=order, result=result, ending=ending, words=words)
    return lambda state: resolved
