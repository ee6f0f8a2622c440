"""Parts about a served run that the report and the dashboard share."""

from __future__ import annotations

LEDGER_ENDINGS = {
    "settled": "their reward is known, and they are learned from",
    "expired": "no reward came in time",
    "superseded": "another decision replaced them before their reward was known",
    "orphaned": "the game ended or went away before their reward was known",
    "open": "they wait for their reward",
}
"""What became of a decision, and what that means."""
