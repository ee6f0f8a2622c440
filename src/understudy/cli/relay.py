"""`understudy relay`: a run folder and an object store are kept alike."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.options import JsonAtEnd
from understudy.cli.output import commands, summary_row
from understudy.cli.progress import ProgressDisplay, ProgressLine
from understudy.core.errors import ConfigError, nearest
from understudy.supervise.child import end_when_told
from understudy.supervise.interrupts import Interrupts
from understudy.telemetry.layout import Part, Width
from understudy.telemetry.report_parts import learned_from
from understudy.telemetry.text import complain, duration, many

if TYPE_CHECKING:
    from understudy.relay.relay import RelayProgress, RelaySummary


def relay(
    run: Annotated[Path, typer.Argument(help="The run folder on this machine.")],
    url: Annotated[
        str,
        typer.Argument(help="The store: s3://BUCKET/PREFIX, gs://…, az://…, or a folder."),
    ],
    side: Annotated[
        str | None,
        typer.Option(
            help="player: bots or a server play here. learner: a learner works here, on one "
            "machine (default: as before in this run folder; player)."
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Send and fetch what there is now, then end.")
    ] = False,
    json: JsonAtEnd = False,
    supervised: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Carry matches to a learner on another machine, and its versions back, through a store.

    Run it on every machine, beside the bot, the server or the learner, which stay as they are and
    never wait for the network. Credentials come from the environment (AWS_…, GOOGLE_…, AZURE_…).
    Ctrl-C sends what waits and exits with code 130.

    Example: understudy relay runs/zerg s3://bucket/zerg
    """
    from understudy.relay.local import SIDES
    from understudy.relay.relay import RelayOptions, run_relay

    if side is not None and side not in SIDES:
        raise ConfigError(
            f"--side: expected one of {list(SIDES)}, got {side!r}.{nearest(side, SIDES)}"
        )
    options = RelayOptions(run=run, url=url, side=side, once=once)
    quiet = json or supervised
    with (
        _told_to_stop(supervised=supervised) as stop,
        ProgressDisplay(quiet=quiet, before=None) as display,
    ):

        def started(kind: str, store: str) -> None:
            display.note_wrapped(
                f"understudy: {run} and {store} are kept alike, on the {kind}'s side. Ctrl-C ends."
            )

        def show(progress: RelayProgress) -> None:
            display.show(_line(progress))

        summary = run_relay(
            options,
            stop=lambda: stop.asked,
            started=started,
            show=show,
            say=complain if quiet else display.note_wrapped,
        )
        summary = replace(summary, code=stop.code)
        display.end(summary, lambda width: "\n".join(_summary(summary, width)))


class _Pipe:
    """The end of the pipe of a supervisor, in the place of signals."""

    code = 0

    def __init__(self) -> None:
        _, self._stop = end_when_told(supervised=True)

    @property
    def asked(self) -> bool:
        return self._stop.is_set()


@contextlib.contextmanager
def _told_to_stop(*, supervised: bool) -> Iterator[Interrupts | _Pipe]:
    if supervised:
        yield _Pipe()
        return
    with Interrupts() as interrupts:
        yield interrupts


def _line(progress: RelayProgress) -> ProgressLine:
    counts = progress.counts
    sent = progress.side == "player"
    moved = learned_from(counts.sent if sent else counts.received, served=progress.served)
    parts = [
        Part(f"{'sent' if sent else 'received'} {moved}", 10),
        Part(f"waiting {counts.waiting:,}", 20),
        Part(f"version {counts.version}", 30),
        Part(f"offline: {progress.trouble}" if progress.trouble else "connected", 15),
    ]
    return ProgressLine(parts=parts, elapsed_s=progress.elapsed_s, version=counts.version)


def _summary(summary: RelaySummary, width: Width) -> list[str]:
    counts = summary.counts
    player = summary.side == "player"

    def carried(count: int) -> str:
        return learned_from(count, served=summary.served)

    rows = {
        "Sent" if player else "Received": f"{carried(counts.sent if player else counts.received)} "
        f"in {many(counts.bundles, 'bundle', 'bundles')}, {counts.bytes / 1e3:,.1f} kB",
        "Versions": f"{counts.versions:,} {'fetched' if player else 'uploaded'}; champion "
        f"{counts.version or 'none yet'}",
        "Judged": f"{carried(counts.judged)} of {'promotion' if summary.served else 'mode'} auto",
        "Waiting": carried(counts.waiting),
    }
    if not counts.judged:
        del rows["Judged"]
    if counts.not_sent:
        rows["Not sent"] = f"{counts.not_sent:,}: more waited than relay.waiting_matches allows"
    if counts.refused:
        rows["Refused"] = f"{counts.refused:,} bundles that cannot be read: refused/ in the store"
    return [
        "",
        f"Stopped after {duration(summary.seconds)}: everything up to here is kept.",
        "",
        *(line for label, text in rows.items() for line in summary_row(label, text, width)),
        "",
        *commands("More", [f"understudy status --run {summary.run}"], width),
    ]
