"""Checks of learning: do results get better, and does the policy follow the rewards?"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from understudy.doctor.evidence import Evidence
from understudy.doctor.findings import Finding

CHECKS: tuple[Callable[[Evidence], Iterator[Finding]], ...] = ()
