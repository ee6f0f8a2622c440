"""How training looks in a terminal: a line that moves, one that stays now and then, a summary."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn, Self

from understudy.cli.options import workers_line
from understudy.cli.output import commands, summary_row
from understudy.cli.progress import ProgressDisplay, ProgressLine, bar, ending, session_line
from understudy.games import catalog
from understudy.telemetry.layout import Column, Part, Width, hanging, table_lines, wrapped
from understudy.telemetry.report_parts import rewards_text
from understudy.telemetry.text import Lines, duration, plain
from understudy.training.environments.session import (
    EnvironmentProgress,
    EnvironmentSession,
    EnvironmentSummary,
    Evaluation,
    EvaluationProgress,
)
from understudy.training.population.session import PopulationProgress, PopulationSummary
from understudy.training.session import (
    LeagueProgress,
    TrainingProgress,
    TrainingSummary,
    TrainSession,
    TrainSummary,
)

if TYPE_CHECKING:
    from understudy.training.stage_plan import StagePlan
    from understudy.workers.players import WorkersReport

_SLOWER = 1.2
"""How many times the median worker's time makes one the slowest."""


class TrainScreen:
    """Shows any session of training; a `TrainingView`."""

    def __init__(self, *, quiet: bool, before: int | None = 0) -> None:
        self._display = ProgressDisplay(quiet=quiet, ticks=True, before=before)

    def opened(self, session: TrainSession | EnvironmentSession, stages: StagePlan | None) -> None:
        if isinstance(session, EnvironmentSession):
            lines = _environment_opening(session)
        else:
            assert stages is not None
            lines = _arena_opening(session, stages)
        for line in lines:
            self._display.note_wrapped(line)
        self._display.show(ProgressLine([Part("starting")]))

    def show(self, progress: TrainingProgress[Any]) -> None:
        for news in progress.news:
            self._display.note_news(news)
        progress.news.clear()
        self._display.show(_line(progress))

    def show_evaluation(self, progress: EvaluationProgress) -> None:
        self._display.show_share(progress.share, _evaluating(progress))

    def close(self, summary: TrainingSummary) -> NoReturn:
        """Print the summary, and exit with its code."""
        self._display.end(
            summary, lambda width: "\n".join(_summary(summary, width)), run=summary.run
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._display.close()


def _arena_opening(session: TrainSession, stages: StagePlan) -> list[str]:
    config = session.config
    matches, agents = config.train.games, config.population.agents
    head = f"understudy: train {session.game}, run folder {session.run}"
    if agents > 1:
        return [
            head,
            f"{agents} agents with {matches} matches each, side by side; "
            f"a round every {config.population.interval_steps:,} steps of each.",
            "Compiling takes a minute or so the first time ...",
        ]
    snapshots = stages.meets_itself and not config.league.exploits
    return [
        head,
        f"{matches} matches side by side, {config.train.segment} frames each an iteration; "
        f"{_rhythm(session, snapshots=snapshots)}.",
        "Compiling takes half a minute or so the first time ...",
    ]


def _environment_opening(session: EnvironmentSession) -> list[str]:
    lines = [f"understudy: train {session.environment}, run folder {session.run}"]
    if session.workers:
        games = session.config.train.games
        lines.append(workers_line(min(session.workers, games), session.ray))
        if session.workers > games:
            lines.append(
                f"More than {games} workers would have nothing to play: there are {games} "
                f"environments (--set train.games={session.workers} makes more; a batch is larger "
                "then)."
            )
    if not session.evaluate:
        return lines
    return [
        *lines,
        f"{session.evaluate} frozen matches follow the training; --steps and --minutes do "
        "not count them, --eval 0 turns them off.",
    ]


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


def _line(progress: TrainingProgress[Any]) -> ProgressLine:
    # Without the first iteration, which compiles, no speed is known.
    speed = f"{_short(progress.steps_s)}/s" if progress.steps_s else ""
    parts = [Part(f"{_short(progress.steps)} steps", 40), Part(speed, 50)]
    if not progress.updates:
        return session_line(progress, [*parts, Part("compiling")])
    match progress:
        case PopulationProgress():
            parts.append(Part(progress.standing()))
        case EnvironmentProgress() if not progress.session.league:
            parts.append(Part(_recent(progress)))
        case LeagueProgress():
            parts += [*_where(progress), *_win_rates(progress)]
    if isinstance(progress, EnvironmentProgress) and progress.workers:
        parts.append(Part(_workers(progress.workers), 35))
    return session_line(progress, parts)


def _workers(report: WorkersReport) -> str:
    """`16 workers, 1 lost, slowest worker 3 (1.8x)`."""
    here = f"{report.count} workers"
    if report.ready < report.count:
        here = f"{report.ready} of {here}"
    lost = [f"{report.lost} lost"] if report.lost else []
    slowest = report.slowest and report.slowdown >= _SLOWER
    slow = [f"slowest {report.slowest} ({report.slowdown:.1f}x)"] if slowest else []
    return ", ".join([here, *lost, *slow])


def _win_rates(progress: LeagueProgress[Any]) -> list[Part]:
    """Of every opponent that was met. Where there is no room for all, the three that were met most
    stay longest, and the first of them always."""
    rates = {name: tally for name, tally in progress.win_rates().items() if tally.matches}
    if not rates:
        return [Part("no match has ended yet", 25)]
    by_matches = sorted(rates, key=lambda name: -rates[name].matches)
    drops = {name: place if place < 3 else 42 for place, name in enumerate(by_matches)}
    return [
        Part(f"{plain(name)} {tally.win_rate:.0%}", drops[name]) for name, tally in rates.items()
    ]


def _where(progress: LeagueProgress[Any]) -> list[Part]:
    """The stage and the rating, where there are any."""
    stage = [Part(f"[{plain(progress.stage)}]", 30)] if progress.stage else []
    return [*stage, Part(f"rated {progress.rating}", 20)] if progress.rating else stage


def _summary(summary: TrainingSummary, width: Width) -> list[str]:
    match summary:
        case PopulationSummary():
            return _population_summary(summary, width)
        case EnvironmentSummary():
            return _environment_summary(summary, width)
        case TrainSummary():
            return _agent_summary(summary, width)
    return []


def _rows(rows: Iterable[tuple[str, str]], width: Width) -> list[str]:
    return [line for label, text in rows for line in summary_row(label, text, width)]


def _agent_summary(summary: TrainSummary, width: Width) -> list[str]:
    lines, game = ending(summary), summary.game
    head = "Win rates while training (it explores; `understudy eval` judges it frozen):"
    lines += ["", *wrapped(head, width)]
    rates = [
        (plain(name), bar(one.win_rate), f"{one.win_rate:.1%}", f"of the last {one.matches}")
        if one.matches
        else (plain(name), "", "-", "no match ended")
        for name, one in summary.win_rates.items()
    ]
    # The words above are the heading.
    columns = (Column("", text=True), Column("", text=True, drop=1), Column(""), Column("", True))
    lines += table_lines(columns, rates, width=width, indent=2)[1:]
    told = [
        (
            "Steps",
            f"{summary.steps:,} ({summary.steps_s:,.0f} a second, "
            f"compiling took {duration(summary.compiled_s)})",
        ),
        ("Matches", f"{summary.matches:,}"),
        ("Version", f"{summary.version}"),
        *_champion(summary),
        *_standing(summary),
        ("Run folder", summary.run),
    ]
    more = [f"understudy eval {game} --agent {summary.run}"]
    if game in catalog.drawn():
        more.append(f"understudy watch {game} --left {summary.run}{_rival(game)}")
    return [*lines, "", *_rows(told, width), "", *commands("More", more, width)]


def _rival(game: str) -> str:
    """The other side of a match to watch, in a game that has one."""
    bots = catalog.bots(game)
    alone = catalog.make(game).players == 1
    return "" if alone or not bots else f" --right {catalog.rules_named(game)}"


def _champion(summary: TrainSummary) -> Lines:
    if summary.champion is None:
        return []
    if not summary.champion:
        return [("Champion", "none yet: no version is better than the rules by evidence")]
    return [("Champion", f"{summary.champion}, by evidence")]


def _standing(summary: TrainSummary) -> Lines:
    lines = [("Stage", summary.stage)] if summary.stage else []
    if summary.rating:
        scale = "its victim is 1000" if summary.exploits else "scripted bots hold the scale"
        lines.append(("Rating", f"{summary.rating} ({scale})"))
    if summary.snapshots:
        lines.append(("Snapshots", f"{summary.snapshots}"))
    if summary.exploited:
        tally = summary.exploited
        low, high = tally.interval
        lines.append(
            (
                "Exploits",
                f"{summary.exploits}: wins {tally.win_rate:.1%} of {tally.matches} "
                f"frozen matches ({low:.1%} to {high:.1%})",
            )
        )
    return lines


def _population_summary(summary: PopulationSummary, width: Width) -> list[str]:
    """Every agent, and the line of the best one."""
    columns = (
        Column("agent"), Column("", text=True), Column("score"), Column("learning rate", drop=1),
        Column("entropy bonus", drop=2), Column("shaping", drop=3),
    )  # fmt: skip
    rows = [
        (
            f"{number}",
            "best" if number == summary.best else "",
            "-" if fitness is None else f"{fitness:.1%}",
            f"{settings.learning_rate:.3g}",
            f"{settings.entropy_weight:.3g}",
            f"{settings.shaping:.3g}",
        )
        for number, (fitness, settings) in enumerate(
            zip(summary.fitness, summary.settings, strict=True), start=1
        )
    ]
    head = (
        f"After {summary.lineage.rounds} rounds (scores against scripted opponents, exploring; "
        "-: too few matches):"
    )
    return [
        *ending(summary),
        "",
        *hanging(head, width=width),
        *table_lines(columns, rows, width=width, indent=2),
        "",
        *(line for words in summary.descent() for line in hanging(words, width=width)),
        "",
        *_rows([("Version", f"{summary.version}"), ("Run folder", summary.run)], width),
    ]


def _recent(progress: EnvironmentProgress) -> str:
    count = len(progress.recent)
    if not count:
        return "no match has ended yet"
    return f"reward of last {count}: {rewards_text(progress.reward, progress.sides)}"


def _evaluating(progress: EvaluationProgress) -> str:
    against = f" v {plain(progress.opponent)}" if progress.opponent else ""
    return f"version {progress.version} in {progress.matches} frozen matches{against}"


def _environment_summary(summary: EnvironmentSummary, width: Width) -> list[str]:
    lines = ending(summary)
    if summary.problem:
        lines += [*hanging(f"Problem: {summary.problem}", width=width), ""]
    lines += _evaluation(summary.evaluation, width) if summary.evaluation else [""]
    told = [
        ("Steps", f"{summary.steps:,} ({summary.steps_s:,.0f} a second)"),
        ("Matches", f"{summary.matches:,}"),
        ("Version", f"{summary.version}"),
    ]
    if summary.stage:
        told.append(("Stage", summary.stage))
    if summary.rating:
        told.append(("Rating", f"{summary.rating} ({summary.anchor} holds the scale)"))
    if summary.snapshots:
        told.append(("Snapshots", f"{summary.snapshots}"))
    if summary.workers:
        busy = f"playing {summary.workers.busy:.0%} of a segment's time"
        words = _workers(summary.workers).replace(" workers", "", 1)
        told.append(("Workers", f"{words}, {busy}"))
    told.append(("Run folder", summary.run))
    return [*lines, *_rows(told, width)]


def _evaluation(judged: Evaluation, width: Width) -> list[str]:
    lines = []
    if judged.matches:
        reward = rewards_text(judged.reward, judged.sides)
        head = f"Mean reward of {len(judged.matches)} frozen matches: {reward}"
        lines = hanging(head, width=width)
    if judged.opponents:
        head = "Win rates in frozen matches, with actions drawn (95% interval):"
        lines += ["", *wrapped(head, width)]
        columns = (
            Column("opponent", text=True), Column("", text=True, drop=2), Column("win rate"),
            Column("95% interval", text=True), Column("won", drop=1), Column("drawn", drop=1),
            Column("lost", drop=1),
        )  # fmt: skip
        rows = []
        for name, tally in judged.opponents.items():
            low, high = tally.interval
            counts = (tally.wins, tally.draws, tally.losses)
            interval = f"{low:.1%} to {high:.1%}"
            rate = f"{tally.win_rate:.1%}"
            rows.append((plain(name), bar(tally.win_rate), rate, interval, *map(str, counts)))
        lines += table_lines(columns, rows, width=width, indent=2)
    return [*lines, "", *summary_row("Evaluation", f"took {duration(judged.seconds)}", width)]


def _short(number: float) -> str:
    if number >= 1e6:
        return f"{number / 1e6:.2f}M"
    return f"{number / 1e3:.1f}k" if number >= 1e3 else f"{number:.0f}"
