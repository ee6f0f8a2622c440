"""`understudy watch`: one match, drawn in the terminal or as a picture."""

from __future__ import annotations

import sys
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from understudy.cli.options import FirstRunDelay, Greedy
from understudy.core.errors import ConfigError
from understudy.supervise.interrupts import INTERRUPTED
from understudy.telemetry.text import complain, plain, say, say_json, size

if TYPE_CHECKING:
    from understudy.judging.watching import Showing, WatchedResult

_CURTAIN_S = 1.0
"""How long the last frame stays."""


def watch(
    game: Annotated[str, typer.Argument(help="Which game: brawl.")],
    left: Annotated[
        str | None, typer.Option(help="RUN, RUN@VERSION or a bot (default: the game's latest run).")
    ] = None,
    right: Annotated[str, typer.Option(help="RUN, RUN@VERSION or a bot.")] = "based",
    seed: Annotated[int, typer.Option(help="Another seed is another match.")] = 0,
    greedy: Greedy = False,
    delay: FirstRunDelay = None,
    speed: Annotated[float, typer.Option(help="2 is twice as fast, 0.5 is slow motion.")] = 1.0,
    gif: Annotated[Path | None, typer.Option(help="Write an animation to this file.")] = None,
    png: Annotated[
        Path | None, typer.Option(help="Write the moments that mattered to this file.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print events and result as one JSON object.")
    ] = False,
) -> None:
    """Watch one match of frozen players: drawn in the terminal, or written as a picture.

    Where there is no terminal, what happened is told in words.

    Example: understudy watch brawl --left runs/brawl-1 --right based --gif match.gif
    """
    from understudy.judging.players import PlayerResolver, latest_run
    from understudy.judging.watching import Showing

    if not speed > 0:
        raise ConfigError(f"--speed: expected more than 0, got {speed}")
    name = left if left is not None else latest_run("--left", game)
    leads = [("--left", name), ("--right", right)]
    resolver = PlayerResolver(game, leads=leads, delay=delay, sampled=not greedy)
    sides = (resolver.resolve("--left", name), resolver.resolve("--right", right))
    for note in resolver.notes:
        complain(note)
    showing = Showing(resolver, *sides, seed=seed)
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
    from understudy.games.brawl.drawing.scene import FRAMES_PER_S
    from understudy.screens.terminal import AnimatedTerminal

    frame_s = 1.0 / (FRAMES_PER_S * speed)
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
    from understudy.cli.show import Meter
    from understudy.judging.watching import moments
    from understudy.screens import picture

    picture.require_pillow()
    for path, ending in ((gif, ".gif"), (png, ".png")):
        if path is not None:
            picture.check_path(path, ending)
    scenes = list(showing.scenes())
    files = {}
    if gif is not None:
        with Meter("drawing", quiet=quiet) as show:
            count = picture.save_gif(gif, scenes, show=show)
        files["gif"] = str(gif) if quiet else f"{gif} ({size(count)})"
    if png is not None:
        count = picture.save_png(png, moments(scenes, showing.drawing.events))
        files["png"] = str(png) if quiet else f"{png} ({size(count)})"
    return files


def _story(outcome: WatchedResult) -> list[str]:
    """The match in words."""
    one, two = outcome.stocks
    return [
        f"{outcome.game}: {plain(outcome.left)} v {plain(outcome.right)}, seed {outcome.seed}",
        *(f"{event.time_s:>7.2f} s  {plain(str(event))}" for event in outcome.events),
        f"{'Draw' if outcome.winner is None else plain(outcome.winner) + ' won'}"
        f" after {outcome.time_s:.1f} s; stocks left {one} : {two}",
    ]
