"""How training looks in a terminal: a line that moves, one that stays now and then, a summary."""

from __future__ import annotations

from understudy.arena.mix import Mix
from understudy.cli.show import Screen, bar
from understudy.match.tally import Tally
from understudy.run.host.session import HostProgress, HostSession, HostSummary
from understudy.run.train_session import Progress, Session, Summary
from understudy.telemetry.text import duration


class TrainScreen:
    """Runs a session and shows it."""

    def __init__(self, *, quiet: bool) -> None:
        self._screen = Screen(quiet=quiet)

    def arena(self, session: Session) -> tuple[bool, dict[str, object]]:
        """Whether it was interrupted, and what to print as JSON."""
        from understudy.run.train import check, train

        mix = check(session)
        train_ = session.config.train
        self._screen.note(
            f"understudy: train {session.game}, run folder {session.run}\n"
            f"{train_.games} matches side by side, {train_.segment} frames each an iteration; "
            f"a version every {_rounded_up(session, mix):,} steps.\n"
            "Compiling takes half a minute or so the first time ..."
        )
        summary = train(session, show=lambda progress: self._screen.move(_line(progress), progress))
        self._screen.note(_summary(summary, session.game))
        return summary.interrupted, summary.as_dict()

    def host(self, session: HostSession) -> tuple[bool, dict[str, object]]:
        """The same for an environment of others."""
        from understudy.run.host.training import train_host

        self._screen.note(f"understudy: train {session.environment}, run folder {session.run}")
        summary = train_host(
            session, show=lambda progress: self._screen.move(_host_line(progress), progress)
        )
        self._screen.note(_host_summary(summary))
        return summary.interrupted, summary.as_dict()


def _rounded_up(session: Session, mix: Mix) -> int:
    train = session.config.train
    every = train.checkpoint_steps
    if mix.meets_itself:
        every = min(every, train.snapshot_steps)  # a rival is a version, too
    rollout = train.games * train.segment
    return -(-every // rollout) * rollout


def _line(progress: Progress) -> str:
    left = progress.left_s
    rates = "  ".join(
        f"{name} {tally.win_rate:.0%}" if tally.matches else f"{name} -"
        for name, tally in progress.win_rates().items()
    )
    return (
        f"{bar(progress.share)} {duration(progress.elapsed_s):>6}"
        f"  left {duration(left) if left is not None else '?':>6}"
        f"  {_short(progress.earlier + progress.steps)} steps"
        f"  {_short(progress.steps_s)}/s  {rates}"
    )


def _summary(summary: Summary, game: str) -> str:
    lines = ["", "Interrupted: everything up to here is kept." if summary.interrupted else "Done."]
    lines += ["", "Win rates while training (it explores; `understudy eval` judges it frozen):"]
    width = max((len(name) for name in summary.win_rates), default=0)
    lines += [f"  {name:<{width}}  {_rate(tally)}" for name, tally in summary.win_rates.items()]
    lines += [
        "",
        f"Steps           {summary.steps:,} ({summary.steps_s:,.0f} a second, "
        f"compiling took {duration(summary.compiled_s)})",
        f"Matches         {summary.matches:,}",
        f"Version         {summary.version}",
        f"Run folder      {summary.run}",
        "",
        f"More: understudy eval {game} --agent {summary.run}   "
        f"understudy watch {game} --left {summary.run} --right based",
    ]
    return "\n".join(lines)


def _host_line(progress: HostProgress) -> str:
    left = progress.left_s
    return (
        f"{bar(progress.share)} {duration(progress.elapsed_s):>6}"
        f"  left {duration(left) if left is not None else '?':>6}"
        f"  {_short(progress.steps)} steps  {_short(progress.steps_s)}/s"
        f"  reward of last {len(progress.recent)}: {progress.reward:.1f}"
    )


def _host_summary(summary: HostSummary) -> str:
    lines = ["", "Interrupted: everything up to here is kept." if summary.interrupted else "Done."]
    if summary.evaluated:
        lines.append(
            f"Mean reward of {len(summary.evaluated)} frozen matches: {summary.reward:.1f}"
        )
    lines += [
        "",
        f"Steps           {summary.steps:,} ({summary.steps_s:,.0f} a second)",
        f"Matches         {summary.matches:,}",
        f"Version         {summary.version}",
        f"Run folder      {summary.run}",
    ]
    return "\n".join(lines)


def _rate(tally: Tally) -> str:
    if not tally.matches:
        return "no match ended"
    return f"{bar(tally.win_rate)} {tally.win_rate:>6.1%}  of the last {tally.matches}"


def _short(number: float) -> str:
    if number >= 1e6:
        return f"{number / 1e6:.2f}M"
    return f"{number / 1e3:.1f}k" if number >= 1e3 else f"{number:.0f}"
