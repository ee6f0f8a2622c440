"""Refusals by the server itself, in the same form as the session's errors.

A refusal names what was expected of the client and nothing about this machine: no path, no address,
nothing about other clients.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from understudy.session import protocol

POLICY = 1008
"""The WebSocket close code for a policy violation."""

Code: TypeAlias = (
    protocol.Code
    | Literal[
        "bad_host", "bad_method", "bad_origin", "bad_protocol", "full", "internal", "name_taken",
        "not_found", "not_json", "slow_reader", "too_slow", "unauthorised",
    ]
)  # fmt: skip
"""Error codes of the session, and those of the server."""

_STATUS: dict[str, HTTPStatus] = {
    "bad_host": HTTPStatus.MISDIRECTED_REQUEST,
    "bad_method": HTTPStatus.METHOD_NOT_ALLOWED,
    "bad_origin": HTTPStatus.FORBIDDEN,
    "full": HTTPStatus.SERVICE_UNAVAILABLE,
    "internal": HTTPStatus.INTERNAL_SERVER_ERROR,
    "name_taken": HTTPStatus.CONFLICT,
    "not_found": HTTPStatus.NOT_FOUND,
    "not_json": HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    "not_yours": HTTPStatus.FORBIDDEN,
    "rate": HTTPStatus.TOO_MANY_REQUESTS,
    "too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "too_many_territories": HTTPStatus.TOO_MANY_REQUESTS,
    "too_slow": HTTPStatus.REQUEST_TIMEOUT,
    "unauthorised": HTTPStatus.UNAUTHORIZED,
    "unavailable": HTTPStatus.SERVICE_UNAVAILABLE,
    "unknown_territory": HTTPStatus.NOT_FOUND,
    "wrong_shard": HTTPStatus.MISDIRECTED_REQUEST,
}


class Refusal(NamedTuple):
    """Why a request or a connection is refused."""

    code: Code
    message: str
    field: str | None = None
    id: str | int | None = None

    @property
    def status(self) -> int:
        """The HTTP status."""
        return status_of(self.code)

    def encoded(self) -> bytes:
        """As a message of the protocol."""
        return protocol.encode(_Error(self.code, self.message, self.field, self.id))


class _Error(msgspec.Struct, frozen=True, tag="error"):
    code: str
    message: str
    field: str | None
    id: str | int | None


class _Code(msgspec.Struct):
    type: str
    code: str = ""


_CODE = msgspec.json.Decoder(_Code)
_ERROR = b'{"type":"error"'


def code_of(answer: bytes) -> str | None:
    """The code of an answer that is an error; None for every other answer."""
    return _CODE.decode(answer).code if answer.startswith(_ERROR) else None


def status_of(code: str | None) -> int:
    """The HTTP status of an answer with this error code; None: no error."""
    return 200 if code is None else int(_STATUS.get(code, HTTPStatus.BAD_REQUEST))
