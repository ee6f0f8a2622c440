"""What a status says of training: opponents, league and last batch, as labelled lines.

A label is empty where a line goes on with what the one above it is about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from understudy.core.opponents import kind_of
from understudy.core.statistics import margin, points, wilson
from understudy.telemetry.events import BatchTrained, CheckpointJudged, ContinuousTrained
from understudy.telemetry.history import SNAPSHOTS
from understudy.telemetry.status import Status, WinRecord
from understudy.telemetry.text import plain

Lines: TypeAlias = list[tuple[str, str]]


def opponents(status: Status) -> Lines:
    """Whom it met, over the whole run; snapshots together, since there can be hundreds."""
    groups: dict[str, list[WinRecord]] = {}
    for name, one in status.opponents.items():
        if one.matches:
            groups.setdefault(kind_of(name, SNAPSHOTS), []).append(one)
    rows = []
    for name, records in groups.items():
        wins, matches = sum(one.wins for one in records), sum(one.matches for one in records)
        rows.append(f"{plain(name)} {wins / matches:.0%} of {matches:,}")
    return _under("Opponents", rows)


def league(status: Status) -> Lines:
    """The stage, the rating, the snapshots and the last benchmark, as far as there are any."""
    lines: Lines = []
    if status.stage:
        since = f"since step {status.stage_since:,}" if status.stage_since else "from the start"
        lines.append(("Stage", f"{plain(status.stage)}, {since}"))
    if status.rating is not None:
        rated = f"{points(status.rating.mu):.0f} +- {margin(status.rating.sigma):.0f}"
        lines.append(("Rating", f"{rated} (95% of the belief)"))
    if status.snapshots:
        newest = f", the newest is {plain(status.last_snapshot)}" if status.last_snapshot else ""
        lines.append(("Snapshots", f"{status.snapshots:,} in the league{newest}"))
    if status.last_benchmark is not None:
        lines += _benchmark(status.last_benchmark)
    if status.last_note:
        lines.append(("Note", plain(status.last_note)))
    return lines


def rewards(mean: float, sides: Mapping[str, float]) -> str:
    """The mean reward of a match, or that of each agent where there are several: of two sides of a
    zero-sum match the mean over agents is always 0."""
    if not sides:
        return f"{mean:.4g}"
    return ", ".join(f"{plain(agent)} {reward:.2f}" for agent, reward in sides.items())


def behaviour_kl(batch: BatchTrained | ContinuousTrained) -> list[str]:
    """How far the trained policy is from the one that played; nothing where it was not measured."""
    if batch.behaviour_kl is None or batch.behaviour_kl_max is None:
        return []
    return [
        f"behaviour KL {batch.behaviour_kl:.2g}, at most {batch.behaviour_kl_max:.2g} "
        "for one decision (0: what is trained is what played)"
    ]


def _benchmark(judged: CheckpointJudged) -> Lines:
    rows = [f"version {judged.version} at step {judged.steps:,}, in frozen matches:"]
    if judged.matches:
        rows.append(f"reward {rewards(judged.reward, judged.sides)} of {judged.matches:,}")
    for name, one in judged.opponents.items():
        matches = one.wins + one.draws + one.losses
        low, high = wilson(one.wins, matches)
        share = one.wins / max(matches, 1)
        # Drawn matches are what separates an equal from a loser in games that are often drawn.
        drawn = f", {one.draws:,} drawn" if judged.matches and one.draws else ""
        rows.append(f"{plain(name)} {share:.0%} of {matches:,} ({low:.0%} to {high:.0%}){drawn}")
    return _under("Benchmark", rows)


def _under(label: str, rows: Sequence[str]) -> Lines:
    return [("" if index else label, row) for index, row in enumerate(rows)]
