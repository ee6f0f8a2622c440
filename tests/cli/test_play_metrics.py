"""`play --metrics`: the figures of a bot that plays, asked over HTTP."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from telemetry.entries import FixedClock, batch, match

from understudy.core.errors import ConfigError
from understudy.server.ring_metrics import MetricsEndpoint
from understudy.telemetry import events
from understudy.telemetry.journal import Journal
from understudy.telemetry.promotion_status import PromotionStatus
from understudy.telemetry.status import Patience

from .calling import understudy

DOCS = Path(__file__).parent.parent.parent / "docs" / "exports.md"
_PATIENCE_S = 60.0


def ask(port: int, path: str = "/metrics", host: str | None = None) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path, headers={} if host is None else {"Host": host})
        answer = connection.getresponse()
        return answer.status, answer.read().decode("utf-8")
    finally:
        connection.close()


def figures(page: str) -> dict[str, float]:
    lines = (line.rsplit(" ", 1) for line in page.splitlines() if line[0] != "#")
    return {name: float(value) for name, value in lines}


@contextlib.contextmanager
def playing(run: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A real process that plays, and the port that it says."""
    arguments = ("play", "swarm", "--difficulty", "easy", "--learner", "off", "--eval", "0")
    process = subprocess.Popen(
        [sys.executable, "-m", "understudy", *arguments, "--minutes", "5", "--run", run,
         "--metrics", "0", "--json"],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=run.parent,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"metrics at http://127\.0\.0\.1:(\d+)/metrics", line)
        assert found, line
        yield process, int(found[1])
    finally:
        process.kill()
        process.communicate()


def test_a_bot_is_scraped_while_it_plays(tmp_path: Path) -> None:
    with playing(tmp_path / "run") as (process, port):
        deadline = time.monotonic() + _PATIENCE_S
        won: dict[str, float] = {}
        while not any(value for name, value in won.items() if "matches_total" in name):
            assert process.poll() is None and time.monotonic() < deadline
            code, page = ask(port)
            assert code == 200
            won = figures(page)
        assert won["understudy_decisions_total"] > 0
        assert won['understudy_decision_seconds{quantile="0.5"}'] > 0
        assert won['understudy_learner{state="not started"}'] == 1.0
        assert ask(port, "/")[0] == 404
        assert ask(port, host="evil.example")[0] == 421


def test_a_port_that_is_taken_is_an_error_before_play_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        called = understudy("play", "swarm", "--run", tmp_path / "run", "--metrics", port)
    assert called.code == 2
    assert f"--metrics {port}: cannot listen on 127.0.0.1:{port}" in called.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--metrics", "70000"), "expected a port from 1 to 65535"),
        (("--metrics", "0", "--lockstep"), "lockstep"),
        (("--metrics", "0", "--url", "ws://127.0.0.1:1/ws"), "--metrics: belongs to the server"),
    ],
)
def test_what_does_not_fit(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    game = "territory" if "--url" in options else "swarm"
    run = () if "--url" in options else ("--run", tmp_path / "run")
    called = understudy("play", game, *run, *options)
    assert called.code == 2 and words in called.err


# --- the endpoint --------------------------------------------------------------------------------


def endpoint_of(root: Path) -> MetricsEndpoint:
    clock = FixedClock()
    (root / "journal").mkdir(parents=True)
    journal = Journal(root / "journal", "bot", clock)
    journal.write(events.BotStarted(pid=1, mode="learn", learner="process", version=0))
    for outcome in ("victory", "victory", "defeat", "tie", "aborted"):
        journal.write(match(outcome, fallback=4, decision_us=(50.0, 900.0)))
    journal.write(events.VersionPublished(version=3, parent=2, matches=5, promoted=True))
    journal.write(batch())
    made = MetricsEndpoint(root, clock, port=0, patience=Patience())
    made.metrics.promotion = PromotionStatus(incumbent=3)
    return made


def read_once(root: Path) -> str:
    made = endpoint_of(root)
    with made:
        deadline = time.monotonic() + _PATIENCE_S
        while not made.metrics.run.matches:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return ask(made.port)[1]


def test_the_figures_are_those_of_the_journal(tmp_path: Path) -> None:
    told = figures(read_once(tmp_path))
    for name, value in {
        'understudy_matches_total{outcome="victory"}': 2,
        'understudy_matches_total{outcome="defeat"}': 1,
        'understudy_matches_total{outcome="tie"}': 1,
        'understudy_matches_total{outcome="aborted"}': 1,
        "understudy_decisions_total": 50,
        "understudy_fallback_decisions_total": 20,
        "understudy_newest_version": 3,
        "understudy_versions_total": 1,
        "understudy_training_steps_total": 1,
        "understudy_entropy": 1.3,
        "understudy_incumbent": 3,
    }.items():
        assert told[name] == pytest.approx(value), name
    assert told['understudy_decision_seconds{quantile="0.99"}'] == pytest.approx(9e-4, rel=0.05)


def test_every_metric_is_documented(tmp_path: Path) -> None:
    page = read_once(tmp_path)
    names = {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")}
    section = DOCS.read_text(encoding="utf-8").partition("## Prometheus")[2]
    documented = set(re.findall(r"`(\w+?)(?:\{\w+\})?`", section))
    assert len(names) > 25
    told = {name.removeprefix("understudy_").removesuffix("_total") for name in names}
    assert told <= documented


def test_leaving_ends_its_threads(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    read_once(tmp_path)
    assert {one for one in threading.enumerate() if one.name.startswith("metrics")} <= before


def test_one_port_has_one_endpoint(tmp_path: Path) -> None:
    first = endpoint_of(tmp_path / "a")
    with first, pytest.raises(ConfigError, match="choose another port, or 0"):
        MetricsEndpoint(tmp_path, FixedClock(), port=first.port, patience=Patience())
