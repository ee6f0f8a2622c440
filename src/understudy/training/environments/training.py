"""Training in Gymnasium and PettingZoo environments: they run in Python, the learner is compiled.

    session = EnvironmentSession(
        environment="gymnasium:CartPole-v1",  # or pettingzoo:my_package.my_game
        run=Path("runs/cartpole"),
        budget=Budget(steps=100_000),         # of the whole run; or minutes=..., of this session
        evaluate=100,                         # frozen matches at the end
        network=Mlp(),
        config=environment_config(),          # with_values(...) changes it
    )
    summary = train_environment(session, show=lambda progress: print(progress.reward))
    summary.version, summary.reward

A session writes an ordinary run folder: versions that play under NumPy, a journal, pointers. With
`resume=True` a run goes on; without it, a folder that holds a run is refused.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import ExitStack

from understudy.registry.run_folder import check_resume, new_start, remember
from understudy.supervise.compile_cache import keep_compiled
from understudy.supervise.interrupts import Interrupts
from understudy.supervise.lock import learner_lock
from understudy.training.environments.evaluation import evaluate_environment
from understudy.training.environments.factory import maker
from understudy.training.environments.learning import EnvironmentLearning, open_folder
from understudy.training.environments.session import (
    EnvironmentProgress,
    EnvironmentSession,
    EnvironmentSummary,
    Evaluation,
    EvaluationProgress,
)


def train_environment(
    session: EnvironmentSession,
    *,
    show: Callable[[EnvironmentProgress], None] = lambda progress: None,
    show_evaluation: Callable[[EvaluationProgress], None] = lambda progress: None,
) -> EnvironmentSummary:
    """Train the whole session, then play the frozen matches, which no budget counts. Ctrl-C or
    SIGTERM ends it early and keeps everything."""
    keep_compiled()  # before anything that may import JAX
    check_resume(session.run, resume=session.resume)
    make = maker(session.environment, **session.options)
    existed = session.run.exists()
    if not session.resume:
        open_folder(session, make)  # the lock lies in it
    evaluation: Evaluation | None = None
    with learner_lock(session.run), Interrupts() as interrupts, ExitStack() as start:
        folder = open_folder(session, make)  # not before: another may work by its settings
        if session.resume:
            remember(session.run)
        else:
            start.enter_context(new_start(session.run, existed=existed))
        with EnvironmentLearning(session, make, folder) as learning:
            progress = learning.progress
            while progress.share < 1.0 and not interrupts.asked:
                if learning.iterate(stop=lambda: interrupts.asked):
                    show(progress)
            learning.checkpoint()
            steps_s = progress.steps_s
            if session.evaluate and not interrupts.asked:
                interrupts.gentle = False
                # All is kept: only the judgement is cut short.
                with contextlib.suppress(KeyboardInterrupt):
                    evaluation = evaluate_environment(
                        session, learning.policy(), folder.versions, show=show_evaluation
                    )
                    learning.evaluated(evaluation)
    return EnvironmentSummary(
        run=str(session.run),
        version=progress.version,
        steps=progress.steps,
        matches=progress.matches,
        updates=progress.updates,
        steps_s=steps_s,
        code=interrupts.code,
        evaluation=evaluation,
        problem=progress.problem,
    )
