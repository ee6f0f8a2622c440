"""`understudy play territory --url`: the built-in game as a client of a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from understudy.core.errors import ConfigError
from understudy.telemetry.text import duration, plain, say_json

if TYPE_CHECKING:
    from understudy.run.remote_play import RemoteProgress

_MINUTES = 1.5
_TOKEN_BYTES = 4096


def play_on_server(
    game: str,
    url: str,
    *,
    territories: int | None,
    speed: float | None,
    ticks: int | None,
    minutes: float | None,
    seed: int | None,
    token_file: Path | None,
    json: bool,
) -> None:
    """Play, show how it goes, and say what came of it; what is None has its default."""
    from understudy.cli.show import Screen
    from understudy.run.remote_play import RemoteSession, play_remote

    if game != "territory":
        raise ConfigError(f"--url: only territory is played on a server, not {game}")
    session = RemoteSession(
        url=url,
        territories=20 if territories is None else territories,
        speed=60.0 if speed is None else speed,
        ticks=ticks,
        minutes=_MINUTES if ticks is None and minutes is None else minutes,
        seed=0 if seed is None else seed,
        token=None if token_file is None else _token(token_file),
    )
    screen = Screen(quiet=json, before=None)
    screen.note(
        f"understudy: territory on {url}, {session.territories} territories, "
        f"up to {session.speed:g} times real time"
    )
    progress = play_remote(session, show=lambda one: screen.move(line(one), one))
    if json:
        say_json(progress.as_dict())
    else:
        screen.note(summary(progress))
    raise typer.Exit(progress.code)


def line(progress: RemoteProgress) -> str:
    """How it goes, in one line."""
    from understudy.cli.show import bar

    left = progress.left_s
    return (
        f"{bar(progress.share)} {duration(progress.elapsed_s):>6}"
        f"  left {duration(left) if left is not None else '?':>6}"
        f"  {progress.decisions / max(progress.elapsed_s, 1e-9):>6,.0f} decisions/s"
        f"  reward {progress.mean_reward:>+6.3f}"
        f"  p50 {progress.percentile_ms(50):.1f} ms  p99 {progress.percentile_ms(99):.1f} ms"
        f"  version {progress.version}"
    )


def summary(progress: RemoteProgress) -> str:
    """What a person wants to know at the end."""
    told = progress.as_dict()
    done = max(progress.decisions, 1)
    lines = [
        "",
        "Interrupted: the server keeps everything up to here." if progress.interrupted else "Done.",
        "",
        f"Decisions       {progress.decisions} in {duration(progress.elapsed_s)}, "
        f"{progress.ticks} ticks, {progress.speed:.0f} times real time",
        f"Mean reward     {told['mean_reward']:+.3f}, of the last {len(progress.rewards)}: "
        f"{progress.mean_reward:+.3f}",
        f"Spawned         {progress.spawns / done:.0%} of decisions, the gate waited in "
        f"{progress.waits / done:.0%}; the busiest chunk had {told['largest_chunk_share']:.0%}",
        f"An answer       p50 {progress.percentile_ms(50):.1f} ms, "
        f"p99 {progress.percentile_ms(99):.1f} ms",
        f"Version         {progress.version}",
    ]
    if progress.reconnects or progress.unanswered or progress.degraded:
        lines.append(
            f"Trouble         {progress.reconnects} reconnections, {progress.unanswered} without "
            f"an answer, {progress.degraded} degraded"
        )
    if progress.refused:
        lines.append(f"Refused         {progress.refused}, the last: {plain(progress.problem)}")
    return "\n".join(lines)


def _token(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")[:_TOKEN_BYTES].strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--token-file {path}: cannot be read ({error})") from error
