"""A session of a population: what it refuses, how far it is, and the summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from understudy.core.errors import ConfigError
from understudy.league.lineage import Lineage, LineageRow, Replacement, Settings, ancestry, founder
from understudy.training.session import ArenaSummary, TrainProgress, TrainSession

if TYPE_CHECKING:
    from understudy.arena.results import Iteration
    from understudy.core.errors import NotFinite


def check_population(session: TrainSession) -> None:
    """An error where the session cannot be that of a population."""
    config, steps = session.config, session.budget.steps
    population = config.population
    if population.agents < 2:
        raise ConfigError(f"--population: expected 2 agents or more, got {population.agents}")
    if config.curriculum.stages:
        raise ConfigError(
            "--population: agents are compared by the same opponents, but a curriculum "
            "(curriculum.stages) gives each its own; leave one of the two out"
        )
    if config.league.exploits:
        raise ConfigError(
            "--population: agents are compared by scripted opponents, but an exploiter meets its "
            "victim alone (--exploit, league.exploits); leave one of the two out"
        )
    if steps is not None and steps <= population.interval_steps:
        raise ConfigError(
            f"population.interval_steps: {population.interval_steps:,} steps between two rounds "
            f"leave no time for one in {steps:,} steps (--steps counts those of each agent)"
        )


@dataclass
class PopulationProgress(TrainProgress):
    """How far the session of a population is; steps are those of each agent."""

    fitness: tuple[float | None, ...] = ()
    """Of each agent, in this round so far or, while there are too few matches, in the last one."""
    best: int = 1
    rounds: int = 0

    def note_all(self, found: Sequence[Iteration | NotFinite], steps: int) -> None:
        """Add one iteration of all agents."""
        self.count(steps)
        self.matches += sum(getattr(one, "matches", 0) for one in found)

    def note_round(self, rows: Sequence[LineageRow]) -> None:
        """Add a round; agents that stay as they are make no news."""
        self.rounds = rows[0].round
        self.news = [_news(row) for row in rows if row.replaced or row.before != row.after]

    def standing(self) -> str:
        """`agents 61% 58% *70% -`: the fitness of each, a star for the best."""
        parts = [
            f"{'*' if number == self.best else ''}{'-' if one is None else f'{one:.0%}'}"
            for number, one in enumerate(self.fitness, start=1)
        ]
        return f"agents {' '.join(parts)}"


def _news(row: LineageRow) -> str:
    """`agent 4 (41%) gives way to a copy of agent 1 (63%)`."""
    if not row.replaced:
        return f"agent {row.agent}: {row.why}"
    return (
        f"agent {row.agent} ({row.fitness:.0%}) gives way to a copy of agent {row.parent} "
        f"({row.parent_fitness:.0%}), learning rate {row.after.learning_rate:.3g}"
    )


@dataclass(frozen=True, kw_only=True)
class PopulationSummary(ArenaSummary):
    """The result of a session; the version is the run's own, with the best agent's weights."""

    best: int
    fitness: tuple[float | None, ...]
    settings: tuple[Settings, ...]
    lineage: Lineage

    @property
    def ancestry(self) -> list[Replacement]:
        """How the best agent came to be, newest first."""
        return ancestry(self.lineage, self.best)

    def descent(self) -> list[str]:
        """For people: how the best agent came to be."""
        line = [f"  {change}" for change in self.ancestry]
        if not line:
            return [f"Agent {self.best} was never replaced: its line has no other agent."]
        first = founder(self.lineage, self.best)
        return [f"The line of agent {self.best}, back to agent {first} of the start:", *line]

    def as_dict(self) -> dict[str, object]:
        """For `--json`."""
        return {
            **super().as_dict(),
            "agents": len(self.settings),
            "best": self.best,
            "fitness": list(self.fitness),
            "settings": [one.as_dict() for one in self.settings],
            "rounds": self.lineage.rounds,
            "ancestry": [
                {
                    "steps": change.steps,
                    "agent": change.agent,
                    "parent": change.parent,
                    "before": change.before.as_dict(),
                    "after": change.after.as_dict(),
                    "why": change.why,
                }
                for change in self.ancestry
            ],
        }
