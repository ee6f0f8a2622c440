"""What a screen needs of a promotion log, in bounded memory, and summaries of it on disk.

A log of a year has hundreds of thousands of matches. A digest keeps the state, the newest verdicts,
the matches of the tests that run, and sums of all others: what `promotion_status` shows, and no
more. `history` has every match and every test, for `promotion explain`, pictures and tables.

    promotion/summaries/00120000.msgpack    the digest of records 1 to 120,000, behind its checksum

A summary ends with a block, whose records are whole and never change. So two processes that make a
summary of as many records make the same, and either may win. A damaged one is passed over, and so
is one that was made by another `DIGEST`. Only screens read summaries: a bot and a server fold the
log itself, whose rules (`log`) stay as they are.
"""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from understudy.core import files
from understudy.core.arrays import NDArray
from understudy.core.clock import Clock
from understudy.core.errors import FileFormatError
from understudy.core.seals import seal, unseal
from understudy.gates.promotion import roles
from understudy.gates.promotion.records import Assigned, Nominated, Paired, Record, Resolved
from understudy.gates.promotion.roles import PromotionState, PromotionVerdict
from understudy.gates.promotion.running import RunningTest
from understudy.promotion.history import (
    AssignedMatch,
    MatchColumns,
    PromotionHistory,
    match_columns,
    test_pairs,
)
from understudy.promotion.log import BLOCK, PromotionLog
from understudy.telemetry.text import complain

DIGEST = 1
"""Goes up when a digest counts something that it did not, or counts it otherwise."""
SUMMARIES = "summaries"
"""The folder, in that of the log."""
PACE_MATCHES = 100
"""Assignments that the pace is of."""
_BLOCKS = 10
"""From one summary to the next."""
_VERDICTS = 500
_SUMS = 5000
_KEPT = 3
_EVERY_S = 10.0
_MANY = 100_000
"""Records without a summary that are worth a process: starting one takes as long as reading as
many."""


class DigestTrial(msgspec.Struct, frozen=True):
    """A test or recheck that runs."""

    recheck: bool
    matches: tuple[AssignedMatch, ...] = ()
    """Those that were counted, in the order of assignment."""
    pairs: NDArray = np.zeros((0, 2))
    """[N, 2] Results of canary and incumbent in simulated pairs."""

    @property
    def columns(self) -> MatchColumns:
        """The matches, not the pairs."""
        return match_columns(self.matches)


class PromotionDigest(msgspec.Struct, kw_only=True):
    """The promotion of a run, as far as a screen shows it."""

    state: PromotionState
    verdicts: Sequence[PromotionVerdict] = ()
    """The newest, oldest first."""
    times: dict[int, float] = {}
    """When their records and those of running tests were written."""
    trials: dict[int, DigestTrial] = {}
    """Tests that run, by number."""
    matches: int = 0
    """Assigned so far."""
    starts: Sequence[tuple[str, float]] = ()
    """Session and time of the last assignments."""
    sums: dict[tuple[int, str], tuple[float, int]] = {}
    """Total and number of results by version and stratum; an empty stratum: all."""
    practised: tuple[float, int] = (0.0, 0)
    """The same of practice."""


def digest_of(told: PromotionHistory) -> PromotionDigest:
    """What a screen shows of a whole history."""
    running = {one.number for one in (told.state.test, told.state.recheck) if one is not None}
    sums: dict[tuple[int, str], tuple[float, int]] = {}
    practised = 0.0, 0
    for one in told.matches:
        if one.counts:
            practised = _count(sums, practised, one.assigned, one.result)
    return PromotionDigest(
        state=told.state,
        verdicts=told.verdicts,
        times=told.times,
        trials={
            one.running.number: DigestTrial(one.recheck, one.matches, one.pairs)
            for one in told.trials
            if one.running.number in running
        },
        matches=len(told.matches),
        starts=[(one.assigned.session, one.assigned.at) for one in told.matches[-PACE_MATCHES:]],
        sums=sums,
        practised=practised,
    )


def _count(
    sums: dict[tuple[int, str], tuple[float, int]],
    practised: tuple[float, int],
    assigned: Assigned,
    result: float,
) -> tuple[float, int]:
    """Add a result to its sums, or return what practice comes to with it."""
    if assigned.arm == "practice":
        return practised[0] + result, practised[1] + 1
    for stratum in {"", assigned.stratum}:
        key = assigned.version, stratum
        total, count = sums.get(key, (0.0, 0))
        sums[key] = total + result, count + 1
    return practised


class _FoldState(msgspec.Struct, kw_only=True):
    """Everything that a `DigestFold` knows, as plain data."""

    digest: int = DIGEST
    state: PromotionState = msgspec.field(default_factory=PromotionState)
    verdicts: list[PromotionVerdict] = []
    times: dict[int, float] = {}
    counted: dict[int, list[AssignedMatch]] = {}
    """Matches with a result of the tests that run, by test."""
    opened: dict[int, RunningTest] = {}
    """Tests by a simulator that run, as they were when they were opened."""
    pairs: dict[int, list[tuple[int, Paired]]] = {}
    unresolved: dict[int, Assigned] = {}
    matches: int = 0
    starts: list[tuple[str, float]] = []
    sums: list[tuple[int, str, float, int]] = []
    practised: tuple[float, int] = (0.0, 0)


class DigestFold:
    """Makes a digest from the records of a log, each added once, in order."""

    def __init__(self, state: _FoldState | None = None) -> None:
        self._now = state or _FoldState()
        self._sums = {
            (version, stratum): (total, count) for version, stratum, total, count in self._now.sums
        }

    def add(self, records: Sequence[tuple[int, Record]]) -> None:
        """Some more records."""
        now = self._now
        # A verdict carries the number of a match, which may have been assigned long before.
        times = {number: assigned.at for number, assigned in now.state.open.items()}
        times |= {number: record.at for number, record in records}
        begin = 0
        for place, (number, record) in enumerate(records):
            match record:
                case Assigned():
                    now.matches += 1
                    now.unresolved[number] = record
                    now.starts.append((record.session, record.at))
                case Resolved():
                    self._resolved(number, record)
                case Paired():
                    now.pairs.setdefault(record.test, []).append((number, record))
                case Nominated(simulator=True):  # to see its test before the first pair
                    self._fold(records[begin : place + 1], times)
                    begin = place + 1
                    if now.state.test is not None and now.state.test.number == number:
                        now.opened[number] = now.state.test
        self._fold(records[begin:], times)
        self._forget(times)

    def _resolved(self, number: int, record: Resolved) -> None:
        now = self._now
        assigned = now.unresolved.pop(record.order, None)
        if assigned is None or record.ending == "void":
            return
        now.practised = _count(self._sums, now.practised, assigned, record.result)
        if assigned.test and assigned.arm not in ("holdout", "practice"):
            match = AssignedMatch(record.order, assigned, record, number)
            now.counted.setdefault(assigned.test, []).append(match)

    def _fold(self, records: Sequence[tuple[int, Record]], times: dict[int, float]) -> None:
        verdicts = roles.fold_owned(self._now.state, records)
        self._now.verdicts += verdicts
        for one in verdicts:
            if one.sequence in times:
                self._now.times[one.sequence] = times[one.sequence]

    def _forget(self, times: dict[int, float]) -> None:
        """Drop what no screen shows: matches of tests that are over, old verdicts, rare sums."""
        now = self._now
        running = {one.number for one in (now.state.test, now.state.recheck) if one is not None}
        now.times |= {number: times[number] for number in running if number in times}
        for kept in (now.counted, now.opened, now.pairs):
            for number in kept.keys() - running:
                del kept[number]
        del now.starts[:-PACE_MATCHES]
        if len(now.verdicts) > 2 * _VERDICTS:
            decisive = [one for one in now.verdicts if one.kind in ("promoted", "rolled back")]
            kept_ones = {*decisive[-_VERDICTS:], *now.verdicts[-_VERDICTS:]}
            now.verdicts = [one for one in now.verdicts if one in kept_ones]
            shown = running | {one.sequence for one in now.verdicts}
            now.times = {number: at for number, at in now.times.items() if number in shown}
        if len(self._sums) > 2 * _SUMS:
            most = sorted(self._sums.items(), key=lambda one: -one[1][1])[:_SUMS]
            self._sums = dict(most)

    def digest(self) -> PromotionDigest:
        """All that was added; it shares its parts with this fold."""
        now = self._now
        end = next(iter(now.unresolved), now.state.sequence + 2) - 1
        trials = {}
        for running in (now.state.test, now.state.recheck):
            if running is None:
                continue
            mine = sorted(now.counted.get(running.number, ()), key=lambda one: one.order)
            pairs = dict[int, Record](now.pairs.get(running.number, ()))
            opened = now.opened.get(running.number, running)
            trials[running.number] = DigestTrial(
                recheck=running is now.state.recheck,
                matches=tuple(one for one in mine if one.order <= end),
                pairs=test_pairs(opened, pairs, now.state.sequence + 1),
            )
        return PromotionDigest(
            state=now.state,
            verdicts=now.verdicts,
            times=now.times,
            trials=trials,
            matches=now.matches,
            starts=now.starts,
            sums=self._sums,
            practised=now.practised,
        )

    @property
    def last(self) -> int:
        """The number of the last record that was added."""
        return self._now.state.sequence

    def encoded(self) -> bytes:
        """The fold as bytes; `decoded_fold` takes them back."""
        self._now.sums = [(*key, *value) for key, value in self._sums.items()]
        return _ENCODER.encode(self._now)


def decoded_fold(body: bytes) -> DigestFold | None:
    """The fold in these bytes; None: of another program."""
    try:
        state = _DECODER.decode(body)
    except msgspec.MsgspecError:
        return None
    return DigestFold(state) if state.digest == DIGEST else None


def _encode_array(value: object) -> object:
    if isinstance(value, np.ndarray):
        return [value.dtype.str, list(value.shape), value.tobytes()]
    raise NotImplementedError(f"no {type(value).__name__} belongs into a digest")


def _decode_array(kind: Any, value: Any) -> NDArray:
    dtype, shape, data = value
    found: NDArray = np.frombuffer(data, np.dtype(dtype)).reshape(shape).copy()
    return found


_ENCODER = msgspec.msgpack.Encoder(enc_hook=_encode_array)
_DECODER = msgspec.msgpack.Decoder(_FoldState, dec_hook=_decode_array)


class DigestReader:
    """The digest of a log, opened by its newest summary, each time reading only what is new."""

    def __init__(
        self, folder: Path, *, problem: Callable[[str], None] = lambda message: None
    ) -> None:
        self._folder = folder
        self._problem = problem
        self._summarised = 0
        self._fold: DigestFold | None = None
        self._beside: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Where many records are in no summary, have another process read them until `read` is
        called: a caller with a journal to read has both after the time of one."""
        self._opened()
        many = _last_block(self._folder) - self._log.read >= _MANY
        if many and self._beside is None and sys.executable:
            command = [sys.executable, "-m", "understudy.promotion.digest", str(self._folder)]
            with contextlib.suppress(OSError):  # no process is to be had: `read` reads all
                self._beside = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )

    def _take_over(self, beside: subprocess.Popen[bytes]) -> None:
        """Go on from what the other process has read; if it failed, from where this one is."""
        body = unseal(beside.communicate()[0])
        fold = None if beside.returncode or body is None else decoded_fold(body)
        if fold is not None:
            self._fold = fold
            self._log = PromotionLog(self._folder, problem=self._problem, after=fold.last)

    def read(self, progress: Callable[[float], None] | None = None) -> PromotionDigest:
        """The digest now.

        Raises:
            FileFormatError: A newer program wrote a record of a kind that this one does not know.
        """
        if self._beside is not None:
            beside, self._beside = self._beside, None
            self._take_over(beside)
        fold = self._opened()
        last = _last_block(self._folder) if progress is not None else 0
        for records in self._log.new_blocks():
            fold.add(records)
            if progress is not None:
                progress(min((self._log.read - self._summarised) / max(last, 1), 1.0))
        return fold.digest()

    def summarise(self, *, most_blocks: int | None = None) -> bool:
        """Read on by so many blocks that are whole, and make a summary once enough of them are in
        no other; whether one was made. What has no block yet is not read."""
        fold = self.read_blocks(most_blocks)
        if self._log.read - self._summarised < _BLOCKS * BLOCK or self._log.read % BLOCK:
            return False
        files.make_folders(self._folder / SUMMARIES)
        with contextlib.suppress(FileExistsError):  # another process made the same
            files.create_exclusive(_path(self._folder, self._log.read), seal(fold.encoded()))
        self._summarised = self._log.read
        for number in sorted(_numbers(self._folder))[:-_KEPT]:
            with contextlib.suppress(FileNotFoundError):  # another process removes it too
                files.remove(_path(self._folder, number))
        return True

    def read_blocks(self, most: int | None = None) -> DigestFold:
        """Read on by so many blocks that are whole (None: all), and return the fold of all."""
        fold = self._opened()
        whole = _last_block(self._folder)
        for _ in range(most) if most is not None else itertools.count():
            if self._log.read + BLOCK > whole:
                break
            for records in itertools.islice(self._log.new_blocks(), 1):
                fold.add(records)
        return fold

    def _opened(self) -> DigestFold:
        if self._fold is None:
            number, self._fold = _newest(self._folder)
            self._summarised = number
            self._log = PromotionLog(self._folder, problem=self._problem, after=number)
        return self._fold


class DigestWriter:
    """Keeps the summaries of a promotion log up to date, a little at a time. For one thread.

    Raises nothing: a full disk costs summaries until there is room, and a record of a newer program
    costs all that would follow. Either is said once.
    """

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._reader: DigestReader | None = None
        self._worked = -_EVERY_S
        self._outdated = False
        """Whether a newer program wrote a record that this one does not know."""
        self._complained = False

    def work(self) -> None:
        """Fold a block, every ten seconds at most."""
        if self._outdated or self._clock.monotonic() - self._worked < _EVERY_S:
            return
        self._worked = self._clock.monotonic()
        if not self._folder.is_dir():
            return
        try:
            if self._reader is None:
                files.sweep(self._folder / SUMMARIES)
                self._reader = DigestReader(self._folder)
            self._reader.summarise(most_blocks=1)
        except OSError as error:  # a full disk, for a while
            self._complain(error)
        except FileFormatError as error:
            self._outdated = True
            self._complain(error)

    def _complain(self, error: Exception) -> None:
        if not self._complained:
            self._complained = True
            complain(f"cannot keep a summary of the promotion log: {error}")


def _newest(folder: Path) -> tuple[int, DigestFold]:
    """The newest summary that can be used: how many records it is of, and its fold."""
    for number in sorted(_numbers(folder), reverse=True):
        with contextlib.suppress(OSError):
            body = unseal(_path(folder, number).read_bytes())
            fold = None if body is None else decoded_fold(body)
            if fold is not None:
                return number, fold
    return 0, DigestFold()


def _numbers(folder: Path) -> Iterable[int]:
    return [
        int(path.stem) for path in (folder / SUMMARIES).glob("*.msgpack") if path.stem.isdecimal()
    ]


def _path(folder: Path, number: int) -> Path:
    return folder / SUMMARIES / f"{number:08d}.msgpack"


def _last_block(folder: Path) -> int:
    """The last record of the last block; 0: there is none."""
    ends = (path.stem.partition("-")[2] for path in folder.glob("*-*.jsonl"))
    return max((int(end) for end in ends if end.isdecimal()), default=0)


def _refuse(problem: str) -> None:
    """The reader that began this process must tell of a damaged record: it reads all itself."""
    raise SystemExit(problem)


if __name__ == "__main__":  # begun by `DigestReader.begin`
    found = DigestReader(Path(sys.argv[1]), problem=_refuse).read_blocks()
    sys.stdout.buffer.write(seal(found.encoded()))
