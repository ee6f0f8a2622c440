"""`understudy status`: how a run goes, in words or as JSON."""

from __future__ import annotations

from pathlib import Path

from understudy.cli.options import Json, LatestRun
from understudy.telemetry.layout import Width, hint


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
        for line in population_lines(folder.root, "status", width=out_width()):
            say(line)


def population_lines(root: Path, command: str, *, width: Width) -> list[str]:
    """That the agents of a population have run folders of their own; nothing of other runs."""
    from understudy.registry.run_folder import agents_in

    agents = agents_in(root)
    if not agents:
        return []
    words = f"The {len(agents)} agents of this population are runs of their own"
    return hint(f"{words}: understudy {command} --run {agents[0]}", width=width)
