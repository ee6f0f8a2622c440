"""Runs all checks on a run."""

from __future__ import annotations

from collections.abc import Sequence

from understudy.doctor.checks import CHECKS, Check
from understudy.doctor.evidence import Evidence
from understudy.doctor.findings import Finding, by_weight, section
from understudy.supervise.maths_threads import one_thread


def examine(evidence: Evidence, checks: Sequence[Check] = CHECKS) -> list[Finding]:
    """All findings, the worst first. A check that fails is a finding of its own, and the others
    go on: the doctor must never be what ends a session."""
    found: list[Finding] = []
    # A check that replays decisions competes with bot and learner for the cores.
    with one_thread():
        for check in checks:
            try:
                found += check(evidence)
            except Exception as error:  # noqa: BLE001  shown as a finding: check and error
                found.append(_failed(check, error))
    return by_weight(found)


def _failed(check: Check, error: Exception) -> Finding:
    name = getattr(check, "__qualname__", repr(check))
    return Finding(
        check="check-failed",
        weight="warning",
        certainty="certain",
        title=f"The check {name} failed, so the doctor did not look at its part of the run.",
        evidence=(f"{type(error).__name__}: {error}",),
        next_step="Report it with this line and the run's journal; the other checks are not "
        "concerned.",
        link=section("check-failed"),
    )
