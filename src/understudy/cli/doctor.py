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
from understudy.telemetry.text import many, plain

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
    from understudy.registry.run_folder import latest
    from understudy.telemetry.text import say, say_json

    with working("examining the run", quiet=json) as show:
        first, *agents = _examined_runs(run or latest(), show)
    if json:
        told = _as_json(*first)
        say_json({**told, "agents": [_as_json(*one) for one in agents]} if agents else told)
    else:
        # The folder of a population has hardly more than the rounds: its agents have the data.
        shown = [first, *agents] if first[1] or not agents else agents
        say("\n\n".join(described(*one, width=out_width()) for one in shown))
    counts = {"problem", "warning"} if strict else {"problem"}
    found = any(one.weight in counts for _, findings in (first, *agents) for one in findings)
    raise typer.Exit(_FOUND if found else 0)


def _examined_runs(
    run: Path, progress: Callable[[float], None] | None = None
) -> list[tuple[Evidence, list[Finding]]]:
    """A run with its findings, and those of its agents where it is a population."""
    from understudy.doctor.examine import examine
    from understudy.registry.run_folder import agents_in

    found = [_evidence(run, progress), *(_evidence(agent) for agent in agents_in(run))]
    return [(evidence, examine(evidence)) for evidence in found]


def _as_json(evidence: Evidence, findings: Sequence[Finding]) -> dict[str, object]:
    return {"run": str(evidence.folder.root), "kind": evidence.kind, "findings": findings}


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
    seen = (
        many(now.matches, "match", "matches")
        if now.ledger is None
        else many(now.ledger.opened, "decision", "decisions")
    )
    return f"{seen} and {many(now.versions, 'version', 'versions')}"


def closing_lines(run: Path, *, width: Width) -> list[str]:
    """What a session says of its run when it ends: the worst finding and how to see all; nothing
    where nothing is wrong. A failure of the doctor is said, and never ends the session."""
    from understudy.doctor.findings import worst

    try:
        line = worst([one for _, findings in _examined_runs(run) for one in findings])
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
