"""Several runs side by side: their curves in the same charts, key figures, and settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from understudy.core.statistics import wilson
from understudy.screens.dashboard.layout import run_path
from understudy.screens.dashboard.page import PagePart, RunReading, empty, part
from understudy.screens.html.axis import number_text
from understudy.screens.html.elements import Element, HtmlNode, tag
from understudy.screens.html.line_chart import ChartLine, line_chart
from understudy.screens.html.parts import chart_row, table
from understudy.screens.html.plot import COLOURS, ChartAxis, Unit
from understudy.screens.report.facts import changed_settings
from understudy.telemetry.text import duration, plain
from understudy.telemetry.trends import Trend, TrendBin

_LATE = 5.0
"""A figure is the mean over this part of a trend: the last fifth."""
_FEWEST = 30.0
"""Matches that a late win rate is of, at least."""
_LONGEST_VALUE = 80
_KINDS = {"ring": "a bot beside its game", "server": "a live game", "training": "training"}
_NO_TREND = Trend()


class _Curve(NamedTuple):
    """One trend of all runs in one chart."""

    trend: str
    title: str
    explains: str
    unit: Unit = "number"


_CURVES = (
    _Curve("win_rate", "Win rate", "The share of the policy's matches that were won. Bands are 95% "
           "intervals, for up to three runs; where they overlap, runs may be equal.", "win rate"),
    _Curve("benchmark", "Frozen matches", "The win rate of checkpoints in matches in which nothing "
           "is learned.", "win rate"),
    _Curve("return", "Return of a match", "The sum of the rewards of a match. Compare it between "
           "runs with the same rewards only."),
    _Curve("entropy", "Entropy", "How undecided the policy is. It falls as the policy makes up its "
           "mind; a fast fall may be too early."),
    _Curve("kl", "KL divergence", "How far one update moves the policy."),
    _Curve("loss", "Loss", "What training makes small. It need not fall while play improves."),
    _Curve("explained_variance", "Explained variance", "How much of the results the value "
           "foresees: 1 is all."),
    _Curve("steps_s", "Speed of training", "Decisions trained on in a second of training."),
)  # fmt: skip
_OVER_MATCHES, _OVER_STEPS = ("win_rate", "return"), ("win_rate", "benchmark", "return", "entropy")


def parts(readings: Sequence[RunReading], names: Sequence[str]) -> Iterator[PagePart]:
    """The chosen runs; `names` are all that could be chosen."""
    readings = readings[:COLOURS]
    yield _choice([one.name for one in readings], names)
    if not readings:
        words = "Choose two runs or more: each keeps its colour in all charts."
        yield empty("curves", "Curves", words if names else "There is no run to compare yet.")
        return
    yield _key(readings)
    yield _figures(readings)
    yield from _charts(readings)
    yield _settings(readings)


def _choice(chosen: Sequence[str], names: Sequence[str]) -> PagePart:
    boxes = [
        tag(
            "label",
            tag(
                "input", type="checkbox", name="run", value=name,
                checked="" if name in chosen else None,
            ),
            " ",
            name,
        )
        for name in names
    ]  # fmt: skip
    form = tag(
        "form",
        tag("fieldset", tag("legend", f"Runs to compare, {COLOURS} at most"), *boxes),
        tag("button", "Compare", type="submit", class_="primary"),
        method="get",
        action="/compare",
        class_="choice",
    )
    return PagePart("choice", form)


def _key(readings: Sequence[RunReading]) -> PagePart:
    entries = [
        tag(
            "li",
            tag("a", one.name, href=run_path(one.name)),
            tag("span", f" {_about(one)}", class_="soft"),
            class_=f"k{colour}",
        )
        for colour, one in enumerate(readings, start=1)
    ]
    return PagePart(
        "key", tag("ul", *entries, class_="keys compared", aria__label="Colours of runs")
    )


def _about(reading: RunReading) -> str:
    return f"{reading.folder.identity.game or 'a game of its own'}, {_KINDS[reading.kind]}"


# Curves.


def _charts(readings: Sequence[RunReading]) -> Iterator[PagePart]:
    end = max(one.charts.time.seconds for one in readings)
    drawn = _drawn(
        readings, [one.trend for one in _CURVES], ChartAxis(end),
        lambda reading, trend: reading.charts.time.along(trend),
    )  # fmt: skip
    heading = "Over time of play"
    if drawn:
        words = "Every run begins at 0; pauses between its sessions are cut out."
        yield part("time", heading, *drawn, words=words)
    else:
        yield empty("time", heading, "None of these runs has curves yet.")
    for key, counts, names, counted in (
        ("matches", "matches", _OVER_MATCHES, _matches),
        ("steps", "steps", _OVER_STEPS, _steps),
    ):
        yield from _over_counts(readings, key, counts, names, counted)


def _over_counts(
    readings: Sequence[RunReading],
    key: str,
    counts: str,
    names: Sequence[str],
    counted: Callable[[RunReading], tuple[list[float], list[float]]],
) -> Iterator[PagePart]:
    """The same over how much each run has played or trained: who learns from less?"""
    known = {id(one): counted(one) for one in readings}
    end = max((totals[-1] for _, totals in known.values() if totals), default=0.0)

    def along(reading: RunReading, trend: Trend) -> list[float]:
        """Of what came after the first count: before it nothing is known."""
        times, totals = known[id(reading)]
        moments = [one.t for one in trend.bins if times and one.t >= times[0]]
        return [float(x) for x in np.interp(moments, times, totals)] if moments else []

    able = [one for one in readings if known[id(one)][0]]
    drawn = _drawn(readings, names, ChartAxis(end, counts=counts), along) if able else []
    if drawn:
        what = (
            "matches that each run had played"
            if counts == "matches"
            else ("decisions that each run had trained on (steps)")
        )
        words = f"The same over the {what}: the run that is higher at the same place learns more "
        yield part(key, f"Over {counts}", *drawn, words=f"{words}from the same experience.")


def _matches(reading: RunReading) -> tuple[list[float], list[float]]:
    return _cumulated(reading.trends.get("return", _NO_TREND), lambda one: one.weight)


def _steps(reading: RunReading) -> tuple[list[float], list[float]]:
    """Decisions a second, times seconds."""
    return _cumulated(reading.trends.get("steps_s", _NO_TREND), lambda one: one.total)


def _cumulated(trend: Trend, count: Callable[[TrendBin], float]) -> tuple[list[float], list[float]]:
    """Moments, and how much there was up to then."""
    totals = np.cumsum([count(one) for one in trend.bins])
    return [one.t for one in trend.bins], [float(one) for one in totals]


def _drawn(
    readings: Sequence[RunReading],
    names: Sequence[str],
    axis: ChartAxis,
    along: Callable[[RunReading, Trend], list[float]],
) -> list[HtmlNode]:
    """Charts side by side; `along` says where the last bins of a trend lie on the axis."""
    figures: list[Element | None] = []
    for curve in _CURVES:
        if curve.trend not in names:
            continue
        lines = []
        for colour, reading in enumerate(readings, start=1):
            trend = reading.trends.get(curve.trend, _NO_TREND)
            places = along(reading, trend) if trend.bins else []
            if places:
                shown = Trend(trend.bins[-len(places) :])
                lines.append(ChartLine(reading.name, shown, places, colour))
        figures.append(
            line_chart(
                lines, axis, title=curve.title, explains=curve.explains, unit=curve.unit, calm=True
            )
        )
    return chart_row(figures)


# Tables.


def _figures(readings: Sequence[RunReading]) -> PagePart:
    rows = [
        (name, cells) for name, tell in _FIGURES if any(cells := [tell(one) for one in readings])
    ]
    return part(
        "key-figures",
        "Figures",
        table(
            "The newest figures of each run: means over the last fifth of its matches and batches.",
            ("figure", *(one.name for one in readings)),
            [(name, *cells) for name, cells in rows],
            kinds="." + "n" * len(readings),
        ),
    )


def _win_rate(reading: RunReading) -> str:
    trend = reading.trends.get("win_rate", _NO_TREND)
    late = trend.last(max(trend.weight / _LATE, _FEWEST))
    mean, count = trend.mean(of=late), round(sum(one.weight for one in late))
    if mean is None:
        return ""
    low, high = wilson(mean * count, count)
    return f"{mean:.0%} ({low:.0%} to {high:.0%})"


def _late(name: str, text: Callable[[float], str] = number_text) -> Callable[[RunReading], str]:
    def told(reading: RunReading) -> str:
        trend = reading.trends.get(name, _NO_TREND)
        mean = trend.mean(of=trend.last(trend.weight / _LATE))
        return "" if mean is None else text(mean)

    return told


def _findings(reading: RunReading) -> str:
    if reading.findings is None:
        return ""
    counts = [
        f"{count} {weight}{'' if count == 1 else 's'}"
        for weight in ("problem", "warning")
        if (count := sum(one.weight == weight for one in reading.findings))
    ]
    return ", ".join(counts) or "no problem"


def _count(number: float) -> str:
    return f"{number:,.0f}" if number else ""


def _played(reading: RunReading) -> str:
    status = reading.status
    return _count(max(status.matches, sum(one.matches for one in status.opponents.values())))


_FIGURES: tuple[tuple[str, Callable[[RunReading], str]], ...] = (
    ("time of play", lambda one: duration(one.charts.time.seconds)),
    ("matches", _played),
    ("decisions trained on", lambda one: _count((_steps(one)[1] or [0.0])[-1])),
    ("versions", lambda one: _count(one.status.versions)),
    ("win rate, 95% interval", _win_rate),
    ("win rate in frozen matches", _late("benchmark", "{:.0%}".format)),
    ("return of a match", _late("return")),
    ("entropy", _late("entropy")),
    ("KL divergence", _late("kl")),
    ("loss", _late("loss")),
    ("explained variance", _late("explained_variance")),
    ("decisions trained on a second", _late("steps_s")),
    ("learner's memory, MiB", _late("memory_mb")),
    ("findings of the doctor", _findings),
)


def _settings(readings: Sequence[RunReading]) -> PagePart:
    heading = "Settings that differ"
    if len(readings) < 2:
        return empty("settings", heading, "Choose another run to see in what they differ.")
    changed = [{one.key: one for one in changed_settings(r.folder.config)} for r in readings]
    known = {key: one for row in changed for key, one in row.items()}
    rows: list[Sequence[HtmlNode]] = []
    for key, one in known.items():
        values = [row[key].value if key in row else one.default for row in changed]
        if len(set(values)) > 1:
            short = [plain(value, limit=_LONGEST_VALUE) for value in values]
            rows.append((tag("code", key), *short, one.words))
    if not rows:
        return empty("settings", heading, "These runs have the same settings.")
    return part(
        "settings",
        heading,
        table(
            "Only settings in which these runs are not all alike.",
            ("setting", *(one.name for one in readings), "meaning"),
            rows,
            kinds="w",
        ),
    )
