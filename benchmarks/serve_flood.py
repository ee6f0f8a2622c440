"""What a healthy client waits while other sockets flood the server.

    python benchmarks/serve_flood.py [--sockets 60] [--seconds 10] [--json]

Every flooding socket writes as fast as its transport takes it and reads its answers: observations
of a territory of its own (0.5 KB each), or pings (15 bytes, the most messages a second). The
healthy client sends 20 observations a second over one WebSocket, open-loop (`open_loop.py`), from a
process of its own. The server runs as a person starts it, for the declared game of `serve_load.py`,
without a learner; server, flood and client share the machine. A message without an answer within
5 s counts as infinite. "Read" is what the server took from the flooding sockets, a second.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import machine
import msgspec
import numpy as np
import open_loop
import served
import territory_messages

from understudy.games.territory.observation import FEATURES

SOCKETS = 60
RATE = 20.0
GOAL_P99_MS = 100.0
WARM_UP_S = 2.0
FLOODS = ("none", "observations", "pings")
_CHUNK_BYTES = 65_536
_READY = "flooding"


# --- the flood, in a process of its own ---------------------------------------------------------


class Flooding(open_loop.Connection):
    """Writes whenever it may; answers are thrown away."""

    chunk = b""

    def flood(self) -> None:
        self.resume_writing()

    def data_received(self, data: bytes) -> None:
        if not self.ready.done():
            super().data_received(data)

    def pause_writing(self) -> None:
        self._may_write = False

    def resume_writing(self) -> None:
        self._may_write = True
        self._more()

    def _more(self) -> None:
        if self._may_write and not self.transport.is_closing():
            self.transport.write(self.chunk)
            asyncio.get_running_loop().call_soon(self._more)


def chunk_of(kind: str, number: int) -> bytes:
    """Many messages of one flooding socket."""
    message: dict[str, object] = {"type": "ping"}
    if kind == "observations":
        row = np.random.default_rng(number).random(len(FEATURES)).tolist()
        message = {"type": "observation", "territory": f"flood-{number}", "features": row}
    one = open_loop.frame(msgspec.json.encode(message))
    return one * (_CHUNK_BYTES // len(one))


async def flood(url: str, kind: str, sockets: int) -> None:
    """Until this process is ended."""
    parts = urlsplit(url)
    assert parts.hostname and parts.port
    host, port = parts.hostname, parts.port
    loop = asyncio.get_running_loop()
    flooding = []
    for number in range(sockets):
        _, one = await loop.create_connection(
            lambda: Flooding(parts.netloc, parts.path), host, port
        )
        one.chunk = chunk_of(kind, number)
        await one.ready
        flooding.append(one)
    for one in flooding:
        one.flood()
    print(_READY, flush=True)
    await loop.create_future()


@contextlib.contextmanager
def flooded(url: str, kind: str, sockets: int) -> Iterator[None]:
    """So many sockets flood from here to the end of the block."""
    if kind == "none":
        yield
        return
    line = [sys.executable, __file__, "--flood", kind, "--url", url, "--sockets", str(sockets)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None and child.stdout.readline().strip() == _READY
            yield
        finally:
            child.kill()


# --- the healthy client -------------------------------------------------------------------------


def healthy(server: served.Served, kind: str, *, sockets: int, seconds: float) -> dict[str, float]:
    """What one client waits for its answers."""
    count, warm = int(RATE * (WARM_UP_S + seconds)), int(RATE * WARM_UP_S)
    order = np.zeros(count, np.int64)
    messages = territory_messages.generic(order)
    with flooded(server.url, kind, sockets):
        began = time.perf_counter()
        outcome = open_loop.drive(server.url, messages, rate=RATE, order=order)
        took_s = time.perf_counter() - began
        memory = server.memory_mb()
    answers = [msgspec.json.decode(one) for one in outcome.answers[warm:] if one is not None]
    latency = outcome.latency_ms[warm:]
    p50, p99 = np.percentile(latency, (50, 99), method="higher")
    read = sum(
        value
        for name, value in server.metrics().items()
        if name == "understudy_answer_seconds_count"
    )
    return {
        "p50_ms": float(p50),
        "p99_ms": float(p99),
        "max_ms": float(latency.max()),
        "unanswered": float(np.isinf(latency).sum()),
        "errors": float(sum(one["type"] == "error" for one in answers)),
        "degraded": float(sum(bool(one.get("degraded")) for one in answers)),
        "read_per_s": (read - outcome.answered) / took_s,
        "server_mb": memory,
    }


def measure(sockets: int, seconds: float) -> dict[str, object]:
    """A fresh server for every flood."""
    taken: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        schema = root / "load.toml"
        schema.write_text(territory_messages.SCHEMA, encoding="utf-8")
        for kind in FLOODS:
            line = ("--schema", str(schema), "--learner", "off")
            with served.understudy(root / kind, *line) as server:
                taken[kind] = healthy(server, kind, sockets=sockets, seconds=seconds)
    return {
        "machine": machine.describe("numpy", "starlette", "uvicorn", "websockets"),
        "sockets": sockets,
        "floods": taken,
    }


def missed(floods: dict[str, dict[str, float]]) -> list[str]:
    """The goals that were not met."""
    lost = []
    for kind, one in floods.items():
        if one["unanswered"] or one["errors"]:
            lost.append(f"{kind}: {one['unanswered']:.0f} unanswered, {one['errors']:.0f} refused")
        if not one["p99_ms"] <= GOAL_P99_MS:
            lost.append(f"{kind}: p99 {one['p99_ms']:.1f} ms, goal at most {GOAL_P99_MS:.0f}")
    return lost


def words(sockets: int, floods: dict[str, dict[str, float]]) -> list[str]:
    """One table."""
    lines = [
        f"a healthy client's {RATE:.0f} observations a second beside {sockets} flooding sockets",
        f"{'flood':14}{'p50':>10}{'p99':>10}{'max':>10}{'unanswered':>12}{'refused':>9}"
        f"{'degraded':>10}{'flood read':>12}{'memory':>9}",
    ]
    for kind, one in floods.items():
        lines.append(
            f"{kind:14}{one['p50_ms']:>7.1f} ms{one['p99_ms']:>7.1f} ms{one['max_ms']:>7.1f} ms"
            f"{one['unanswered']:>12.0f}{one['errors']:>9.0f}{one['degraded']:>10.0f}"
            f"{one['read_per_s']:>10,.0f}/s{one['server_mb']:>6.0f} MB"
        )
    return [*lines, f"goal: all answered, none refused, p99 at most {GOAL_P99_MS:.0f} ms"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sockets", type=int, default=SOCKETS)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--flood", choices=FLOODS[1:], help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.flood:
        asyncio.run(flood(arguments.url, arguments.flood, arguments.sockets))
        return
    result = measure(arguments.sockets, arguments.seconds)
    floods = result["floods"]
    assert isinstance(floods, dict)
    served.report(result, words(arguments.sockets, floods), missed(floods), as_json=arguments.json)


if __name__ == "__main__":
    main()
