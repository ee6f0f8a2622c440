"""The picture of the takeover: win rate over matches of the rules alone, naive learning and auto.

    python benchmarks/takeover.py --out auto.json
    python benchmarks/takeover.py --mode learn --out learn.json
    python benchmarks/takeover_picture.py auto.json learn.json [-o docs/pictures/takeover.png]

All three play the same matches of the same seeds. A line is the mean over seeds in disjoint windows
of matches, a band goes from the lowest seed to the highest. Ties are not wins.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from takeover_runs import Found

from understudy.analysis.canvas import COLOURS, begin, keep
from understudy.core.arrays import NDArray
from understudy.core.dependencies import needs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WINDOW = 200
PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "takeover.png"
_AUTO, _NAIVE, _RULES = COLOURS[0], COLOURS[1], "#555555"


class Curve(NamedTuple):
    """A line and its band."""

    at: NDArray
    """[N] the last match of each window"""
    rates: NDArray
    """[seeds, N] win rates"""


def curve(results: Sequence[Sequence[float]], window: int) -> Curve:
    """Win rates in disjoint windows that all seeds played whole."""
    count = min(map(len, results)) // window
    if not count:
        raise SystemExit(f"--window: expected at most {min(map(len, results))}, the fewest matches")
    wins = np.array([np.array(one[: count * window]) == 1.0 for one in results])
    rates = wins.reshape(len(results), count, window).mean(2)
    return Curve(window * np.arange(1, count + 1), rates)


def draw(panel: Axes, of: Curve, *, colour: str, name: str) -> None:
    low, mean, high = of.rates.min(0), of.rates.mean(0), of.rates.max(0)
    panel.fill_between(of.at, low, high, color=colour, alpha=0.16, linewidth=0)
    panel.plot(of.at, mean, color=colour, linewidth=2.0, label=name)


def picture(auto: Found, naive: Found, *, window: int, path: Path) -> None:
    """Draws and saves it."""
    runs, others = auto["seeds"], naive["seeds"]
    if [one["seed"] for one in runs] != [one["seed"] for one in others]:
        raise SystemExit("the files hold runs of different seeds: expected the same in both")
    figure, [[panel]] = begin(
        1, 1, width=8.0, height=3.7,
        title=f"swarm, hard: {len(runs)} runs of {auto['minutes']:g} minutes on two cores",
    )  # fmt: skip
    longest = [max(runs[i], others[i], key=_matches) for i in range(len(runs))]
    draw(
        panel, curve([one["rules_results"] for one in longest], window),
        colour=_RULES, name="the rules alone",
    )  # fmt: skip
    draw(
        panel, curve([one["results"] for one in others], window),
        colour=_NAIVE, name="naive learning: the newest version plays",
    )  # fmt: skip
    draw(
        panel, curve([one["results"] for one in runs], window),
        colour=_AUTO, name="auto: the rules play until a version is better by evidence",
    )  # fmt: skip
    promoted = [one["promoted_after"]["match"] for one in runs if one["promoted_after"]]
    if promoted:
        panel.plot(
            promoted, np.full(len(promoted), 0.02), linestyle="none", marker="^", markersize=7,
            color=_AUTO, label="a version takes over (one mark a run)",
        )  # fmt: skip
    panel.set_ylim(0.0, 1.0)
    panel.set_xlim(left=0.0)
    panel.xaxis.set_major_formatter("{x:,.0f}")
    panel.yaxis.set_major_formatter("{x:.0%}")
    panel.grid(alpha=0.25)
    panel.set_xlabel(f"matches ({window} a point; bands: lowest to highest run)", fontsize=9)
    panel.set_ylabel("won", fontsize=9)
    panel.legend(fontsize=8, frameon=False, loc="lower right", bbox_to_anchor=(1.0, 0.06))
    keep(figure, path)


def _matches(one: Found) -> int:
    return len(one["results"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("auto", type=Path)
    parser.add_argument("learn", type=Path)
    parser.add_argument("-o", "--out", type=Path, default=PICTURE)
    parser.add_argument("--window", type=int, default=WINDOW)
    arguments = parser.parse_args()
    auto, naive = (
        json.loads(one.read_text(encoding="utf-8")) for one in (arguments.auto, arguments.learn)
    )
    if (auto["mode"], naive["mode"]) != ("auto", "learn"):
        raise SystemExit(
            "expected a file of mode auto and one of mode learn, "
            f"got {auto['mode']} and {naive['mode']}"
        )
    with needs("the picture needs {}", extra="plots"):
        picture(auto, naive, window=arguments.window, path=arguments.out)
    print(arguments.out)


if __name__ == "__main__":
    main()
