"""`play --metrics`: the figures of a bot that plays, asked over HTTP."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from telemetry.entries import FixedClock, batch, match

from understudy.core.errors import ConfigError
from understudy.server import ring_metrics
from understudy.server.ring_metrics import MetricsEndpoint
from understudy.server.status_poller import StatusPoller
from understudy.telemetry import events
from understudy.telemetry.journal import Journal
from understudy.telemetry.promotion_status import PromotionStatus
from understudy.telemetry.status import Patience

from .calling import understudy

DOCS = Path(__file__).parent.parent.parent / "docs" / "exports.md"
_PATIENCE_S = 60.0
RESET = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
"""Of SO_LINGER: closing drops the connection at once."""


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
    assert told["understudy_status_read_timestamp_seconds"] == FixedClock().time()
    assert told['understudy_decision_seconds{quantile="0.99"}'] == pytest.approx(9e-4, rel=0.05)


def test_every_metric_is_documented(tmp_path: Path) -> None:
    page = read_once(tmp_path)
    names = {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")}
    section = DOCS.read_text(encoding="utf-8").partition("## Prometheus")[2]
    documented = set(re.findall(r"`(\w+?)(?:\{\w+\})?`", section))
    assert len(names) > 25
    told = {name.removeprefix("understudy_").removesuffix("_total") for name in names}
    assert told <= documented


@pytest.mark.parametrize("host", ["[", "[::1", "[x]", "", "evil.example:80"])
def test_a_host_that_is_not_this_one(
    tmp_path: Path, host: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with endpoint_of(tmp_path) as made:
        assert ask(made.port, host=host)[0] == 421
        assert ask(made.port, host="localhost:1")[0] == 200
    assert capfd.readouterr().err == ""


def test_a_scraper_that_hangs_up_prints_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = set(threading.enumerate())
    with endpoint_of(tmp_path) as made:
        with socket.create_connection(("127.0.0.1", made.port)) as one:
            one.sendall(b"GET /metr")
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        assert ask(made.port)[0] == 200  # so the one before was accepted
        for thread in set(threading.enumerate()) - before:
            if "metrics" not in thread.name:
                thread.join(_PATIENCE_S)
    assert capfd.readouterr().err == ""


def test_an_answer_that_fails_is_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with endpoint_of(tmp_path) as made:
        made.metrics.text = broken  # type: ignore[method-assign]
        for _ in range(2):
            with pytest.raises(http.client.RemoteDisconnected):
                ask(made.port)
    assert capfd.readouterr().err == "understudy: --metrics: cannot answer: KeyError: 'odd'\n"


def broken() -> bytes:
    raise KeyError("odd")


def test_reading_goes_on_after_an_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    look, looks = StatusPoller.look, itertools.count()

    def fails_at_first(self: StatusPoller, *, at_once: bool = False) -> None:
        if next(looks) < 3:
            broken()
        look(self, at_once=at_once)

    monkeypatch.setattr(ring_metrics, "_EVERY_S", 0.01)
    monkeypatch.setattr(StatusPoller, "look", fails_at_first)
    made = endpoint_of(tmp_path)
    assert "understudy_status_read_timestamp_seconds 0.0" in made.metrics.text().decode()
    with made:
        deadline = time.monotonic() + _PATIENCE_S
        while not made.metrics.run.matches:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    expected = "understudy: --metrics: cannot read the journal: KeyError: 'odd'\n"
    assert capfd.readouterr().err == expected


def test_leaving_ends_its_threads(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    read_once(tmp_path)
    assert {one for one in threading.enumerate() if one.name.startswith("metrics")} <= before


def test_one_port_has_one_endpoint(tmp_path: Path) -> None:
    first = endpoint_of(tmp_path / "a")
    with first, pytest.raises(ConfigError, match="choose another port, or 0"):
        MetricsEndpoint(tmp_path, FixedClock(), port=first.port, patience=Patience())
