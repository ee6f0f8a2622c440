"""A relay at work: a run folder and a store are kept alike, look by look, until it is stopped.

The run folder is what bots, servers and learners work in; none of them waits for the network. While
the store cannot be reached everything waits in the run folder, within bounds, and the relay looks
again after longer and longer pauses.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from understudy.core import config as configs
from understudy.core import files
from understudy.core.clock import Clock, SystemClock
from understudy.core.errors import ConfigError, FileFormatError, RunFolderError, StoreUnavailable
from understudy.experience.ledger.recovery import LEDGER, is_served
from understudy.gates.promotion.records import Declared
from understudy.promotion.log import PromotionLog
from understudy.registry.run_folder import Identity, RunFolder, check_fit, holds_run
from understudy.relay import bucket
from understudy.relay.bucket import RunRecord
from understudy.relay.learner import LearnerSide
from understudy.relay.local import LocalState, Side, read_side
from understudy.relay.player import PlayerSide
from understudy.relay.report import RelayCounts
from understudy.relay.side import StoreSide
from understudy.relay.stores import ObjectStore, check, open_store
from understudy.supervise.lock import learner_runs, relay_lock
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

_LONGEST_WAIT_S = 60.0
_SLICE_S = 0.1
_WHERE = "relay"


@dataclass(frozen=True, kw_only=True)
class RelayOptions:
    """Which run folder, which store, and which side of it."""

    run: Path
    url: str
    side: Side | None = None
    """None: what the run folder was last; a new one is the player's"""
    once: bool = False
    """Send and fetch what there is now, then end"""


class RelayProgress(NamedTuple):
    """How a relay stands, for display."""

    elapsed_s: float
    side: Side
    counts: RelayCounts
    trouble: str
    """Why the store cannot be used; empty: it can"""
    served: bool
    """Whether segments of a server are carried, not matches"""


@dataclass(frozen=True)
class RelaySummary:
    """What a relay has done."""

    run: str
    url: str
    side: Side
    seconds: float
    counts: RelayCounts
    served: bool
    code: int = 0
    """The exit code"""

    def as_dict(self) -> dict[str, object]:
        """For `--json`."""
        return {
            "run": self.run,
            "url": self.url,
            "side": self.side,
            "seconds": self.seconds,
            **self.counts.as_dict(),
            "interrupted": self.code != 0,
        }


def run_relay(
    options: RelayOptions,
    *,
    stop: Callable[[], bool],
    started: Callable[[Side, str], None] = lambda side, store: None,
    show: Callable[[RelayProgress], None] = lambda progress: None,
    say: Callable[[str], None] = lambda words: None,
) -> RelaySummary:
    """Keep a run folder and a store alike until `stop` is true; it is asked ten times a second.

    `started` is called once the store has been tried, `show` after every look, `say` with what a
    person must know.

    Raises:
        ConfigError: The address, the side or the store cannot be used.
        RunFolderError: The run folder and the store do not fit.
        Fenced: Another learner has taken the store over.
        StoreUnavailable: With `once`: the store cannot be reached.
    """
    store = open_store(options.url)
    kept = read_side(options.run) if options.run.is_dir() else None
    side: Side = options.side or (kept.side if kept is not None else "player")
    if side == "player" and not holds_run(options.run):
        raise RunFolderError(f"{options.run}: holds no run yet; start the bot or the server first")
    began = time.monotonic()
    relay = _Relay(options, store, side, stop=stop, show=show, say=say)
    with relay_lock(options.run):
        counts = relay.work(lambda: started(side, store.name))
    return RelaySummary(
        run=str(options.run),
        url=store.name,
        side=side,
        seconds=time.monotonic() - began,
        counts=counts,
        served=is_served(options.run),
    )


class _Relay:
    def __init__(
        self,
        options: RelayOptions,
        store: ObjectStore,
        side: Side,
        *,
        stop: Callable[[], bool],
        show: Callable[[RelayProgress], None],
        say: Callable[[str], None],
    ) -> None:
        self._options = options
        self._store = store
        self._name: Side = side
        self._stop = stop
        self._show = show
        self._say = say
        self._clock: Clock = SystemClock()
        self._began = time.monotonic()
        self._journal: Journal | None = None
        self._failures = 0
        self._trouble = ""
        self._side: StoreSide | None = None
        self._folder_now: RunFolder | None = None
        self._log: PromotionLog | None = None
        self._by_evidence: bool | None = None
        """What the run in the store is; None: not known yet."""

    def work(self, started: Callable[[], None]) -> RelayCounts:
        """Until told to stop; then once more, for what was finished at last."""
        if not self._attempt(self._connect):
            return RelayCounts()
        started()
        assert self._side is not None
        side = self._side
        while not self._stop():
            more = self._look(side)
            self._tell()
            if not more:
                if self._options.once:
                    return side.counts
                self._pause()
        if not self._failures:
            self._look(side)
        return side.counts

    # --- the store, which may not answer ---------------------------------------------------------

    def _attempt(self, step: Callable[[], None]) -> bool:
        """Try until it works; False: told to stop before."""
        while not self._stop():
            try:
                step()
            except StoreUnavailable as error:
                self._failed(error)
                if self._side is not None:
                    self._side.offline()
                self._tell()
                self._pause()
            else:
                self._works()
                return True
        return False

    def _look(self, side: StoreSide) -> bool:
        """Whether there is more to do at once."""
        self._check_mode()  # a bot may have opened the run in another one
        try:
            side.offline()
            more = side.cycle()
        except (StoreUnavailable, FileFormatError, OSError) as error:  # a full disk is no end
            self._failed(error)
            return False
        self._works()
        return more

    def _failed(self, error: StoreUnavailable | FileFormatError | OSError) -> None:
        if self._options.once:
            raise error
        self._failures += 1
        if not self._trouble:
            self._problem(f"{error}; everything waits, and the relay looks again")
        self._trouble = str(error)

    def _works(self) -> None:
        if self._failures:
            self._say_note(f"{self._store.name}: works again after {self._failures} failed looks")
        self._failures, self._trouble = 0, ""

    def _pause(self) -> None:
        """In slices: a signal does not end a sleep, and must not set an event that we wait for."""
        until = time.monotonic() + self._pause_s()
        while not self._stop() and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _SLICE_S))

    def _pause_s(self) -> float:
        config = configs.Config() if self._folder_now is None else self._folder_now.config
        poll_s = config.relay.poll_s
        if not self._failures:
            return poll_s
        # Many machines lose a store at the same moment: they should not come back at one moment.
        wait_s = min(poll_s * 2.0 ** min(self._failures - 1, 16), max(_LONGEST_WAIT_S, poll_s))
        return wait_s * random.uniform(0.8, 1.2)

    def _tell(self) -> None:
        counts = RelayCounts() if self._side is None else self._side.counts
        elapsed_s = time.monotonic() - self._began
        self._show(
            RelayProgress(
                elapsed_s, self._name, counts, self._trouble, is_served(self._options.run)
            )
        )

    # --- connecting ------------------------------------------------------------------------------

    def _connect(self) -> None:
        """Try the store, and open the run folder; everything here may be repeated."""
        root = self._options.run
        if holds_run(root):  # first: what is wrong here needs no network
            here = RunFolder.load(root, self._clock)
            self._check_folder(here)
            if read_side(root) is not None:  # so that bounds are kept before the store answers
                self._open(here)
        check(self._store)
        record = bucket.read_run(self._store)
        folder = self._folder(record)
        if record is None:
            self._store.create(bucket.RUN, bucket.encode(_record_of(folder)))
            record = bucket.read_run(self._store)  # of several that race, one is it
        if record is not None:
            _check_same(folder, record, self._store.name)
            self._by_evidence = record.by_evidence
        self._open(folder).start()

    def _open(self, folder: RunFolder) -> StoreSide:
        """Our side of this run folder, once."""
        if self._side is not None:
            return self._side
        local = LocalState(folder.root, self._store.name, self._name)
        self._journal = Journal(folder.journal, "relay", self._clock)
        self._folder_now = folder
        kind = PlayerSide if self._name == "player" else LearnerSide
        self._side = kind(folder, self._store, local, problem=self._problem, note=self._say_note)
        note = f"the {self._name}'s side of {self._store.name}, as machine {local.machine}"
        self._journal.write(events.Note(where=_WHERE, message=note))
        return self._side

    def _folder(self, record: RunRecord | None) -> RunFolder:
        root = self._options.run
        if holds_run(root):
            return RunFolder.load(root, self._clock)
        if record is None:
            raise StoreUnavailable(
                f"{self._store.name}: no machine that plays has been here yet, and {root} holds no "
                "run either: the relay beside the first bot or server says what the run is for"
            )
        identity = record.identity
        config = configs.from_table(record.config, source=f"{self._store.name}: {bucket.RUN}")
        judge = "here" if self._name == "learner" else config.promotion.judge
        config = msgspec.structs.replace(
            config, promotion=msgspec.structs.replace(config.promotion, judge=judge)
        )
        folder = RunFolder.open(
            root,
            spec=identity.spec,
            config=config,
            clock=self._clock,
            game=identity.game,
            game_options=identity.game_options,
        )
        if record.served:
            files.make_folders(root / LEDGER)
        if record.by_evidence:
            files.make_folders(folder.promotion)
        self._say_note(f"{root} is new: it is made for the run in {self._store.name}")
        return folder

    def _check_mode(self) -> None:
        """Evidence of several machines is judged in one place, and a bot has to know before its
        first match that this is not its own (ADR 0052)."""
        folder = self._folder_now
        if folder is None or not holds_run(folder.root):
            return
        if self._by_evidence not in (None, folder.by_evidence):
            raise ConfigError(_other_mode(folder, self._store.name))
        judged_there = folder.config.promotion.judge == "learner"
        if judged_there and self._name == "learner":
            raise ConfigError(
                f"{folder.root}: promotion.judge: expected 'here' in a run folder of the learner's "
                "side, got 'learner'"
            )
        if judged_there or self._name == "learner":
            return
        for _, record in self._promotion_log(folder).new() if folder.by_evidence else ():
            if not isinstance(record, Declared):
                raise ConfigError(_judged_here(folder))

    def _promotion_log(self, folder: RunFolder) -> PromotionLog:
        if self._log is None:
            self._log = PromotionLog(folder.promotion, problem=self._problem)
        return self._log

    def _check_folder(self, folder: RunFolder) -> None:
        self._folder_now = folder
        self._check_mode()
        if self._name == "player" and learner_runs(folder.root):
            raise ConfigError(
                f"{folder.root}: a learner works here, and would learn from the matches that are "
                'to be sent. Start the bot without one (learner="off", --learner off), or '
                "name this the learner's side: --side learner"
            )

    # --- telling ---------------------------------------------------------------------------------

    def _problem(self, message: str) -> None:
        if self._journal is not None:
            self._journal.write(events.Problem(where=_WHERE, message=message))
        self._say(message)

    def _say_note(self, message: str) -> None:
        if self._journal is not None:
            self._journal.write(events.Note(where=_WHERE, message=message))
        self._say(message)


def _record_of(folder: RunFolder) -> RunRecord:
    # Where a custom game lies is this machine's affair, and a learner needs no rules.
    identity = msgspec.structs.replace(folder.identity, game_code=None, bot_code=())
    return RunRecord(
        identity=identity,
        config=msgspec.to_builtins(folder.config),
        served=is_served(folder.root),
        by_evidence=folder.by_evidence,
    )


def _judged_here(folder: RunFolder) -> str:
    if is_served(folder.root):
        return (
            f"{folder.root}: segments were judged in this run folder, by its own log. Serve from a "
            "new one with --relay and --promotion auto: then they are judged on the learner's "
            "machine"
        )
    return (
        f"{folder.root}: matches were judged in this run folder, by its own log. Open the bot in a "
        "new run folder with promotion.judge = 'learner': then a relay carries its matches of mode "
        "auto to the learner's machine"
    )


def _check_same(folder: RunFolder, record: RunRecord, store: str) -> None:
    other: Identity = record.identity
    try:
        check_fit(folder.identity, other.spec, other.game, other.game_options, folder.root)
    except RunFolderError as error:
        raise RunFolderError(f"{store} is for another run: {error}") from error
    if record.served != is_served(folder.root):
        kinds = ("a server's", "a bot's")
        ours, theirs = kinds if not record.served else kinds[::-1]
        raise RunFolderError(f"{store} is for {theirs} run, and {folder.root} is {ours}")
    if record.by_evidence != folder.by_evidence:
        raise RunFolderError(_other_mode(folder, store))


def _other_mode(folder: RunFolder, store: str) -> str:
    served = is_served(folder.root)
    what = "promotion" if served else "mode"
    modes = ("latest", "auto") if served else ("learn", "shadow")
    theirs, ours = modes if folder.by_evidence else modes[::-1]
    return (
        f"{store} is for a run of {what} {theirs}, and {folder.root} was opened in {what} {ours}: "
        f"all machines of a run need the same {what}; use another address, or another run folder"
    )
