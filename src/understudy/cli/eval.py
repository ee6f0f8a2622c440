"""`understudy eval`: frozen matches against every opponent, counted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.options import (
    Bots,
    EngineName,
    FirstRunDelay,
    GameOption,
    Greedy,
    Json,
    MatchSeed,
    NamedGame,
    RayMode,
    Workers,
    check_workers,
    game_options,
)
from understudy.cli.output import emit_table, emit_text
from understudy.core.errors import ConfigError
from understudy.core.opponents import GAME
from understudy.telemetry.layout import Column
from understudy.telemetry.text import complain, plain, say, say_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from understudy.games.base import Game
    from understudy.games.moments import MeasureColumn
    from understudy.judging.environments import NamedSide
    from understudy.judging.players import NamedPlayer, PlayerResolver
    from understudy.match.series import Engine
    from understudy.match.tally import EvaluationReport


def evaluate(
    game: NamedGame,
    agent: Annotated[
        str | None,
        typer.Option(
            help="RUN, RUN@VERSION, RUN@step-N, an exported file.py or a bot (default: the game's "
            "latest run)."
        ),
    ] = None,
    opponents: Annotated[
        str,
        typer.Option(
            help="With commas: all (every scripted bot), heldout (bots that no training meets), "
            "league (the agent's snapshots), and bots, runs and exported files by name."
        ),
    ] = "all",
    matches: Annotated[int, typer.Option(help="Matches against each opponent.")] = 200,
    snapshots: Annotated[
        int,
        typer.Option(help="Snapshots that a league is judged by, at most; they share --matches."),
    ] = 20,
    seed: MatchSeed = 0,
    greedy: Greedy = False,
    delay: FirstRunDelay = None,
    bots: Bots = None,
    option: GameOption = None,
    engine: EngineName = "auto",
    workers: Workers = None,
    ray: RayMode = None,
    csv: Annotated[
        Path | None, typer.Option(help="Write the table to this file as well, with every measure.")
    ] = None,
    json: Json = False,
) -> None:
    """Judge an agent by frozen matches: half from each slot, draws are not wins.

    A run is judged by its champion, unless a version or a snapshot is named.

    Example: understudy eval brawl --agent runs/brawl-1 --opponents all,heldout,league --matches 500
    """
    from understudy.adapters.environments.factory import is_environment
    from understudy.cli.options import check_file
    from understudy.cli.progress import working
    from understudy.judging.players import (
        PlayerResolver,
        engine_for,
        engine_named,
        latest_run,
        split,
    )

    for flag, count in (("--matches", matches), ("--snapshots", snapshots)):
        if count < 1:
            raise ConfigError(f"{flag}: expected 1 or more, got {count}")
    if csv is not None:
        check_file("--csv", csv)
    engine_named(engine)  # a wrong name is an error before anything is read
    count, mode = check_workers(game, workers, ray)
    if is_environment(game):
        from understudy.cli.environments import evaluate_in_environment

        evaluate_in_environment(
            game, agent, opponents, matches=matches, snapshots=snapshots, seed=seed, greedy=greedy,
            bots=bots or [], option=option or [], workers=count, ray=mode, csv=csv, json=json,
        )  # fmt: skip
        return
    name = agent if agent is not None else latest_run("--agent", game)
    leads = [("--agent", name), *(("--opponents", one) for one in split(opponents))]
    resolver = PlayerResolver(
        game,
        leads=leads,
        delay=delay,
        sampled=not greedy,
        options=game_options(option or []),
        bots=bots or [],
        alone=True,
    )
    judged = resolver.resolve("--agent", name)
    against = _opponents(resolver, judged, opponents, agent=name, most=snapshots)
    for note in resolver.notes:
        complain(note)
    with working(f"{matches} matches v each of {len(against)}", quiet=json) as show:
        reports = _judged(
            resolver.game,
            judged,
            against,
            matches=matches,
            seed=seed,
            engine=engine_for(engine, [judged, *against]),
            show=show,
        )
    rows = {one.name: opponent_row(one, reports[one.name]) for one in against}
    if csv is not None:
        write_table(csv, rows)
    if json:
        say_json(
            {
                "game": resolver.name,
                "agent": judged.name,
                "version": judged.version,
                "matches": matches,
                "seed": seed,
                "opponents": rows,
            }
        )
        return
    version = "" if judged.version is None else f" (version {judged.version})"
    emit_text(
        f"{resolver.name}: {plain(judged.name)}{version}, {matches} frozen matches v each", more=2
    )
    say("")
    emit_table(*_table(resolver.name, against, reports))


def _opponents(
    resolver: PlayerResolver, judged: NamedPlayer, names: str, *, agent: str, most: int
) -> list[NamedPlayer]:
    """The opponents by name; of a game of one player its rules, which no player plays."""
    from understudy.judging.players import ALL, NamedPlayer

    if resolver.game.players > 1:
        return resolver.resolve_all("--opponents", names, agent=agent, most=most)
    if names != ALL:
        raise ConfigError(
            f"--opponents {names}: {resolver.name} has one player, whose opponent is the game; "
            "leave --opponents out"
        )
    return [NamedPlayer(GAME, judged.player, None, GAME)]


def _judged(
    game: Game,
    judged: NamedPlayer,
    against: Sequence[NamedPlayer],
    *,
    matches: int,
    seed: int,
    engine: Engine,
    show: Callable[[float], None],
) -> dict[str, EvaluationReport]:
    from understudy.match.evaluate import judge, judge_alone

    if game.players == 1:
        report = judge_alone(
            game, judged.player, matches=matches, seed=seed, engine=engine, show=show
        )
        return {GAME: report}
    players = {one.name: one.player for one in against}
    return judge(game, judged.player, players, matches=matches, seed=seed, engine=engine, show=show)


def opponent_row(one: NamedPlayer | NamedSide, report: EvaluationReport) -> dict[str, object]:
    """One opponent, for JSON; a league lists its snapshots."""
    members = {"snapshots": list(one.members)} if one.members else {}
    return {"kind": one.kind, **report.as_dict(), **members}


def write_table(path: Path, rows: Mapping[str, Mapping[str, object]]) -> None:
    """A row for each opponent, with the bounds of the interval and all measures."""
    from understudy.core import files
    from understudy.telemetry.table import csv_bytes

    lines: list[list[object]] = []
    for name, row in rows.items():
        interval, measures = row["interval"], row["measures"]
        assert isinstance(interval, list) and isinstance(measures, dict)
        cells = {
            "opponent": name,
            **{key: row[key] for key in row if key not in ("interval", "measures", "snapshots")},
            "interval_low": interval[0],
            "interval_high": interval[1],
            **measures,
        }
        lines = lines or [list(cells)]
        lines.append(["" if cell is None else cell for cell in cells.values()])
    files.write_atomic(path, csv_bytes(lines))


def _table(
    game: str, against: Sequence[NamedPlayer], reports: Mapping[str, EvaluationReport]
) -> tuple[list[Column], list[list[str]]]:
    from understudy.games import catalog

    measures = [column for column in catalog.measure_columns(game) if column.heading]
    return opponent_table(against, reports, measures=measures)


def opponent_table(
    against: Sequence[NamedPlayer | NamedSide],
    reports: Mapping[str, EvaluationReport],
    *,
    measures: Sequence[MeasureColumn] = (),
    length: str = "frames",
) -> tuple[list[Column], list[list[str]]]:
    """Columns and rows; intervals are 95% confidence intervals of the win rate. `length` is what a
    match is measured in."""
    columns = [
        Column("opponent", text=True),
        Column("wins", drop=6),
        Column("draws", drop=6),
        Column("losses", drop=6),
        Column("win rate"),
        Column("95% interval", drop=1),
        Column("return", drop=4),
        *(Column(one.heading, drop=3) for one in measures),
        Column(length, drop=8),
        Column("distinct", drop=7),
    ]
    return columns, [_cells(one, reports[one.name], measures) for one in against]


def _cells(
    one: NamedPlayer | NamedSide, report: EvaluationReport, measures: Sequence[MeasureColumn]
) -> list[str]:
    tally = report.tally
    low, high = tally.interval
    return [
        plain(one.label),
        *(f"{count}" for count in (tally.wins, tally.draws, tally.losses)),
        f"{tally.win_rate:.1%}",
        f"{100 * low:.1f} to {100 * high:.1f}%",
        f"{report.mean_return:.2f}",
        *(_measure(column, report) for column in measures),
        f"{report.mean_frames:.0f}",
        f"{report.distinct}",
    ]


def _measure(column: MeasureColumn, report: EvaluationReport) -> str:
    """`-` where there is no such measure or ratio."""
    value = column.value(report.measures)
    if value is None:
        return "-"
    return f"{min(value, 9999.0):.{1 if value < 100 else 0}f}x" if column.ratio else f"{value:.1f}"
