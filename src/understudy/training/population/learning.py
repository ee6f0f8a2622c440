"""Learning of a population: iterations, rounds, and what is kept of both.

`lineage.json` is written before the versions that follow from it, so it always knows the settings
of whatever is gone on from; rounds that no version followed are dropped when a session goes on.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from typing import Self

import numpy as np

from understudy.arena.population import Population
from understudy.arena.results import Iteration
from understudy.core import files
from understudy.core.chance import fold, uniform
from understudy.core.clock import Clock
from understudy.core.errors import NotFinite, RunFolderError, UnderstudyError
from understudy.core.ops import NUMPY
from understudy.league.lineage import Lineage, LineageRow, Settings
from understudy.league.selection import Limits, first_settings, held_round, standings
from understudy.learner.trainer import Trainer
from understudy.registry.run_folder import RunFolder
from understudy.supervise.lock import learner_lock
from understudy.telemetry import events
from understudy.telemetry.journal import Journal
from understudy.training.checkpoints import STEPS, Keeper
from understudy.training.monitoring import Monitoring
from understudy.training.population.agent import Agent, aligned, name_of, seed_of, shaped
from understudy.training.population.best_agent import BestAgent
from understudy.training.population.context import MATCHES, RIVALS, PopulationContext
from understudy.training.session import TrainSession
from understudy.training.stage_plan import StagePlan

_TRIES = 3


class PopulationLearning:
    """The agents of one session; use it as a context, which holds all locks."""

    def __init__(
        self,
        session: TrainSession,
        course: StagePlan,
        clock: Clock,
        first: Sequence[Settings] | None,
    ) -> None:
        self._frame = PopulationContext.of(session, course, clock)
        self._first = first
        self._stack = contextlib.ExitStack()
        self._failures = 0
        learner = session.config.learner
        self._limits = Limits((learner.learning_rate_min, learner.learning_rate_max))

    def __enter__(self) -> Self:
        with self._stack:
            frame = self._frame
            self._stack.enter_context(learner_lock(frame.session.run))
            folder = frame.open("", frame.config)
            self.front = BestAgent(folder, Journal(folder.journal, "train", frame.clock))
            lineage = self.front.known(frame.config.population.agents) or self._beginning()
            steps = aligned(self._folders(lineage))
            self.lineage = lineage.until(steps)
            self.agents = [
                self._agent(number, settings, steps)
                for number, settings in enumerate(self.lineage.settings, start=1)
            ]
            self._population = Population([agent.member for agent in self.agents])
            # Not before: a session that was refused leaves all settings as they were.
            for one in (folder, *(agent.folder for agent in self.agents)):
                frame.keep(one)
            for agent in self.agents:
                self._monitor(agent)
            self.front.write(self.lineage)
            self._order()
            if self.lineage.rounds:
                self._seat()
            started = events.LearnerStarted(pid=os.getpid(), version=self.front.version, pending=0)
            self.front.journal.write(started)
            for agent in self.agents:
                agent.started()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """What was learned is kept, whatever ended it."""
        with self._stack:
            try:
                if kind is None or issubclass(kind, UnderstudyError):
                    self.commit()
                    self.front.draw(self.lineage, self.fitness, best=self.best, steps=self.steps)
            finally:
                reason = "done" if kind is None else f"ended by {kind.__name__}"
                for journal in (self.front.journal, *(agent.journal for agent in self.agents)):
                    journal.write(events.LearnerStopped(reason=reason, pending=0))

    def _beginning(self) -> Lineage:
        config = self._frame.config
        first = self._first or first_settings(
            Settings(config.learner.learning_rate, config.learner.entropy_weight),
            agents=config.population.agents,
            spread=config.population.spread,
            limits=self._limits,
            seed=self._frame.seed,
        )
        return Lineage(first=tuple(first))

    def _folders(self, lineage: Lineage) -> list[RunFolder]:
        """Those of all agents, locked."""
        frame, folders = self._frame, []
        for number, settings in enumerate(lineage.settings, start=1):
            root = frame.session.run / name_of(number)
            files.make_folders(root)
            self._stack.enter_context(learner_lock(root))
            folders.append(frame.open(root.name, frame.config_of(number, settings)))
        return folders

    def _agent(self, number: int, settings: Settings, steps: int) -> Agent:
        frame = self._frame
        folder = frame.open(name_of(number), frame.config_of(number, settings))
        journal = Journal(folder.journal, "train", frame.clock)
        trainer = Trainer(folder.spec, folder.config.learner)
        keeper = Keeper(folder, journal, trainer)
        seed = seed_of(frame.seed, MATCHES, number, keeper.resume().get(STEPS, 0))
        keeper.begin(frame.session.budget)
        agent = Agent(number, folder, journal, keeper, frame.member(trainer, seed=seed))
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
        return self.steps - self.lineage.steps >= self._frame.config.population.interval_steps

    def follow(self, share: float) -> None:
        """Everyone learns by its settings, with this share of the budget spent."""
        for agent, settings in zip(self.agents, self.lineage.settings, strict=True):
            agent.follow(settings, share)

    def iterate(self) -> list[Iteration | NotFinite]:
        """One iteration of everyone; an error where none of them could learn, again and again."""
        began = time.monotonic()
        found = self._population.iterate()
        seconds = time.monotonic() - began
        for agent, one in zip(self.agents, found, strict=True):
            agent.note(one, seconds=seconds)
        broken = [one for one in found if isinstance(one, NotFinite)]
        self._failures = self._failures + 1 if len(broken) == len(found) else 0
        if self._failures == _TRIES:
            raise broken[0]
        # A round keeps everyone itself: a version just before it would be one that a resume goes
        # on from without the round.
        if self.agents[0].due and not self.due:
            self.commit()
        return found

    def round(self) -> tuple[LineageRow, ...]:
        """Whoever is surely among the worst gives way; then everyone is kept."""
        frame, population = self._frame, self._frame.config.population
        rows = held_round(
            number=self.lineage.rounds + 1,
            steps=self.steps,
            evidence=[agent.evidence for agent in self.agents],
            settings=self.lineage.settings,
            broken=[agent.broken for agent in self.agents],
            replaced=population.replaced,
            spread=population.spread,
            limits=self._limits,
            seed=frame.seed,
        )
        self.lineage = self.lineage.after(rows)
        learned = {
            row.parent: self.agents[row.parent - 1].member.trainer.snapshot()
            for row in rows
            if row.replaced
        }
        for row, agent in zip(rows, self.agents, strict=True):
            if row.replaced:
                seed = seed_of(frame.seed, MATCHES, agent.number, self.steps)
                agent.become(learned[row.parent], parent=row.parent, seed=seed)
                self._tell(row, agent)
            agent.new_round(frame.config_of(agent.number, row.after))
        self.front.write(self.lineage)
        self._order()
        self.commit()
        self._seat()
        return tuple(rows)

    def commit(self) -> None:
        """Everyone's next version, and the best one's as that of the run itself."""
        for agent in self.agents:
            agent.commit()
        self.front.publish(self.agents[self.best - 1])
        self.front.tabulate(self.lineage)

    @property
    def fitness(self) -> tuple[float | None, ...]:
        """Of each agent, in this round so far; until everyone has enough matches, in the last one,
        and there for a copy that of its parent."""
        found = standings([agent.evidence for agent in self.agents])
        last = self.lineage.of_round(self.lineage.rounds) if self.lineage.rounds else ()
        if last and None in found:
            return tuple(row.parent_fitness for row in last)
        return tuple(None if one is None else one.fitness for one in found)

    @property
    def best(self) -> int:
        """The agent of the highest fitness, of a copy and its parent the parent; the first one
        where nothing is known."""
        last = self.lineage.of_round(self.lineage.rounds) if self.lineage.rounds else ()
        copies = [row.replaced for row in last] or [False] * len(self.agents)
        ranks = [
            (-1.0 if one is None else one, not copy)
            for one, copy in zip(self.fitness, copies, strict=True)
        ]
        return 1 + ranks.index(max(ranks))

    def _order(self) -> None:
        course = self._frame.course
        for agent, settings in zip(self.agents, self.lineage.settings, strict=True):
            weights = shaped(course.rewards.names, course.weights(0), settings.shaping)
            agent.member.order(course.mix, weights)

    def _seat(self) -> None:
        """Every group of slots meets some agent as it was at the last round, drawn anew with
        every round."""
        if not self._frame.course.meets_itself:
            return
        weights = [agent.weights_at(self.lineage.steps) for agent in self.agents]
        key = np.full(1, seed_of(self._frame.seed, RIVALS, self.lineage.rounds), np.uint32)
        for agent in self.agents:
            snapshots = agent.member.snapshots
            groups = np.arange(len(snapshots.met), dtype=np.uint32)
            for group, draw_ in enumerate(uniform(NUMPY, fold(key, agent.number), groups)[:, 0]):
                other = int(draw_ * len(self.agents))
                name = f"{name_of(other + 1)}@{self.lineage.rounds}"
                snapshots.offer(group, name, lambda params=weights[other]: params)  # type: ignore[misc]

    def _tell(self, row: LineageRow, agent: Agent) -> None:
        event = events.AgentReplaced(
            steps=row.steps,
            agent=row.agent,
            parent=row.parent,
            fitness=row.fitness or 0.0,
            parent_fitness=row.parent_fitness or 0.0,
            settings=row.after.as_dict(),
        )
        self.front.journal.write(event)
        agent.journal.write(event)
