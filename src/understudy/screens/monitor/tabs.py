"""The tabs of a run: which there are, which is opened first, and the panels of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from understudy.core.opponents import kind_of
from understudy.core.statistics import margin, points
from understudy.screens.monitor import parts
from understudy.screens.monitor.growth import Growth
from understudy.screens.monitor.rows import Panel, Row
from understudy.telemetry.history import SNAPSHOTS
from understudy.telemetry.played import PlayedRecord
from understudy.telemetry.report_parts import reward_lines, waits
from understudy.telemetry.run_view import RunView, ServerStatus
from understudy.telemetry.status import LedgerCounts, Status, WinRecord
from understudy.telemetry.text import Lines, many, plain, stamp

Tab: TypeAlias = Literal["ring", "training", "league", "server", "log"]
TABS: tuple[Tab, ...] = ("ring", "training", "league", "server", "log")
_SHARES = (0.0, 1.0)
_CURVES = (
    ("loss", "Loss", "{:.4f}"),
    ("policy_loss", "Policy loss", "{:.4f}"),
    ("value_loss", "Value loss", "{:.4f}"),
    ("entropy", "Entropy", "{:.3f}"),
    ("kl", "KL", "{:.4f}"),
    ("explained_variance", "Explained", "{:.2f} of the variance"),
    ("clip_share", "Clipped", "{:.1%}"),
    ("gradient_norm", "Gradient", "{:.3g}"),
    ("learning_rate", "Step size", "{:.2g}"),
    ("samples_per_insert", "Reuse", "{:.1f} samples an insert"),
    ("behaviour_kl", "Behaviour", "KL {:.2g}"),
    ("steps_s", "Speed", "{:,.0f} steps a second"),
)
_LATELY = 20.0


def kind(view: RunView) -> Tab:
    """What the run is: a bot's ring, training in the arena or an environment, or a server."""
    now = view.status
    if now.served or view.server is not None:
        return "server"
    return "training" if now.steps and not now.mode else "ring"


def tabs(view: RunView) -> tuple[Tab, ...]:
    """The tabs that have something to show, that of the run's kind first."""
    now, first = view.status, kind(view)
    has = {
        "ring": first == "ring",
        "training": first == "training" or bool(now.batches_trained),
        "league": bool(_league(view)),
        "server": first == "server",
        "log": bool(view.recent),
    }
    return (first, *(one for one in TABS if has[one] and one != first))


def tab_name(view: RunView, tab: Tab) -> str:
    """What a tab is called: a bot has no league, but players and verdicts about them."""
    return "players" if tab == "league" and kind(view) != "training" else tab


def panels(view: RunView, tab: Tab, new: Growth) -> list[Panel]:
    """The panels of a tab, the most important first."""
    match tab:
        case "training":
            return [*parts.problems(view), *_training(view, new)]
        case "league":
            return _league(view)
        case "server":
            return [*parts.problems(view), *_server(view, new)]
        case "log":
            return []
    return [
        *parts.problems(view),
        parts.who_plays(view),
        parts.results(view, new),
        parts.learner(view),
        parts.files(view, new),
    ]


# --- training ------------------------------------------------------------------------------------


def _training(view: RunView, new: Growth) -> list[Panel]:
    curves = Panel("Curves", tuple(_curves(view)), side="right")
    model = Panel("Model", _only(parts.files(view, new), "Version", "Files"))
    if kind(view) == "training":
        return [_progress(view, new), model, curves]
    learner = Panel("Learner", _only(parts.learner(view), "State", "Load", "Batches"))
    return [learner, model, curves]


def _only(panel: Panel, *labels: str) -> tuple[Row, ...]:
    return tuple(row for row in panel.rows if row.label in labels)


def _progress(view: RunView, new: Growth) -> Panel:
    now = view.status
    rows = [Row("Steps", f"{now.steps:,}", rank=0, new=parts.added(new.decisions))]
    rows += parts.trend_row(view, "steps_s", "Speed", "{:,.0f} steps a second", rank=1)
    finished = now.wins + now.defeats + now.ties
    text = f"{now.matches:,}"
    rows.append(Row("Matches", text, rank=1, new=parts.added(new.matches)))
    if finished:
        trend = view.trends.get("win_rate")
        lately = _share_lately(view)
        text = f"{parts.won(now.wins, finished)} of {finished:,}{lately}"
        rows.append(Row("Win rate", text, rank=0, trend=trend, bounds=_SHARES))
    rows += parts.trend_row(view, "return", "Return", "{:.3g} a match", rank=1)
    if now.stage:
        since = f", since step {now.stage_since:,}" if now.stage_since else ""
        rows.append(Row("Stage", f"{plain(now.stage)}{since}", rank=1))
    state = [str(now.learner)]
    if now.learner_pid is not None:
        state.append(f"process {now.learner_pid}")
    rows.append(Row("Learner", ", ".join(state), rank=1))
    if now.last_note:
        rows.append(Row("Note", plain(now.last_note), "muted", rank=3))
    return Panel("Training", tuple(rows))


def _share_lately(view: RunView) -> str:
    trend = view.trends.get("win_rate")
    mean = None if trend is None else trend.mean(of=trend.last(200.0))
    return "" if mean is None else f"; {mean:.0%} lately"


def _curves(view: RunView) -> list[Row]:
    """What the batches were like of late, and since the start."""
    rows: list[Row] = []
    for place, (name, label, form) in enumerate(_CURVES):
        rows += parts.trend_row(view, name, label, form, rank=2 + place, last=_LATELY)
    return rows or [Row("", "no batch yet", "muted")]


# --- league --------------------------------------------------------------------------------------


def _league(view: RunView) -> list[Panel]:
    now = view.status
    found = [
        Panel("Opponents", tuple(_opponents(now.opponents))),
        Panel("Players", tuple(_players(now))),
        Panel("Standing", tuple(_standing(now)), side="right"),
        Panel("Benchmark", tuple(_benchmark(now)), side="right"),
        Panel("Verdicts", tuple(_verdicts(now)), side="right"),
    ]
    return [panel for panel in found if panel.rows]


def _record(label: str, wins: int, matches: int, *, rank: int) -> Row:
    text = f"{parts.won(wins, matches)} of {matches:,}"
    return Row(label, f"{text:<28}", rank=rank, bars=(("", wins / matches),))


def _opponents(opponents: dict[str, WinRecord]) -> list[Row]:
    """Whom `train` met; snapshots together, since there can be hundreds."""
    groups: dict[str, list[WinRecord]] = {}
    for name, one in opponents.items():
        if one.matches:
            groups.setdefault(kind_of(name, SNAPSHOTS), []).append(one)
    return [
        _record(
            plain(name, limit=10),
            sum(one.wins for one in records),
            sum(one.matches for one in records),
            rank=place,
        )
        for place, (name, records) in enumerate(groups.items(), 1)
    ]


def _players(now: Status) -> list[Row]:
    """Who played the matches of a bot, and how that went, all together and by tag."""
    rows = []
    whole = {(one.player, one.mode): one.matches for one in now.played if not one.tag}
    told = [
        one
        for one in now.played
        # A tag that all matches of a player have repeats the row of all its matches.
        if one.matches and not (one.tag and one.matches == whole.get((one.player, one.mode)))
    ]
    for place, one in enumerate(told, 1):
        rows.append(_record(_player_label(one), one.wins, one.matches, rank=place))
        if one.tag:
            rows[-1] = rows[-1]._replace(text=f"{rows[-1].text}{plain(one.tag, limit=30):<32}")
    return rows[:24]


def _player_label(one: PlayedRecord) -> str:
    return plain(one.player.replace("version ", "v"), limit=10)


def _standing(now: Status) -> list[Row]:
    rows = []
    if now.rating is not None:
        rated = f"{points(now.rating.mu):.0f} +- {margin(now.rating.sigma):.0f}"
        rows.append(Row("Rating", f"{rated} (95% of the belief)", rank=0))
    if now.stage:
        since = f", since step {now.stage_since:,}" if now.stage_since else ""
        rows.append(Row("Stage", f"{plain(now.stage)}{since}", rank=1))
    if now.snapshots:
        newest = f", the newest is {plain(now.last_snapshot)}" if now.last_snapshot else ""
        rows.append(Row("Snapshots", f"{now.snapshots:,} in the league{newest}", rank=1))
    return rows


def _benchmark(now: Status) -> list[Row]:
    judged = now.last_benchmark
    if judged is None:
        return []
    rows = [Row("Version", f"{judged.version} at step {judged.steps:,}, frozen matches", rank=0)]
    if judged.matches:
        rows.append(Row("Reward", f"{judged.reward:.4g} of {judged.matches:,}", rank=0))
    for place, (name, one) in enumerate(judged.opponents.items(), 1):
        if matches := one.wins + one.draws + one.losses:
            rows.append(_record(plain(name, limit=10), one.wins, matches, rank=place))
    return rows


def _verdicts(now: Status) -> list[Row]:
    if now.promotion is None:
        return []
    return [
        Row(
            plain(f"v{one.version}", limit=10),
            f"{plain(one.kind, limit=30)} {stamp(one.at)}: {plain(one.words, limit=300)}",
            rank=place,
            wraps=True,
        )
        for place, one in enumerate(reversed(now.promotion.verdicts), 1)
    ]


# --- server --------------------------------------------------------------------------------------


def _server(view: RunView, new: Growth) -> list[Panel]:
    now, live = view.status, view.server
    decided = [*_ledger(now.ledger, new)]
    decided += parts.trend_row(view, "decisions_s", "Rate", "{:,.1f} a second", rank=1, last=3.0)
    if (row := _answers(view)) is not None:
        decided.append(row)
    decided += [] if live is None else _traffic(live)
    files = parts.files(view, new)
    if live is not None:  # a server does not tell its files
        files = files._replace(rows=_waiting(live))
    found = [
        parts.who_plays(view),
        Panel("Decisions", tuple(decided), side="right"),
        Panel("Gate", tuple(_gate(view))),
        Panel("Reward", tuple(_reward(view)), side="right"),
        parts.learner(view),
        files,
    ]
    return [panel for panel in found if panel.rows]


def _ledger(counts: LedgerCounts | None, new: Growth) -> Sequence[Row]:
    if counts is None:
        return []
    ended = (
        f"{counts.settled:,} settled + {counts.expired:,} expired + {counts.superseded:,} "
        f"superseded + {counts.orphaned:,} orphaned + {counts.open:,} open"
    )
    return [
        Row("Ledger", f"{counts.opened:,} decisions", rank=0, new=parts.added(new.decisions)),
        Row("", f"= {ended}", rank=2, wraps=True),
    ]


def _traffic(live: ServerStatus) -> list[Row]:
    text = (
        f"{live.clients:,}, with {many(live.connections, 'connection', 'connections')} and "
        f"{many(live.territories, 'territory', 'territories')}"
    )
    rows = [Row("Clients", text, rank=1)]
    if live.degraded:
        causes = ", ".join(f"{plain(name)} {n:,}" for name, n in live.safe_actions.items())
        text = f"{live.degraded:,} safe actions: {causes}"
        rows.append(Row("DEGRADED", text, "warning", rank=1))
    refused = {**live.errors, **live.refusals}
    if refused:
        codes = ", ".join(f"{plain(name)} {n:,}" for name, n in sorted(refused.items()))
        rows.append(Row("Refused", codes, "warning", rank=3))
    return rows


def _answers(view: RunView) -> Row | None:
    live = view.server
    if live is None or live.answer_ms.p50 is None or live.answer_ms.p99 is None:
        return None
    text = f"p50 {live.answer_ms.p50:.2f} ms, p99 {live.answer_ms.p99:.2f} ms"
    return Row("Answer", text, rank=1, trend=view.trends.get("answer_p99_ms"))


def _gate(view: RunView) -> list[Row]:
    live, told = view.server, view.status.continuous
    rows = []
    if live is not None and live.decisions:
        text = f"{plain(live.gate, limit=40)}: {live.sent:,} sent, {live.waited:,} waited"
        rows.append(Row("Verdicts", f"{text}, {live.explored:,} explored", rank=1))
        if live.gate_circuit != "closed":
            words = f"{live.gate_circuit.upper()}: the gate missed {live.gate_misses:,} deadlines"
            rows.append(Row("Circuit", words, "problem", rank=0))
    if told is not None and told.agreement is not None:
        text = f"judges {told.agreement:.0%} of what is sampled as it did at first"
        rows.append(Row("Agreement", text, rank=1))
    return rows


def _reward(view: RunView) -> list[Row]:
    live = view.server
    if live is not None:
        if not live.ledger.settled:
            return []
        text = f"{live.recent_reward:.3f} lately, {live.mean_reward:.3f} since the start"
        return [Row("Reward", text, rank=1, trend=view.trends.get("recent_reward"))]
    return _labelled(reward_lines(view.status.version_rewards), first=2)


def _labelled(lines: Lines, *, first: int) -> list[Row]:
    return [
        Row(label, text, rank=first + place, wraps=True)
        for place, (label, text) in enumerate(lines)
    ]


def _waiting(live: ServerStatus) -> tuple[Row, ...]:
    text = waits(live.waiting_episodes, served=True)
    return Row("Version", f"{live.version} decides", rank=0), Row("Buffer", text, rank=1)
