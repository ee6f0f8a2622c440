"""Training in the arena: iterations, versions along the way, and a clean end.

A version is all that a session leaves behind and all that it goes on from: parameters, optimiser,
random numbers, counters and rivals. Matches in flight restart, uncounted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from understudy.core.clock import Clock, SystemClock
from understudy.core.errors import ConfigError
from understudy.games import catalog
from understudy.policy.spec import PolicySpec
from understudy.registry.run_folder import RunFolder, check_resume, kept, remember
from understudy.supervise.compile_cache import keep_compiled
from understudy.supervise.interrupts import Interrupts
from understudy.supervise.lock import learner_lock, missing
from understudy.telemetry.journal import Journal, Reader
from understudy.telemetry.training_log import LOG, TrainingLog
from understudy.training.session import TrainProgress, TrainSession, TrainSummary

if TYPE_CHECKING:
    from pathlib import Path

    from understudy.training.stage_plan import StagePlan


def train(
    session: TrainSession, *, show: Callable[[TrainProgress], None], clock: Clock | None = None
) -> TrainSummary:
    """Train until the budget is spent. Ctrl-C ends early, after a last version."""
    clock = clock or SystemClock()
    check(session)
    from understudy.arena.compiling import compiled_duel
    from understudy.training.arena_learning import ArenaLearning
    from understudy.training.monitoring import Monitoring

    if not session.resume:
        _folder(session, clock)  # the lock lies in it
    progress = TrainProgress(session)
    with learner_lock(session.run), Interrupts() as interrupts:
        folder = _folder(session, clock)  # not before: another learner may work by its settings
        remember(session.run)
        log = TrainingLog(folder.logs / LOG, past=Reader(folder.journal).new())
        journal = Journal(folder.journal, "train", clock, also=log.add)
        learning = ArenaLearning(folder, journal, session.game, session.game_options)
        monitoring = Monitoring(folder, folder.config.monitor, at_steps=learning.steps, clock=clock)
        journal.follow(monitoring.add)
        journal.follow(progress.hear)
        with contextlib.closing(monitoring), learning:
            progress.earlier, progress.version = learning.steps, learning.version
            learning.begin(session.budget, progress.share)
            show(progress)
            while progress.share < 1.0 and not interrupts.asked:
                iteration = learning.iterate()
                if iteration is not None:
                    progress.note(iteration, learning.arena.steps_an_iteration)
                    learning.keep(iteration, progress.share)
                    if learning.benchmark_due(last=False):
                        learning.benchmark(compiled_duel)
                    progress.version = learning.version
                    progress.stage = learning.course.stage
                    progress.rating = learning.rivalry.league.learner
                show(progress)
            if learning.benchmark_due(last=True) and not interrupts.asked:
                learning.benchmark(compiled_duel)
                show(progress)
            learning.commit()
            exploited = learning.exploited(compiled_duel) if not interrupts.asked else None
    return TrainSummary(
        run=str(session.run),
        steps=learning.steps,
        seconds=progress.elapsed_s,
        steps_s=progress.steps_s,
        compiled_s=progress.compiled_s,
        matches=progress.matches,
        version=learning.version,
        code=interrupts.code,
        win_rates=progress.win_rates(),
        metrics=progress.metrics,
        stage=progress.stage,
        rating=progress.rating,
        snapshots=len(learning.rivalry.league.names),
        exploits=session.config.league.exploits,
        exploited=exploited.tally if exploited else None,
    )


def check(session: TrainSession) -> StagePlan:
    """Whatever is wrong with a session is told before anything is written; else its course."""
    course = check_course(session)
    check_unspent(session, session.run)
    return course


def check_course(session: TrainSession) -> StagePlan:
    """What is wrong with the session of any number of agents, but for how far they are."""
    keep_compiled()
    try:
        from understudy.training.arena_learning import check_arena, check_resumed
    except ImportError as error:
        raise missing(error) from error
    check_resume(session.run, resume=session.resume)
    if session.config.monitor.tensorboard:
        from understudy.telemetry.tensorboard import check_installed

        check_installed()
    course = check_arena(session.game, session.game_options, session.network, session.config)
    if session.resume:
        check_resumed(RunFolder.load(session.run, SystemClock()), course)
    return course


def check_unspent(session: TrainSession, *runs: Path) -> None:
    """Steps that all these runs have already are an error: going on would train nothing."""
    if session.resume and session.budget.steps is not None:
        steps = min(_steps(kept(run)) for run in runs)
        if steps >= session.budget.steps:
            raise ConfigError(
                f"--steps: this run has {steps:,} steps already; name more of them, or --minutes"
            )


def _steps(folder: RunFolder | None) -> int:
    """Of the version that a resume goes on from."""
    from understudy.training.checkpoints import STEPS, resume_point

    point = resume_point(folder) if folder else None
    if folder is None or point is None:
        return 0
    return folder.versions.manifest(point.version).counters.get(STEPS, 0)


def preset_for_this_machine() -> str:
    """`seed` where there is a GPU, `small` elsewhere."""
    keep_compiled()
    try:
        from understudy.learner.hardware import has_gpu
    except ImportError as error:
        raise missing(error) from error
    return "seed" if has_gpu() else "small"


def _folder(session: TrainSession, clock: Clock) -> RunFolder:
    game = catalog.make(session.game, **session.game_options)
    return RunFolder.open(
        session.run,
        spec=PolicySpec(game.features, game.actions, session.network),
        config=session.config,
        clock=clock,
        game=f"{game.name} {game.version}",
        game_options=session.game_options,
    )
