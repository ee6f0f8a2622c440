"""Checks of the learner's process: is it there, and does it keep up?"""

from __future__ import annotations

from collections.abc import Iterator

from understudy.doctor.evidence import Evidence
from understudy.doctor.findings import Finding, section
from understudy.telemetry.status import stalled


def stalled_learning(evidence: Evidence) -> Iterator[Finding]:
    """Experience waits and no version comes."""
    words = stalled(evidence.status)
    if words:
        yield Finding(
            check="stalled",
            weight="problem",
            certainty="certain",
            title="Experience waits, and no new version comes.",
            evidence=(words,),
            next_step=f"Read {evidence.folder.logs}, then start a learner: understudy learner "
            f"--run {evidence.folder.root}",
            link=section("stalled"),
        )


CHECKS = (stalled_learning,)
