"""`understudy watch`: one match, drawn in the terminal or as a picture."""

from __future__ import annotations

import itertools
import sys
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from understudy.cli.options import Bots, FirstRunDelay, GameOption, Greedy, game_options
from understudy.cli.output import emit_table, emit_text
from understudy.core.errors import ConfigError
from understudy.supervise.interrupts import INTERRUPTED
from understudy.telemetry.layout import Column
from understudy.telemetry.text import complain, plain, say, say_json, size, stamp

if TYPE_CHECKING:
    from understudy.judging.replays import MatchListing
    from understudy.judging.watching import Showing, WatchedResult
    from understudy.registry.run_folder import RunFolder

_CURTAIN_S = 1.0
"""How long the last frame stays."""
_LISTED = 20


def watch(
    game: Annotated[
        str, typer.Argument(help="brawl, swarm, territory, or your own: FILE.py:GAME, MODULE:GAME.")
    ],
    left: Annotated[
        str | None,
        typer.Option(
            help="RUN, RUN@VERSION, an exported file.py or a bot (default: the game's latest run)."
        ),
    ] = None,
    right: Annotated[
        str | None,
        typer.Option(help="RUN, RUN@VERSION, an exported file.py or a bot (default: the rules)."),
    ] = None,
    match: Annotated[
        str | None,
        typer.Option(help="A recorded match instead: RUN:ID, or RUN to list what there is."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Another seed is another match (default: 0).")
    ] = None,
    greedy: Greedy = False,
    delay: FirstRunDelay = None,
    bots: Bots = None,
    option: GameOption = None,
    speed: Annotated[float, typer.Option(help="2 is twice as fast, 0.5 is slow motion.")] = 1.0,
    gif: Annotated[Path | None, typer.Option(help="Write an animation to this file.")] = None,
    png: Annotated[
        Path | None, typer.Option(help="Write the moments that mattered to this file.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print events and result as one JSON object.")
    ] = False,
) -> None:
    """Watch one match: drawn in the terminal, or written as a picture.

    Frozen players play it now, or --match replays one that `train` recorded (train.record).
    Where there is no terminal, what happened is told in words.

    Example: understudy watch brawl --left runs/brawl-1 --right based --gif match.gif
    """
    if not speed > 0:
        raise ConfigError(f"--speed: expected more than 0, got {speed}")
    from understudy.adapters.environments.factory import is_environment

    if is_environment(game):
        from understudy.cli.environments import watch_in_environment

        if match is not None or delay is not None or png is not None:
            raise ConfigError(
                f"{game} has no recorded matches, delay and moments: leave "
                "--match, --delay and --png out"
            )
        watch_in_environment(
            game, left, right or "random", seed=seed or 0, greedy=greedy, speed=speed, gif=gif,
            bots=bots or [], option=option or [], json=json,
        )  # fmt: skip
        return
    if match is None:
        showing = _frozen(
            game,
            left,
            right,
            seed or 0,
            greedy=greedy,
            delay=delay,
            option=option or [],
            bots=bots or [],
        )
    else:
        given = {
            "--left": left, "--right": right, "--seed": seed, "--greedy": greedy or None,
            "--delay": delay, "--bots": bots, "--option": option,
        }  # fmt: skip
        for flag, value in given.items():
            if value is not None:
                raise ConfigError(f"{flag}: a recorded match (--match) has its own")
        found = _recorded(game, match, pictures=gif is not None or png is not None, json=json)
        if found is None:
            return
        showing = found
    files: dict[str, str] = {}
    last: list[str] = []
    try:
        if gif is not None or png is not None:
            files = _pictures(showing, gif, png, quiet=json)
        elif json:
            deque(showing.scenes(), maxlen=0)
        else:
            last = _drawn(showing, speed=speed)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    outcome = showing.outcome()
    if json:
        say_json({**msgspec.to_builtins(outcome), **files})
    else:
        say("\n".join([*_story(outcome), *last, *(f"Written: {path}" for path in files.values())]))


def _frozen(
    game: str,
    left: str | None,
    right: str | None,
    seed: int,
    *,
    greedy: bool,
    delay: int | None,
    option: list[str],
    bots: list[str],
) -> Showing:
    """A match of the players that were named."""
    from understudy.games import catalog
    from understudy.judging.players import PlayerResolver, latest_run
    from understudy.judging.watching import Showing

    name = left if left is not None else latest_run("--left", game)
    leads = [("--left", name), *([("--right", right)] if right is not None else [])]
    resolver = PlayerResolver(
        game,
        leads=leads,
        delay=delay,
        sampled=not greedy,
        options=game_options(option),
        bots=bots,
        alone=True,
    )
    alone = resolver.game.players == 1
    if alone and right is not None:
        raise ConfigError(f"--right: {resolver.name} has one player; leave it out")
    rival = (
        None
        if alone
        else resolver.resolve(
            "--right", right or catalog.rules_named(resolver.name, flag="--right")
        )
    )
    first = resolver.resolve("--left", name)
    for note in resolver.notes:
        complain(note)
    return Showing.frozen(resolver, first, rival, seed=seed)


def _recorded(game: str, match: str, *, pictures: bool, json: bool) -> Showing | None:
    """The recorded match, ready to be shown; None where words were enough: a list of matches, or
    a match of a game that cannot be drawn."""
    from understudy.games import catalog
    from understudy.judging.replays import named_match, replay_match, replayed_in_words
    from understudy.judging.watching import Showing, check_drawn

    folder, which = named_match(match, game)
    run = folder.root.as_posix()
    if which is None:
        _list(folder, game, json=json)
        return None
    drawn = folder.identity.game_name in catalog.drawn()
    if pictures and not drawn:
        check_drawn(folder.identity.game_name)
    found = replay_match(folder, which)
    if drawn:
        return Showing.recorded(found, run=run, name=f"{run}:{found.id}")
    replayed = replayed_in_words(found)
    if json:
        say_json(replayed)
    else:
        say(
            f"{game}: {run}:{replayed.match} v {plain(replayed.opponent)}, seed {replayed.seed}\n"
            f"{replayed.outcome} after {replayed.frames} frames, reward {replayed.reward:g}\n"
            f"Replayed: {replayed.states}. ({game} cannot be drawn.)"
        )
    return None


def _list(folder: RunFolder, game: str, *, json: bool) -> None:
    """The recorded matches of a run, newest first."""
    from understudy.judging.replays import listed

    if json:
        say_json(list(listed(folder)))
        return
    rows = list(itertools.islice(listed(folder), _LISTED + 1))
    run = folder.root.as_posix()
    agents = sorted(path.parent.as_posix() for path in folder.root.glob("*/matches"))
    if not rows and agents:
        say(f"{run} is a population; its agents recorded matches: {', '.join(agents)}")
        return
    if not rows:
        say(
            f"{run} has no recorded matches; `understudy train {game} --set train.record=10` "
            "records ten between two versions"
        )
        return
    emit_table(_LIST, [_recorded_row(row) for row in rows[:_LISTED] if row.outcome])
    for row in rows[:_LISTED]:
        if row.problem:
            emit_text(f"{row.id}  cannot be replayed: {plain(row.problem)}", more=4)
    if len(rows) > _LISTED:
        say(f"Only the newest {_LISTED}; --json lists all.")
    first = next((row.id for row in rows if not row.problem), None)
    if first is not None:
        say(f"Watch one: understudy watch {game} --match {run}:{first}")


_LIST = (
    Column("id"),
    Column("opponent", text=True, drop=1),
    Column("outcome", text=True, drop=2),
    Column("frames", drop=4),
    Column("steps", drop=3),
    Column("version", drop=5),
    Column("when", text=True, drop=6),
)


def _recorded_row(row: MatchListing) -> list[str]:
    return [
        row.id,
        plain(row.opponent, limit=40),
        row.outcome,
        f"{row.frames}",
        "-" if row.steps is None else f"{row.steps:,}",
        f"{row.version}",
        stamp(row.at),
    ]


def _drawn(showing: Showing, *, speed: float) -> list[str]:
    """Live in a terminal; elsewhere nothing moves, and the last scene is what is left to print."""
    from understudy.screens.console import escapes
    from understudy.screens.terminal import TextStyle, text

    with escapes(sys.stdout) as able:
        if able:
            _played(showing, speed=speed)
            return []
    (end,) = deque(showing.scenes(), maxlen=1)
    return ["", *text(end, TextStyle.of(sys.stdout).still)]


def _played(showing: Showing, *, speed: float) -> None:
    """In the pace of the game."""
    from understudy.screens.terminal import AnimatedTerminal

    frame_s = 1.0 / (showing.drawing.frames_per_s * speed)
    with AnimatedTerminal(sys.stdout) as terminal:
        due = time.monotonic()
        for scene in showing.scenes():
            due += frame_s
            wait = due - time.monotonic()
            if wait > -frame_s or showing.drawing.over:  # too late: the next one catches up
                terminal.show(scene)
            if wait > 0:
                time.sleep(max(due - time.monotonic(), 0.0))
            elif wait < -1.0:
                due = time.monotonic()  # a machine that cannot keep up plays as fast as it can
        time.sleep(_CURTAIN_S)


def _pictures(
    showing: Showing, gif: Path | None, png: Path | None, *, quiet: bool
) -> dict[str, str]:
    """Play the match, then draw it; which files were written."""
    from understudy.cli.progress import working
    from understudy.judging.watching import moments
    from understudy.screens import picture

    picture.require_pillow()
    for path, ending in ((gif, ".gif"), (png, ".png")):
        if path is not None:
            picture.check_path(path, ending)
    with working("playing the match", quiet=quiet):
        scenes = list(showing.scenes())
    files = {}
    if gif is not None:
        with working("drawing", quiet=quiet) as show:
            pace = showing.drawing.frames_per_s
            count = picture.save_gif(gif, scenes, frames_per_s=pace, show=show)
        files["gif"] = str(gif) if quiet else f"{gif} ({size(count)})"
    if png is not None:
        drawing = showing.drawing
        told = moments(
            scenes,
            drawing.events,
            frames_per_s=drawing.frames_per_s,
            frame_s=drawing.frame_s,
        )
        count = picture.save_png(png, told)
        files["png"] = str(png) if quiet else f"{png} ({size(count)})"
    return files


def _story(outcome: WatchedResult) -> list[str]:
    """The match in words."""
    lives = "" if outcome.stocks is None else "; stocks left {} : {}".format(*outcome.stocks)
    against = f" v {plain(outcome.right)}" if outcome.right else ""
    source = _source(outcome) if outcome.match else []
    return [
        f"{outcome.game}: {plain(outcome.left)}{against}, seed {outcome.seed}",
        *source,
        *(f"{event.time_s:>7.2f} s  {plain(str(event))}" for event in outcome.events),
        f"{_ending(outcome)} after {outcome.time_s:.1f} s{lives}",
    ]


def _ending(outcome: WatchedResult) -> str:
    if outcome.winner is not None:
        return f"{plain(outcome.winner)} won"
    last = outcome.events[-1].event if outcome.events else ""
    return {"lost": "Lost", "drawn": "Draw"}.get(last, "Not over")


def _source(outcome: WatchedResult) -> list[str]:
    """Where a recorded match is from."""
    recorded = outcome.recorded
    if recorded is None:
        return [
            f"Recorded: {outcome.match} v {plain(outcome.opponent)}, {outcome.outcome}, reward "
            f"{outcome.reward:g}",
            f"Replayed: {outcome.states}",
        ]
    return [
        f"Recorded: {outcome.match}, {stamp(recorded.recorded_at)}, after {recorded.steps:,} steps "
        f"and version {recorded.version}",
        f"Replayed: {outcome.states} ({plain(recorded.engine, limit=60)})",
    ]
