"""The handshake: which client a connection is, from its first message."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import msgspec

from understudy.server.clients import Clients
from understudy.session import protocol
from understudy.session.protocol import PROTOCOL, Error, Hello, RequestId
from understudy.web.auth import Auth
from understudy.web.refusal import Refusal

MakeWelcome: TypeAlias = Callable[[str, RequestId | None], bytes]
"""From a client and the id of its hello, the answer to that hello."""

_LONGEST_HELLO = 4096


class AcceptedClient(NamedTuple):
    """The client of a connection."""

    client: str
    said_hello: bool
    """False: its first message was another one, which is still to be answered"""
    id: RequestId | None = None
    """Of its hello"""


class _Kind(msgspec.Struct):
    type: str = ""


_KIND = msgspec.json.Decoder(_Kind)


def accept(
    first: bytes, *, auth: Auth, clients: Clients, trusted: bool
) -> AcceptedClient | Refusal:
    """The client that sent this first message; without a hello, an anonymous one.

    `trusted`: the token came with the headers, or none is needed.
    """
    if not is_hello(first):
        if trusted:
            return _accepted(clients.enter(None, None), said_hello=False)
        return Refusal("unauthorised", "expected a hello with the token first", "token")
    hello = protocol.decode(first, max_bytes=_LONGEST_HELLO)
    if isinstance(hello, Error):
        return Refusal(hello.code, hello.message, hello.field, hello.id)
    assert isinstance(hello, Hello)
    if hello.token is not None and not auth.admits(hello.token):
        return Refusal("unauthorised", "the token is not the right one", "token", hello.id)
    if hello.token is None and not trusted:
        return Refusal("unauthorised", "expected the token in the hello", "token", hello.id)
    if (refusal := other_protocol(hello)) is not None:
        return refusal
    return _accepted(clients.enter(hello.client, hello.resume), said_hello=True, request=hello.id)


def other_protocol(hello: Hello) -> Refusal | None:
    """The refusal of a client that speaks another protocol."""
    if hello.protocol == PROTOCOL:
        return None
    words = f"this server speaks protocol {PROTOCOL}"
    return Refusal("bad_protocol", words, "protocol", hello.id)


def _accepted(
    client: str | Refusal, *, said_hello: bool, request: RequestId | None = None
) -> AcceptedClient | Refusal:
    if isinstance(client, Refusal):
        return client._replace(id=request)
    return AcceptedClient(client, said_hello, request)


def is_hello(data: bytes) -> bool:
    """Whether a message has the type `hello`, valid or not."""
    try:
        return _KIND.decode(data).type == "hello"
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False  # the session says what is wrong with it
