"""`understudy doctor`: what is wrong with a run, how sure that is, and what to do next.

The closing lines of `play`, `train` and `serve` name the worst finding (`closing_lines`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.options import Json, LatestRun
from understudy.cli.output import out_width, summary_row
from understudy.cli.progress import working
from understudy.telemetry.layout import Width, hanging, labelled, wrapped
from understudy.telemetry.text import plain

if TYPE_CHECKING:
    from understudy.doctor.evidence import Evidence
    from understudy.doctor.findings import Finding

_FOUND = 1


def doctor(
    run: LatestRun = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Warnings count as problems: exit code 1.")
    ] = False,
    json: Json = False,
) -> None:
    """Say what is wrong with a run, how sure that is, and what to do next.

    Exits with 1 where there is a problem; with --strict, where there is a warning too.

    Example: understudy doctor --run runs/swarm-1 --json
    """
    from understudy.doctor.examine import examine
    from understudy.registry.run_folder import latest
    from understudy.telemetry.text import say, say_json

    with working("examining the run", quiet=json) as show:
        evidence = _evidence(run or latest(), show)
        findings = examine(evidence)
    if json:
        say_json({"run": str(evidence.folder.root), "kind": evidence.kind, "findings": findings})
    else:
        say(described(evidence, findings, width=out_width()))
    counts = {"problem", "warning"} if strict else {"problem"}
    raise typer.Exit(_FOUND if any(one.weight in counts for one in findings) else 0)


def described(evidence: Evidence, findings: Sequence[Finding], *, width: Width) -> str:
    """All findings in lines of at most `width` columns."""
    from understudy.doctor.findings import counted

    summary = counted(findings) or f"no check found anything wrong in {_examined(evidence)}"
    lines = [
        *wrapped(f"{_path(evidence.folder.root)}: {summary}", width),
        *(line for one in findings for line in ("", *_finding_lines(one, width))),
    ]
    return "\n".join(lines)


def _examined(evidence: Evidence) -> str:
    """How much there was to look at: silence about three matches says little."""
    now = evidence.status
    many, what = (now.matches, "match") if now.ledger is None else (now.ledger.opened, "decision")
    plural = {"match": "matches", "decision": "decisions"}
    versions = f"{now.versions:,} version{'' if now.versions == 1 else 's'}"
    return f"{many:,} {what if many == 1 else plural[what]} and {versions}"


def closing_lines(run: Path, *, width: Width) -> list[str]:
    """What a session says of its run when it ends: the worst finding and how to see all; nothing
    where nothing is wrong. A failure of the doctor is said, and never ends the session."""
    from understudy.doctor.examine import examine
    from understudy.doctor.findings import worst

    try:
        line = worst(examine(_evidence(run)))
    except Exception as error:  # noqa: BLE001  said in the closing lines; the session has ended well
        line = f"could not look at the run ({type(error).__name__}: {error})"
    if not line:
        return []
    text = f"{plain(line, limit=500)}: understudy doctor --run {_path(run)}"
    return summary_row("Doctor", text, width)


def _evidence(run: Path, progress: Callable[[float], None] | None = None) -> Evidence:
    from understudy.core.clock import SystemClock
    from understudy.doctor.evidence import gather
    from understudy.registry.run_folder import RunFolder
    from understudy.run.view import read_view

    folder = RunFolder.load(run, SystemClock())
    return gather(folder, read_view(folder, progress))


def _finding_lines(one: Finding, width: Width) -> list[str]:
    lines = [f"{one.weight.upper()}, {one.certainty}  [{one.check}]"]
    lines += hanging(plain(one.title, limit=500), width=width, indent=2, more=0)
    for sentence in one.evidence:
        lines += labelled("  -", plain(sentence, limit=500), label_width=4, width=width)
    lines += labelled("  Next:", plain(one.next_step, limit=1000), label_width=8, width=width)
    return [*lines, f"  See:  {one.link}"]


def _path(run: Path) -> str:
    return plain(str(run), limit=4096)
