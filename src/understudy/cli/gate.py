"""`understudy gate`: whether a run's decision gate foresees what follows, and what it is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.cli.options import Json, LatestRun
from understudy.cli.output import emit, out_width
from understudy.cli.progress import working
from understudy.telemetry.layout import Column, Width, hanging, labelled, table_lines
from understudy.telemetry.text import plain, say_json

if TYPE_CHECKING:
    from understudy.gates.calibration import Calibration
    from understudy.gates.foresight import Interval
    from understudy.judging.gate_report import GateReport


def gate(
    run: LatestRun = None,
    json: Json = False,
) -> None:
    """Judge a run's decision gate by what really followed.

    Whether what it expects comes true, how many blocked actions would have been good, and what
    blocking saved or cost; with too little data, no verdict.

    Example: understudy gate --run runs/territory-1 --json
    """
    from understudy.judging.gate_report import gate_report
    from understudy.registry.run_folder import latest

    with working("reading what the gate judged", quiet=json) as show:
        report = gate_report(run or latest(), show=show)
    if json:
        say_json(report)
    else:
        emit(page(report, out_width()))


def page(report: GateReport, width: Width) -> list[str]:
    """The report in words, for a console of this width."""
    found = report.calibration
    lines = [
        f"The gate of {plain(report.run)} ({plain(report.game) or 'a game of its own'}): "
        f"{found.proposals:,} proposals in {report.episodes:,} episodes",
    ]
    if report.idle:
        lines.append(f"Proposals to do nothing, which no gate blocks, left out: {report.idle:,}")
    if report.unspoken:
        lines.append(f"Proposals that the gate had nothing to say of: {report.unspoken:,}")
    if report.unreadable:
        lines.append(f"Files that could not be read, and are left out: {report.unreadable:,}")
    parts = (_groups(found, width), _foresight(found, width), _worth(found, width))
    lines = [line for words in lines for line in hanging(words, width=width)]
    return [*lines, *(line for part in parts for line in ("", *part))]


def _groups(found: Calibration, width: Width) -> list[str]:
    columns = (
        Column("", text=True), Column("count"), Column("mean reward"), Column("(95%)", text=True)
    )  # fmt: skip
    groups = {"sent": found.sent, "waited": found.waited, "explored": found.explored}
    rows = [
        (name, f"{group.count:,}", _number(group.mean_reward), _range(group.interval))
        for name, group in groups.items()
    ]
    lines = table_lines(columns, rows, width=width)
    if found.realised_share is not None:
        words = (
            f"Explored: blocked, and sent all the same: {found.realised_share:.1%} of what was "
            f"blocked; live.explore_share is {found.explore_share:.1%}"
        )
        lines += hanging(words, width=width)
    if not found.share_fits:
        words = (
            "That is no accident: the share was changed on the way. The estimates use the first."
        )
        lines += hanging(words, width=width)
    return lines


def _foresight(found: Calibration, width: Width) -> list[str]:
    sight = found.foresight
    measures = (
        ("bias (expected - actual)", _number(sight.bias), _range(sight.bias_interval)),
        ("mean absolute error", _number(sight.mean_absolute_error), ""),
        ("correlation", _number(sight.correlation), _range(sight.correlation_interval)),
        ("slope (1: calibrated)", _number(sight.slope), _range(sight.slope_interval)),
    )
    unnamed = (Column("", text=True), Column(""), Column("", text=True))
    lines = [
        *hanging(f"Foresight: {sight.words}", width=width),
        *table_lines(unnamed, measures, width=width, indent=2)[1:],
    ]
    if not found.rows:
        return lines
    columns = (
        Column("", text=True), Column("expected from"), Column("to"), Column("count", drop=2),
        Column("mean expected", drop=1), Column("mean actual"), Column("(95%)", text=True, drop=3),
    )  # fmt: skip
    rows = [
        (
            row.verdict,
            f"{row.low:.3f}",
            f"{row.high:.3f}",
            f"{row.count:,}",
            f"{row.expected:.3f}",
            f"{row.actual:.3f}",
            _range(row.interval),
        )
        for row in found.rows
    ]
    return [*lines, "", *table_lines(columns, rows, width=width)]


def _worth(found: Calibration, width: Width) -> list[str]:
    worth = found.worth
    lines = hanging(f"Blocking: {worth.words}", width=width)
    rows = []
    if worth.good_share is not None:
        low, high = worth.good_interval
        words = (
            f"{worth.good} of {found.explored.count} explored brought "
            f"more than {found.threshold:g}: {worth.good_share:.1%} ({low:.1%} to {high:.1%})"
        )
        rows.append(("would have been good", words))
    if worth.saved is not None and worth.saved_total is not None:
        interval = f"  {_range(worth.saved_interval)}" if worth.saved_interval else ""
        words = f"{worth.saved:+.3f}{interval}, in all {worth.saved_total:+.1f}"
        rows.append(("a wait saved", words))
    if worth.total_if_open is not None:
        words = f"{worth.total:.1f}; with everything sent, about {worth.total_if_open:.1f}"
        rows.append(("all proposals brought", words))
    for label, words in rows:
        lines += labelled(f"  {label}", words, label_width=25, width=width)
    return lines


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _range(interval: Interval | None) -> str:
    return "" if interval is None else f"({interval[0]:.3f} to {interval[1]:.3f})"
