"""Answers that are made in more than one place, or need no thought."""

from __future__ import annotations

import msgspec

from understudy.core.config.serving import LiveConfig
from understudy.live.limits import Beyond
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


def too_many(beyond: Beyond, config: LiveConfig) -> Error:
    """A message beyond one of the rates."""
    message = {
        "each": f"more than {config.messages_per_s:g} messages a second",
        "address": f"more than {config.messages_per_s_per_address:g} messages a second from one "
        "address",
        "total": f"more than {config.messages_per_s_in_all:g} messages a second from all clients",
    }[beyond]
    return Error(code="rate", message=message)


def unavailable(request: RequestId | None) -> Error:
    """The ledger could not write."""
    message = "it could not be written down and does not count; send it again"
    return Error(code="unavailable", message=message, id=request)
