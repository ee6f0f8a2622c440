"""Training: one entry, `train`, for an agent or a population in the arena and for environments.

    session = TrainSession(
        game="brawl",
        game_options={},
        run=Path("runs/x"),
        network=presets.network("small"),
        config=named_configs.config("small"),
        budget=Budget(steps=10_000_000),      # of the whole run; or minutes=..., of this session
    )
    summary = train_agent(session, show=lambda progress: print(progress.steps))

    session = EnvironmentSession(
        environment="gymnasium:CartPole-v1",  # or pettingzoo:my_package.my_game
        run=Path("runs/cartpole"),
        budget=Budget(steps=100_000),
        evaluate=100,                         # frozen matches at the end
        network=Mlp(),
        config=environment_config(),          # with_values(...) changes it
    )
    summary = train_environment(session)
    summary.version, summary.reward

A session writes an ordinary run folder: versions that play under NumPy, a journal, pointers. A
version is all that a session leaves behind and all that a later one resumes from; matches in flight
restart, uncounted. With `resume=True` a run goes on; without it, a folder that holds a run is
refused. The folder of a population holds one for each agent, `agent-1` and so on; its own newest
version has the best agent's weights, so every command that takes a run takes a population.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from understudy.core import files
from understudy.core.clock import Clock, SystemClock
from understudy.core.dependencies import needs_learner
from understudy.core.errors import ConfigError
from understudy.registry.checkpoints import STEPS, resume_version
from understudy.registry.run_folder import RunFolder, check_resume, new_start, remember
from understudy.supervise.compile_cache import keep_compiled
from understudy.supervise.interrupts import Interrupts
from understudy.telemetry.journal import Journal
from understudy.telemetry.summary import status_fold
from understudy.telemetry.training_log import LOG, TrainingLog
from understudy.training.environments.session import (
    EnvironmentProgress,
    EnvironmentSession,
    EnvironmentSummary,
    EvaluationProgress,
)
from understudy.training.evidence import ChampionTests, check_evidence
from understudy.training.learning import locked_folder
from understudy.training.population.session import (
    PopulationProgress,
    PopulationSummary,
    check_population,
)
from understudy.training.session import (
    TrainingProgress,
    TrainingSummary,
    TrainProgress,
    TrainSession,
    TrainSummary,
)

if TYPE_CHECKING:
    from pathlib import Path

    from understudy.league.lineage import Settings
    from understudy.training.stage_plan import StagePlan


class TrainingView(Protocol):
    """What shows a session of training."""

    def opened(self, session: TrainSession | EnvironmentSession, stages: StagePlan | None) -> None:
        """The session is possible; nothing is written yet. Environments have no stages."""

    def show(self, progress: TrainingProgress[Any]) -> None:
        """Called after every iteration."""

    def show_evaluation(self, progress: EvaluationProgress) -> None:
        """Called during the frozen matches at the end of a session in an environment."""


def train(session: TrainSession | EnvironmentSession, view: TrainingView) -> TrainingSummary:
    """Train what the session names until its budget is spent.

    Ctrl-C or SIGTERM ends the session early, after a last version; a second Ctrl-C raises
    `KeyboardInterrupt`.

    Args:
        session: A `TrainSession` trains one agent in the arena, or a population where
            `population.agents` is more than 1. An `EnvironmentSession` trains in a Gymnasium or
            PettingZoo environment.
        view: What shows the session: when it opens, after every iteration, and its evaluation.

    Returns:
        The summary of that kind of session.

    Raises:
        ConfigError, RunFolderError: The session is not possible; nothing has been written.
        LearnerBusy: Another process trains in the run folder.

    Example:
        session = TrainSession(game="brawl", game_options={}, run=Path("runs/mine"),
                               network=network("small"), config=config("small"),
                               budget=Budget(minutes=5.0))
        summary = train(session, TrainScreen(quiet=False, before=None))
    """
    if isinstance(session, EnvironmentSession):
        check_resume(session.run, resume=session.resume)
        view.opened(session, None)
        return train_environment(session, show=view.show, show_evaluation=view.show_evaluation)

    def opened(stages: StagePlan) -> None:
        view.opened(session, stages)

    if session.config.population.agents > 1:
        return train_population(session, show=view.show, opened=opened)
    return train_agent(session, show=view.show, opened=opened)


def train_agent(
    session: TrainSession,
    *,
    show: Callable[[TrainProgress], None],
    opened: Callable[[StagePlan], None] = lambda stages: None,
    clock: Clock | None = None,
) -> TrainSummary:
    """Train one agent in the arena; see `train`."""
    clock = clock or SystemClock()
    opened(check(session))
    from understudy.training.arena_learning import ArenaLearning
    from understudy.training.monitoring import Monitoring

    with (
        Interrupts() as interrupts,
        locked_folder(
            session.run,
            lambda: session.open_folder(session.run, session.config, clock),
            resume=session.resume,
        ) as folder,
    ):
        remember(session.run)
        log = TrainingLog(folder.logs / LOG, past=status_fold(folder.journal))
        journal = Journal(folder.journal, "train", clock, also=log.add)
        learning = ArenaLearning(session, folder, journal)
        monitoring = Monitoring(folder, folder.config.monitor, at_steps=learning.steps, clock=clock)
        journal.follow(monitoring.add)
        journal.follow(learning.progress.hear)
        tests = ChampionTests(session, folder, journal)

        def show_tests(progress: TrainProgress) -> None:
            tests.follow(progress)
            show(progress)

        with contextlib.closing(monitoring), tests, learning:
            learning.run(interrupts, show_tests)
    return replace(learning.summary(interrupts.code), champion=tests.champion)


def train_population(
    session: TrainSession,
    *,
    show: Callable[[PopulationProgress], None],
    opened: Callable[[StagePlan], None] = lambda stages: None,
    clock: Clock | None = None,
    first: Sequence[Settings] | None = None,
) -> PopulationSummary:
    """Train `population.agents` agents side by side in one program; the budget is that of each.

    After every `population.interval_steps` the worst agents are replaced by mutated copies of the
    best. `first`: the settings that the agents begin with.
    """
    stages = check(session, population=True)
    opened(stages)
    from understudy.training.population.learning import PopulationLearning

    if not session.resume:
        files.make_folders(session.run)  # the lock lies in it
    learning = PopulationLearning(session, stages, clock or SystemClock(), first)
    with Interrupts() as interrupts, learning:
        remember(session.run)
        learning.run(interrupts, show)
    return learning.summary(interrupts.code)


def train_environment(
    session: EnvironmentSession,
    *,
    show: Callable[[EnvironmentProgress], None] = lambda progress: None,
    show_evaluation: Callable[[EvaluationProgress], None] = lambda progress: None,
) -> EnvironmentSummary:
    """Train in an environment, then play the frozen matches, which no budget counts.

    The environment runs in Python and the policy plays it with NumPy; the learner is compiled.
    """
    keep_compiled()  # before anything that may import JAX
    with needs_learner():
        from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]
    from understudy.adapters.environments.factory import maker
    from understudy.training.environments.learning import EnvironmentLearning, open_folder

    check_resume(session.run, resume=session.resume)
    make = maker(session.environment, **session.options)
    existed = session.run.exists()
    with (
        # The policy's products are small: threads cost more than they save, and on a busy machine
        # they wait for each other (287 steps a second instead of 1,300 in the tournament's game).
        threadpool_limits(1),
        Interrupts() as interrupts,
        locked_folder(
            session.run, lambda: open_folder(session, make), resume=session.resume
        ) as folder,
        contextlib.ExitStack() as start,
    ):
        if session.resume:
            remember(session.run)
        else:
            start.enter_context(new_start(session.run, existed=existed))
        learning = EnvironmentLearning(session, make, folder, show_evaluation=show_evaluation)
        if session.league:  # tables and curves are of matches that are won and lost
            start.enter_context(learning.monitored())
        with learning:
            learning.run(interrupts, show)
    return learning.summary(interrupts.code)


def check(session: TrainSession, *, population: bool = False) -> StagePlan:
    """The stage plan of a session in the arena; an error, before anything is written, where the
    session is not possible."""
    if population:
        check_population(session)
    keep_compiled()
    with needs_learner():
        from understudy.arena.devices import count_devices
        from understudy.arena.population import check_agents
        from understudy.training.arena_learning import check_arena, check_resumed
        from understudy.training.population.agent import name_of
    check_resume(session.run, resume=session.resume)
    check_evidence(session)
    if session.config.monitor.tensorboard:
        from understudy.telemetry.tensorboard import check_installed

        check_installed()
    devices = count_devices(session.devices)
    if population:
        check_agents(session.config.population.agents, devices=devices)
    stages = check_arena(
        session.game,
        session.game_options,
        session.network,
        session.config,
        devices=1 if population else devices,
    )
    runs = [session.run]
    if session.resume:
        check_resumed(RunFolder.load(session.run, SystemClock()), stages)
    if population:
        agents = range(1, session.config.population.agents + 1)
        runs = [session.run / name_of(number) for number in agents]
    _check_unspent(session, runs)
    return stages


def _check_unspent(session: TrainSession, runs: Sequence[Path]) -> None:
    """An error where all these runs have the steps already that a resume would train to."""
    if session.resume and session.budget.steps is not None:
        steps = min(_steps(RunFolder.kept(run)) for run in runs)
        if steps >= session.budget.steps:
            raise ConfigError(
                f"--steps: this run has {steps:,} steps already; name more of them, or --minutes"
            )


def _steps(folder: RunFolder | None) -> int:
    """Of the version that a session resumes from."""
    manifest = resume_version(folder) if folder else None
    return manifest.counters.get(STEPS, 0) if manifest else 0


def preset_for_this_machine() -> str:
    """`seed` where there is a GPU, `small` elsewhere."""
    keep_compiled()
    with needs_learner():
        from understudy.learner.hardware import has_gpu
    return "seed" if has_gpu() else "small"
