"""The intake: which episodes are learned from next, and where all the others go.

Good, new and fresh ones are learned from. Whatever a version names is archived, copies and damaged
files are quarantined, poison is hunted, and what is too old leaves without being learned from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from understudy.core.errors import FileFormatError
from understudy.experience.episode import Episode
from understudy.experience.spool import Spool
from understudy.learner.suspects import Suspects
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events
from understudy.telemetry.journal import Journal


class Intake:
    """The learner's side of the spool."""

    def __init__(self, folder: RunFolder, journal: Journal) -> None:
        self._folder = folder
        self._config = folder.config.learner
        self._journal = journal
        self._ingested: dict[str, str] = {}
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

    def waiting(self) -> list[str]:
        """Names in the buffer that were not learned from yet, oldest first."""
        taken = set(self.uncommitted.values())
        return [name for name in self.spool.pending() if name not in taken]

    def next_names(self, most: int) -> Sequence[str]:
        """What to learn from next: suspects alone, else whatever has waited longest."""
        while (group := self.suspects.next_group()) is not None:
            waiting = set(self.waiting())
            poison = self.suspects.poison()
            gone = [name for name in group.names if name not in waiting]
            if poison in waiting:
                self._quarantine(poison, "poison: training on it fails, alone and again")
            elif not gone:
                return group.names
            for name in gone:
                self.suspects.forget(name)
        return self.waiting()[:most]

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
                self._quarantine(name, f"cannot be read: {error.strerror or error}")
                continue
            key = episode.meta.id
            known = self.uncommitted.get(key) or self._ingested.get(key)
            twin = any(key == other.meta.id for other in loaded.values())
            if twin or known not in (None, name):
                self._quarantine(name, "a copy: an episode with its id was ingested already")
            elif known == name:
                self._archive([name])
            elif self._too_old(episode):
                too_old += 1
                self.spool.archive(name)
                self.suspects.forget(name)
            else:
                loaded[name] = episode
        if too_old:
            self._journal.write(events.EpisodesArchived(count=too_old, too_old=too_old))
        return loaded

    def _too_old(self, episode: Episode) -> bool:
        """Imports never are: nothing in them was sampled, so no policy has moved away from it."""
        age_s = self._folder.clock.time() - episode.meta.finished_at
        return age_s > self._config.max_age_s and not episode.meta.imported_from

    def _archive(self, names: Sequence[str]) -> None:
        for name in names:
            self.spool.archive(name)
        if names:
            self._journal.write(events.EpisodesArchived(count=len(names)))

    def _quarantine(self, name: str, reason: str) -> None:
        self.spool.quarantine(name, reason)
        self.suspects.forget(name)
        self._journal.write(events.EpisodeQuarantined(name=name, reason=reason))
