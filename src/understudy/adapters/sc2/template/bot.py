"""A Zerg bot: five strategies, rules that choose among them, and a policy that learns to.

Change what you like. `STRATEGIES` says what each strategy does, `LearningBot.rules` which one your
rules choose; name the rules anew in run.py (RULES) when you change them. A strategy is asked for in
every step and buys one thing of a kind at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from sc2.bot_ai import BotAI
from sc2.data import Result
from sc2.ids.ability_id import AbilityId
from sc2.ids.unit_typeid import UnitTypeId
from sc2.ids.upgrade_id import UpgradeId
from sc2.position import Point2
from sc2.unit import Unit

from understudy import Understudy
from understudy.sc2 import Strategist

ATTACKERS, ALL_IN_ARMY = 12, 16
"""Zerglings with which AGGRESSIVE attacks; ALL_IN needs so many."""
WORKERS_MOST, HALLS_MOST, CRAWLERS, STAY_HOME = 44, 3, 4, 6
UPGRADES = (
    UpgradeId.ZERGMELEEWEAPONSLEVEL1,
    UpgradeId.ZERGGROUNDARMORSLEVEL1,
    UpgradeId.ZERGMISSILEWEAPONSLEVEL1,
)
DRONE_EGG, OVERLORD_EGG = AbilityId.LARVATRAIN_DRONE, AbilityId.LARVATRAIN_OVERLORD
ORDERS_EVERY = 44
"""Game loops after which the army is told again where to go."""


class LearningBot(BotAI):
    """Follows the strategy that its strategist chooses."""

    distance_calculation_method = 0
    """Distances are computed when they are asked for, not all of them in every step."""

    def __init__(self, mind: Understudy, *, opponent: str = "", game_step: int = 8) -> None:
        super().__init__()
        self.strategist = Strategist(self, mind, STRATEGIES)
        self.opponent_id = opponent or None
        self.army: list[Unit] = []
        """Our zerglings."""
        self.hatching: Counter[AbilityId] = Counter()
        """What is in eggs."""
        self.pool: Unit | None = None
        """Our spawning pool, also while it is being built."""
        self.pulled = False
        """Whether workers were sent along with the army."""
        self.army_target: Point2 | None = None
        self.ordered_at = 0
        self._game_step = game_step

    async def on_start(self) -> None:
        """A match begins."""
        self.client.game_step = self._game_step
        self.strategist.start()

    async def on_step(self, iteration: int) -> None:
        """Every few game loops: follow the strategy."""
        if not self.townhalls:
            return  # nothing left to decide: the game is lost
        self.count_units()
        strategy = self.strategist.step(
            fallback=self.rules, legal={"ALL_IN": len(self.army) >= ALL_IN_ARMY}
        )
        await self.keep_house()
        if self.save_for_overlords():
            STRATEGIES[strategy](self)

    async def on_end(self, game_result: Result) -> None:
        """A match ends; `understudy.sc2.play` sees to those that end without this."""
        self.strategist.end(game_result)

    # --- rules ---------------------------------------------------------------------------------

    def rules(self) -> str:
        """What a person would write on the first evening."""
        if self.enemy_at_the_door():
            return "DEFENSIVE"
        if self.workers.amount < 24:
            return "ECONOMY"
        return "AGGRESSIVE"

    def enemy_at_the_door(self) -> bool:
        """Whether some of the enemy's units are on our third of the map."""
        start, enemy = self.start_location, self.enemy_start_locations[0]
        near = self.enemy_units.closer_than(0.4 * start.distance_to(enemy), start)
        return near.amount >= 3

    # --- what strategies are made of -----------------------------------------------------------

    def count_units(self) -> None:
        """Sorts our units once in a step, in place of many filters over all of them."""
        self.army, eggs = [], []
        for unit in self.units:
            kind = unit.type_id
            if kind is UnitTypeId.ZERGLING:
                self.army.append(unit)
            elif kind is UnitTypeId.EGG:
                eggs.append(unit)
        self.pool = next(iter(self.structures(UnitTypeId.SPAWNINGPOOL)), None)
        self.hatching = Counter(order.ability.exact_id for egg in eggs for order in egg.orders)

    async def keep_house(self) -> None:
        """What every strategy needs: a spawning pool, gas, and workers that work."""
        if self.idle_worker_count:
            await self.distribute_workers()
        if self.pool is None:
            if self.workers.amount >= 14 and not self.already_pending(UnitTypeId.SPAWNINGPOOL):
                await self.build_near_home(UnitTypeId.SPAWNINGPOOL)
        elif not self.gas_buildings and not self.already_pending(UnitTypeId.EXTRACTOR):
            geysers = self.vespene_geyser.closer_than(12, self.start_location)
            if geysers and self.workers and self.can_afford(UnitTypeId.EXTRACTOR):
                self.workers.random.build_gas(geysers.first)

    def save_for_overlords(self) -> bool:
        """Trains an overlord where supply runs out; False: it is saved for, so buy nothing."""
        overlord = UnitTypeId.OVERLORD
        if self.supply_left >= 4 or self.supply_cap >= 200 or self.hatching[OVERLORD_EGG]:
            return True
        return self.hatch(overlord) or self.minerals >= 100

    def hatch(self, unit: UnitTypeId) -> bool:
        """Makes one unit of a larva, if that can be paid for."""
        free = [one for one in self.larva if one.tag not in self.unit_tags_received_action]
        if not free or not self.can_afford(unit):
            return False
        return bool(free[0].train(unit))

    async def build_near_home(self, structure: UnitTypeId) -> None:
        """Builds a structure beside the first townhall."""
        if self.can_afford(structure):
            towards = self.game_info.map_center
            await self.build(structure, near=self.townhalls.first.position.towards(towards, 5))

    def build_at(self, structure: UnitTypeId, place: Point2) -> None:
        """Sends a worker to build at a place; it must be free."""
        if self.workers and self.can_afford(structure):
            self.workers.closest_to(place).build(structure, place)

    def hatch_worker(self) -> None:
        """One more drone, up to the limit."""
        if self.workers_soon < WORKERS_MOST:
            self.hatch(UnitTypeId.DRONE)

    @property
    def workers_soon(self) -> int:
        """Drones, with those in eggs."""
        return self.workers.amount + self.hatching[DRONE_EGG]

    def hatch_soldier(self) -> None:
        """Two more zerglings."""
        if self.pool is not None and self.pool.is_ready:
            self.hatch(UnitTypeId.ZERGLING)

    def send_army(self, target: Point2, *, workers: bool = False) -> None:
        """Sends the army to a place, with all workers but a few or with none."""
        loop = self.state.game_loop
        if target == self.army_target and loop - self.ordered_at < ORDERS_EVERY:
            return
        self.army_target, self.ordered_at = target, loop
        for unit in self.army:
            unit.attack(target)
        if workers:
            for worker in self.workers[STAY_HOME:]:
                worker.attack(target)
        elif self.pulled:
            for worker in self.workers.filter(lambda one: one.is_attacking):
                worker.gather(self.mineral_field.closest_to(self.start_location))
        self.pulled = workers

    @property
    def enemy_base(self) -> Point2:
        """Where to attack: a structure that was seen, else where the enemy started."""
        seen = self.enemy_structures
        return seen.first.position if seen else self.enemy_start_locations[0]


# --- the five strategies -------------------------------------------------------------------------


def economy(bot: LearningBot) -> None:
    """Drones and hatcheries; the army stays at home."""
    bot.send_army(bot.start_location)
    halls = bot.townhalls.amount
    if (
        bot.workers_soon >= 14 * halls
        and halls < HALLS_MOST
        and bot.townhalls.ready.amount == halls
    ):
        places: list[Point2] = bot.expansion_locations_list
        free = [place for place in places if not _taken(bot, place)]
        if free:
            if not bot.can_afford(UnitTypeId.HATCHERY):
                return  # save for it
            nearest = min(free, key=bot.start_location.distance_to)
            bot.build_at(UnitTypeId.HATCHERY, nearest)
    if bot.workers_soon < 16 * halls + 4:
        bot.hatch_worker()


def aggressive(bot: LearningBot) -> None:
    """Zerglings, and an attack as soon as there are enough."""
    attacks = len(bot.army) >= ATTACKERS
    bot.send_army(bot.enemy_base if attacks else bot.start_location)
    if bot.workers_soon < 16:
        bot.hatch_worker()
    bot.hatch_soldier()


def defensive(bot: LearningBot) -> None:
    """Spine crawlers and zerglings at home."""
    bot.send_army(bot.start_location)
    crawlers = bot.structures(UnitTypeId.SPINECRAWLER).amount
    ready = bot.pool is not None and bot.pool.is_ready
    if ready and crawlers < CRAWLERS and len(bot.army) >= 2 * crawlers:
        if not bot.can_afford(UnitTypeId.SPINECRAWLER):
            return
        front = bot.start_location.towards(bot.enemy_start_locations[0], 6 + crawlers % 2 * 2)
        bot.build_at(UnitTypeId.SPINECRAWLER, front.rounded)
    bot.hatch_soldier()


def tech(bot: LearningBot) -> None:
    """An evolution chamber, upgrades and drones; the army stays at home."""
    bot.send_army(bot.start_location)
    chambers = bot.structures(UnitTypeId.EVOLUTIONCHAMBER)
    if not chambers:
        if not bot.can_afford(UnitTypeId.EVOLUTIONCHAMBER):
            return
        place = bot.start_location.towards(bot.game_info.map_center, -5).rounded
        bot.build_at(UnitTypeId.EVOLUTIONCHAMBER, place)
    elif chambers.ready.idle:
        missing = [one for one in UPGRADES if one not in bot.state.upgrades]
        if missing and bot.vespene >= bot.calculate_cost(missing[0]).vespene:
            if not bot.can_afford(missing[0]):
                return
            chambers.ready.idle.first.research(missing[0])
    if bot.workers_soon < 16 * bot.townhalls.amount:
        bot.hatch_worker()


def all_in(bot: LearningBot) -> None:
    """Zerglings and nearly all drones attack at once."""
    bot.send_army(bot.enemy_base, workers=True)
    bot.hatch_soldier()


def _taken(bot: LearningBot, place: Point2) -> bool:
    return bool(bot.townhalls.closer_than(4, place))


STRATEGIES: dict[str, Callable[[LearningBot], None]] = {
    "ECONOMY": economy,
    "AGGRESSIVE": aggressive,
    "DEFENSIVE": defensive,
    "TECH": tech,
    "ALL_IN": all_in,
}
