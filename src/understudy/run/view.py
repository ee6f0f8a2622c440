"""Reads a run folder as a `RunView`: the status with everything beside the journal, and trends.

`ViewReader` is for screens that look again and again: a reading after which nothing has happened
costs a few calls of `stat`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from understudy.core.clock import SystemClock
from understudy.core.errors import FileFormatError, RunFolderError, UnderstudyError
from understudy.core.pause import read_pause
from understudy.experience.ledger.recovery import LEDGER, counts_in
from understudy.experience.ledger.store import log_paths
from understudy.registry.newest_files import NewestFiles
from understudy.registry.rewards import reward_status
from understudy.registry.run_folder import RunFolder, holds_run
from understudy.relay.local import read_side, side_file
from understudy.run.status import (
    LostMatches,
    at_least,
    lost_matches,
    newest_manifest,
    with_lost,
)
from understudy.supervise.lock import learner_runs
from understudy.telemetry.promotion_stage import staged
from understudy.telemetry.promotion_status import PromotionStatus
from understudy.telemetry.run_view import RunView
from understudy.telemetry.status import LedgerCounts, Status, patience
from understudy.telemetry.status_reader import SpoolCounts
from understudy.telemetry.summary import FoldedJournal, JournalFolds, SummaryWriter

if TYPE_CHECKING:
    from understudy.promotion.report import PromotionReader

_LOOK_FOR_LOST_S = 60.0
_JOURNAL_SHARE = 0.8
"""Of the progress of a first reading; the rest is the promotion log."""

T = TypeVar("T")


class _Cached(Generic[T]):
    """A value that is made again when its key changes."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: tuple[Hashable, T] | None = None

    def read(self, key: Hashable) -> T:
        if self._made is None or self._made[0] != key:
            self._made = key, self._make()
        return self._made[1]


class ViewReader:
    """A run folder, read again and again; the first reading opens it by its summaries.

    Args:
        folder: The run. Nothing is written there.
        progress: Called with a share from 0 to 1 while the first reading goes on: a long journal
            without summaries takes seconds.
    """

    def __init__(self, folder: RunFolder, progress: Callable[[float], None] | None = None) -> None:
        self._folder = folder
        self._progress = progress
        self._run = str(folder.root)
        self._journal: FoldedJournal | None = None
        self._spool = SpoolCounts(folder.root)
        self._files = NewestFiles(folder.root)
        self._promotion: PromotionReader | None = None
        self._lost = LostMatches()
        self._looked: tuple[float, int] | None = None
        """When lost matches were looked for, and how many entries there were."""
        self._manifest = _Cached(lambda: newest_manifest(folder))
        self._rewards = _Cached(lambda: reward_status(folder))
        self._relay = _Cached(lambda: _relay_to(folder.root))
        self._ledger = _Cached(lambda: counts_in(folder.root / LEDGER))

    @property
    def folder(self) -> RunFolder:
        return self._folder

    def read(self, *, promotion_later: bool = False) -> RunView:
        """The run now. `promotion_later`: without the promotion log, where there is one. Importing
        what reads it, and reading it, takes longer than all else of a first screen."""
        folder = self._folder
        unread = promotion_later and folder.by_evidence
        if not unread and self._journal is None:
            self._begin_promotion()
        folds = self._read_journal()
        status = folds.status.status(
            self._spool.read(),
            folder.clock.time(),
            read_pause(folder.root),
            # Its lock says nothing new of a learner that has ended, and costs an import.
            learner_runs=learner_runs(folder.root) if folds.status.learner_told else None,
        )
        promotion = None if unread else self._read_promotion()
        if promotion is not None:
            promotion = staged(promotion, agreement=folds.agreement.share)
        numbers = tuple(folder.versions.numbers())
        newest = self._manifest.read(numbers)
        status = msgspec.structs.replace(status, promotion=promotion)
        status = at_least(self._beside_journal(status, numbers), newest, len(numbers))
        if self._progress is not None and not unread:
            self._progress(1.0)
            self._progress = None
        return RunView(
            status=status,
            trends=folds.trends.copied(),
            recent=tuple(folds.recent),
            files=self._files.read(),
            promotion_unread=unread,
        )

    @property
    def folds(self) -> JournalFolds:
        """All that the journal tells, as of the last reading, with what it lost."""
        assert self._journal is not None, "read first"
        return with_lost(self._journal.folds, self._lost, run=self._run)

    def _begin_promotion(self) -> PromotionReader | None:
        """None where evidence moves no champion: most runs never import what reads its log, which
        takes as long as reading a short journal."""
        if self._promotion is None and self._folder.by_evidence:
            from understudy.promotion.report import PromotionReader

            self._promotion = PromotionReader(self._folder)
            self._promotion.begin()
        return self._promotion

    def _read_promotion(self) -> PromotionStatus | None:
        reader = self._begin_promotion()
        return None if reader is None else reader.read(self._scaled(_JOURNAL_SHARE, 1.0))

    def _read_journal(self) -> JournalFolds:
        folder = self._folder
        if self._journal is None:
            self._journal = FoldedJournal(
                folder.journal, run=self._run, patience=patience(folder.config)
            )
        self._journal.follow(self._scaled(0.0, _JOURNAL_SHARE))
        folds, now = self._journal.folds, time.monotonic()
        if self._looked is None or (
            now - self._looked[0] > _LOOK_FOR_LOST_S and self._looked[1] != folds.entries
        ):
            self._lost = lost_matches(folder, folds.matches, since=folds.forgotten)
            self._looked = now, folds.entries
        return with_lost(folds, self._lost, run=self._run)

    def _beside_journal(self, now: Status, numbers: tuple[int, ...]) -> Status:
        """With the ledger's counts, the relay's store, the versions' rewards and the champion."""
        folder = self._folder
        champion = folder.pointers.read("champion")
        newest = log_paths(folder.root / LEDGER)[-1:]
        counts = self._ledger.read(tuple((one, one.stat().st_size) for one in newest))
        if counts is not None:
            now = msgspec.structs.replace(now, ledger=LedgerCounts(**counts._asdict()))
        now = msgspec.structs.replace(
            now,
            version_rewards=self._rewards.read(numbers),
            relay_to=self._relay.read(side_file(folder.root).exists()),
        )
        if champion is not None:
            now = msgspec.structs.replace(now, champion=champion.version, pinned=champion.pinned)
        return now

    def _scaled(self, start: float, end: float) -> Callable[[float], None] | None:
        """Progress of a part of the first reading."""
        tell = self._progress
        if tell is None:
            return None
        return lambda share: tell(start + share * (end - start))


def _relay_to(root: Path) -> str:
    """The store to which a relay sends what a run records; empty: none does."""
    try:
        side = read_side(root)
    except (FileFormatError, OSError):  # the relay says so when it starts
        return ""
    return side.store if side is not None and side.side == "player" else ""


class RunEntry:
    """A run folder among others, read when it is asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problem = ""
        """Why it cannot be read; empty: it can."""
        self._reader: ViewReader | None = None
        try:
            self._reader = ViewReader(RunFolder.load(folder, SystemClock()))
        except (UnderstudyError, OSError) as error:
            self.problem = str(error)

    def read(self) -> RunView:
        """The run now.

        Raises:
            RunFolderError: There is a `problem`.
        """
        if self._reader is None:
            raise RunFolderError(self.problem)
        return self._reader.read()


def runs_in(folder: Path) -> list[RunEntry]:
    """The run folders in a folder, the one that was written to last first; damaged ones come last.
    Their journals are not read before they are asked for."""
    found = [RunEntry(path) for path in folder.iterdir() if holds_run(path)]
    return sorted(found, key=lambda one: (bool(one.problem), -written_at(one.folder), one.folder))


def written_at(run: Path) -> float:
    """When a run was last written to: the time of its newest journal, else of its folder."""
    journals = [path.stat().st_mtime for path in (run / "journal").glob("*.jsonl")]
    return max(journals) if journals else run.stat().st_mtime


def summarise(folder: RunFolder) -> None:
    """Make the summaries that the writers of a run make while they work."""
    SummaryWriter(folder.journal, folder.clock, limits=folder.config.retention, every=1).catch_up()
    if folder.by_evidence:
        from understudy.promotion.digest import DigestReader

        DigestReader(folder.promotion).summarise()


def read_view(folder: RunFolder, progress: Callable[[float], None] | None = None) -> RunView:
    """The run now; see `ViewReader`, also for a screen that looks again."""
    return ViewReader(folder, progress).read()


def read_whole_status(folder: RunFolder) -> Status:
    """The status with the ledger's counts, the versions' rewards and the champion."""
    return ViewReader(folder).read().status


def read_folds(folder: RunFolder) -> JournalFolds:
    """All that the journal of a run tells, with the matches that it lost."""
    reader = ViewReader(folder)
    reader.read()
    return reader.folds
