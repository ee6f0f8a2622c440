"""The versions of a run that are kept: read from their manifests, and as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from understudy.core.errors import FileFormatError
from understudy.registry.pointers import NAMES
from understudy.registry.retention import kept, scores_of
from understudy.registry.run_folder import RunFolder
from understudy.registry.scores import Score, score_of
from understudy.registry.versions import Manifest
from understudy.screens.html.elements import Element, HtmlNode
from understudy.screens.html.parts import table
from understudy.telemetry.text import stamp


class VersionRow(NamedTuple):
    """One version that is kept."""

    manifest: Manifest
    score: Score | None
    roles: tuple[str, ...]
    kept: tuple[str, ...]


def version_rows(folder: RunFolder, unread: list[str]) -> list[VersionRow]:
    """All that are kept, ascending; what is damaged is left out and named in `unread`."""
    try:
        why, scores = kept(folder), scores_of(folder)
    except (FileFormatError, OSError) as error:
        unread.append(str(error))
        why, scores = {}, ()
    roles = _roles(folder)
    rows = []
    for number in folder.versions.numbers():
        try:
            manifest = folder.versions.manifest(number)
        except (FileFormatError, OSError) as error:
            unread.append(str(error))
            continue
        rows.append(
            VersionRow(
                manifest,
                score_of(scores, number),
                tuple(roles.get(number, ())),
                tuple(one for one in why.get(number, ()) if one not in NAMES),
            )
        )
    return rows


def notable(rows: Sequence[VersionRow], most: int) -> tuple[VersionRow, ...]:
    """So many at most, ascending: those with a role first, then the best, then the newest."""
    ranked = sorted(
        rows, key=lambda row: (bool(row.roles), "best" in row.kept, row.manifest.number)
    )
    return tuple(sorted(ranked[-most:], key=lambda row: row.manifest.number))


def versions_table(
    rows: Sequence[VersionRow],
    *,
    unit: str,
    left: int,
    action: Callable[[VersionRow], HtmlNode] | None = None,
) -> Element:
    """`unit`: what the run learns from; `left`: versions that are kept and have no row; `action`:
    what a person may do with each."""
    more = f" {left:,} more are kept." if left > 0 else ""
    names = ("version", "made", unit, "loss", "won", "reward", "role", "kept as")
    texts = [_version_row(row) for row in rows]
    # A column without a value says nothing.
    columns: list[tuple[str, Sequence[HtmlNode]]] = [
        one for one in zip(names, zip(*texts, strict=True), strict=True) if any(one[1])
    ]
    kinds = "nwn".ljust(len(columns) - 2, "w")
    if action is not None:
        columns.append(("change", [action(row) for row in rows]))
        kinds = f"{kinds:.<{len(columns) - 1}}w"
    return table(
        "A version is one state of the policy that was saved; the champion is the one that should "
        "play, the candidate is the newest. Results are counted with those of neighbouring "
        f"versions until there are enough; 'kept as' says why it is on disk.{more}",
        [name for name, _ in columns],
        zip(*(cells for _, cells in columns), strict=True),
        kinds=kinds,
    )


def _roles(folder: RunFolder) -> dict[int, list[str]]:
    roles: dict[int, list[str]] = {}
    for name in NAMES:
        record = folder.pointers.read(name)
        if record is not None and record.version:
            pinned = " (pinned)" if record.pinned else ""
            roles.setdefault(record.version, []).append(f"{name}{pinned}")
    return roles


def _version_row(row: VersionRow) -> tuple[str, ...]:
    manifest, loss = row.manifest, row.manifest.metrics.get("loss")
    learned = manifest.counters.get("matches", manifest.counters.get("ingested", 0))
    return (
        str(manifest.number),
        stamp(manifest.created_at),
        f"{learned:,}",
        "" if loss is None else f"{loss:.4f}",
        *_score(row.score),
        ", ".join(row.roles),
        ", ".join(row.kept),
    )


def _score(score: Score | None) -> tuple[str, str]:
    """Won, and reward, as far as there are enough results; counted with neighbouring versions."""
    if score is None:
        return "", ""
    rate, mean = score.win_rate, score.mean_return or score.mean_reward
    won = "" if rate is None else f"{rate.mean:.0%} of {score.matches:,}"
    return won, "" if mean is None else f"{mean.mean:.3g} ({mean.low:.3g} to {mean.high:.3g})"
