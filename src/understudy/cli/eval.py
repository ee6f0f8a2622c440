"""`understudy eval`: frozen matches against every opponent, counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.play import INTERRUPTED
from understudy.core.errors import ConfigError
from understudy.telemetry.text import complain, plain, say, say_json

if TYPE_CHECKING:
    from understudy.match.tally import Report
    from understudy.run.judging import Contestant


def evaluate(
    game: Annotated[str, typer.Argument(help="Which game of two; see `understudy games`.")],
    agent: Annotated[
        str | None, typer.Option(help="RUN, RUN@VERSION or a bot (default: the latest run).")
    ] = None,
    opponents: Annotated[
        str, typer.Option(help="all: every scripted bot; or bots and runs with commas.")
    ] = "all",
    matches: Annotated[int, typer.Option(help="Matches against each opponent.")] = 200,
    seed: Annotated[int, typer.Option(help="Seeds the matches; none was ever trained on.")] = 0,
    sample: Annotated[
        bool, typer.Option("--sample", help="Draw actions instead of the likeliest ones.")
    ] = False,
    delay: Annotated[
        int | None, typer.Option(help="Frames that both see late (default: the first run's).")
    ] = None,
    engine: Annotated[str, typer.Option(help="auto, numpy or jax.")] = "auto",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Judge an agent by frozen matches: half from each slot, draws are not wins.

    A run is judged by its champion, unless a version is named.

    Example: understudy eval brawl --agent runs/brawl-1 --opponents all --matches 200 --json
    """
    from understudy.cli.meter import Meter
    from understudy.match.evaluate import judge
    from understudy.run.judging import Cast, engine_named, latest_run, split

    if matches < 1:
        raise ConfigError(f"--matches: expected 1 or more, got {matches}")
    carry_on = engine_named(engine)
    name = agent if agent is not None else latest_run("--agent")
    leads = [("--agent", name), *(("--opponents", one) for one in split(opponents))]
    cast = Cast(game, leads=leads, delay=delay, sampled=sample)
    judged = cast.contestant("--agent", name)
    against = cast.contestants("--opponents", opponents)
    for note in cast.notes:
        complain(note)
    meter = Meter(f"{matches} matches v {len(against)}", quiet=json)
    try:
        reports = judge(
            cast.game,
            judged.player,
            {one.name: one.player for one in against},
            matches=matches,
            seed=seed,
            engine=carry_on,
            show=meter.show,
        )
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    finally:
        meter.close()
    if json:
        say_json(
            {
                "game": game,
                "agent": judged.name,
                "version": judged.version,
                "matches": matches,
                "opponents": {name: report.as_dict() for name, report in reports.items()},
            }
        )
    else:
        say(_table(game, judged, matches, reports))


def _table(game: str, agent: Contestant, matches: int, reports: dict[str, Report]) -> str:
    """For people; the interval is where the true win rate is, with 95% confidence."""
    version = "" if agent.version is None else f" (version {agent.version})"
    width = max(len("opponent"), *(len(plain(name)) for name in reports))
    lines = [
        f"{game}: {plain(agent.name)}{version}, {matches} frozen matches v each",
        "",
        f"{'opponent':<{width}}  {'wins':>5} {'draws':>5} {'losses':>6}  {'win rate':>8}"
        f"  {'95% interval':<16}  {'distinct':>8}  {'frames':>6}",
    ]
    for name, report in reports.items():
        tally = report.tally
        low, high = tally.interval
        interval = f"{low:.1%} to {high:.1%}"
        lines.append(
            f"{plain(name):<{width}}  {tally.wins:>5} {tally.draws:>5} {tally.losses:>6}"
            f"  {tally.win_rate:>8.1%}  {interval:<16}  {report.distinct:>8}"
            f"  {report.mean_frames:>6.0f}"
        )
    return "\n".join(lines)
