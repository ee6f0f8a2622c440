"""`understudy report`: a run as one HTML file to read, print or send."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.options import Json, LatestRun, check_file
from understudy.core.errors import ConfigError

_FILE = Path("report.html")


def report(
    run: LatestRun = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write (.html).")] = _FILE,
    json: Json = False,
) -> None:
    """Write a run as one HTML file: how it goes, what is wrong, who plays and why, pictures.

    The file needs no network and no script, so it can be sent and printed. Line charts are always
    in it; pictures drawn by matplotlib need the extra `plots`, and the report says where one is
    missing.

    Example: understudy report --run runs/swarm-1 -o report.html
    """
    from understudy.cli.progress import working
    from understudy.core import files
    from understudy.core.clock import SystemClock
    from understudy.doctor.evidence import gather
    from understudy.doctor.examine import examine
    from understudy.registry.run_folder import RunFolder, latest
    from understudy.run.view import read_view
    from understudy.screens.report.facts import read_facts
    from understudy.screens.report.page import report_page
    from understudy.telemetry.text import say, say_json, size

    if out.suffix not in (".html", ".htm"):
        raise ConfigError(f"--out {out}: expected a name that ends in .html")
    check_file("--out", out)
    folder = RunFolder.load(run or latest(), SystemClock())
    with working("reading the journal", quiet=json) as show:
        view = read_view(folder, show)
    with working("making the report", quiet=json):
        evidence = gather(folder, view)
        findings = examine(evidence)
        facts = read_facts(folder, view, findings, kind=evidence.kind)
        page = report_page(facts).encode("utf-8", "backslashreplace")
        files.write_atomic(out, page)
    if json:
        say_json({"file": str(out), "bytes": len(page), "findings": len(findings)})
    else:
        say(f"{out}: {size(len(page))}, {len(findings)} finding{'' if len(findings) == 1 else 's'}")
