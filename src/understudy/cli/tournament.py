"""`understudy tournament`: everyone against everyone, standings, payoffs and cycles."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.options import (
    Bots,
    EngineName,
    FirstRunDelay,
    GameOfTwo,
    GameOption,
    Greedy,
    Json,
    MatchSeed,
    RayMode,
    Workers,
    check_workers,
    game_options,
    workers_line,
)
from understudy.cli.output import emit, emit_text
from understudy.core.errors import ConfigError
from understudy.telemetry.text import complain, plain, say, say_json


def tournament(
    game: GameOfTwo,
    players: Annotated[
        list[str], typer.Argument(help="RUN, RUN@VERSION, RUN@step-N or bots, two or more.")
    ],
    matches: Annotated[int, typer.Option(help="Matches of each pair, half from each slot.")] = 200,
    seed: MatchSeed = 0,
    greedy: Greedy = False,
    delay: FirstRunDelay = None,
    bots: Bots = None,
    option: GameOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Also write payoffs.csv, standings.csv and payoffs.png.")
    ] = None,
    engine: EngineName = "auto",
    workers: Workers = None,
    ray: RayMode = None,
    json: Json = False,
) -> None:
    """Let runs and bots play a round robin: standings, payoff matrix, cycles.

    Every pair plays on the same seeds, half of the matches from each slot. A win is one point, a
    draw half.

    Example: understudy tournament brawl runs/a runs/b based kiting --matches 200
    """
    from understudy.cli.options import check_folder
    from understudy.cli.payoff_table import found_page
    from understudy.cli.progress import working
    from understudy.judging import payoff_files
    from understudy.judging.players import engine_named
    from understudy.judging.tournament import tournament as play_tournament

    if matches < 1:
        raise ConfigError(f"--matches: expected 1 or more, got {matches}")
    if out is not None:
        check_folder("--out", out)
        payoff_files.check_installed()
    carry_on = engine_named(engine)
    count, mode = check_workers(game, workers, ray)
    if count and not json:
        complain(workers_line(count, mode))
    pairs = len(players) * (len(players) - 1) // 2
    with working(f"{pairs} pairs x {matches} matches", quiet=json) as show:
        outcome = play_tournament(
            game,
            players,
            matches=matches,
            seed=seed,
            sampled=not greedy,
            delay=delay,
            options=game_options(option or []),
            bots=bots or [],
            engine=carry_on,
            workers=count,
            ray=mode,
            note=complain,
            show=show,
        )
    if out is not None:
        title = f"{outcome.game}: win rates, {matches} matches a pair"
        payoff_files.write_payoffs(out, outcome.payoffs, outcome.places, title)
    if json:
        say_json({"game": outcome.game, "matches": matches, "seed": seed, **outcome.as_dict()})
        return
    say(f"{outcome.game}: {len(players)} players, {matches} frozen matches of each pair")
    for name, version in outcome.versions.items():
        if version is not None:
            say(f"  {plain(name)} is version {version}")
    say("")
    emit(found_page(outcome.payoffs, outcome.places, outcome.cycles))
    if out is not None:
        say("")
        emit_text(f"Written to {out}: payoffs.csv, standings.csv, payoffs.png")
