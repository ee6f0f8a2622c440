"""`understudy ratings`: the league of a run: ratings, results, payoffs and cycles."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.options import EngineName, Greedy, Json, LatestRun, MatchSeed
from understudy.cli.output import StyledLine, emit, emit_text, out_width, table
from understudy.core.errors import ConfigError
from understudy.telemetry.layout import Column, hanging
from understudy.telemetry.text import complain, plain, say, say_json

if TYPE_CHECKING:
    from understudy.judging.ratings import FrozenLeague, LeagueHistory


def ratings(
    run: LatestRun = None,
    players: Annotated[int, typer.Option(help="At most so many snapshots, evenly spread.")] = 4,
    matches: Annotated[int, typer.Option(help="Frozen matches of each pair.")] = 20,
    no_play: Annotated[
        bool, typer.Option("--no-play", help="Only what training recorded; no matches.")
    ] = False,
    seed: MatchSeed = 0,
    greedy: Greedy = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Also write ratings.json, payoffs.csv, standings.csv, payoffs.png."),
    ] = None,
    engine: EngineName = "auto",
    json: Json = False,
) -> None:
    """Show the league of a run: ratings with uncertainty, payoff matrix, cycles.

    First what training recorded; then frozen matches of scripted bots, champion and snapshots,
    everyone against everyone. Scripted bots hold the scale: their ratings never move.

    Example: understudy ratings --run runs/brawl-1 --players 4 --matches 40
    """
    from understudy.cli.options import check_folder
    from understudy.judging.payoff_files import check_installed
    from understudy.judging.ratings import read_league_history
    from understudy.registry.run_folder import latest

    for flag, value, least in (("--players", players, 0), ("--matches", matches, 1)):
        if value < least:
            raise ConfigError(f"{flag}: expected {least} or more, got {value}")
    if out is not None:
        check_folder("--out", out)
    history = read_league_history(run or latest())
    frozen = None
    if not no_play:
        if out is not None:
            check_installed()
        frozen = _played(history, players, matches, seed, greedy, engine, quiet=json)
    found = {**history.as_dict(), "frozen": None}
    if frozen is not None:
        found["frozen"] = {"matches": matches, "seed": seed, **frozen.as_dict()}
    if out is not None:
        _write(out, found, frozen, f"{history.game}: win rates, {matches} matches a pair")
    if json:
        say_json(found)
        return
    emit(_recorded(history, shown=max(players, 2)))
    if frozen is not None:
        from understudy.cli.payoff_table import found_page

        say(f"\nFrozen matches, {matches} of each pair\n")
        emit(found_page(frozen.payoffs, frozen.places, frozen.cycles))
    if out is not None:
        more = "" if frozen is None else ", payoffs.csv, standings.csv, payoffs.png"
        say("")
        emit_text(f"Written to {out}: ratings.json{more}")


def _played(
    history: LeagueHistory,
    players: int,
    matches: int,
    seed: int,
    greedy: bool,
    engine: str,
    *,
    quiet: bool,
) -> FrozenLeague:
    from understudy.cli.progress import working
    from understudy.judging.players import engine_named
    from understudy.judging.ratings import play_league

    carry_on = engine_named(engine)
    with working(f"{matches} matches of each pair", quiet=quiet) as show:
        return play_league(
            history,
            snapshots=players,
            matches=matches,
            seed=seed,
            sampled=not greedy,
            engine=carry_on,
            note=complain,
            show=show,
        )


def _write(out: Path, found: object, frozen: FrozenLeague | None, title: str) -> None:
    import msgspec

    from understudy.core import files

    files.make_folders(out)
    if frozen is not None:
        from understudy.judging.payoff_files import write_payoffs

        write_payoffs(out, frozen.payoffs, frozen.places, title)
    pretty = msgspec.json.format(msgspec.json.encode(found), indent=2)
    files.write_atomic(out / "ratings.json", pretty + b"\n")


_COLUMNS = (
    Column("", text=True),
    Column("rating", drop=1),
    Column("95%", text=True, drop=1),
    Column("wins", drop=4),
    Column("draws", drop=4),
    Column("losses", drop=4),
    Column("win rate"),
    Column("lately", drop=2),
)


def _recorded(history: LeagueHistory, *, shown: int) -> list[str | StyledLine]:
    """What training recorded: the learner among everyone it met, the strongest first."""
    from understudy.league.sampling import expected_win_rate
    from understudy.league.snapshots import evenly
    from understudy.league.state import LEARNER, OpponentResults
    from understudy.match.tally import Tally

    state = history.state
    pool = [snapshot.name for snapshot in state.pool]
    some = set(evenly(pool, shown))
    names = [name for name in history.names() if name in some or name not in pool]
    rated = {**state.ratings, **state.anchors, LEARNER: state.learner}
    names = sorted([LEARNER, *names], key=lambda name: -rated[name].mu)
    rows = []
    for name in names:
        rating = rated[name]
        spread = f"± {rating.margin:.0f}{' fixed' if name in state.anchors else ''}"
        record = state.records.get(name, OpponentResults())
        tally = Tally(*record.counts)
        results = [""] * 5
        if tally.matches:
            lately = expected_win_rate(record.recent_wins, record.recent_matches)
            counts = (tally.wins, tally.draws, tally.losses)
            results = [*map(str, counts), f"{tally.win_rate:.1%}", f"{lately:.1%}"]
        rows.append([plain(name), f"{rating.points:.0f}", spread, *results])
    kept = f"{len(pool)} {'snapshot' if len(pool) == 1 else 'snapshots'} kept"
    head = (
        f"{history.game}: {plain(str(history.folder.root))}, version {history.version} after"
        f" {history.steps:,} steps, {kept}"
    )
    recorded = "What training recorded (the learner against each; it drew its actions)"
    lines = [
        *hanging(head, width=out_width()),
        "",
        *hanging(recorded, width=out_width()),
        *table(_COLUMNS, rows),
    ]
    hidden = len(pool) - len(some)
    if hidden > 0:
        lines.append(f"... and {hidden} more snapshots (--json has all)")
    return lines
