"""Reads a run folder as a `RunView`: the status with everything beside the journal, and trends."""

from __future__ import annotations

import msgspec

from understudy.experience.ledger.recovery import LEDGER, counts_in
from understudy.registry.rewards import reward_status
from understudy.registry.run_folder import RunFolder
from understudy.run.status import read_entries, read_status
from understudy.telemetry.run_view import RunView
from understudy.telemetry.status import LedgerCounts, Status
from understudy.telemetry.trends import TrendFold

_RECENT = 200


def read_view(folder: RunFolder) -> RunView:
    """The run now."""
    entries = read_entries(folder)
    fold = TrendFold()
    for entry in entries:
        fold.add(entry)
    return RunView(
        status=read_whole_status(folder), trends=fold.trends, recent=tuple(entries[-_RECENT:])
    )


def read_whole_status(folder: RunFolder) -> Status:
    """The status with the ledger's counts, the versions' rewards and the champion."""
    now = read_status(folder)
    counts, champion = counts_in(folder.root / LEDGER), folder.pointers.read("champion")
    if counts is not None:
        now = msgspec.structs.replace(now, ledger=LedgerCounts(**counts._asdict()))
    now = msgspec.structs.replace(now, version_rewards=reward_status(folder))
    if champion is not None:
        now = msgspec.structs.replace(now, champion=champion.version, pinned=champion.pinned)
    return now
