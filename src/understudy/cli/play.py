"""`understudy play`: matches of a built-in game, with the learner in the background.

With `--url` the game is a client of a server (`understudy serve territory`), which decides.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from understudy.cli.options import JsonAtEnd, NewRun, SetOption, WithDashboard, config_from
from understudy.cli.output import commands, summary_row
from understudy.cli.progress import ProgressDisplay, ProgressLine, bar, ending, session_line
from understudy.core.errors import ConfigError, nearest
from understudy.telemetry.layout import Part, Width, wrapped
from understudy.telemetry.promotion_stage import stages_text
from understudy.telemetry.text import duration, plain, say

if TYPE_CHECKING:
    from understudy.adapters.territory.remote_play import RemoteProgress, RemoteSummary
    from understudy.match.tally import Tally
    from understudy.registry.run_folder import RunFolder
    from understudy.run.play import PlayProgress, PlaySession, PlaySummary
    from understudy.server.ring_metrics import MetricsEndpoint
    from understudy.telemetry.promotion_status import Stage, TrialStatus
    from understudy.telemetry.status import Status

_MINUTES = 1.5
_NARROW = 72
"""Below it a win rate has no bar."""
_STAGE_EVERY_S = 30.0
_RULES = "the rules"
_TOKEN_BYTES = 4096


def _play_on_server(game: str, *, token_file: Path | None, json: bool, **options: Any) -> NoReturn:
    """`options` are fields of `RemoteSession`; None stands for the default."""
    if game != "territory":
        raise ConfigError(f"--url: only territory is played on a server, not {game}")
    from understudy.adapters.territory.remote_play import RemoteSession, play_remote

    if options["ticks"] is None and options["minutes"] is None:
        options["minutes"] = _MINUTES
    given = {name: value for name, value in options.items() if value is not None}
    session = RemoteSession(**given, token=None if token_file is None else _token(token_file))
    with ProgressDisplay(quiet=json, before=None) as display:
        display.note_wrapped(
            f"understudy: territory on {session.url}, {session.territories} territories, "
            f"up to {session.speed:g} times real time"
        )
        summary = play_remote(session, show=lambda one: display.show(_remote_line(one)))
        display.end(summary, lambda width: _remote_summary(summary, width))


def _remote_line(progress: RemoteProgress) -> ProgressLine:
    speed = progress.decisions / max(progress.elapsed_s, 1e-9)
    parts = [
        Part(f"{speed:>5,.0f} decisions/s", 20),
        Part(f"reward {progress.mean_reward:>+6.3f}"),
        Part(f"p50 {progress.percentile_ms(50):.1f} ms", 40),
        Part(f"p99 {progress.percentile_ms(99):.1f} ms", 30),
        Part(f"version {progress.version}", 50),
    ]
    return session_line(progress, parts)


def _remote_summary(summary: RemoteSummary, width: Width) -> str:
    told, progress = summary.as_dict(), summary.progress
    done = max(progress.decisions, 1)
    interrupted = "Interrupted: the server keeps everything up to here."
    rows = {
        "Decisions": f"{progress.decisions} in {duration(summary.seconds)}, "
        f"{progress.ticks} ticks, {told['speed']:.0f} times real time",
        "Mean reward": f"{told['mean_reward']:+.3f}, of the last {len(progress.rewards)}: "
        f"{progress.mean_reward:+.3f}",
        "Spawned": f"{progress.spawns / done:.0%} of decisions, the gate waited in "
        f"{progress.waits / done:.0%}; the busiest chunk had {told['largest_chunk_share']:.0%}",
        "An answer": f"p50 {progress.percentile_ms(50):.1f} ms, "
        f"p99 {progress.percentile_ms(99):.1f} ms",
        "Version": f"{progress.version}",
    }
    if progress.reconnects or progress.unanswered or progress.degraded:
        rows["Trouble"] = (
            f"{progress.reconnects} reconnections, {progress.unanswered} without "
            f"an answer, {progress.degraded} degraded"
        )
    if progress.refused:
        rows["Refused"] = f"{progress.refused}, the last: {plain(progress.problem)}"
    lines = ["", interrupted if summary.interrupted else "Done.", ""]
    for label, text in rows.items():
        lines += summary_row(label, text, width)
    return "\n".join(lines)


def _token(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")[:_TOKEN_BYTES].strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--token-file {path}: cannot be read ({error})") from error


_OWN_SCREEN = {"report.status_every_s": 0, "report.statistics_every_matches": 0}
"""`play` has a screen of its own; the bot's reports come only where a person asks for them."""


def play(
    game: Annotated[str, typer.Argument(help="Which game; see `understudy games`.")],
    difficulty: Annotated[
        str | None, typer.Option(help="A difficulty of the game (default: hard), or `adaptive`.")
    ] = None,
    matches: Annotated[int | None, typer.Option(help="How many matches to play.")] = None,
    minutes: Annotated[float | None, typer.Option(help="How long to play instead.")] = None,
    evaluate: Annotated[
        int | None,
        typer.Option("--eval", help="Frozen matches at the end (default: 200; with --json: 0)."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seeds matches and learning (default: the run's, else 0).")
    ] = None,
    run: NewRun = None,
    network: Annotated[
        str | None, typer.Option(help="The network of a new run: mlp, decision-transformer, ...")
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(help="learn (the default), shadow, auto or play; with --rules: auto."),
    ] = None,
    rules: Annotated[
        str | None, typer.Option(help="The bot that is the rules (default: the game's own).")
    ] = None,
    evidence: Annotated[
        str | None,
        typer.Option(help="In mode auto: matches (the default), or simulator: pairs beside them."),
    ] = None,
    learner: Annotated[
        str | None, typer.Option(help="process (the default), thread or off.")
    ] = None,
    pace: Annotated[
        str | None, typer.Option(help="free (the default), or learner: wait while it is behind.")
    ] = None,
    lockstep: Annotated[
        bool, typer.Option(help="One process, serially: the same bits for the same seed.")
    ] = False,
    metrics: Annotated[
        int | None,
        typer.Option(
            help="Serve /metrics for Prometheus on this port of 127.0.0.1; 0: a free one."
        ),
    ] = None,
    dashboard: WithDashboard = False,
    set_: SetOption = None,
    url: Annotated[
        str | None, typer.Option(help="Play territory on this server: ws://127.0.0.1:8765/ws.")
    ] = None,
    territories: Annotated[
        int | None, typer.Option(help="With --url: matches side by side (default: 20).")
    ] = None,
    speed: Annotated[
        float | None, typer.Option(help="With --url: times real time, at most (default: 60).")
    ] = None,
    ticks: Annotated[
        int | None, typer.Option(help="With --url: how many ticks to play instead.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="With --url: a file with the server's token.")
    ] = None,
    json: JsonAtEnd = False,
) -> None:
    """Play a built-in game while a learner improves the bot in the background.

    Without --matches or --minutes: 90 seconds. Ctrl-C or SIGTERM ends early and keeps
    everything (exit code 130 or 143); pressed again, it does not wait for the learner.

    In mode learn the newest version plays. In mode shadow the rules play and versions are
    measured; in mode auto the rules play until a version is better by evidence; in mode play
    the champion plays and nothing is learned.

    With --url the game runs here and the decisions come from `understudy serve territory`.

    Example: understudy play swarm --minutes 3 --difficulty hard --eval 400
    """
    for_here = {
        "--difficulty": difficulty, "--matches": matches, "--eval": evaluate, "--run": run,
        "--network": network, "--mode": mode, "--rules": rules, "--evidence": evidence,
        "--learner": learner, "--pace": pace,
        "--lockstep": lockstep or None, "--metrics": metrics,
        "--dashboard": dashboard or None, "--set": set_,
    }  # fmt: skip
    for_there = {
        "--territories": territories, "--speed": speed, "--ticks": ticks,
        "--token-file": token_file,
    }  # fmt: skip
    if url is not None:
        _refuse(for_here, "belongs to the server: start it with `understudy serve territory`")
        _play_on_server(
            game, url=url, territories=territories, speed=speed, ticks=ticks, minutes=minutes,
            seed=seed, token_file=token_file, json=json,
        )  # fmt: skip
    _refuse(for_there, "needs --url, the address of a server")
    difficulty, learner = difficulty or "hard", learner or "process"
    from understudy.policy.presets import network as network_named
    from understudy.registry.run_folder import RunFolder, new_run, newest
    from understudy.run.play import ADAPTIVE, PlaySession, judging_difficulty
    from understudy.run.play import play as play_session
    from understudy.supervise.dashboard import dashboard_beside

    _check_difficulty(game, difficulty, ADAPTIVE)
    before = RunFolder.kept(run)
    if seed is None:
        seed = before.config.learner.seed if before else 0
    new = network_named(network or "mlp", flag="--network")
    mode = mode or ("learn" if rules is None else "auto")
    defaults: dict[str, object] = {"learner.seed": seed, **_OWN_SCREEN}
    if evidence is not None:
        if mode != "auto":
            raise ConfigError(f"--evidence: versions are tested in mode auto, not in mode {mode}")
        if any(one.partition("=")[0].strip() == "promotion.evidence" for one in set_ or ()):
            raise ConfigError("--evidence: given as --set promotion.evidence too; leave one out")
        defaults["promotion.evidence"] = evidence
    session = PlaySession(
        game=game,
        run=run or new_run(game),
        difficulty=difficulty,
        matches=matches,
        minutes=_MINUTES if matches is None and minutes is None else minutes,
        evaluate=(0 if json else 200) if evaluate is None else evaluate,
        seed=seed,
        mode=mode,  # type: ignore[arg-type]  # checked by PlaySession
        rules=rules or "",
        learner=learner,  # type: ignore[arg-type]  # likewise
        pace=pace or "free",  # type: ignore[arg-type]  # likewise
        lockstep=lockstep,
        network=before.spec.network if before and network is None else new,
        config=config_from(
            set_ or [],
            base=before.config if before else None,
            defaults=defaults,
        ),
    )
    with ProgressDisplay(quiet=json, before=newest(before), tells_new=mode == "learn") as display:
        display.note_wrapped(f"understudy: {game} v {difficulty}, run folder {session.run}")
        for line in _opening(session, before):
            display.note_wrapped(line)
        stages = _StageNotes()

        def show(progress: PlayProgress) -> None:
            for news in (*progress.news, *stages.due(progress)):
                display.note_news(f"match {progress.played}: {news}")
            progress.news.clear()
            if endpoint is not None:
                endpoint.metrics.promotion = progress.promotion
            display.show(_line(progress))

        endpoint = None if metrics is None else _metrics_endpoint(session, metrics)
        with (
            endpoint or contextlib.nullcontext(),
            dashboard_beside(session.run, wanted=dashboard),
        ):
            summary = play_session(session, show=show, show_frozen=_frozen_line(display, session))
        opponent = judging_difficulty(difficulty)
        display.end(
            summary,
            lambda width: _summary(summary, width, opponent=opponent),
            run=summary.status.run,
        )


def _metrics_endpoint(session: PlaySession, port: int) -> MetricsEndpoint:
    """Listens already, so that a port that is taken is an error before the first match."""
    from understudy.core.clock import SystemClock
    from understudy.core.dependencies import needs
    from understudy.telemetry.status import patience

    if session.lockstep:
        raise ConfigError("--metrics: a session in lockstep has a clock of its own; leave one out")
    with needs("--metrics needs prometheus-client", extra="metrics"):
        from understudy.server.ring_metrics import MetricsEndpoint

    endpoint = MetricsEndpoint(
        session.run, SystemClock(), port=port, patience=patience(session.config)
    )
    say(f"understudy: metrics at {endpoint.url}", file=sys.stderr)
    return endpoint


class _StageNotes:
    """The line with the stage, who plays, why and what would change it: where the stage changes,
    and every half a minute in which the line changed. A verdict, which says why, replaces it."""

    def __init__(self) -> None:
        self._stage: Stage | None = None
        self._text = ""
        self._told_at_s = 0.0

    def due(self, progress: PlayProgress) -> list[str]:
        """The line, if it is time to print it."""
        status = progress.promotion
        if status is None:
            return []
        changed = status.stage != self._stage and not progress.news
        waited = progress.elapsed_s - self._told_at_s >= _STAGE_EVERY_S
        self._stage = status.stage
        text = f"{status.stage}: {status.line}"
        if progress.news:
            self._told_at_s = progress.elapsed_s
        elif text != self._text and (changed or waited):
            self._text, self._told_at_s = text, progress.elapsed_s
            return [text]
        return []


def _refuse(given: Mapping[str, object], why: str) -> None:
    """Flags that cannot be combined with the others."""
    for flag, value in given.items():
        if value is not None:
            raise ConfigError(f"{flag}: {why}")


def _check_difficulty(game: str, difficulty: str, adaptive: str) -> None:
    from understudy.games import catalog, custom

    if game == "territory":
        raise ConfigError(
            "territory is a live game, played on a server: `understudy serve territory`, then "
            "`understudy play territory --url ws://127.0.0.1:8765/ws`"
        )
    if custom.is_custom(game):
        raise ConfigError(
            f"{game} is a custom game: `understudy train {game}` learns it; a bot that learns "
            "beside its own loop has `Understudy.open`"
        )
    if catalog.make(game).players > 1:  # an unknown game is an error of its own
        raise ConfigError(
            f"{game} is a game of two players: `understudy train {game}` learns it, and "
            f"`understudy watch {game}` shows a match"
        )
    described = next(one for one in catalog.describe() if one.name == game)
    known = (*described.options["difficulty"], adaptive)
    if difficulty not in known:
        raise ConfigError(
            f"--difficulty: {game} has {', '.join(known)}; got {difficulty!r}."
            f"{nearest(difficulty, known)}"
        )


def _opening(session: PlaySession, before: RunFolder | None) -> list[str]:
    """Who plays, in a few sentences. `before`: the run folder, if there is one already."""
    from understudy.registry.run_folder import newest

    beside = "The learner starts beside it (a few seconds to warm up)."
    if session.learner == "off":
        beside = "No learner runs: matches are recorded for a later one."
    rules = f'Mode {session.mode}: the bot "{session.rules_name}" plays as the rules'
    match session.mode:
        case "shadow":
            return [f"{rules}, and versions are measured.", beside]
        case "auto":
            if (decided := _decided(session, before)) is not None:
                return [f"Mode auto: {decided}.", beside]
            judged = ["Simulated matches beside the game test the versions."]
            return [
                f"{rules} until a version is better by evidence.",
                f"Stages: {stages_text()}.",
                *(judged if session.simulated else []),
                beside,
            ]
        case "play":
            return [
                "Mode play: the champion plays, and nothing is learned; "
                f'without one, the bot "{session.rules_name}" as the rules.'
            ]
    version = newest(before)
    return [f"Version {version} plays on." if version else "The bot starts untrained.", beside]


def _decided(session: PlaySession, before: RunFolder | None) -> str | None:
    """Who plays every match, whatever the evidence says; None: evidence decides."""
    from understudy.promotion.report import pinned_champion
    from understudy.telemetry.promotion_lines import playing_text
    from understudy.telemetry.promotion_status import PromotionStatus

    pinned = None if before is None else pinned_champion(before)
    status = PromotionStatus(incumbent=0, pinned=pinned, policy=session.config.promotion.policy)
    return playing_text(status) if status.plays != 0 or pinned is not None else None


def _line(progress: PlayProgress) -> ProgressLine:
    if progress.session.mode != "learn":
        # Who plays, and how well: mean results, in which a tie counts one half.
        return session_line(
            progress, [Part(f"match {progress.played}", 50), *map(Part, _means(progress))]
        )
    parts = [
        Part(f"match {progress.played:,}", 50),
        Part(f"wins of last {len(progress.recent)}: {progress.win_rate:>4.0%}"),
        Part(f"version {progress.version}", 40),
    ]
    return session_line(progress, parts)


def _frozen_line(display: ProgressDisplay, session: PlaySession) -> Callable[[float], None]:
    """Shows the frozen matches at the end."""
    words = f"frozen matches, {session.evaluate} of each player"
    return lambda share: display.show_share(share, words)


def _means(progress: PlayProgress) -> list[str]:
    """Both arms of the test that runs; else those that played in this session."""
    from understudy.telemetry.promotion_lines import player_name

    status, played = progress.promotion, progress.by_player
    if status is None:  # modes shadow and play
        names = {one: one.replace("version", "champion") for one in played} or {_RULES: ""}
        names = {one: "rules" if one == _RULES else name for one, name in names.items()}
        return [f"{name} {_share(_mean(played.get(one)))}" for one, name in names.items()]
    version = progress.version if status.plays is None else status.plays
    name = f"champion {version}" if version else "rules"
    tested = next((one for one in status.tests if one.share or one.simulator), None)
    if status.plays is None:
        name = f"newest {version}" if version else name
    elif status.pinned is not None:
        name = f"{name} (pinned)"
    elif tested is not None:
        return _tested_means(tested)
    elif status.practice is not None and status.practice.share:
        practice = status.practice
        arms = (
            (name, practice.incumbent_matches, practice.incumbent_mean),
            ("practice", practice.matches, practice.mean),
        )
        return [f"{who} {_share(mean if matches else None)}" for who, matches, mean in arms]
    return [f"{name} {_share(_mean(played.get(player_name(version))))}"]


def _tested_means(one: TrialStatus) -> list[str]:
    against = f"champion {one.against}" if one.against else "rules"
    name = f"{'rechecked' if one.recheck else 'canary'} {one.version}"
    evidence = f"E- {one.worse:.1f}" if one.recheck else f"E {one.better:.1f}"
    arms = ((against, one.incumbent), (name, one.canary))
    return [
        *(f"{who} {_share(arm.mean if arm.matches else None)}" for who, arm in arms),
        evidence,
    ]


def _mean(tally: Tally | None) -> float | None:
    """The mean result: a win counts 1, a tie one half."""
    return None if tally is None else (tally.wins + tally.draws / 2) / max(tally.matches, 1)


def _by_player(summary: PlaySummary, width: Width) -> list[str]:
    """The stage, who plays, why, and the win rates of this session by who played."""
    from understudy.telemetry.promotion_lines import trial_text, why_text

    lines, status = [], summary.promotion
    if status is not None:
        lines += ["", *summary_row("Stage", stages_text(status.stage), width)]
        lines += summary_row("Who plays", status.line, width)
        lines += summary_row("Why", why_text(status), width)
        for one in status.tests if status.pinned is None else ():
            name = "Rechecked now" if one.recheck else "Tested now"
            lines += summary_row(name, trial_text(one), width)
    if summary.by_player:
        head = "Win rate in this session by who played (a tie is no win; 95% interval):"
        lines += ["", *wrapped(head, width)]
    names = max(map(len, summary.by_player), default=0)
    for name, tally in summary.by_player.items():
        lines.append(f"  {name:<{names}}  {_rate(tally, width)} of {tally.matches}")
    return lines


def _summary(summary: PlaySummary, width: Width, *, opponent: str) -> str:
    s = summary.status
    lines = ending(summary)
    if summary.before and summary.after and summary.rules:
        n = summary.after.matches
        champion = {"the champion": summary.champion} if summary.champion else {}
        rows = {
            "at the start": summary.before, "now": summary.after, **champion,
            "the rules": summary.rules,
        }  # fmt: skip
        head = f"Win rate v {opponent}, {n} frozen matches (a tie is no win; 95% interval):"
        lines += [
            "",
            *wrapped(head, width),
            *(f"  {name:<12}  {_rate(tally, width)}" for name, tally in rows.items()),
        ]
    lines += [*_by_player(summary, width), ""]
    climbed = not summary.by_player and s.win_rate_first is not None
    labels = {"While playing": _climb(s)} if climbed else {}
    labels |= {
        "Matches": f"{s.matches}",
        "Versions": f"{s.versions}",
        "A decision": _milliseconds(s),
        "Run folder": s.run,
    }
    for label, text in labels.items():
        lines += summary_row(label, text, width)
    more = (f"understudy {name} --run {s.run}" for name in ("status", "models list"))
    return "\n".join([*lines, "", *commands("More", more, width)])


def _climb(status: Status) -> str:
    first, last = _share(status.win_rate_first), _share(status.win_rate_last)
    return f"{first} in the first fifth, {last} in the last"


def _rate(tally: Tally, width: Width) -> str:
    low, high = tally.interval
    drawn = "" if width is not None and width < _NARROW else f"{bar(tally.win_rate)} "
    return f"{drawn}{tally.win_rate:>6.1%}  ({low:.1%} to {high:.1%})"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _milliseconds(status: Status) -> str:
    took = status.decision_ms
    return "-" if took is None else f"p50 {took.p50:.3f} ms, p99 {took.p99:.3f} ms"
