"""How much a server holds: decisions a second over 100 WebSockets, beside a bare Starlette echo.

    python benchmarks/serve_load.py [--rate 5000] [--seconds 10] [--promotion auto] [--json]

The load is open-loop (`open_loop.py`): sends have their times beforehand and latency counts from
those. The server runs as a person starts it, with a policy, a gate and the ledger, but no learner:
for a declared game with 28 features, an MLP and a gate of its own (0.5 KB a message, which the echo
gets as well), and for territory with its pointer network and cost gate in the messages of its
client (2 KB each, 256 chunks to be counted), at half the rate and without a goal. The observations
are those of played matches. Server and generator share the machine; servers take turns in one run.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import machine
import msgspec
import numpy as np
import open_loop
import served
import territory_messages

CONNECTIONS = 100
GOAL_P99_MS = 20.0
GATE = "load_gate:Density"
WARM_UP_S = 2.0


def loaded(
    serving: AbstractContextManager[served.Served],
    messages: Sequence[bytes],
    *,
    rate: float,
    order: np.ndarray,
    hello: bytes,
) -> dict[str, float]:
    """One load on a fresh server; the first seconds warm it up and count nowhere."""
    warm = int(rate * WARM_UP_S)
    with serving as server:
        cpu = server.cpu_s()
        outcome = open_loop.drive(server.url, messages, rate=rate, order=order, hello=hello)
        cpu = (server.cpu_s() - cpu) / len(messages)
        memory = server.memory_mb()
    latency = outcome.latency_ms[warm:]
    p50, p99, p999 = np.percentile(latency, (50, 99, 99.9), method="higher")
    return {
        "decisions": len(latency),
        "held": float(outcome.held),
        "p50_ms": float(p50),
        "p99_ms": float(p99),
        "p999_ms": float(p999),
        "max_ms": float(latency.max()),
        "server_us": 1e6 * cpu,
        "server_mb": memory,
        "generator_cores": outcome.generator_cores,
        **_answers(outcome.answers),
    }


def _answers(answers: Sequence[bytes | None]) -> dict[str, float]:
    """What was said, counted: an error or a degraded answer is no decision."""
    said = [msgspec.json.decode(answer) for answer in answers if answer is not None]
    return {
        "errors": sum(one["type"] == "error" for one in said),
        "degraded": sum(bool(one.get("degraded")) for one in said),
    }


def measure(rate: float, seconds: float, rounds: int, promotion: str) -> dict[str, object]:
    """Every server in turn, several times, so that a slow minute of the machine hits them all."""
    count = int(rate * (WARM_UP_S + seconds))
    order = open_loop.spread(count, CONNECTIONS)
    fewer = open_loop.spread(count // 2, CONNECTIONS)
    generic, queen = territory_messages.generic(order), territory_messages.queen(fewer)
    taken: dict[str, list[dict[str, float]]] = {"queen": [], "generic": [], "echo": []}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        schema = root / "load.toml"
        schema.write_text(territory_messages.SCHEMA, encoding="utf-8")
        loads = (
            ("queen", ("territory",), queen, fewer, rate / 2),
            ("generic", ("--schema", str(schema), "--gate", GATE), generic, order, rate),
        )
        for turn in range(rounds):
            for name, game, messages, who, pace in loads:
                options = (*game, "--learner", "off", "--promotion", promotion)
                server = served.understudy(root / f"{name}-{turn}", *options)
                taken[name].append(
                    loaded(server, messages, rate=pace, order=who, hello=territory_messages.HELLO)
                )
            echo = served.echo(root / "echo.log")
            taken["echo"].append(loaded(echo, generic, rate=rate, order=order, hello=b""))
    return {
        "machine": machine.describe("numpy", "starlette", "uvicorn", "websockets"),
        "rate": rate,
        "servers": {
            name: {key: float(np.median([one[key] for one in all_])) for key in all_[0]}
            for name, all_ in taken.items()
        },
        "rounds": taken,
    }


def missed(servers: dict[str, dict[str, float]]) -> list[str]:
    """The goals that were not met."""
    lost, one = [], servers["generic"]
    if not one["held"] or one["errors"] or one["degraded"]:
        lost.append("the load was not held")
    if not one["p99_ms"] < GOAL_P99_MS:
        lost.append(f"p99 {one['p99_ms']:.1f} ms, goal under {GOAL_P99_MS:.0f}")
    return lost


def words(rate: float, servers: dict[str, dict[str, float]]) -> list[str]:
    """One table."""
    lines = [
        f"{rate:,.0f} messages a second over {CONNECTIONS} WebSockets, medians",
        f"{'':26}{'held':>6}{'p50':>9}{'p99':>9}{'p99.9':>9}{'max':>9}"
        f"{'CPU each':>11}{'errors':>8}{'degraded':>10}",
    ]
    names = {
        "generic": "serve --schema",
        "queen": "serve territory, half rate",
        "echo": "bare Starlette echo",
    }
    for name, title in names.items():
        one = servers[name]
        lines.append(
            f"{title:26}{'yes' if one['held'] else 'NO':>6}"
            f"{one['p50_ms']:>6.1f} ms{one['p99_ms']:>6.1f} ms{one['p999_ms']:>6.1f} ms"
            f"{one['max_ms']:>6.1f} ms{one['server_us']:>8.0f} us"
            f"{one['errors']:>8.0f}{one['degraded']:>10.0f}"
        )
    cores = max(one["generator_cores"] for one in servers.values())
    lines.append(f"generator: {cores:.2f} of a core; goal: held, p99 under {GOAL_P99_MS:.0f} ms")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=5000.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--promotion", choices=("latest", "auto"), default="latest")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    result = measure(arguments.rate, arguments.seconds, arguments.rounds, arguments.promotion)
    servers = result["servers"]
    assert isinstance(servers, dict)
    served.report(result, words(arguments.rate, servers), missed(servers), as_json=arguments.json)


if __name__ == "__main__":
    main()
