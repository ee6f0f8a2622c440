"""The desk of a server: everything behind its sockets, opened together and closed in good order.

Run folder, policy, gate, ledger, session and the learner's process. One server at a time sits at a
run folder. A new version is swapped in by reference between two batches.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from understudy.adapters import gate_factory
from understudy.bot.watcher import Watcher
from understudy.core import files
from understudy.core.clock import Clock, SystemClock
from understudy.core.config import Config
from understudy.core.errors import MissingDependency, RunFolderError
from understudy.experience.episode import Episode
from understudy.experience.ledger import Ledger
from understudy.experience.ledger.recovery import LEDGER
from understudy.experience.spool import Spool
from understudy.gates.decision import DecisionGate
from understudy.gates.worker import GateWorker
from understudy.policy.policy import Policy, untrained
from understudy.policy.spec import AnyNetwork, PolicySpec
from understudy.registry.run_folder import RunFolder
from understudy.server.app import Server
from understudy.server.auth import Auth, check_exposure, door
from understudy.server.clients import Clients
from understudy.server.error_log import ErrorLog, logging_to
from understudy.server.listening import Tls
from understudy.server.status_poller import StatusPoller
from understudy.session.session import Session
from understudy.session.translation import Translator
from understudy.supervise.process import REFUSED, LearnerProcess
from understudy.supervise.starter import INSTALL_LINE, LEARNER_NEEDS
from understudy.telemetry import events
from understudy.telemetry.journal import Journal
from understudy.telemetry.status import patience
from understudy.telemetry.text import complain


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """What to serve, where, and to whom."""

    translator: Translator
    game: str
    """As the run folder has it: `territory 1`, or the name in a schema."""
    run: Path
    network: AnyNetwork
    config: Config
    gate: str
    seed: int | None = None
    learner: Literal["process", "off"] = "process"
    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None
    tls: Tls | None = None
    behind_proxy: bool = False
    allow_hosts: tuple[str, ...] = ()
    allow_origins: tuple[str, ...] = ()
    address_header: str | None = None

    def door(self) -> Auth:
        """Who may come in; an address that is open to others without need is an error."""
        check_exposure(
            host=self.host,
            token=self.token is not None,
            tls=self.tls is not None,
            behind_proxy=self.behind_proxy,
        )
        return door(
            host=self.host,
            allow_hosts=self.allow_hosts,
            allow_origins=self.allow_origins,
            token=self.token,
            behind_proxy=self.behind_proxy,
            address_header=self.address_header,
        )


class ServerWiring:
    """All parts of a server but its sockets. `close` ends them in good order; the stack, anyhow."""

    def __init__(self, service: ServeOptions, door: Auth, stack: contextlib.ExitStack) -> None:
        clock, config = SystemClock(), service.config
        spec = PolicySpec(service.translator.features, service.translator.actions, service.network)
        gate = _gate(service, clock, stack)
        # Before anything else is written there: it may be somebody else's.
        stack.enter_context(_only_server(service.run))
        self._folder = folder = RunFolder.open(
            service.run, spec=spec, config=config, clock=clock, game=service.game
        )
        stack.enter_context(logging_to(folder.logs))
        self._journal = Journal(folder.journal, "server", clock)
        self._troubles = ErrorLog(self._journal, clock)
        self._policy = untrained(spec, config.learner.seed)
        self._learner: LearnerProcess | None = None
        self._spool = Spool(folder.root, spec, clock)
        self.following = StatusPoller(folder.root, clock, patience(config))
        self._watcher = Watcher(
            folder,
            adopt=self._adopt,
            problem=self._troubles.note,
            tick=self.following.look,
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
                tell=self._troubles.note,
            )
        )
        self.session = Session(
            service.translator,
            policy=lambda: self._policy,
            gate=gate,
            ledger=self._ledger,
            config=config.live,
            clock=clock,
            seed=service.seed,
            problem=self._troubles.note,
        )
        self.server = Server(
            self.session,
            config=config.live,
            door=door,
            clients=Clients(folder.root / "server", self.session.holds),
            run=lambda: self.following.now,
            problem=self._troubles.note,
        )
        stack.callback(self._watcher.stop)
        self._journal.write(
            events.BotStarted(
                pid=os.getpid(),
                mode="serve",
                learner=service.learner,
                version=self._policy.version,
            )
        )
        self._start_learner(service, stack)
        self._watcher.start()

    def close(self) -> None:
        """Everything that ended is in the spool, and learned from if the learner is quick."""
        self._watcher.stop()
        try:
            self._ledger.flush()
        except OSError as error:
            self._troubles.note("segments wait in the ledger for the next start", error)
        if self._learner is not None:
            bound_s = self._folder.config.learner.drain_s + 10.0
            if not self._learner.stop(bound_s):
                self._troubles.note("the learner did not stop in time; nothing is lost")
        self._journal.write(events.BotStopped(matches=0))

    def _adopt(self, policy: Policy) -> None:
        previous, self._policy = self._policy.version, policy
        self._journal.write(events.VersionAdopted(version=policy.version, previous=previous))

    def _put(self, episode: Episode) -> None:
        """From the ledger's thread."""
        self._spool.put(episode)
        if self._learner is not None:
            self._learner.wake()

    def _start_learner(self, service: ServeOptions, stack: contextlib.ExitStack) -> None:
        if service.learner == "off":
            return
        missing = [name for name in LEARNER_NEEDS if importlib.util.find_spec(name) is None]
        if missing:
            complain(f"serving and recording only; to learn as well: {INSTALL_LINE}")
            self._troubles.note(f"no learner: {', '.join(missing)} not installed")
            return
        self._learner = LearnerProcess(
            self._folder.root, died=self._died, command=learner_command(service)
        )
        stack.callback(self._learner.stop, 0.0)  # nothing happens if it was stopped before

    def _died(self, code: int, restart_in_s: float) -> None:
        if code == REFUSED:
            self._troubles.note("another learner works on this run folder; this server looks again")
            return
        self._journal.write(events.LearnerDied(code=code, restart_in_s=restart_in_s))


def learner_command(service: ServeOptions) -> list[str]:
    """The learner behind this server. Its gate is code: it comes from a command line alone."""
    threshold = service.config.live.threshold
    return [
        sys.executable, "-m", "understudy", "learner", "--supervised", "--continuous",
        "--run", str(service.run), "--gate", service.gate, "--threshold", repr(threshold),
    ]  # fmt: skip


@contextlib.contextmanager
def _only_server(root: Path) -> Iterator[None]:
    """Two servers would write one ledger."""
    try:
        import filelock
    except ImportError as error:
        raise MissingDependency(
            f'a server needs {error.name}: pip install ".[serve]" in your clone'
        ) from error
    try:
        files.make_folders(root)
        held = filelock.FileLock(root / "server.lock").acquire(timeout=0)
    except filelock.Timeout as error:
        raise RunFolderError(
            f"{root}: another server works in this run folder; stop it, or name another with --run"
        ) from error
    except OSError as error:
        raise RunFolderError(
            f"{root}: cannot be used as a run folder ({error.strerror or error}); "
            "choose a folder that can be written to"
        ) from error
    with held:
        yield


def _gate(service: ServeOptions, clock: Clock, stack: contextlib.ExitStack) -> DecisionGate:
    """Gates that ship are asked inline; a custom one may take any time, and gets a worker."""
    live = service.config.live
    gate = gate_factory.gate(
        service.gate,
        game=service.game,
        threshold=live.threshold,
        budget_ms=live.gate_budget_ms,
        features=len(service.translator.features),
        actions=service.translator.actions,
    )
    if service.gate in gate_factory.SHIPPED:
        return gate
    worker = GateWorker(gate, deadline_ms=live.gate_deadline_ms, clock=clock)
    stack.callback(worker.close)
    return worker
