"""Checkpoints: a trainer's state becomes the next version, and a session goes on from a version.

`Checkpoints` connects one trainer with one run folder. The ring, the continuous learner, training
in the arena and in environments, and populations all use it; it knows files of bytes and counters.

- *Number and fence*: the numbers in use are counted once, at the start. A number that appears
  later belongs to another learner, and the next commit raises `Fenced`.
- *Resume*: from the head. If a crash came between a commit and the moves of the pointers, these are
  made up for.
- *Rollback*: a person pins the champion to an older version, and learning goes on from there, once:
  versions count the last rollback that was followed. Training looks for one when it resumes, a
  background learner whenever it works.
- *Commit*: durable when it returns. Then the pointers move, by the rule `latest`: every version
  becomes the champion, unless a person pinned the pointer or the promotion gate moves it.
- *Prune*: what `registry.retention` does not keep is removed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from understudy.core import files
from understudy.core.errors import FileFormatError
from understudy.core.memory import resident_mb
from understudy.registry import scores as score_list
from understudy.registry.comparisons import Comparison
from understudy.registry.pointers import LATEST, Name, PointerRecord
from understudy.registry.retention import prune
from understudy.registry.run_folder import RunFolder
from understudy.registry.scores import Score
from understudy.registry.versions import LEARNER, WEIGHTS, Manifest, ReplayEntry
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

STEPS, MATCHES = "steps", "matches"
"""Counters that every session of training has."""
TRAIN = "train"
"""The mode of versions that training makes."""
_ROLLBACK = "rollbacks_followed"
"""A counter: the sequence number, in the pointer, of the last rollback that was followed."""
INGESTED = "ingested"
"""A counter: episodes that all versions so far have ingested."""


def learned_matches(manifest: Manifest) -> int:
    """Matches that a version has learned from: episodes of a spool, or matches of training."""
    return manifest.counters.get(INGESTED, manifest.counters.get(MATCHES, 0))


class Resumable(Protocol):
    """A trainer, as far as checkpoints know it."""

    def snapshot(self) -> dict[str, bytes]:
        """The files of a version."""

    def restore(self, contents: Mapping[str, bytes] | None, *, what: str) -> None:
        """Go on from the files of a version; None: start over. `what` names them in errors."""


def resume_version(folder: RunFolder) -> Manifest | None:
    """The version that training goes on from; None where there is none yet."""
    head = folder.versions.head_manifest()
    rollback = None if head is None else _rollback_after(folder, head.counters.get(_ROLLBACK, 0))
    return head if rollback is None else folder.versions.manifest(rollback.version)


def publish(
    folder: RunFolder,
    journal: Journal,
    manifest: Manifest,
    contents: Mapping[str, bytes],
    *,
    matches: int,
    total_matches: int = 0,
) -> Manifest:
    """Commit a version, let the pointers follow, and journal it; `Fenced` if its number is taken.

    `matches` and `total_matches` are those of `events.VersionPublished`.
    """
    sealed = folder.versions.commit(manifest, contents)
    folder.pointers.move("candidate", sealed.number, by=LATEST)
    promoted = not folder.by_evidence and folder.pointers.move("champion", sealed.number, by=LATEST)
    journal.write(
        events.VersionPublished(
            version=sealed.number,
            parent=sealed.parent,
            matches=matches,
            promoted=promoted,
            total_matches=total_matches,
            memory_mb=round(resident_mb(), 1),
        )
    )
    return sealed


class Checkpoints:
    """The versions of one run folder, for the one process that commits to it.

    Make and use it under the learner's lock. The trainer is handed to each call and not held: a
    population commits another agent's trainer each time.
    """

    def __init__(self, folder: RunFolder, journal: Journal, *, mode: str = "") -> None:
        versions = folder.versions
        files.sweep(versions.root, older_than_s=0.0)  # under the lock no other process commits
        self._folder = folder
        self._journal = journal
        # Counted once: a number that appears from now on is another learner's, and fences us off.
        self.taken = max(versions.numbers(), default=0)
        """The highest number of any version, damaged or not."""
        self.session = self.next
        """The first number that this session can commit; a rollback begins another session."""
        self.mode = mode
        """`learn`: the policy decided in the match that came in last; `shadow`: the rules did;
        `train`."""
        self.parent = versions.head_manifest()
        """The version that the trainer's state descends from; None: there is none yet."""
        self.extras: dict[str, bytes] = {}
        """What the resumed version holds beside the trainer's state, by file name."""
        self.total_ingested = 0
        """Episodes that any version has ingested, ever; known after `ingested`."""
        self.forgotten = ""
        """The file name of the newest episode whose id was forgotten; known after `ingested`."""
        self._followed: int | None = None
        """The last rollback that was followed; None: this session does not follow any."""
        self.scores: tuple[Score, ...] = ()
        """How versions played; the next version holds them."""
        self.comparisons: tuple[Comparison, ...] = ()
        """What the rewards of the last segments are measured against."""
        self._read_scores(self.parent)

    @property
    def version(self) -> int:
        """The number of `parent`; 0: there is none yet."""
        return 0 if self.parent is None else self.parent.number

    @property
    def counters(self) -> Mapping[str, int]:
        """Those of `parent`."""
        return {} if self.parent is None else self.parent.counters

    @property
    def next(self) -> int:
        """The number that the next version gets."""
        return self.taken + 1

    @property
    def rolled_back(self) -> bool:
        """Whether a newer version exists: a person went back, or the newer one is damaged."""
        return self.version != self.taken

    # --- resuming and going back -----------------------------------------------------------------

    def ingested(self) -> dict[str, str]:
        """Every episode that any version has ingested, ever: id to file name."""
        versions = self._folder.versions
        found = versions.ingested_by_pruned()
        self.forgotten = versions.forgotten()
        for number in versions.numbers():
            try:
                manifest = versions.manifest(number)
            except (FileFormatError, OSError) as error:
                self._problem(f"version {number} is damaged and is passed over: {error}")
                continue
            found |= manifest.ingested
            counted = manifest.counters.get(INGESTED, 0)
            self.total_ingested = max(self.total_ingested, counted)
        return found

    def resume(self, trainer: Resumable, *, follow: bool) -> None:
        """Restore the trainer from the head, and finish what a crash left half done.

        Without a version the trainer stays as it is: it must be a fresh one.
        With `follow` (training), a rollback that was not followed yet is followed now, and the
        scores of earlier sessions are closed. Without it (background learners), `rollback` says
        later when there is one to follow, and the newest score goes on.
        """
        self._followed, number = self.counters.get(_ROLLBACK, 0), self.version
        if not number:
            return
        _finish_promotion(self._folder, number)
        if follow:
            self.scores = score_list.closed(self.scores)
            rollback = _rollback_after(self._folder, self._followed)
            if rollback is not None:
                number, self._followed = rollback.version, rollback.sequence
        self._restore(trainer, number)

    def rollback(self) -> int | None:
        """The version that a person rolled the champion back to, told once; None: no new one."""
        record = _rollback_after(self._folder, self._followed or 0)
        if record is None:
            return None
        self._followed = record.sequence
        try:
            self._folder.versions.verify(record.version)
        except (FileFormatError, OSError) as error:
            self._problem(f"cannot learn on from version {record.version}: {error}")
            return None
        return record.version

    def go_back_to(self, trainer: Resumable, number: int, *, keep_scores: bool) -> None:
        """Restore the trainer as it was at a version; 0: as it was before the first one.

        Without `keep_scores` they are those of the head again: the episodes that were counted
        since will be ingested, and counted, once more.
        """
        other_line = number != self.version
        self._restore(trainer, number)
        if not keep_scores:
            self._read_scores(self._folder.versions.head_manifest())
        if other_line:
            self.session = self.next
            self.scores = score_list.closed(self.scores)

    def _restore(self, trainer: Resumable, number: int) -> None:
        versions = self._folder.versions
        if not number:
            self.parent, self.extras = None, {}
            trainer.restore(None, what="a fresh start")
            return
        self.parent = versions.manifest(number)
        contents = {name: versions.read(self.parent, name) for name in self.parent.files}
        trainer.restore(contents, what=f"version {number}")
        self.extras = {name: contents[name] for name in contents.keys() - {WEIGHTS, LEARNER}}

    def _read_scores(self, head: Manifest | None) -> None:
        self.scores = () if head is None else head.scores
        self.comparisons = () if head is None else head.comparisons

    # --- scores of training ----------------------------------------------------------------------

    def add_benchmark(self, *, matches: int, wins: int) -> None:
        """The present version played frozen matches."""
        score = Score(
            first=self.version, last=self.version, matches=matches, wins=wins, closed=True
        )
        self.scores = (*self.scores, score)

    def add_returns(self, returns: Sequence[float]) -> None:
        """Matches on the way to the next version ended with these returns."""
        self.scores = score_list.with_rewards(score_list.closed(self.scores), self.next, returns)

    # --- committing ------------------------------------------------------------------------------

    def due(self, steps: int) -> bool:
        """Whether training should save a version now."""
        return steps - self.counters.get(STEPS, 0) >= self._folder.config.train.checkpoint_steps

    def save(
        self,
        trainer: Resumable,
        counters: Mapping[str, int],
        metrics: Mapping[str, float],
        *,
        extras: Mapping[str, bytes] | None = None,
    ) -> bool:
        """Commit and prune; False where no counter has moved since the last version.

        `extras` are further files of the version.
        """
        moved = {key for key, count in counters.items() if count != self.counters.get(key)}
        if not moved - {_ROLLBACK}:
            return False
        self.commit({**trainer.snapshot(), **(extras or {})}, counters, metrics)
        self.prune()
        return True

    def commit(
        self,
        contents: Mapping[str, bytes],
        counters: Mapping[str, int],
        metrics: Mapping[str, float],
        *,
        ingested: Mapping[str, str] | None = None,
        replay: Mapping[str, ReplayEntry] | None = None,
    ) -> Manifest:
        """Make the next version of these files, durable on return; `Fenced` if another learner did.

        `ingested` (id to file name) are the episodes since the parent. None: experience does not
        come through a spool, and `counters` count the matches.
        """
        counted, total = dict(counters), self.total_ingested + len(ingested or {})
        if ingested is None:
            matches = max(0, counted.get(MATCHES, 0) - self.counters.get(MATCHES, 0))
        else:
            matches, counted[INGESTED] = len(ingested), total
        if self._followed is not None:
            counted[_ROLLBACK] = self._followed
        manifest = Manifest(
            number=self.next,
            parent=self.version or None,
            created_at=self._folder.clock.time(),
            spec=self._folder.spec,
            ingested=dict(ingested or {}),
            replay=dict(replay or {}),
            counters=counted,
            metrics=dict(metrics),
            session=self.session,
            mode=self.mode,
            scores=self.scores,
            comparisons=self.comparisons,
        )
        self.parent = publish(
            self._folder, self._journal, manifest, contents, matches=matches, total_matches=total
        )
        self.taken, self.total_ingested = manifest.number, total
        return self.parent

    def prune(self) -> None:
        """Remove versions beyond the limits, and the scores of those that are gone."""
        if prune(self._folder):
            self.scores = score_list.thinned(self.scores, self._folder.versions.numbers())

    def _problem(self, message: str) -> None:
        self._journal.write(events.Problem(where="registry", message=message))


def _rollback_after(folder: RunFolder, followed: int) -> PointerRecord | None:
    """The rollback that holds now, if it is newer than the one that was followed last."""
    champion = folder.pointers.read("champion")
    if champion is None or not champion.pinned or champion.sequence <= followed:
        return None
    return champion


def _finish_promotion(folder: RunFolder, number: int) -> None:
    """A crash may have come between a commit and the moves of the pointers."""
    names: tuple[Name, ...] = ("candidate",) if folder.by_evidence else ("candidate", "champion")
    for name in names:
        record = folder.pointers.read(name)
        if record is None or record.by == LATEST:
            folder.pointers.move(name, number, by=LATEST)
