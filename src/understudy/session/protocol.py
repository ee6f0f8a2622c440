"""The messages of a live game, protocol 1: their types, their decoder and their JSON Schema.

Every message is a JSON object with a `type`. `decode` never raises: what is not a message becomes
an `Error` that says what is wrong and where, and nothing about this program's insides. A game with
messages of its own adds them with `register`; they are decoded as strictly as the generic ones.
docs/protocol.md tells what each message means. Class names and docstrings of messages are part of
the published schema (docs/protocol.schema.json).
"""

from __future__ import annotations

import functools
import operator
import re
from typing import Annotated, Any, Literal, TypeAlias, get_args

import msgspec
from msgspec import Meta

PROTOCOL = 1
_SAFE = 2**53 - 1
"""The largest integer that every JSON parser reads exactly."""

RequestId = Annotated[str, Meta(max_length=128)] | Annotated[int, Meta(ge=0, le=_SAFE)]
"""Chosen by the client; the answer repeats it."""
TerritoryName = Annotated[str, Meta(min_length=1, max_length=128)]
ClientId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{1,64}$(?!\n)")]
Secret = Annotated[str, Meta(max_length=512)]
Tick = Annotated[int, Meta(ge=0, le=_SAFE)]
DecisionId = Annotated[int, Meta(ge=0, le=_SAFE)]

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
    "wrong_shard",
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


class ObservationRequest(_In, frozen=True, kw_only=True, gc=False):
    """An observation in the form of any game; a `Translator` reads it, a decision answers it."""


class Observation(ObservationRequest, frozen=True, kw_only=True, gc=False, tag="observation"):
    """What is seen in a territory: answered by a `decision`."""

    territory: TerritoryName
    features: list[float] | dict[str, float]
    """In the order of the game's features, or by name."""
    tick: Tick | None = None
    """None: one more than the last."""
    legal: list[bool] | None = None
    """One for each option of the actions; None: everything."""
    proposed: str | dict[str, str] | None = None
    """What the game's own rules would do, by name; with several parts, a name for each."""


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
    """What to do, who decided it, and whether it is to be executed."""

    decision_id: int | None
    """None: it is not in the ledger, nothing can be learned from it."""
    territory: str
    tick: int
    action: Any
    """The action by its name; executed only where the verdict is SEND."""
    confidence: float
    """How likely the policy was to choose this; 0 where none was asked."""
    version: int
    """Of the policy; 0 where the rules play."""
    by: Literal["policy", "rules"] = "policy"
    """Who decided. The rules: the `proposed` action, or the safe action where there is none."""
    verdict: Literal["SEND", "WAIT"]
    reasons: tuple[str, ...] = ()
    expected_reward: float = 0.0
    explored: bool = False
    """The gate would have waited; it is to be executed all the same, to learn from it."""
    degraded: bool = False
    """There was no time for a policy, or no room for a record: the rules decided."""
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


Request: TypeAlias = Hello | ObservationRequest | Reward | End | Ping
Answer: TypeAlias = Welcome | Decision | Rewarded | Ended | Pong | Error
"""Besides these, a translator may answer observations with registered messages."""


class _Id(msgspec.Struct, gc=False):
    """The part of a refused message that its answer needs."""

    id: RequestId | None = None


_ID_DECODER = msgspec.json.Decoder(_Id)
_ENCODER = msgspec.json.Encoder()
_PLACE = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<path>[^`]*)`)?$", re.DOTALL)
_NAMED = re.compile(r"(?:unknown|required) field `(?P<name>[^`]*)`")
_LONGEST = 160
_DRAFT = "https://json-schema.org/draft/2020-12/schema"


_observations: list[type[ObservationRequest]] = [Observation]
_answers: list[type[msgspec.Struct]] = [*get_args(Answer)]


def request_types() -> tuple[type[msgspec.Struct], ...]:
    return (Hello, *_observations, Reward, End, Ping)


def answer_types() -> tuple[type[msgspec.Struct], ...]:
    return tuple(_answers)


def _union(kinds: tuple[type, ...]) -> Any:
    return functools.reduce(operator.or_, kinds)


_decoder: msgspec.json.Decoder[Request] = msgspec.json.Decoder(_union(request_types()))


def register(
    observation: type[ObservationRequest], *, answers: tuple[type[msgspec.Struct], ...]
) -> None:
    """Add the messages of a game: its form of an observation, and the answers to it.

    A game's module calls this when it is imported. A server imports every game that ships, so that
    all servers decode the same messages, whichever game they serve.
    """
    global _decoder  # noqa: PLW0603  one decoder for all types: decoding is on the path of decisions
    _observations.append(observation)
    _answers.extend(answers)
    _decoder = msgspec.json.Decoder(_union(request_types()))


def decode(data: bytes | str, *, max_bytes: int) -> Request | Error:
    """The message, or what is wrong with it."""
    if _size(data) > max_bytes:
        return Error(code="too_large", message=f"a message may have {max_bytes} bytes at most")
    try:
        return _decoder.decode(data)
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
    return _ENCODER.encode(message)


def json_schema() -> dict[str, Any]:
    """`$defs/FromClient` and `$defs/FromServer`, and every message by name beside them."""
    unions = (_union(request_types()), _union(answer_types()))
    (client, server), messages = msgspec.json.schema_components(
        unions, ref_template="#/$defs/{name}"
    )
    # A server may learn new codes; a client has to accept those that it does not know.
    messages[Error.__name__]["properties"]["code"] = {
        "type": "string",
        "examples": list(get_args(Code)),
    }
    return {
        "$schema": _DRAFT,
        "title": f"Understudy live protocol {PROTOCOL}",
        "anyOf": [{"$ref": "#/$defs/FromClient"}, {"$ref": "#/$defs/FromServer"}],
        "$defs": {"FromClient": client, "FromServer": server, **dict(sorted(messages.items()))},
    }


def schema_text() -> str:
    """`json_schema` as docs/protocol.schema.json has it."""
    return msgspec.json.format(msgspec.json.encode(json_schema()), indent=2).decode() + "\n"


def _invalid(text: str, request: RequestId | None) -> Error:
    """An error from msgspec's text, which is split into what is wrong and where."""
    match = _PLACE.match(text)
    assert match is not None  # every text matches
    what, path = match["what"], match["path"] or ""
    named = _NAMED.search(what)
    if named:
        path = f"{path}.{named['name']}" if path else named["name"]
    field = path[:_LONGEST] or None
    if field == "type":
        types = ", ".join(str(kind.__struct_config__.tag) for kind in request_types())
        message = f"type: expected one of {types}"
        return Error(code="unknown_type", message=message, field=field, id=request)
    code: Code = "bad_number" if what == "Number out of range" else "bad_message"
    message = what[:_LONGEST].replace("`", "'")
    return Error(code=code, message=message, field=field, id=request)


def _size(data: bytes | str) -> int:
    """In bytes of UTF-8."""
    if isinstance(data, bytes) or data.isascii():
        return len(data)
    return len(data.encode("utf-8", "replace"))


def _has_nan(data: bytes | str) -> bool:
    if isinstance(data, str):
        return "NaN" in data or "Infinity" in data
    return b"NaN" in data or b"Infinity" in data


def _request_id(data: bytes | str) -> RequestId | None:
    """The id of a refused message, if it can be read."""
    try:
        return _ID_DECODER.decode(data).id
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
