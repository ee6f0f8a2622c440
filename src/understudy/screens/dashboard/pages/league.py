"""The league of a training run: ratings, who beats whom, who was met, stages of the curriculum, and
the agents of a population."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from understudy.core.errors import UnderstudyError
from understudy.core.opponents import steps_of
from understudy.core.statistics import margin, points, wilson
from understudy.league import lineage as lineages
from understudy.league.lineage import Lineage, ancestry
from understudy.league.payoffs import Payoffs, read_payoffs, standings
from understudy.league.snapshots import league_of
from understudy.league.state import LeagueState
from understudy.screens.dashboard.page import PagePart, RunReading, empty, file_stamp, part
from understudy.screens.html.axis import PERCENT, Axis, number_text
from understudy.screens.html.elements import Element, HtmlNode, tag
from understudy.screens.html.heat_map import heat_map
from understudy.screens.html.interval_chart import IntervalRow, interval_chart
from understudy.screens.html.parts import chart_row, explains, table
from understudy.screens.html.xy_chart import Mark, XyLine, xy_chart
from understudy.telemetry.table import Table, number
from understudy.telemetry.training_rows import LEAGUE, columns_of

_SHARE = 0.1
"""Of the time, at most, that reading files again takes."""
_PLAYERS = 24
"""Rows of a chart: all scripted bots, and some of the snapshots."""
_ROUNDS = 16
_CYCLES = 6
_LEARNER, _SCRIPTED, _SNAPSHOT = 1, 2, 3
"""Colours."""


def offered(reading: RunReading) -> bool:
    """Whether the run was trained against opponents, in stages, or as a population."""
    if reading.kind != "training":
        return False
    stages = reading.folder.config.curriculum.stages
    return (
        bool(reading.status.opponents or stages) or (reading.folder.root / lineages.FILE).is_file()
    )


def beside(reading: RunReading) -> Hashable:
    """What `understudy ratings` leaves in the run folder."""
    path = _payoff_file(reading.folder.root)
    return path, None if path is None else file_stamp(path)


def parts(reading: RunReading) -> Iterator[PagePart]:
    story, state = _story(reading), _state(reading)
    if state is not None or not (reading.folder.root / lineages.FILE).is_file():
        yield _ratings(state, story)
        yield _payoffs(reading, state)
    yield from _curriculum(reading, story)
    yield from _population(reading)


# --- what is read --------------------------------------------------------------------------------


class _Stage(NamedTuple):
    steps: int
    name: str
    reason: str


class _Story(NamedTuple):
    """What the table `league.csv` tells."""

    steps: tuple[float, ...] = ()
    rating: tuple[float, ...] = ()
    doubt: tuple[float, ...] = ()
    """Points up and down within which the true rating is, with 95% confidence."""
    stages: tuple[_Stage, ...] = ()


def _story(reading: RunReading) -> _Story:
    path = reading.folder.root / f"{LEAGUE}.csv"
    stamp = file_stamp(path)
    return reading.cache.read("league table", stamp, lambda: _read_story(path), share=_SHARE)


def _read_story(path: Path) -> _Story:
    if not path.is_file():
        return _Story()
    rated, stages = list[tuple[float, float, float]](), list[_Stage]()
    for row in Table(path, columns_of([])[LEAGUE]).rows():
        steps, event = int(row["steps"]), row.get("event")
        if event == "rating":
            mu, sigma = number(row.get("mu")), number(row.get("sigma"))
            if math.isfinite(mu) and math.isfinite(sigma):
                rated.append((float(steps), points(mu), margin(sigma)))
        elif event == "stage":
            stages.append(_Stage(steps, row.get("name", ""), row.get("note", "")))
    return _Story(
        steps=tuple(one[0] for one in rated),
        rating=tuple(one[1] for one in rated),
        doubt=tuple(one[2] for one in rated),
        stages=tuple(stages),
    )


def _state(reading: RunReading) -> LeagueState | None:
    """What the newest version knows of the league; None: nothing."""
    folder = reading.folder

    def read() -> LeagueState | None:
        try:
            head = folder.versions.head_manifest()
            return None if head is None else league_of(folder, head)
        except (UnderstudyError, OSError):  # pruned meanwhile, or damaged: the doctor says so
            return None

    return reading.cache.read("league", folder.versions.root.stat().st_mtime_ns, read, share=_SHARE)


# --- ratings -------------------------------------------------------------------------------------


def _ratings(state: LeagueState | None, story: _Story) -> PagePart:
    heading = "Ratings"
    figures = [_rating_chart(state) if state is not None else None, _over_steps(story)]
    if not any(figures):
        return empty(
            "ratings", heading,
            "No match was rated yet. Ratings come with the first version that is saved.",
        )  # fmt: skip
    return part(
        "ratings", heading, *chart_row(figures),
        words="How strong each player is, as in chess: 400 points more win ten times as often. "
        "Scripted bots hold the scale, so a learner that climbs past them has really improved.",
    )  # fmt: skip


def _rating_chart(state: LeagueState) -> Element | None:
    rated = [("the learner now", state.learner, _LEARNER)]
    rated += [(name, one, _SCRIPTED) for name, one in state.anchors.items()]
    pool = [one.name for one in state.pool]
    shown = _spread(pool, _PLAYERS - len(rated))
    others = [name for name in state.ratings if name not in {*pool, *state.left}]
    rated += [(name, state.ratings[name], _SNAPSHOT) for name in [*others, *shown]]
    rows = sorted(
        (
            IntervalRow(
                name, one.points, one.points - one.margin, one.points + one.margin,
                f"{one.points:.0f} ± {one.margin:.0f}", colour,
            )
            for name, one, colour in rated
        ),
        key=lambda row: -row.value,
    )  # fmt: skip
    spread = [end for row in rows for end in _bounded(row)]
    left = len(pool) - len(shown)
    more = f" {left:,} snapshots between those are left out." if left else ""
    return interval_chart(
        rows,
        title="Who is how strong",
        explains="The strongest at the top; a line is what the true rating is within, at 95%. A "
        f"snapshot is an earlier copy of the learner.{more}",
        axis=Axis.linear(min(spread), max(spread)),
        groups=("the learner", "scripted bots", "snapshots")[: max(row.colour for row in rows)],
    )


def _bounded(row: IntervalRow) -> tuple[float, float]:
    """The ends of an interval; one that is hardly known does not flatten the others."""
    return max(row.low, row.value - 600.0), min(row.high, row.value + 600.0)


def _spread(names: Sequence[str], most: int) -> list[str]:
    """At most so many, evenly, with the first and the last."""
    most = max(most, 2)
    if len(names) <= most:
        return list(names)
    return [names[round(index * (len(names) - 1) / (most - 1))] for index in range(most)]


def _over_steps(story: _Story) -> Element | None:
    if len(story.steps) < 2:
        return None
    low = [
        max(one - doubt, one - 600.0) for one, doubt in zip(story.rating, story.doubt, strict=True)
    ]
    high = [
        min(one + doubt, one + 600.0) for one, doubt in zip(story.rating, story.doubt, strict=True)
    ]
    last = story.steps[-1]
    begins = [*(float(one.steps) for one in story.stages), last]
    marks = [
        Mark(stage.name, begin, end)
        for stage, (begin, end) in zip(story.stages, pairwise(begins), strict=True)
        if end > story.steps[0]
    ]
    return xy_chart(
        [XyLine("rating", story.steps, story.rating, _LEARNER, low, high)],
        title="Rating of the learner over its steps",
        explains="The band is the 95% interval."
        + (" Shaded stretches are stages of the curriculum." if marks else ""),
        across="steps",
        y_axis=Axis.linear(min(low), max(high)),
        marks=marks,
    )


# --- who beats whom ------------------------------------------------------------------------------


class _Found(NamedTuple):
    payoffs: Payoffs
    order: tuple[str, ...]
    cycles: tuple[str, ...]
    where: str
    """The file, in the run folder."""


def _payoffs(reading: RunReading, state: LeagueState | None) -> PagePart:
    found = _read_payoffs(reading, state)
    root = reading.folder.root
    command = tag("code", f"understudy ratings --run {root} --out {root / 'ratings'}")
    figures = [None if state is None else _met(state)]
    said: list[HtmlNode] = []
    if isinstance(found, str):
        said.append(tag("p", found, class_="finding warning"))
    elif found is None:
        words = (
            "No frozen matches of the league were played yet. This command plays them, finds "
            "cycles, and leaves its table in the run folder: "
        )
        said.append(tag("p", words, command, class_="soft"))
    else:
        figures.insert(0, _payoff_map(found))
        said += _cycles(found)
        said.append(tag("p", f"From {found.where}; to play again: ", command, class_="soft"))
    return part(
        "payoffs", "Who beats whom", *chart_row(figures), *said,
        words="A player whose row is blue from end to end has no weakness among the others."
        if isinstance(found, _Found)
        else "Results of training; frozen matches, in which nothing is learned, say it better.",
    )  # fmt: skip


def _read_payoffs(reading: RunReading, state: LeagueState | None) -> _Found | str | None:
    """The newest table of payoffs, what is wrong with it, or None without one."""
    path = _payoff_file(reading.folder.root)
    if path is None:
        return None
    anchors = {} if state is None else state.anchors

    def read() -> _Found | str:
        try:
            payoffs = read_payoffs(path.read_bytes(), what=str(path))
        except (UnderstudyError, OSError) as error:
            return str(error)
        order = tuple(one.name for one in standings(payoffs, anchors))
        cycles = tuple(str(one) for one in payoffs.cycles()[:_CYCLES])
        return _Found(payoffs, order, cycles, path.relative_to(reading.folder.root).as_posix())

    return reading.cache.read("payoffs", (path, file_stamp(path)), read)


def _cycles(found: _Found) -> list[HtmlNode]:
    if not found.cycles:
        return [tag("p", "No cycle was found: one order of strength fits all sure results.")]
    words = (
        "Cycles, in which each surely beats the next and the last one the first, so that no order "
        "of strength fits them all:"
    )
    return [tag("p", words), tag("ul", *(tag("li", one) for one in found.cycles))]


def _payoff_file(root: Path) -> Path | None:
    """The newest table of payoffs in the run folder, or in a folder in it."""
    found = [root / "payoffs.csv", *root.glob("*/payoffs.csv")]
    return max(
        (one for one in found if one.is_file()), key=lambda one: one.stat().st_mtime, default=None
    )


def _payoff_map(found: _Found) -> Element | None:
    payoffs = found.payoffs
    places = [payoffs.names.index(name) for name in found.order]
    cells = [
        [
            tally.win_rate if (tally := payoffs.tally(i, j)).matches and i != j else None
            for j in places
        ]
        for i in places
    ]
    return heat_map(
        cells,
        rows=found.order,
        columns=found.order,
        title="Win rate of the row against the column",
        explains="In frozen matches, in which nothing is learned. Blue: the row wins more than "
        "half; orange: less (a draw is no win). The best player is at the top.",
        low=0.0,
        high=1.0,
        middle=0.5,
        text=lambda value: f"{value:.0%}",
    )


def _met(state: LeagueState) -> Element | None:
    met = {name: one for name, one in state.records.items() if sum(one.counts)}
    most = sorted(met, key=lambda name: (steps_of(name) is not None, -sum(met[name].counts)))
    rows = []
    for name in most[:_PLAYERS]:
        wins, draws, losses = met[name].counts
        matches = wins + draws + losses
        low, high = wilson(wins, matches)
        note = f"{wins / matches:.0%} of {matches:,}"
        rows.append(
            IntervalRow(name, wins / matches, low, high, note, 1 if steps_of(name) is None else 2)
        )
    left = len(met) - len(rows)
    more = f" {left:,} more snapshots were met." if left else ""
    return interval_chart(
        rows,
        title="The learner against each that it met",
        explains="Win rates of training over the whole run, with 95% intervals; behind each row, "
        "of how many matches. The league chooses more often whom the learner does not beat yet."
        f"{more}",
        axis=PERCENT,
        groups=("scripted bots", "snapshots")[: max((row.colour for row in rows), default=1)],
        middle=0.5,
    )


# --- curriculum ----------------------------------------------------------------------------------


def _curriculum(reading: RunReading, story: _Story) -> Iterator[PagePart]:
    stages, now = reading.folder.config.curriculum.stages, reading.status.stage
    if not stages:
        return
    names = [one.name for one in stages]
    place = names.index(now) if now in names else -1
    entered: dict[str, _Stage] = {}
    for change in story.stages:
        entered[change.name] = change
    rows: list[tuple[HtmlNode, ...]] = []
    for index, stage in enumerate(stages):
        kind, words = (
            ("note", "now") if index == place else ("good", "passed") if index < place
            else ("warning", "not yet")
        )  # fmt: skip
        here = entered.get(stage.name)
        since = (
            f"{here.steps:,} steps" if here is not None
            else f"{reading.status.stage_since:,} steps" if index == place else ""
        )  # fmt: skip
        bar = f"{stage.measure} above {stage.threshold:.0%}" if stage.measure else "no end"
        rows.append(
            (
                stage.name, tag("span", words, class_=f"badge {kind}"), since,
                stage.opponents or "as in train.opponents", bar,
                here.reason if here is not None else "",
            )
        )  # fmt: skip
    yield part(
        "curriculum", "Stages of the curriculum",
        table(
            "Training goes through these stages in order. A stage is passed when its measure is "
            "surely above its bar, and is come back to when what it taught is lost.",
            ("stage", "state", "entered last at", "opponents", "passed when", "why it was entered"),
            rows,
            kinds="www...",
        ),
    )  # fmt: skip


# --- population ----------------------------------------------------------------------------------


def _population(reading: RunReading) -> Iterator[PagePart]:
    path = reading.folder.root / lineages.FILE
    if not path.is_file():
        return

    def read() -> Lineage | str:
        try:
            return lineages.decode(path.read_bytes(), what=str(path))
        except (UnderstudyError, OSError) as error:
            return str(error)

    lineage = reading.cache.read("lineage", file_stamp(path), read, share=_SHARE)
    heading = "The population"
    if isinstance(lineage, str):
        yield part("population", heading, tag("p", lineage, class_="finding warning"))
    elif not lineage.rounds:
        yield empty("population", heading, "The first round was not held yet.")
    else:
        yield part(
            "population", heading, *chart_row([_fitness_map(lineage)]), *_line_of_best(lineage),
            words="Several agents train side by side, each with settings of its own; in each round "
            "the worst are replaced by changed copies of the best.",
        )  # fmt: skip


def _fitness_map(lineage: Lineage) -> Element | None:
    rounds = range(max(1, lineage.rounds - _ROUNDS + 1), lineage.rounds + 1)
    held = [lineage.of_round(one) for one in rounds]
    known = [row.fitness for rows in held for row in rows if row.fitness is not None]
    if not known:
        return None
    return heat_map(
        [[rows[agent].fitness for rows in held] for agent in range(lineage.agents)],
        rows=[f"agent {agent}" for agent in range(1, lineage.agents + 1)],
        columns=[number_text(rows[0].steps) for rows in held],
        title="Score of each agent, round by round",
        explains="The mean score against scripted opponents in each round, by the steps of an "
        "agent. Colours that grow stronger to the right are what learning looks like.",
        low=min(known),
        high=max(known),
        text=lambda value: f"{value:.0%}",
    )


def _line_of_best(lineage: Lineage) -> Iterator[HtmlNode]:
    last = lineage.of_round(lineage.rounds)
    best = max(last, key=lambda row: -1.0 if row.fitness is None else row.fitness).agent
    changes = ancestry(lineage, best)
    settings = lineage.settings
    yield table(
        "The settings of each agent now; those of good agents are copied and changed a little.",
        ("agent", "learning rate", "entropy bonus", "shaping"),
        [
            (f"{agent}{' (best)' if agent == best else ''}", f"{one.learning_rate:.3g}",
             f"{one.entropy_weight:.3g}", f"{one.shaping:.3g}")
            for agent, one in enumerate(settings, 1)
        ],
        kinds="wnnn",
    )  # fmt: skip
    if changes:
        yield explains(f"How agent {best}, the best one, came to be, the newest change first:")
        yield tag("ul", *(tag("li", str(one)) for one in changes[:_ROUNDS]))
    else:
        yield explains(f"Agent {best} is the best one; it was never replaced.")
