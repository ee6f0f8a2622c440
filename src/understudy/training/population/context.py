"""What all agents of a population share: the game, the course, and where everything lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from understudy.arena.population import Member
from understudy.core.clock import Clock
from understudy.core.config import Config
from understudy.games import catalog
from understudy.games.base import Bot, Game
from understudy.games.moments import RewardSet
from understudy.league.lineage import Settings
from understudy.learner.trainer import Trainer
from understudy.policy.spec import PolicySpec
from understudy.registry.run_folder import RunFolder, holds_run
from understudy.training.population.agent import config_of, seed_of, shaped
from understudy.training.session import TrainSession
from understudy.training.stage_plan import StagePlan

NETWORK, MATCHES, RIVALS = range(3)
"""What a seed is for."""


@dataclass(frozen=True)
class PopulationContext:
    """One session's."""

    session: TrainSession
    course: StagePlan
    clock: Clock
    game: Game
    """Made once: one program is compiled for one game."""
    bots: Mapping[str, Bot]
    rewards: RewardSet
    measures: RewardSet

    @classmethod
    def of(cls, session: TrainSession, course: StagePlan, clock: Clock) -> PopulationContext:
        """Of the game that the session names."""
        bots = catalog.bots(session.game, **session.game_options)
        return cls(
            session,
            course,
            clock,
            game=catalog.make(session.game, **session.game_options),
            bots={name: bots[name] for name in course.bots},
            rewards=course.rewards,
            measures=RewardSet.of(catalog.measures(session.game)),
        )

    @property
    def config(self) -> Config:
        """Of the population; agents have changed ones."""
        return self.session.config

    @property
    def seed(self) -> int:
        """Everything comes from."""
        return self.config.learner.seed

    def open(self, name: str, config: Config) -> RunFolder:
        """The run folder of that name in the population's, or, without a name, that itself; made
        with these settings, or as it is: until `keep` it works by them, but does not hold them."""
        root = self.session.run / name
        folder = self._open(root, None if holds_run(root) else config)
        folder.config = config
        return folder

    def keep(self, folder: RunFolder) -> None:
        """The settings that the folder works by become those that it holds."""
        self._open(folder.root, folder.config)

    def _open(self, root: Path, config: Config | None) -> RunFolder:
        session, game = self.session, self.game
        return RunFolder.open(
            root,
            spec=PolicySpec(game.features, game.actions, session.network),
            config=config,
            clock=self.clock,
            game=f"{game.name} {game.version}",
            game_options=session.game_options,
        )

    def config_of(self, number: int, settings: Settings) -> Config:
        """What the agent's own run folder says."""
        names, weights = self.course.rewards.names, self.course.weights(0)
        own = dict(zip(names, map(float, shaped(names, weights, settings.shaping)), strict=True))
        return config_of(
            self.config,
            settings,
            seed=seed_of(self.seed, NETWORK, number),
            weights=own if settings.shaping != 1.0 else {},
        )

    def member(self, trainer: Trainer, *, seed: int) -> Member:
        """The agent's place in the program."""
        return Member(
            trainer,
            self.config,
            self.game,
            self.bots,
            meets_itself=self.course.meets_itself,
            rewards=self.rewards,
            measures=self.measures,
            kinds=self.course.kinds,
            seed=seed,
        )
