"""The snapshots of a run: those that its newest version lists, and no others.

A run may train on while it is read: what its pool had a moment ago may be gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from understudy.core.errors import FileFormatError, RunFolderError, nearest
from understudy.league import state as league_files
from understudy.league.pool import Pool, Snapshot
from understudy.league.state import LeagueState
from understudy.policy.policy import Policy
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import Manifest

T = TypeVar("T")


def league_of(folder: RunFolder, manifest: Manifest) -> LeagueState | None:
    """What a version knows of the league; None where it has none."""
    if league_files.FILE not in manifest.files:
        return None
    what = f"{folder.root}: version {manifest.number}: {league_files.FILE}"
    return league_files.decode(folder.versions.read(manifest, league_files.FILE), what=what)


def pool_of(folder: RunFolder) -> list[Snapshot]:
    """The pool of a run, oldest to newest; empty where there is none."""
    number = folder.versions.head()
    state = None if number is None else league_of(folder, folder.versions.manifest(number))
    return state.pool if state else []


def named(folder: RunFolder, name: str, *, flag: str) -> Policy:
    """The snapshot of that name; where there is none, an error that says what there is."""
    return _read(folder, lambda pool: _policy(folder, _listed(folder, pool, name, flag)))


def spread(folder: RunFolder, most: int) -> tuple[dict[str, Policy], int]:
    """At most so many snapshots by name, evenly over the pool, and how many that has."""
    return _read(
        folder,
        lambda pool: ({one.name: _policy(folder, one) for one in evenly(pool, most)}, len(pool)),
    )


def _read(folder: RunFolder, read: Callable[[list[Snapshot]], T]) -> T:
    """What `read` makes of the pool; a file that is missing is damage only where the newest
    version still has the same pool."""
    pool = pool_of(folder)
    while True:
        try:
            return read(pool)
        except FileFormatError:
            before, pool = pool, pool_of(folder)
            if pool == before:
                raise


def _listed(folder: RunFolder, pool: Sequence[Snapshot], name: str, flag: str) -> Snapshot:
    found = next((one for one in pool if one.name == name), None)
    if found is None:
        names = [one.name for one in pool]
        there = f"{names[0]} to {names[-1]}, {len(names)} in all" if names else "none"
        raise RunFolderError(
            f"{flag}: {folder.root} has no snapshot {name!r} (there: {there})."
            + nearest(name, names)
        )
    return found


def _policy(folder: RunFolder, snapshot: Snapshot) -> Policy:
    """A snapshot, checked and ready to act."""
    pool = Pool(folder.root / league_files.FOLDER, folder.spec)
    return Policy(folder.spec, pool.load(snapshot), version=0)


def evenly(items: Sequence[T], most: int) -> list[T]:
    """At most so many, evenly spread, the first and the last among them (of one: the last)."""
    if len(items) <= most:
        return list(items)
    if most <= 1:
        return list(items[len(items) - most :])
    step = (len(items) - 1) / (most - 1)
    return [items[round(index * step)] for index in range(most)]
