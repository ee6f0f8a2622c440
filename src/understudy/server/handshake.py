"""The greeting: what the first message of a connection says about who it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import msgspec

from understudy.server.auth import Auth
from understudy.server.clients import Clients
from understudy.server.refusal import Refusal
from understudy.session import protocol
from understudy.session.protocol import PROTOCOL, Error, Hello, RequestId

Greeting: TypeAlias = Callable[[str, RequestId | None], bytes]
"""Makes the welcome for a client, with the id of its hello."""

_LONGEST_HELLO = 4096


class Guest(NamedTuple):
    """A client that may come in."""

    client: str
    said_hello: bool
    """False: it began with something else, which still wants its answer"""
    id: RequestId | None = None
    """Of its hello"""


class _Kind(msgspec.Struct):
    type: str = ""


_KIND = msgspec.json.Decoder(_Kind)


def greet(first: bytes, *, door: Auth, clients: Clients, trusted: bool) -> Guest | Refusal:
    """Who sent this first message; without a hello it is nobody in particular.

    `trusted`: the token came before, or none is needed.
    """
    if not is_hello(first):
        if trusted:
            return _guest(clients.enter(None, None), said_hello=False)
        return Refusal("unauthorised", "expected a hello with the token first", "token")
    hello = protocol.decode(first, max_bytes=_LONGEST_HELLO)
    if isinstance(hello, Error):
        return Refusal(hello.code, hello.message, hello.field, hello.id)
    assert isinstance(hello, Hello)
    if hello.token is not None and not door.admits(hello.token):
        return Refusal("unauthorised", "the token is not the right one", "token", hello.id)
    if hello.token is None and not trusted:
        return Refusal("unauthorised", "expected the token in the hello", "token", hello.id)
    if (refusal := other_protocol(hello)) is not None:
        return refusal
    return _guest(clients.enter(hello.client, hello.resume), said_hello=True, request=hello.id)


def other_protocol(hello: Hello) -> Refusal | None:
    """What a client hears that speaks another protocol."""
    if hello.protocol == PROTOCOL:
        return None
    words = f"this server speaks protocol {PROTOCOL}"
    return Refusal("bad_protocol", words, "protocol", hello.id)


def _guest(
    client: str | Refusal, *, said_hello: bool, request: RequestId | None = None
) -> Guest | Refusal:
    if isinstance(client, Refusal):
        return client._replace(id=request)
    return Guest(client, said_hello, request)


def is_hello(data: bytes) -> bool:
    """Whether a message says that it is one, right or wrong."""
    try:
        return _KIND.decode(data).type == "hello"
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False  # the session says what is wrong with it
