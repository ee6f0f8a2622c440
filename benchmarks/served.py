"""A server in a process of its own for as long as a measurement lasts, and what it used."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

_PATIENCE_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Served:
    """A server that is up."""

    port: int
    process: psutil.Process

    @property
    def url(self) -> str:
        """Of its WebSocket."""
        return f"ws://127.0.0.1:{self.port}/ws"

    def cpu_s(self) -> float:
        """CPU seconds of the server itself, without a learner beside it."""
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def memory_mb(self) -> float:
        """What it holds."""
        return float(self.process.memory_info().rss / 2**20)

    def get(self, path: str) -> tuple[int, bytes]:
        """The status and the body of a page."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def metrics(self) -> dict[str, float]:
        """`/metrics`, each sample under its name with labels."""
        _, body = self.get("/metrics")
        pairs = (
            line.rpartition(" ")
            for line in body.decode().splitlines()
            if line and not line.startswith("#")
        )
        return {name: float(value) for name, _, value in pairs}


def free_port() -> int:
    """A port of loopback that nobody uses now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def understudy(run: Path, *arguments: str, settings: Sequence[str] = ()) -> Iterator[Served]:
    """`understudy serve ARGUMENTS --run RUN` on a free port; what it says is in RUN.log."""
    flags = [flag for one in settings for flag in ("--set", one)]
    command = ["-m", "understudy", "serve", *arguments, "--run", str(run), *flags]
    with _serving(command, log=run.with_suffix(".log"), ready="/readyz") as served:
        yield served


@contextmanager
def echo(log: Path) -> Iterator[Served]:
    """The bare Starlette peer."""
    script = str(Path(__file__).with_name("serve_echo.py"))
    with _serving([script], log=log, ready="/") as served:
        yield served


@contextmanager
def _serving(command: Sequence[str], *, log: Path, ready: str) -> Iterator[Served]:
    port = free_port()
    line = [sys.executable, *command, "--port", str(port)]
    places = (str(Path(__file__).parent), os.environ.get("PYTHONPATH", ""))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))}  # for gates from here
    with (
        log.open("wb") as said,
        subprocess.Popen(line, stdout=said, stderr=said, env=env) as child,
    ):
        served = Served(port=port, process=psutil.Process(child.pid))
        try:
            _await(served, child, ready, log)
            yield served
        finally:
            if os.name == "nt":
                child.terminate()
            else:
                child.send_signal(signal.SIGINT)
            try:
                child.wait(timeout=_PATIENCE_S)
            except subprocess.TimeoutExpired:
                child.kill()


def _await(served: Served, child: subprocess.Popen[bytes], path: str, log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        if child.poll() is not None:
            break
        try:
            if served.get(path)[0] in (200, 404):
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise SystemExit(f"the server did not come up:\n{log.read_text(encoding='utf-8')[-2000:]}")


def report(
    result: Mapping[str, object], lines: Sequence[str], missed: Sequence[str], *, as_json: bool
) -> None:
    """Print the table, or all numbers as one object; exit 1 where a goal was missed."""
    if as_json:
        print(json.dumps({**result, "missed": list(missed)}))
    else:
        print("\n".join([str(result["machine"]), *lines]))
    exit_where_missed(missed)


def exit_where_missed(missed: Sequence[str]) -> None:
    """Exit 1 where a goal was missed."""
    if missed:
        sys.exit(f"goals missed: {'; '.join(missed)}")
