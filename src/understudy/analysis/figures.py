"""Pictures of latents, probes and the ablation: trained beside untrained, titles that say what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.analysis.ablation import CONTRASTS, WAYS, Ablation, worth
from understudy.analysis.canvas import (
    COLOURS,
    FRAME,
    GREY,
    MARKERS,
    TRAINED,
    UNTRAINED,
    begin,
)
from understudy.analysis.probing import Accuracy, Verdict
from understudy.analysis.study import SHOWN_S, Lying
from understudy.core.arrays import NDArray
from understudy.match.tally import Tally

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
    lying: Lying,
    places: str,
    opponents: Sequence[str],
    *,
    title: str,
    notes: tuple[str, str],
    axes: tuple[str, str] | None,
) -> Figure:
    """Every match as a point, coloured by opponent; `places` is a field of `Lying`."""
    figure, [panels] = begin(1, 2, width=10.5, height=5.0, title=title)
    for index, (panel, points, note) in enumerate(
        zip(panels, getattr(lying, places), notes, strict=True)
    ):
        for one, name in enumerate(opponents):
            where = lying.labels == one
            panel.scatter(
                points[where, 0], points[where, 1], s=18, alpha=0.75, linewidths=0, label=name,
                color=COLOURS[one % len(COLOURS)], marker=MARKERS[one % len(MARKERS)],
            )  # fmt: skip
        panel.set_title(note, fontsize=10)
        if axes is None:
            panel.set_xticks([])
            panel.set_yticks([])
        else:
            shares = lying.explained[index]
            panel.set_xlabel(f"{axes[0]} ({shares[0]:.0%} of the variance)", fontsize=8)
            panel.set_ylabel(f"{axes[1]} ({shares[1]:.0%})", fontsize=8)
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center",
        ncols=min(len(opponents), 7), fontsize=9, frameon=False, markerscale=1.6,
    )  # fmt: skip
    return figure


def distances(lying: Lying, opponents: Sequence[str]) -> Figure:
    """How far apart the opponents' mean latents are."""
    figure, [panels] = begin(
        1, 2, width=11.0, height=5.2,
        title=f"Distance between opponents' mean latents after {lying.seconds} s, "
        "in units of the spread among matches against one opponent",
    )  # fmt: skip
    most = float(lying.distances.max())
    for panel, matrix, name in zip(panels, lying.distances, ("trained", "untrained"), strict=True):
        image = _matrix(panel, matrix, opponents, most=most, form="{:.2f}")
        panel.set_title(name, fontsize=10)
    figure.colorbar(image, ax=panels, shrink=0.8)
    return figure


def probe(
    verdicts: Mapping[str, Mapping[int, Verdict]],
    ceiling: Mapping[int, float],
    opponents: Sequence[str],
) -> Figure:
    """How well a linear probe names the opponent, over time; and whom it takes for whom."""
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
            label="nobody can do better: matches look alike so far",
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
    """What the latent is worth against each opponent, and in all."""
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
    """A square of numbers, dark where they are large."""
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
    """Bars [2, N]; rounding can put a bound on the wrong side of its mean."""
    reach: NDArray = np.maximum(np.stack([below, above]), 0.0)
    return reach


def _by_opponent(result: Ablation, way: str) -> list[NDArray]:
    """The scores of all matches, then of those against each opponent."""
    scores = result.scores[way]
    return [scores, *(scores[result.labels == one] for one in range(len(result.opponents)))]


def _offset(index: int) -> float:
    return 0.22 * (1 - index)
