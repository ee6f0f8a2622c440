"""Runs all checks on a run."""

from __future__ import annotations

from understudy.doctor.checks import CHECKS
from understudy.doctor.evidence import Evidence
from understudy.doctor.findings import Finding, by_weight


def examine(evidence: Evidence) -> list[Finding]:
    """All findings, the worst first."""
    return by_weight(finding for check in CHECKS for finding in check(evidence))
