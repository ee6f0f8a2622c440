"""The same over plain HTTP, and the pages that people and machines look at."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from session.sessions import FakeClock

from understudy.core.pause import switch_pause
from understudy.server.status_poller import StatusPoller
from understudy.telemetry import events
from understudy.telemetry.journal import Journal
from understudy.telemetry.status import Patience

from .standing import Standing, ask, standing

TOKEN = "correct-horse-battery"
JSON = {"Content_Type": "application/json"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    folder = tmp_path_factory.mktemp("http")
    with standing(folder, allow_origins=["https://game.example"]) as one:
        yield one


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    with standing(tmp_path_factory.mktemp("locked"), token=TOKEN) as one:
        yield one


def test_one_message_in_one_out(server: Standing) -> None:
    status, said, headers = server.post({"type": "ping"})
    assert (status, said["heard"]) == (200, '{"type": "ping"}')
    assert headers["understudy-client"] == said["client"]


def test_the_next_request_can_be_of_the_same_client(server: Standing) -> None:
    _, said, headers = server.post({"type": "ping"}, Understudy_Client="curl")
    key = headers["understudy-resume"]
    assert said["client"] == "curl"
    status, said, _ = server.post({"type": "x"}, Understudy_Client="curl")
    assert (status, said["code"]) == (409, "name_taken")
    status, said, _ = server.post({"type": "x"}, Understudy_Client="curl", Understudy_Resume=key)
    assert (status, said["client"]) == (200, "curl")
    with server.connect() as one:  # and over a WebSocket, too
        hello = {"type": "hello", "protocol": 1, "client": "curl", "resume": key}
        assert ask(one, hello)["client"] == "curl"


def test_a_request_without_a_name_is_known_by_its_address(server: Standing) -> None:
    for _ in range(2):
        server.post({"type": "ping"})
    one, other = (batch[-1] for batch in server.session.batches[-2:])
    assert one.client != other.client
    assert one.address == other.address == "127.0.0.1"


def test_a_request_is_no_connection(tmp_path: Path) -> None:
    # Else each would keep all territories of its client from being forgotten.
    with standing(tmp_path) as server:
        key = server.post({"type": "x"}, Understudy_Client="curl")[2]["understudy-resume"]
        server.post({"type": "x"}, Understudy_Client="curl", Understudy_Resume=key)
        assert len(server.session.batches) == 2
        assert not server.session.there and not server.session.gone


def test_what_is_no_text_reaches_the_session_which_refuses_it(server: Standing) -> None:
    data = b'{"type":"\xff"}'
    status, said, _ = server.request("POST", "/decide", data, **JSON)
    assert (status, said["heard"]) == (200, data.decode(errors="replace"))


def test_hellos_count_towards_the_rate(server: Standing) -> None:
    hello = {"type": "hello", "protocol": 1, "client": "hasty", "id": 3}
    status, said, headers = server.post(hello)
    assert (status, said["code"], said["id"]) == (429, "rate", 3)
    resume = headers["understudy-resume"]  # the name is its own, though it was refused
    status, said, _ = server.post({**hello, "resume": resume})
    assert (status, said["code"]) == (429, "rate")


def test_hello_is_welcome(server: Standing) -> None:
    _, said, headers = server.post({"type": "hello", "protocol": 1, "client": "poster"})
    assert (said["type"], said["client"]) == ("welcome", "poster")
    assert said["resume"] == headers["understudy-resume"]
    status, said, _ = server.post({"type": "hello"})
    assert (status, said["code"], said["field"]) == (400, "bad_message", "protocol")


def test_another_protocol_is_refused_as_over_a_websocket(server: Standing) -> None:
    hello = {"type": "hello", "protocol": 2, "client": "tomorrow", "id": 7}
    status, said, headers = server.post(hello)
    assert (status, said["code"], said["field"]) == (400, "bad_protocol", "protocol")
    assert "understudy-resume" not in headers, "nobody came in under that name"
    with server.connect() as one:
        assert ask(one, hello) == said


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("Application/JSON", 200),
        ("text/plain", 415),  # what any page can post to anybody
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data", 415),
        ("", 415),
    ],
)
def test_only_json_is_taken(server: Standing, kind: str, status: int) -> None:
    before = len(server.session.batches)
    answered, said, _ = server.post({"type": "x"}, Content_Type=kind)
    assert answered == status
    if status != 200:
        assert said["code"] == "not_json"
        assert len(server.session.batches) == before


def test_a_request_with_two_lengths_is_refused_and_nothing_after_it_is_read(
    server: Standing,
) -> None:
    body = b'{"type":"ping"}'
    hidden = b"POST /decide HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    hidden += b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    before = len(server.session.batches)
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as one:
        one.sendall(
            b"POST /decide HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n"
            % len(hidden)
            + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
            + hidden
        )
        said = b""
        while piece := one.recv(4096):
            said += piece
    assert said.startswith(b"HTTP/1.1 400 ") and said.count(b"HTTP/1.1") == 1
    assert b'"code":"bad_message"' in said
    assert len(server.session.batches) == before


def test_refusals_have_a_status_and_the_shape_of_all_errors(server: Standing) -> None:
    long = json.dumps({"type": "x" * 70_000}).encode()
    for (answered, said, _), status, code in (
        (server.request("POST", "/decide", long, **JSON), 413, "too_large"),
        (server.request("POST", "/decide", b"{}", Host="evil.example", **JSON), 421, "bad_host"),
        (server.post({}, Origin="https://evil.example"), 403, "bad_origin"),
        (server.request("GET", "/status", Origin="https://evil.example"), 403, "bad_origin"),
        (server.post({}, Understudy_Client="no spaces"), 400, "bad_message"),
        (server.request("GET", "/nowhere"), 404, "not_found"),
        (server.request("GET", "/../../etc/passwd"), 404, "not_found"),
        (server.request("GET", "/decide"), 405, "bad_method"),
        (server.post("poison"), 500, "internal"),
    ):
        assert said.keys() == {"type", "code", "message", "field", "id"}
        assert (answered, said["type"], said["code"]) == (status, "error", code)
        assert not re.search(r"[/\\](home|tmp|work|usr)", json.dumps(said))


def test_a_listed_page_may_post(server: Standing) -> None:
    assert server.post({"type": "x"}, Origin="https://game.example")[0] == 200


def test_with_a_token_nothing_is_told_without_it(locked: Standing) -> None:
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    for method, path, body in (
        ("POST", "/decide", b"{}"),
        ("GET", "/status", None),
        ("GET", "/metrics", None),
    ):
        for wrong in ({}, {"Authorization": "Bearer wrong-wrong-wrong"}):
            status, said, headers = locked.request(method, path, body, **wrong, **JSON)
            assert (status, said["code"]) == (401, "unauthorised")
            assert headers["www-authenticate"] == "Bearer"
        assert locked.request(method, path, body, **bearer, **JSON)[0] == 200
    assert locked.request("GET", f"/status?token={TOKEN}")[0] == 401
    assert locked.request("GET", "/healthz")[0] == 200


def test_pages(server: Standing) -> None:
    assert server.request("GET", "/healthz")[:2] == (200, {"status": "ok"})
    ready = {"ready": True, "version": 3, "learner": "not started"}
    ready |= {"learning": "off", "waiting_episodes": 0}
    assert server.request("GET", "/readyz")[:2] == (200, ready)
    _, status, _ = server.request("GET", "/status")
    assert status["ledger"]["settled"] == 4 and status["answer_ms"].keys() == {"p50", "p99"}
    _, schema, _ = server.request("GET", "/schema")
    assert {"Observation", "Reward", "Decision", "Error"} <= schema["$defs"].keys()


def test_a_server_says_when_experience_waits_and_no_version_comes(tmp_path: Path) -> None:
    """It still decides, so it is ready for clients; but it is never silent about the learner."""
    clock = FakeClock(1_700_000_000.0)
    (tmp_path / "journal").mkdir()
    (tmp_path / "buffer").mkdir()
    journal = Journal(tmp_path / "journal", "server", clock)
    journal.write(events.BotStarted(pid=1, mode="serve", learner="process", version=0))
    (tmp_path / "buffer" / f"{int(clock.time() * 1e9):020d}-{'a' * 16}.npz").write_bytes(b"")
    poller = StatusPoller(tmp_path, clock, Patience(60.0, 8))
    back = events.RolledBack(reason="not finite", version=0, to=0)

    def look(server: Standing) -> tuple[int, dict[str, Any], dict[str, str]]:
        poller.look(at_once=True)
        status, ready, _ = server.request("GET", "/readyz")
        page = server.request("GET", "/metrics")[1].decode()
        figures = dict(line.rsplit(" ", 1) for line in page.splitlines() if line[0] != "#")
        told = server.request("GET", "/status")[1]
        assert told["learning"] == ready["learning"]
        return status, ready, figures

    with standing(tmp_path, run=lambda: poller.now) as server:
        clock.now += 50.0
        status, ready, figures = look(server)
        assert (status, ready["learning"], "problem" in ready) == (200, "on", False)
        clock.now += 25.0
        journal.write(back)
        status, ready, figures = look(server)
        journal.write(events.LearnerStarted(pid=2, version=0, pending=1))
        switch_pause(tmp_path, paused=True, clock=clock)
        clock.now += 900.0
        _, paused, then = look(server)
    assert (status, ready["ready"], ready["learning"]) == (200, True, "stalled")
    assert ready["waiting_episodes"] == 1
    assert "experience has waited 1m 15s" in ready["problem"]
    assert "rolled back once" in ready["problem"]
    assert float(figures['understudy_learning{state="stalled"}']) == 1.0
    assert float(figures['understudy_learning{state="on"}']) == 0.0
    assert float(figures["understudy_experience_waiting_seconds"]) == 75.0
    assert float(figures["understudy_rollbacks_total"]) == 1.0
    assert float(figures["understudy_buffer_episodes"]) == 1.0
    assert (paused["ready"], paused["learning"], "problem" in paused) == (True, "paused", False)
    assert paused["paused_since"] == clock.now - 900.0 and "paused_since" not in ready
    assert float(then['understudy_learning{state="paused"}']) == 1.0
    assert float(then['understudy_learner{state="paused"}']) == 1.0
    assert float(then["understudy_experience_waiting_seconds"]) == 0.0


def test_metrics_count_and_name_nobody(tmp_path: Path) -> None:
    with standing(tmp_path) as server, server.connect() as one:
        ask(one, {"type": "hello", "protocol": 1, "client": "secretive"})
        for _ in range(3):
            ask(one, "x")
        server.request("GET", "/metrics", Host="evil.example")
        page = server.request("GET", "/metrics")[1].decode()
    figures = dict(line.rsplit(" ", 1) for line in page.splitlines() if line[0] != "#")
    for name, value in {
        "understudy_decisions_total": 5,
        'understudy_verdicts_total{verdict="send"}': 2,
        'understudy_verdicts_total{verdict="explored"}': 1,
        'understudy_ledger{state="open"}': 1,
        'understudy_errors_total{code="bad_json"}': 2,
        'understudy_errors_total{code="bad_host"}': 1,
        'understudy_learner{state="not started"}': 1,
        'understudy_safe_actions_total{cause="error"}': 2,
        "understudy_evictions_total": 4,
        "understudy_gate_misses_total": 6,
        "understudy_gate_circuit_open": 1,
        "understudy_version": 3,
        "understudy_connections": 1,
        "understudy_answer_seconds_count": 3,
        'understudy_answer_seconds_bucket{le="+Inf"}': 3,
    }.items():
        assert float(figures[name]) == value, name
    labels = set(re.findall(r"(\w+)=", " ".join(figures)))
    assert labels == {"verdict", "state", "code", "le", "cause"}
    assert "secretive" not in page
