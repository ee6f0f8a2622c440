"""How a run learns: the policy, the value, the steps of training, its data, and where time goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from understudy.registry.run_folder import agents_in
from understudy.screens.dashboard.page import PagePart, RunReading, empty, part
from understudy.screens.dashboard.tables import stage_marks
from understudy.screens.html import run_charts
from understudy.screens.html.axis import number_text
from understudy.screens.html.elements import HtmlNode
from understudy.screens.html.parts import (
    TrendChart,
    TrendCharts,
    chart_row,
    key_figures_list,
    table,
)
from understudy.screens.html.plot import ChartLevel
from understudy.telemetry.text import duration
from understudy.telemetry.trends import Trend

_NEAR = 4.0
"""A level that is further above all values than this would flatten them, and is left out."""
_NO_TREND = Trend()


class _Group(NamedTuple):
    """Charts below one heading."""

    key: str
    heading: str
    words: str
    charts: Sequence[tuple[TrendChart, ChartLevel | None]]


def parts(reading: RunReading) -> Iterator[PagePart]:
    """Figures of the last batches, then charts by what they tell of, then the time."""
    if not reading.trends.get("loss", _NO_TREND).bins:
        yield empty("learning", "How it learns", _nothing(reading))
        return
    marks = stage_marks(reading)
    charts = TrendCharts(reading.trends, marks) if marks else reading.charts
    yield PagePart("now", key_figures_list(_now(reading)))
    drawn = False
    for group in _groups(reading):
        row = chart_row(
            charts.draw(chart, levels=[] if level is None else [level])
            for chart, level in group.charts
        )
        if row:
            drawn = True
            yield part(group.key, group.heading, *row, words=group.words)
    if not drawn:
        yield empty("charts", "Curves", "Curves begin with the second batch.")
    yield _time(reading, charts)


def _nothing(reading: RunReading) -> str:
    if agents := agents_in(reading.folder.root):
        return f"The {len(agents)} agents of this population train in runs of their own."
    if reading.kind == "ring" and reading.status.learner == "not started":
        return "Nothing was trained yet, and no learner has been started in this run."
    return (
        "Nothing was trained yet. The first batch appears here as soon as the learner has trained "
        "on it."
    )


def _now(reading: RunReading) -> Iterator[tuple[str, str, str]]:
    """The means of the newest twentieth of each trend."""
    batches = reading.trends["loss"].weight
    yield "Batches", f"{batches:,.0f}", "trained on in the whole run"
    told = reading.status.continuous
    if told is not None and told.seconds > 0:  # a server's learner has no curve of it
        speed = number_text(told.steps / told.seconds)
        yield "Speed", speed, "decisions trained on a second of its last batches"
    for name, title, text, words in (
        ("steps_s", "Speed", number_text, "decisions trained on a second"),
        ("entropy", "Entropy", number_text, "nats; how undecided the policy is"),
        ("kl", "KL divergence", number_text, "how far an update moves the policy"),
        ("explained_variance", "Explained variance", number_text, "1: results are foreseen"),
        ("learning_rate", "Learning rate", number_text, "how long a step is"),
        ("memory_mb", "Memory", lambda mb: f"{mb:,.0f} MiB", "of the learner"),
    ):
        trend = reading.trends.get(name, _NO_TREND)
        mean = trend.mean(of=trend.last(trend.weight / 20))
        if mean is not None:
            yield title, text(mean), words


def _target(reading: RunReading) -> ChartLevel | None:
    """What the learning rate makes an update's KL divergence come to, where it follows that."""
    config = reading.folder.config
    adaptive = reading.kind == "training" and config.train.schedule == "adaptive"
    follows = reading.kind == "ring" or adaptive
    return ChartLevel(config.learner.kl_target, "target") if follows else None


def _groups(reading: RunReading) -> Iterator[_Group]:
    config = reading.folder.config
    yield _Group(
        "policy", "The policy",
        "Entropy should fall slowly, and each update should move the policy by about its target: "
        "far above it play can collapse, far below it little is learned.",
        [
            (run_charts.ENTROPY, None),
            (run_charts.ENTROPY_SHARE, None),
            (run_charts.KL_OF_UPDATES, _target(reading)),
            (run_charts.KL_FROM_PLAYED, None),
        ],
    )  # fmt: skip
    yield _Group(
        "steps", "The steps of training",
        "How far each step goes. The learning rate follows the KL divergence or a schedule; a "
        "gradient that jumps again and again is a sign of trouble.",
        [
            (run_charts.LEARNING_RATE, None),
            (run_charts.CLIP_SHARE, None),
            (run_charts.GRADIENT,
             _near(reading, "gradient_norm", config.learner.max_gradient_norm, "limit")),
        ],
    )  # fmt: skip
    yield _Group(
        "value", "The value",
        "The value foresees how a match will go: explained variance rises towards 1 as it learns "
        "to. Losses may go up and down while play improves.",
        [(run_charts.LOSSES, None), (run_charts.EXPLAINED_VARIANCE, None)],
    )  # fmt: skip
    limit = (
        config.continuous.samples_per_insert
        if reading.kind == "server"
        else config.learner.samples_per_insert
    )
    yield _Group(
        "data", "The data",
        "How fresh the decisions are that are trained on, and how often each is used again. Fresh "
        "ones teach more; many repeats are memorised rather than learned from.",
        [
            (run_charts.VERSION_LAG, None),
            (run_charts.SAMPLES, None if reading.kind == "training"
             else _near(reading, "samples_per_insert", float(limit), "at most")),
        ],
    )  # fmt: skip
    yield _Group(
        "speed", "Speed and memory",
        "Both should be level: a speed that falls or a memory that grows without end is a fault.",
        [(run_charts.SPEED, None), (run_charts.UTILISATION, None), (run_charts.MEMORY, None)],
    )  # fmt: skip


def _near(reading: RunReading, trend: str, value: float, name: str) -> ChartLevel | None:
    largest = max(reading.trends.get(trend, _NO_TREND).means(), default=0.0)
    return ChartLevel(value, name) if 0.0 < value <= _NEAR * largest else None


class _Phase(NamedTuple):
    what: str
    seconds: float
    words: str


def _time(reading: RunReading, charts: TrendCharts) -> PagePart:
    phases = [one for one in _phases(reading, charts) if one.seconds > 0]
    together = charts.time.seconds
    if reading.kind == "training":
        together = max(together, sum(one.seconds for one in phases))
    heading, words = "Where the time goes", _not_recorded(reading)
    if not phases or not together:
        return empty("time", heading, f"There are no times yet. {words}")
    rows: list[Sequence[HtmlNode]] = [
        (one.what, duration(one.seconds), f"{one.seconds / together:.0%}", one.words)
        for one in phases
    ]
    return part(
        "time",
        heading,
        table(
            f"Of {duration(together)} of play, without pauses. {words}",
            ("phase", "time", "share", "what it is"),
            rows,
            kinds="wnn.",
        ),
    )


def _phases(reading: RunReading, charts: TrendCharts) -> Iterator[_Phase]:
    trends = reading.trends
    batches = trends.get("steps_s", _NO_TREND).weight
    if reading.kind == "training":
        judged = _total(trends.get("benchmark_s"))
        yield _Phase("iterations", batches, "matches are played and the policy is updated")
        yield _Phase("benchmarks", judged, "checkpoints play frozen matches")
        rest = charts.time.seconds - batches - judged
        yield _Phase("other", max(rest, 0.0), "compiling, saving versions, starting")
        return
    yield _Phase("matches", _total(trends.get("match_s")), "from the start to the end of each")
    busy = trends.get("utilisation", _NO_TREND).mean()
    if busy is not None:
        batches = busy * charts.time.seconds
    yield _Phase("batches", batches, "the learner trains, in its own process")


def _total(trend: Trend | None) -> float:
    return 0.0 if trend is None else sum(one.total for one in trend.bins)


def _not_recorded(reading: RunReading) -> str:
    if reading.kind == "training":
        return (
            "An iteration plays and updates in one compiled program: a run does not record these "
            "two apart."
        )
    if reading.kind == "server":
        return "A run does not record what the learner does between batches."
    return (
        "The learner trains beside the matches, so the shares do not add up to 100%. A run does "
        "not record what the learner does between batches: reading episodes, saving versions, "
        "waiting."
    )
