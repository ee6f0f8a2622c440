"""`understudy status`: how a run goes, in words or as JSON."""

from __future__ import annotations

from understudy.cli.options import Json, LatestRun


def status(
    run: LatestRun = None,
    json: Json = False,
) -> None:
    """Say how a run goes: matches or decisions, versions, the learner, the spool, problems.

    Example: understudy status --run runs/swarm-1 --json
    """
    import msgspec

    from understudy.core.clock import SystemClock
    from understudy.experience.ledger.recovery import LEDGER, counts_in
    from understudy.registry.rewards import reward_status
    from understudy.registry.run_folder import RunFolder, latest
    from understudy.run.status import read_status
    from understudy.telemetry.report import describe
    from understudy.telemetry.status import LedgerCounts
    from understudy.telemetry.text import say, say_json

    folder = RunFolder.load(run or latest(), SystemClock())
    now = read_status(folder)
    counts, champion = counts_in(folder.root / LEDGER), folder.pointers.read("champion")
    if counts is not None:
        now = msgspec.structs.replace(now, ledger=LedgerCounts(**counts._asdict()))
    now = msgspec.structs.replace(now, version_rewards=reward_status(folder))
    if champion is not None:
        now = msgspec.structs.replace(now, champion=champion.version, pinned=champion.pinned)
    if json:
        say_json(now)
    else:
        say(describe(now))
