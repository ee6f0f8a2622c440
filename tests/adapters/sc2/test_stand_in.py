"""The stand-in behind the protocol: what a bot of each race sees, and what its commands do."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("sc2")

from s2clientprotocol import common_pb2 as common_pb
from s2clientprotocol import sc2api_pb2 as sc_pb
from sc2.ids.unit_typeid import UnitTypeId

from adapters.sc2.ducks import episodes, open_mind
from adapters.sc2.matches import PassiveBot, play_match
from understudy import Understudy
from understudy.adapters.sc2.stand_in import ground
from understudy.adapters.sc2.stand_in.catalogue import RACES, RaceName
from understudy.core.errors import FileFormatError
from understudy.sc2 import FEATURES, stand_in

Scenario = stand_in.Scenario


class BuyingBot(PassiveBot):
    """Buys one of everything that its race has, and attacks at once."""

    def __init__(self, mind: Understudy) -> None:
        super().__init__(mind, game_step=22)
        self.seen: set[UnitTypeId] = set()
        self.reached = 0.0

    async def on_step(self, iteration: int) -> None:
        await super().on_step(iteration)
        names = next(names for race, names in RACES.items() if race == self.race.name)
        zerg = self.race.name == "Zerg"
        hall = self.townhalls.first
        maker = self.larva.random if zerg and self.larva else hall
        builder = self.workers.first
        if self.supply_left < 4 and self.can_afford(names.supply):
            if zerg:
                maker.train(names.supply)
            else:
                builder.build(names.supply, hall.position.offset((-6, 6)))
        elif self.workers.amount < 14 and self.can_afford(names.worker):
            maker.train(names.worker)
        barracks = self.structures(names.barracks).first
        soldier = self.larva.random if zerg and self.larva else barracks
        if self.can_afford(names.soldier):
            soldier.train(names.soldier)
        for kind in (names.laboratory, names.defence):
            if not self.structures(kind) and self.can_afford(kind):
                builder.build(kind, hall.position.offset((6, 6)))
        laboratories = self.structures(names.laboratory).ready.idle
        if laboratories and self.can_afford(names.upgrades[0]):
            laboratories.first.research(names.upgrades[0])
        for unit in self.units(names.soldier):
            unit.attack(self.enemy_start_locations[0])
        self.seen |= {unit.type_id for unit in self.all_own_units}
        self.reached = max(self.reached, self.supply_army)


@pytest.mark.parametrize("race", list(RACES))
def test_every_race_can_be_played(tmp_path: Path, race: RaceName) -> None:
    with open_mind(tmp_path) as mind:
        bot = BuyingBot(mind)
        scenario = Scenario(seed=11, build="Power", enemy_race="Protoss")
        result = asyncio.run(play_match(bot, bot.strategist, scenario, race=race))
    assert result is not None
    names = RACES[race]
    wanted = {names.worker, names.soldier, names.hall, names.defence, names.laboratory}
    assert wanted <= bot.seen
    assert names.upgrades[0] in bot.state.upgrades
    assert bot.reached > 2
    (kept,) = episodes(tmp_path)
    assert kept.meta.tags["race"] == race
    assert kept.meta.tags["enemy_race"] == "Protoss"
    assert kept.meta.tags["map"] == stand_in.MAP
    row = dict(zip(FEATURES, kept.observations.T, strict=True))
    for name in ("minerals", "workers", "units", "time_s", "enemy_units", "our_army_hp"):
        assert row[name].min() < row[name].max(), f"{name} never changed"
    assert (row["larva"].max() > 0) == (race == "Zerg")


def test_pulled_workers_join_the_army_and_come_home() -> None:
    from understudy.adapters.sc2.stand_in import commands, observation, rules

    def command(ability: int, tag: int, place: ground.Point) -> rules.Side:
        request = sc_pb.RequestAction()
        raw = request.actions.add().action_raw.unit_command
        raw.ability_id = ability
        raw.target_world_space_pos.x, raw.target_world_space_pos.y = place
        raw.unit_tags.append(tag)
        (one,) = commands.unit_commands(request.actions)
        return commands.obeyed(side, "Zerg", one, 0)[0]

    side = rules.Side(army=10.0)
    side = command(3674, observation.SOLDIERS, ground.ENEMY_HOME)
    assert (side.goal, rules.militia(side)) == (1.0, 0.0)
    side = command(3674, observation.WORKERS, ground.ENEMY_HOME)
    assert rules.militia(side) == side.workers - rules.HOME_GUARD
    side = command(3666, observation.WORKERS, ground.HOME)
    assert rules.militia(side) == 0.0
    side = command(16, observation.SOLDIERS, ground.HOME)
    assert side.goal == 0.0


def answer(connection: stand_in.GameConnection, **request: object) -> sc_pb.Response:
    asked = sc_pb.Request(**request)  # type: ignore[arg-type]
    response = sc_pb.Response()
    response.ParseFromString(connection.answer(asked.SerializeToString()))
    return response


def test_the_status_follows_the_protocol() -> None:
    connection = stand_in.GameConnection(Scenario(seed=1))
    assert answer(connection, ping=sc_pb.RequestPing()).status == sc_pb.launched
    made = sc_pb.RequestCreateGame(realtime=False)
    made.player_setup.add(type=sc_pb.Participant)
    made.player_setup.add(
        type=sc_pb.Computer, race=common_pb.Terran, difficulty=sc_pb.VeryHard, ai_build=sc_pb.Rush
    )
    assert answer(connection, create_game=made).status == sc_pb.init_game
    joined = answer(connection, join_game=sc_pb.RequestJoinGame(race=common_pb.Zerg))
    assert (joined.status, joined.join_game.player_id) == (sc_pb.in_game, 1)
    stepped = answer(connection, step=sc_pb.RequestStep(count=22))
    assert stepped.step.simulation_loop == 22
    seen = answer(connection, observation=sc_pb.RequestObservation())
    assert seen.observation.observation.game_loop == 22
    for _ in range(200):
        answer(connection, step=sc_pb.RequestStep(count=22))
        seen = answer(connection, observation=sc_pb.RequestObservation())
        if seen.status == sc_pb.ended:
            break
    results = {one.player_id: one.result for one in seen.observation.player_result}
    assert results == {1: sc_pb.Defeat, 2: sc_pb.Victory}
    assert answer(connection, leave_game=sc_pb.RequestLeaveGame()).status == sc_pb.launched
    refused = answer(connection, observation=sc_pb.RequestObservation())
    assert list(refused.error) == ["Not in a game"]
    assert answer(connection, quit=sc_pb.RequestQuit()).status == sc_pb.quit


def test_a_match_of_two_bots_is_refused() -> None:
    made = sc_pb.RequestCreateGame(realtime=False)
    for _ in range(2):
        made.player_setup.add(type=sc_pb.Participant)
    refused = answer(stand_in.GameConnection(), create_game=made).create_game
    assert refused.error == sc_pb.ResponseCreateGame.MultiplayerUnsupported
    assert "against a Computer" in refused.error_details


def test_a_seed_gives_the_same_match() -> None:
    async def final(seed: int, run: Path) -> tuple[object, int]:
        with open_mind(run) as mind:
            bot = PassiveBot(mind)
            result = await play_match(bot, bot.strategist, Scenario(seed=seed))
            return result, bot.state.game_loop

    import tempfile

    with tempfile.TemporaryDirectory() as root:
        found = [
            asyncio.run(final(seed, Path(root) / str(number)))
            for number, seed in enumerate((4, 4, 5))
        ]
    assert found[0] == found[1] != found[2]


def test_a_broken_scenario_names_its_file(tmp_path: Path) -> None:
    from understudy.adapters.sc2.stand_in import installation

    folder = stand_in.install(tmp_path, Scenario(seed=9, build="Rush"), maps=("AcropolisLE",))
    assert installation._scenario(folder) == Scenario(seed=9, build="Rush")
    assert (folder / "Maps" / "AcropolisLE.SC2Map").is_file()
    (folder / installation.SCENARIO).write_text('{"seed": "nine"}', encoding="utf-8")
    with pytest.raises(FileFormatError, match=r"stand_in\.json.*install the stand-in again"):
        installation._scenario(folder)
