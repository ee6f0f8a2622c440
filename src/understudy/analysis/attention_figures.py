"""Pictures of attention: which frames of a match told most, beside what the opponent did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.analysis.canvas import GREY, TRAINED, UNTRAINED, begin
from understudy.analysis.recording import Record
from understudy.analysis.study import Attended
from understudy.core.arrays import NDArray
from understudy.core.spaces import ActionSpace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MATCHES = 3
"""Drawn of each opponent."""
_BRIGHTEST = 4.0


def attention(
    record: Record,
    attended: Attended,
    label: int,
    *,
    actions: ActionSpace,
    states: Mapping[str, int],
    frames_per_s: int,
) -> Figure:
    """A column for each match; `states` are features of the opponent to show, by name."""
    places = np.flatnonzero(record.labels[attended.columns] == label)[:MATCHES]
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
        image = _looks(column[0], attended.weights[0, :length, place], frames_per_s)
        _told(column[1], attended.received[:, :length, place], frames_per_s)
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
    """A row for each choice, or for each switch."""
    names = getattr(actions, "names", None)
    if names:
        return list(names)
    return [f"{part}:{option}" for part, n in enumerate(actions.parts) for option in range(n)]


def chosen(actions: ActionSpace, done: NDArray) -> NDArray:
    """done int [T, N, parts] to bool [rows, T, N]: which of `option_names` was chosen or on."""
    names = getattr(actions, "names", None)
    if names and len(actions.parts) == 1:
        return np.stack([done[..., 0] == option for option in range(len(names))])
    if names:
        return np.stack([done[..., part] == 1 for part in range(len(names))])
    return np.stack(
        [done[..., part] == option for part, n in enumerate(actions.parts) for option in range(n)]
    )


def _looks(panel: Axes, weights: NDArray, frames_per_s: int) -> Any:
    """weights [T, window]: at each moment, how it looks back; the present is at the bottom."""
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


def _told(panel: Axes, received: NDArray, frames_per_s: int) -> None:
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
