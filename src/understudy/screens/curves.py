"""The curves of a training run as one picture, drawn from a bounded `History`.

Drawing needs matplotlib and touches none of its global state: no pyplot, no style, no backend. It
takes the same time however long the run is.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Literal

import numpy as np

from understudy.core.dependencies import needs
from understudy.telemetry.history import SNAPSHOTS, History

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE, _DPI = (13.5, 11.5), 100
_INK, _FAINT, _GRID = "#222831", "#6b7280", "#e3e6ea"
_PALETTE = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b", "#7f7fff",
    "#b3b300", "#17a398", "#a65628", "#4d4d4d",
)  # fmt: skip
"""Told apart by most eyes that do not see all colours, in this order."""
_SHADES = ("#f4f6f8", "#e9eef3")
_ROLLING = 200.0
"""Matches that a point of a win rate is over, at least, once there have been so many."""
_CALM = 0.03
"""The share of the run that a thick line is averaged over, where a thin one shows every bin."""
_MOST_LINES, _MOST_STAGES = 10, 40
_MOST_TICKS = 300


def draw(history: History, *, title: str) -> bytes:
    """The picture as PNG; `MissingDependency` without matplotlib."""
    with needs("training_curves.png needs matplotlib", extra="plots"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    figure = Figure(figsize=_SIZE, dpi=_DPI, facecolor="white", layout="constrained")
    canvas = FigureCanvasAgg(figure)
    head = f"{title}: {_steps_text(history.steps)} steps"
    figure.suptitle(head, color=_INK, fontsize=14, fontweight="bold", x=0.01, ha="left")
    (wins, rewards), (losses, policy), (rates, rating) = figure.subplots(3, 2, sharex=True)
    _win_rates(wins, history)
    _returns(rewards, history)
    _pair(losses, history, "Losses of critic and actor", "value_loss", "policy_loss")
    _pair(
        policy, history, "How undecided the policy is, how far an update moves it", "entropy", "kl"
    )
    _pair(rates, history, "Step size", "learning_rate", "gradient_norm", log=True)
    _rating(rating, history)
    for axes in (wins, rewards, losses, policy, rates, rating):
        _stages(axes, history, named=axes is wins)
        _tidy(axes, history)
    for axes in (rates, rating):
        axes.set_xlabel("steps", color=_FAINT, fontsize=9)
    picture = io.BytesIO()
    canvas.print_png(picture)  # type: ignore[no-untyped-call]
    return picture.getvalue()


def _win_rates(axes: Axes, history: History) -> None:
    """Lines are training matches, points with a border are frozen ones."""
    _head(axes, f"Win rate by opponent (last {_ROLLING:.0f} matches; dots: frozen benchmarks)")
    met = {name for name, curve in history.win_rates.items() if len(curve)}
    names = sorted(met | set(history.judged), key=lambda name: (name == SNAPSHOTS, name))
    for index, name in enumerate(names[:_MOST_LINES]):
        colour = _PALETTE[index]
        curve, judged = history.win_rates.get(name), history.judged.get(name)
        if curve is not None and len(curve):
            rates = 100 * curve.values(over=_ROLLING)
            axes.plot(curve.steps(), rates, color=colour, lw=1.6, label=name)
        if judged is not None and len(judged):
            label = None if curve is not None and len(curve) else name
            axes.plot(
                judged.steps(), 100 * judged.values(), "o", color=colour, ms=5, mec="white",
                mew=0.8, label=label, zorder=5,
            )  # fmt: skip
    axes.set_ylim(-3, 103)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0f}%")
    _legend(axes, columns=2 if len(names) > 5 else 1)


def _returns(axes: Axes, history: History) -> None:
    """Terms above and below 0 are stacked apart; they add up to the line."""
    _head(axes, "Return of a match, and the reward terms it is made of")
    if len(history.returns) < 2:
        return
    steps, layers, returns = history.reward_terms(over=5 * _ROLLING)
    rest = list(layers)[_MOST_LINES - 1 :]
    if rest:
        layers["other terms"] = np.sum([layers.pop(name) for name in rest], axis=0)
    above, below = np.zeros(len(steps)), np.zeros(len(steps))
    for colour, (name, values) in zip(_PALETTE, layers.items(), strict=False):
        up, down = above + np.maximum(values, 0), below + np.minimum(values, 0)
        axes.fill_between(steps, above, up, color=colour, alpha=0.55, lw=0, label=name)
        axes.fill_between(steps, below, down, color=colour, alpha=0.55, lw=0)
        above, below = up, down
    axes.plot(steps, returns, color=_INK, lw=1.6, label="return")
    axes.axhline(0, color=_FAINT, lw=0.6)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.3 * (high - low))  # room for the legend above the areas
    _legend(axes, columns=4, place="upper left")


def _pair(axes: Axes, history: History, title: str, *names: str, log: bool = False) -> None:
    """Two curves of different size, each with a scale of its own in its own colour."""
    from matplotlib.ticker import LogLocator, NullFormatter

    _head(axes, title)
    for index, name in enumerate(names):
        own = axes.twinx() if index else axes
        curve, colour = history.training.get(name), _PALETTE[index]
        if curve is None or not len(curve):
            own.set_yticks([])
            continue
        steps, values = curve.steps(), curve.values()
        over = 0.0 if name == "learning_rate" else _CALM * curve.weight  # it is set, not measured
        own.plot(steps, values, color=colour, lw=0.8, alpha=0.35)
        own.plot(steps, curve.values(over=over), color=colour, lw=1.8)
        own.set_ylabel(name.replace("_", " ").replace("kl", "KL"), color=colour, fontsize=9)
        if log and values.min() > 0:
            own.set_ylim(values.min() / 1.2, values.max() * 1.2)  # a constant has no range
            own.set_yscale("log")
            own.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            own.yaxis.set_major_formatter(lambda value, _: f"{value:.3g}")
            own.yaxis.set_minor_formatter(NullFormatter())
        own.tick_params(axis="y", colors=colour)
        own.tick_params(labelsize=8, length=0, which="both")
        if index:
            own.spines[:].set_visible(False)


def _rating(axes: Axes, history: History) -> None:
    """The belief about the learner's strength, in points as everywhere that people read it."""
    _head(axes, "Rating: mean and 95% of the belief (ticks: snapshots kept)")
    steps = history.rating.steps()
    if len(steps):
        mean, doubt = history.rating.values(), history.doubt.at(steps)
        axes.fill_between(steps, mean - doubt, mean + doubt, color=_PALETTE[0], alpha=0.18)
        axes.plot(steps, mean, color=_PALETTE[0], lw=1.6)
    marks = history.snapshots[:: 1 + len(history.snapshots) // _MOST_TICKS]
    if marks:
        low = axes.get_xaxis_transform()
        axes.plot(marks, [0.02] * len(marks), "|", color=_INK, ms=9, mew=1, transform=low)
    if not len(steps):
        _nothing(axes, "no ratings in this run")


def _stages(axes: Axes, history: History, *, named: bool) -> None:
    """Each stage of the curriculum as a band; the last ones, where there were very many."""
    stages = history.stages[-_MOST_STAGES:]
    ends = [*(steps for steps, _ in stages), history.steps][1:]
    width = max(history.steps, 1)
    for index, ((begin, name), end) in enumerate(zip(stages, ends, strict=True)):
        axes.axvspan(begin, end, color=_SHADES[index % 2], lw=0, zorder=-10)
        if named and (end - begin) / width > 0.05:
            axes.text(
                (begin + end) / 2, 1.005, name, transform=axes.get_xaxis_transform(),
                ha="center", va="bottom", fontsize=8, color=_FAINT, clip_on=False,
            )  # fmt: skip


def _head(axes: Axes, text: str) -> None:
    axes.set_title(text, loc="left", fontsize=10, color=_INK, pad=16)


def _legend(axes: Axes, *, columns: int, place: Literal["best", "upper left"] = "best") -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8, ncols=columns, frameon=True, framealpha=0.8, edgecolor="none",
                    labelcolor=_INK, loc=place)  # fmt: skip


def _nothing(axes: Axes, text: str) -> None:
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", color=_FAINT, fontsize=9)
    axes.set_yticks([])


def _tidy(axes: Axes, history: History) -> None:
    axes.set_xlim(0, max(history.steps, 1))
    axes.grid(True, color=_GRID, lw=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8, length=0)
    axes.tick_params(axis="x", colors=_FAINT, labelbottom=True)
    axes.xaxis.set_major_formatter(lambda value, _: _steps_text(value))
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_GRID)


def _steps_text(steps: float) -> str:
    """`950`, `65k`, `1.2M`, `3B`."""
    scales = ((1e9, "B"), (1e6, "M"), (1e3, "k"))
    for scale, letter in scales:
        if steps >= scale:
            return f"{steps / scale:.3g}{letter}"
    return f"{steps:.0f}"
