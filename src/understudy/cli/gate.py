"""`understudy gate`: whether a run's decision gate foresees what follows, and what it is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.cli.options import Json, LatestRun
from understudy.telemetry.text import plain, say, say_json

if TYPE_CHECKING:
    from understudy.gates.calibration import Calibration, ProposalGroup
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

    report = gate_report(run or latest())
    if json:
        say_json(report)
    else:
        say("\n".join(page(report)))


def page(report: GateReport) -> list[str]:
    """The report in words."""
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
    return [*lines, "", *_groups(found), "", *_foresight(found), "", *_worth(found)]


def _groups(found: Calibration) -> list[str]:
    lines = [f"{'':<9} {'count':>9}  {'mean reward (95%)'}"]
    for name, group in (
        ("sent", found.sent),
        ("waited", found.waited),
        ("explored", found.explored),
    ):
        lines.append(f"{name:<9} {group.count:>9,}  {_mean(group)}")
    if found.realised_share is not None:
        lines.append(
            f"Explored: blocked, and sent all the same: {found.realised_share:.1%} of what was "
            f"blocked; live.explore_share is {found.explore_share:.1%}"
        )
    if not found.share_fits:
        lines.append(
            "That is no accident: the share was changed on the way. The estimates use the first."
        )
    return lines


def _foresight(found: Calibration) -> list[str]:
    sight = found.foresight
    lines = [f"Foresight: {sight.words}"]
    for name, value, interval in (
        ("bias (expected - actual)", sight.bias, sight.bias_interval),
        ("mean absolute error", sight.mean_absolute_error, None),
        ("correlation", sight.correlation, sight.correlation_interval),
        ("slope (1: calibrated)", sight.slope, sight.slope_interval),
    ):
        lines.append(f"  {name:<25} {_number(value)}{_range(interval)}")
    if found.rows:
        lines += [
            "",
            f"{'':<5} {'expected':>17}  {'count':>7}  {'expected':>8}  {'actual':>8}",
            f"{'':<5} {'from':>8} {'to':>8}  {'':>7}  {'mean':>8}  {'mean':>8}  (95%)",
        ]
    lines += [
        f"{row.verdict:<5} {row.low:>8.3f} {row.high:>8.3f}  {row.count:>7,}"
        f"  {row.expected:>8.3f}  {row.actual:>8.3f}{_range(row.interval)}"
        for row in found.rows
    ]
    return lines


def _worth(found: Calibration) -> list[str]:
    worth = found.worth
    lines = [f"Blocking: {worth.words}"]
    if worth.good_share is not None:
        low, high = worth.good_interval
        lines.append(
            f"  would have been good   {worth.good} of {found.explored.count} explored brought "
            f"more than {found.threshold:g}: {worth.good_share:.1%} ({low:.1%} to {high:.1%})"
        )
    if worth.saved is not None and worth.saved_total is not None:
        lines.append(
            f"  a wait saved           {worth.saved:+.3f}{_range(worth.saved_interval)},"
            f" in all {worth.saved_total:+.1f}"
        )
    if worth.total_if_open is not None:
        lines.append(
            f"  all proposals brought  {worth.total:.1f}; with everything sent, about "
            f"{worth.total_if_open:.1f}"
        )
    return lines


def _mean(group: ProposalGroup) -> str:
    return f"{_number(group.mean_reward)}{_range(group.interval)}"


def _number(value: float | None) -> str:
    return f"{'-':>6}" if value is None else f"{value:>6.3f}"


def _range(interval: Interval | None) -> str:
    return "" if interval is None else f"  ({interval[0]:.3f} to {interval[1]:.3f})"
