"""Servers in several places, in simulated time, whose segments are judged behind a store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from promotion.runs import assigned
from session.played import ATTACK, ServedGame, publish
from session.sessions import FakeClock
from walk.toys import spool_of

from relay.judged import World
from relay.makers import Machine
from understudy.bot.watcher import Watcher
from understudy.core.config import with_values
from understudy.experience.ledger.recovery import LEDGER
from understudy.policy.policy import Policy
from understudy.promotion.promotion import Promotion
from understudy.registry.run_folder import RunFolder
from understudy.relay.stores import FolderStore, ObjectStore
from understudy.session.shards import Shard

SHARED = {
    "promotion.judge": "learner",
    "promotion.first_matches": 0,
    "promotion.first_share": 0.5,
    "promotion.practice_share": 0.0,
}
LOOK_S = 1.0


class PlacedServer:
    """A served game of one shard, its relay, and the thread that adopts new versions."""

    def __init__(self, world: ServedWorld, number: int, store: ObjectStore) -> None:
        self.world = world
        self.number = number
        self.open(tick=0)
        self.machine = Machine(self.game.folder.root, store, "player", folder=self.game.folder)

    def open(self, *, tick: int) -> None:
        """Start the server, the first time or again, with clients that are at this tick."""
        world, number = self.world, self.number
        self.game = ServedGame(
            world.root / f"server{number}",
            clock=world.clock,
            shard=Shard(number, world.servers),
            reward=lambda action, territory: world.reward(action, number),
            seed=7,
            settings=world.settings,
        )
        self.game.tick = tick
        if world.same_coins:
            sequence = self.game.writer.promotion.state.sequence
            self.game.writer._rng = np.random.default_rng((number, sequence))
        self.watcher = Watcher(
            self.game.folder,
            adopt=self._adopt,
            problem=self.game.problems.append,
            tick=lambda: None,
            playing=0,
        )
        self.watcher.look()

    def _adopt(self, policy: Policy) -> None:
        self.game.newest = policy

    def play(self, seconds: float) -> None:
        self.game.play(seconds)
        while self.game.episodes:
            spool_of(self.game.folder).put(self.game.episodes.pop(0))

    def die(self) -> None:
        """Nothing is written any more: what was open stays open."""
        self.game.ledger.stop()

    def open_again(self) -> None:
        self.open(tick=self.game.tick)


class ServedWorld(World):
    """Servers of one game, and the machine that learns and judges. `same_coins`: those of a server
    are the same in every run of a test; else they are by chance, as they are outside of tests."""

    def __init__(
        self,
        root: Path,
        *,
        servers: int = 2,
        reward: Callable[[str, int], float] = lambda action, shard: float(action == ATTACK),
        settings: Mapping[str, Any] | None = None,
        stores: tuple[ObjectStore, ...] = (),
        same_coins: bool = True,
    ) -> None:
        self.root = root
        self.same_coins = same_coins
        self.servers = servers
        self.reward = reward
        self.settings = {**SHARED, **(settings or {})}
        self.clock = FakeClock()
        self.store = FolderStore("store", root / "store")
        *those, last = stores or (self.store,) * (servers + 1)
        self.placed = [PlacedServer(self, one, store) for one, store in enumerate(those)]
        self.players = [one.machine for one in self.placed]
        made = self.placed[0].game.folder
        config = with_values(made.config, {"promotion.judge": "here"})
        folder = RunFolder.open(
            root / "learner", spec=made.spec, config=config, clock=self.clock, game=""
        )
        (folder.root / LEDGER).mkdir()
        folder.promotion.mkdir()
        self.learner = Machine(folder.root, last, "learner", folder=folder)

    def settle(self, looks: int = 3) -> None:
        super().settle(looks)
        for one in self.placed:
            one.watcher.look()
            one.game.writer.work()

    def play(
        self,
        seconds: float,
        *,
        until: Callable[[], bool] = lambda: False,
        silent: tuple[int, ...] = (),
    ) -> None:
        """Time passes on every server; relays look once a second, but for those of `silent`."""
        began = self.clock.now
        while self.clock.now - began < seconds and not until():
            now = self.clock.now
            for place, one in enumerate(self.placed):
                self.clock.now = now
                one.play(LOOK_S)
                if place not in silent:
                    one.machine.look()
            self.learner.look()
            for one in self.placed:
                one.watcher.look()

    def publish(self, version: int, action: str = ATTACK) -> None:
        """A version that the learner has made."""
        publish(self.learner.folder, version, action)

    def nominate(self, version: int, action: str = ATTACK) -> None:
        self.publish(version, action)
        promotion = Promotion(self.learner.folder)
        assert promotion.nominate(version, experience=1, reason="a test")
        promotion.close()
        self.settle()

    def stop(self) -> None:
        """All servers end, and everything that is over travels."""
        for one in self.placed:
            one.game.segments.stop()
            one.game.writer.close()
        super().settle()


def by_shard(folder: RunFolder) -> Counter[str]:
    """Segments that the log of a run folder has, by shard."""
    return Counter(one.stratum for one in assigned(folder))
