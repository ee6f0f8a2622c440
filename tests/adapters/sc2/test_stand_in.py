"""The stand-in behind the protocol: what a bot of each race sees, and what its commands do."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sc2")

from s2clientprotocol import common_pb2 as common_pb
from s2clientprotocol import raw_pb2 as raw_pb
from s2clientprotocol import sc2api_pb2 as sc_pb
from sc2.ids.unit_typeid import UnitTypeId

from adapters.sc2.ducks import episodes, open_mind
from adapters.sc2.matches import NO_PORTS, PassiveBot, play_match
from understudy import Understudy
from understudy.adapters.sc2.stand_in import (
    commands,
    ground,
    installation,
    observation,
    players,
    rules,
)
from understudy.adapters.sc2.stand_in.catalogue import RACES, SOLDIER_HP, RaceName
from understudy.adapters.sc2.stand_in.observation import ENEMY, HALLS, SOLDIERS
from understudy.core.errors import FileFormatError
from understudy.experience.episode import Outcome
from understudy.sc2 import FEATURES, contained, play_async, stand_in

with contained():
    from sc2.data import Race
    from sc2.main import play_from_websocket
    from sc2.player import Bot

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
    def command(ability: int, tag: int, place: ground.Point) -> rules.Side:
        request = sc_pb.RequestAction()
        raw = request.actions.add().action_raw.unit_command
        raw.ability_id = ability
        raw.target_world_space_pos.x, raw.target_world_space_pos.y = place
        raw.unit_tags.append(tag)
        (one,) = commands.unit_commands(request.actions)
        return commands.obeyed(side, "Zerg", one, 0)[0]

    side = rules.Side(army=10.0)
    side = command(3674, SOLDIERS, ground.ENEMY_HOME)
    assert (side.goal, rules.militia(side)) == (1.0, 0.0)
    side = command(3674, observation.WORKERS, ground.ENEMY_HOME)
    assert rules.militia(side) == side.workers - rules.HOME_GUARD
    side = command(3666, observation.WORKERS, ground.HOME)
    assert rules.militia(side) == 0.0
    side = command(16, SOLDIERS, ground.HOME)
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


def test_units_that_die_are_named_once() -> None:
    """Otherwise a bot remembers an army that was beaten as one that is out of sight."""

    def dead(*, ours: float, theirs: float, halls: float = 1.0, loop: int = 800) -> list[int]:
        sides = (rules.Side(army=ours), rules.Side(army=theirs, halls=halls))
        data = view.observation(rules.MatchState(loop, sides), result=None)
        response = sc_pb.Response.FromString(data)
        return list(response.observation.observation.raw_data.event.dead_units)

    view = observation.MatchView("Zerg", "Terran")
    assert dead(ours=5.0, theirs=8.0, loop=0) == []
    assert dead(ours=5.0, theirs=8.0) == [], "enemies that come into sight were not there before"
    assert dead(ours=4.2, theirs=6.0) == [SOLDIERS + 9, ENEMY + SOLDIERS + 6, ENEMY + SOLDIERS + 7]
    assert dead(ours=4.2, theirs=6.0) == []
    assert dead(ours=6.0, theirs=6.0, halls=0.0) == [ENEMY + HALLS]


@pytest.mark.parametrize("race", list(RACES))
def test_an_army_has_the_hit_points_of_the_rules(race: RaceName) -> None:
    """It is one message that is changed from step to step: larger, smaller, elsewhere."""
    view = observation.MatchView(race, "Terran")
    for army, front in ((6.0, 0.0), (9.5, 0.0), (9.5, 0.5), (3.3, 0.5), (0.0, 0.5), (4.0, 0.0)):
        game = rules.MatchState(8, (rules.Side(army=army, front=front), rules.Side()))
        units = units_of(view, game)
        soldiers = [one for one in units if one.unit_type == RACES[race].soldier.value]
        assert sum(one.health for one in soldiers) == pytest.approx(army * SOLDIER_HP)
        assert all(one.health <= one.health_max for one in soldiers)
        assert len({one.tag for one in units}) == len(units)
        for one in soldiers:
            assert ground.progress(one.pos.x, one.pos.y) == pytest.approx(front, abs=0.06)


def units_of(view: observation.MatchView, game: rules.MatchState) -> list[raw_pb.Unit]:
    response = sc_pb.Response.FromString(view.observation(game, result=None))
    return list(response.observation.observation.raw_data.units)


@pytest.mark.parametrize("build", players.BUILDS)
def test_every_state_of_a_match_can_be_shown(build: str) -> None:
    """With strategies drawn at random: they lead to states that no sensible player reaches."""
    for seed in range(15):
        chance, (game, opponent) = random.Random(seed), players.drawn(seed, build)
        view, strategy = observation.MatchView("Zerg", "Terran"), ""
        while rules.outcome(game) is None:
            if game.loop % 88 == 0:
                strategy = chance.choice(players.STRATEGIES)
                tags = [one.tag for one in units_of(view, game)]
                assert len(set(tags)) == len(tags)
            ours, theirs = game.sides
            game = game._replace(sides=(players.ordered(ours, strategy, game.loop), theirs))
            game = rules.advance(players.answered(game, opponent), players.GAME_STEP)


def test_a_townhall_more_than_there_are_places_for_is_not_shown() -> None:
    """A side that builds anew what was half razed has 3.4 of them."""
    game = rules.MatchState(800, (rules.Side(halls=3.4), rules.Side(halls=3.4)))
    units = units_of(observation.MatchView("Zerg", "Terran"), game)
    for race in ("Zerg", "Terran"):
        assert sum(one.unit_type == RACES[race].hall.value for one in units) == 3


# --- the socket in this process ------------------------------------------------------------------


@pytest.mark.parametrize("build", ["Rush", "Macro"])
def test_a_match_goes_alike_through_both_sockets(tmp_path: Path, build: str) -> None:
    scenario = Scenario(seed=4, build=build)

    async def over_network(bot: PassiveBot) -> object:
        return await play_match(bot, bot.strategist, scenario)

    async def in_process(bot: PassiveBot) -> object:
        return await play_async(play(stand_in.local_socket(scenario), bot), bot.strategist)

    found = []
    for way in (over_network, in_process):
        run = tmp_path / way.__name__
        with open_mind(run) as mind:
            bot = PassiveBot(mind, game_step=22)
            result = asyncio.run(way(bot))
        (kept,) = episodes(run)
        found.append((result, bot.state.game_loop, kept.observations.tolist()))
    assert found[0] == found[1]


def test_one_socket_plays_one_match_after_the_other(tmp_path: Path) -> None:
    async def loops(seeds: tuple[int, ...], matches: int) -> list[int]:
        found = []
        for seed in seeds:
            socket = stand_in.local_socket(Scenario(seed=seed))
            for _ in range(matches):
                bot = PassiveBot(mind)
                await play_async(play(socket, bot, should_close=False), bot.strategist)
                found.append(bot.state.game_loop)
        return found

    with open_mind(tmp_path) as mind:
        one_after_the_other = asyncio.run(loops((4,), 3))
        assert one_after_the_other == asyncio.run(loops((4, 5, 6), 1))


def test_a_local_socket_that_closes_ends_the_match(tmp_path: Path) -> None:
    async def closes(bot: PassiveBot) -> object:
        return await play_async(play(socket, bot), bot.strategist)

    socket = stand_in.local_socket(Scenario(peaceful=True, closes_at=400))
    with open_mind(tmp_path) as mind:
        bot = PassiveBot(mind)
        assert asyncio.run(closes(bot)) is None
        assert socket.closed
        assert asyncio.run(closes(PassiveBot(mind))) is None, "a write to a closed socket"
    (kept,) = episodes(tmp_path)
    assert kept.meta.outcome is Outcome.ABORTED


def test_a_match_over_a_local_socket_can_be_cancelled(tmp_path: Path) -> None:
    """As Ctrl-C does: the task is cancelled where it waits, and the match is kept."""

    async def cancelled(bot: PassiveBot) -> None:
        socket = stand_in.local_socket(Scenario(peaceful=True))
        task = asyncio.create_task(play_async(play(socket, bot), bot.strategist))
        while bot.strategist.match is None or bot.strategist.match.decisions < 3:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with open_mind(tmp_path) as mind:
        asyncio.run(cancelled(PassiveBot(mind)))
    (kept,) = episodes(tmp_path)
    assert kept.meta.outcome is Outcome.ABORTED
    assert len(kept) >= 3


def play(socket: Any, bot: PassiveBot, *, should_close: bool = True) -> Coroutine[Any, Any, Any]:
    player = Bot(Race.Zerg, bot)
    return play_from_websocket(socket, player, False, NO_PORTS, should_close=should_close)


def test_a_broken_scenario_names_its_file(tmp_path: Path) -> None:
    folder = stand_in.install(tmp_path, Scenario(seed=9, build="Rush"), maps=("AcropolisLE",))
    assert installation._scenario(folder) == Scenario(seed=9, build="Rush")
    assert (folder / "Maps" / "AcropolisLE.SC2Map").is_file()
    (folder / installation.SCENARIO).write_text('{"seed": "nine"}', encoding="utf-8")
    with pytest.raises(FileFormatError, match=r"stand_in\.json.*install the stand-in again"):
        installation._scenario(folder)
