"""The sections of a report: each is a heading, and figures and tables with an explanation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from understudy.core.statistics import wilson
from understudy.screens.html import run_charts
from understudy.screens.html.elements import HtmlNode, tag
from understudy.screens.html.parts import (
    TrendCharts,
    chart_row,
    explains,
    finding_article,
    table,
)
from understudy.screens.html.promotion_tables import (
    arms_table,
    shown_arms,
    story_table,
    tests_table,
    verdict_notes,
)
from understudy.screens.html.server_parts import (
    LEDGER_ENDINGS,
)
from understudy.screens.html.version_table import versions_table
from understudy.screens.report import pictures
from understudy.screens.report.facts import ReportFacts
from understudy.telemetry.played import PlayedRecord
from understudy.telemetry.promotion_lines import (
    expect_text,
    playing_text,
    why_text,
)
from understudy.telemetry.report_parts import continuous_lines, opponents_met, reward_lines
from understudy.telemetry.status import Status
from understudy.telemetry.text import size, stamp

_ROWS, _FEW_ROWS = 40, 16
"""Of a table, at most; fewer of figures that are many and alike."""
_LEAST = 5
"""Matches of a tag that has a row: a win rate of fewer says nothing."""


class ReportSection(NamedTuple):
    """A part of the page with an entry in its contents."""

    key: str
    heading: str
    body: tuple[HtmlNode, ...]


def sections(facts: ReportFacts) -> Iterator[ReportSection]:
    """Those that have something to show, in the order of the page."""
    makers: tuple[tuple[str, str, Callable[[ReportFacts], Iterable[HtmlNode]]], ...] = (
        ("findings", "What is wrong, and what to do", _findings),
        ("results", "How it plays", _results),
        ("plays", "Who plays, and why", _plays),
        ("server", "What the server decided", _server),
        ("league", "Opponents and ratings", _league),
        ("population", "The population", _population),
        ("learning", "How it learns", _learning),
        ("versions", "Versions of the policy", _versions),
        ("problems", "What went wrong on the way", _problems),
        ("settings", "Settings that differ from the default", _settings),
        ("machine", "Files and machine", _machine),
        ("words", "Words in this report", _words),
    )
    for key, heading, make in makers:
        body = tuple(make(facts))
        if body:
            yield ReportSection(key, heading, body)


def _findings(facts: ReportFacts) -> Iterator[HtmlNode]:
    if not facts.findings:
        yield explains(
            "Understudy checks a run by its own data (the command is understudy doctor). No check "
            "found anything wrong."
        )
        return
    yield explains(
        "What the checks of understudy doctor found in the data of this run, the worst first. A "
        "problem keeps the run from its purpose, a warning may come to that, a note is worth "
        "knowing. The certainty says how sure a check is."
    )
    for one in facts.findings:
        yield finding_article(one)


def _plays(facts: ReportFacts) -> Iterator[HtmlNode]:
    status, now = facts.status, facts.status.promotion
    if now is None:
        if facts.kind == "ring" and status.playing is not None:
            yield explains(
                f"No evidence is asked for in this run (mode {status.mode}): {_player(status)}."
            )
        return
    unit = "segments" if now.served else "matches"
    yield explains(
        f"The bot's own rules (version 0) play until a version of the policy is proven better. A "
        f"version that is tested, the canary, is given a share of the {unit} by a recorded coin. "
        "The evidence E begins at 1 and grows with each result that speaks for the canary; at its "
        "threshold the canary becomes the champion. Another E grows with results against it and "
        "stops a harmful version early."
    )
    yield tag("p", tag("strong", "Now: "), now.in_units(playing_text(now)), ".")
    if why := why_text(now):
        yield tag("p", tag("strong", "Why: "), now.in_units(why), ".")
    if now.tests:
        yield tests_table(now.tests)
        for one in now.tests:
            expected = "a person is asked" if one.asks else now.in_units(expect_text(one))
            words = f"Expected of version {one.version}: "
            yield tag("p", tag("strong", words), expected, ".")
    yield from pictures.promotion_story(facts)
    if arms := shown_arms(now):
        yield arms_table(arms, unit=unit)
    if facts.promotion is not None and facts.promotion.verdicts:
        yield story_table(verdict_notes(facts.promotion), most=_ROWS)


def _player(status: Status) -> str:
    held = f"version {status.playing} of the policy" if status.playing else "the untrained policy"
    return f"the rules play, {held} is measured" if status.mode == "shadow" else f"{held} plays"


def _results(facts: ReportFacts) -> Iterator[HtmlNode]:
    charts, status = TrendCharts(facts.trends), facts.status
    shown = (run_charts.WIN_RATE, run_charts.RETURN, run_charts.DECISION_TIME, run_charts.DECISIONS)
    yield from chart_row(charts.draw(one) for one in shown)
    rows = _told_apart(status.played)
    if rows:
        yield table(
            "Win rates by player, then by tag of the match, over the whole run, with 95% "
            "intervals.",
            ("player", "matches with", "mode", "matches", "won", "95% interval"),
            [
                (one.player, one.tag or "all", one.mode or "unknown", f"{one.matches:,}",
                 f"{one.wins / one.matches:.0%}", _interval(one.wins, one.matches))
                for one in rows
            ],
            kinds="w..nnn",
        )  # fmt: skip
    if status.last_evaluation is not None:
        one = status.last_evaluation
        yield explains(
            f"In the last frozen evaluation, in which nothing is learned, version {one.version} "
            f"won {one.wins:,} of {one.matches:,} matches against {one.opponent} "
            f"({one.draws:,} drawn)."
        )


def _told_apart(played: Sequence[PlayedRecord]) -> list[PlayedRecord]:
    """Players, then their most played tags with enough matches; a tag that all their matches have
    says nothing."""
    totals = {(one.player, one.mode): one.matches for one in played if not one.tag}
    whole = [one for one in played if not one.tag and one.matches]
    tagged = [
        one
        for one in played
        if one.tag and _LEAST <= one.matches < totals.get((one.player, one.mode), 0)
    ]
    return [*whole[:_FEW_ROWS], *tagged[:_FEW_ROWS]]


def _server(facts: ReportFacts) -> Iterator[HtmlNode]:
    if facts.kind != "server":
        return
    status, counts = facts.status, facts.status.ledger
    if counts is not None:
        total = max(counts.opened, 1)
        yield table(
            f"The ledger: what became of each of the {counts.opened:,} decisions.",
            ("ending", "decisions", "share", "meaning"),
            [
                (name, f"{getattr(counts, name):,}", f"{getattr(counts, name) / total:.1%}", words)
                for name, words in LEDGER_ENDINGS.items()
            ],
            kinds=".nn.",
        )
    rewards = reward_lines(status.version_rewards)
    if rewards:
        yield explains(
            "The reward that the newest versions earn, and what other actions would have earned in "
            "their place (mean and 95% interval)."
        )
        yield tag("ul", *(tag("li", words) for _, words in rewards))
    lines = continuous_lines(status)
    if lines:
        yield table(
            "The learner behind the server, as it was last: the replay holds past decisions, a "
            "gate may hold an action back.",
            ("what", "now"),
            lines,
            kinds="w.",
        )
    charts = TrendCharts(facts.trends)
    shown = (run_charts.UTILISATION, run_charts.REPLAY_SIZE, run_charts.GATE_AGREEMENT)
    yield from chart_row(charts.draw(one) for one in shown)


def _league(facts: ReportFacts) -> Iterator[HtmlNode]:
    if facts.kind != "training":
        return
    met = opponents_met(facts.status)
    if met:
        yield table(
            "Opponents met in training, over the whole run; snapshots are earlier copies of the "
            "learner itself.",
            ("opponent", "matches", "won", "drawn", "lost", "95% interval of the win rate"),
            [
                (name, f"{one.matches:,}", f"{one.wins / one.matches:.0%}",
                 f"{one.draws / one.matches:.0%}", f"{one.losses / one.matches:.0%}",
                 _interval(one.wins, one.matches))
                for name, one in sorted(met.items())
            ][:_ROWS],
            kinds="wnnnnn",
        )  # fmt: skip
    yield from _benchmarks(facts)
    if facts.league is not None:
        state = facts.league
        rated = [("the learner now", state.learner, "")]
        rated += [(name, one, "scripted, holds the scale") for name, one in state.anchors.items()]
        rated += [(name, one, "snapshot") for name, one in state.ratings.items()]
        rated = sorted(rated, key=lambda row: -row[1].points)
        yield table(
            "Ratings: 1000 is the middle, 400 points more win ten times as often, as in chess; "
            "with what the true value is within, at 95%.",
            ("player", "rating", "give or take", "kind"),
            [(name, f"{one.points:.0f}", f"{one.margin:.0f}", kind) for name, one, kind in rated][
                :_ROWS
            ],
            kinds="wnnw",
        )


def _population(facts: ReportFacts) -> Iterator[HtmlNode]:
    lineage = facts.lineage
    if lineage is None:
        return
    yield explains(
        "Several agents train side by side, each with settings of its own; in each round the worst "
        "are replaced by changed copies of the best."
    )
    rows = lineage.of_round(lineage.rounds) if lineage.rounds else ()
    fitness = {row.agent: row.fitness for row in rows}
    yield table(
        f"The agents after {lineage.steps:,} steps of each (round {lineage.rounds:,}): their "
        "score against scripted opponents in the last round, and their settings now.",
        ("agent", "score", "learning rate", "entropy bonus", "shaping"),
        [
            (str(agent), "-" if (score := fitness.get(agent)) is None else f"{score:.0%}",
             f"{one.learning_rate:.3g}", f"{one.entropy_weight:.3g}", f"{one.shaping:.3g}")
            for agent, one in enumerate(lineage.settings[:_ROWS], start=1)
        ],
        kinds="nnnnn",
    )  # fmt: skip
    yield from pictures.family(facts)


def _benchmarks(facts: ReportFacts) -> Iterator[HtmlNode]:
    charts = TrendCharts(facts.trends)
    shown = (run_charts.benchmarks(facts.trends), run_charts.by_opponent(facts.trends))
    yield from chart_row(charts.draw(one) for one in shown)
    judged = facts.status.last_benchmark
    if judged is None or not judged.opponents:
        return
    rows = []
    for name, one in judged.opponents.items():
        count = one.wins + one.draws + one.losses
        share = f"{one.wins / count:.0%}" if count else "-"
        rows.append((name, f"{count:,}", share, _interval(one.wins, count)))
    yield table(
        f"The last checkpoint that was judged by frozen matches: version {judged.version} after "
        f"{judged.steps:,} steps.",
        ("opponent", "matches", "won", "95% interval"),
        rows[:_ROWS],
        kinds="wnnn",
    )


def _learning(facts: ReportFacts) -> Iterator[HtmlNode]:
    charts = TrendCharts(facts.trends)
    drawn = chart_row(
        [
            charts.draw(run_charts.ENTROPY),
            charts.draw(run_charts.ENTROPY_SHARE),
            charts.draw(run_charts.KL),
            charts.draw(run_charts.LOSSES) or charts.draw(run_charts.LOSS),
            charts.draw(run_charts.EXPLAINED_VARIANCE),
            charts.draw(run_charts.LEARNING_RATE),
            charts.draw(run_charts.SAMPLES),
            charts.draw(run_charts.SPEED),
            charts.draw(run_charts.LATENTS),
            charts.draw(run_charts.MEMORY),
        ]
    )
    if drawn:
        yield explains(
            "The learner trains the policy in batches. These charts show the numbers that tell "
            "whether that goes well; thin lines are single batches, thick ones their moving "
            "average."
        )
        yield from drawn
    yield from pictures.training_curves(facts)


def _versions(facts: ReportFacts) -> Iterator[HtmlNode]:
    if not facts.versions:
        return
    left = facts.versions_kept - len(facts.versions)
    yield versions_table(facts.versions, unit=facts.unit, left=left)


def _problems(facts: ReportFacts) -> Iterator[HtmlNode]:
    status = facts.status
    rows = [(stamp(one.t), one.where, one.message) for one in status.problems]
    if rows:
        yield table(
            f"The last of {status.errors:,} things that went wrong; the run went on after each.",
            ("when", "where", "what"),
            rows[-_ROWS:],
            kinds="w..",
        )
    if facts.unread:
        yield table(
            "Files that could not be read, so that this report has nothing of them.",
            ("what",),
            [(one,) for one in facts.unread[:_ROWS]],
        )


def _settings(facts: ReportFacts) -> Iterator[HtmlNode]:
    if not facts.settings:
        yield explains("Every setting is at its default.")
        return
    yield table(
        "Everything else is at its default (understudy config show lists all).",
        ("setting", "default", "here", "meaning"),
        [(tag("code", one.key), one.default, one.value, one.words) for one in facts.settings],
    )


def _machine(facts: ReportFacts) -> Iterator[HtmlNode]:
    status = facts.status
    spec = facts.identity.spec
    rows = [
        ("Run folder", status.run),
        ("Policy", f"{len(spec.features)} features, {spec.actions.options} options, "
                   f"network {spec.network}"),
        ("Waiting files", f"{status.buffer_file_count:,} ({size(status.buffer_bytes)})"),
        ("Learned from", f"{status.archive_file_count:,} ({size(status.archive_bytes)})"),
        ("Set aside as damaged", f"{status.quarantine_file_count:,}"),
        ("Learner", status.learner),
        *facts.machine,
    ]  # fmt: skip
    yield table(
        "What lies in the run folder, and the machine on which this report was made (a run does "
        "not record where it was played).",
        ("what", "value"),
        rows,
        kinds="w.",
    )


_GLOSSARY = {
    "policy": "the neural network that chooses what to do",
    "rules": "the bot's own program, which plays without learning; version 0",
    "version": "one saved state of the policy, with a number",
    "learner": "the process that trains the policy while the bot plays",
    "champion": "the version that should play, because evidence or a person says so",
    "canary": "a version that is being tested in a share of the matches",
    "episode": "the record of one match: what was seen, decided and rewarded",
    "segment": "a stretch of an endless match, behind a server",
    "reward": "a number after each decision: how good what followed was",
    "batch": "episodes that are trained on together",
    "checkpoint": "a version of a training session, judged while training goes on",
    "95% interval": "a range that holds the true value in 95 of 100 such cases",
}


def _words(_: ReportFacts) -> Iterator[HtmlNode]:
    rows: list[HtmlNode] = []
    for word, meaning in _GLOSSARY.items():
        rows += [tag("dt", word), tag("dd", meaning)]
    yield tag("dl", *rows, class_="words")


def _interval(wins: int, matches: int) -> str:
    low, high = wilson(wins, matches)
    return f"{low:.0%} to {high:.0%}"
