"""The numbers of every figure as CSV: one file for each figure.

Numbers have six digits; files are written atomically.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from understudy.analysis.ablation import CONTRASTS, WAYS, Ablation, worth
from understudy.analysis.paired import Effect
from understudy.analysis.probing import ProbeVerdict
from understudy.analysis.recording import MatchRecording
from understudy.analysis.study import AttentionRecord, LatentGeometry
from understudy.core import files
from understudy.core.spaces import ActionSpace
from understudy.match.tally import Tally
from understudy.telemetry.table import csv_bytes

ENCODERS = ("trained", "untrained")
Row = Sequence[object]
Table = tuple[Row, Sequence[Row]]


def write_csv(path: Path, header: Row, rows: Iterable[Row]) -> None:
    cells = ([f"{one:.6g}" if isinstance(one, float) else one for one in row] for row in rows)
    files.write_atomic(path, csv_bytes([header, *cells]))


def probe_rows(
    verdicts: Mapping[str, Mapping[int, ProbeVerdict]], ceiling: Mapping[int, float]
) -> Table:
    """The accuracy of every input at every time, and the highest possible one."""
    header = ("reading", "seconds", "encoder", "accuracy", "low", "high", "matches")
    rows: list[Row] = []
    for reading, times in verdicts.items():
        for seconds, verdict in times.items():
            for encoder, one in zip(ENCODERS, (verdict.trained, verdict.untrained), strict=True):
                if one is not None:
                    kind = encoder if verdict.untrained else "none"
                    numbers = (one.share, one.low, one.high, one.matches)
                    rows.append((reading, seconds, kind, *numbers))
    rows += [("ceiling", seconds, "none", share, "", "", "") for seconds, share in ceiling.items()]
    return header, rows


def confusion_rows(
    verdicts: Mapping[str, Mapping[int, ProbeVerdict]], opponents: Sequence[str]
) -> Table:
    """The confusion matrix of the probe on the trained latent."""
    rows = [
        (seconds, who, named, count)
        for seconds, verdict in verdicts["latent"].items()
        for who, counts in zip(opponents, verdict.confusion, strict=True)
        for named, count in zip(opponents, counts, strict=True)
    ]
    return ("seconds", "opponent", "named", "matches"), rows


def place_rows(geometry: LatentGeometry, places: str, opponents: Sequence[str]) -> Table:
    """A point for every match and encoder; `places` is a field of `geometry`."""
    rows = [
        (encoder, opponents[label], float(x), float(y))
        for encoder, points in zip(ENCODERS, getattr(geometry, places), strict=True)
        for label, (x, y) in zip(geometry.labels, points, strict=True)
    ]
    return ("encoder", "opponent", "x", "y"), rows


def distance_rows(geometry: LatentGeometry, opponents: Sequence[str]) -> Table:
    """Every pair of opponents."""
    rows = [
        (encoder, one, other, float(matrix[i, j]))
        for encoder, matrix in zip(ENCODERS, geometry.distances, strict=True)
        for i, one in enumerate(opponents)
        for j, other in enumerate(opponents)
    ]
    return ("encoder", "opponent", "other", "distance"), rows


def attention_rows(
    record: MatchRecording, attended: AttentionRecord, actions: ActionSpace
) -> Table:
    """Every frame: the attention to it, and the action of the opponent."""
    header = (
        "opponent", "match", "frame", "action", "received_trained", "received_untrained",
        "evenness_trained", "evenness_untrained",
    )  # fmt: skip
    rows = [
        (
            record.opponents[record.labels[column]], int(record.numbers[column]), frame,
            action_name(actions, record.done[frame, column]),
            *(float(one[frame, at]) for one in (*attended.received, *attended.evenness)),
        )
        for at, column in enumerate(attended.columns)
        for frame in range(record.lengths[column])
    ]  # fmt: skip
    return header, rows


def ablation_rows(ablation: Ablation) -> Table:
    """Wins, draws and losses of every way, then every paired difference."""
    header = (
        "opponent", "what", "matches", "wins", "draws", "losses",
        *(f"{measure}_{part}" for measure in ("win_rate", "score") for part in ("", "low", "high")),
        "donors",
    )  # fmt: skip
    header = tuple(name.removesuffix("_") for name in header)
    rows: list[Row] = []
    for label, opponent in ((None, "all"), *enumerate(ablation.opponents)):
        where = slice(None) if label is None else ablation.labels == label
        for way in WAYS:
            scores = ablation.scores[way][where]
            tally = Tally.of(scores)
            counts = (tally.matches, tally.wins, tally.draws, tally.losses)
            mean = float((scores + 1).mean() / 2)
            rates = (tally.win_rate, *tally.interval, mean, "", "")
            rows.append((opponent, way, *counts, *rates, ""))
        for better, worse in CONTRASTS:
            gain = worth(ablation, better, worse, label=label)
            numbers = (*_bounds(gain.wins), *_bounds(gain.score), gain.wins.donors)
            rows.append((opponent, f"{better}-{worse}", gain.wins.pairs, "", "", "", *numbers))
    return header, rows


def action_name(actions: ActionSpace, chosen: Sequence[int]) -> str:
    """`leap`, or the switches that are on, or the numbers of the choices."""
    names = getattr(actions, "names", None)
    if names and len(chosen) == 1:
        return str(names[chosen[0]])
    if names:
        return "+".join(name for name, on in zip(names, chosen, strict=True) if on) or "nothing"
    return "+".join(map(str, chosen))


def _bounds(one: Effect) -> tuple[float, float, float]:
    return one.mean, one.low, one.high
