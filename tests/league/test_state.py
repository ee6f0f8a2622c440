"""`league.json`: the same values and the same bytes, or an error that names what is wrong."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.core.errors import FileFormatError
from understudy.league.pool import Snapshot
from understudy.league.ratings import Rating
from understudy.league.state import (
    OLDER_BIAS,
    LeagueState,
    OpponentResults,
    decode,
    encode,
    joint_of,
    set_covariance,
)

SHA = "0" * 64
NUMBERS = st.floats(-1e6, 1e6)
RATINGS = st.builds(Rating, NUMBERS, st.floats(1e-6, 1e3))
COUNTS = st.integers(0, 2**40)
FADED = st.floats(0.0, 1e9)
RECORDS = st.builds(OpponentResults, COUNTS, COUNTS, COUNTS, FADED, FADED)
BOTS = st.text(min_size=1, max_size=8)


@st.composite
def states(draw: st.DrawFn) -> LeagueState:
    steps = sorted(draw(st.sets(st.integers(0, 10**12), max_size=6)))
    pool = [Snapshot(one, draw(st.sampled_from([SHA, "f" * 64]))) for one in steps]
    return LeagueState(
        iterations=draw(COUNTS),
        offered_at=draw(COUNTS),
        learner=draw(RATINGS),
        trend=draw(RATINGS),
        anchors=draw(st.dictionaries(BOTS, RATINGS, max_size=4)),
        pool=pool,
        ratings={one.name: draw(RATINGS) for one in pool},
        records=draw(st.dictionaries(BOTS, RECORDS, max_size=4)),
        left=draw(st.lists(BOTS, max_size=3)),
        gone=draw(RECORDS),
    )


@given(state=states())
def test_there_and_back(state: LeagueState) -> None:
    data = encode(state)
    again = decode(data)
    assert again == state
    assert encode(again) == data


def test_what_is_known_together_is_kept_to_the_last_bit() -> None:
    state = LeagueState(pool=[Snapshot(100, SHA)], ratings={"step-100": Rating(30.0, 2.0)})
    joint = joint_of(state)
    assert joint.covariance[0, 2] == OLDER_BIAS**2  # an older program: one error that all share
    assert joint.covariance[1, 2] == 0.0
    set_covariance(state, joint)
    again = joint_of(decode(encode(state)))
    assert (again.names, again.mean.tolist()) == (joint.names, joint.mean.tolist())
    assert again.covariance.tobytes() == joint.covariance.tobytes()


def broken(**fields: Any) -> bytes:
    good = LeagueState(
        pool=[Snapshot(100, SHA), Snapshot(200, SHA)],
        ratings={"step-100": Rating(), "step-200": Rating()},
    )
    return msgspec.json.encode(msgspec.to_builtins(good) | fields)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"schema": 2}, "schema 2, this program reads 1"),
        ({"iterations": "many"}, "iterations"),
        ({"surprise": 1}, "surprise"),
        (
            {"pool": [{"steps": 200, "sha256": SHA}, {"steps": 100, "sha256": SHA}]},
            "pool: expected",
        ),
        ({"pool": [{"steps": 100, "sha256": "abc"}]}, "step-100 has no checksum"),
        ({"ratings": {"step-100": {"mu": 1.0, "sigma": 1.0}}}, "ratings: step-200"),
        ({"learner": {"mu": 25.0, "sigma": 0.0}}, "learner"),
        ({"learner": {"mu": None, "sigma": 1.0}}, "learner.mu"),
        ({"records": {"based": {"wins": -1}}}, "records: based"),
        ({"covariance": "AAAA"}, "covariance: 3 bytes, 4 ratings have 80"),
        ({"covariance": b64encode(b"\xff" * 80).decode()}, "covariance: not all"),
    ],
)
def test_what_does_not_hold_together_is_named(fields: dict[str, Any], named: str) -> None:
    decode(broken())
    with pytest.raises(FileFormatError) as error:
        decode(broken(**fields), what="version 3: league.json")
    assert "version 3: league.json" in str(error.value) and named in str(error.value)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff\xfe"])
def test_what_is_no_json_is_said(data: bytes) -> None:
    with pytest.raises(FileFormatError, match=r"league\.json"):
        decode(data)
