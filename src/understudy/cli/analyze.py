"""`understudy analyze`: what an agent makes of its opponents, as pictures and as numbers."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from understudy.cli.options import EngineName, GameOfTwo, Greedy, Json, MatchSeed
from understudy.core.errors import ConfigError
from understudy.supervise.interrupts import INTERRUPTED
from understudy.telemetry.text import complain, plain, say, say_json


def analyze(
    game: GameOfTwo,
    agent: Annotated[
        str | None, typer.Option(help="RUN or RUN@VERSION (default: the game's latest run).")
    ] = None,
    opponents: Annotated[
        str, typer.Option(help="all: every scripted bot; or bots and runs with commas.")
    ] = "all",
    matches: Annotated[int, typer.Option(help="Matches against each opponent to look into.")] = 100,
    ablation: Annotated[
        int, typer.Option(help="Matches in all to play with other latents; 0 for none.")
    ] = 2000,
    out: Annotated[
        Path | None, typer.Option(help="Where files go (default: analysis/ in the run).")
    ] = None,
    seed: MatchSeed = 0,
    greedy: Greedy = False,
    delay: Annotated[
        int | None, typer.Option(help="Frames that both see late (default: the run's).")
    ] = None,
    engine: EngineName = "auto",
    json: Json = False,
) -> None:
    """See what an agent makes of its opponents: latents, probes, attention, and their worth.

    Writes PNG, CSV and analysis.json; the untrained network is the zero line
    of each but the ablation, where it is the latents of other matches.

    Example: understudy analyze brawl --agent runs/brawl-1 --matches 100 --ablation 2000
    """
    from understudy.analysis.canvas import check_installed
    from understudy.analysis.findings import page
    from understudy.cli.options import check_folder
    from understudy.cli.output import out_width
    from understudy.cli.progress import working
    from understudy.judging import analyzing
    from understudy.judging.players import LEAGUE, PlayerResolver, latest_run, split

    check_installed()
    if out is not None:
        check_folder("--out", out)
    if LEAGUE in split(opponents):
        raise ConfigError(
            f"--opponents {LEAGUE}: opponents are told apart here, one by one; "
            "name some of its snapshots instead: RUN@step-N"
        )
    name = agent if agent is not None else latest_run("--agent", game)
    carry_on, encoder = analyzing.engines_named(engine)
    leads = [("--agent", name), *(("--opponents", one) for one in split(opponents))]
    resolver = PlayerResolver(game, leads=leads, delay=delay, sampled=not greedy)
    asked = analyzing.AnalysisRequest(
        game=resolver.game,
        agent=resolver.resolve("--agent", name),
        opponents={one.name: one.player for one in resolver.resolve_all("--opponents", opponents)},
        matches=matches,
        ablation=ablation,
        seed=seed,
        out=out if out is not None else _run_of(name) / "analysis",
        engine=carry_on,
        encoder=encoder,
    )
    for note in resolver.notes:
        complain(note)

    try:
        found = analyzing.analyze(asked, partial(working, quiet=json))
    except KeyboardInterrupt:
        complain(f"interrupted: what was finished is in {plain(asked.out.as_posix())}")
        raise typer.Exit(INTERRUPTED) from None
    if json:
        say_json({**msgspec.to_builtins(found, str_keys=True), "out": asked.out.as_posix()})
    else:
        say(page(found, width=out_width()))
        say(f"\nPictures and tables are in {plain(asked.out.as_posix())}")


def _run_of(name: str) -> Path:
    """The folder of RUN or RUN@VERSION."""
    stem, at, _ = name.rpartition("@")
    return Path(stem) if at and not Path(name).is_dir() else Path(name)
