"""The messages of a live game, protocol 1: what may come in, what goes out, and nothing else.

Every message is a JSON object with a `type`. Decoding never raises: whatever is not a message
becomes an `Error` that says what is wrong and where, and nothing about this program's insides.
docs/protocol.md tells what each message means.
"""

from __future__ import annotations

import re
from typing import Any, Literal, TypeAlias

import msgspec

from understudy.adapters.territory.messages import ObservationAck, QueenObservation, SpawnDecision
from understudy.session.message_fields import (
    ClientId,
    DecisionId,
    RequestId,
    Secret,
    TerritoryName,
    Tick,
)

PROTOCOL = 1

Code: TypeAlias = Literal[
    "bad_json",
    "bad_message",
    "bad_number",
    "illegal",
    "internal",
    "not_yours",
    "out_of_order",
    "rate",
    "too_deep",
    "too_large",
    "too_many_territories",
    "unavailable",
    "unknown_territory",
    "unknown_type",
    "wrong_features",
]


class _In(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, gc=False):
    """A message of a client; the answer carries its `id`, if it has one."""

    id: RequestId | None = None


class Hello(_In, frozen=True, kw_only=True, gc=False, tag="hello"):
    """The first message of a connection."""

    protocol: int
    client: ClientId | None = None
    resume: Secret | None = None
    token: Secret | None = None


class Observation(_In, frozen=True, kw_only=True, gc=False, tag="observation"):
    """What is seen in a territory: answered by a `decision`."""

    territory: TerritoryName
    features: list[float] | dict[str, float]
    """In the order of the game's features, or by name."""
    tick: Tick | None = None
    """None: one more than the last."""
    legal: list[bool] | None = None
    """One for each option of the actions; None: everything."""


class ObservationData(_In, frozen=True, kw_only=True, gc=False, tag="observation_data"):
    """What the Queen sees: answered by `spawn_decision` or `observation_ack`."""

    data: QueenObservation


class Reward(_In, frozen=True, kw_only=True, gc=False, tag="reward"):
    """What a decision was worth."""

    decision_id: DecisionId
    reward: float


class End(_In, frozen=True, kw_only=True, gc=False, tag="end"):
    """A territory ends; `reward` is for its last decision."""

    territory: TerritoryName
    reward: float | None = None
    outcome: Literal["victory", "defeat", "tie", "aborted"] = "tie"


class Ping(_In, frozen=True, kw_only=True, gc=False, tag="ping"):
    """Is anybody there?"""


class _Out(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A message to a client."""


class Welcome(_Out, frozen=True, kw_only=True, gc=False, tag="welcome"):
    """The answer to `hello`: who the client is and what the game is."""

    protocol: int = PROTOCOL
    client: str
    resume: str | None = None
    """To be sent with the next `hello`, so that a client that comes back is the same one."""
    game: str
    features: tuple[str, ...]
    actions: Any
    """`{"type": "discrete", "names": [...]}`; several parts come with the names of each."""
    version: int
    id: RequestId | None = None


class Decision(_Out, frozen=True, kw_only=True, gc=False, tag="decision"):
    """What the policy proposes, and whether it is to be executed."""

    decision_id: int | None
    """None: it is not in the ledger, nothing can be learned from it."""
    territory: str
    tick: int
    action: Any
    """The proposed action by its name; executed only where the verdict is SEND."""
    confidence: float
    """How likely the policy was to choose this; 0 where none was asked."""
    version: int
    verdict: Literal["SEND", "WAIT"]
    reasons: tuple[str, ...] = ()
    expected_reward: float = 0.0
    explored: bool = False
    """The gate would have waited; it is to be executed all the same, to learn from it."""
    degraded: bool = False
    """There was no time for a policy, or no room for a record: this is the safe action."""
    duplicate: bool = False
    id: RequestId | None = None


class Rewarded(_Out, frozen=True, kw_only=True, gc=False, tag="rewarded"):
    """What became of a `reward`."""

    decision_id: int
    status: Literal[
        "settled", "added", "duplicate", "expired", "superseded", "orphaned", "unknown"
    ]  # fmt: skip
    id: RequestId | None = None


class Ended(_Out, frozen=True, kw_only=True, gc=False, tag="ended"):
    """A territory is forgotten; how many decisions it had."""

    territory: str
    decisions: int
    last: Literal["settled", "orphaned", "closed"] | None = None
    """Its last decision; `closed`: it was closed before, and a reward here came too late."""
    id: RequestId | None = None


class Pong(_Out, frozen=True, kw_only=True, gc=False, tag="pong"):
    """Yes."""

    id: RequestId | None = None


class Error(_Out, frozen=True, kw_only=True, gc=False, tag="error"):
    """A message that was refused. Nothing else was changed by it."""

    code: Code
    message: str
    field: str | None = None
    """Where in the message, such as `features[3]`."""
    id: RequestId | None = None


Request: TypeAlias = Hello | Observation | ObservationData | Reward | End | Ping
Answer: TypeAlias = (
    Welcome | Decision | Rewarded | Ended | Pong | Error | SpawnDecision | ObservationAck
)


class _Id(msgspec.Struct, gc=False):
    """Just enough of a message to answer it by name."""

    id: RequestId | None = None


_DECODER: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_ID_DECODER = msgspec.json.Decoder(_Id)
_ENCODER = msgspec.json.Encoder()
TYPES = tuple(str(kind.__struct_config__.tag) for kind in Request.__args__)
_PLACE = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<path>[^`]*)`)?$", re.DOTALL)
_NAMED = re.compile(r"(?:unknown|required) field `(?P<name>[^`]*)`")
_LONGEST = 160


def decode(data: bytes | str, *, max_bytes: int) -> Request | Error:
    """The message, or what is wrong with it."""
    if _size(data) > max_bytes:
        return Error(code="too_large", message=f"a message may have {max_bytes} bytes at most")
    try:
        return _DECODER.decode(data)
    except msgspec.ValidationError as error:
        return _invalid(str(error), _request_id(data))
    except msgspec.DecodeError as error:
        hint = "; NaN and Infinity are not JSON" if _has_nan(data) else ""
        return Error(code="bad_json", message=f"{str(error)[:_LONGEST]}{hint}")
    except UnicodeError:
        return Error(code="bad_json", message="expected JSON in UTF-8")
    except RecursionError:
        return Error(code="too_deep", message="lists and objects are nested too deeply")


def encode(message: msgspec.Struct) -> bytes:
    """As JSON."""
    return _ENCODER.encode(message)


def _invalid(text: str, request: RequestId | None) -> Error:
    """msgspec's words, parted into what and where."""
    match = _PLACE.match(text)
    assert match is not None  # every text matches
    what, path = match["what"], match["path"] or ""
    named = _NAMED.search(what)
    if named:
        path = f"{path}.{named['name']}" if path else named["name"]
    field = path[:_LONGEST] or None
    if field == "type":
        message = f"type: expected one of {', '.join(TYPES)}"
        return Error(code="unknown_type", message=message, field=field, id=request)
    code: Code = "bad_number" if what == "Number out of range" else "bad_message"
    message = what[:_LONGEST].replace("`", "'")
    return Error(code=code, message=message, field=field, id=request)


def _size(data: bytes | str) -> int:
    """In bytes."""
    if isinstance(data, bytes) or data.isascii():
        return len(data)
    return len(data.encode("utf-8", "replace"))


def _has_nan(data: bytes | str) -> bool:
    if isinstance(data, str):
        return "NaN" in data or "Infinity" in data
    return b"NaN" in data or b"Infinity" in data


def _request_id(data: bytes | str) -> RequestId | None:
    """The id of a message that is refused, if that much of it can be read."""
    try:
        return _ID_DECODER.decode(data).id
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
