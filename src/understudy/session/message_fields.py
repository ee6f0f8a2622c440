"""Kinds of fields that several messages have, with what they may hold."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

_SAFE = 2**53 - 1
"""The largest whole number that every JSON parser reads as it was written."""

RequestId = Annotated[str, Meta(max_length=128)] | Annotated[int, Meta(ge=0, le=_SAFE)]
"""Whatever a client wants to know an answer by."""
TerritoryName = Annotated[str, Meta(min_length=1, max_length=128)]
ClientId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{1,64}$(?!\n)")]
Secret = Annotated[str, Meta(max_length=512)]
Tick = Annotated[int, Meta(ge=0, le=_SAFE)]
DecisionId = Annotated[int, Meta(ge=0, le=_SAFE)]
