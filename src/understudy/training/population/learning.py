"""Learning of a population: iterations, rounds, and what is kept of both.

`lineage.json` is written before the versions that follow from it, so it always has the settings of
the versions that a session resumes from. A resume drops rounds that no version followed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from understudy.arena.devices import count_devices
from understudy.arena.population import Member, Population
from understudy.arena.results import Iteration
from understudy.core import files
from understudy.core.chance import fold, uniform
from understudy.core.clock import Clock
from understudy.core.config import Config, with_values
from understudy.core.errors import NotFinite, RunFolderError
from understudy.core.ops import NUMPY
from understudy.games import catalog
from understudy.games.base import Bot, Game
from understudy.games.moments import RewardSet
from understudy.league.lineage import Lineage, LineageRow, Settings
from understudy.league.selection import Limits, first_settings, held_round, standings
from understudy.learner.trainer import Trainer
from understudy.registry.checkpoints import STEPS
from understudy.registry.run_folder import RunFolder, holds_run
from understudy.supervise.interrupts import Interrupts
from understudy.supervise.lock import learner_lock
from understudy.telemetry import events
from understudy.telemetry.journal import Journal
from understudy.training.learning import Learning
from understudy.training.monitoring import Monitoring
from understudy.training.population.agent import Agent, aligned, name_of, seed_of, shaped
from understudy.training.population.best_agent import BestAgent
from understudy.training.population.session import PopulationProgress, PopulationSummary
from understudy.training.schedule import resume_training
from understudy.training.session import TrainSession
from understudy.training.stage_plan import StagePlan, scripted_opponents

_TRIES = 3
NETWORK, MATCHES, OPPONENTS = range(3)
"""What the seed of an agent is used for."""


@dataclass(frozen=True)
class PopulationContext:
    """What all agents of a session share: the game, the stage plan, the run folders."""

    session: TrainSession
    stages: StagePlan
    clock: Clock
    game: Game
    """Made once: one program is compiled for one game."""
    bots: Mapping[str, Bot]
    rewards: RewardSet
    measures: RewardSet

    @classmethod
    def of(cls, session: TrainSession, stages: StagePlan, clock: Clock) -> PopulationContext:
        bots = scripted_opponents(session.game, session.game_options)
        return cls(
            session,
            stages,
            clock,
            game=catalog.make(session.game, **session.game_options),
            bots={name: bots[name] for name in stages.bots if name in bots},
            rewards=stages.rewards,
            measures=RewardSet.of(catalog.measures(session.game)),
        )

    @property
    def config(self) -> Config:
        return self.session.config

    @property
    def seed(self) -> int:
        return self.config.learner.seed

    def open(self, name: str, config: Config) -> RunFolder:
        """Open the run folder of an agent, or without a name that of the population. It uses
        `config` from now on; a folder that exists stores it only at `keep`."""
        root = self.session.run / name
        stored = None if holds_run(root) else config
        folder = self.session.open_folder(root, stored, self.clock)
        folder.config = config
        return folder

    def keep(self, root: Path, config: Config) -> RunFolder:
        """Store the settings of a folder that exists."""
        return self.session.open_folder(root, config, self.clock)

    def config_of(self, number: int, settings: Settings) -> Config:
        """The settings of an agent's own run folder; with them a session can resume it alone."""
        config, names = self.config, self.stages.rewards.names
        weights = dict(config.rewards.weights)
        if settings.shaping != 1.0:
            own = shaped(names, self.stages.weights(0), settings.shaping)
            weights |= dict(zip(names, map(float, own), strict=True))
        # The population searches for the learning rate, so no schedule may adapt it.
        schedule = "constant" if config.train.schedule == "adaptive" else config.train.schedule
        return with_values(
            config,
            {
                "learner.seed": seed_of(self.seed, NETWORK, number),
                "learner.learning_rate": settings.learning_rate,
                "learner.entropy_weight": settings.entropy_weight,
                "rewards.weights": weights,
                "train.schedule": schedule,
                "population.agents": 1,
            },
        )

    def member(self, trainer: Trainer, *, seed: int) -> Member:
        """An agent's part of the compiled program."""
        return Member(
            trainer,
            self.config,
            self.game,
            self.bots,
            meets_itself=self.stages.meets_itself,
            rewards=self.rewards,
            measures=self.measures,
            kinds=self.stages.kinds,
            seed=seed,
        )


class PopulationLearning(Learning[PopulationProgress]):
    """The agents of one session; as a context it holds all locks."""

    def __init__(
        self,
        session: TrainSession,
        stages: StagePlan,
        clock: Clock,
        first: Sequence[Settings] | None,
    ) -> None:
        self.progress = PopulationProgress(session)
        self._context = PopulationContext.of(session, stages, clock)
        self._first = first
        self._stack = contextlib.ExitStack()
        self._failures = 0
        learner = session.config.learner
        self._limits = Limits((learner.learning_rate_min, learner.learning_rate_max))

    def __enter__(self) -> Self:
        with self._stack:
            context = self._context
            self._stack.enter_context(learner_lock(context.session.run))
            folder = context.open("", context.config)
            self.best_agent = BestAgent(folder, Journal(folder.journal, "train", context.clock))
            lineage = self.best_agent.known(context.config.population.agents) or self._beginning()
            steps = aligned(self._folders(lineage))
            self.lineage = lineage.until(steps)
            self.agents = [
                self._agent(number, settings, steps)
                for number, settings in enumerate(self.lineage.settings, start=1)
            ]
            self._population = Population(
                [agent.member for agent in self.agents],
                devices=count_devices(context.session.devices),
            )
            # Not before: a session that was refused leaves all settings as they were.
            for one in (folder, *(agent.folder for agent in self.agents)):
                context.keep(one.root, one.config)
            for agent in self.agents:
                self._monitor(agent)
            self.best_agent.write(self.lineage)
            self._order()
            if self.lineage.rounds:
                self._assign_opponents()
            super().__enter__()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        with self._stack:
            super().__exit__(kind, *rest)

    def journals(self) -> list[tuple[Journal, int]]:
        agents = ((agent.journal, agent.version) for agent in self.agents)
        return [(self.best_agent.journal, self.best_agent.version), *agents]

    def keep(self) -> None:
        self.commit()
        self.best_agent.draw(self.lineage, self.fitness, best=self.best, steps=self.steps)

    def _beginning(self) -> Lineage:
        config = self._context.config
        first = self._first or first_settings(
            Settings(config.learner.learning_rate, config.learner.entropy_weight),
            agents=config.population.agents,
            spread=config.population.spread,
            limits=self._limits,
            seed=self._context.seed,
        )
        return Lineage(first=tuple(first))

    def _folders(self, lineage: Lineage) -> list[RunFolder]:
        """Those of all agents, locked."""
        context, folders = self._context, []
        for number, settings in enumerate(lineage.settings, start=1):
            root = context.session.run / name_of(number)
            files.make_folders(root)
            self._stack.enter_context(learner_lock(root))
            folders.append(context.open(root.name, context.config_of(number, settings)))
        return folders

    def _agent(self, number: int, settings: Settings, steps: int) -> Agent:
        context = self._context
        folder = context.open(name_of(number), context.config_of(number, settings))
        journal = Journal(folder.journal, "train", context.clock)
        trainer = Trainer(folder.spec, folder.config.learner)
        checkpoints, schedule = resume_training(folder, journal, trainer)
        schedule.begin(context.session.budget)
        seed = seed_of(context.seed, MATCHES, number, checkpoints.counters.get(STEPS, 0))
        member = context.member(trainer, seed=seed)
        agent = Agent(number, folder, journal, checkpoints, schedule, member)
        if agent.steps != steps:
            raise RunFolderError(
                f"{folder.root}: this agent is at {agent.steps:,} steps, the others at {steps:,}; "
                "was it rolled back? A population goes on from where all agents are"
            )
        return agent

    def _monitor(self, agent: Agent) -> None:
        folder = agent.folder
        monitoring = Monitoring(
            folder, folder.config.monitor, at_steps=agent.steps, clock=folder.clock
        )
        self._stack.enter_context(contextlib.closing(monitoring))
        agent.journal.follow(monitoring.add)

    @property
    def steps(self) -> int:
        """Of each agent."""
        return self.agents[0].steps

    @property
    def steps_an_iteration(self) -> int:
        """Of each agent."""
        return self.agents[0].member.steps_an_iteration

    @property
    def due(self) -> bool:
        """Whether it is time for a round."""
        return self.steps - self.lineage.steps >= self._context.config.population.interval_steps

    def begin(self) -> None:
        progress = self.progress
        progress.steps = progress.earlier = self.steps
        progress.version, progress.rounds = self.best_agent.version, self.lineage.rounds

    def iterate(self, stop: Callable[[], bool]) -> bool:
        progress, share = self.progress, self.progress.share
        for agent, settings in zip(self.agents, self.lineage.settings, strict=True):
            agent.follow(settings, share)
        progress.note_all(self._iteration(), self.steps_an_iteration)
        # No round at the very end: its copies would never have played.
        if self.due and progress.share < 1.0 and not stop():
            progress.note_round(self.round())
        progress.fitness, progress.best = self.fitness, self.best
        progress.version = self.best_agent.version
        return True

    def finish(self, interrupts: Interrupts, show: Callable[[PopulationProgress], None]) -> None:
        """Nothing: `keep` commits and draws."""

    def summary(self, code: int) -> PopulationSummary:
        """The summary of the session."""
        return PopulationSummary.of(
            self.progress,
            code=code,
            version=self.best_agent.version,
            best=self.best,
            fitness=self.fitness,
            settings=self.lineage.settings,
            lineage=self.lineage,
        )

    def _iteration(self) -> list[Iteration | NotFinite]:
        """One iteration of all agents; an error where none of them could learn three times."""
        began = time.monotonic()
        found = self._population.iterate()
        seconds = time.monotonic() - began
        for agent, one in zip(self.agents, found, strict=True):
            agent.note(one, seconds=seconds)
        broken = [one for one in found if isinstance(one, NotFinite)]
        self._failures = self._failures + 1 if len(broken) == len(found) else 0
        if self._failures == _TRIES:
            raise broken[0]
        # A round commits by itself: from a version just before it a session would resume without
        # the round.
        if self.agents[0].due and not self.due:
            self.commit()
        return found

    def round(self) -> tuple[LineageRow, ...]:
        """Replace the agents that are surely among the worst; then commit all."""
        context, population = self._context, self._context.config.population
        rows = held_round(
            number=self.lineage.rounds + 1,
            steps=self.steps,
            evidence=[agent.evidence for agent in self.agents],
            settings=self.lineage.settings,
            broken=[agent.broken for agent in self.agents],
            replaced=population.replaced,
            spread=population.spread,
            limits=self._limits,
            seed=context.seed,
        )
        self.lineage = self.lineage.after(rows)
        learned = {
            row.parent: self.agents[row.parent - 1].member.trainer.snapshot()
            for row in rows
            if row.replaced
        }
        for row, agent in zip(rows, self.agents, strict=True):
            if row.replaced:
                seed = seed_of(context.seed, MATCHES, agent.number, self.steps)
                agent.become(learned[row.parent], parent=row.parent, seed=seed)
                self._journal_replacement(row, agent)
            config = context.config_of(agent.number, row.after)
            agent.new_round(context.keep(agent.folder.root, config))
        self.best_agent.write(self.lineage)
        self._order()
        self.commit()
        self._assign_opponents()
        return tuple(rows)

    def commit(self) -> None:
        """Make a version of every agent, and one of the run itself with the best one's weights."""
        for agent in self.agents:
            agent.commit()
        self.best_agent.publish(self.agents[self.best - 1])
        self.best_agent.tabulate(self.lineage)

    @property
    def fitness(self) -> tuple[float | None, ...]:
        """Of each agent in this round so far. Until all agents have enough matches: in the last
        round, where a copy has the fitness of its parent."""
        found = standings([agent.evidence for agent in self.agents])
        last = self.lineage.of_round(self.lineage.rounds) if self.lineage.rounds else ()
        if last and None in found:
            return tuple(row.parent_fitness for row in last)
        return tuple(None if one is None else one.fitness for one in found)

    @property
    def best(self) -> int:
        """The agent of the highest fitness, a parent before its copy; agent 1 where no fitness is
        known."""
        last = self.lineage.of_round(self.lineage.rounds) if self.lineage.rounds else ()
        copies = [row.replaced for row in last] or [False] * len(self.agents)
        ranks = [
            (-1.0 if one is None else one, not copy)
            for one, copy in zip(self.fitness, copies, strict=True)
        ]
        return 1 + ranks.index(max(ranks))

    def _order(self) -> None:
        stages = self._context.stages
        for agent, settings in zip(self.agents, self.lineage.settings, strict=True):
            weights = shaped(stages.rewards.names, stages.weights(0), settings.shaping)
            agent.member.order(stages.mix, weights)

    def _assign_opponents(self) -> None:
        """Draw for every group of columns an agent as it was at the last round."""
        if not self._context.stages.meets_itself:
            return
        weights = [agent.weights_at(self.lineage.steps) for agent in self.agents]
        key = np.full(1, seed_of(self._context.seed, OPPONENTS, self.lineage.rounds), np.uint32)
        for agent in self.agents:
            snapshots = agent.member.snapshots
            groups = np.arange(len(snapshots.met), dtype=np.uint32)
            for group, drawn in enumerate(uniform(NUMPY, fold(key, agent.number), groups)[:, 0]):
                other = int(drawn * len(self.agents))
                name = f"{name_of(other + 1)}@{self.lineage.rounds}"
                snapshots.offer(group, name, lambda params=weights[other]: params)  # type: ignore[misc]

    def _journal_replacement(self, row: LineageRow, agent: Agent) -> None:
        event = events.AgentReplaced(
            steps=row.steps,
            agent=row.agent,
            parent=row.parent,
            fitness=row.fitness or 0.0,
            parent_fitness=row.parent_fitness or 0.0,
            settings=row.after.as_dict(),
        )
        self.best_agent.journal.write(event)
        agent.journal.write(event)
