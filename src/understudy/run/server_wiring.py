"""The parts of a server behind its socket: opened together, closed in order.

Run folder, policy, gate, ledger, session, application and the learner's process; `run.serve` adds
the socket, signals and progress. A run folder has one server at a time. A new version is adopted by
reference, between two batches.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import understudy.adapters.territory.messages  # noqa: F401  registers its messages
from understudy.adapters import gate_factory
from understudy.bot.watcher import Watcher
from understudy.core.clock import Clock, SystemClock
from understudy.core.config import Config
from understudy.experience.episode import Episode
from understudy.experience.ledger import Ledger
from understudy.experience.ledger.recovery import LEDGER
from understudy.experience.spool import Spool
from understudy.gates.decision import DecisionGate
from understudy.gates.worker import GateWorker
from understudy.policy.policy import Policy, untrained
from understudy.policy.spec import AnyNetwork, PolicySpec
from understudy.registry.run_folder import RunFolder
from understudy.run.segment_writer import SegmentWriter, open_segments, segments_line
from understudy.server.app import Server
from understudy.server.clients import Clients
from understudy.server.error_log import ErrorLog, logging_to
from understudy.server.status_poller import StatusPoller
from understudy.session.segments import PlayerSegments
from understudy.session.session import Session
from understudy.session.shards import Shard
from understudy.session.translation import Translator
from understudy.supervise import process, starter
from understudy.supervise.lock import server_lock
from understudy.supervise.process import SupervisedProcess
from understudy.supervise.relay import start_relay
from understudy.supervise.starter import LearnerParent, RunningLearner
from understudy.telemetry import events
from understudy.telemetry.journal import Journal
from understudy.telemetry.promotion_status import PromotionStatus
from understudy.telemetry.status import patience
from understudy.telemetry.summary import light_writer
from understudy.web.auth import Auth, check_exposure, make_auth
from understudy.web.listening import Tls

_RELAY_STOP_S = 10.0
_NEWS = 100
"""Verdicts that wait for the screen at most."""


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """What to serve, at which address, and to which clients."""

    translator: Translator
    game: str
    """As the run folder names it: `territory 1`, or the name in a schema."""
    run: Path
    network: AnyNetwork
    config: Config
    gate: str
    seed: int | None = None
    learner: Literal["process", "off"] = "process"
    relay: str | None = None
    """The address of a store: the learner is on another machine"""
    shard: Shard | None = None
    """Which territories are this server's; None: all of them"""
    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None
    tls: Tls | None = None
    behind_proxy: bool = False
    allow_hosts: tuple[str, ...] = ()
    allow_origins: tuple[str, ...] = ()
    address_header: str | None = None

    def auth(self) -> Auth:
        """Raises `ConfigError` if other machines can reach the server without a token or TLS."""
        check_exposure(
            host=self.host,
            token=self.token is not None,
            tls=self.tls is not None,
            behind_proxy=self.behind_proxy,
        )
        return make_auth(
            host=self.host,
            allow_hosts=self.allow_hosts,
            allow_origins=self.allow_origins,
            token=self.token,
            behind_proxy=self.behind_proxy,
            address_header=self.address_header,
        )


class ServerWiring:
    """All parts of a server but its socket.

    `close` ends them in order; closing `stack` releases them in any case.
    """

    def __init__(self, options: ServeOptions, auth: Auth, stack: contextlib.ExitStack) -> None:
        clock, config = SystemClock(), options.config
        spec = PolicySpec(options.translator.features, options.translator.actions, options.network)
        gate = _gate(options, clock, stack)
        # Before anything is written there: the folder may belong to another server.
        stack.enter_context(server_lock(options.run))
        self._folder = folder = RunFolder.open(
            options.run, spec=spec, config=config, clock=clock, game=options.game
        )
        stack.enter_context(logging_to(folder.logs))
        self._journal = Journal(folder.journal, "server", clock)
        self._summaries = light_writer(self._journal, config.retention)
        self._errors = ErrorLog(self._journal, clock)
        self._policy = untrained(spec, config.learner.seed)
        self._learner: RunningLearner | None = None
        self._writer: SegmentWriter | None = None
        self._counted: deque[events.ServerCounted] = deque(maxlen=_NEWS)
        """Counts for the journal. The thread of the loop, which answers, never writes a file."""
        self.news: deque[str] = deque(maxlen=_NEWS)
        """Verdicts for the screen, which takes them out."""
        self._spool = Spool(folder.root, spec, clock)
        self.status_poller = StatusPoller(folder.root, clock, patience(config))
        self._watcher = Watcher(
            folder,
            adopt=self._adopt,
            problem=self._errors.note,
            tick=self._tick,
            playing=self._policy.version,
        )
        self._watcher.look()
        self._ledger = stack.enter_context(
            Ledger(
                folder.root / LEDGER,
                spec,
                segment=config.live.segment,
                clock=clock,
                put=self._put,
                sync_ms=config.live.sync_ms,
                segment_s=config.live.segment_s,
                stagger=True,
                tell=self._errors.note,
            )
        )
        self._segments: PlayerSegments | None
        self._segments, self._writer = self._promotion(options)
        self.session = Session(
            options.translator,
            policy=self._incumbent,
            gate=gate,
            ledger=self._ledger,
            config=config.live,
            clock=clock,
            seed=options.seed,
            problem=self._errors.note,
            segments=self._segments,
            shard=options.shard,
        )
        self.server = Server(
            self.session,
            config=config.live,
            auth=auth,
            clients=Clients(folder.root / "server", self.session.holds),
            run=lambda: self.status_poller.now,
            promotion=self._promotion_status,
            problem=self._errors.note,
            tell=self._counted.append,
        )
        stack.callback(self._watcher.stop)
        self._journal.write(
            events.BotStarted(
                pid=os.getpid(),
                mode="serve",
                learner=options.learner,
                version=self._policy.version,
            )
        )
        self._start_learner(options, stack)
        self._relay = self._start_relay(options, stack)
        self._watcher.start()
        if self._writer is not None:
            self._writer.start()
            stack.callback(self._writer.close)

    def _tick(self) -> None:
        self._write_counts()
        self.status_poller.look()
        self._summaries.work()

    def close(self) -> None:
        """Put finished segments into the spool, and stop the learner."""
        self._watcher.stop()
        if self._segments is not None and self._writer is not None:
            self._segments.stop()
            self._writer.close()
        try:
            self._ledger.flush()
        except OSError as error:
            self._errors.note("segments wait in the ledger for the next start", error)
        if self._learner is not None:
            problem = starter.stop(self._learner, self._folder.config.learner.drain_s)
            if problem:
                self._errors.note(problem)
        if self._relay is not None and not self._relay.stop(_RELAY_STOP_S):
            self._errors.note("the relay did not stop in time; what it did not send waits")
        self.server.count(time.monotonic())
        self._write_counts()
        self._journal.write(events.BotStopped(matches=0))

    def _write_counts(self) -> None:
        while self._counted:
            self._journal.write(self._counted.popleft())

    def plays(self) -> str:
        """Who decides, and the test that runs, in a few words; empty without promotion."""
        return "" if self._writer is None else segments_line(self._writer.status)

    def take_news(self) -> tuple[str, ...]:
        """Verdicts since the last call."""
        count = len(self.news)
        return tuple(self.news.popleft() for _ in range(count))

    def _adopt(self, policy: Policy) -> None:
        previous, self._policy = self._policy.version, policy
        self._journal.write(events.VersionAdopted(version=policy.version, previous=previous))

    def _put(self, episode: Episode) -> None:
        """Called from the ledger's thread."""
        self._spool.put(episode)
        if self._writer is not None:
            self._writer.remember(episode)
        if self._learner is not None:
            self._learner.wake()

    def _incumbent(self) -> Policy:
        """The policy that decides, or decides outside of segments."""
        return self._policy if self._writer is None else self._writer.policy

    def _promotion(
        self, options: ServeOptions
    ) -> tuple[PlayerSegments, SegmentWriter] | tuple[None, None]:
        """With `live.promotion = "auto"`: what assigns segments of play by evidence."""
        live = options.config.live
        if live.promotion == "latest":
            return None, None
        writer = open_segments(
            self._folder,
            newest=lambda: self._policy,
            journal=self._journal,
            say=self._say,
            problem=self._errors.note,
            shard=options.shard,
            seed=options.seed,
        )
        return PlayerSegments(writer, live), writer

    def _promotion_status(self) -> PromotionStatus | None:
        return None if self._writer is None else self._writer.status

    def _say(self, words: str) -> None:
        """A verdict, or why something else than evidence decides."""
        self.news.append(words)
        self._journal.write(events.Note(where="server", message=words))

    def _start_learner(self, options: ServeOptions, stack: contextlib.ExitStack) -> None:
        parent = LearnerParent(
            journal=self._journal,
            note=self._errors.note,
            problem=self._errors.note,
            alone="serving and recording only",
            meanwhile="this server looks again",
            prints=False,
        )
        command = learner_command(options)
        self._learner = starter.start(options.learner, self._folder, parent, command=command)
        if self._learner is not None:
            stack.callback(self._learner.stop, 0.0)  # no effect if it has stopped

    def _start_relay(
        self, options: ServeOptions, stack: contextlib.ExitStack
    ) -> SupervisedProcess | None:
        if options.relay is None:
            return None
        relay = start_relay(self._folder, options.relay, problem=self._errors.note)
        stack.callback(relay.stop, 0.0)  # no effect if it has stopped
        return relay


def learner_command(options: ServeOptions) -> list[str]:
    """The command that starts the learner. The gate is code: a command line alone may name it."""
    threshold = repr(options.config.live.threshold)
    return process.learner_command(
        options.run, "--continuous", "--gate", options.gate, "--threshold", threshold
    )


def _gate(options: ServeOptions, clock: Clock, stack: contextlib.ExitStack) -> DecisionGate:
    """The gate; a custom one may take any time, and runs in a worker thread."""
    live = options.config.live
    gate = gate_factory.make_gate(
        options.gate,
        game=options.game,
        threshold=live.threshold,
        budget_ms=live.gate_budget_ms,
        features=len(options.translator.features),
        actions=options.translator.actions,
    )
    if options.gate in gate_factory.SHIPPED:
        return gate
    worker = GateWorker(gate, deadline_ms=live.gate_deadline_ms, clock=clock)
    stack.callback(worker.close)
    return worker
