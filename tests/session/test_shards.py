"""Shards: a territory has one server, the same on every machine, and others name it."""

from __future__ import annotations

from pathlib import Path

import pytest

from understudy.core.errors import ConfigError
from understudy.session.shards import Shard, parse_shard, shard_of

from .sessions import Table, observation


def test_the_shard_of_a_territory_never_changes() -> None:
    """Written down: servers and clients of other languages compute the same."""
    assert [shard_of(name, 3) for name in ("north", "south", "0", "Ω")] == [1, 2, 0, 1]


def test_territories_are_spread_evenly() -> None:
    counts = [0] * 7
    for number in range(7000):
        counts[shard_of(f"base {number}", 7)] += 1
    assert min(counts) > 900
    assert max(counts) < 1100


def test_a_foreign_territory_is_refused_with_the_right_shard(tmp_path: Path) -> None:
    table = Table(tmp_path, shard=Shard(0, 3))
    answers = table.say(
        observation("north"), observation("0"), {"type": "end", "territory": "south"}
    )
    assert [one["type"] for one in answers] == ["error", "decision", "error"]
    assert answers[0]["code"] == "wrong_shard"
    assert answers[0]["field"] == "territory"
    assert answers[0]["message"].endswith("belongs to shard 1/3")
    assert answers[2]["message"].endswith("belongs to shard 2/3")
    assert table.ledger.counts.opened == 1


def test_every_territory_is_decided_by_exactly_one_shard(tmp_path: Path) -> None:
    tables = [Table(tmp_path / str(index), shard=Shard(index, 3)) for index in range(3)]
    for name in ("north", "south", "east", "west"):
        kinds = [table.say(observation(name))[0]["type"] for table in tables]
        assert sorted(kinds) == ["decision", "error", "error"]


@pytest.mark.parametrize("text", ["3/3", "-1/3", "0/0", "1", "a/b", "0/3/4", ""])
def test_what_is_no_shard_is_an_error_that_says_what_is(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--shard: expected .*0/3, 1/3 and 2/3"):
        parse_shard(text, flag="--shard")
    assert parse_shard("2/3", flag="--shard") == Shard(2, 3)
