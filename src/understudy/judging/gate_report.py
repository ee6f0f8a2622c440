"""What became of the gate's verdicts in a run: every settled decision that a gate judged, together.

Reads the spool, buffer and archive alike; changes nothing, and a server may go on writing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from understudy.core.clock import SystemClock
from understudy.core.errors import FileFormatError, RunFolderError
from understudy.experience.episode import Episode
from understudy.experience.served import ServedDecisions, gate_proposals
from understudy.experience.spool import Spool
from understudy.games.catalog import idle_action
from understudy.gates.calibration import Calibration, calibrate
from understudy.registry.run_folder import RunFolder


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


def gate_report(run: Path, *, show: Callable[[float], None] = lambda share: None) -> GateReport:
    """Judge the gate of a run by everything that its spool still holds.

    `show` gets the share of the files that are read, 0 to 1.
    """
    folder = RunFolder.load(run, SystemClock())
    spool = Spool(folder.root, folder.spec, folder.clock)
    unreadable = 0
    found: list[ServedDecisions] = []
    seen: set[str] = set()
    files = len(spool.pending()) + sum(1 for _ in spool.archived.glob("*.npz"))
    for done, episode in enumerate(_episodes(spool)):
        show(min(done / max(files, 1), 1.0))
        if episode is None:
            unreadable += 1
        elif episode.meta.id not in seen:  # what is archived in this moment can be met twice
            seen.add(episode.meta.id)
            found += _asked(episode)
    if not any(one.judged.any() for one in found):
        raise RunFolderError(
            f"--run {run}: no settled decision here was judged by a gate; "
            "one is asked for with `understudy serve --gate cost`"
        )
    proposals = gate_proposals(
        ServedDecisions.joined(found), idle_action=idle_action(folder.identity.game_name)
    )
    judged = proposals.judged
    return GateReport(
        run=run.as_posix(),
        game=folder.identity.game,
        episodes=len(found),
        unreadable=unreadable,
        idle=proposals.idle,
        unspoken=proposals.unspoken,
        calibration=calibrate(
            sent=judged.sent,
            explored=judged.explored,
            expected=judged.expected,
            rewards=judged.rewards,
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


def _asked(episode: Episode) -> list[ServedDecisions]:
    """What a gate was asked about and what came of it: not the safe answers of an overloaded
    server, nor what was never settled."""
    decisions = ServedDecisions.of(episode)
    asked = decisions.asked
    return [decisions.where(asked)] if asked.any() else []
