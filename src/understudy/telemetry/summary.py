"""Summaries of a run's journal: all that its entries add up to, so that a year opens in a moment.

    journal/summaries/000017.json    its checksum, and its content in the second line

A summary holds how many bytes of each journal it contains, and the state of every fold. A reader
takes the newest one and adds the entries behind it. It is made with `create_exclusive` under the
next number, from the summary before it: of two writers that make the same number one fails, takes
what the other made, and goes on from there. So none undoes another's, and no lock is needed.

Entries younger than a few seconds stay out of a summary: another process may write an earlier one a
moment late. What comes later than that is added when it comes, after newer ones.

A damaged summary is passed over for the one before it. One that was made by folds of another
`FOLDS` is passed over as well, for the journals themselves; unless some of these were deleted
since, because then it alone knows what they told. Entries in it of a kind that this program does
not know are left out. Where such a summary cannot be read at all, a newer program made it: this one
shows what it can, makes no summary and deletes no journal.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from understudy.core import files
from understudy.core.clock import Clock
from understudy.core.config import RetentionConfig
from understudy.core.seals import seal, unseal
from understudy.telemetry import events as ev
from understudy.telemetry.agreement import RulesAgreement, compares_with_rules
from understudy.telemetry.fold import StatusFold, StatusState
from understudy.telemetry.journal import SUFFIX, Entry, Journal, Reader
from understudy.telemetry.status import Patience
from understudy.telemetry.text import complain
from understudy.telemetry.trends import TrendFold, Trends

FOLDS = 1
"""Goes up when folds count something that they did not, or count it otherwise."""
SUMMARIES = "summaries"
"""The folder, in that of the journals."""
MOST_MATCHES = 10_000
"""Newest matches whose ids are kept; up to twice as many."""
RECENT = 200
"""Newest entries that are kept."""
EVERY = 10_000
"""Entries from one summary to the next."""
_REFUSALS = 500
_YOUNG_S = 5.0
_KEPT = 3
"""Summaries that are kept, for where the newest is damaged."""
_DAY_S = 86_400.0
_LIGHT_ENTRIES, _LIGHT_S, _LIGHT_BYTES = 50, 0.25, 2**14


class KnownMatch(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A match that the journal tells of."""

    t: float
    saved: bool


class JournalSummary(msgspec.Struct, kw_only=True):
    """What the journals up to some offsets add up to."""

    folds: int = FOLDS
    entries: int = 0
    """How many were folded."""
    offsets: dict[str, int] = {}
    """Bytes of each journal that are in here, by file name."""
    partial: bool = False
    """Whether journals that are in here were deleted."""
    last: float = 0.0
    """The time of the newest entry."""
    status: StatusState = msgspec.field(default_factory=StatusState)
    trends: Trends = {}
    trends_version: int = 0
    agreement: list[tuple[int, int]] = []
    """Of the newest version with the rules: agreed and all decisions of their last matches."""
    matches: dict[str, KnownMatch] = {}
    """The newest matches by id, oldest first."""
    forgotten: float = 0.0
    """The time of the newest match that is not among them; 0: all are."""
    refused: list[Entry] = []
    """Health checks that versions failed before their nomination, each finding once."""
    recent: list[Entry] = []
    """The newest entries, oldest first."""


class JournalFolds:
    """All folds of a run's journal. Give it every entry once, in the order of time."""

    def __init__(
        self,
        run: str = "",
        patience: Patience | None = None,
        summary: JournalSummary | None = None,
    ) -> None:
        summary = summary or JournalSummary()
        self.patience = patience
        self.entries = summary.entries
        self.last = summary.last
        self.status = StatusFold(run, patience, state=summary.status)
        self.trends = TrendFold(summary.trends, version=summary.trends_version)
        self.agreement = RulesAgreement(summary.agreement)
        self.matches = summary.matches
        self.forgotten = summary.forgotten
        self.refused = deque(summary.refused, maxlen=_REFUSALS)
        self.recent = deque(summary.recent, maxlen=RECENT)

    def add(self, entry: Entry) -> None:
        """One more entry."""
        self.extend([entry])

    def extend(self, entries: Sequence[Entry]) -> None:
        """Some more entries; in whatever pieces they come, they add up to the same."""
        self.entries += len(entries)
        self.last = max(self.last, max([one.t for one in entries], default=0.0))
        self.status.extend(entries)
        self.trends.extend(entries)
        self.recent.extend(entries[-RECENT:])
        agreements: list[tuple[int, int]] = []
        for entry in entries:
            event = entry.e
            if isinstance(event, ev.MatchFinished):
                if compares_with_rules(event):
                    agreements.append((event.agreed, event.fallback))
                self.matches[event.id] = KnownMatch(entry.t, event.saved)
                if len(self.matches) > 2 * MOST_MATCHES:
                    self._forget_matches()
            elif isinstance(event, ev.RoleChanged) and event.kind == "refused" and not event.test:
                known = {_finding(one.e) for one in self.refused}
                self.refused += [] if _finding(event) in known else [entry]
        self.agreement.extend(agreements)

    def _forget_matches(self) -> None:
        """The older half at once: removing from the beginning of a dict is slow."""
        matches = list(self.matches.items())
        self.matches = dict(matches[-MOST_MATCHES:])
        dropped = (one.t for _, one in matches[:-MOST_MATCHES])
        self.forgotten = max(self.forgotten, *dropped)

    def state(self) -> JournalSummary:
        """All that was added, apart from these folds."""
        return JournalSummary(
            entries=self.entries,
            last=self.last,
            status=self.status.state(),
            trends=self.trends.copied(),
            trends_version=self.trends.version,
            agreement=self.agreement.state(),
            matches=dict(self.matches),
            forgotten=self.forgotten,
            refused=list(self.refused),
            recent=list(self.recent),
        )


def _finding(event: ev.Event) -> tuple[int, str]:
    """A version and what it failed; the same finding comes with other figures."""
    assert isinstance(event, ev.RoleChanged)
    return event.version, event.words.partition(":")[0]


class FoldedJournal:
    """The folds of a journal folder, opened by its newest summary and then followed.

    Args:
        folder: The journals of a run.
        run: What the status calls the run.
        patience: When waiting is a stall.
        chunk: Bytes of a journal that are read at once; None: many.
    """

    def __init__(
        self,
        folder: Path,
        *,
        run: str = "",
        patience: Patience | None = None,
        chunk: int | None = None,
    ) -> None:
        self.folder = folder
        self._run = run
        self._patience = patience
        self._chunk = chunk
        self.number = 0
        """Of the newest summary there is, readable or not; 0: there is none."""
        self.partial = False
        self.superseded = False
        """Whether a summary of deleted journals can be read by a newer program alone: `write` would
        lose what it tells, and makes none."""
        self._open()

    def _open(self) -> None:
        numbers = summary_numbers(self.folder)
        self.number = max(numbers, default=0)
        found, self.superseded = _newest(self.folder, numbers)
        summary = found or JournalSummary()
        self.partial = summary.partial
        options = {} if self._chunk is None else {"chunk": self._chunk}
        self.reader = Reader(self.folder, summary.offsets, **options)
        self.folds = JournalFolds(self._run, self._patience, summary)
        self.summarised = self.folds.entries
        """Entries that the summary holds."""

    def follow(self, progress: Callable[[float], None] | None = None) -> int:
        """Add what is new; returns how many entries that were."""
        return self._add(self.reader.batches(progress=progress))

    def follow_old(self, clock: Clock, most: int | None = None) -> int:
        """The same, but of what is old enough for a summary, and `most` entries at once."""
        now = clock.time()
        return self._add(self.reader.batches(held=(now - _YOUNG_S, now), most=most))

    def _add(self, batches: Iterable[Sequence[Entry]]) -> int:
        before = self.folds.entries
        for entries in batches:
            self.folds.extend(entries)
        return self.folds.entries - before

    def take_over(self) -> bool:
        """Go on from the summary of another writer, where there is a newer one."""
        if max(summary_numbers(self.folder), default=0) <= self.number:
            return False
        self._open()
        return True

    def write(self) -> bool:
        """Make the next summary, durable on return; False: another writer did, and this one goes on
        from there, or the summaries are `superseded`."""
        if self.superseded:
            return False
        there = {path.name for path in self.folder.glob(f"*{SUFFIX}")}
        offsets = {name: count for name, count in self.reader.offsets.items() if name in there}
        summary = self.folds.state()
        summary.offsets = offsets
        self.partial |= len(offsets) < len(self.reader.offsets)
        summary.partial = self.partial
        files.make_folders(self.folder / SUMMARIES)
        body = msgspec.json.encode(summary)
        try:
            files.create_exclusive(_path(self.folder, self.number + 1), seal(body))
        except FileExistsError:
            self._open()
            return False
        self.number += 1
        self.summarised = self.folds.entries
        self.reader.offsets = offsets
        for number in summary_numbers(self.folder):
            if number <= self.number - _KEPT:
                with contextlib.suppress(FileNotFoundError):  # another writer removes it too
                    files.remove(_path(self.folder, number))
        return True


def status_fold(folder: Path) -> StatusFold:
    """The status of all that a journal folder tells up to now."""
    folded = FoldedJournal(folder)
    folded.follow()
    return folded.folds.status


def summary_numbers(folder: Path) -> list[int]:
    """The numbers of the summaries in a journal folder, ascending."""
    try:
        return sorted(
            int(path.stem)
            for path in (folder / SUMMARIES).iterdir()
            if path.suffix == ".json" and path.stem.isdecimal()
        )
    except FileNotFoundError:
        return []


def newest_summary(folder: Path) -> JournalSummary | None:
    """The newest summary that can be used; None: the journals must be folded."""
    return _newest(folder, summary_numbers(folder))[0]


def _newest(folder: Path, numbers: Iterable[int]) -> tuple[JournalSummary | None, bool]:
    """The newest summary that can be used, and whether one after it supersedes it: that is whole,
    holds deleted journals, and cannot be read by this program."""
    superseded = False
    for number in sorted(numbers, reverse=True):
        try:
            body = unseal(_path(folder, number).read_bytes())
        except OSError:
            continue
        if body is None:
            continue
        try:
            summary = _decoded(body)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            superseded |= _is_partial(body)
            continue
        if summary.folds == FOLDS or summary.partial:
            return summary, superseded
    return None, superseded


def _decoded(body: bytes) -> JournalSummary:
    """A summary, without entries of a kind that this program does not know."""
    try:
        return msgspec.json.decode(body, type=JournalSummary)
    except msgspec.ValidationError:
        fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    for name in ("refused", "recent"):
        entries = msgspec.json.decode(fields.get(name, b"[]"), type=list[msgspec.Raw])
        known = [bytes(one) for one in entries if _is_entry(one)]
        fields[name] = msgspec.Raw(b"[" + b",".join(known) + b"]")
    return msgspec.json.decode(msgspec.json.encode(fields), type=JournalSummary)


def _is_entry(data: bytes) -> bool:
    try:
        msgspec.json.decode(data, type=Entry)
    except msgspec.ValidationError:
        return False
    return True


class _Partial(msgspec.Struct):
    """The one field of a summary that a program must know to pass over it."""

    partial: bool


def _is_partial(body: bytes) -> bool:
    """Whether a summary that cannot be read holds deleted journals, as far as that is known."""
    try:
        return msgspec.json.decode(body, type=_Partial).partial
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return True


def _path(folder: Path, number: int) -> Path:
    return folder / SUMMARIES / f"{number:06d}.json"


class SummaryWriter:
    """Keeps the summaries of a run up to date, and deletes old journals. For one thread.

    Every process that writes a journal has one: the learner, `train`, a server and a bot.

    Args:
        folder: The journals of a run.
        clock: Says what is old enough.
        limits: How long journals are kept.
        journal: Where deletions are told; None: nothing is deleted.
        most: Entries that one call of `work` folds at most.
        every: Entries from one summary to the next.
        every_s: Calls of `work` that come sooner do nothing.
        chunk: Bytes of a journal that are read at once; None: many.

    Raises nothing: a full disk costs summaries, not the game, and is said once.
    """

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        *,
        limits: RetentionConfig,
        journal: Journal | None = None,
        most: int | None = None,
        every: int = EVERY,
        every_s: float = 0.0,
        chunk: int | None = None,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._every = every
        self._limits = limits
        self._journal = journal
        self._most = most
        self._every_s = every_s
        self._chunk = chunk
        self._folded: FoldedJournal | None = None
        self._worked = -every_s
        self._complained = False
        self._complained_of_removal = False

    def work(self) -> None:
        """Fold some entries, and make a summary once enough of them are in no other."""
        if self._clock.monotonic() - self._worked < self._every_s:
            return
        self._worked = self._clock.monotonic()
        self._fold(self._most)

    def catch_up(self) -> None:
        """The same of all entries that are old enough: before a process begins its work."""
        self._fold(None)

    def _fold(self, most: int | None) -> None:
        try:
            if self._folded is None:
                files.sweep(self._folder / SUMMARIES)
                self._folded = FoldedJournal(self._folder, chunk=self._chunk)
            folded = self._folded
            folded.follow_old(self._clock, most)
            due = folded.folds.entries - folded.summarised >= self._every
            if due and not folded.take_over():
                if folded.superseded:
                    self._complain(
                        f"summary {folded.number} is of a newer Understudy: update this one"
                    )
                elif folded.write():
                    self._delete_old(folded)
        except OSError as error:
            self._complain(str(error))

    def _complain(self, problem: str) -> None:
        if not self._complained:
            self._complained = True
            complain(f"cannot keep a summary of the journal: {problem}")

    def _delete_old(self, folded: FoldedJournal) -> None:
        """Delete journals beyond the limits. The next summary does not name them any more."""
        if self._journal is None:
            return
        doomed = old_journals(
            self._folder, folded.reader.offsets, limits=self._limits, now=self._clock.time()
        )
        if not doomed:
            return
        folded.partial = True
        if not folded.write():  # what is deleted must be known as missing first
            return
        removed = [one for one in doomed if self._remove(one[0])]
        if removed:
            self._journal.write(
                ev.JournalsDeleted(
                    files=len(removed),
                    bytes=sum(size for _, size, _ in removed),
                    until=max(written for _, _, written in removed),
                )
            )

    def _remove(self, path: Path) -> bool:
        """Whether this process deleted a journal; one that is open in another may stay."""
        try:
            files.remove(path)
        except FileNotFoundError:  # another writer deleted it, and tells so
            return False
        except OSError as error:
            if not self._complained_of_removal:
                self._complained_of_removal = True
                complain(f"cannot delete an old journal, and tries again later: {error}")
            return False
        return True


def light_writer(journal: Journal, limits: RetentionConfig) -> SummaryWriter:
    """A writer for a thread beside one that must answer at once.

    A call of `work` folds few entries, in less than a millisecond. Decoding a full summary, at the
    beginning and after that of another writer, keeps the GIL for about 26 ms in one call, and
    encoding one for about 7 ms.
    """
    return SummaryWriter(
        journal.folder,
        journal.clock,
        limits=limits,
        journal=journal,
        most=_LIGHT_ENTRIES,
        every_s=_LIGHT_S,
        chunk=_LIGHT_BYTES,
    )


def old_journals(
    folder: Path, folded: dict[str, int], *, limits: RetentionConfig, now: float
) -> list[tuple[Path, int, float]]:
    """Journals that may go, oldest first, with their sizes and the times of their last entries.

    `folded`: bytes of each journal that a durable summary holds. One of which it does not hold all
    lines stays, and so does one that was written to within a day: its process may still be there.
    """
    found = []
    for path in folder.glob(f"*{SUFFIX}"):
        with contextlib.suppress(FileNotFoundError):  # another writer deletes it too
            stat = path.stat()
            found.append((path, stat.st_size, stat.st_mtime))
    total = sum(size for _, size, _ in found)
    doomed = []
    for path, size, written in sorted(found, key=lambda one: one[2]):
        if now - written < _DAY_S:
            break
        too_old = now - written > limits.journal_days * _DAY_S
        if not too_old and total <= limits.journal_bytes:
            break
        if folded.get(path.name) == size or _is_torn(path, folded.get(path.name, 0)):
            doomed.append((path, size, written))
            total -= size
    return doomed


def _is_torn(path: Path, offset: int) -> bool:
    """Whether all that lies behind an offset is a line that a crash cut off; no reader takes it."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return not file.readline().endswith(b"\n")
    except OSError:  # gone this moment, or open in another process: it can wait
        return False
