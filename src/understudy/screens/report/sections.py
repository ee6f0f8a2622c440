"""The sections of a report: each is a heading, and figures and tables with an explanation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from understudy.core.opponents import kind_of
from understudy.core.statistics import wilson
from understudy.registry.scores import Score
from understudy.screens.report import pictures
from understudy.screens.report.facts import ReportFacts, VersionRow
from understudy.screens.report.html import HtmlNode, tag
from understudy.screens.report.parts import TrendCharts, chart_row, explains, table
from understudy.telemetry.history import SNAPSHOTS
from understudy.telemetry.played import PlayedRecord
from understudy.telemetry.promotion_lines import (
    expect_text,
    player_name,
    playing_text,
    stratum_name,
    why_text,
)
from understudy.telemetry.promotion_status import TrialStatus
from understudy.telemetry.report_parts import continuous_lines, reward_lines
from understudy.telemetry.status import Status, WinRecord
from understudy.telemetry.text import evidence_text, size, stamp
from understudy.telemetry.verdicts import VERDICTS

_ROWS, _FEW_ROWS = 40, 16
"""Of a table, at most; fewer of figures that are many and alike."""
_LEAST = 5
"""Matches of a tag that has a row: a win rate of fewer says nothing."""
_BENCHMARKS, _MET = "benchmark.", "win_rate."
"""Trends by opponent."""


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
        yield tag(
            "article",
            tag("span", one.weight, class_=f"badge {one.weight}"),
            " ",
            tag("span", one.certainty, class_="soft"),
            tag("h3", one.title),
            tag("ul", *(tag("li", line) for line in one.evidence)),
            tag("p", tag("strong", "Next: "), one.next_step),
            tag("p", "More in ", tag("code", one.link), ".", class_="soft"),
            class_=f"finding {one.weight}",
        )


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
        yield table(
            "Tests that run now: results of both sides, and the evidence so far with how much is "
            "enough.",
            ("tested", "its result", "against", "its result", "E for it", "E against it"),
            [_test_row(one) for one in now.tests],
            kinds="wwwwww",
        )
        for one in now.tests:
            expected = "a person is asked" if one.asks else now.in_units(expect_text(one))
            words = f"Expected of version {one.version}: "
            yield tag("p", tag("strong", words), expected, ".")
    yield from pictures.promotion_story(facts)
    arms = [one for one in now.results if one.matches][:_FEW_ROWS]
    if arms:
        yield table(
            f"Mean results in assigned {unit} (a win counts 1, a tie one half) with 95% intervals.",
            ("player", "where", unit, "mean result", "95% interval"),
            [
                (player_name(one.version), stratum_name(one.stratum, 60) or "all",
                 f"{one.matches:,}", f"{one.mean:.0%}", f"{one.low:.0%} to {one.high:.0%}")
                for one in arms
            ],
            kinds="w.nnn",
        )  # fmt: skip
    yield from _story(facts)


def _player(status: Status) -> str:
    held = f"version {status.playing} of the policy" if status.playing else "the untrained policy"
    return f"the rules play, {held} is measured" if status.mode == "shadow" else f"{held} plays"


def _test_row(one: TrialStatus) -> tuple[str, ...]:
    return (
        f"version {one.version}{' (recheck)' if one.recheck else ''}",
        f"{one.canary.mean:.0%} of {one.canary.matches:,}",
        player_name(one.against),
        f"{one.incumbent.mean:.0%} of {one.incumbent.matches:,}",
        f"{evidence_text(one.better)} of {one.better_enough:.0f}",
        f"{evidence_text(one.worse)} of {one.worse_enough:g}",
    )


def _story(facts: ReportFacts) -> Iterator[HtmlNode]:
    told = facts.promotion
    if told is None or not told.verdicts:
        return
    shown = told.verdicts[-_ROWS:]
    left = len(told.verdicts) - len(shown)
    earlier = f" {left:,} earlier ones are left out." if left else ""
    yield table(
        f"The story so far: every decision about who plays, newest last.{earlier}",
        ("when", "version", "what happened", "why"),
        [
            (stamp(told.times.get(one.sequence, 0.0)), player_name(one.version),
             f"{one.kind}: {VERDICTS[one.kind].meaning}" if one.kind in VERDICTS else one.kind,
             one.words)
            for one in shown
        ],
        kinds="ww..",
    )  # fmt: skip


def _results(facts: ReportFacts) -> Iterator[HtmlNode]:
    charts, status = TrendCharts(facts.trends), facts.status
    yield from chart_row(
        [
            charts.of(
                "Win rate",
                "The share of matches won, as a moving average; the band is its 95% interval. The "
                "horizontal axis is time of play; dashed lines are pauses.",
                {"win_rate": "the policy", "rules_win_rate": "the rules"},
                "win rate",
            ),
            charts.of(
                "Return of a match",
                "The sum of all rewards of a match; reward is what the learner is told to "
                "increase. The thin line shows single values, the thick one their moving average.",
                {"return": "return"},
            ),
            charts.of(
                "Time of a decision",
                "How long the bot waited for a decision: in half of all cases less than p50, in 99 "
                "of 100 less than p99.",
                {"decision_p50_us": "p50", "decision_p99_us": "p99"},
                "microseconds",
            ),
            charts.of(
                "Decisions in a match",
                "How many decisions a match takes.",
                {"decisions": "decisions"},
            ),
        ]
    )
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
        meanings = {
            "settled": "their reward is known, and they are learned from",
            "expired": "no reward came in time",
            "superseded": "another decision replaced them before their reward was known",
            "orphaned": "the game ended or went away before their reward was known",
            "open": "they wait for their reward",
        }
        total = max(counts.opened, 1)
        yield table(
            f"The ledger: what became of each of the {counts.opened:,} decisions.",
            ("ending", "decisions", "share", "meaning"),
            [
                (name, f"{getattr(counts, name):,}", f"{getattr(counts, name) / total:.1%}", words)
                for name, words in meanings.items()
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
    yield from chart_row(
        [
            charts.of(
                "Load of the learner",
                "The share of its time that the learner spends on batches.",
                {"utilisation": "busy"},
                "share",
            ),
            charts.of("Replay", "Items that the learner can sample from.", {"buffer": "items"}),
            charts.of(
                "Gate",
                "The share of sampled decisions that the gate judges as it did at first; it falls "
                "where the game drifts.",
                {"gate_agreement": "agreement"},
                "share",
            ),
        ]
    )


def _league(facts: ReportFacts) -> Iterator[HtmlNode]:
    if facts.kind != "training":
        return
    groups: dict[str, WinRecord] = {}
    for name, one in facts.status.opponents.items():
        kind = kind_of(name, SNAPSHOTS)
        so_far = groups.get(kind, WinRecord())
        groups[kind] = WinRecord(
            so_far.wins + one.wins, so_far.draws + one.draws, so_far.losses + one.losses
        )
    met = {name: one for name, one in groups.items() if one.matches}
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
    names = {
        name: name.removeprefix(_BENCHMARKS)
        for name in facts.trends
        if name.startswith(_BENCHMARKS)
    }
    yield from chart_row(
        [
            charts.of(
                "Frozen benchmarks",
                "The win rate of checkpoints in matches in which nothing is learned, by opponent.",
                names,
                "win rate",
            ),
            charts.of(
                "Win rate by opponent",
                "The share of matches of training that were won; 'self' is all earlier copies "
                "together.",
                {name: name.removeprefix(_MET) for name in facts.trends if name.startswith(_MET)},
                "win rate",
            ),
        ]
    )
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
            charts.of(
                "Entropy",
                "How undecided the policy is. It should fall slowly; near 0 the policy always does "
                "the same, and a flat line at the top means that it has learned nothing.",
                {"entropy": "entropy"},
            ),
            charts.of(
                "Entropy",
                "How undecided the policy is, as a share of the largest possible: near 0 it always "
                "does the same.",
                {"entropy_share": "entropy"},
                "share",
            ),
            charts.of(
                "KL divergence",
                "How far one update moves the policy. Very large values mean steps that are too "
                "long; exactly 0 means that nothing moves.",
                {"kl": "of an update", "behaviour_kl": "from what played"},
            ),
            charts.of(
                "Loss",
                "What training makes small: of the value (how well results are foreseen) and of "
                "the policy. It need not fall while play improves.",
                {"value_loss": "value", "policy_loss": "policy"},
            )
            or charts.of("Loss", "What training makes small.", {"loss": "loss"}),
            charts.of(
                "Explained variance",
                "How much of the results the value foresees: 1 is all of it, 0 is nothing.",
                {"explained_variance": "explained variance"},
            ),
            charts.of(
                "Learning rate",
                "How long a step of training is.",
                {"learning_rate": "learning rate"},
            ),
            charts.of(
                "Samples per insert",
                "How often each decision was trained on; far more than intended means memorising.",
                {"samples_per_insert": "samples"},
            ),
            charts.of(
                "Speed of training",
                "Decisions trained on in a second of training.",
                {"steps_s": "decisions a second"},
            ),
            charts.of(
                "Latents of opponents",
                "A latent is what the policy makes of its opponent: how far latents lie from their "
                "mean, and how far those of different opponents lie from each other.",
                {"latent_spread": "spread", "latent_apart": "between opponents"},
            ),
            charts.of("Memory", "Resident memory of the learner, in MiB.", {"memory_mb": "memory"}),
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
    more = f" {left:,} more are kept." if left > 0 else ""
    names = ("version", "made", facts.unit, "loss", "won", "reward", "role", "kept as")
    rows = [_version_row(row) for row in facts.versions]
    # A column without a value says nothing.
    columns = [one for one in zip(names, zip(*rows, strict=True), strict=True) if any(one[1])]
    yield table(
        "A version is one state of the policy that was saved; the champion is the one that should "
        "play, the candidate is the newest. Results are counted with those of neighbouring "
        f"versions until there are enough; the last column says why it is kept on disk.{more}",
        [name for name, _ in columns],
        zip(*(cells for _, cells in columns), strict=True),
        kinds="nwn".ljust(len(columns) - 2, "w"),
    )


def _version_row(row: VersionRow) -> tuple[str, ...]:
    manifest, loss = row.manifest, row.manifest.metrics.get("loss")
    learned = manifest.counters.get("matches", manifest.counters.get("ingested", 0))
    return (
        str(manifest.number),
        stamp(manifest.created_at),
        f"{learned:,}",
        "" if loss is None else f"{loss:.4f}",
        *_score(row.score),
        ", ".join(row.roles),
        ", ".join(row.kept),
    )


def _score(score: Score | None) -> tuple[str, str]:
    """Won, and reward, as far as there are enough results; counted with neighbouring versions."""
    if score is None:
        return "", ""
    rate, mean = score.win_rate, score.mean_return or score.mean_reward
    won = "" if rate is None else f"{rate.mean:.0%} of {score.matches:,}"
    return won, "" if mean is None else f"{mean.mean:.3g} ({mean.low:.3g} to {mean.high:.3g})"


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
