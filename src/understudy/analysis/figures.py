"""Figures of latents, probes, attention and the ablation, trained beside untrained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.analysis.ablation import CONTRASTS, WAYS, Ablation, worth
from understudy.analysis.canvas import COLOURS, FRAME, GREY, MARKERS, TRAINED, UNTRAINED, begin
from understudy.analysis.probing import Accuracy, ProbeVerdict
from understudy.analysis.recording import MatchRecording
from understudy.analysis.study import SHOWN_S, AttentionRecord, LatentGeometry
from understudy.core.arrays import NDArray
from understudy.core.spaces import ActionSpace
from understudy.match.tally import Tally

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ATTENTION_MATCHES = 3
"""Matches of each opponent in the figure of attention."""
_BRIGHTEST = 4.0
_WAY_NAMES = {
    "own": "own: told its own latent",
    "same": "same: told those of another match against the same opponent",
    "other": "other: told those of a match against another opponent",
}
_CONTRAST_NAMES = (
    "own - other: all that the latent is worth",
    "own - same: to read this very match",
    "same - other: to know whom one faces",
)


def scatter(
    geometry: LatentGeometry,
    places: str,
    opponents: Sequence[str],
    *,
    title: str,
    notes: tuple[str, str],
    axes: tuple[str, str] | None,
) -> Figure:
    """Every match as a point, coloured by opponent; `places` is a field of `geometry`."""
    figure, [panels] = begin(1, 2, width=10.5, height=5.0, title=title)
    for index, (panel, points, note) in enumerate(
        zip(panels, getattr(geometry, places), notes, strict=True)
    ):
        for one, name in enumerate(opponents):
            where = geometry.labels == one
            panel.scatter(
                points[where, 0], points[where, 1], s=18, alpha=0.75, linewidths=0, label=name,
                color=COLOURS[one % len(COLOURS)], marker=MARKERS[one % len(MARKERS)],
            )  # fmt: skip
        panel.set_title(note, fontsize=10)
        if axes is None:
            panel.set_xticks([])
            panel.set_yticks([])
        else:
            shares = geometry.explained[index]
            panel.set_xlabel(f"{axes[0]} ({shares[0]:.0%} of the variance)", fontsize=8)
            panel.set_ylabel(f"{axes[1]} ({shares[1]:.0%})", fontsize=8)
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center",
        ncols=min(len(opponents), 7), fontsize=9, frameon=False, markerscale=1.6,
    )  # fmt: skip
    return figure


def distances(geometry: LatentGeometry, opponents: Sequence[str]) -> Figure:
    """Distances between the mean latents of opponents."""
    figure, [panels] = begin(
        1, 2, width=11.0, height=5.2,
        title=f"Distance between opponents' mean latents after {geometry.seconds} s, "
        "in units of the spread among matches against one opponent",
    )  # fmt: skip
    most = float(geometry.distances.max())
    for panel, matrix, name in zip(
        panels, geometry.distances, ("trained", "untrained"), strict=True
    ):
        image = _matrix(panel, matrix, opponents, most=most, form="{:.2f}")
        panel.set_title(name, fontsize=10)
    figure.colorbar(image, ax=panels, shrink=0.8)
    return figure


def probe(
    verdicts: Mapping[str, Mapping[int, ProbeVerdict]],
    ceiling: Mapping[int, float],
    opponents: Sequence[str],
) -> Figure:
    """The accuracy of probes over time, and the confusion matrix."""
    figure, [panels] = begin(
        1, 3, width=15.0, height=4.8,
        title=f"How well a linear probe names the opponent, one of {len(opponents)} "
        "(bars: 95% interval)",
    )  # fmt: skip
    chance = 1 / len(opponents)
    for panel, (latent, frame), title in zip(
        panels[:2],
        (("latent", "frame"), ("latents", "frames")),
        ("from what is there in one frame", "from the mean of all frames so far"),
        strict=True,
    ):
        trained = {at: one.trained for at, one in verdicts[latent].items()}
        untrained = {at: one.untrained for at, one in verdicts[latent].items() if one.untrained}
        itself = {at: one.trained for at, one in verdicts[frame].items()}
        _accuracies(panel, trained, "trained latent", TRAINED, "o", nudge=0.97)
        _accuracies(panel, untrained, "untrained latent", UNTRAINED, "s", nudge=1.0)
        _accuracies(panel, itself, "observation itself", FRAME, "^", nudge=1.03)
        panel.axhline(chance, color=GREY, linestyle=":", linewidth=1)
        panel.text(1.0, chance + 0.012, "chance", color=GREY, fontsize=8)
        panel.plot(
            list(ceiling), list(ceiling.values()), color=GREY, linestyle="--", linewidth=1.2,
            label="the most that is possible: matches look alike so far",
        )  # fmt: skip
        panel.set_xscale("log", base=2)
        panel.set_xticks([1, 2, 4, 8], ["1 s", "2 s", "4 s", "8 s"])
        panel.set_ylim(0, 1.18)
        panel.set_yticks(np.linspace(0, 1, 6), [f"{share:.0%}" for share in np.linspace(0, 1, 6)])
        panel.grid(axis="y", alpha=0.25)
        panel.set_xlabel("into the match", fontsize=9)
        panel.set_title(title, fontsize=10)
        panel.legend(fontsize=7.5, frameon=False, loc="upper left", ncols=2)
    shown = verdicts["latent"].get(SHOWN_S)
    if shown is None:
        panels[2].set_visible(False)
        return figure
    counts = np.array(shown.confusion, np.float64)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    _matrix(panels[2], shares, opponents, most=1.0, form="{:.0%}")
    panels[2].set_title(f"trained latent after {SHOWN_S} s: row is taken for column", fontsize=10)
    return figure


def ablation(result: Ablation) -> Figure:
    """What the latent is worth, against each opponent and in all."""
    names = ["all", *result.opponents]
    figure, [panels] = begin(
        1, 2, width=12.5, height=0.55 * len(names) + 2.2, sharey=True,
        title=f"What recognition is worth: {len(result.labels)} matches on the same seeds, "
        "played with other latents (bars: 95% interval)",
    )  # fmt: skip
    rows = np.arange(len(names))[::-1]
    for index, way in enumerate(WAYS):
        tallies = [Tally.of(scores) for scores in _by_opponent(result, way)]
        bounds = np.array([one.interval for one in tallies])
        rates = np.array([one.win_rate for one in tallies])
        _bars(panels[0], rates, bounds, rows + _offset(index), index, _WAY_NAMES[way])
    for index, (better, worse) in enumerate(CONTRASTS):
        gains = [
            worth(result, better, worse, label=label).wins
            for label in (None, *range(len(result.opponents)))
        ]
        bounds = np.array([(one.low, one.high) for one in gains])
        means = np.array([one.mean for one in gains])
        _bars(panels[1], means, bounds, rows + _offset(index), index + 3, _CONTRAST_NAMES[index])
    panels[1].axvline(0, color=GREY, linewidth=1)
    panels[0].set_yticks(rows, names, fontsize=9)
    panels[0].set_title("win rate", fontsize=10)
    panels[1].set_title("difference of win rates, match by match", fontsize=10)
    for panel in panels:
        panel.xaxis.set_major_formatter("{x:.0%}")
        panel.grid(axis="x", alpha=0.25)
        panel.axhline(rows[0] - 0.5, color=GREY, linewidth=0.8)
        panel.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.08))
    return figure


def _accuracies(
    panel: Axes,
    values: Mapping[int, Accuracy],
    name: str,
    colour: str,
    marker: str,
    *,
    nudge: float,
) -> None:
    """One line with intervals; `nudge` keeps the bars of several lines apart."""
    shares = np.array([one.share for one in values.values()])
    below = shares - np.array([one.low for one in values.values()])
    above = np.array([one.high for one in values.values()]) - shares
    panel.errorbar(
        [at * nudge for at in values], shares, yerr=_reach(below, above), label=name, color=colour,
        marker=marker, capsize=3, linewidth=1.6, markersize=5,
    )  # fmt: skip


def _matrix(panel: Axes, matrix: NDArray, names: Sequence[str], *, most: float, form: str) -> Any:
    """A heat map with numbers."""
    image = panel.imshow(matrix, cmap="Blues", vmin=0.0, vmax=most)
    panel.set_xticks(range(len(names)), names, rotation=40, ha="right", fontsize=8)
    panel.set_yticks(range(len(names)), names, fontsize=8)
    for (row, column), value in np.ndenumerate(matrix):
        colour = "white" if value > 0.6 * most else "black"
        panel.text(
            column, row, form.format(value), ha="center", va="center", fontsize=8, color=colour
        )
    return image


def _bars(
    panel: Axes, means: NDArray, bounds: NDArray, rows: NDArray, style: int, name: str
) -> None:
    panel.errorbar(
        means, rows, xerr=_reach(means - bounds[:, 0], bounds[:, 1] - means),
        linestyle="none", marker=MARKERS[style], color=COLOURS[style], capsize=2.5, markersize=5,
        label=name,
    )  # fmt: skip


def _reach(below: NDArray, above: NDArray) -> NDArray:
    """Error bars [2, N]; rounding can put a bound on the wrong side of its mean."""
    reach: NDArray = np.maximum(np.stack([below, above]), 0.0)
    return reach


def _by_opponent(result: Ablation, way: str) -> list[NDArray]:
    """The scores of all matches, then of those against each opponent."""
    scores = result.scores[way]
    return [scores, *(scores[result.labels == one] for one in range(len(result.opponents)))]


def _offset(index: int) -> float:
    return 0.22 * (1 - index)


def attention(
    record: MatchRecording,
    attended: AttentionRecord,
    label: int,
    *,
    actions: ActionSpace,
    states: Mapping[str, int],
    frames_per_s: int,
) -> Figure:
    """A column for each match; `states` are features of the opponent to show, name -> index."""
    places = np.flatnonzero(record.labels[attended.columns] == label)[:ATTENTION_MATCHES]
    name = record.opponents[label]
    figure, panels = begin(
        4, len(places), width=5.4 * len(places) + 0.6, height=9.0, sharex="col",
        title=f"Which frames the encoder reads in matches against {name}, and what {name} did",
        height_ratios=(3.2, 1.8, 2.6, 0.34 * len(states)),
    )  # fmt: skip
    for at, place in enumerate(places):
        column = [row[at] for row in panels]
        match = attended.columns[place]
        length = int(record.lengths[match])
        image = _weights(column[0], attended.weights[0, :length, place], frames_per_s)
        _received(column[1], attended.received[:, :length, place], frames_per_s)
        names = option_names(actions)
        done = chosen(actions, record.done[:length, match : match + 1])[..., 0]
        _raster(column[2], done, names, frames_per_s)
        seen = np.stack([record.seen[:length, match, index] for index in states.values()])
        _states(column[3], seen, list(states), frames_per_s)
        column[0].set_title(f"match {record.numbers[match]}", fontsize=10)
        column[3].set_xlabel("seconds into the match", fontsize=8)
    panels[0][0].set_ylabel("frames ago", fontsize=9)
    panels[1][0].set_ylabel("attention that the\nframe got (1: uniform)", fontsize=9)
    panels[1][0].legend(fontsize=8, frameon=False, loc="upper right", ncols=2)
    panels[2][0].set_ylabel(f"{name} chose", fontsize=9)
    panels[3][0].set_ylabel("seen", fontsize=9)
    bar = figure.colorbar(image, ax=panels[0], shrink=0.9, pad=0.01, extend="max")
    bar.set_label("weight of that frame (1: uniform)", fontsize=8)
    return figure


def option_names(actions: ActionSpace) -> list[str]:
    """The names of all options, or of all switches."""
    names = getattr(actions, "names", None)
    if names:
        return list(names)
    return [f"{part}:{option}" for part, n in enumerate(actions.parts) for option in range(n)]


def chosen(actions: ActionSpace, done: NDArray) -> NDArray:
    """done int [T, N, parts] to bool [rows, T, N]: which of `option_names` were chosen."""
    names = getattr(actions, "names", None)
    if names and len(actions.parts) == 1:
        return np.stack([done[..., 0] == option for option in range(len(names))])
    if names:
        return np.stack([done[..., part] == 1 for part in range(len(names))])
    return np.stack(
        [done[..., part] == option for part, n in enumerate(actions.parts) for option in range(n)]
    )


def _weights(panel: Axes, weights: NDArray, frames_per_s: int) -> Any:
    """weights [T, window] as an image; the present frame is at the bottom."""
    length, window = weights.shape
    held = np.minimum(np.arange(1, length + 1), window)
    relative = (weights * held[:, None])[:, ::-1].T
    ago = np.arange(window)[:, None]
    shown = np.ma.masked_where(ago >= held[None], relative)
    image = panel.imshow(
        shown, origin="lower", aspect="auto", cmap="magma", vmin=0.0, vmax=_BRIGHTEST,
        extent=(0, length / frames_per_s, -0.5, window - 0.5), interpolation="nearest",
    )  # fmt: skip
    panel.set_facecolor("#dddddd")
    return image


def _received(panel: Axes, received: NDArray, frames_per_s: int) -> None:
    """received [2, T]."""
    time = np.arange(received.shape[1]) / frames_per_s
    panel.axhline(1, color=GREY, linewidth=0.8, linestyle=":")
    panel.plot(time, received[1], color=UNTRAINED, linewidth=1.2, label="untrained")
    panel.plot(time, received[0], color=TRAINED, linewidth=1.4, label="trained")
    known = received[np.isfinite(received)]
    panel.set_ylim(0, max(2.0, 1.25 * float(known.max(initial=0.0))))


def _raster(panel: Axes, done: NDArray, names: Sequence[str], frames_per_s: int) -> None:
    """done bool [rows, T]."""
    length = done.shape[1]
    panel.imshow(
        done, aspect="auto", cmap="Greys", vmin=0, vmax=1.2, interpolation="nearest",
        extent=(0, length / frames_per_s, len(names) - 0.5, -0.5),
    )  # fmt: skip
    panel.set_yticks(range(len(names)), names, fontsize=7)


def _states(panel: Axes, seen: NDArray, names: Sequence[str], frames_per_s: int) -> None:
    """seen [rows, T] from -1 to 1: each feature in a band of its own, 0 in the middle."""
    time = np.arange(seen.shape[1]) / frames_per_s
    for row, values in enumerate(seen):
        panel.axhline(-row, color="#dddddd", linewidth=0.8)
        panel.fill_between(time, -row, -row + 0.45 * values, color=TRAINED, linewidth=0, step="mid")
    panel.set_yticks([-row for row in range(len(names))], names, fontsize=7)
    panel.set_ylim(-len(names) + 0.4, 0.6)
