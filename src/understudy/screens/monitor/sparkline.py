"""Numbers over time as one line of characters, and a share as a bar."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from understudy.telemetry.trends import Trend


class Glyphs(NamedTuple):
    """The characters that a console can show."""

    levels: str
    full: str
    empty: str
    line: str
    box: tuple[str, str, str, str, str]
    """Corners top left, top right, bottom left, bottom right; the vertical line."""
    cut: str
    arrow: str
    dot: str


UNICODE = Glyphs("▁▂▃▄▅▆▇█", "█", "░", "─", ("╭", "╮", "╰", "╯", "│"), "…", "→", "·")
ASCII = Glyphs("_.-:=+*#", "#", ".", "-", ("+", "+", "+", "+", "|"), "~", "->", "-")


def glyphs_for(encoding: str | None) -> Glyphs:
    """Those that an output in this encoding can show."""
    try:
        "".join("".join(one) for one in UNICODE).encode(encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return ASCII
    return UNICODE


def resampled(trend: Trend, count: int, *, values: int = 1) -> list[float]:
    """The means of at most `count` stretches of the trend, oldest first, each of `values` of its
    values or more; fewer bins stay as they are."""
    bins = trend.bins
    count = max(min(count, round(trend.weight / values)), 1) if values > 1 else count
    if len(bins) <= count:
        return trend.means()
    step = len(bins) / count
    edges = [round(index * step) for index in range(count + 1)]
    means = (trend.mean(of=bins[a:b]) for a, b in pairwise(edges))
    return [one for one in means if one is not None]


def sparkline(
    values: Sequence[float],
    *,
    bounds: tuple[float, float] | None = None,
    glyphs: Glyphs = UNICODE,
) -> str:
    """One character a value. `bounds`: what the lowest and the highest level stand for (default:
    the least and the greatest value). A constant line is drawn at its middle."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return ""
    low, high = bounds or (min(finite), max(finite))
    top = len(glyphs.levels) - 1
    if high <= low:
        return glyphs.levels[top // 2] * len(finite)
    shares = (min(max((value - low) / (high - low), 0.0), 1.0) for value in finite)
    return "".join(glyphs.levels[round(share * top)] for share in shares)


def meter(share: float, width: int, *, glyphs: Glyphs = UNICODE) -> str:
    """A share of 1 as a bar."""
    filled = round(width * min(max(share, 0.0), 1.0)) if math.isfinite(share) else 0
    return glyphs.full * filled + glyphs.empty * (width - filled)
