"""A real server on loopback and real clients: what each may do, and that its neighbours feel none.

The session is a parrot; `tests/run/test_serve.py` has the real one.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from understudy.core.config import LiveConfig
from understudy.server import connection
from understudy.web import ws_protocol

from .standing import Standing, ask, hear, standing, until

TOKEN = "correct-horse-battery"
HELLO = {"type": "hello", "protocol": 1}


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    """Nobody here has seconds to lose."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "HELLO_WITHIN_S", 0.2)
        patch.setattr(ws_protocol, "SLOW_AFTER_S", 0.3)
        patch.setattr(ws_protocol, "LINGER_S", 0.3)
        yield


@pytest.fixture(scope="module")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    folder = tmp_path_factory.mktemp("open")
    with standing(folder, allow_origins=["https://game.example"]) as one:
        yield one


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    with standing(tmp_path_factory.mktemp("locked"), token=TOKEN) as one:
        yield one


@pytest.fixture
def neighbour(open_server: Standing) -> Iterator[ClientConnection]:
    """Somebody else, who is answered before and after."""
    with open_server.connect() as one:
        assert ask(one, "before")["heard"] == "before"
        yield one
        assert ask(one, "after")["heard"] == "after"


def closed(socket_: ClientConnection) -> tuple[int, str]:
    with pytest.raises(ConnectionClosed) as end:
        while True:
            socket_.recv(timeout=5)
    assert end.value.rcvd is not None
    return end.value.rcvd.code, end.value.rcvd.reason


def refusal(server: Standing, **options: object) -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as error, server.connect(**options):
        pass
    response = error.value.response
    return response.status_code, json.loads(response.body)["code"]


# --- who it is ----------------------------------------------------------------------------------


def test_without_a_hello_one_is_nobody_in_particular(open_server: Standing) -> None:
    with open_server.connect() as one, open_server.connect() as other:
        first, second = ask(one, "a")["client"], ask(other, "b")["client"]
    assert first.startswith("anonymous-") and first != second
    until(lambda: {first, second} <= set(open_server.session.gone))


def test_a_client_that_comes_back_with_its_key_is_the_same_one(open_server: Standing) -> None:
    with open_server.connect() as one:
        welcome = ask(one, {**HELLO, "client": "north", "id": 7})
        assert (welcome["type"], welcome["client"], welcome["id"]) == ("welcome", "north", 7)
        assert ask(one, "x")["client"] == "north"
    with open_server.connect() as one:
        assert ask(one, {**HELLO, "client": "north"})["code"] == "name_taken"
        assert closed(one)[0] == 1008
    with open_server.connect() as one:
        again = ask(one, {**HELLO, "client": "north", "resume": welcome["resume"]})
        assert (again["type"], again["client"]) == ("welcome", "north")


def test_a_client_that_connects_again_takes_over(open_server: Standing) -> None:
    with open_server.connect() as old:
        key = ask(old, {**HELLO, "client": "twice"})["resume"]
        with open_server.connect() as new:
            assert ask(new, {**HELLO, "client": "twice", "resume": key})["type"] == "welcome"
            assert closed(old)[0] == connection.TAKEN_OVER
            assert ask(new, "x")["client"] == "twice"
            until(lambda: open_server.session.gone.count("twice") == 1)
    until(lambda: open_server.session.gone.count("twice") == 2)
    assert open_server.session.there.count("twice") == 2  # as often in as out


@pytest.mark.parametrize(
    ("hello", "code", "field"),
    [
        ({"type": "hello"}, "bad_message", "protocol"),
        ({**HELLO, "protocol": 2}, "bad_protocol", "protocol"),
        ({**HELLO, "client": "no spaces"}, "bad_message", "client"),
        ({**HELLO, "client": "x" * 65}, "bad_message", "client"),
        ({**HELLO, "colour": "red"}, "bad_message", "colour"),
        ({**HELLO, "resume": "key"}, "name_taken", "client"),
    ],
)
def test_a_hello_that_is_wrong_is_answered_and_ended(
    open_server: Standing, hello: object, code: str, field: str
) -> None:
    with open_server.connect() as one:
        said = ask(one, hello)
        assert (said["type"], said["code"], said["field"]) == ("error", code, field)
        assert closed(one)[0] == 1008


def test_a_refusal_that_is_too_long_for_a_goodbye_is_cut_short(open_server: Standing) -> None:
    with open_server.connect() as one:
        said = ask(one, {**HELLO, "ö" * 200: 1})
        assert (said["code"], len(said["message"].encode()) > 123) == ("bad_message", True)
        code, reason = closed(one)
    assert code == 1008
    assert 120 < len(reason.encode()) <= 123 and said["message"].startswith(reason)


# --- who may come in ----------------------------------------------------------------------------


def test_the_token_in_the_hello(locked: Standing) -> None:
    with locked.connect() as one:
        assert ask(one, {**HELLO, "token": TOKEN})["type"] == "welcome"
        assert ask(one, "x")["heard"] == "x"


def test_the_token_as_a_subprotocol_as_browsers_can_send_it(locked: Standing) -> None:
    with locked.connect(subprotocols=["understudy.1", f"understudy.token.{TOKEN}"]) as one:
        assert one.subprotocol == "understudy.1"
        assert ask(one, "x")["heard"] == "x"
    assert refusal(locked, subprotocols=["understudy.token.wrong-wrong-wrong"]) == (
        401,
        "unauthorised",
    )


@pytest.mark.parametrize("first", [{**HELLO, "token": "wrong-wrong-wrong"}, HELLO, {"type": "x"}])
def test_without_the_token_nothing_reaches_the_session(locked: Standing, first: object) -> None:
    batches = len(locked.session.batches)
    with locked.connect() as one:
        assert ask(one, first)["code"] == "unauthorised"
        assert closed(one)[0] == 1008
    assert len(locked.session.batches) == batches


def test_a_token_that_does_not_come_in_time(locked: Standing) -> None:
    with locked.connect() as one:
        assert hear(one)["code"] == "unauthorised"
        assert closed(one) == (1008, "expected a hello with the token within 0.2 s")


def test_a_token_in_the_address_is_no_token(locked: Standing) -> None:
    with connect(f"{locked.url}?token={TOKEN}", compression=None) as one:
        assert ask(one, "x")["code"] == "unauthorised"


def test_a_page_that_is_not_listed_is_refused(open_server: Standing) -> None:
    assert refusal(open_server, origin="https://evil.example") == (403, "bad_origin")
    with open_server.connect(origin="https://game.example") as one:
        assert ask(one, "x")["heard"] == "x"


def test_a_name_that_was_rebound_is_refused(open_server: Standing) -> None:
    there = ("127.0.0.1", open_server.port)
    with (
        socket.create_connection(there, timeout=5) as at,
        pytest.raises(InvalidStatus) as error,
        connect("ws://evil.example/ws", sock=at, compression=None),
    ):
        pass
    assert error.value.response.status_code == 421
    assert json.loads(error.value.response.body)["code"] == "bad_host"


def test_no_more_connections_than_allowed(tmp_path: Path) -> None:
    with standing(tmp_path, config=LiveConfig(max_clients=2)) as server:
        with server.connect() as one, server.connect():
            assert ask(one, "x")["heard"] == "x"
            assert refusal(server) == (503, "full")
        until(lambda: not len(server.server.connections))
        with server.connect() as one:
            assert ask(one, "x")["heard"] == "x"


# --- what may go wrong, and neighbours ----------------------------------------------------------


def test_bytes_that_are_no_text_still_reach_the_session(
    open_server: Standing, neighbour: ClientConnection
) -> None:
    with open_server.connect() as one:
        one.send(b"binary", text=False)
        assert hear(one)["heard"] == "binary"


@pytest.mark.parametrize("first", [b'{"type":"\xff"}', b'{"\xff":1}', b"\xff"])
def test_a_first_message_that_is_not_utf8_is_answered(
    open_server: Standing, neighbour: ClientConnection, first: bytes
) -> None:
    with open_server.connect() as one:
        assert ask(one, first)["heard"] == first.decode(errors="replace")
        assert ask(one, "x")["heard"] == "x"


def test_a_message_of_ten_megabytes_is_answered_and_ended(
    open_server: Standing, neighbour: ClientConnection
) -> None:
    with open_server.connect() as one:
        with contextlib.suppress(ConnectionClosed):
            one.send("x" * 10_000_000)
        said = hear(one)
        assert (said["type"], said["code"]) == ("error", "too_large")
        assert "65536" in said["message"]
        assert closed(one)[0] == 1009
    with open_server.connect() as one:  # in pieces, each of which is small enough
        with contextlib.suppress(ConnectionClosed):
            one.send("x" * 1000 for _ in range(10_000))
        assert hear(one)["code"] == "too_large"


def test_what_cannot_be_answered_is_refused_without_a_word_of_our_insides(
    open_server: Standing, neighbour: ClientConnection
) -> None:
    with open_server.connect() as one:
        said = ask(one, "poison")
        assert (said["type"], said["code"]) == ("error", "internal")
        assert "home" not in json.dumps(said) and "Traceback" not in json.dumps(said)
        assert ask(one, "x")["heard"] == "x"


def test_a_slow_reader_is_ended_and_its_neighbours_are_not(
    open_server: Standing, neighbour: ClientConnection
) -> None:
    session, before = open_server.session, open_server.server.connections.slow_readers
    session.size = 50_000
    try:
        with raw(open_server) as slow:
            slow.sendall(frame(b"more") * 2000)  # all at once; and it reads nothing
            until(lambda: open_server.server.connections.slow_readers == before + 1)
            assert ask(neighbour, "x")["heard"] == "x"
    finally:
        session.size = 0
    until(lambda: len(session.there) - len(session.gone) == 1)


def test_a_connection_over_its_rate_is_not_read_until_it_has_room(
    open_server: Standing, neighbour: ClientConnection
) -> None:
    session = open_server.session

    def heard() -> int:
        return sum(one.client == "flooder" for batch in session.batches for one in batch)

    with raw(open_server) as flooder:
        session.over_rate.add("flooder")  # before its hello: then no message of it gets through
        flooder.sendall(frame(json.dumps({**HELLO, "client": "flooder"}).encode()))
        sent = 0
        flooder.settimeout(0.1)
        with pytest.raises(TimeoutError):  # nothing is read, so its own buffers are full
            while True:
                sent += flooder.send(frame(b"more") * 10_000)
        assert ask(neighbour, "x")["heard"] == "x"
        assert heard() == 0
        session.over_rate.clear()
        until(lambda: heard() > 1_000)


def test_control_frames_and_long_messages_are_taken_apart_in_order(open_server: Standing) -> None:
    long = "x" * 60_000
    with open_server.connect(max_size=None) as one:
        pongs = [one.ping() for _ in range(300)]
        for text in ("first", long, "last"):
            one.send(text)
        assert [hear(one)["heard"] for _ in range(3)] == ["first", long, "last"]
        assert all(pong.wait(5) for pong in pongs)


def test_a_burst_is_no_overload(open_server: Standing) -> None:
    with open_server.connect() as one:
        for number in range(300):
            one.send(str(number))
        said = [hear(one) for _ in range(300)]
    assert [one["heard"] for one in said] == [str(number) for number in range(300)]
    assert not any(one["degraded"] for one in said)


def test_a_client_that_vanishes_before_its_answer(
    open_server: Standing, neighbour: ClientConnection
) -> None:
    heard = len(open_server.session.batches)
    with raw(open_server) as gone:
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        gone.sendall(frame(b"last words") * 50)  # and it is reset, not closed
    until(lambda: len(open_server.session.there) - len(open_server.session.gone) == 1)
    assert len(open_server.session.batches) >= heard


@pytest.mark.parametrize(
    "noise",
    [
        b"\x81\x05hello",  # not masked
        b"\xff\xff\xff\xff",  # reserved bits
        b"\x83\x80\x00\x00\x00\x00",  # no such frame
    ],
)
def test_what_is_no_websocket_ends_that_connection_alone(
    open_server: Standing, neighbour: ClientConnection, noise: bytes
) -> None:
    with raw(open_server) as one:
        one.sendall(noise)
        one.settimeout(5)
        said = one.recv(1000)
        assert said[0] == 0x88 and struct.unpack("!H", said[2:4])[0] == 1002


def test_a_socket_that_says_nothing_is_dropped(
    open_server: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("understudy.web.listening.REQUEST_WITHIN_S", 0.2)
    with socket.create_connection(("127.0.0.1", open_server.port), timeout=5) as silent:
        silent.sendall(b"GET /ws HT")
        with contextlib.suppress(ConnectionResetError):
            assert silent.recv(100) == b""


def test_a_second_request_that_never_ends_is_dropped_like_a_first_one(
    open_server: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("understudy.web.listening.REQUEST_WITHIN_S", 0.2)
    asked = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    with socket.create_connection(("127.0.0.1", open_server.port), timeout=5) as slow:
        for _ in range(2):
            slow.sendall(asked + b"\r\n")
            assert b" 200 " in slow.recv(1000)
        slow.sendall(asked)  # which ends uvicorn's own wait
        with contextlib.suppress(ConnectionResetError):
            assert slow.recv(100) == b""


def test_a_connection_that_was_used_for_requests_can_become_a_websocket(
    open_server: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("understudy.web.listening.REQUEST_WITHIN_S", 0.2)
    with socket.create_connection(("127.0.0.1", open_server.port), timeout=5) as one:
        one.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 200 " in one.recv(1000)
        upgrade(one)
        one.settimeout(0.5)
        with pytest.raises(TimeoutError):  # nothing comes, and it is not dropped
            one.recv(100)
        one.settimeout(5)
        one.sendall(frame(b"x"))
        assert b'"heard":"x"' in one.recv(1000)


def test_going_away_answers_what_was_read_and_says_goodbye(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        with standing(tmp_path) as server:
            one = stack.enter_context(server.connect())
            assert ask(one, "first")["heard"] == "first"
            for number in range(20):
                one.send(str(number))
        said = []
        with pytest.raises(ConnectionClosed) as end:
            while True:
                said.append(hear(one)["heard"])
    assert end.value.rcvd is not None
    assert (end.value.rcvd.code, end.value.rcvd.reason) == (1001, "the server is stopping")
    read = [data for batch in server.session.batches for _, data, _ in batch]
    assert len(said) == len(read) - 1  # `first` was heard above


@contextlib.contextmanager
def raw(server: Standing) -> Iterator[socket.socket]:
    """A WebSocket by hand, for what a library would not do."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as one:
        upgrade(one)
        yield one


def upgrade(one: socket.socket) -> None:
    """The handshake."""
    one.sendall(
        b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    said = b""
    while not said.endswith(b"\r\n\r\n"):
        said += one.recv(1)
    assert b" 101 " in said


def frame(text: bytes) -> bytes:
    """A short text message, masked with zeros."""
    return bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text
