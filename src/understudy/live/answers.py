"""Answers that are made in more than one place, or need no thought."""

from __future__ import annotations

from typing import Literal

import msgspec

from understudy.core.config.serving import LiveConfig
from understudy.live.message_fields import RequestId
from understudy.live.protocol import Error, Welcome
from understudy.live.translation import Translator


def welcome(
    client: str,
    translator: Translator,
    version: int,
    *,
    resume_key: str | None = None,
    request: RequestId | None = None,
) -> Welcome:
    """What a client is told first."""
    return Welcome(
        client=client,
        resume=resume_key,
        game=translator.name,
        features=translator.features,
        actions=translator.choices,
        version=version,
        id=request,
    )


def with_id(error: Error, request: RequestId | None) -> Error:
    """The same error under the id of the message that it is about."""
    return error if request is None else msgspec.structs.replace(error, id=request)


def bad_reward(request: RequestId | None) -> Error:
    """A reward that is not finite in 32 bits."""
    message = "too large for a 32-bit float"
    return Error(code="bad_number", message=message, field="reward", id=request)


def too_many(beyond: Literal["each", "total"], config: LiveConfig) -> Error:
    """A message beyond one of the rates."""
    if beyond == "each":
        message = f"more than {config.messages_per_s:g} messages a second"
    else:
        message = f"more than {config.messages_per_s_in_all:g} messages a second from all clients"
    return Error(code="rate", message=message)


def internal(request: RequestId | None) -> Error:
    """It failed here; what went wrong is for whoever runs the server."""
    message = "this could not be answered; it was noted"
    return Error(code="internal", message=message, id=request)


def unavailable(request: RequestId | None) -> Error:
    """The ledger could not write."""
    message = "it could not be written down and does not count; send it again"
    return Error(code="unavailable", message=message, id=request)
