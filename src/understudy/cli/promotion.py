"""`understudy promotion`: who plays a run and why, and a person's word on it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.options import Json, LatestRun, check_file, check_folder
from understudy.cli.output import emit_text, out_width
from understudy.cli.progress import working
from understudy.core.errors import RunFolderError
from understudy.gates.promotion.records import RULES, Order
from understudy.promotion.history import read_history
from understudy.promotion.report import MATCH_COLUMNS, match_rows, read_promotion
from understudy.promotion.served import judges_segments
from understudy.registry.run_folder import RunFolder
from understudy.run.controls import check_promotion, order
from understudy.telemetry.events import RoleChanged
from understudy.telemetry.promotion_lines import describe_promotion
from understudy.telemetry.promotion_stage import staged
from understudy.telemetry.promotion_status import VerdictNote, in_units
from understudy.telemetry.summary import FoldedJournal, JournalFolds
from understudy.telemetry.text import say, say_json

app = typer.Typer(no_args_is_help=True)

_Version = Annotated[int, typer.Argument(help="The number of a version.")]
_Words = Annotated[str, typer.Option("--words", help="Why: kept with the verdict.")]
_PICTURE = Path("promotion.png")
_MATCHES = "promotion_matches.csv"
_WIN_RATES = "win_rates.csv"


@app.callback()
def _promotion() -> None:
    """Who plays a run and why, and a person's word on it.

    Example: understudy promotion status --run runs/zerg
    """


@app.command()
def status(
    run: LatestRun = None,
    csv: Annotated[
        Path | None,
        typer.Option(help="A folder to write promotion_matches.csv and win_rates.csv to."),
    ] = None,
    json: Json = False,
) -> None:
    """Say who plays and why, what is tried, what is missing, and when to expect a verdict.

    Example: understudy promotion status --run runs/zerg
    """
    folder = _folder(run)
    if csv is not None:
        check_folder("--csv", csv)
    with working("reading the promotion log and the journal", quiet=json):
        folds = _read_folds(folder)
        now = read_promotion(folder)
        assert now is not None, "it has a promotion log"
        now = staged(now, agreement=folds.agreement.share)
        if csv is not None:
            _write_tables(folder, csv)
    if json:
        say_json(now)
    else:
        words = describe_promotion(
            now,
            run=str(folder.root),
            at=folder.clock.time(),
            mode=folds.status.mode,
            width=out_width(),
        )
        say(words)
        if csv is not None:
            say(f"Tables: {csv / _MATCHES}, {csv / _WIN_RATES}")


@app.command()
def explain(version: _Version, run: LatestRun = None, json: Json = False) -> None:
    """Tell why a version was promoted, refused, stopped or rolled back, with the matches behind it.

    Example: understudy promotion explain 17 --run runs/zerg
    """
    from understudy.promotion.explain import story_of, story_text

    folder = _folder(run)
    with working("reading the promotion log and the journal", quiet=json):
        refusals = _refusals(folder, version)
        judged = judges_segments(folder)
        story = story_of(read_history(folder), version, refusals=refusals, served=judged)
    if json:
        say_json(story)
    else:
        say(story_text(story, width=out_width()))


@app.command()
def approve(
    version: _Version, run: LatestRun = None, words: _Words = "", json: Json = False
) -> None:
    """Make a version the champion, whatever the evidence says; 0: the rules. A running test ends.

    Under `promotion.policy = "manual"` this is the answer to a test that asks. The version is held
    to its results from then on, and evidence may roll it back.

    Example: understudy promotion approve 17 --run runs/zerg
    """
    _order(_folder(run), "approve", version=version, words=words, json=json)


@app.command()
def stop(run: LatestRun = None, words: _Words = "", json: Json = False) -> None:
    """Stop the test of a version: it is never tried again.

    Example: understudy promotion stop --run runs/zerg
    """
    _order(_folder(run), "stop", words=words, json=json)


@app.command()
def pause(run: LatestRun = None, words: _Words = "", json: Json = False) -> None:
    """Begin no test and promote no version until `promotion resume`.

    A running test goes on collecting matches (one of a simulator waits); harm stops and rollbacks
    go on.

    Example: understudy promotion pause --run runs/zerg
    """
    _order(_folder(run), "pause", words=words, json=json)


@app.command()
def resume(run: LatestRun = None, words: _Words = "", json: Json = False) -> None:
    """Let evidence promote again after `promotion pause`.

    Example: understudy promotion resume --run runs/zerg
    """
    _order(_folder(run), "resume", words=words, json=json)


@app.command()
def plot(
    run: LatestRun = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The picture to write (.png).")] = (
        _PICTURE
    ),
    json: Json = False,
) -> None:
    """Draw who played when, the evidence over matches, and win rates with their intervals.

    Example: understudy promotion plot -o promotion.png --run runs/zerg
    """
    from understudy.core.dependencies import needs

    folder = _folder(run)
    if out.suffix != ".png":
        raise RunFolderError(f"--out {out}: expected a name that ends in .png")
    check_file("--out", out)
    said = partial(in_units, served=judges_segments(folder))
    with working("reading the promotion log", quiet=json):
        told = read_history(folder)
    if not any(one.counts for one in told.matches) and not any(
        len(one.pairs) for one in told.trials
    ):
        raise RunFolderError(
            f"{folder.root}: nothing to draw: {said('no match of mode auto has a result yet')}"
        )
    with needs("the picture needs {}", extra="plots"):
        from understudy.analysis.canvas import keep
        from understudy.analysis.promotion import promotion_figure

        title = f"{folder.root.name}: who plays, and why"
        figure = promotion_figure(told, title=title, served=judges_segments(folder))
    keep(figure, out)
    if json:
        say_json({"file": str(out), "matches": len(told.matches)})
    else:
        say(f"{out}: {len(told.matches):,} {said('matches')}")


# --- a person's word -----------------------------------------------------------------------------


def _order(
    folder: RunFolder, word: Order, *, version: int = RULES, words: str = "", json: bool
) -> None:
    told = order(folder, word, version=version, words=words)
    if json:
        say_json(read_promotion(folder))
        return
    for one in told:
        emit_text(one)


# --- what is read --------------------------------------------------------------------------------


def _folder(run: Path | None) -> RunFolder:
    from understudy.core.clock import SystemClock
    from understudy.registry.run_folder import latest

    folder = RunFolder.load(run or latest(), SystemClock())
    check_promotion(folder)
    return folder


def _read_folds(folder: RunFolder) -> JournalFolds:
    folded = FoldedJournal(folder.journal)
    folded.follow()
    return folded.folds


def _refusals(folder: RunFolder, version: int) -> list[VerdictNote]:
    """Health checks that a version failed before its nomination, from the journal.

    Every bot that opens the run looks at the newest version, and notes what it finds. The same
    finding with other figures is shown once.
    """
    return [
        VerdictNote(number=0, at=entry.t, version=version, kind="refused", words=entry.e.words)
        for entry in _read_folds(folder).refused
        if isinstance(entry.e, RoleChanged) and entry.e.version == version
    ]


def _write_tables(folder: RunFolder, where: Path) -> None:
    from understudy.core import files
    from understudy.run.status import stream_entries
    from understudy.telemetry.played import COLUMNS, played_rows
    from understudy.telemetry.table import csv_bytes

    files.make_folders(where)
    files.write_atomic(
        where / _MATCHES, csv_bytes([MATCH_COLUMNS, *match_rows(read_history(folder))])
    )
    rows = [COLUMNS, *played_rows(stream_entries(folder))]
    files.write_atomic(where / _WIN_RATES, csv_bytes(rows))
