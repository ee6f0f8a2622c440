"""How segments of a served game are judged, beside the server or behind a relay (ADR 0038)."""

from __future__ import annotations

from understudy.registry.run_folder import RunFolder

HARM_SPREAD = 2.0
"""Standard deviations to both sides of the mean on which a served version is judged for harm: means
of segments lie close together on the scale of rewards (`benchmarks/serve_promotion.py`)."""
LEAST_LEAD = 3.0
"""Standard errors by which practice must be above the incumbent before a version is tried. A score
of a segment is the mean of about 100 rewards, so a version that is hardly better than the rules
looks better at once; its test takes 300 segments and ends without a verdict, while the versions
after it wait (`benchmarks/serve_takeover.py`)."""


def judges_segments(folder: RunFolder) -> bool:
    """Whether servers assign segments by evidence in this run."""
    return folder.config.live.promotion == "auto"
