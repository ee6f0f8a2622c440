"""Messages are decoded strictly; what is wrong becomes an error that says where.

python tests/session/test_protocol.py      writes docs/protocol.schema.json
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import understudy.adapters.territory.messages  # noqa: F401  registers its messages
from understudy.session import protocol
from understudy.session.protocol import Error, Hello, Observation, Ping, Reward

DEEP = b"[" * 100_000 + b"]" * 100_000
SCHEMA = Path(__file__).parents[2] / "docs" / "protocol.schema.json"


def decode(message: Any) -> protocol.Request | Error:
    data = message if isinstance(message, bytes | str) else json.dumps(message)
    return protocol.decode(data, max_bytes=1_000_000)


def refused(message: Any) -> tuple[str, str | None]:
    got = decode(message)
    assert isinstance(got, Error)
    assert got.message
    return got.code, got.field


@pytest.mark.parametrize(
    ("message", "code", "field"),
    [
        (b"", "bad_json", None),
        (b"{", "bad_json", None),
        (b'{"type":"ping"} x', "bad_json", None),
        (b'{"type":"ping","id":"\xff"}', "bad_json", None),
        ('{"type":"ping","id":"\ud800"}', "bad_json", None),
        (b'{"type":"reward","decision_id":1,"reward":NaN}', "bad_json", None),
        (b"[]", "bad_message", None),
        (b"null", "bad_message", None),
        ({}, "unknown_type", "type"),
        ({"type": "pong"}, "unknown_type", "type"),
        ({"type": 3}, "unknown_type", "type"),
        ({"type": "ping", "loud": True}, "bad_message", "loud"),
        ({"type": "observation", "features": []}, "bad_message", "territory"),
        ({"type": "observation", "territory": "t"}, "bad_message", "features"),
        (
            {"type": "observation", "territory": "", "features": []},
            "bad_message",
            "territory",
        ),
        (
            {"type": "observation", "territory": "t" * 129, "features": []},
            "bad_message",
            "territory",
        ),
        (
            {"type": "observation", "territory": "t", "features": [1.0, "2"]},
            "bad_message",
            "features[1]",
        ),
        (
            {"type": "observation", "territory": "t", "features": [True]},
            "bad_message",
            "features[0]",
        ),
        (
            {"type": "observation", "territory": "t", "features": [], "tick": -1},
            "bad_message",
            "tick",
        ),
        (
            {"type": "observation", "territory": "t", "features": [], "tick": 2**53},
            "bad_message",
            "tick",
        ),
        (
            {"type": "observation", "territory": "t", "features": [], "tick": 1.5},
            "bad_message",
            "tick",
        ),
        (
            {"type": "observation", "territory": "t", "features": [], "proposed": 3},
            "bad_message",
            "proposed",
        ),
        (
            {"type": "observation", "territory": "t", "features": [], "proposed": {"move": 1}},
            "bad_message",
            "proposed[...]",
        ),
        (
            b'{"type":"observation","territory":"t","features":[1e999]}',
            "bad_number",
            "features[0]",
        ),
        (b'{"type":"reward","decision_id":1,"reward":-1e999}', "bad_number", "reward"),
        ({"type": "reward", "decision_id": -1, "reward": 0}, "bad_message", "decision_id"),
        ({"type": "end", "territory": "t", "outcome": "won"}, "bad_message", "outcome"),
        ({"type": "hello", "protocol": 1, "client": "a b"}, "bad_message", "client"),
        ({"type": "hello", "protocol": 1, "client": "a\n"}, "bad_message", "client"),
        (b'{"noise":' + DEEP + b',"type":"ping"}', "too_deep", None),
        (
            b'{"type":"observation","territory":"t","features":' + DEEP + b"}",
            "bad_message",
            "features[0]",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_place(message: Any, code: str, field: str | None) -> None:
    assert refused(message) == (code, field)


def test_whoever_sends_nan_is_told_so() -> None:
    got = decode(b'{"type":"reward","decision_id":1,"reward":NaN}')
    assert isinstance(got, Error)
    assert "NaN and Infinity are not JSON" in got.message


def test_a_message_that_is_too_long_is_not_even_read() -> None:
    got = protocol.decode(b'{"type":"ping"}' + b" " * 100, max_bytes=100)
    assert isinstance(got, Error)
    assert got.code == "too_large"


def test_length_is_counted_in_bytes() -> None:
    assert isinstance(protocol.decode('{"type":"ping","id":"ééé"}', max_bytes=29), Ping)
    got = protocol.decode('{"type":"ping","id":"ééé"}', max_bytes=28)
    assert isinstance(got, Error)


def test_a_refused_message_is_answered_under_its_own_id() -> None:
    got = decode({"type": "observation", "id": "a-7", "territory": 3})
    assert isinstance(got, Error)
    assert got.id == "a-7"


def test_errors_quote_little_of_what_was_sent() -> None:
    got = decode({"type": "ping", "x" * 50_000: 1})
    assert isinstance(got, Error)
    assert len(protocol.encode(got)) < 1_000


def test_good_messages_come_out_typed() -> None:
    assert decode({"type": "ping", "id": 7}) == Ping(id=7)
    assert decode({"type": "hello", "protocol": 1, "token": "s"}) == Hello(protocol=1, token="s")
    assert decode({"type": "reward", "decision_id": 3, "reward": 1}) == Reward(
        decision_id=3, reward=1.0
    )
    named = decode({"type": "observation", "territory": "t", "features": {"a": 1}})
    assert named == Observation(territory="t", features={"a": 1.0})


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["type", "territory", "features", "tick", "id", "data", "reward"])
            | st.text(),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(st.binary(max_size=60) | st.text(max_size=60) | _JSON.map(json.dumps))
def test_decoding_never_raises(message: bytes | str) -> None:
    got = protocol.decode(message, max_bytes=1_000)
    again = json.loads(protocol.encode(got))
    assert again["type"]


def test_the_published_schema_is_that_of_the_types() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == protocol.schema_text(), (
        "python tests/session/test_protocol.py"
    )


def test_the_published_schema_knows_every_message_of_a_client() -> None:
    defs = protocol.json_schema()["$defs"]
    tags = {one["properties"]["type"]["enum"][0] for one in defs.values() if _is_message(one)}
    assert {kind.__struct_config__.tag for kind in protocol.request_types()} <= tags
    assert not defs["Observation"]["additionalProperties"]


def _is_message(definition: dict[str, Any]) -> bool:
    return "enum" in definition.get("properties", {}).get("type", {}) and definition["properties"][
        "type"
    ]["enum"] != ["combat", "energy"]


if __name__ == "__main__":
    SCHEMA.write_text(protocol.schema_text(), encoding="utf-8")
