"""Imports old experience and model files into a run folder. Never changes the files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from understudy.core.arrays import NDArray, from_npz, read_bytes
from understudy.core.clock import Clock
from understudy.core.errors import FileFormatError, RunFolderError, UnderstudyError
from understudy.core.spaces import Discrete
from understudy.experience import episode as episodes
from understudy.experience.episode import Episode
from understudy.experience.spool import Spool
from understudy.legacy import experience as old_files
from understudy.legacy import models as old_models
from understudy.legacy.models import OldModel, begin_with
from understudy.policy.spec import PolicySpec
from understudy.registry.run_folder import RunFolder, holds_run
from understudy.supervise.lock import learner_lock
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

_UNFINISHED = ".tmp.npz"
"""How a file is called while it is written: `np.savez` appends `.npz` to the name it is given."""


@dataclass(frozen=True)
class ImportedFile:
    """The result of one file."""

    path: Path
    result: Literal["experience", "model", "known", "failed"]
    reason: str = ""
    """Why it failed."""
    decisions: int = 0


@dataclass
class ImportReport:
    """The results of all files."""

    run: Path
    lines: list[ImportedFile] = field(default_factory=list)

    def of(self, result: str) -> list[ImportedFile]:
        """The files with this result."""
        return [line for line in self.lines if line.result == result]

    @property
    def decisions(self) -> int:
        """Of all imported matches."""
        return sum(line.decisions for line in self.lines)

    def as_dict(self) -> dict[str, object]:
        """For `--json`."""
        return {
            "run": str(self.run),
            "matches": len(self.of("experience")),
            "decisions": self.decisions,
            "models": [str(line.path) for line in self.of("model")],
            "known": [str(line.path) for line in self.of("known")],
            "failed": [{"file": str(one.path), "reason": one.reason} for one in self.of("failed")],
        }


class EpisodeIntake:
    """Puts episodes into the buffer of a run, each once by its id, however often it is given."""

    def __init__(self, folder: RunFolder) -> None:
        self._spool = Spool(folder.root, folder.spec, folder.clock)
        self._journal = Journal(folder.journal, "import", folder.clock)
        self._imports = old_files.Imports(folder.root, most=folder.config.retention.imported_files)
        self._known = self._imports.ids()

    def knows(self, key: str) -> bool:
        """Whether the episode or the model of this id came in before."""
        return key in self._known

    def note(self, key: str, name: str) -> None:
        """Remembers that a file came in."""
        self._imports.add(key, name)
        self._known.add(key)

    def take(self, episode: Episode, path: Path) -> ImportedFile:
        """The result for the file at `path`, which holds the episode."""
        if self.knows(episode.meta.id):
            return ImportedFile(path, "known")
        if refusal := self._imports.refusal:
            return ImportedFile(path, "failed", refusal)
        self._spool.put(episode)
        self.note(episode.meta.id, path.name)
        self._journal.write(events.EpisodesImported(count=1))
        return ImportedFile(path, "experience", decisions=len(episode))


def import_files(
    paths: Sequence[Path],
    run: Path,
    *,
    clock: Clock,
    late_rewards: bool = False,
    show: Callable[[float], None] = lambda share: None,
) -> ImportReport:
    """Import files and whatever `.npz` files lie in folders; a bad one never stops the others.

    `show` gets the share of the files that are done, 0 to 1.
    """
    importer = _Importer(run, clock, late_rewards=late_rewards)
    found = [one for path in paths for one in importer.files_at(path)]
    for done, path in enumerate(found, start=1):
        importer.take(path)
        show(done / len(found))
    importer.take_model()
    return importer.report


class _Importer:
    """Where files come in. The run folder is made for the first good one."""

    def __init__(self, run: Path, clock: Clock, *, late_rewards: bool) -> None:
        self.report = ImportReport(run)
        self._run = run
        self._clock = clock
        self._late_rewards = late_rewards
        self._spec = _spec(run, clock)
        self._seen: set[Path] = set()
        self._models: dict[str, tuple[Path, OldModel]] = {}

    @cached_property
    def _folder(self) -> RunFolder:
        return RunFolder.kept(self._run, self._clock) or RunFolder.open(
            self._run, spec=self._spec, config=None, clock=self._clock
        )

    @cached_property
    def _intake(self) -> EpisodeIntake:
        return EpisodeIntake(self._folder)

    def files_at(self, path: Path) -> list[Path]:
        """This file, or all files in this folder."""
        if not path.is_dir():
            return [path]
        found = sorted(npz_files(path))
        if not found:
            self.report.lines.append(
                ImportedFile(path, "failed", "there is no .npz file in this folder")
            )
        return found

    def take(self, path: Path) -> None:
        """Import a file; one that was taken before is passed over."""
        if path.resolve() in self._seen:
            return
        self._seen.add(path.resolve())
        if path.name.endswith(_UNFINISHED):
            reason = f"unfinished, as its name ({_UNFINISHED}) says; rename it if it is whole"
            self.report.lines.append(ImportedFile(path, "failed", reason))
            return
        try:
            data = read_bytes(path, limit=episodes.MAX_BYTES)
            arrays = from_npz(data, what=path.name, limit=episodes.MAX_BYTES)
            line = self._sorted(path, arrays)
        except FileFormatError as error:
            line = ImportedFile(path, "failed", str(error).removeprefix(f"{path.name}: "))
        except OSError as error:
            line = ImportedFile(path, "failed", error.strerror or str(error))
        if line is not None:
            self.report.lines.append(line)

    def _sorted(self, path: Path, arrays: Mapping[str, NDArray]) -> ImportedFile | None:
        if set(old_files.ARRAYS) <= arrays.keys():
            return self._experience(path, arrays)
        if old_models.ARRAYS[0] in arrays:
            model = old_models.decode(arrays, self._spec, what=path.name)
            key = old_models.identify(model)
            if key in self._models:
                return ImportedFile(path, "known")
            self._models[key] = (path, model)
            return None  # later: whether it can be taken depends on the others
        if "meta" in arrays:
            raise FileFormatError("an episode of Understudy itself; copy the run folder instead")
        raise FileFormatError(
            f"neither experience nor a model of the old bot (it has {sorted(arrays)[:6]})"
        )

    def _experience(self, path: Path, arrays: Mapping[str, NDArray]) -> ImportedFile:
        episode = old_files.decode(
            arrays,
            self._spec,
            name=path.name,
            now=self._clock.time(),
            late_rewards=self._late_rewards,
        )
        return self._intake.take(episode, path)

    def take_model(self) -> None:
        """The model among the files, as the first version; several are a question to a person."""
        for key, (path, model) in self._models.items():
            if len(self._models) > 1:
                line = ImportedFile(
                    path, "failed", f"one of {len(self._models)} models; name one alone"
                )
            elif self._intake.knows(key):
                line = ImportedFile(path, "known")
            else:
                line = self._model(path, key, model)
            self.report.lines.append(line)

    def _model(self, path: Path, key: str, model: OldModel) -> ImportedFile:
        try:
            _commit(self._folder, model)
        except UnderstudyError as error:
            return ImportedFile(path, "failed", str(error))
        self._intake.note(key, path.name)
        return ImportedFile(path, "model")


def _commit(folder: RunFolder, model: OldModel) -> None:
    """Under the learner's lock: a version that appears while it works would fence it off."""
    with learner_lock(folder.root):
        begin_with(folder, model, Journal(folder.journal, "import", folder.clock))


def _spec(run: Path, clock: Clock) -> PolicySpec:
    """What the run is for; an error if it is for something that no old file can be about."""
    kept = RunFolder.kept(run, clock)
    if kept is None:
        return old_models.spec()
    spec = kept.spec
    if spec.features != old_models.features(len(spec.features)):
        raise RunFolderError(
            f"{run}: was made for other features than the old bot's "
            f"({', '.join(spec.features[:3])}…); import into a new run folder"
        )
    if not isinstance(spec.actions, Discrete):
        raise RunFolderError(
            f"{run}: was made for other actions than the old bot's (one choice among names); "
            "import into a new run folder"
        )
    return spec


def npz_files(folder: Path) -> Iterator[Path]:
    """All of them below a folder, but none inside a run folder."""
    for where, folders, names in os.walk(folder):
        if holds_run(Path(where)):
            folders.clear()
            continue
        yield from (Path(where) / name for name in names if name.endswith(".npz"))
