"""The picture of a run's promotion: who played when, the evidence, and win rates by version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from understudy.analysis.canvas import COLOURS, GREY, begin
from understudy.gates.promotion.records import RULES
from understudy.promotion.history import (
    AssignedMatch,
    PromotionHistory,
    TrialSpan,
    trial_spans,
)
from understudy.promotion.report import arm_result
from understudy.telemetry.promotion_status import ArmResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_PLAYERS = 10
"""Rows: the rules, the versions that played most, and practice."""
_MOST_MATCHES = 3000
"""Matches that are drawn one by one: the newest. The picture is 930 points wide."""
_PRACTICE = -1
"""The row of practice: whatever version practised, its matches are no evidence."""
_LEVELS = 3
"""Lines of words above the tests."""
_LETTER = 0.0092
"""The width of a letter of those words, as a share of the panel."""
_FOR, _AGAINST = COLOURS[0], COLOURS[3]
_LEAST, _MOST = 0.02, 1e4
"""Evidence is drawn within these bounds."""
_BANDS = ("#f2f2f2", "#e4e4e4")


def promotion_figure(told: PromotionHistory, *, title: str, served: bool = False) -> Figure:
    """Three panels: matches by player, the evidence of each test, and results by player.

    Of a long run the first two show the newest matches, and say of how many.
    `served`: a server assigned segments, which have a score and are not won or lost.
    """
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    played = [one for one in told.matches if one.counts]
    spans, last = trial_spans(told)
    hidden = max(len(played) - _MOST_MATCHES, 0)
    spans = [one for one in spans if one.end > hidden]
    players = _players(told, played[hidden:])
    rows = 0.26 * len(players)
    figure, panels = begin(
        3, 1, width=9.3, height=5.0 + 2 * rows, title=title,
        height_ratios=(0.7 + rows, 2.8, 0.7 + rows),
    )  # fmt: skip
    engine = figure.get_layout_engine()
    assert isinstance(engine, ConstrainedLayoutEngine)
    engine.set(w_pad=0.15, h_pad=0.06)
    strip, evidence, rates = (row[0] for row in panels)
    _draw_strip(strip, played, players, hidden=hidden, served=served)
    unit = "segment" if served else "match"
    _draw_evidence(evidence, spans, float(hidden), last, unit=unit)
    for index, span in enumerate(spans):
        for panel in (strip, evidence):
            panel.axvspan(span.begin, span.end, color=_BANDS[index % 2], linewidth=0, zorder=0)
    for panel in (strip, evidence):
        panel.set_xlim(float(hidden), last + 1.0)
    _draw_rates(rates, _results(told, players), served=served)
    return figure


def _players(told: PromotionHistory, played: Sequence[AssignedMatch]) -> list[int]:
    """The rules, then versions in ascending order, and practice if there is any."""
    matches = Counter(_player(one) for one in played)
    for one in told.trials:
        matches[one.running.version] += len(one.pairs)
    last = [_PRACTICE] if matches[_PRACTICE] else []
    del matches[RULES], matches[_PRACTICE]
    room = _MOST_PLAYERS - 1 - len(last)
    most = [version for version, count in matches.most_common(room) if count]
    return [RULES, *sorted(most), *last]


def _player(match: AssignedMatch) -> int:
    return _PRACTICE if match.practises else match.assigned.version


def _draw_strip(
    panel: Axes,
    played: Sequence[AssignedMatch],
    players: Sequence[int],
    *,
    hidden: int,
    served: bool,
) -> None:
    """A tick for each match behind the `hidden` ones, in the row of who played it: tall where it
    was won, or half of it."""
    title = "who played which match (tall: won, middle: tied, low: lost)"
    if served:
        title = "who decided in which segment (the taller, the higher its score)"
    if hidden:
        title = f"{title}; the newest {len(played) - hidden:,} of {len(played):,}"
    panel.set_title(title, fontsize=10, loc="left")
    shown = list(enumerate(played, 1))[hidden:]
    for row, version in enumerate(players):
        mine = [(place, one.result) for place, one in shown if _player(one) == version]
        if mine:
            at, results = np.array(mine).T
            panel.vlines(
                at, row + 0.38, row + 0.38 - (0.22 + 0.54 * results),
                color=_colour(version, players), linewidth=1.0 if len(shown) < 600 else 0.5,
                label=_name(version),
            )  # fmt: skip
    panel.set_yticks(range(len(players)), [_name(one) for one in players], fontsize=9)
    panel.set_ylim(len(players) - 0.4, -0.6)
    panel.tick_params(labelbottom=False)


def _draw_evidence(
    panel: Axes, spans: Sequence[TrialSpan], first: float, last: float, *, unit: str
) -> None:
    panel.set_yscale("log")
    panel.axhline(1.0, color=GREY, linewidth=0.8)
    for index, span in enumerate(spans):
        running, looks = span.trial.running, span.trial.looks
        for values, enough, colour, name in (
            (looks.better, 1.0 / running.alpha, _FOR, "evidence that the tried version is better"),
            (looks.worse, running.settings.harm, _AGAINST, "that it is worse"),
        ):
            # Evidence begins at 1, before the first match.
            at = np.concatenate(([span.begin], span.places))
            drawn = np.clip(np.concatenate(([1.0], values)), _LEAST, _MOST)
            panel.plot(at, drawn, color=colour, linewidth=1.5, label=None if index else name)
            panel.plot(
                [span.begin, span.end], [enough, enough], color=colour, linewidth=1.1,
                linestyle="--", label=None if index else f"enough ({enough:g})",
            )  # fmt: skip
    _name_tests(panel, spans, first, last)
    low, high = panel.get_ylim()
    panel.set_ylim(max(low, _LEAST), max(high, 1e2))
    panel.yaxis.set_major_formatter("{x:g}")
    panel.set_xlabel(f"{unit}, in the order of assignment", fontsize=9)
    panel.set_ylabel("E", fontsize=9)
    if spans:
        panel.legend(
            fontsize=8, frameon=False, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.17)
        )


def _name_tests(panel: Axes, spans: Sequence[TrialSpan], first: float, last: float) -> None:
    """What was tried and how it ended, above each test; long tests first, as far as words fit."""
    taken: list[list[tuple[float, float]]] = [[] for _ in range(_LEVELS)]
    for span in sorted(spans, key=lambda one: one.begin - one.end):
        what = "recheck" if span.trial.recheck else "test"
        ending = "goes on" if span.trial.ending is None else span.trial.ending.kind
        words = f"{what} of {span.trial.running.version}: {ending}"
        width = _LETTER * (last + 1.0 - first) * len(words)
        begin = max(min(span.begin, last + 1.0 - width), first)
        for level, others in enumerate(taken):
            if all(begin >= end or begin + width <= start for start, end in others):
                others.append((begin, begin + width))
                panel.text(
                    begin, 1.02 + 0.075 * level, words, fontsize=8, va="bottom", ha="left",
                    transform=panel.get_xaxis_transform(),
                )  # fmt: skip
                break
    levels = sum(bool(others) for others in taken)
    if not spans:
        words = "no test among these" if first else "no test yet"
        panel.text(0.5, 0.5, words, ha="center", va="center", transform=panel.transAxes)
    panel.set_title("evidence of each test", fontsize=10, loc="left", pad=4 + 13 * levels)


def _draw_rates(panel: Axes, results: Sequence[ArmResult], *, served: bool) -> None:
    ties = "" if served else " (a tie counts half)"
    panel.set_title(f"mean result{ties} with its 95% interval", fontsize=10, loc="left")
    versions = [one.version for one in results]
    for row, one in enumerate(results):
        if not one.matches:
            continue
        colour = _colour(one.version, versions)
        panel.errorbar(
            [one.mean], [row], xerr=[[one.mean - one.low], [one.high - one.mean]],
            color=colour, marker="o", capsize=3, markersize=5, linewidth=1.6,
        )  # fmt: skip
        panel.text(
            1.01, row, f"{one.mean:.0%} of {one.matches:,}", fontsize=9, va="center",
            transform=panel.get_yaxis_transform(),
        )  # fmt: skip
    panel.set_yticks(range(len(results)), [_name(one.version) for one in results], fontsize=9)
    panel.set_ylim(len(results) - 0.5, -0.5)
    panel.set_xlim(0.0, 1.0)
    panel.xaxis.set_major_formatter("{x:.0%}")
    panel.grid(axis="x", alpha=0.25)
    highest = "the highest of the declared score" if served else "a win"
    panel.set_xlabel(f"mean result: 100% is {highest}", fontsize=9)


def _results(told: PromotionHistory, players: Sequence[int]) -> list[ArmResult]:
    """Of assigned matches and of simulated pairs together, for each player."""
    results: dict[int, list[float]] = {version: [] for version in players}
    for one in told.matches:
        if one.counts and _player(one) in results:
            results[_player(one)].append(one.result)
    for trial in told.trials:
        for column, version in enumerate((trial.running.version, trial.running.against)):
            if version in results:
                results[version] += trial.pairs[:, column].tolist()
    return [arm_result(version, sum(many), len(many)) for version, many in results.items()]


def _name(version: int) -> str:
    if version == _PRACTICE:
        return "practice"
    return "rules" if version == RULES else f"version {version}"


def _colour(version: int, players: Sequence[int]) -> str:
    """Grey for the rules, light grey for practice; neighbours differ."""
    if version in (RULES, _PRACTICE):
        return "#555555" if version == RULES else "#a0a0a0"
    return COLOURS[(players.index(version) - 1) % len(COLOURS)]
