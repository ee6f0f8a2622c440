"""What became of the gate's verdicts in a run: every settled decision that a gate judged, together.

Reads the spool, buffer and archive alike; changes nothing, and a server may go on writing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.clock import SystemClock
from understudy.core.errors import FileFormatError, RunFolderError
from understudy.experience.episode import Episode
from understudy.experience.spool import Spool
from understudy.games.territory import Territory, tables
from understudy.gates.calibration import Calibration, calibrate
from understudy.registry.run_folder import RunFolder

_NOTHING = {Territory.name: tables.NO_SPAWN}
"""The action of a game that no gate blocks, for the games that have one."""


@dataclass(frozen=True)
class GateReport:
    """What a run says of its gate."""

    run: str
    game: str
    episodes: int
    """Those that a gate had a part in"""
    unreadable: int
    """Files that were passed over: damaged, or pruned while this was read"""
    idle: int
    """Proposals to do nothing, which no gate blocks; they are not among the others"""
    unspoken: int
    """Proposals of which the gate had nothing to say, as when its time ran out; nor are these"""
    calibration: Calibration


class _Proposals(NamedTuple):
    """Decisions that a gate was asked about: actions int32 [N, parts], all others [N]."""

    actions: NDArray
    sent: NDArray
    explored: NDArray
    expected: NDArray
    """nan: it had nothing to say"""
    rewards: NDArray


def gate_report(run: Path, *, show: Callable[[float], None] = lambda share: None) -> GateReport:
    """Judge the gate of a run by everything that its spool still holds.

    `show` gets the share of the files that are read, 0 to 1.
    """
    folder = RunFolder.load(run, SystemClock())
    spool = Spool(folder.root, folder.spec, folder.clock)
    unreadable = 0
    found: list[_Proposals] = []
    seen: set[str] = set()
    files = len(spool.pending()) + sum(1 for _ in spool.archived.glob("*.npz"))
    for done, episode in enumerate(_episodes(spool)):
        show(min(done / max(files, 1), 1.0))
        if episode is None:
            unreadable += 1
        elif episode.meta.id not in seen:  # what is archived in this moment can be met twice
            seen.add(episode.meta.id)
            found += _judged(episode)
    if not any(~np.isnan(one.expected).all() for one in found):
        raise RunFolderError(
            f"--run {run}: no settled decision here was judged by a gate; "
            "one is asked for with `understudy serve --gate cost`"
        )
    every = _Proposals(*map(np.concatenate, zip(*found, strict=True)))
    nothing = _NOTHING.get(folder.identity.game_name)
    idle = np.zeros(len(every.rewards), bool)
    if nothing is not None:
        idle = (every.actions == nothing).all(axis=1)
    unspoken = ~idle & np.isnan(every.expected)
    kept = ~idle & ~unspoken
    return GateReport(
        run=run.as_posix(),
        game=folder.identity.game,
        episodes=len(found),
        unreadable=unreadable,
        idle=int(idle.sum()),
        unspoken=int(unspoken.sum()),
        calibration=calibrate(
            sent=every.sent[kept],
            explored=every.explored[kept],
            expected=every.expected[kept],
            rewards=every.rewards[kept],
            threshold=folder.config.live.threshold,
            explore_share=folder.config.live.explore_share,
        ),
    )


def _episodes(spool: Spool) -> Iterator[Episode | None]:
    """Every episode, None for those that cannot be read; the buffer first, since they move from
    there to the archive."""
    for name in spool.pending():
        yield _read(name, spool.load, spool.load_archived)  # archived since it was listed, maybe
    for path in sorted(spool.archived.glob("*.npz")):
        yield _read(path.name, spool.load_archived)


def _read(name: str, *places: Callable[[str], Episode]) -> Episode | None:
    for load in places:
        try:
            return load(name)
        except FileNotFoundError:
            continue
        except FileFormatError:
            return None
    return None


def _judged(episode: Episode) -> list[_Proposals]:
    """What a gate was asked about and what came of it: not the safe answers of an overloaded
    server, nor what was never settled."""
    asked = episode.sampled & episode.taught
    if episode.sent is None or episode.expected is None or not asked.any():
        return []
    explored = np.zeros(len(episode), bool) if episode.explored is None else episode.explored
    columns = (episode.actions, episode.sent, explored, episode.expected, episode.rewards)
    return [_Proposals(*(column[asked] for column in columns))]
