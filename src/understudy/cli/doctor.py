"""`understudy doctor`: what is wrong with a run, how sure that is, and what to do next."""

from __future__ import annotations

import typer

from understudy.cli.options import Json, LatestRun

_PROBLEM = 1


def doctor(run: LatestRun = None, json: Json = False) -> None:
    """Say what is wrong with a run, how sure that is, and what to do next.

    Exits with 1 where there is a problem.

    Example: understudy doctor --run runs/swarm-1 --json
    """
    from understudy.cli.output import emit_text
    from understudy.cli.progress import working
    from understudy.core.clock import SystemClock
    from understudy.doctor.evidence import gather
    from understudy.doctor.examine import examine
    from understudy.registry.run_folder import RunFolder, latest
    from understudy.run.view import read_view
    from understudy.telemetry.text import say, say_json

    folder = RunFolder.load(run or latest(), SystemClock())
    with working("reading the journal", quiet=json):
        findings = examine(gather(folder, read_view(folder)))
    if json:
        say_json(findings)
    else:
        for one in findings:
            emit_text(f"{one.weight.upper()} ({one.certainty})  {one.title}", more=2)
            for line in (*one.evidence, f"Next: {one.next_step}", f"See {one.link}"):
                emit_text(line, indent=2, more=2)
        if not findings:
            say("No check found anything wrong.")
    raise typer.Exit(_PROBLEM if any(one.weight == "problem" for one in findings) else 0)
