"""The checks, one module for each part of a run. A check is a pure function of the evidence.

A module lists its checks in `CHECKS`. A check is silent where there is too little data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from understudy.doctor.checks import (
    config,
    data,
    learning,
    policy,
    process,
    promotion,
    resources,
    server,
    training,
)
from understudy.doctor.evidence import Evidence
from understudy.doctor.findings import Finding

Check: TypeAlias = Callable[[Evidence], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    *learning.CHECKS,
    *policy.CHECKS,
    *data.CHECKS,
    *process.CHECKS,
    *training.CHECKS,
    *server.CHECKS,
    *promotion.CHECKS,
    *config.CHECKS,
    *resources.CHECKS,
)
