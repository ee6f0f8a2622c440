"""Checks of the experience: rewards, features and actions as episodes recorded them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from understudy.doctor.evidence import Evidence
from understudy.doctor.findings import Finding

CHECKS: tuple[Callable[[Evidence], Iterator[Finding]], ...] = ()
