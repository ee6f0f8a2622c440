"""Territory as a client: what it reports is what is there, and what it is told is what it does."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

from understudy.adapters.territory.matches import TerritoryMatches, action_of
from understudy.adapters.territory.remote_play import (
    RemoteProgress,
    RemoteSession,
    RemoteSummary,
    play_remote,
)
from understudy.core.errors import ConfigError, UnderstudyError
from understudy.core.ops import NUMPY
from understudy.games.territory import Territory, observation, tables
from understudy.match.live_match import TRAINING, match_seeds

from .stub_server import Message, spawn, stub, wait

FAST = 1e6


def summary_of(url: str, **options: Any) -> RemoteSummary:
    options = {"territories": 3, "ticks": 4, "speed": FAST, **options}
    return play_remote(RemoteSession(url=url, **options), show=lambda _: None)


def played(url: str, **options: Any) -> RemoteProgress:
    return summary_of(url, **options).progress


# --- the matches ---------------------------------------------------------------------------------


def test_what_is_reported_is_what_the_game_sees() -> None:
    matches = TerritoryMatches(count=5, seed=3)
    rng = np.random.default_rng(0)
    for _ in range(40):
        matches.play(rng.integers(0, tables.OPTIONS, 5))
    seen = observation.seen(NUMPY, matches.state)
    for index, told in enumerate(matches.observations()):
        for units, field in (
            (told.workers_present, seen.workers),
            (told.mining_workers, seen.mining),
            (told.protectors, seen.protectors),
        ):
            assert Counter(one.chunk_id for one in units) == heads(field[:, index])
        for kind, field in (("energy", seen.energy_parasites), ("combat", seen.combat_parasites)):
            there = Counter(one.chunk_id for one in told.parasites_end if one.type == kind)
            assert there == heads(field[:, index])
        assert told.queen_energy.current == seen.queen_energy[index]
        assert [told.player_energy.start, told.player_energy.end] == list(
            seen.player_energy[:, index]
        )
        assert told.timestamp == 40 * tables.SECONDS_PER_TICK * 1000
        for unit in told.workers_present:  # where it stands is in its chunk
            assert int(unit.z // 16) * tables.GRID + int(unit.x // 16) == unit.chunk_id


def heads(field: Any) -> Counter[int]:
    return Counter({chunk: int(n) for chunk, n in enumerate(field) if n})


def test_parasites_at_the_start_are_those_of_the_last_report() -> None:
    matches = TerritoryMatches(count=2, seed=0)
    assert matches.observations()[0].parasites_end == ()
    matches.play(np.array([tables.action_of(17, tables.ENERGY), 0]))
    one, other = matches.observations()
    assert one.parasites_start == () and [p.chunk_id for p in one.parasites_end] == [17]
    assert other.parasites_end == ()
    assert matches.observations()[0].parasites_start == one.parasites_end


def test_rewards_are_those_of_the_game() -> None:
    matches = TerritoryMatches(count=4, seed=9)
    game = Territory()
    state = game.start(NUMPY, match_seeds(9, np.arange(4), purpose=TRAINING))
    rng = np.random.default_rng(1)
    for _ in range(20):
        actions = rng.integers(0, tables.OPTIONS, 4).astype(np.int32)
        after = game.step(NUMPY, state, actions[None, None])
        expected = game.reward(NUMPY, state, after)[0]
        np.testing.assert_array_equal(matches.play(actions), expected)
        state = after


def test_a_match_that_is_over_is_followed_by_another_one_elsewhere() -> None:
    matches = TerritoryMatches(count=2, seed=0)
    first, places = matches.names, matches.state.vein
    for _ in range(tables.MAX_FRAMES - 1):
        matches.play(np.zeros(2, np.int32))
        assert matches.next_matches() == []
    matches.play(np.zeros(2, np.int32))
    assert matches.next_matches() == first
    assert not set(first) & set(matches.names)
    assert (matches.state.vein != places).any()
    told = matches.observations()
    assert told[0].timestamp > 0, "time goes on from match to match"


# --- over a WebSocket ----------------------------------------------------------------------------


def test_every_territory_is_observed_each_tick_and_ended_at_the_end() -> None:
    with stub(wait) as (server, url):
        progress = played(url, territories=3, ticks=4)
    seen = [one["data"] for one in server.heard if one["type"] == "observation_data"]
    assert [one["timestamp"] for one in seen[::3]] == [0.0, 5000.0, 10000.0, 15000.0]
    assert len({one["territoryId"] for one in seen}) == 3
    assert [one["type"] for one in server.heard[-3:]] == ["end"] * 3
    assert (progress.decisions, progress.waits, progress.spawns) == (12, 12, 0)
    assert progress.version == 3
    assert len(progress.latency_ms) == 12 and progress.percentile_ms(99) > 0


def test_what_the_server_says_is_spawned() -> None:
    with stub(lambda message: spawn(message, 42, "energy")) as (server, url):
        summary = summary_of(url, territories=2, ticks=2)
    last = [one["data"] for one in server.heard if one["type"] == "observation_data"][-1]
    assert {"chunkId": 42, "type": "energy"} in last["parasitesEnd"]
    told = summary.as_dict()
    assert told["spawns"] == 4 and told["largest_chunk_share"] == 1.0
    assert action_of(42, "energy") == tables.action_of(42, tables.ENERGY)


def test_no_spawn_is_a_decision_too() -> None:
    with stub(lambda message: spawn(message, -1, None)) as (_, url):
        progress = played(url)
    assert (progress.decisions, progress.spawns, progress.waits) == (12, 0, 0)


def test_a_broken_connection_is_made_again_and_nothing_counts_twice() -> None:
    broken: list[float] = []

    def answer(message: Message) -> Message | None:
        if message["type"] == "observation_data" and len(server.heard) in {5, 9}:
            broken.append(message["data"]["timestamp"])
            return None
        return wait(message)

    with stub(answer) as (server, url):
        progress = played(url, territories=3, ticks=4)
    assert len(broken) == 2 and progress.reconnects == 2
    assert progress.decisions == 12 and progress.unanswered == 0
    assert "resume" not in server.hellos[0] or server.hellos[0]["resume"] is None
    assert [one["resume"] for one in server.hellos[1:]] == ["key", "key"]
    assert [one["client"] for one in server.hellos[1:]] == ["c1", "c1"]
    times = [one["data"]["timestamp"] for one in server.heard if one["type"] == "observation_data"]
    assert times == sorted(times), "what was asked again was asked under its old time"


def test_errors_are_counted_and_the_last_one_is_told() -> None:
    def refuse(message: Message) -> Message:
        if message["type"] == "end":
            return wait(message)
        return {"type": "error", "code": "rate", "message": "too many", "field": None}

    with stub(refuse) as (_, url):
        progress = played(url)
    assert progress.refused == 12 and progress.decisions == 0
    assert "rate: too many" in progress.problem


def test_what_was_refused_unread_is_not_waited_for() -> None:
    """A message beyond the rate is answered without its id: nobody has read it."""
    refused = {"type": "error", "code": "rate", "message": "too many", "field": None, "id": None}
    with stub(lambda message: refused) as (_, url):
        progress = played(url, territories=3, ticks=2)
    assert (progress.refused, progress.unanswered, progress.decisions) == (6, 0, 0)


def test_a_server_without_end_of_patience_is_not_flooded() -> None:
    """A server lets only so many messages of one connection wait."""
    asked: list[int] = []

    def answer(message: Message) -> Message:
        asked.append(message["id"])
        return wait(message)

    with stub(answer) as (_, url):
        progress = played(url, territories=100, ticks=2)
    assert progress.decisions == 200 and progress.refused == 0
    assert sorted(asked) == list(range(300))


def test_a_server_of_another_game_is_refused() -> None:
    with (
        stub(wait, game="skirmish") as (_, url),
        pytest.raises(UnderstudyError, match="serves skirmish; expected territory"),
    ):
        played(url)


def test_no_server_is_one_line_with_what_to_do() -> None:
    with pytest.raises(UnderstudyError, match=r"no server answers there.*understudy serve"):
        played("ws://127.0.0.1:1/ws")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"url": "http://127.0.0.1:8765"}, "--url: expected an address such as ws://"),
        ({"territories": 0}, "--territories: expected 1 or more, got 0"),
        ({"speed": 0.0}, "--speed: expected more than 0"),
        ({"speed": float("nan")}, "--speed: expected more than 0"),
        ({"ticks": 0}, "--ticks: expected 1 or more"),
        ({"minutes": 1.0}, "--ticks or --minutes: give one of them"),
        ({"ticks": None, "minutes": 0.0}, "--minutes: expected more than 0"),
    ],
)
def test_what_cannot_be_is_named(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(named)):
        RemoteSession(**{"url": "ws://127.0.0.1:1/ws", "ticks": 1, **options})
