"""Axes of charts: round ticks, linear or logarithmic, and numbers as people write them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass


def number_text(value: float) -> str:
    """`0.0125`, `950`, `12.5k`, `3M`."""
    size = abs(value)
    for scale, letter in ((1e9, "B"), (1e6, "M"), (1e4, "k")):
        if size >= scale:
            return f"{value / min(scale, 1e3 if letter == 'k' else scale):.3g}{letter}"
    if size >= 1e3:
        return f"{value:,.0f}"
    if size >= 1e-4 or not size:
        return f"{value:.3g}"
    digits, _, power = f"{value:.1e}".partition("e")
    return f"{digits.removesuffix('.0')}e{int(power)}"


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`; what lies beyond is drawn at the end."""

    low: float
    high: float
    ticks: tuple[float, ...]
    text: Callable[[float], str] = number_text
    log: bool = False

    @classmethod
    def linear(
        cls, low: float, high: float, text: Callable[[float], str] = number_text, *, steps: int = 4
    ) -> Axis:
        """From a round number below `low` to one above `high`."""
        if high - low < 1e-12 * max(abs(high), 1e-300):
            low, high = low - abs(low or 1.0) / 2, high + abs(high or 1.0) / 2
        step = nice_step((high - low) / steps)
        first = math.floor(low / step + 1e-9)
        last = max(math.ceil(high / step - 1e-9), first + 1)
        ticks = tuple(step * count for count in range(first, last + 1))
        return cls(ticks[0], ticks[-1], ticks, text)

    @classmethod
    def tight(
        cls,
        low: float,
        high: float,
        text: Callable[[float], str] = number_text,
        *,
        margin: float = 0.0,
    ) -> Axis:
        """Round ticks, but ends where the values end, or a share of their range beyond."""
        if high <= low:
            low, high = low - 0.5, high + 0.5
        room = margin * (high - low)
        wide = cls.linear(low, high, text, steps=5)
        low, high = low - room, high + room
        return cls(low, high, tuple(one for one in wide.ticks if low <= one <= high), text)

    @classmethod
    def logarithmic(
        cls, low: float, high: float, text: Callable[[float], str] = number_text
    ) -> Axis:
        """From a power of ten to a power of ten; both are above 0."""
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        ticks = tuple(10.0**power for power in powers)
        if len(ticks) == 1:
            ticks = (*ticks, 10.0 * ticks[0])
        return cls(ticks[0], ticks[-1], ticks[:: 1 + len(ticks) // 6], text, log=True)

    def share(self, value: float) -> float:
        """Where a value lies: 0 at the low end, 1 at the high one."""
        value = min(max(value, self.low), self.high)
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


PERCENT = Axis(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0), lambda value: f"{value:.0%}")
"""Of shares and win rates."""


def nice_step(step: float) -> float:
    """1, 2 or 5 times a power of ten, at least `step`."""
    power = 10.0 ** math.floor(math.log10(max(step, 1e-300)))
    return next(one * power for one in (1.0, 2.0, 5.0, 10.0) if one * power >= step * (1 - 1e-9))


def joined(points: Iterable[tuple[float, float]]) -> str:
    """Points as those of an SVG path, without its `M`."""
    return "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
