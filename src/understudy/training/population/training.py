"""Training of a population: agents side by side in one program, the worst give way to the best.

The run folder holds a complete one for each agent, `agent-1` and so on; its own newest version is
the best agent's weights, so every command that takes a run takes a population.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from understudy.core.clock import Clock, SystemClock
from understudy.core.errors import ConfigError
from understudy.league.lineage import Settings
from understudy.registry.run_folder import remember
from understudy.supervise.interrupts import Interrupts
from understudy.training import train as training
from understudy.training.population.session import PopulationProgress, PopulationSummary
from understudy.training.session import TrainSession

if TYPE_CHECKING:
    from understudy.training.stage_plan import StagePlan


def train_population(
    session: TrainSession,
    *,
    show: Callable[[PopulationProgress], None],
    clock: Clock | None = None,
    first: Sequence[Settings] | None = None,
) -> PopulationSummary:
    """Train `population.agents` agents until the budget, which is that of each of them, is spent.

    Ctrl-C ends early, after a last version of everyone. `first`: what each agent begins with.
    """
    course = check(session)
    from understudy.core import files
    from understudy.training.population.learning import PopulationLearning

    progress = PopulationProgress(session)
    if not session.resume:
        files.make_folders(session.run)  # the lock lies in it
    learning = PopulationLearning(session, course, clock or SystemClock(), first)
    with Interrupts() as interrupts, learning:
        remember(session.run)
        progress.steps = progress.earlier = learning.steps
        progress.version = learning.front.version
        progress.rounds = learning.lineage.rounds
        show(progress)
        while progress.share < 1.0 and not interrupts.asked:
            learning.follow(progress.share)
            found = learning.iterate()
            progress.note_all(found, learning.steps_an_iteration)
            # No round at the very end: a copy that never played would be all that it leaves.
            if learning.due and progress.share < 1.0 and not interrupts.asked:
                progress.note_round(learning.round())
            progress.fitness, progress.best = learning.fitness, learning.best
            progress.version = learning.front.version
            show(progress)
    return PopulationSummary(
        run=str(session.run),
        steps=learning.steps,
        seconds=progress.elapsed_s,
        steps_s=progress.steps_s,
        compiled_s=progress.compiled_s,
        matches=progress.matches,
        version=learning.front.version,
        code=interrupts.code,
        best=learning.best,
        fitness=learning.fitness,
        settings=learning.lineage.settings,
        lineage=learning.lineage,
    )


def check(session: TrainSession) -> StagePlan:
    """Whatever is wrong with a session is told before anything is written; else its course."""
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
    course = training.check_course(session)
    from understudy.training.population.agent import name_of

    numbers = range(1, population.agents + 1)
    training.check_unspent(session, *(session.run / name_of(number) for number in numbers))
    return course
