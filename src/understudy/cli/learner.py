"""`understudy learner`: the background learner in a terminal of its own; pause and resume it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.options import Json
from understudy.telemetry.text import say, say_json

app = typer.Typer(invoke_without_command=True)

_Run = Annotated[Path | None, typer.Argument(help="The run folder (default: the latest).")]
_RunOption = Annotated[Path | None, typer.Option("--run", help="The same as RUN.")]


@app.callback()
def learner(
    context: typer.Context,
    run: Annotated[Path | None, typer.Option(help="The run folder to learn in.")] = None,
    continuous: Annotated[
        bool, typer.Option("--continuous", help="Learn behind a server: a batch every interval.")
    ] = False,
    gate: Annotated[
        str | None,
        typer.Option(help="The server's gate, to judge again: open, cost, rollout or module:Name."),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="What that gate sends more than; default live.threshold.")
    ] = None,
    supervised: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Learn in the background from what bots record in a run folder.

    A bot starts its own learner; run this one where the bot has `learner="off"`, or on another
    machine that shares the folder. Ctrl-C drains what is pending and stops. A server has the
    continuous learner behind it, and starts it by itself too.

    Example: understudy learner --run runs/zerg
    """
    if context.invoked_subcommand is not None:
        context.obj = run
        return
    from understudy.core.errors import ConfigError
    from understudy.run.learner import ContinuousOptions, serve

    if run is None:
        raise ConfigError(
            "--run: expected the run folder to learn in (see understudy learner --help)"
        )
    if not continuous and (gate is not None or threshold is not None):
        flag = "--gate" if gate is not None else "--threshold"
        raise ConfigError(f"{flag}: expected only together with --continuous")
    if threshold is not None and not math.isfinite(threshold):
        raise ConfigError(f"--threshold: expected a finite number, got {threshold}")
    options = ContinuousOptions(gate=gate or "open", threshold=threshold) if continuous else None
    if supervised:
        serve(run, supervised=True, continuous=options)
        return
    from understudy.cli.learner_screen import LearnerScreen

    with LearnerScreen(served=continuous) as screen:
        serve(run, supervised=False, continuous=options, show=screen.show)


@app.command()
def pause(
    context: typer.Context, run: _Run = None, option: _RunOption = None, json: Json = False
) -> None:
    """Pause learning in a run, whatever plays or serves there. Experience is still recorded.

    The learner finishes the batch at hand, publishes what it has learned and waits, also after
    restarts, until `learner resume`.

    Example: understudy learner pause runs/zerg
    """
    root, changed = _switch(run or option or context.obj, paused=True, json=json)
    if not json:
        say(
            f"Learning is paused in {root}{'' if changed else ' already'}: "
            "what plays or serves there goes on and is recorded."
        )
        say(f"To learn on: understudy learner resume {root}")


@app.command()
def resume(
    context: typer.Context, run: _Run = None, option: _RunOption = None, json: Json = False
) -> None:
    """Let the learner of a run go on after `learner pause`.

    Example: understudy learner resume runs/zerg
    """
    root, changed = _switch(run or option or context.obj, paused=False, json=json)
    if not json:
        said = f"Learning goes on in {root}, wherever a learner runs there."
        say(said if changed else f"Learning was not paused in {root}.")


def _switch(run: Path | None, *, paused: bool, json: bool) -> tuple[Path, bool]:
    from understudy.registry.run_folder import latest
    from understudy.run.controls import switch_learning

    root, changed = switch_learning(run or latest(), paused=paused)
    if json:
        say_json({"run": str(root), "paused": paused, "changed": changed})
    return root, changed
