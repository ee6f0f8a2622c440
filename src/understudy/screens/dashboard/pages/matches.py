"""The matches of a run: results by opponent and tag, results over time, rewards, length, speed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from understudy.core.arrays import NDArray
from understudy.screens.dashboard.page import PagePart, RunReading, empty, part
from understudy.screens.dashboard.recent_matches import (
    OPPONENT,
    Player,
    RecentMatches,
    Won,
    recent_matches,
)
from understudy.screens.dashboard.tables import history_of, stage_marks
from understudy.screens.html import run_charts
from understudy.screens.html.elements import Element, HtmlNode, tag
from understudy.screens.html.interval_bars import (
    WinGroup,
    WinRow,
    WinShare,
    interval_bars,
)
from understudy.screens.html.line_chart import ChartLine, line_chart
from understudy.screens.html.parts import TrendCharts, chart_row, key_figures_list
from understudy.screens.html.plot import COLOURS, ChartAxis
from understudy.screens.html.stacked_areas import AreaLayer, stacked_areas
from understudy.telemetry.report_parts import opponents_met
from understudy.telemetry.status import Status
from understudy.telemetry.trends import Trend

_ROWS, _GROUPS = 14, 4
_LEAST = 5
"""Matches of a tag that has a row: a win rate of fewer says nothing."""
_PLACES = 80
"""Of outcomes over time."""
_WINDOW = 0.1
"""Of the time of play that an outcome is counted over."""
_CALM_TERMS = 0.05
"""Of the matches that a reward term is averaged over."""
_NO_TREND = Trend()


def offered(reading: RunReading) -> bool:
    """Behind a server matches have no end; the page of the server shows its decisions."""
    return reading.kind != "server"


def parts(reading: RunReading) -> Iterator[PagePart]:
    """Results first, then what explains them."""
    if not _ended(reading):
        yield empty(
            "matches", "Matches", "No match has ended yet. The first one appears here when it does."
        )
        return
    marks = stage_marks(reading)
    charts = TrendCharts(reading.trends, marks) if marks else reading.charts
    yield PagePart("now", key_figures_list(_figures(reading)))
    yield _against(reading)
    yield _over_time(reading, charts)
    yield _rewards(reading, charts)
    yield _length(charts)


def _ended(reading: RunReading) -> bool:
    status = reading.status
    return bool(status.matches or any(one.matches for one in status.opponents.values()))


def _figures(reading: RunReading) -> Iterator[tuple[str, str, str]]:
    status = reading.status
    met = opponents_met(status).values()
    if met:
        wins, draws, losses = (
            sum(getattr(one, n) for one in met) for n in ("wins", "draws", "losses")
        )
    else:
        wins, draws, losses = status.wins, status.ties, status.defeats
    finished = wins + draws + losses
    yield "Matches", f"{max(status.matches, finished):,}", "in the whole run"
    whose = " of versions and rules" if status.rules_matches else ""
    for name, count in (("Won", wins), ("Drawn", draws), ("Lost", losses)):
        if finished:
            yield name, f"{count / finished:.0%}", f"{count:,} matches{whose}"
    if status.aborted:
        yield "Aborted", f"{status.aborted:,}", "without a result, in no win rate"
    if status.reward is not None:
        yield "Reward", f"{status.reward:.4g}", f"mean of the last {status.reward_matches:,}"
    if status.decision_ms is not None:
        slow = f"1 of 100 takes more than {status.decision_ms.p99:.2g} ms"
        yield "A decision takes", f"{status.decision_ms.p50:.2g} ms", slow


# Win rates by opponent and tag.


def _against(reading: RunReading) -> PagePart:
    heading = "Win rate by opponent and tag"
    recent = recent_matches(reading)
    groups = list(_training_groups(reading.status) if recent is None else _tag_groups(recent))
    if not any(share.matches for group in groups for row in group.rows for share in row.shares):
        return empty(
            "against", heading,
            "Nothing was won or lost yet. Environments that give rewards and name no winner never "
            "have a win rate.",
        )  # fmt: skip
    which = "over the whole run" if recent is None else f"of the newest {recent.matches:,} matches"
    return part(
        "against",
        heading,
        interval_bars(groups, label="Win rates with 95% intervals"),
        words=f"The line is the share of matches won {which}, the bar its 95% interval: where two "
        "bars overlap, the difference may be chance. A long bar needs more matches.",
    )


def _training_groups(status: Status) -> Iterator[WinGroup]:
    met = opponents_met(status)
    rows = [WinRow(name, [WinShare(one.wins, one.matches)]) for name, one in met.items()]
    yield WinGroup("Opponents met in training", sorted(rows)[:_ROWS])
    judged = status.last_benchmark
    if judged is not None:
        rows = [
            WinRow(name, [WinShare(one.wins, one.wins + one.draws + one.losses)])
            for name, one in judged.opponents.items()
        ]
        heading = f"Frozen matches of version {judged.version}, in which nothing is learned"
        yield WinGroup(heading, rows[:_ROWS])


def _tag_groups(recent: RecentMatches) -> Iterator[WinGroup]:
    """All matches, then results by tag; opponents come first."""
    yield WinGroup("All matches", [WinRow("all", _shares(recent.all))])
    # A tag that all matches share says nothing.
    tags = {tag: values for tag, values in recent.tags().items() if len(values) > 1}
    ordered = sorted(tags, key=lambda tag: (tag != OPPONENT, len(tags[tag]), tag))
    for tag_ in ordered[:_GROUPS]:
        counted = {value: _matches_of(results) for value, results in tags[tag_].items()}
        most = sorted(counted, key=lambda value: (-counted[value], value))
        rows = [
            WinRow(value, _shares(tags[tag_][value]))
            for value in most[:_ROWS]
            if counted[value] >= _LEAST
        ]
        left = len(most) - len(rows)
        more = f", the {len(rows)} most played of {len(most)}" if left and rows else ""
        yield WinGroup(f"By {tag_}{more}", rows)


def _matches_of(results: Mapping[Player, Won]) -> int:
    return sum(matches for _, matches in results.values())


def _shares(results: Mapping[Player, Won]) -> list[WinShare]:
    """The players are named where the rules played, too."""
    players: tuple[tuple[Player, str, int], ...] = (
        ("policy", "learned versions", 1),
        ("rules", "the rules", 2),
    )
    return [
        WinShare(*results[who], name if "rules" in results else "", colour)
        for who, name, colour in players
        if who in results
    ]


# Results over time.


def _over_time(reading: RunReading, charts: TrendCharts) -> PagePart:
    drawn = chart_row(
        [
            charts.draw(run_charts.WIN_RATE),
            _by_opponent(reading, charts),
            charts.draw(run_charts.benchmarks(reading.trends)),
            _outcomes(reading, charts),
        ]
    )
    heading = "Results over time"
    if not drawn:
        return empty("over-time", heading, "Curves begin with the second match that has a result.")
    return part(
        "over-time", heading, *drawn,
        words="A bot that learns wins more and more, up to what its opponents allow.",
    )  # fmt: skip


def _by_opponent(reading: RunReading, charts: TrendCharts) -> Element | None:
    recent = recent_matches(reading)
    if recent is None:
        return charts.draw(run_charts.by_opponent(reading.trends))
    trends = recent.by_opponent()
    matches = sum(trend.weight for trend in trends.values())
    lines = [
        ChartLine(name, trend, charts.time.along(trend))
        for name, trend in list(trends.items())[:COLOURS]
    ]
    return line_chart(
        lines, charts.axis, title="Win rate by opponent",
        explains=f"The share of the policy's matches that were won, against the opponents that it "
        f"met most. From its newest {matches:,.0f} matches.",
        unit="win rate",
    )  # fmt: skip


def _outcomes(reading: RunReading, charts: TrendCharts) -> Element | None:
    counts = _counted(reading)
    if charts.time.seconds <= 0 or not counts:
        return None
    places = np.linspace(charts.time.seconds * _WINDOW / 2, charts.time.seconds, _PLACES)
    back = np.maximum(places - _WINDOW * charts.time.seconds, 0.0)
    within = {}
    for name, (trend, each) in counts.items():
        along, totals = np.array(charts.time.along(trend)), np.cumsum(each)
        before, after = (np.interp(at, along, totals, left=0.0) for at in (back, places))
        within[name] = after - before
    every = within.pop("all")
    if "drawn" not in within:
        within["drawn"] = every - sum(within.values())
    else:
        within["lost"] = every - sum(within.values())
    together = np.maximum(sum(np.maximum(one, 0.0) for one in within.values()), 1e-9)
    layers = [
        AreaLayer(name, [float(one) for one in np.maximum(within[name], 0.0) / together], colour)
        for name, colour in (("won", 1), ("drawn", 5), ("lost", 2), ("aborted", 4))
        if name in within and within[name].max() > 1e-6
    ]
    return stacked_areas(
        layers, [float(one) for one in places], charts.axis,
        title="Outcomes",
        explains="How matches ended, as shares of those that ended around the same time: of the "
        "policy and of the rules together.",
        unit="share",
    )  # fmt: skip


def _counted(reading: RunReading) -> dict[str, tuple[Trend, list[float]]]:
    """How many matches ended in which way, a bin of a trend; what is missing is the rest."""
    trends = reading.trends
    if "draw_rate" in trends:  # of `train`
        won, drawn = trends["win_rate"], trends["draw_rate"]
        return {
            "all": (won, [one.weight for one in won.bins]),
            "won": (won, [one.total for one in won.bins]),
            "drawn": (drawn, [one.total for one in drawn.bins]),
        }
    every = trends.get("aborted", _NO_TREND)
    if not every.bins or not reading.status.win_rate:
        return {}
    found = {
        "all": (every, [one.weight for one in every.bins]),
        "aborted": (every, [one.total for one in every.bins]),
    }
    for name, trend in (("won", "return_won"), ("lost", "return_lost")):
        theirs = trends.get(trend, _NO_TREND)
        if theirs.bins:
            found[name] = theirs, [one.weight for one in theirs.bins]
    return found


# Rewards, length and speed.


def _rewards(reading: RunReading, charts: TrendCharts) -> PagePart:
    terms = _terms(reading)
    drawn = chart_row(
        [terms, charts.draw(run_charts.RETURN), charts.draw(run_charts.RETURN_BY_RESULT)]
    )
    missing: list[HtmlNode] = []
    if terms is None:
        missing = [tag("p", _no_terms(reading), class_="soft")]
    return part(
        "rewards", "Rewards", *drawn, *missing,
        words="Reward is what the learner is told to increase. It should rise, and what wins "
        "matches should be the largest part of it.",
    )  # fmt: skip


def _terms(reading: RunReading) -> Element | None:
    history = history_of(reading)
    if history is None or not history.terms:
        return None
    over = max(_CALM_TERMS * history.returns.weight, 1.0)
    steps, terms, returned = history.reward_terms(over=over)
    return stacked_areas(
        [AreaLayer(name, _numbers(values)) for name, values in terms.items()],
        _numbers(steps),
        ChartAxis(float(steps[-1]) if len(steps) else 0.0, counts="steps"),
        title="What rewards are made of",
        explains="The reward terms of a match, above 0 what it earned and below what it cost; the "
        "line is their sum. Over the decisions trained on (steps).",
        total=_numbers(returned),
        total_name="return",
    )


def _numbers(values: NDArray) -> list[float]:
    return [float(one) for one in values]


def _no_terms(reading: RunReading) -> str:
    if reading.kind == "ring":
        return (
            "A bot records the sum of the rewards of a match, not what each was for; reward terms "
            "are known in runs of understudy train on the built-in games."
        )
    if not reading.folder.config.monitor.csv:
        return "Reward terms are in the tables of a run, and this one writes none (monitor.csv)."
    return "This run has no table of reward terms yet, or its game has a reward without terms."


def _length(charts: TrendCharts) -> PagePart:
    drawn = chart_row(
        charts.draw(one)
        for one in (
            run_charts.DECISIONS, run_charts.FRAMES, run_charts.MATCH_TIME,
            run_charts.DECISION_TIME,
        )
    )  # fmt: skip
    heading = "Length and speed"
    if not drawn:
        return empty("length", heading, "This run does not record how long its matches take.")
    return part(
        "length", heading, *drawn,
        words="Matches that become shorter are often won faster, or lost faster: look at the "
        "results above. The time of a decision should be level and far below a frame of the game.",
    )  # fmt: skip
