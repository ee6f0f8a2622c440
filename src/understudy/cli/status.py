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
    from understudy.cli.output import out_width
    from understudy.cli.progress import working
    from understudy.core.clock import SystemClock
    from understudy.doctor.evidence import gather
    from understudy.doctor.examine import examine
    from understudy.doctor.findings import worst
    from understudy.registry.run_folder import RunFolder, latest
    from understudy.run.view import read_view
    from understudy.telemetry.report import describe
    from understudy.telemetry.text import say, say_json

    folder = RunFolder.load(run or latest(), SystemClock())
    with working("reading the journal", quiet=json) as show:
        view = read_view(folder, show)
        finding = "" if json else worst(examine(gather(folder, view)))
    if json:
        say_json(view.status)
    else:
        say(describe(view.status, finding=finding, width=out_width()))
