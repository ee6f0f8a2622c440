"""`understudy play`: matches of a built-in game, with the learner in the background.

With `--url` the game is a client of a server (`understudy serve territory`), which decides.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from understudy.cli.options import JsonAtEnd, NewRun, SetOption, config_from
from understudy.cli.show import Screen, bar, ending, timing
from understudy.core.errors import ConfigError, nearest
from understudy.telemetry.promotion_stage import stages_text
from understudy.telemetry.text import duration, plain

if TYPE_CHECKING:
    from understudy.adapters.territory.remote_play import RemoteProgress, RemoteSummary
    from understudy.match.tally import Tally
    from understudy.registry.run_folder import RunFolder
    from understudy.run.play import PlayProgress, PlaySession, PlaySummary
    from understudy.telemetry.promotion_status import Stage, TrialStatus
    from understudy.telemetry.status import Status

_MINUTES = 1.5
_SHORT_BAR, _NARROW = 6, 80
_LABEL = 16
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
    screen = Screen(quiet=json, before=None)
    screen.note(
        f"understudy: territory on {session.url}, {session.territories} territories, "
        f"up to {session.speed:g} times real time"
    )
    summary = play_remote(session, show=lambda one: screen.move(_remote_line(one), one))
    screen.close(summary, _remote_summary(summary))


def _remote_line(progress: RemoteProgress) -> str:
    return (
        f"{timing(progress)}"
        f"  {progress.decisions / max(progress.elapsed_s, 1e-9):>6,.0f} decisions/s"
        f"  reward {progress.mean_reward:>+6.3f}"
        f"  p50 {progress.percentile_ms(50):.1f} ms  p99 {progress.percentile_ms(99):.1f} ms"
        f"  version {progress.version}"
    )


def _remote_summary(summary: RemoteSummary) -> str:
    told, progress = summary.as_dict(), summary.progress
    done = max(progress.decisions, 1)
    lines = [
        "",
        "Interrupted: the server keeps everything up to here." if summary.interrupted else "Done.",
        "",
        f"Decisions       {progress.decisions} in {duration(summary.seconds)}, "
        f"{progress.ticks} ticks, {told['speed']:.0f} times real time",
        f"Mean reward     {told['mean_reward']:+.3f}, of the last {len(progress.rewards)}: "
        f"{progress.mean_reward:+.3f}",
        f"Spawned         {progress.spawns / done:.0%} of decisions, the gate waited in "
        f"{progress.waits / done:.0%}; the busiest chunk had {told['largest_chunk_share']:.0%}",
        f"An answer       p50 {progress.percentile_ms(50):.1f} ms, "
        f"p99 {progress.percentile_ms(99):.1f} ms",
        f"Version         {progress.version}",
    ]
    if progress.reconnects or progress.unanswered or progress.degraded:
        lines.append(
            f"Trouble         {progress.reconnects} reconnections, {progress.unanswered} without "
            f"an answer, {progress.degraded} degraded"
        )
    if progress.refused:
        lines.append(f"Refused         {progress.refused}, the last: {plain(progress.problem)}")
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
        "--lockstep": lockstep or None, "--set": set_,
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
    screen = Screen(quiet=json, before=newest(before), tells_new=mode == "learn")
    screen.note(f"understudy: {game} v {difficulty}, run folder {session.run}")
    screen.note(_opening(session, before))

    stages = _StageNotes()

    def show(progress: PlayProgress) -> None:
        for news in (*progress.news, *stages.due(progress)):
            screen.note(_wrapped(f"match {progress.played}: {news}", indent=2))
        progress.news.clear()
        screen.move(_line(progress), progress)

    summary = play_session(session, show=show)
    screen.close(summary, _summary(summary, opponent=judging_difficulty(difficulty)))


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
    from understudy.games import catalog

    if game == "territory":
        raise ConfigError(
            "territory is a live game, played on a server: `understudy serve territory`, then "
            "`understudy play territory --url ws://127.0.0.1:8765/ws`"
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


def _opening(session: PlaySession, before: RunFolder | None) -> str:
    """Who plays. `before`: the run folder, if there is one already."""
    beside = "The learner starts beside it (a few seconds to warm up)."
    rules = f'Mode {session.mode}: the bot "{session.rules_name}" plays as the rules'
    match session.mode:
        case "shadow":
            return f"{rules}, and versions are measured.\n{beside}"
        case "auto":
            judged = (
                "Simulated matches beside the game test the versions.\n"
                if session.simulated
                else ""
            )
            if (decided := _decided(session, before)) is not None:
                return f"Mode auto: {decided}.\n{beside}"
            stages = f"Stages: {stages_text()}."
            until = "until a version is better by evidence"
            return f"{rules}\n{until}.\n{stages}\n{judged}{beside}"
        case "play":
            return (
                "Mode play: the champion plays, and nothing is learned; "
                f'without one, the bot "{session.rules_name}" as the rules.'
            )
    return "The bot starts untrained; the learner starts beside it (a few seconds to warm up)."


def _decided(session: PlaySession, before: RunFolder | None) -> str | None:
    """Who plays every match, whatever the evidence says; None: evidence decides."""
    from understudy.promotion.report import pinned_champion
    from understudy.telemetry.promotion_lines import playing_text
    from understudy.telemetry.promotion_status import PromotionStatus

    pinned = None if before is None else pinned_champion(before)
    status = PromotionStatus(incumbent=0, pinned=pinned, policy=session.config.promotion.policy)
    return playing_text(status) if status.plays != 0 or pinned is not None else None


def _wrapped(text: str, *, indent: int) -> str:
    """Lines of at most 80 columns, all but the first further in."""
    first = " " * indent
    return "\n".join(
        textwrap.wrap(text, _NARROW - 1, initial_indent=first, subsequent_indent=first + "  ")
    )


def _labelled(label: str, text: str) -> str:
    """Lines of at most 80 columns, all but the first under the text."""
    begin = " " * _LABEL
    first = f"{label:<{_LABEL}}"
    return "\n".join(
        textwrap.wrap(text, _NARROW - 1, initial_indent=first, subsequent_indent=begin)
    )


def _line(progress: PlayProgress) -> str:
    if progress.session.mode != "learn":
        return _roles_line(progress)
    return (
        f"{timing(progress)}"
        f"  match {progress.played:>5}"
        f"  wins of last {len(progress.recent)}: {progress.win_rate:>4.0%}"
        f"  version {progress.version}"
    )


def _roles_line(progress: PlayProgress) -> str:
    """Who plays, and how well: mean results, in which a tie counts one half; 80 columns."""
    done = f"{timing(progress, width=_SHORT_BAR)}  match {progress.played}"
    return "  ".join([done, *_means(progress)])


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


def _by_player(summary: PlaySummary) -> list[str]:
    """The stage, who plays, why, and the win rates of this session by who played."""
    from understudy.telemetry.promotion_lines import trial_text, why_text

    lines, status = [], summary.promotion
    if status is not None:
        lines += ["", _labelled("Stage", stages_text(status.stage))]
        lines.append(_labelled("Who plays", status.line))
        lines.append(_labelled("Why", why_text(status)))
        for one in status.tests if status.pinned is None else ():
            name = "Rechecked now" if one.recheck else "Tested now"
            lines.append(_labelled(name, trial_text(one)))
    if summary.by_player:
        lines += ["", "Win rate in this session by who played (a tie is no win; 95% interval):"]
    for name, tally in summary.by_player.items():
        lines.append(f"  {name:<13} {_rate(tally)} of {tally.matches}")
    return lines


def _summary(summary: PlaySummary, *, opponent: str) -> str:
    s = summary.status
    lines = ending(summary)
    if summary.before and summary.after and summary.rules:
        n = summary.after.matches
        lines += [
            "",
            f"Win rate v {opponent}, {n} frozen matches (a tie is no win; 95% interval):",
            f"  at the start  {_rate(summary.before)}",
            f"  now           {_rate(summary.after)}",
            *([f"  the champion  {_rate(summary.champion)}"] if summary.champion else []),
            f"  the rules     {_rate(summary.rules)}",
        ]
    lines += _by_player(summary)
    lines += [
        "",
        *([] if summary.by_player else [_climb(s)]),
        f"Matches         {s.matches}",
        f"Versions        {s.versions}",
        f"A decision      {_milliseconds(s)}",
        f"Run folder      {s.run}",
        "",
        f"More: understudy status --run {s.run}   understudy models list --run {s.run}",
    ]
    return "\n".join(lines)


def _climb(status: Status) -> str:
    first, last = _share(status.win_rate_first), _share(status.win_rate_last)
    return f"While playing   {first} in the first fifth, {last} in the last"


def _rate(tally: Tally) -> str:
    low, high = tally.interval
    return f"{bar(tally.win_rate)} {tally.win_rate:>6.1%}  ({low:.1%} to {high:.1%})"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _milliseconds(status: Status) -> str:
    took = status.decision_ms
    return "-" if took is None else f"p50 {took.p50:.3f} ms, p99 {took.p99:.3f} ms"
