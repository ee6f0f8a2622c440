"""The intake: which episodes are learned from next, and where all the others go.

Good, new and fresh ones are learned from. Whatever a version names is archived, copies, damaged
files and absurd numbers are quarantined, poison is hunted, and what is too old leaves without being
learned from. A file that cannot be read just now is tried again later, and nobody waits for it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from itertools import islice

from understudy.core.errors import FileFormatError
from understudy.experience.episode import TOO_LARGE, Episode, largest_number
from understudy.experience.spool import Spool
from understudy.learner.suspects import Suspects
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

_READ_TRIES = 5
_READ_AGAIN_S = 5.0


class Intake:
    """The learner's side of the spool."""

    def __init__(
        self, folder: RunFolder, journal: Journal, *, max_age_s: float | None = None
    ) -> None:
        self._folder = folder
        self._max_age_s = folder.config.learner.max_age_s if max_age_s is None else max_age_s
        self._journal = journal
        self._ingested: dict[str, str] = {}
        self._backlog: dict[str, None] = {}
        """Names known to wait, oldest first: what is finished later has a later name."""
        self._unread: dict[str, tuple[int, float]] = {}
        """How often reading a file has failed, and when to try again."""
        self._odd: dict[str, str] = {}
        """What files were called before the spool renamed them."""
        self.spool = Spool(folder.root, folder.spec, folder.clock)
        self.suspects = Suspects(folder.root / "suspects.json")
        self.uncommitted: dict[str, str] = {}
        """Learned from since the last commit: id to file name."""

    def resume(self, ingested: Mapping[str, str]) -> None:
        """Learn what earlier learners ingested (id to name), and archive what they left behind."""
        self._ingested = dict(ingested)
        in_buffer = set(self.spool.pending())
        self._archive([name for name in ingested.values() if name in in_buffer])

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
        """How many can be learned from now; lists the buffer only if fewer than `enough` are known.

        With a long queue, listing all of it for every batch would take longer than training.
        """
        if len(self._backlog) < enough:
            now = self._folder.clock.monotonic()
            ready = (name for name in self.waiting() if self._unread.get(name, (0, now))[1] <= now)
            self._backlog = dict.fromkeys(ready)
        return len(self._backlog)

    def next_names(self, most: int) -> Sequence[str]:
        """What to learn from next, of what `look` saw: suspects alone, else the oldest."""
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
        return self.oldest(most)

    def oldest(self, most: int) -> Sequence[str]:
        """The oldest of what `look` saw, whoever is suspected."""
        return self._take(list(islice(self._backlog, most)))

    def named(self, names: Sequence[str]) -> Sequence[str]:
        """Those of these names that `look` saw."""
        return self._take([name for name in names if name in self._backlog])

    def condemn(self, name: str) -> None:
        """Poison: not to be learned from any more, although it was held, or even archived."""
        self.uncommitted = {key: other for key, other in self.uncommitted.items() if other != name}
        reason = "poison: training on it fails, alone and again"
        for load in (self.spool.load, self.spool.load_archived):
            # What cannot be read any more is quarantined all the same, only not described.
            with contextlib.suppress(FileFormatError, OSError):
                _, words = self._largest(load(name))
                reason += f"; the largest number of {words}"
                break
        self._quarantine(name, reason)

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
                continue  # somebody removed it by hand
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
        """Too many open files, or a virus scanner at work: that is no fault of the match."""
        failures = self._unread.get(name, (0, 0.0))[0] + 1
        self._unread[name] = failures, self._folder.clock.monotonic() + _READ_AGAIN_S
        if failures >= _READ_TRIES:
            self._quarantine(name, reason)
        elif failures == 1:
            self._problem(f"{name} {reason}; it is tried again")

    def _largest(self, episode: Episode) -> tuple[float, str]:
        """The largest number of an episode, and whose and which it is."""
        client = episode.meta.tags.get("client")
        size, words = largest_number(episode, self._folder.spec)
        return size, f"client {client!r}: {words}" if client else words

    def _too_old(self, episode: Episode) -> bool:
        """Only what a policy sampled goes stale: the policy has moved away from it since."""
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

    def _problem(self, message: str) -> None:
        self._journal.write(events.Problem(where="spool", message=message))
