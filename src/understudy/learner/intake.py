"""The intake: which episodes are learned from next, and where all the others go.

Good, new and fresh episodes are learned from. Episodes that a version names are archived; copies,
damaged files and absurd numbers are quarantined; what is too old is archived unused. A file that
cannot be read now is tried again later, and does not hold up the others.

`Suspects` searches for poison: an episode that makes training fail. A batch is written down before
it is trained on and crossed out afterwards; one that is still there when a learner starts has
killed its predecessor. After three failures a batch is halved; a single episode that fails three
times is poison and is quarantined. The ring tries suspects by learning from them alone
(`next_names`), the continuous learner without learning from them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from understudy.core import files
from understudy.core.errors import FileFormatError
from understudy.experience.episode import IMPORTED, TOO_LARGE, Episode, largest_number
from understudy.experience.spool import Spool, saved_at
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

_TRIES = 3
_READ_TRIES = 5
_READ_AGAIN_S = 5.0
_LISTING_SHARE = 0.05
"""Share of the time that listing a long queue may take."""
_PRUNE_EVERY = 20
"""Files that are quarantined from one removal of the oldest to the next."""


class SuspectGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Episodes that failed together, by file name."""

    names: tuple[str, ...]
    failures: int = 0


class _Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    attempt: tuple[str, ...] = ()
    groups: tuple[SuspectGroup, ...] = ()


class Suspects:
    """The episodes that were trained on when training failed, in one small file that outlives
    the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        record = _read(path)
        self._groups = list(record.groups)
        if record.attempt:
            self.failed(record.attempt)

    def next_group(self) -> SuspectGroup | None:
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
        """Training on these worked."""
        self._groups = [group for group in self._groups if group.names != names]
        self._save(())

    def failed(self, names: tuple[str, ...]) -> None:
        """Training on these gave numbers that are not finite, or killed the learner."""
        known = next((group for group in self._groups if group.names == names), SuspectGroup(names))
        others = [group for group in self._groups if group.names != names]
        group = SuspectGroup(names, known.failures + 1)
        if group.failures >= _TRIES and len(names) > 1:
            half = len(names) // 2
            self._groups = [SuspectGroup(names[:half]), SuspectGroup(names[half:]), *others]
        else:
            self._groups = [group, *others]
        self._save(())

    def forget(self, name: str) -> None:
        """An episode is out of the buffer."""
        kept = []
        for group in self._groups:
            names = tuple(other for other in group.names if other != name)
            if names:
                kept.append(
                    SuspectGroup(names, group.failures)
                    if names == group.names
                    else SuspectGroup(names)
                )
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


class Intake:
    """The learner's side of the spool."""

    def __init__(
        self, folder: RunFolder, journal: Journal, *, max_age_s: float | None = None
    ) -> None:
        self._folder = folder
        self._max_age_s = folder.config.learner.max_age_s if max_age_s is None else max_age_s
        self._journal = journal
        self._ingested: dict[str, str] = {}
        self._forgotten_until = 0.0
        """What was finished up to then may have been ingested: it is too old to learn from."""
        self._backlog: dict[str, None] = {}
        """Names known to wait, oldest first: what is finished later has a later name."""
        self._list_again_at = -float("inf")
        """When the buffer is listed again although a batch is known, by the monotonic clock."""
        self._unread: dict[str, tuple[int, float]] = {}
        """How often reading a file has failed, and when to try again."""
        self._odd: dict[str, str] = {}
        """What files were called before the spool renamed them."""
        self._quarantined = 0
        """Files that were quarantined since the oldest were removed."""
        self.spool = Spool(folder.root, folder.spec, folder.clock)
        self.suspects = Suspects(folder.root / "suspects.json")
        self.uncommitted: dict[str, str] = {}
        """Learned from since the last commit: id to file name."""

    def resume(self, ingested: Mapping[str, str], *, forgotten: str = "") -> None:
        """Learn what earlier learners ingested (id to name), archive what they left behind, and
        prune the quarantine. `forgotten`: the file name of the newest episode that they may have
        ingested and that is not known any more."""
        self._ingested = dict(ingested)
        self._forgotten_until = saved_at(forgotten)
        in_buffer = set(self.spool.pending())
        self._archive([name for name in ingested.values() if name in in_buffer])
        self.prune_quarantine()

    def committed(self) -> None:
        """A version now names what was learned from: it may leave the buffer."""
        self._ingested |= self.uncommitted
        self._archive(list(self.uncommitted.values()))
        self.uncommitted = {}

    def drop_uncommitted(self) -> None:
        """What was learned since the last commit is forgotten, and will be learned from again."""
        self.uncommitted = {}
        self._backlog = {}

    def waiting(self) -> list[str]:
        """Names in the buffer that were not learned from yet, oldest first."""
        for name, odd in self.spool.adopt().items():
            self._odd[name] = odd
            self._problem(f"{odd} is no name for a file of the buffer: it is now {name}")
        taken = set(self.uncommitted.values())
        return [name for name in self.spool.pending() if name not in taken]

    def look(self, enough: int) -> int:
        """How many can be learned from now; lists the buffer if fewer than `enough` are known.

        Else only now and then, to see what came in: with a long queue, listing all of it for every
        batch would take longer than training.
        """
        clock = self._folder.clock
        now = clock.monotonic()
        if len(self._backlog) < enough or now >= self._list_again_at:
            ready = (name for name in self.waiting() if self._unread.get(name, (0, now))[1] <= now)
            self._backlog = dict.fromkeys(ready)
            took_s = clock.monotonic() - now
            self._list_again_at = now + took_s / _LISTING_SHARE
        return len(self._backlog)

    def next_names(self, most: int) -> Sequence[str]:
        """What to learn from next, of what `look` saw: suspects alone, else the newest, oldest of
        them first.

        Where the bot plays faster than the learner learns, the oldest would be ever further from
        the policy of today, which learns nothing good from them (ADR 0053). They are learned from
        when there is time.
        """
        while (group := self.suspects.next_group()) is not None:
            poison = self.suspects.poison()
            gone = [name for name in group.names if name not in self._backlog]
            if poison in self._backlog:
                self._take([poison])
                self.condemn(poison)
            elif not gone:
                return self._take(group.names)
            for name in gone:
                self.suspects.forget(name)
        return self._take(list(islice(reversed(self._backlog), most))[::-1])

    def oldest(self, most: int) -> Sequence[str]:
        """The oldest of what `look` saw, suspected or not."""
        return self._take(list(islice(self._backlog, most)))

    def named(self, names: Sequence[str]) -> Sequence[str]:
        """Those of these names that `look` saw."""
        return self._take([name for name in names if name in self._backlog])

    def condemn(self, name: str) -> None:
        """Quarantine poison, wherever it lies: in the buffer, or in the archive by now."""
        self.uncommitted = {key: other for key, other in self.uncommitted.items() if other != name}
        reason = "poison: training on it fails, alone and again"
        for load in (self.spool.load, self.spool.load_archived):
            # What cannot be read any more is quarantined all the same, only not described.
            with contextlib.suppress(FileFormatError, OSError):
                _, words = self._largest(load(name))
                reason += f"; the largest number of {words}"
                break
        self._quarantine(name, reason)

    def prune_quarantine(self) -> None:
        """Remove the oldest files of the quarantine beyond its bounds, and say how many.

        Also done after every few files that are quarantined: where all of them are, no version is
        ever published, which is when the learner keeps its other bounds.
        """
        self._quarantined = 0
        try:
            removed = self.spool.prune_quarantine(self._folder.config.retention)
        except OSError as error:  # a file that another process has open can wait for the next turn
            self._journal.write(events.Problem(where="retention", message=str(error)))
            return
        if removed:
            message = (
                f"the {removed:,} oldest files of quarantine/ were deleted "
                "(retention.quarantine_files, retention.quarantine_bytes)"
            )
            self._journal.write(events.Note(where="retention", message=message))

    def load(self, names: Sequence[str]) -> dict[str, Episode]:
        """Good, new and fresh episodes by name; the others go where they belong."""
        loaded: dict[str, Episode] = {}
        too_old = 0
        for name in names:
            try:
                episode = self.spool.load(name)
            except FileFormatError as error:
                self._quarantine(name, str(error))
                continue
            except FileNotFoundError:
                continue  # removed by hand
            except OSError as error:
                self._could_not_read(name, f"cannot be read: {error.strerror or error}")
                continue
            key = episode.meta.id
            known = self.uncommitted.get(key) or self._ingested.get(key)
            twin = any(key == other.meta.id for other in loaded.values())
            if twin or known not in (None, name):
                self._quarantine(name, "a copy: an episode with its id was ingested already")
            elif known == name:
                self._archive([name])
            elif (largest := self._largest(episode))[0] >= TOO_LARGE:
                self._quarantine(name, f"a number too large to learn from: {largest[1]}")
            elif self._too_old(episode):
                too_old += 1
                self.spool.archive(name)
                self.suspects.forget(name)
            else:
                loaded[name] = episode
        if too_old:
            self._journal.write(events.EpisodesArchived(count=too_old, too_old=too_old))
        return loaded

    def _take(self, names: Sequence[str]) -> Sequence[str]:
        for name in names:
            del self._backlog[name]
        return names

    def _could_not_read(self, name: str, reason: str) -> None:
        """Too many open files, or a virus scanner at work: the episode itself may be fine."""
        failures = self._unread.get(name, (0, 0.0))[0] + 1
        self._unread[name] = failures, self._folder.clock.monotonic() + _READ_AGAIN_S
        if failures >= _READ_TRIES:
            self._quarantine(name, reason)
        elif failures == 1:
            self._problem(f"{name} {reason}; it is tried again")

    def _largest(self, episode: Episode) -> tuple[float, str]:
        """The largest number of an episode, and which client's and which feature's it is."""
        client = episode.meta.tags.get("client")
        size, words = largest_number(episode, self._folder.spec)
        return size, f"client {client!r}: {words}" if client else words

    def _too_old(self, episode: Episode) -> bool:
        """Only what a policy sampled goes stale: the policy has moved away from it since. But what
        may have been ingested, and was forgotten since, is never ingested again."""
        forgotten = 0.0 < self._forgotten_until >= episode.meta.finished_at
        if forgotten and not episode.meta.id.startswith(IMPORTED):
            return True
        age_s = self._folder.clock.time() - episode.meta.finished_at
        return age_s > self._max_age_s and bool(episode.sampled.any())

    def _archive(self, names: Sequence[str]) -> None:
        for name in names:
            self.spool.archive(name)
        if names:
            self._journal.write(events.EpisodesArchived(count=len(names)))

    def _quarantine(self, name: str, reason: str) -> None:
        if name in self._odd:
            reason = f"{reason} (the file was called {self._odd[name]})"
        self.spool.quarantine(name, reason)
        self.suspects.forget(name)
        self._journal.write(events.EpisodeQuarantined(name=name, reason=reason))
        self._quarantined += 1
        if self._quarantined >= _PRUNE_EVERY:
            self.prune_quarantine()

    def _problem(self, message: str) -> None:
        self._journal.write(events.Problem(where="spool", message=message))
