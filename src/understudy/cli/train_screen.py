"""How training looks in a terminal: a line that moves, one that stays now and then, a summary."""

from __future__ import annotations

from understudy.cli.show import Screen, bar
from understudy.match.tally import Tally
from understudy.telemetry.report_parts import rewards_text
from understudy.telemetry.text import duration
from understudy.training.environments.session import (
    Evaluation,
    EvaluationProgress,
    HostProgress,
    HostSession,
    HostSummary,
)
from understudy.training.session import TrainProgress, TrainSession, TrainSummary


class TrainScreen:
    """Runs a session and shows it."""

    def __init__(self, *, quiet: bool, before: int = 0) -> None:
        self._screen = Screen(quiet=quiet, before=before)

    def arena(self, session: TrainSession) -> tuple[int, dict[str, object]]:
        """The exit code, and what to print as JSON."""
        from understudy.training.train import check, train

        if session.config.population.agents > 1:
            return self._population(session)
        course = check(session)
        train_ = session.config.train
        snapshots = course.meets_itself and not session.config.league.exploits
        self._screen.note(
            f"understudy: train {session.game}, run folder {session.run}\n"
            f"{train_.games} matches side by side, {train_.segment} frames each an iteration; "
            f"{_rhythm(session, snapshots=snapshots)}.\n"
            "Compiling takes half a minute or so the first time ..."
        )
        summary = train(session, show=self._show)
        self._screen.note(_summary(summary, session.game))
        return summary.code, summary.as_dict()

    def _population(self, session: TrainSession) -> tuple[int, dict[str, object]]:
        from understudy.training.population.session import PopulationProgress
        from understudy.training.population.training import check, train_population

        check(session)
        agents = session.config.population.agents
        self._screen.note(
            f"understudy: train {session.game}, run folder {session.run}\n"
            f"{agents} agents with {session.config.train.games} matches each, side by side; "
            f"a round every {session.config.population.interval_steps:,} steps of each.\n"
            "Compiling takes a minute or so the first time ..."
        )

        def show(progress: PopulationProgress) -> None:
            self._tell(progress.news)
            self._screen.move(f"{_clock(progress)}  {progress.standing()}", progress)

        summary = train_population(session, show=show)
        self._screen.note("\n".join(summary.lines()))
        return summary.code, summary.as_dict()

    def _show(self, progress: TrainProgress) -> None:
        self._tell(progress.news)
        self._screen.move(_line(progress), progress)

    def _tell(self, news: list[str]) -> None:
        for line in news:
            self._screen.note(f"  {line}")
        news.clear()

    def host(self, session: HostSession) -> tuple[int, dict[str, object]]:
        """The same for an environment of others."""
        from understudy.registry.run_folder import check_resume
        from understudy.training.environments.training import train_host

        check_resume(session.run, resume=session.resume)
        self._screen.note(f"understudy: train {session.environment}, run folder {session.run}")
        if session.evaluate:
            self._screen.note(
                f"{session.evaluate} frozen matches follow the training; --steps and --minutes do "
                "not count them, --eval 0 turns them off."
            )

        def show(progress: HostProgress) -> None:
            self._tell(progress.news)
            self._screen.move(_host_line(progress), progress)

        summary = train_host(
            session,
            show=show,
            show_evaluation=lambda progress: self._screen.move(_evaluating(progress), progress),
        )
        self._screen.note(_host_summary(summary))
        return summary.code, summary.as_dict()


def _rhythm(session: TrainSession, *, snapshots: bool) -> str:
    """What is kept how often; whole iterations, whatever the settings say."""
    config = session.config
    rollout = config.train.games * config.train.segment
    every = {"a version": config.train.checkpoint_steps}
    if snapshots:
        every["a snapshot"] = config.league.save_freq
    return ", ".join(
        f"{what} every {-(-steps // rollout) * rollout:,} steps" for what, steps in every.items()
    )


def _line(progress: TrainProgress) -> str:
    rates = "  ".join(
        f"{name} {tally.win_rate:.0%}" if tally.matches else f"{name} -"
        for name, tally in progress.win_rates().items()
    )
    return f"{_clock(progress)}  {_where(progress)}{rates}"


def _clock(progress: TrainProgress) -> str:
    left = progress.left_s
    return (
        f"{bar(progress.share)} {duration(progress.elapsed_s):>6}"
        f"  left {duration(left) if left is not None else '?':>6}"
        f"  {_short(progress.earlier + progress.steps)} steps"
        f"  {_short(progress.steps_s)}/s"
    )


def _where(progress: TrainProgress) -> str:
    """The stage and the rating, where there are any."""
    stage = f"[{progress.stage}]  " if progress.stage else ""
    return f"{stage}rated {progress.rating}  " if progress.rating else stage


def _summary(summary: TrainSummary, game: str) -> str:
    lines = ["", "Interrupted: everything up to here is kept." if summary.interrupted else "Done."]
    lines += ["", "Win rates while training (it explores; `understudy eval` judges it frozen):"]
    width = max((len(name) for name in summary.win_rates), default=0)
    lines += [f"  {name:<{width}}  {_rate(tally)}" for name, tally in summary.win_rates.items()]
    lines += [
        "",
        f"Steps           {summary.steps:,} ({summary.steps_s:,.0f} a second, "
        f"compiling took {duration(summary.compiled_s)})",
        f"Matches         {summary.matches:,}",
        f"Version         {summary.version}",
        *_standing(summary),
        f"Run folder      {summary.run}",
        "",
        f"More: understudy eval {game} --agent {summary.run}   "
        f"understudy watch {game} --left {summary.run} --right based",
    ]
    return "\n".join(lines)


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


def _host_line(progress: HostProgress) -> str:
    left = progress.left_s
    return (
        f"{bar(progress.share)} {duration(progress.elapsed_s):>6}"
        f"  left {duration(left) if left is not None else '?':>6}"
        f"  {_short(progress.steps)} steps  {_short(progress.steps_s)}/s"
        f"  {_recent(progress)}"
    )


def _recent(progress: HostProgress) -> str:
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


def _host_summary(summary: HostSummary) -> str:
    lines = ["", "Interrupted: everything up to here is kept." if summary.interrupted else "Done."]
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
