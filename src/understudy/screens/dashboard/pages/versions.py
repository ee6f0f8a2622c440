"""Versions: who plays and what is tested, the evidence, where each version came from, how well it
played, and what a person may change."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

from understudy.core.errors import UnderstudyError
from understudy.promotion.history import read_history, trial_spans
from understudy.registry.retention import scores_of
from understudy.registry.scores import Score, ScoreInterval, judged, last_good
from understudy.screens.dashboard.page import PagePart, RunReading, empty, file_stamp, part
from understudy.screens.html.axis import PERCENT, Axis
from understudy.screens.html.elements import Element, HtmlNode, tag
from understudy.screens.html.evidence_chart import (
    TrialCurve,
    trial_chart,
    trial_curve,
    trials_chart,
)
from understudy.screens.html.interval_chart import IntervalRow, interval_chart
from understudy.screens.html.parts import chart_row, key_figures_list
from understudy.screens.html.promotion_tables import (
    arms_table,
    shown_arms,
    story_table,
    tests_table,
    verdict_notes,
)
from understudy.screens.html.version_table import (
    VersionRow,
    notable,
    version_rows,
    versions_table,
)
from understudy.screens.html.version_tree import TreeVersion, version_tree
from understudy.screens.html.xy_chart import Mark, XyLine, xy_chart
from understudy.telemetry.promotion_lines import expect_text, player_name, playing_text, why_text
from understudy.telemetry.promotion_status import PromotionStatus, TrialStatus, VerdictNote
from understudy.telemetry.text import stamp

_LONGEST_LOG = 20_000
"""Matches of a promotion log that is read whole: 300,000 take ten seconds, and other pages wait."""
_ROWS, _VERDICTS, _TESTS = 16, 30, 8
_SHARE = 0.1
"""Of the time, at most, that reading manifests or the promotion log again takes."""


def parts(reading: RunReading) -> Iterator[PagePart]:
    known = _known(reading)
    yield _roles(reading, known)
    if reading.folder.by_evidence:
        yield from _promotion(reading)
    if not known.rows:
        words = "No version of the policy was published yet: the first one comes of the first "
        yield empty("lineage", "Versions", f"{words}batch that is learned from.")
        return
    yield _lineage(known)
    if charts := _scores(reading, known):
        yield part(
            "scores",
            "How well each version played",
            *charts,
            words="A single version plays too few matches to judge, so neighbours are counted "
            "together: each step is one group. A curve that rises is what learning looks like.",
        )
    yield _table(reading, known)


class _Known(NamedTuple):
    """What the manifests and pointers say."""

    rows: Sequence[VersionRow]
    scores: Sequence[Score]
    unread: tuple[str, ...]

    def role(self, name: str) -> int | None:
        """The version that a pointer names; None: it names none, or the rules."""
        for row in self.rows:
            if any(one.removesuffix(" (pinned)") == name for one in row.roles):
                return row.manifest.number
        return None


def _known(reading: RunReading) -> _Known:
    folder = reading.folder

    def read() -> _Known:
        unread: list[str] = []
        rows = version_rows(folder, unread)
        return _Known(rows, scores_of(folder), tuple(unread))

    return reading.cache.read("versions", _stamp(reading), read, share=_SHARE)


def _stamp(reading: RunReading) -> Hashable:
    """A new version or a moved pointer changes its folder."""
    folder = reading.folder
    folders = (folder.versions.root, *folder.pointers.folders)
    return tuple(file_stamp(one) for one in folders)


# --- roles and actions ---------------------------------------------------------------------------


def _roles(reading: RunReading, known: _Known) -> PagePart:
    status, now = reading.status, reading.status.promotion
    champion, canary = status.champion, known.role("canary")
    figures = [
        (
            "Champion",
            "none yet" if champion is None else player_name(champion),
            "pinned by a person" if status.pinned else "should play",
        )
    ]
    if canary is not None:
        figures.append(("Canary", player_name(canary), "under test"))
    newest = known.role("candidate") or status.version
    if newest:
        figures.append(("Candidate", player_name(newest), "the newest"))
    figures.append(("Kept", f"{len(known.rows):,}", f"of {status.versions:,} versions"))
    body: list[HtmlNode] = [key_figures_list(figures)]
    if now is not None:
        body.append(
            _sentence(
                "In the next session" if reading.ended_at is not None else "Now",
                now.in_units(playing_text(now)),
            )
        )
        if why := why_text(now):
            body.append(_sentence("Why", now.in_units(why)))
    if buttons := list(_actions(reading, known)):
        body.append(tag("div", *buttons, class_="actions"))
    body += [tag("p", one, class_="finding warning") for one in known.unread[:5]]
    return part(
        "roles", "Who plays",
        *body,
        words="The champion is the version that should play. The candidate is the newest one. In "
        "a run by evidence a canary is tested in a share of the matches before it may play.",
    )  # fmt: skip


def _sentence(name: str, words: str) -> Element:
    return tag("p", tag("strong", f"{name}: "), words, ".")


def _button(
    action: str, words: str, *, title: str, confirm: str, yes: str, version: int | None = None,
    danger: bool = False,
) -> Element:  # fmt: skip
    asked = {
        "data-action": action, "data-title": title, "data-confirm": confirm, "data-yes": yes,
        "data-version": None if version is None else str(version),
    }  # fmt: skip
    return tag("button", words, type="button", class_="danger" if danger else None, **asked)


def _actions(reading: RunReading, known: _Known) -> Iterator[Element]:
    """What may be done now; each asks first."""
    status, now = reading.status, reading.status.promotion
    test = _test(now)
    if now is not None and test is not None:
        yield _button(
            "approve", f"Approve version {test.version}", version=test.version,
            title=f"Make version {test.version} the champion now?", yes="Approve",
            confirm=now.in_units(
                f"Version {test.version} plays from the next match on, although its test has not "
                "ended. It is watched: if its results fall, it is rechecked against the rules."
            ),
        )  # fmt: skip
        yield _button(
            "stop", f"Stop the test of version {test.version}", danger=True,
            title=f"Stop the test of version {test.version}?", yes="Stop the test",
            confirm=now.in_units(
                f"Version {test.version} plays no more matches of the test, and its evidence is "
                "closed. Another version may be tested later."
            ),
        )  # fmt: skip
    if status.pinned:
        yield _button(
            "release", "Release the champion", title="Let the champion move again?", yes="Release",
            confirm="The pin ends. "
            + (
                "Evidence decides again who plays."
                if reading.folder.by_evidence
                else "The next version that is published plays."
            ),
        )  # fmt: skip
    if status.champion:
        numbers = [row.manifest.number for row in known.rows]
        found = last_good(known.scores, numbers, before=status.champion)
        if found is not None:
            yield _rollback(found[0], reading, words=f"Roll back to version {found[0]}")
    if not (status.steps and not status.mode):  # a run of `train` has no pause
        if status.paused_since is not None:
            yield _button(
                "resume-learning", "Resume learning", title="Let learning go on?", yes="Resume",
                confirm="The learner trains again on what was played meanwhile.",
            )  # fmt: skip
        elif status.learning != "off":
            yield _button(
                "pause-learning", "Pause learning", title="Pause learning?", yes="Pause",
                confirm="The bot plays on with the versions that there are. What it plays is "
                "kept, and is learned from later.",
            )  # fmt: skip


def _test(now: PromotionStatus | None) -> TrialStatus | None:
    """The test that runs; a recheck is none."""
    tests = () if now is None else now.tests
    return next((one for one in tests if not one.recheck), None)


def _rollback(version: int, reading: RunReading, *, words: str) -> Element:
    plays = (
        "It plays every match, and nothing is tested, until the champion is released."
        if reading.folder.by_evidence
        else "It plays, and newer versions do not, until the champion is released."
    )
    return _button(
        "rollback", words, version=version, title=f"Roll back to version {version}?",
        confirm=f"Version {version} becomes the champion and is pinned. {plays} A learner goes on "
        "from it: what was learned since then begins a branch of its own.",
        yes="Roll back", danger=True,
    )  # fmt: skip


# --- promotion -----------------------------------------------------------------------------------


class _Story(NamedTuple):
    curves: tuple[TrialCurve, ...]
    """Of the last tests, oldest first."""
    notes: tuple[VerdictNote, ...]
    error: str = ""
    too_long: bool = False
    """The log was not read: no curves, and the newest verdicts alone."""


def _promotion(reading: RunReading) -> Iterator[PagePart]:
    now = reading.status.promotion
    folder = reading.folder
    changed = file_stamp(folder.promotion)
    if now is not None and now.matches > _LONGEST_LOG:
        story = _Story((), now.verdicts, too_long=True)
    else:
        story = reading.cache.read("promotion", changed, lambda: _story(reading), share=_SHARE)
    yield _evidence(now, story)
    if story.notes:
        table = story_table(story.notes, most=_VERDICTS)
        yield part("story", "Decisions about who plays", table)


def _story(reading: RunReading) -> _Story:
    try:
        told = read_history(reading.folder)
    except (UnderstudyError, OSError) as error:
        return _Story((), (), str(error))
    spans, _ = trial_spans(told)
    curves = tuple(trial_curve(span) for span in spans[-_TESTS:])
    return _Story(curves, tuple(verdict_notes(told)))


def _evidence(now: PromotionStatus | None, story: _Story) -> PagePart:
    heading = "Evidence"
    words = (
        "E begins at 1 and is multiplied with every result: results for the tested version make "
        "the blue line grow. Where it reaches its dashed line, the version becomes the champion; "
        "where the orange one reaches its own, the version is worse and is stopped."
    )
    if story.error:
        return part("evidence", heading, tag("p", story.error, class_="finding problem"))
    body: list[HtmlNode] = []
    if now is not None and now.tests:
        body.append(tests_table(now.tests))
        for one in now.tests:
            expected = "a person is asked" if one.asks else now.in_units(expect_text(one))
            body.append(_sentence(f"Expected of version {one.version}", expected))
    unit = "segments" if now is not None and now.served else "matches"
    charts = chart_row([*_test_charts(story.curves, unit), _arms_chart(now, unit)])
    if story.too_long:
        said = f"Curves are drawn for up to {_LONGEST_LOG:,} {unit}, and this run has more: "
        body.append(tag("p", said, tag("code", "understudy promotion plot")))
    elif not story.curves and not body:
        why = f": {now.waits}" if now is not None and now.waits else ""
        body.append(tag("p", f"No version was tested yet{why}."))
    return part("evidence", heading, *body, *charts, *_strata(now, unit), words=words)


def _test_charts(curves: Sequence[TrialCurve], unit: str) -> Iterator[Element | None]:
    """The test that runs or ran last, and the last ones together."""
    if not curves:
        return
    last = curves[-1]
    count = f"{last.matches:,} {'pairs' if last.pairs else unit}"
    yield trial_chart(
        last,
        title=f"{'Recheck' if last.recheck else 'Test'} of version {last.version}",
        explains=f"It ended after {count}: {last.ending}."
        if last.ending
        else f"It has not ended; {count} so far.",
        unit=unit,
    )
    if len(curves) > 1:
        yield trials_chart(
            curves,
            title=f"The last {len(curves)} tests",
            explains="Each shaded stretch is one test, with how it ended.",
            unit=unit,
        )


def _arms_chart(now: PromotionStatus | None, unit: str) -> Element | None:
    arms = [one for one in shown_arms(now) if not one.stratum] if now is not None else []
    return interval_chart(
        [
            IntervalRow(
                player_name(one.version), one.mean, one.low, one.high,
                f"{one.mean:.0%} of {one.matches:,}", 1 if one.version else 2,
            )
            for one in arms
        ],
        title="Mean result by player (a tie counts half)",
        explains="A dot is the mean result (a win counts 1, a tie one half), the line its 95% "
        f"interval; behind it, of how many assigned {unit}. Lines that do not overlap surely "
        "differ.",
        axis=PERCENT,
        groups=("versions", "the rules"),
    )  # fmt: skip


def _strata(now: PromotionStatus | None, unit: str) -> list[HtmlNode]:
    arms = [one for one in shown_arms(now) if one.stratum] if now is not None else []
    if not arms:
        return []
    summary = tag("summary", "Results by opponent, map and the like")
    return [tag("details", summary, arms_table(arms, unit=unit))]


# --- versions ------------------------------------------------------------------------------------


def _lineage(known: _Known) -> PagePart:
    versions = [
        TreeVersion(
            row.manifest.number, row.manifest.parent, row.roles, stamp(row.manifest.created_at)
        )
        for row in known.rows
    ]
    tree = version_tree(
        versions,
        title=f"{len(versions):,} versions that are kept",
        explains="From left to right in the order of their numbers. Blue is the line of the newest "
        "version; a grey line was left by a rollback, and the branch begins where it went back to. "
        "A dashed piece stands for versions that are no longer on disk.",
    )
    assert tree is not None
    return part(
        "lineage", "Which version came from which", tree,
        words="Every version is learned from the one before it, unless a rollback began anew from "
        "an earlier one.",
    )  # fmt: skip


def _scores(reading: RunReading, known: _Known) -> list[HtmlNode]:
    scored = judged(known.scores)
    won = any(score.win_rate is not None for score, _ in scored)
    returns = [
        (one, mean) for one in known.scores if one.last and (mean := one.mean_return) is not None
    ]
    marks = [
        Mark(name, float(version), float(version))
        for name in ("champion", "canary")
        if (version := known.role(name)) is not None
    ]
    return chart_row(
        [
            _score_chart("Win rate by version", scored, marks, share=True)
            if won
            else _score_chart(f"Reward by version, per {_per(reading)}", scored, marks),
            _score_chart("Reward of a match by version", returns, marks),
        ]
    )


def _per(reading: RunReading) -> str:
    return "decision" if reading.kind == "server" else "match"


def _score_chart(
    title: str,
    scored: Sequence[tuple[Score, ScoreInterval]],
    marks: Sequence[Mark],
    *,
    share: bool = False,
) -> Element | None:
    if not scored:
        return None
    x = [at for one, _ in scored for at in (one.first - 0.5, one.last + 0.5)]

    def twice(values: Iterable[float]) -> list[float]:
        return [value for value in values for _ in range(2)]

    low, high = twice(one.low for _, one in scored), twice(one.high for _, one in scored)
    axis = PERCENT if share else Axis.linear(min(low), max(high))
    line = XyLine("mean", x, twice(one.mean for _, one in scored), 1, low, high)
    inside = [one for one in marks if x[0] <= one.begin <= x[-1]]
    return xy_chart(
        [line],
        title=title,
        explains=f"{len(scored):,} groups of neighbouring versions; the band is the 95% interval.",
        across="version",
        y_axis=axis,
        marks=inside,
    )


def _table(reading: RunReading, known: _Known) -> PagePart:
    shown = notable(known.rows, _ROWS)[::-1]
    champion = reading.status.champion

    def action(row: VersionRow) -> HtmlNode:
        number = row.manifest.number
        if number == champion:
            return "plays" if reading.status.pinned else "champion"
        return _rollback(number, reading, words="Pin as champion")

    table = versions_table(
        shown, unit=reading.unit, left=len(known.rows) - len(shown), action=action
    )
    return part("versions", "Versions that are kept, the newest first", table)
