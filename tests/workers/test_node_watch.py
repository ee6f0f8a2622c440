"""When a node of a cluster counts as lost: by connections to a port, without Ray."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator

import pytest

from understudy.workers import ray_actors
from understudy.workers.ray_actors import NodeWatch

NODE = "a0"


@pytest.fixture
def port() -> Iterator[socket.socket]:
    """What listens on a node."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


@pytest.fixture
def watch(port: socket.socket, monkeypatch: pytest.MonkeyPatch) -> Iterator[NodeWatch]:
    """Watches the node, in more haste than a session."""
    address = port.getsockname()
    monkeypatch.setattr(ray_actors, "_address_of", lambda node: address)
    monkeypatch.setattr(ray_actors, "_ASK_S", 0.05)
    monkeypatch.setattr(ray_actors, "_SILENT_S", 1.0)
    watch = NodeWatch()
    yield watch
    watch.close()


def cut(monkeypatch: pytest.MonkeyPatch) -> None:
    def silence(*args: object, **options: object) -> socket.socket:
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", silence)


def within(seconds: float, is_true: Callable[[], bool]) -> bool:
    until = time.monotonic() + seconds
    while not is_true() and time.monotonic() < until:
        time.sleep(0.01)
    return is_true()


def reached(port: socket.socket) -> None:
    port.settimeout(10.0)
    port.accept()[0].close()


def test_a_port_that_refuses_after_it_answered_is_of_a_lost_node(
    port: socket.socket, watch: NodeWatch
) -> None:
    assert not watch.is_lost(NODE) and not watch.lost()
    reached(port)
    reached(port)
    assert not watch.is_lost(NODE)
    port.close()
    began = time.monotonic()
    assert within(10.0, lambda: watch.is_lost(NODE))
    assert watch.lost() == {NODE} and watch.changed_at >= began


def test_a_node_that_is_silent_for_long_is_lost_until_it_answers(
    port: socket.socket, watch: NodeWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch.is_lost(NODE)
    reached(port)
    with monkeypatch.context() as patch:
        cut(patch)
        assert not within(0.1, lambda: watch.is_lost(NODE))
        assert within(10.0, lambda: watch.is_lost(NODE))
    changed = watch.changed_at
    assert within(10.0, lambda: not watch.is_lost(NODE)) and watch.changed_at > changed


def test_a_node_that_was_never_reached_is_left_to_ray(
    watch: NodeWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut(monkeypatch)
    assert not within(1.5, lambda: watch.is_lost(NODE))
    watch.lose(NODE)
    assert watch.is_lost(NODE)


def test_a_first_question_may_be_lost(
    port: socket.socket, watch: NodeWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        cut(patch)
        watch.is_lost(NODE)
        time.sleep(0.1)
    reached(port)
    port.close()
    assert within(10.0, lambda: watch.is_lost(NODE))


def test_a_node_that_ray_gives_up_does_not_come_back(port: socket.socket, watch: NodeWatch) -> None:
    watch.is_lost(NODE)
    reached(port)
    watch.lose(NODE)
    assert not within(0.3, lambda: not watch.is_lost(NODE))
