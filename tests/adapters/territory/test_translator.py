"""The territory game over its own messages: the same features, masks and rewards as in the game."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from session.sessions import Table, Wait

from understudy.adapters.territory.messages import (
    ObservationData,
    ProposedSpawn,
    QueenObservation,
)
from understudy.adapters.territory.translator import TerritoryTranslator
from understudy.core.ops import NUMPY
from understudy.games.territory import Territory, tables
from understudy.games.territory.state import State, at_work, chunk_of, on_guard
from understudy.session.protocol import Error
from understudy.session.translation import Step, TranslatedObservation

GAME = Territory()
TICK_MS = tables.SECONDS_PER_TICK * 1000


def message(state: State, index: int, *, tick: int, name: str = "hive") -> dict[str, Any]:
    """One match of a batch, told as the browser's client does."""
    worker, mining = chunk_of(state.worker)[:, index], state.mining[:, index]
    there, guard = at_work(state)[:, index], on_guard(state)[:, index]
    alive = state.health[:, index] > 0
    parasites = zip(
        chunk_of(state.parasite)[alive, index].tolist(),
        state.kind[alive, index].tolist(),
        strict=True,
    )
    now = [{"chunkId": chunk, "type": tables.KINDS[kind]} for chunk, kind in parasites]
    energy, minerals = state.player_energy[:, index], state.minerals[:, index]
    return {
        "timestamp": tick * TICK_MS,
        "territoryId": name,
        "hiveChunk": 0,
        "miningWorkers": _units(worker[there & mining]),
        "workersPresent": _units(worker[there]),
        "protectors": _units(chunk_of(state.protector)[guard, index]),
        "parasitesStart": [],
        "parasitesEnd": now,
        "queenEnergy": {"current": float(state.queen_energy[index]), "max": 100.0},
        "playerEnergy": {"start": float(energy[0]), "end": float(energy[1])},
        "playerMinerals": {"start": float(minerals[0]), "end": float(minerals[1])},
    }


def _units(chunks: Any) -> list[dict[str, Any]]:
    return [{"x": 0.5, "z": 1.5, "chunkId": chunk} for chunk in chunks.tolist()]


def request(data: dict[str, Any]) -> ObservationData:
    return ObservationData(data=msgspec.convert(data, QueenObservation))


def read(state: State, tick: int) -> list[TranslatedObservation]:
    count = state.frame.shape[0]
    got = TerritoryTranslator().read([request(message(state, i, tick=tick)) for i in range(count)])
    readings = [one for one in got if isinstance(one, TranslatedObservation)]
    assert len(readings) == count
    return readings


def some_data(**changes: Any) -> dict[str, Any]:
    return {**message(GAME.start(NUMPY, np.zeros(1, np.uint32)), 0, tick=0), **changes}


def test_features_masks_and_rewards_are_those_of_the_game() -> None:
    rng = np.random.default_rng(0)
    state = GAME.start(NUMPY, np.arange(4, dtype=np.uint32))
    translator = TerritoryTranslator()
    before = read(state, 0)
    for tick in range(1, 40):
        legal = GAME.legal(NUMPY, state)[0]
        actions = np.array([rng.choice(np.flatnonzero(column)) for column in legal.T], np.int32)
        after = GAME.step(NUMPY, state, actions[None, None])
        now = read(after, tick)
        assert np.array_equal(
            np.array([one.sight.features for one in now]).T, GAME.observe(NUMPY, after)[0]
        )
        masks = [one.sight.legal for one in now]
        assert np.array_equal(np.array(masks).T, GAME.legal(NUMPY, after)[0])
        steps = [
            Step(old.sight, (int(action),), True, new.sight)
            for old, action, new in zip(before, actions, now, strict=True)
        ]
        worth = GAME.reward(NUMPY, state, after)[0]
        if not GAME.over(NUMPY, after).any():  # the result of a match is the game's alone
            assert translator.rewards(steps) == pytest.approx(worth.tolist(), abs=1e-6)
        state, before = after, now


def test_an_action_that_was_not_sent_is_judged_as_no_spawn() -> None:
    (one,) = read(GAME.start(NUMPY, np.zeros(1, np.uint32)), 0)
    waited = Step(one.sight, (5,), False, one.sight)
    skipped = Step(one.sight, (tables.NO_SPAWN,), True, one.sight)
    assert TerritoryTranslator().rewards([waited]) == TerritoryTranslator().rewards([skipped])


def test_the_fallback_is_the_scripted_queen_and_legal() -> None:
    sights = [one.sight for one in read(GAME.start(NUMPY, np.arange(8, dtype=np.uint32)), 0)]
    actions = TerritoryTranslator().fallback(sights)
    assert actions.shape == (8, 1)
    for one, (action,) in zip(sights, actions, strict=True):
        assert one.legal is not None
        assert one.legal[action]


def test_who_mines_is_present_also_where_a_client_lists_the_others_alone() -> None:
    data = some_data(miningWorkers=[{"x": 0, "z": 0, "chunkId": 9}], workersPresent=[])
    (one,) = TerritoryTranslator().read([request(data)])
    assert isinstance(one, TranslatedObservation)
    assert one.sight.features[0] == pytest.approx(9 / 255)


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        (
            {"protectors": [{"x": 0, "z": 0, "chunkId": 1}, {"x": 0, "z": 0, "chunkId": 256}]},
            "bad_message",
            "data.protectors[1].chunkId",
        ),
        (
            {"parasitesEnd": [{"chunkId": 4, "type": "worm"}]},
            "bad_message",
            "data.parasitesEnd[0].type",
        ),
        ({"hiveChunk": 300}, "bad_message", "data.hiveChunk"),
        ({"queenEnergy": {"current": -1, "max": 9}}, "bad_message", "data.queenEnergy.current"),
        ({"playerEnergy": {"start": 0, "end": 1e39}}, "bad_number", "data.playerEnergy.end"),
        ({"weather": "fine"}, "bad_message", "data.weather"),
    ],
)
def test_what_the_map_has_not_is_refused(
    tmp_path: Path, changes: dict[str, Any], code: str, field: str
) -> None:
    answer = tell(Table(tmp_path, translator=TerritoryTranslator()), some_data(**changes))
    assert (answer["code"], answer["field"]) == (code, field)


# --- in a session --------------------------------------------------------------------------------


def tell(table: Table, data: dict[str, Any], **fields: Any) -> dict[str, Any]:
    (answer,) = table.say({"type": "observation_data", "data": data, **fields})
    return answer


def test_a_spawn_is_told_in_the_words_of_the_client(tmp_path: Path) -> None:
    table = Table(tmp_path, translator=TerritoryTranslator())
    seen = set()
    for tick in range(30):
        answer = tell(table, some_data(timestamp=tick * TICK_MS), id=tick)
        assert answer["type"] == "spawn_decision"
        assert (answer["territoryId"], answer["id"]) == ("hive", tick)
        assert answer["skipped"] == (answer["spawnType"] is None) == (answer["spawnChunk"] == -1)
        assert answer["skipped"] or answer["spawnType"] in tables.KINDS
        seen.add(answer["spawnChunk"])
    assert len(seen) > 5
    assert table.ledger.counts.settled == 29


def test_a_blocked_spawn_is_an_acknowledgement(tmp_path: Path) -> None:
    table = Table(tmp_path, translator=TerritoryTranslator(), gate=Wait(), explore_share=0.0)
    answer = tell(table, some_data(), id="q")
    assert answer == {
        "type": "observation_ack", "territoryId": "hive", "status": "wait", "action": "none",
        "reasons": ["too dangerous"], "expected_reward": -0.25, "version": 0, "duplicate": False,
        "decision_id": answer["decision_id"], "id": "q",
    }  # fmt: skip
    opened = table.ledger.opened(answer["decision_id"])
    assert opened is not None
    assert not opened.sent


def test_timestamps_are_the_ticks(tmp_path: Path) -> None:
    table = Table(tmp_path, translator=TerritoryTranslator())
    first = tell(table, some_data(timestamp=10_000))["decision_id"]
    assert tell(table, some_data(timestamp=10_000))["duplicate"]
    late = tell(table, some_data(timestamp=5_000))
    assert (late["code"], late["field"]) == ("out_of_order", "data.timestamp")
    second = tell(table, some_data(timestamp=16_200))["decision_id"]  # a client is never exact
    third = tell(table, some_data(timestamp=26_200))["decision_id"]  # one tick was lost
    assert table.states(first, second, third) == ["settled", "superseded", "open"]


def test_after_a_restart_the_reward_before_it_cannot_be_told(tmp_path: Path) -> None:
    before = Table(tmp_path, translator=TerritoryTranslator())
    first = tell(before, some_data(timestamp=0))["decision_id"]
    after = Table(tmp_path, translator=TerritoryTranslator(), clock=before.clock)
    assert tell(after, some_data(timestamp=0))["duplicate"]
    second = tell(after, some_data(timestamp=TICK_MS))["decision_id"]
    tell(after, some_data(timestamp=2 * TICK_MS))
    assert after.states(first, second) == ["superseded", "settled"]


def test_each_game_says_how_it_wants_to_be_told(tmp_path: Path) -> None:
    territory = Table(tmp_path / "territory", translator=TerritoryTranslator())
    plain = Table(tmp_path / "plain")
    (one,) = territory.say({"type": "observation", "territory": "t", "features": []})
    other = tell(plain, some_data())
    assert [(a["code"], a["field"]) for a in (one, other)] == [("unknown_type", "type")] * 2


def test_the_degraded_queen_still_answers(tmp_path: Path) -> None:
    table = Table(tmp_path, translator=TerritoryTranslator())
    (answer,) = table.say({"type": "observation_data", "data": some_data()}, degraded=True)
    assert answer["degraded"]
    (one,) = read(GAME.start(NUMPY, np.zeros(1, np.uint32)), 0)
    spawn = TerritoryTranslator().label(TerritoryTranslator().fallback([one.sight])[0].tolist())
    assert {"chunk": answer["spawnChunk"], "type": answer["spawnType"]} == spawn


def proposing(**proposed: Any) -> TranslatedObservation | Error:
    spawn = msgspec.convert(proposed, ProposedSpawn)
    asked = msgspec.structs.replace(request(some_data()), proposed=spawn)
    (reading,) = TerritoryTranslator().read([asked])
    return reading


def test_the_rules_are_what_the_client_proposes_and_else_the_scripted_player() -> None:
    translator = TerritoryTranslator()
    spawning = proposing(spawnChunk=33, spawnType="combat")
    idle = proposing(spawnChunk=-1, spawnType=None)
    (silent,) = translator.read([request(some_data())])
    sights = []
    for one in (spawning, idle, silent):
        assert isinstance(one, TranslatedObservation)
        sights.append(one.sight)
    actions = translator.fallback(sights)
    assert translator.label(actions[0]) == {"chunk": 33, "type": "combat"}
    assert translator.label(actions[1]) == {"chunk": -1, "type": None}
    assert actions[2].tolist() == translator.fallback([sights[2]])[0].tolist()
    assert actions.dtype == np.int32


def test_a_spawn_that_cannot_be_paid_for_is_not_proposed() -> None:
    data = some_data(queenEnergy={"current": 0.0, "max": 100.0})
    spawn = ProposedSpawn(spawn_chunk=33, spawn_type="energy")
    poor = msgspec.structs.replace(request(data), proposed=spawn)
    (error,) = TerritoryTranslator().read([poor])
    assert isinstance(error, Error)
    assert (error.code, error.field) == ("illegal", "proposed")
    torn = proposing(spawnChunk=3, spawnType=None)
    assert isinstance(torn, Error)
    assert (torn.code, torn.field) == ("bad_message", "proposed")
