"""The evidence of tests over their matches: E for the tested version and against it, on a
logarithmic scale, with how much is enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from understudy.promotion.history import TrialSpan
from understudy.screens.html.axis import Axis, number_text
from understudy.screens.html.elements import Element
from understudy.screens.html.xy_chart import Mark, Threshold, XyLine, xy_chart

_FOR, _AGAINST = 1, 2
_POINTS = 160
_LEAST, _MOST = 0.02, 1e4
"""Evidence is drawn within these bounds."""


class TrialCurve(NamedTuple):
    """The evidence of one test, thinned out: plain numbers, to be kept and drawn again."""

    version: int
    recheck: bool
    ending: str
    """The kind of the verdict that ended it; empty: it goes on."""
    matches: int
    pairs: bool
    """They are pairs of simulated matches."""
    begin: float
    end: float
    """Among all matches of the run."""
    places: tuple[float, ...]
    counted: tuple[float, ...]
    """Matches of the test up to each point."""
    better: tuple[float, ...]
    worse: tuple[float, ...]
    better_enough: float
    worse_enough: float

    @property
    def name(self) -> str:
        """Which test it is, and how it ended."""
        what = "recheck" if self.recheck else "version"
        return f"{what} {self.version}: {self.ending or 'not ended'}"


def trial_curve(span: TrialSpan) -> TrialCurve:
    """What is drawn of a test. Evidence begins at 1, before the first match."""
    trial, count = span.trial, len(span.places)
    step = -(-count // _POINTS)
    chosen = [*range(0, count - 1, step), count - 1]

    def thinned(values: Sequence[float], first: float) -> tuple[float, ...]:
        return (first, *(float(min(max(values[at], _LEAST), _MOST)) for at in chosen))

    return TrialCurve(
        version=trial.running.version,
        recheck=trial.recheck,
        ending="" if trial.ending is None else trial.ending.kind,
        matches=count,
        pairs=trial.running.simulator,
        begin=span.begin,
        end=span.end,
        places=(span.begin, *(float(span.places[at]) for at in chosen)),
        counted=(0.0, *(at + 1.0 for at in chosen)),
        better=thinned(trial.looks.better.tolist(), 1.0),
        worse=thinned(trial.looks.worse.tolist(), 1.0),
        better_enough=1.0 / trial.running.alpha,
        worse_enough=trial.running.settings.harm,
    )


def trial_chart(curve: TrialCurve, *, title: str, explains: str, unit: str) -> Element | None:
    """One test over its own matches."""
    return _chart(
        [curve], title=title, explains=explains, own=True,
        across=f"{'simulated pairs' if curve.pairs else unit} of this test",
    )  # fmt: skip


def trials_chart(
    curves: Sequence[TrialCurve], *, title: str, explains: str, unit: str
) -> Element | None:
    """Several tests among all matches of the run."""
    return _chart(
        curves, title=title, explains=explains, own=False,
        across=f"{unit} of the run, in the order of assignment",
    )  # fmt: skip


def _chart(
    curves: Sequence[TrialCurve], *, title: str, explains: str, across: str, own: bool
) -> Element | None:
    lines, limits, marks = list[XyLine](), list[Threshold](), list[Mark]()
    for one in curves:
        x = one.counted if own else one.places
        lines += [
            XyLine("E for it", x, one.better, _FOR),
            XyLine("E against it", x, one.worse, _AGAINST),
        ]
        for name, enough, colour in (
            (f"enough to promote ({one.better_enough:g})", one.better_enough, _FOR),
            (f"enough to stop it ({one.worse_enough:g})", one.worse_enough, _AGAINST),
        ):
            limits.append(Threshold(name, enough, colour, x[0], x[-1]))
        if not own:
            marks.append(Mark(one.name, one.begin, one.end))
    values = [value for one in curves for value in (*one.better, *one.worse, one.better_enough)]
    if not values:
        return None
    axis = Axis.logarithmic(min(*values, 0.5), max(*values, 50.0), number_text)
    return xy_chart(
        lines, title=title, explains=explains, across=across, y_axis=axis, thresholds=limits,
        marks=marks,
    )  # fmt: skip
