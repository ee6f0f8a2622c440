"""Checks of the policy: entropy, KL divergence and value as the learner's batches reported them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from understudy.doctor.evidence import Evidence
from understudy.doctor.findings import Finding

CHECKS: tuple[Callable[[Evidence], Iterator[Finding]], ...] = ()
