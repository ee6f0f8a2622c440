"""`understudy play`: matches of a built-in game, with the learner in the background."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.settings import config_from
from understudy.core.errors import ConfigError, nearest
from understudy.games import catalog
from understudy.telemetry.text import say_json

_OWN_SCREEN = {"report.status_every_s": 0, "report.statistics_every_matches": 0}
"""`play` has a screen of its own; the bot's reports come only where a person asks for them."""


def play(
    game: Annotated[str, typer.Argument(help="Which game; see `understudy games`.")],
    difficulty: Annotated[
        str | None, typer.Option(help="A difficulty of the game (default: hard), or `adaptive`.")
    ] = None,
    matches: Annotated[int | None, typer.Option(help="How many matches to play.")] = None,
    minutes: Annotated[float | None, typer.Option(help="How long to play instead.")] = None,
    evaluate: Annotated[
        int | None,
        typer.Option("--eval", help="Frozen matches at the end (default: 200; with --json: 0)."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seeds matches and learning (default: the run's, else 0).")
    ] = None,
    run: Annotated[
        Path | None, typer.Option(help="The run folder (default: a new runs/GAME-N).")
    ] = None,
    network: Annotated[
        str | None, typer.Option(help="The network of a new run: mlp, decision-transformer, ...")
    ] = None,
    learner: Annotated[
        str | None, typer.Option(help="process (the default), thread or off.")
    ] = None,
    pace: Annotated[
        str | None, typer.Option(help="free (the default), or learner: wait while it is behind.")
    ] = None,
    lockstep: Annotated[
        bool, typer.Option(help="One process, serially: the same bits for the same seed.")
    ] = False,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A setting: learner.gamma=0.99. Repeatable.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="Play territory on this server: ws://127.0.0.1:8765/ws.")
    ] = None,
    territories: Annotated[
        int | None, typer.Option(help="With --url: matches side by side (default: 20).")
    ] = None,
    speed: Annotated[
        float | None, typer.Option(help="With --url: times real time, at most (default: 60).")
    ] = None,
    ticks: Annotated[
        int | None, typer.Option(help="With --url: how many ticks to play instead.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="With --url: a file with the server's token.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object at the end.")] = False,
) -> None:
    """Play a built-in game while a learner improves the bot in the background.

    Without --matches or --minutes: 90 seconds. Ctrl-C or SIGTERM ends early and keeps
    everything (exit code 130 or 143); pressed again, it does not wait for the learner.

    With --url the game runs here and the decisions come from `understudy serve territory`.

    Example: understudy play swarm --minutes 3 --difficulty hard --eval 400
    """
    for_here = {
        "--difficulty": difficulty, "--matches": matches, "--eval": evaluate, "--run": run,
        "--network": network, "--learner": learner, "--pace": pace,
        "--lockstep": lockstep or None, "--set": set_,
    }  # fmt: skip
    for_there = {
        "--territories": territories, "--speed": speed, "--ticks": ticks,
        "--token-file": token_file,
    }  # fmt: skip
    if url is not None:
        from understudy.cli.play_on_server import play_on_server

        _refuse(for_here, "belongs to the server: start it with `understudy serve territory`")
        play_on_server(
            game, url, territories=territories, speed=speed, ticks=ticks, minutes=minutes,
            seed=seed, token_file=token_file, json=json,
        )  # fmt: skip
        return
    _refuse(for_there, "needs --url, the address of a server")
    difficulty, learner = difficulty or "hard", learner or "process"
    from understudy.cli.show import Screen, summary_text
    from understudy.policy.presets import network as network_named
    from understudy.run.folders import kept, new_run, newest
    from understudy.run.play import ADAPTIVE, Session, judging_difficulty
    from understudy.run.play import play as play_session

    _check_difficulty(game, difficulty, ADAPTIVE)
    before = kept(run)
    if seed is None:
        seed = before.config.learner.seed if before else 0
    new = network_named(network or "mlp", flag="--network")
    session = Session(
        game=game,
        run=run or new_run(game),
        difficulty=difficulty,
        matches=matches,
        minutes=1.5 if matches is None and minutes is None else minutes,
        evaluate=(0 if json else 200) if evaluate is None else evaluate,
        seed=seed,
        learner=learner,  # type: ignore[arg-type]  # checked by Understudy.open
        pace=pace or "free",  # type: ignore[arg-type]  # likewise
        lockstep=lockstep,
        network=before.spec.network if before and network is None else new,
        config=config_from(
            set_ or [],
            base=before.config if before else None,
            defaults={"learner.seed": seed, **_OWN_SCREEN},
        ),
    )
    screen = Screen(quiet=json, before=newest(before))
    screen.note(f"understudy: {game} v {difficulty}, run folder {session.run}")
    screen.note(
        "The bot starts untrained; the learner starts beside it (a few seconds to warm up)."
    )
    summary = play_session(session, show=screen.show)
    if json:
        say_json(summary.as_dict())
    else:
        screen.note(summary_text(summary, opponent=judging_difficulty(difficulty)))
    raise typer.Exit(summary.code)


def _refuse(given: Mapping[str, object], why: str) -> None:
    """Flags that cannot be combined with the others."""
    for flag, value in given.items():
        if value is not None:
            raise ConfigError(f"{flag}: {why}")


def _check_difficulty(game: str, difficulty: str, adaptive: str) -> None:
    if game == "territory":
        raise ConfigError(
            "territory is a live game, played on a server: `understudy serve territory`, then "
            "`understudy play territory --url ws://127.0.0.1:8765/ws`"
        )
    if catalog.make(game).players > 1:  # an unknown game is an error of its own
        raise ConfigError(
            f"{game} is a game of two players: `understudy train {game}` learns it, and "
            f"`understudy watch {game}` shows a match"
        )
    described = next(one for one in catalog.describe() if one.name == game)
    known = (*described.options["difficulty"], adaptive)
    if difficulty not in known:
        raise ConfigError(
            f"--difficulty: {game} has {', '.join(known)}; got {difficulty!r}."
            f"{nearest(difficulty, known)}"
        )
