"""The live server: who decides, what became of decisions, where they act, what the gate is worth,
how fast it answers, and who asks. From the run folder alone: the server is not asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.config import Config
from understudy.core.spaces import Continuous
from understudy.experience.ledger.recovery import LEDGER, TerritoryCounts, territories_in
from understudy.experience.served import ServedDecisions, gate_proposals
from understudy.games.catalog import idle_action
from understudy.games.territory import Territory, tables
from understudy.gates.calibration import Calibration, calibrate
from understudy.screens.dashboard.answers import playing
from understudy.screens.dashboard.layout import run_path
from understudy.screens.dashboard.page import PagePart, RunReading, empty, part
from understudy.screens.dashboard.run_files import (
    RecentDecisions,
    action_counts,
    looked,
    recent_decisions,
)
from understudy.screens.exports.episodes import action_names
from understudy.screens.html import run_charts
from understudy.screens.html.axis import Axis
from understudy.screens.html.elements import Element, HtmlNode, tag
from understudy.screens.html.foreseen_chart import ForeseenPoint, foreseen_chart
from understudy.screens.html.heat_map import heat_map
from understudy.screens.html.histogram import HistogramBucket, HistogramMark, histogram
from understudy.screens.html.interval_chart import IntervalRow, interval_chart
from understudy.screens.html.parts import chart_row, explains, key_figures_list, table
from understudy.screens.html.server_parts import (
    LEDGER_ENDINGS,
)
from understudy.screens.html.share_bars import BarShare, share_bars, stacked_bar
from understudy.telemetry.latency import BOUNDS_S, quantile
from understudy.telemetry.report_parts import continuous_lines, reward_lines
from understudy.telemetry.status import Estimate, RewardStatus, ServerTotals

_TONES = {
    "settled": "good",
    "expired": "warning",
    "superseded": "f4",
    "orphaned": "problem",
    "open": "soft",
}
_ACTIONS, _CLIENTS, _ENOUGH = 12, 8, 20
"""Rows of a table; and decisions from which on shares of them are shown."""
_MANY = 0.5
"""The share of all spawns in one place from which on the doctor asks why."""
_ROLES = {
    "rules": "the client's own rules",
    "champion": "the champion",
    "canary": "the version under test",
    "practice": "a version that practises",
    "holdout": "the rules, kept as a comparison",
    "newest": "the newest version",
}


def offered(reading: RunReading) -> bool:
    return reading.kind == "server"


def parts(reading: RunReading) -> Iterator[PagePart]:
    yield _deciding(reading)
    yield _ledger(reading)
    yield _rewards(reading)
    recent = recent_decisions(reading)
    yield _actions(reading, recent)
    yield _gate(reading, recent)
    yield _answers(reading)
    yield _clients(reading)
    yield _learner(reading)


def _deciding(reading: RunReading) -> PagePart:
    """Who decides and why, and how many at which pace."""
    answer, status = playing(reading), reading.status
    figures = [("Decides now", answer.short, "")]
    totals, pace = status.server, reading.trends.get("decisions_s")
    if status.ledger is not None:
        figures.append(("Decisions", f"{status.ledger.opened:,}", "in the whole run"))
    if pace is not None and (rate := pace.mean(of=pace.last(60.0))) is not None:
        figures.append(("Pace", f"{rate:.3g}/s", "decisions in its last minute"))
    if totals is not None and (p99 := quantile(totals.answers, 0.99)) is not None:
        half = quantile(totals.answers, 0.5)
        assert half is not None
        figures.append(("An answer takes", _ms(half), f"median; 99 of 100 within {_ms(p99)}"))
    if totals is not None:
        under = f"with {totals.territories:,} territories" if totals.clients else "none connected"
        figures.append(("Clients", f"{totals.clients:,}", under))
    roles: list[HtmlNode] = []
    if totals is not None and totals.decided_by:
        bar = stacked_bar(
            [
                BarShare(name, count, f"{count:,}", _ROLES.get(name, ""))
                for name, count in sorted(totals.decided_by.items(), key=lambda one: -one[1])
            ],
            title="Decisions by who made them",
            explains="Evidence is only fair where a coin decides who plays; the incumbent decides "
            "all the rest.",
        )
        roles = [] if bar is None else [bar]
    if status.promotion is not None:
        link = tag("a", "Versions", href=run_path(reading.name, "versions"))
        roles.append(tag("p", "Tests and their evidence are on the page ", link, "."))
    return part("deciding", "Who decides", key_figures_list(figures), *roles, words=answer.words)


def _ledger(reading: RunReading) -> PagePart:
    heading, counts = "What became of decisions", reading.status.ledger
    bar = None
    if counts is not None:
        bar = stacked_bar(
            [
                BarShare(
                    name, getattr(counts, name), f"{getattr(counts, name):,}", words, _TONES[name]
                )
                for name, words in LEDGER_ENDINGS.items()
            ],
            title="Decisions by how they ended",
            explains=f"All {counts.opened:,} decisions of the run. Good: nearly all are settled, "
            "since only those are learned from.",
        )
    if bar is None:
        return empty("ledger", heading, "No decision was made yet.")
    return part("ledger", heading, bar)


def _rewards(reading: RunReading) -> PagePart:
    heading, reward = "Reward", reading.status.version_rewards
    lines = reward_lines(reward)
    if reward is None or not lines:
        words = "The reward is counted by version: it comes with the first version."
        return empty("rewards", heading, words)
    chart = reward_chart(reading)
    told = tag("ul", *(tag("li", words) for _, words in lines))
    return part(
        "rewards",
        heading,
        tag("div", *([chart] if chart else []), told, class_="beside"),
        words="What the newest versions earn, what the first ones earned, and what other actions "
        "would have earned in place of the last decisions.",
    )


def reward_chart(reading: RunReading) -> Element | None:
    """What the newest versions earn beside the first ones; None: nothing is known yet."""
    reward = reading.status.version_rewards
    rows = [] if reward is None else _estimates(reward)
    if reward is None or not rows:
        return None
    values = [value for one in rows for value in (one.low, one.high)]
    return interval_chart(
        rows,
        title=f"Reward per {reward.per}",
        explains="Mean and 95% interval. Good: the policy now lies to the right of all else.",
        axis=Axis.linear(min(values), max(values), steps=3),
        middle=0.0 if min(values) < 0.0 < max(values) else None,
    )


def _estimates(reward: RewardStatus) -> list[IntervalRow]:
    found: list[tuple[str, Estimate | None, int]] = [
        ("now", reward.now.reward if reward.now else None, 1),
        ("at the start", reward.start.reward if reward.start else None, 2),
        ("last decisions", reward.policy, 1),
        ("a random action", reward.random, 4),
        ("best fixed action", reward.fixed, 5),
    ]
    return [
        IntervalRow(name, one.mean, one.low, one.high, f"{one.mean:.3g}", colour)
        for name, one, colour in found
        if one is not None
    ]


def _actions(reading: RunReading, recent: RecentDecisions | None) -> PagePart:
    """Where the last decisions act: on the map, or the share of each action."""
    heading = "What it decides"
    if recent is None:
        return empty("actions", heading, "No segment of decisions lies on disk yet.")
    sent = recent.decisions.where(recent.decisions.sent)
    if sent.total < _ENOUGH:
        return empty("actions", heading, f"{sent.total} decisions were sent so far: too few.")
    words = (
        f"The last {sent.total:,} decisions that were sent to the game, of the newest "
        f"{recent.episodes} segments on disk."
    )
    if reading.folder.identity.game_name == Territory.name:
        body = _spawns(sent)
    else:
        body = _shares(reading, sent)
    return part("actions", heading, *body, words=words)


def _spawns(sent: ServedDecisions) -> Iterable[HtmlNode]:
    actions = sent.actions[:, 0]
    spawned = actions[actions != tables.NO_SPAWN]
    chunks, kinds = tables.spawn_of(spawned)
    counts = {"no spawn": len(actions) - len(spawned)}
    counts |= {name: int((kinds == kind).sum()) for kind, name in enumerate(tables.KINDS)}
    bars = share_bars(
        [BarShare(name, one, f"{one / len(actions):.0%}") for name, one in counts.items()],
        title="What is spawned",
        explains="Shares of all decisions. To spawn nothing in about half of them is healthy.",
        whole=len(actions),
    )
    if not len(spawned):
        yield from chart_row([bars])
        return
    places = np.bincount(chunks, minlength=tables.CHUNKS)
    top = int(places.argmax())
    share = places[top] / len(spawned)
    words = (
        f"{int((places > 0).sum())} of {tables.CHUNKS} chunks are used; the most frequent, row "
        f"{top // tables.GRID} column {top % tables.GRID}, has {share:.0%} of all spawns."
    )
    doubt = " One place has most of them: the policy may have collapsed." if share >= _MANY else ""
    yield explains(words + doubt)
    most = max(int(np.bincount(chunks[kinds == kind]).max()) for kind in set(kinds.tolist()))
    maps = [
        _spawn_map(chunks[kinds == kind], name, most=most) for kind, name in enumerate(tables.KINDS)
    ]
    yield from chart_row([*maps, bars])


def _spawn_map(chunks: NDArray, name: str, *, most: int) -> Element | None:
    if not len(chunks):
        return None
    counts = np.bincount(chunks, minlength=tables.CHUNKS).reshape(tables.GRID, tables.GRID)
    names = [str(place) for place in range(tables.GRID)]
    return heat_map(
        counts.tolist(),
        rows=names,
        columns=names,
        title=f"Spawns of {name} parasites",
        explains="The map of 16 by 16 chunks: the stronger the colour, the more spawns. Good: "
        "several places, where workers are.",
        low=0.0,
        high=float(most),
        text=lambda value: f"{value:.0f} spawns",
        square=True,
    )


def _shares(reading: RunReading, sent: ServedDecisions) -> Iterable[HtmlNode]:
    space = reading.folder.spec.actions
    if isinstance(space, Continuous):
        yield explains("Its actions are real numbers: there are no shares of them.")
        return
    counted = action_counts(sent)
    shown = counted[:_ACTIONS]
    names = action_names(np.array([action for action, _ in shown]), space)
    rows = [
        BarShare(name or "nothing", count, f"{count / sent.total:.1%}")
        for name, (_, count) in zip(names, shown, strict=True)
    ]
    rest = sum(count for _, count in counted[_ACTIONS:])
    if rest:
        left = f"{len(counted) - len(shown):,} other actions"
        rows.append(BarShare(left, rest, f"{rest / sent.total:.1%}", tone="soft"))
    yield from chart_row(
        [
            share_bars(
                rows,
                title="Share of each action",
                explains="The most frequent first. Where one has nearly all, the policy has "
                "collapsed, or the game asks for nothing else.",
                whole=sent.total,
            )
        ]
    )


def _gate(reading: RunReading, recent: RecentDecisions | None) -> PagePart:
    heading, charts = "The gate", reading.charts
    totals = reading.status.server
    judged = None if recent is None else _calibration(reading, recent)
    figures = [_verdicts(totals)] if totals is not None else []
    figures += [
        charts.of(
            "Held back",
            "The share of proposals that the gate answers with WAIT, explored or not.",
            {"wait_share": "held back"},
            "share",
        ),
        charts.draw(run_charts.GATE_AGREEMENT),
    ]
    row = chart_row(figures)
    if not row and judged is None:
        return empty("gate", heading, "No decision was judged by a gate yet.")
    name = f" Its name is {totals.gate}." if totals is not None and totals.gate else ""
    words = (
        "A gate judges each proposal of the policy before it is sent: SEND or WAIT. A small share "
        f"of what it holds back is sent all the same, to see whether it is right.{name}"
    )
    return part("gate", heading, *row, *_worth(judged), words=words)


def _verdicts(totals: ServerTotals) -> Element | None:
    other = totals.decisions - totals.sent - totals.waited
    parts = [
        BarShare("SEND", totals.sent - totals.explored, f"{totals.sent - totals.explored:,}",
                 "let through", "good"),
        BarShare("explored", totals.explored, f"{totals.explored:,}",
                 "held back, and sent all the same by chance", "f1"),
        BarShare("WAIT", totals.waited, f"{totals.waited:,}", "held back", "warning"),
    ]  # fmt: skip
    if other > 0:
        parts.append(BarShare("other", other, f"{other:,}", "answered without a verdict", "soft"))
    return stacked_bar(
        parts,
        title="Verdicts",
        explains="All that were counted. Good: both SEND and WAIT, and a little of explored.",
    )


def _calibration(reading: RunReading, recent: RecentDecisions) -> Calibration | None:
    game, config = reading.folder.identity.game_name, reading.folder.config

    def judge() -> Calibration | None:
        return _judged(recent.decisions, idle_action(game), config)

    return reading.cache.read("server.calibration", (recent.newest, recent.episodes), judge)


def _judged(decisions: ServedDecisions, idle: int | None, config: Config) -> Calibration | None:
    found = gate_proposals(decisions, idle_action=idle).judged
    if not found.total:
        return None
    return calibrate(
        sent=found.sent,
        explored=found.explored,
        expected=found.expected,
        rewards=found.rewards,
        threshold=config.live.threshold,
        explore_share=config.live.explore_share,
    )


def _foreseen(judged: Calibration) -> Element | None:
    groups = ("SEND", "explored (WAIT)")
    points = [
        ForeseenPoint(
            one.expected, one.actual, *(one.interval or (one.actual, one.actual)), one.count,
            int(one.verdict == "WAIT"),
        )
        for one in judged.rows
    ]  # fmt: skip
    return foreseen_chart(
        points,
        groups,
        title="Foreseen and followed",
        explains=f"Reward that the gate foresaw, and the mean that followed with its 95% interval, "
        f"of {judged.foresight.count:,} recent outcomes. Good: near the dashed line.",
    )


def _worth(judged: Calibration | None) -> Iterable[HtmlNode]:
    """What it foresaw and what followed, as a chart and in words."""
    if judged is None:
        return
    rows = [
        (name, f"{one.count:,}", "" if one.mean_reward is None else f"{one.mean_reward:.3g}",
         "" if one.interval is None else f"{one.interval[0]:.3g} to {one.interval[1]:.3g}")
        for name, one in (
            ("let through", judged.sent), ("held back, sent all the same", judged.explored),
            ("held back", judged.waited),
        )
    ]  # fmt: skip
    told = table(
        f"What followed the last {judged.proposals:,} proposals: {judged.worth.words}. Foresight: "
        f"{judged.foresight.words}. All of the run: understudy gate.",
        ("proposals", "count", "mean reward", "95% interval"),
        rows,
        kinds="wnnn",
    )
    chart = _foreseen(judged)
    yield tag("div", *([chart] if chart is not None else []), told, class_="beside")


def _answers(reading: RunReading) -> PagePart:
    """How fast the server answers."""
    heading, totals = "Speed of answers", reading.status.server
    figure = None if totals is None else latency_histogram(totals.answers)
    over_time = reading.charts.of(
        "Answers over time",
        "From reading a message to handing its answer to the socket: in half of all cases less "
        "than p50, in 99 of 100 less than p99.",
        {"answer_p50_us": "p50", "answer_p99_us": "p99"},
        "microseconds",
    )
    pace = reading.charts.of(
        "Pace", "Decisions of the server in a second.", {"decisions_s": "decisions a second"}
    )
    if figure is None:
        words = (
            "No answer was counted yet. A server writes every 10 s how long its answers took; "
            "those of earlier versions did not: while such a one runs, its /metrics says it."
        )
        return empty("answers", heading, words)
    return part(
        "answers",
        heading,
        *chart_row([figure, over_time, pace]),
        words="Good: nearly all answers come well within a frame of the game.",
    )


def latency_histogram(counts: Sequence[int]) -> Element | None:
    """Answers by how long they took; from the first bucket that has any to the last."""
    used = [index for index, count in enumerate(counts) if count]
    if not used:
        return None
    begin, end = max(used[0] - 1, 0), used[-1] + 1
    buckets = [
        HistogramBucket(
            f"≤{_ms(BOUNDS_S[index])}" if index < len(BOUNDS_S) else f">{_ms(BOUNDS_S[-1])}",
            counts[index],
        )
        for index in range(begin, end)
    ]
    marks = []
    for share, name in ((0.5, "median"), (0.99, "p99")):
        at = quantile(counts, share)
        assert at is not None
        marks.append(HistogramMark(_place(at) - begin, f"{name} {_ms(at)}"))
    return histogram(
        buckets,
        title="Time of an answer",
        explains="All answers that were counted, by how long they took; buckets grow with time.",
        unit="answers",
        marks=marks,
    )


def _place(seconds: float) -> float:
    """Where a duration lies among the buckets: 2.5 is the middle of the third."""
    low = 0.0
    for index, high in enumerate(BOUNDS_S):
        if seconds <= high:
            return index + (seconds - low) / (high - low)
        low = high
    return float(len(BOUNDS_S))


def _clients(reading: RunReading) -> PagePart:
    heading, totals = "Clients", reading.status.server
    folder = reading.folder.root / LEDGER
    found = looked(reading, "territories", lambda: lambda: territories_in(folder))
    rows = _by_client(found)
    body: list[HtmlNode] = []
    if rows:
        more = len(rows) - _CLIENTS
        body.append(
            table(
                "By client, in the newest file of the ledger. Good: each has rewards for nearly "
                f"all of its decisions.{f' {more:,} more are left out.' if more > 0 else ''}",
                ("client", "territories", "decisions that ended", "with a reward"),
                rows[:_CLIENTS],
                kinds=".nnn",
            )
        )
    if totals is not None:
        body += chart_row(
            [
                _counts(totals.errors, "Refused",
                        "Messages and connections that were refused, by code: a client that is "
                        "wrong, or too fast."),
                _counts(totals.safe_actions, "Answered with the safe action",
                        "Where the policy could not be asked in time, by cause."),
            ]
        )  # fmt: skip
        if not totals.errors and not totals.safe_actions:
            body.append(explains("Nothing was refused, and no answer was the safe action."))
    if not body:
        return empty("clients", heading, "No client has asked yet.")
    return part("clients", heading, *body)


def _by_client(found: dict[str, TerritoryCounts]) -> list[tuple[str, ...]]:
    """Those with the most decisions first."""
    sums: dict[str, list[int]] = {}
    for one in found.values():
        totals = sums.setdefault(one.client, [0, 0, 0])
        totals[0] += 1
        totals[1] += one.ended
        totals[2] += one.settled
    ranked = sorted(sums.items(), key=lambda item: (-item[1][1], item[0]))
    return [
        (name, f"{places:,}", f"{ended:,}", f"{settled / ended:.1%}" if ended else "")
        for name, (places, ended, settled) in ranked
    ]


def _counts(counts: dict[str, int], title: str, words: str) -> Element | None:
    ranked = sorted(counts.items(), key=lambda item: -item[1])[:_ACTIONS]
    rows = [BarShare(name, count, f"{count:,}", tone="warning") for name, count in ranked]
    return share_bars(rows, title=title, explains=words)


def _learner(reading: RunReading) -> PagePart:
    heading, charts = "The learner behind the server", reading.charts
    lines = continuous_lines(reading.status)
    row = chart_row([charts.draw(run_charts.UTILISATION), charts.draw(run_charts.REPLAY_SIZE)])
    if not lines and not row:
        return empty("learner", heading, "No learner has trained in this run yet.")
    body = [table("As it was last.", ("what", "now"), lines, kinds="w.")] if lines else []
    return part(
        "learner",
        heading,
        *row,
        *body,
        words="It trains beside the server from segments of settled decisions. Good: busy, but not "
        "all of the time, or clients send more than it can learn from.",
    )


def _ms(seconds: float) -> str:
    ms = 1e3 * seconds
    return f"{ms / 1e3:.3g} s" if ms >= 1e3 else f"{ms:.3g} ms"
