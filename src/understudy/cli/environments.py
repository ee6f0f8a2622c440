"""`eval` and `watch` in Gymnasium and PettingZoo environments of two sides."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from understudy.cli.eval import opponent_row, opponent_table, write_table
from understudy.cli.options import game_options, workers_line
from understudy.cli.output import emit_table, emit_text
from understudy.cli.progress import working
from understudy.judging.environments import EnvironmentResolver
from understudy.judging.players import latest_run, split
from understudy.supervise.interrupts import INTERRUPTED
from understudy.telemetry.text import complain, plain, say, say_json, size

if TYPE_CHECKING:
    from understudy.judging.environment_watching import DrawnMatch

_FRAME_S = 0.5
"""How long a picture of a turn stays in a terminal at speed 1."""


def evaluate_in_environment(
    game: str,
    agent: str | None,
    opponents: str,
    *,
    matches: int,
    snapshots: int,
    seed: int,
    greedy: bool,
    bots: list[str],
    option: list[str],
    workers: int,
    ray: str,
    csv: Path | None,
    json: bool,
) -> None:
    """Judge an agent by frozen matches in an environment."""
    name = agent if agent is not None else latest_run("--agent", game)
    leads = [("--agent", name), *(("--opponents", one) for one in split(opponents))]
    resolver = EnvironmentResolver(
        game, leads=leads, options=game_options(option), bots=bots, sampled=not greedy, seed=seed
    )
    judged = resolver.resolve("--agent", name)
    against = resolver.resolve_all("--opponents", opponents, agent=name, most=snapshots)
    if workers and not json:
        complain(workers_line(workers, ray))
    with (
        working(f"{matches} matches v each of {len(against)}", quiet=json) as show,
        resolver.with_workers(workers, ray=ray, note=complain),
    ):
        played = resolver.meet([(judged, one) for one in against], matches, show=show)
    reports = {one.name: report for one, report in zip(against, played, strict=True)}
    rows = {one.name: opponent_row(one, reports[one.name]) for one in against}
    if csv is not None:
        write_table(csv, rows)
    if json:
        say_json(
            {
                "game": game,
                "agent": judged.name,
                "version": judged.version,
                "matches": matches,
                "seed": seed,
                "opponents": rows,
            }
        )
        return
    version = "" if judged.version is None else f" (version {judged.version})"
    emit_text(f"{game}: {plain(judged.name)}{version}, {matches} frozen matches v each", more=2)
    say("")
    emit_table(*opponent_table(against, reports, length="steps"))


def watch_in_environment(
    game: str,
    left: str | None,
    right: str,
    *,
    seed: int,
    greedy: bool,
    speed: float,
    gif: Path | None,
    bots: list[str],
    option: list[str],
    json: bool,
) -> None:
    """Show one match as the environment draws it."""
    from understudy.judging.environment_watching import ANSI, PIXELS, DrawnMatch

    name = left if left is not None else latest_run("--left", game)
    resolver = EnvironmentResolver(
        game,
        leads=[("--left", name), ("--right", right)],
        options=game_options(option),
        bots=bots,
        sampled=not greedy,
        seed=seed,
    )
    one, two = resolver.resolve("--left", name), resolver.resolve("--right", right)
    match = DrawnMatch(resolver, one, two, mode=PIXELS if gif is not None else ANSI)
    files: dict[str, str] = {}
    try:
        if gif is not None:
            from understudy.screens import frames, picture

            picture.require_pillow()
            picture.check_path(gif, ".gif")
            with working("playing the match", quiet=json):
                pictures = list(match.pictures())
            count = frames.save_gif(gif, pictures, frame_s=match.frame_s / speed)
            files["gif"] = str(gif) if json else f"{gif} ({size(count)})"
        else:
            _print(match, speed=speed, quiet=json)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    if json:
        say_json({**match.outcome(), **files})
        return
    for line in (*match.story(), *(f"Written: {path}" for path in files.values())):
        say(plain(line))


def _print(match: DrawnMatch, *, speed: float, quiet: bool) -> None:
    """Pictures that are text, in their pace in a terminal; only the last one elsewhere."""
    last = ""
    for picture in match.pictures():
        if isinstance(picture, str) and not quiet:
            last = picture
            if sys.stdout.isatty():
                say(picture)
                time.sleep(_FRAME_S / speed)
    if last and not sys.stdout.isatty():
        say(last)
