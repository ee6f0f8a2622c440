"""Suspects: which episodes were being learned from when training failed, kept across deaths.

A batch is written down before it is trained on and crossed out afterwards. One that is still there
when a learner starts has killed its predecessor. After three failures a batch is halved; a single
episode that fails three times is poison.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from understudy.core import files

_TRIES = 3


class Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Episodes that failed together, by file name."""

    names: tuple[str, ...]
    failures: int = 0


class _Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    attempt: tuple[str, ...] = ()
    groups: tuple[Group, ...] = ()


class Suspects:
    """The record, in one small file of the run folder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        record = _read(path)
        self._groups = list(record.groups)
        if record.attempt:
            self.failed(record.attempt)

    def next_group(self) -> Group | None:
        """Episodes to be tried alone before anything else."""
        return self._groups[0] if self._groups else None

    def poison(self) -> str | None:
        """The name of an episode that has failed alone three times, if one is known."""
        group = self.next_group()
        if group and len(group.names) == 1 and group.failures >= _TRIES:
            return group.names[0]
        return None

    def attempt(self, names: tuple[str, ...]) -> None:
        """About to train on these."""
        self._save(names)

    def succeeded(self, names: tuple[str, ...]) -> None:
        """Trained on these; nothing happened."""
        self._groups = [group for group in self._groups if group.names != names]
        self._save(())

    def failed(self, names: tuple[str, ...]) -> None:
        """Training on these gave nonsense, or killed the learner."""
        known = next((group for group in self._groups if group.names == names), Group(names))
        others = [group for group in self._groups if group.names != names]
        group = Group(names, known.failures + 1)
        if group.failures >= _TRIES and len(names) > 1:
            half = len(names) // 2
            self._groups = [Group(names[:half]), Group(names[half:]), *others]
        else:
            self._groups = [group, *others]
        self._save(())

    def forget(self, name: str) -> None:
        """An episode is out of the buffer."""
        kept = []
        for group in self._groups:
            names = tuple(other for other in group.names if other != name)
            if names:
                kept.append(Group(names, group.failures) if names == group.names else Group(names))
        self._groups = kept
        self._save(())

    def _save(self, attempt: tuple[str, ...]) -> None:
        if not attempt and not self._groups:
            if self._path.exists():
                files.remove(self._path)
            return
        record = _Record(attempt=attempt, groups=tuple(self._groups))
        files.write_atomic(self._path, msgspec.json.encode(record))


def _read(path: Path) -> _Record:
    """Nothing where there is no record, or one that is damaged: suspicion can be gathered again."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Record)
    except (FileNotFoundError, msgspec.MsgspecError, UnicodeDecodeError):
        return _Record()
