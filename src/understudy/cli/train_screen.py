"""How training looks in a terminal: a line that moves, one that stays now and then, a summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from understudy.cli.show import Screen, bar, ending, timing
from understudy.match.tally import Tally
from understudy.telemetry.report_parts import rewards_text
from understudy.telemetry.text import duration
from understudy.training.environments.session import (
    EnvironmentProgress,
    EnvironmentSession,
    EnvironmentSummary,
    Evaluation,
    EvaluationProgress,
)
from understudy.training.population.session import PopulationProgress, PopulationSummary
from understudy.training.session import (
    TrainingProgress,
    TrainingSummary,
    TrainProgress,
    TrainSession,
    TrainSummary,
)

if TYPE_CHECKING:
    from understudy.training.stage_plan import StagePlan


class TrainScreen:
    """Shows any session of training; a `TrainingView`."""

    def __init__(self, *, quiet: bool, before: int = 0) -> None:
        self._screen = Screen(quiet=quiet, before=before)

    def opened(self, session: TrainSession | EnvironmentSession, stages: StagePlan | None) -> None:
        if isinstance(session, EnvironmentSession):
            self._screen.note(_environment_opening(session))
        else:
            assert stages is not None
            self._screen.note(_arena_opening(session, stages))

    def show(self, progress: TrainingProgress[Any]) -> None:
        for news in progress.news:
            self._screen.note(f"  {news}")
        progress.news.clear()
        self._screen.move(_line(progress), progress)

    def show_evaluation(self, progress: EvaluationProgress) -> None:
        self._screen.move(_evaluating(progress), progress)

    def close(self, summary: TrainingSummary) -> NoReturn:
        """Print the summary, and exit with its code."""
        self._screen.close(summary, _summary(summary), run=summary.run)


def _arena_opening(session: TrainSession, stages: StagePlan) -> str:
    config = session.config
    matches, agents = config.train.games, config.population.agents
    head = f"understudy: train {session.game}, run folder {session.run}\n"
    if agents > 1:
        return (
            f"{head}{agents} agents with {matches} matches each, side by side; "
            f"a round every {config.population.interval_steps:,} steps of each.\n"
            "Compiling takes a minute or so the first time ..."
        )
    snapshots = stages.meets_itself and not config.league.exploits
    return (
        f"{head}{matches} matches side by side, {config.train.segment} frames each an iteration; "
        f"{_rhythm(session, snapshots=snapshots)}.\n"
        "Compiling takes half a minute or so the first time ..."
    )


def _environment_opening(session: EnvironmentSession) -> str:
    head = f"understudy: train {session.environment}, run folder {session.run}"
    if not session.evaluate:
        return head
    return (
        f"{head}\n{session.evaluate} frozen matches follow the training; --steps and --minutes do "
        "not count them, --eval 0 turns them off."
    )


def _rhythm(session: TrainSession, *, snapshots: bool) -> str:
    """What is kept how often, rounded up to whole iterations."""
    config = session.config
    rollout = config.train.games * config.train.segment
    every = {"a version": config.train.checkpoint_steps}
    if snapshots:
        every["a snapshot"] = config.league.save_freq
    return ", ".join(
        f"{what} every {-(-steps // rollout) * rollout:,} steps" for what, steps in every.items()
    )


def _line(progress: TrainingProgress[Any]) -> str:
    speed = f"{timing(progress)}  {_short(progress.steps)} steps  {_short(progress.steps_s)}/s"
    match progress:
        case PopulationProgress():
            return f"{speed}  {progress.standing()}"
        case EnvironmentProgress():
            return f"{speed}  {_recent(progress)}"
        case TrainProgress():
            return f"{speed}  {_where(progress)}{_win_rates(progress)}"
    return speed


def _win_rates(progress: TrainProgress) -> str:
    return "  ".join(
        f"{name} {tally.win_rate:.0%}" if tally.matches else f"{name} -"
        for name, tally in progress.win_rates().items()
    )


def _where(progress: TrainProgress) -> str:
    """The stage and the rating, where there are any."""
    stage = f"[{progress.stage}]  " if progress.stage else ""
    return f"{stage}rated {progress.rating}  " if progress.rating else stage


def _summary(summary: TrainingSummary) -> str:
    match summary:
        case PopulationSummary():
            return "\n".join(summary.lines())
        case EnvironmentSummary():
            return _environment_summary(summary)
        case TrainSummary():
            return _agent_summary(summary)
    return ""


def _agent_summary(summary: TrainSummary) -> str:
    lines, game = ending(summary), summary.game
    lines += ["", "Win rates while training (it explores; `understudy eval` judges it frozen):"]
    width = max((len(name) for name in summary.win_rates), default=0)
    lines += [f"  {name:<{width}}  {_rate(tally)}" for name, tally in summary.win_rates.items()]
    lines += [
        "",
        f"Steps           {summary.steps:,} ({summary.steps_s:,.0f} a second, "
        f"compiling took {duration(summary.compiled_s)})",
        f"Matches         {summary.matches:,}",
        f"Version         {summary.version}",
        *_champion(summary),
        *_standing(summary),
        f"Run folder      {summary.run}",
        "",
        f"More: understudy eval {game} --agent {summary.run}   "
        f"understudy watch {game} --left {summary.run} --right based",
    ]
    return "\n".join(lines)


def _champion(summary: TrainSummary) -> list[str]:
    if summary.champion is None:
        return []
    if not summary.champion:
        return ["Champion        none yet: no version is better than the rules by evidence"]
    return [f"Champion        {summary.champion}, by evidence"]


def _standing(summary: TrainSummary) -> list[str]:
    lines = [f"Stage           {summary.stage}"] if summary.stage else []
    if summary.rating:
        scale = "its victim is 1000" if summary.exploits else "scripted bots hold the scale"
        lines.append(f"Rating          {summary.rating} ({scale})")
    if summary.snapshots:
        lines.append(f"Snapshots       {summary.snapshots}")
    if summary.exploited:
        tally = summary.exploited
        low, high = tally.interval
        lines.append(
            f"Exploits        {summary.exploits}: wins {tally.win_rate:.1%} of {tally.matches} "
            f"frozen matches ({low:.1%} to {high:.1%})"
        )
    return lines


def _recent(progress: EnvironmentProgress) -> str:
    count = len(progress.recent)
    if not count:
        return "no match has ended yet"
    return f"reward of last {count}: {rewards_text(progress.reward, progress.sides)}"


def _evaluating(progress: EvaluationProgress) -> str:
    against = f" against {progress.opponent}" if progress.opponent else ""
    return (
        f"{bar(progress.share)} evaluating version {progress.version}: "
        f"{progress.share:.0%} of {progress.matches} frozen matches{against}"
    )


def _environment_summary(summary: EnvironmentSummary) -> str:
    lines = ending(summary)
    if summary.problem:
        lines += [f"Problem: {summary.problem}", ""]
    lines += _evaluation(summary.evaluation) if summary.evaluation else [""]
    lines += [
        f"Steps           {summary.steps:,} ({summary.steps_s:,.0f} a second)",
        f"Matches         {summary.matches:,}",
        f"Version         {summary.version}",
        f"Run folder      {summary.run}",
    ]
    return "\n".join(lines)


def _evaluation(judged: Evaluation) -> list[str]:
    reward = rewards_text(judged.reward, judged.sides)
    lines = [f"Mean reward of {len(judged.matches)} frozen matches: {reward}"]
    if judged.opponents:
        lines += ["", "Win rates in frozen matches, with actions drawn (95% interval):"]
    width = max(map(len, judged.opponents), default=0)
    for name, tally in judged.opponents.items():
        low, high = tally.interval
        lines.append(
            f"  {name:<{width}}  {bar(tally.win_rate)} {tally.win_rate:>6.1%}  "
            f"({low:.1%} to {high:.1%})  "
            f"{tally.wins} won, {tally.draws} drawn, {tally.losses} lost"
        )
    return [*lines, "", f"Evaluation      took {duration(judged.seconds)}"]


def _rate(tally: Tally) -> str:
    if not tally.matches:
        return "no match ended"
    return f"{bar(tally.win_rate)} {tally.win_rate:>6.1%}  of the last {tally.matches}"


def _short(number: float) -> str:
    if number >= 1e6:
        return f"{number / 1e6:.2f}M"
    return f"{number / 1e3:.1f}k" if number >= 1e3 else f"{number:.0f}"
