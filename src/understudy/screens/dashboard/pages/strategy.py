"""Strategy: what the policy makes of its opponents, for networks with a latent of the opponent."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from understudy.analysis.findings import Attention, Findings
from understudy.analysis.study import SHOWN_S
from understudy.core.opponents import kind_of
from understudy.policy.strategist import Strategist
from understudy.screens.dashboard.layout import run_path
from understudy.screens.dashboard.page import PagePart, RunReading, empty, file_stamp, part
from understudy.screens.html.axis import PERCENT
from understudy.screens.html.elements import Element, HtmlNode, tag
from understudy.screens.html.heat_map import heat_map
from understudy.screens.html.parts import chart_row, table
from understudy.screens.html.scatter import ScatterGroup, scatter
from understudy.screens.html.xy_chart import Threshold, XyLine, xy_chart
from understudy.telemetry.table import Table, number
from understudy.telemetry.training_rows import ALL, STRATEGY, columns_of

_SHARE = 0.1
"""Of the time, at most, that reading files again takes."""
_FOLDER, _FINDINGS = "analysis", "analysis.json"
"""Where `understudy analyze` leaves its files in a run folder."""
_MOST_TIMES = 24
"""Points of an opponent in the map of training."""
_ACTIONS = 10
_LATENT = "latent_"


def offered(reading: RunReading) -> bool:
    """Whether the network of the run has a latent of the opponent."""
    return isinstance(reading.folder.spec.network, Strategist)


def beside(reading: RunReading) -> Hashable:
    """What `understudy analyze` leaves in the run folder."""
    return file_stamp(reading.folder.root / _FOLDER / _FINDINGS)


def parts(reading: RunReading) -> Iterator[PagePart]:
    found = _analysis(reading)
    yield _map(reading, found)
    yield _over_time(reading)
    yield from _recognition(found)
    yield _attention(reading, found)


# --- what is read --------------------------------------------------------------------------------


class _Analysis(NamedTuple):
    """What `understudy analyze` left."""

    findings: Findings | None = None
    principal: tuple[ScatterGroup, ...] = ()
    """Places of matches by opponent, along principal components."""
    neighbours: tuple[ScatterGroup, ...] = ()
    """The same by t-SNE."""
    error: str = ""


def _analysis(reading: RunReading) -> _Analysis:
    folder = reading.folder.root / _FOLDER
    return reading.cache.read("analysis", beside(reading), lambda: _read_analysis(folder))


def _read_analysis(folder: Path) -> _Analysis:
    if not (folder / _FINDINGS).is_file():
        return _Analysis()
    try:
        data = (folder / _FINDINGS).read_bytes()
        return _Analysis(
            msgspec.json.decode(data, type=Findings),
            _places(folder / "latents_pca.csv"),
            _places(folder / "latents_tsne.csv"),
        )
    except (msgspec.MsgspecError, ValueError, KeyError, TypeError, csv.Error, OSError) as error:
        return _Analysis(error=f"{folder}: expected the files of `understudy analyze` ({error})")


def _places(path: Path) -> tuple[ScatterGroup, ...]:
    """Those of the trained encoder; none where too few matches lasted so long."""
    if not path.is_file():
        return ()
    found: dict[str, list[tuple[float, float]]] = {}
    for row in csv.DictReader(io.StringIO(path.read_text("utf-8"), newline="")):
        x, y = float(row["x"]), float(row["y"])
        if row["encoder"] == "trained" and math.isfinite(x) and math.isfinite(y):
            found.setdefault(row["opponent"], []).append((x, y))
    return tuple(ScatterGroup(name, many) for name, many in found.items())


class _Path(NamedTuple):
    """The mean latents of training, along their two principal components."""

    groups: tuple[ScatterGroup, ...] = ()
    """By opponent, from the first measurement to the last."""
    explained: tuple[float, float] = (0.0, 0.0)
    """The share of the variance along each axis."""
    numbers: int = 0
    """Of a latent that are recorded."""


def _training_path(reading: RunReading) -> _Path:
    path = reading.folder.root / f"{STRATEGY}.csv"
    return reading.cache.read("latents", file_stamp(path), lambda: _read_path(path), share=_SHARE)


def _read_path(path: Path) -> _Path:
    if not path.is_file():
        return _Path()
    latents: dict[str, list[list[float]]] = {}
    for row in Table(path, columns_of([])[STRATEGY]).rows():
        if row["opponent"] != ALL:
            latent = [number(value) for name, value in row.items() if name.startswith(_LATENT)
                      and name[len(_LATENT):].isdecimal()]  # fmt: skip
            if latent and all(map(math.isfinite, latent)):
                latents.setdefault(kind_of(row["opponent"]), []).append(latent)
    kept = {name: _thinned(many) for name, many in latents.items()}
    return projected(kept)


def _thinned(latents: Sequence[list[float]]) -> list[list[float]]:
    """Means of equally many neighbours, so that a long training gives a calm path."""
    pieces = np.array_split(np.array(latents), min(len(latents), _MOST_TIMES))
    return [piece.mean(0).tolist() for piece in pieces]


def projected(latents: dict[str, list[list[float]]]) -> _Path:
    """Latents [N, D] by opponent to the two directions in which all of them differ most."""
    if not latents:
        return _Path()
    wide = np.concatenate([np.array(many, np.float64) for many in latents.values()])
    centre = wide.mean(0)
    _, sizes, axes = np.linalg.svd(wide - centre, full_matrices=False)
    variance = sizes**2
    total = max(float(variance.sum()), 1e-300)
    axes = np.vstack([axes, np.zeros((2, wide.shape[1]))])[:2]
    shares = (*(variance / total).tolist(), 0.0, 0.0)
    groups = tuple(
        ScatterGroup(name, [(float(x), float(y)) for x, y in (np.array(many) - centre) @ axes.T])
        for name, many in latents.items()
    )
    return _Path(groups, (shares[0], shares[1]), wide.shape[1])


# --- the map -------------------------------------------------------------------------------------


def _command(reading: RunReading) -> Element:
    game = reading.folder.identity.game_name
    return tag("code", f"understudy analyze {game} --agent {reading.folder.root}")


def _map(reading: RunReading, found: _Analysis) -> PagePart:
    heading = "Map of opponents"
    words = (
        "The policy turns what it sees of an opponent into a latent, a few numbers that it acts "
        "on. Here each opponent has a colour: groups that lie apart are opponents that the policy "
        "tells apart."
    )
    body: list[HtmlNode] = []
    if found.error:
        body.append(tag("p", found.error, class_="finding warning"))
    figures = [_matches_map(found), _neighbours_map(found), _training_map(reading)]
    charts = chart_row(figures)
    if found.findings is None:
        more = (
            "One point for each match, and whether a simple classifier can name the opponent, come "
            "of this command: "
        )
        body.append(tag("p", more, _command(reading), class_="soft"))
    if not charts and not body:
        return empty("map", heading, "No latent was measured yet.")
    return part("map", heading, *charts, *body, words=words)


def _matches_map(found: _Analysis) -> Element | None:
    return scatter(
        found.principal,
        title="Latents of matches",
        explains=f"One point for each match{_some_seconds(found)}, along the two directions in "
        f"which latents differ most (principal components).{_clusters(found)}",
        across="first principal component",
        up="second",
    )


def _neighbours_map(found: _Analysis) -> Element | None:
    return scatter(
        found.neighbours,
        title="The same matches by t-SNE",
        explains="Matches with similar latents lie near each other. Distances between groups, and "
        "the axes themselves, mean nothing.",
        across="t-SNE 1",
        up="t-SNE 2",
    )


def _some_seconds(found: _Analysis) -> str:
    version = found.findings.version if found.findings is not None else None
    return f", {SHOWN_S} s into it" + (f", of version {version}" if version else "")


def _clusters(found: _Analysis) -> str:
    scores = found.findings.silhouette if found.findings is not None else None
    if not scores:
        return ""
    trained, untrained = max(scores.values())
    return (
        f" Silhouette {trained:.2f} at best (1: opponents lie wholly apart, 0: they are mixed); "
        f"an untrained network has {untrained:.2f}."
    )


def _training_map(reading: RunReading) -> Element | None:
    path = _training_path(reading)
    first, second = path.explained
    return scatter(
        path.groups,
        title="Mean latents during training",
        explains="One path for each opponent, from pale to the large point, which is now. The axes "
        f"are the two directions in which the {path.numbers} recorded numbers of the latents "
        f"differ most: {first:.0%} and {second:.0%} of all variance.",
        across="first principal component",
        up="second",
        path=True,
    )


# --- over time -----------------------------------------------------------------------------------


def _over_time(reading: RunReading) -> PagePart:
    charts = reading.charts
    window = _window(reading)
    drawn = chart_row(
        [
            charts.of(
                "Spread of the latents",
                "How far latents lie from their mean, and how far the means of opponents lie from "
                "each other. Near 0, the latent says nothing.",
                {"latent_spread": "all latents", "latent_apart": "between opponents"},
            ),
            charts.of(
                "Entropy of attention",
                f"Over the {window} frames that the policy looks back at, in nats: "
                f"{math.log(window):.2f} is attention to all alike, 0 to a single frame."
                if window
                else "In nats: 0 is attention to a single frame.",
                {"attention_entropy": "entropy"},
            ),
        ]
    )
    if not drawn:
        return empty(
            "time", "How the latents change",
            "Nothing was measured yet: the first iterations of training are.",
        )  # fmt: skip
    return part(
        "time", "How the latents change", *drawn,
        words="While a policy learns to recognise opponents, their latents move apart and its "
        "attention falls from even to chosen frames.",
    )  # fmt: skip


def _window(reading: RunReading) -> int:
    network = reading.folder.spec.network
    return network.window if isinstance(network, Strategist) else 0


# --- recognition ---------------------------------------------------------------------------------


def _recognition(found: _Analysis) -> Iterator[PagePart]:
    findings = found.findings
    if findings is None or not findings.probe or not findings.probe.get("latent"):
        return
    yield part(
        "recognition", "Can the opponent be named from the latent?",
        *chart_row([_probe_chart(findings), _confusion(findings), _distances(findings)]),
        words="A linear classifier (a probe) is asked who the opponent is, from the latent alone. "
        "Good is far above chance and above the untrained network, and early in the match.",
    )  # fmt: skip


def _probe_chart(findings: Findings) -> Element | None:
    assert findings.probe is not None
    latent, own = findings.probe["latent"], findings.probe.get("itself", {})
    at = [float(seconds) for seconds in latent]
    trained = [one.trained for one in latent.values()]
    lines = [
        XyLine(
            "the latent", at, [one.share for one in trained], 1,
            [one.low for one in trained], [one.high for one in trained], dots=True,
        )
    ]  # fmt: skip
    zero = [(float(s), one.untrained.share) for s, one in latent.items() if one.untrained]
    if zero:
        lines.append(XyLine("untrained", [x for x, _ in zero], [y for _, y in zero], 2, dots=True))
    if own:
        shares = [one.trained.share for one in own.values()]
        lines.append(XyLine("the policy itself", [float(s) for s in own], shares, 3, dots=True))
    return xy_chart(
        lines,
        title="Accuracy by time into the match",
        explains=f"The share of {trained[0].matches:,} matches whose opponent was named rightly, "
        f"with the 95% interval; {len(findings.opponents)} opponents. 'The policy itself' is its "
        "own guess, which it learned in training.",
        across="seconds into the match",
        y_axis=PERCENT,
        thresholds=[Threshold("chance", 1.0 / max(len(findings.opponents), 1), 5)],
    )


def _confusion(findings: Findings) -> Element | None:
    assert findings.probe is not None
    seconds, verdict = list(findings.probe["latent"].items())[-1]
    names = findings.opponents
    if len(verdict.confusion) != len(names):
        return None
    cells = [
        [count / total if (total := sum(row)) else None for count in row]
        for row in verdict.confusion
    ]
    return heat_map(
        cells,
        rows=names,
        columns=names,
        title=f"Who is taken for whom, {seconds} s into the match",
        explains="The row is the opponent, the column whom the probe names. A dark diagonal is "
        "good; a dark cell beside it is a pair that the latent mixes up.",
        low=0.0,
        high=1.0,
        text=lambda value: f"{value:.0%}",
    )


def _distances(findings: Findings) -> Element | None:
    matrix = (findings.distances or {}).get("trained")
    names = findings.opponents
    if not matrix or len(matrix) != len(names):
        return None
    cells: list[list[float | None]] = [
        [None if i == j else value for j, value in enumerate(row)] for i, row in enumerate(matrix)
    ]
    known = [value for row in cells for value in row if value is not None]
    return heat_map(
        cells,
        rows=names,
        columns=names,
        title="How far opponents lie apart",
        explains="Between their mean latents, in units of the spread within one opponent: above 2 "
        "the groups hardly overlap.",
        low=0.0,
        high=max(known, default=1.0),
        text=lambda value: f"{value:.1f}",
    )


# --- attention -----------------------------------------------------------------------------------


def _attention(reading: RunReading, found: _Analysis) -> PagePart:
    link = tag(
        "p",
        "The ",
        tag("a", "replay viewer", href=run_path(reading.name, "replay")),
        " shows the policy's attention and its belief about the opponent in step with a recorded "
        "match.",
    )
    attended = found.findings.attention if found.findings is not None else None
    if attended is None:
        return part("attention", "What it looks at", link)
    trained, untrained = attended.evenness.get("all", [1.0, 1.0])
    words = (
        f"Attention over the last {attended.window} frames, in {attended.matches:,} matches. Its "
        f"entropy is {trained:.0%} of even attention (untrained: {untrained:.0%}): the lower, the "
        "more the policy chooses."
    )
    return part("attention", "What it looks at", _action_table(attended), link, words=words)


def _action_table(attended: Attention) -> Element:
    shown = sorted(attended.by_action, key=lambda one: -one.trained)
    return table(
        "Attention to frames in which the opponent chose an action; 1 is as much as to any frame.",
        ("action of the opponent", "frames", "attention", "untrained"),
        [
            (one.action, f"{one.frames:,}", f"{one.trained:.2f}", f"{one.untrained:.2f}")
            for one in shown[:_ACTIONS]
        ],
        kinds="wnnn",
    )
