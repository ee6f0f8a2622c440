"""The lineage of a population as one picture: who descends from whom, and by which settings.

Drawn from a `Lineage` alone; needs matplotlib and touches none of its global state.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from understudy.core.dependencies import needs
from understudy.league.lineage import Lineage, Settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INK, _FAINT, _GRID = "#222831", "#6b7280", "#e3e6ea"
_DPI, _WIDTH = 100, 12.0
_COLOURS = "viridis"
_TITLES = {
    "learning_rate": "Learning rate",
    "entropy_weight": "Entropy bonus",
    "shaping": "Shaping (rewards beside the result, times)",
}


def draw(
    lineage: Lineage, fitness: Sequence[float | None], *, best: int, steps: int, title: str
) -> bytes:
    """PNG; `fitness` of each agent after `steps`, when the picture is made, and who is best."""
    with needs("lineage.png needs matplotlib", extra="plots"):
        from matplotlib import colormaps
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize
        from matplotlib.figure import Figure
    tree_height = max(2.4, 0.42 * lineage.agents + 1.0)
    figure = Figure(
        figsize=(_WIDTH, tree_height + 5.4), dpi=_DPI, facecolor="white", layout="constrained"
    )
    FigureCanvasAgg(figure)
    figure.suptitle(f"{title}   {lineage.rounds} rounds", color=_INK, fontsize=13)
    tree, *paths = figure.subplots(
        1 + len(_TITLES), 1, sharex=True, height_ratios=[tree_height, *[1.8] * len(_TITLES)]
    )
    known = [one for one in (*fitness, *(row.fitness for row in lineage.rows)) if one is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    scale = ScalarMappable(Normalize(low, max(high, low + 1e-6)), colormaps[_COLOURS])
    line = _line_of(lineage, best)
    _tree(tree, lineage, fitness, steps, scale, line)
    bar = figure.colorbar(scale, ax=tree, pad=0.01, aspect=12)
    bar.set_label("score against scripted opponents", color=_FAINT, fontsize=8)
    bar.ax.tick_params(labelsize=8, length=0)
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
    for axes, (name, words) in zip(paths, _TITLES.items(), strict=True):
        _path(axes, lineage, name, words, steps, line)
    for axes in (tree, *paths):
        _tidy(axes, steps)
    paths[-1].set_xlabel("steps of each agent", color=_FAINT, fontsize=9)
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    return picture.getvalue()


def _spans(lineage: Lineage, steps: int) -> list[tuple[int, int]]:
    """Where each round begins and ends, the one that is going on included."""
    ends = [lineage.of_round(number)[0].steps for number in range(1, lineage.rounds + 1)]
    return list(zip([0, *ends], [*ends, max(steps, lineage.steps)], strict=True))


def _line_of(lineage: Lineage, agent: int) -> list[int]:
    """The agent, round by round, that an agent of today descends from."""
    line = [agent]
    for number in range(lineage.rounds, 0, -1):
        agent = lineage.of_round(number)[agent - 1].parent
        line.append(agent)
    return line[::-1]


def _tree(
    axes: Axes,
    lineage: Lineage,
    fitness: Sequence[float | None],
    steps: int,
    scale: Any,
    line: Sequence[int],
) -> None:
    """A bar an agent, coloured by what it scored in each round; an arrow where one was copied."""
    _head(
        axes,
        "Who descends from whom (arrows: copies; outlined: the line that ends in agent "
        f"{line[-1]}, the best one)",
    )
    for index, (begin, end) in enumerate(_spans(lineage, steps)):
        rows = lineage.of_round(index + 1) if index < lineage.rounds else ()
        scores = [row.fitness for row in rows] or list(fitness)
        for agent, score in enumerate(scores, start=1):
            colour = _GRID if score is None else scale.to_rgba(score)
            mine = line[index] == agent
            axes.barh(
                agent, end - begin, left=begin, height=0.62, color=colour, zorder=3 if mine else 2,
                edgecolor=_INK if mine else "white", linewidth=1.6 if mine else 0.6,
            )  # fmt: skip
        for row in rows:
            if row.replaced:
                axes.annotate(
                    "", xy=(end, row.agent), xytext=(end, row.parent), zorder=5,
                    arrowprops={"arrowstyle": "-|>", "color": "#d1495b", "lw": 1.3,
                                "connectionstyle": "arc3,rad=-0.25", "shrinkA": 2, "shrinkB": 2},
                )  # fmt: skip
    axes.set_yticks(range(1, lineage.agents + 1))
    axes.set_yticklabels([f"agent {agent}" for agent in range(1, lineage.agents + 1)])
    axes.set_ylim(lineage.agents + 0.6, 0.4)


def _path(
    axes: Axes, lineage: Lineage, name: str, words: str, steps: int, line: Sequence[int]
) -> None:
    """The setting of each agent over time, and, bold, of the line that ends in the best one."""
    _head(axes, words)
    spans = _spans(lineage, steps)
    edges = [spans[0][0], *(end for _, end in spans)]
    settings: list[Sequence[Settings]] = [lineage.first]
    for number in range(1, lineage.rounds + 1):
        settings.append([row.after for row in lineage.of_round(number)])
    for agent in range(lineage.agents):
        values = [getattr(each[agent], name) for each in settings]
        axes.stairs(values, edges, baseline=None, color=_FAINT, lw=1.0, alpha=0.55)
    best = [getattr(each[agent - 1], name) for each, agent in zip(settings, line, strict=True)]
    axes.stairs(best, edges, baseline=None, color="#d1495b", lw=2.2)
    every = [getattr(one, name) for each in settings for one in each]
    if min(every) > 0 and max(every) > min(every):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.2g}")
        axes.yaxis.set_minor_formatter(lambda value, _: f"{value:.2g}")


def _head(axes: Axes, text: str) -> None:
    axes.set_title(text, loc="left", fontsize=10, color=_INK)


def _tidy(axes: Axes, steps: int) -> None:
    axes.set_xlim(0, max(steps, 1))
    axes.grid(True, axis="x", color=_GRID, lw=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8, length=0, colors=_FAINT, which="both")
    axes.xaxis.set_major_formatter(lambda value, _: _short(value))
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_GRID)


def _short(steps: float) -> str:
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if steps >= size:
            return f"{steps / size:.3g}{letter}"
    return f"{steps:.0f}"
