"""Workers as Ray actors: on this machine (`local`), or on a cluster (`auto`).

`local` starts Ray for this command alone, whatever `RAY_ADDRESS` says, and stops it at the end.
`auto` attaches to the cluster of the job, of `RAY_ADDRESS`, or of this machine, and leaves it as it
was; the user's code travels to its nodes (`travelling_code`), Understudy must be installed there.

Messages are the JSON and bytes of `wire`, so nothing of ours is pickled. Weights are put into Ray's
object store once (`ray.put`) and read there by all actors of a node. An actor that dies is not
restarted by Ray: the pool starts another one, on any node with a free CPU, and tells it anew what
to play.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import platform
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.dependencies import needs
from understudy.core.errors import ConfigError
from understudy.workers import wire
from understudy.workers.pool import ONE_THREAD, WorkerDied
from understudy.workers.ray_mode import ADDRESS, AUTO, LOCAL, check_mode
from understudy.workers.travelling_code import copy_user_code, job_working_dir
from understudy.workers.worker import EnvironmentWorker

if TYPE_CHECKING:
    from concurrent.futures import Future

_LOST = {
    "ActorDiedError": "its process is lost",
    "ActorUnavailableError": "its process or its node is lost",
    "ObjectLostError": "its node is lost",
}
"""Errors of Ray that need no more words."""
_OF_NODE = {"ActorUnavailableError", "ObjectLostError"}
_ASK_S, _ANSWER_S, _SILENT_S = 0.5, 1.0, 7.0
"""How often a node is asked for a connection, how long it has for it, and how long it may be out of
reach before it is lost."""
_AUTHENTICATION = "RAY_AUTH_MODE"
_NODE_LABEL = "ray.io/node-id"
"""The label that Ray gives every node."""


class RayWorker:
    """The actor: a worker whose messages are calls."""

    def __init__(self) -> None:
        import ray

        self._node: str = ray.get_runtime_context().get_node_id()
        self._worker = EnvironmentWorker(host=platform.node())

    def where(self) -> str:
        """The id of its node."""
        return self._node

    def answer(self, head: bytes, *bodies: NDArray) -> tuple[bytes, ...]:
        """The answer to a message, as JSON and bodies."""
        reply, data = self._worker.answer(
            wire.decode(head), [np.asarray(body).tobytes() for body in bodies]
        )
        return (wire.encode(reply), *data)

    def close(self) -> None:
        self._worker.close()


class NodeWatch:
    """Notices that a node is lost: twice a second it is asked for a connection, by a thread.

    Ray reports a process that dies at once. A node that dies, or is cut off, it reports after
    several checks of its health: 15 s and more, in which a session would wait and Ray would place
    new workers there. But the port of a node refuses connections once its raylet has died, and
    gives none while it is cut off. A node that was never reached is left to Ray, and so is one that
    hangs, whose port still answers.
    """

    def __init__(self) -> None:
        self.changed_at = 0.0
        """When a node was lost, or found again, by `time.monotonic`."""
        self._known: set[str] = set()
        self._lost: set[str] = set()
        self._gone: set[str] = set()
        """Those of which Ray says so: they do not come back."""
        self._lock = threading.Lock()
        self._closed = threading.Event()

    def is_lost(self, node: str) -> bool:
        """Whether a node is lost, which is watched from now on."""
        if node not in self._known:
            self._known.add(node)
            if address := _address_of(node):
                given = node, address
                threading.Thread(target=self._follow, args=given, name="node", daemon=True).start()
        return node in self._lost

    def lost(self) -> set[str]:
        return self._lost

    def lose(self, node: str) -> None:
        """Note that a node is lost, as Ray says."""
        self._gone.add(node)
        self._note(node, lost=True)

    def close(self) -> None:
        self._closed.set()

    def _follow(self, node: str, address: tuple[str, int]) -> None:
        known, heard, wait_s = False, time.monotonic(), 0.0
        while node not in self._gone and not self._closed.wait(wait_s):
            wait_s = _ASK_S
            try:
                socket.create_connection(address, timeout=_ANSWER_S).close()
            except OSError as error:
                refused = isinstance(error, ConnectionRefusedError)
                over = refused or time.monotonic() - heard > _SILENT_S
                if known and over:
                    self._note(node, lost=True)
                if refused or (over and not known):  # another process may have its port later
                    return
            else:
                known, heard = True, time.monotonic()
                self._note(node, lost=False)  # it may have been cut off for a while

    def _note(self, node: str, *, lost: bool) -> None:
        with self._lock:
            if lost != (node in self._lost) and (lost or node not in self._gone):
                self._lost = self._lost ^ {node}
                self.changed_at = time.monotonic()


def _address_of(node: str) -> tuple[str, int] | None:
    """Where the raylet of a node listens; None: Ray no longer knows it."""
    import ray

    found = next((one for one in ray.nodes() if one["NodeID"] == node), None)
    return None if found is None else (found["NodeManagerAddress"], found["NodeManagerPort"])


class RayLink:
    """A worker as a Ray actor.

    Until its process is there, an actor may wait on a node that is lost: Ray placed it before it,
    or we, knew. So one that has not said where it is is placed anew whenever a node is lost, or
    found again.
    """

    def __init__(
        self, place: Callable[[], Any], wake: threading.Event, watch: NodeWatch | None
    ) -> None:
        """`place` starts an actor, on a node that is not lost."""
        self._place = place
        self._wake = wake
        self._watch = watch
        self._answers: deque[Future[tuple[bytes, ...]]] = deque()
        self._first: tuple[wire.Message, Sequence[Any]] | None = None
        """What it is told at its start."""
        self._end: Any = None
        self._start()

    def _start(self) -> None:
        self._placed_at = time.monotonic()
        self._actor = self._place()
        self._located: Future[str] = self._actor.where.remote().future()

    def send(self, message: wire.Message, bodies: Sequence[Any]) -> None:
        if self._first is None:
            self._first = message, bodies
        answer = self._actor.answer.remote(wire.encode(message), *bodies).future()
        answer.add_done_callback(lambda _: self._wake.set())
        self._answers.append(answer)

    def poll(self) -> tuple[wire.Message, list[bytes]] | None:
        from ray.exceptions import RayError

        if not self._answers:
            return None
        node, watch = self._node(), self._watch
        if not self._answers[0].done():
            if watch and node and watch.is_lost(node):
                raise WorkerDied("its node is lost", of_node=True)
            if watch and not self._located.done() and watch.changed_at > self._placed_at:
                self._place_anew()
            return None
        try:
            head, *bodies = self._answers.popleft().result()
        except RayError as error:
            if watch and node and _names_node(error):
                watch.lose(node)
            of_node = watch is not None and _is_of_node(error)
            raise WorkerDied(_why(error), of_node=of_node) from error
        return wire.decode(head), bodies

    def _node(self) -> str:
        """Where it is; empty until its process is there."""
        there = self._located.done() and self._located.exception() is None
        return self._located.result() if there else ""

    def _place_anew(self) -> None:
        import ray

        assert self._first is not None and len(self._answers) == 1, "it has been told one thing"
        ray.kill(self._actor)
        self._answers.clear()
        self._start()
        self.send(*self._first)

    def end(self) -> None:
        self._end = self._actor.close.remote()

    def close(self, *, deadline: float) -> None:
        import ray

        if self._end is not None:
            # An environment may have processes of its own, which a killed actor would leave.
            ray.wait([self._end], timeout=max(deadline - time.monotonic(), 0.0))
        ray.kill(self._actor)


class RayTransport:
    """Workers on a Ray cluster; `errors` gets what they print, on whichever node."""

    def __init__(self, mode: str, workers: int, *, errors: Path | None = None) -> None:
        check_mode(mode)
        with needs("--ray needs Ray", extra="scale"):
            import ray
        if mode == LOCAL and ray.is_initialized():
            raise ConfigError(
                "--ray local: this process is connected to a Ray cluster already; say auto to use "
                "it, or call ray.shutdown() before"
            )
        self.logs = "logs/workers.err in the run folder" if errors else "what they printed above"
        self._mode = mode
        self._stack = contextlib.ExitStack()
        self._watch: NodeWatch | None = None
        self._code: dict[str, str] = {}
        with contextlib.ExitStack() as stack:
            stack.enter_context(_printed_to(errors))
            if not ray.is_initialized():
                stack.enter_context(_authentication_kept())
                stack.callback(ray.shutdown)
                with _signals_kept():
                    self._connect(workers, stack)
            if mode == AUTO:
                self._watch = NodeWatch()
                stack.callback(self._watch.close)
            self._stack = stack.pop_all()
        env = {**ONE_THREAD}
        if mode == LOCAL:
            env["PYTHONPATH"] = os.pathsep.join(part for part in sys.path if part)
        self._workers = ray.remote(RayWorker)
        self._options = {"num_cpus": 1, "max_restarts": 0, "runtime_env": {"env_vars": env}}

    def link(self, name: str, wake: threading.Event) -> RayLink:
        return RayLink(self._place, wake, self._watch)

    def _place(self) -> Any:
        """Start an actor on a node that is not lost: Ray may still take a lost one for one with
        free CPUs."""
        from ray.util.scheduling_strategies import NodeLabelSchedulingStrategy, NotIn

        options: dict[str, Any] = {**self._options}
        if self._watch and (lost := self._watch.lost()):
            elsewhere = {_NODE_LABEL: NotIn(*lost)}
            options["scheduling_strategy"] = NodeLabelSchedulingStrategy(hard=elsewhere)
        return self._workers.options(**options).remote()

    def share(self, data: bytes) -> Any:
        import ray

        return ray.put(np.frombuffer(data, np.uint8))  # as an array: read where it lies

    def local_path(self, source: str) -> str:
        path = Path(source)
        if self._mode == LOCAL or path.suffix != ".py":
            return source
        resolved = path.resolve()
        if str(resolved) in self._code:
            return self._code[str(resolved)]
        here = Path.cwd().resolve()  # what the job's working directory is a copy of
        return str(resolved.relative_to(here)) if resolved.is_relative_to(here) else source

    def shortage(self) -> str:
        import ray

        total = ray.cluster_resources().get("CPU", 0.0)
        free = ray.available_resources().get("CPU", 0.0)
        return f" (each needs a CPU; of the {total:g} of the cluster {free:g} are free)"

    def close(self) -> None:
        self._stack.close()

    def _connect(self, workers: int, stack: contextlib.ExitStack) -> None:
        import ray

        # Ray would send statistics about its use elsewhere.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        common = {"logging_level": "ERROR", "log_to_driver": True}
        if self._mode == LOCAL:
            with warnings.catch_warnings():
                # Ray's processes are forked and replaced at once: no thread of JAX is waited for.
                warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
                ray.init(address="local", num_cpus=workers, include_dashboard=False, **common)
            return
        runtime_env: dict[str, Any] = {}
        if job_working_dir() is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="understudy-")))
            self._code = copy_user_code(folder)
            if any(folder.iterdir()):
                runtime_env["working_dir"] = str(folder)
        try:
            ray.init(address="auto", runtime_env=runtime_env, **common)
        except (ConnectionError, ray.exceptions.AuthenticationError) as error:
            address = os.environ.get(ADDRESS)
            where = f"at {ADDRESS}={address}" if address else "on this machine"
            raise ConfigError(
                f"--ray auto: no Ray cluster could be reached {where} ({_last_line(error)}); "
                f"start one with `ray start --head`, set {ADDRESS}=HOST:6379 or submit a job to "
                "one; a cluster that asks for a token needs RAY_AUTH_MODE=token here, too"
            ) from error


def _why(error: Exception) -> str:
    """What ended an actor, in a few words."""
    if _names_node(error):
        return "its node is lost"
    kind = type(error).__name__
    if kind in _LOST:
        return _LOST[kind]
    return f"{kind}: {_last_line(error)}"


def _is_of_node(error: BaseException) -> bool:
    """Whether the whole node may be lost; `ActorDiedError` alone is of a process that ended."""
    return type(error).__name__ in _OF_NODE or _names_node(error)


def _names_node(error: BaseException) -> bool:
    return any(words in str(error) for words in ("node has died", "node was terminated"))


def _last_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[-1][:200]


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    """Keeps the session's handlers: `ray.init` replaces that of SIGTERM by one that exits."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _authentication_kept() -> Iterator[None]:
    """Restores how this process authenticates. A local Ray turns tokens on and leaves them on; the
    process then refuses what a cluster without tokens asks of it, and every actor there ends."""
    raylet: Any = importlib.import_module("ray._raylet")  # its stub lacks what is needed here
    before = os.environ.get(_AUTHENTICATION)
    try:
        yield
    finally:
        os.environ.pop(_AUTHENTICATION, None)
        if before is not None:
            os.environ[_AUTHENTICATION] = before
        # Both keep what they have read; there is no public way to say so.
        raylet.Config.initialize("")
        raylet.AuthenticationTokenLoader.instance().reset_cache()


@contextlib.contextmanager
def _printed_to(errors: Path | None) -> Iterator[None]:
    """Sends what actors and Ray print to a file, or to standard error: Ray would write it on
    standard output, which belongs to the command. There is no public way to say so."""
    from ray._private import worker

    original = worker.print_to_stdstream

    def note(data: dict[str, Any], ignore_prefix: bool = False) -> None:
        if data.get("pid") == "autoscaler":  # how many nodes there are, every few seconds
            return
        lines = "".join(f"{line}\n" for line in data.get("lines", ()))
        if errors is None:
            sys.stderr.write(lines)
            return
        with errors.open("a", encoding="utf-8") as file:
            file.write(lines)

    worker.print_to_stdstream = note
    try:
        yield
    finally:
        worker.print_to_stdstream = original
