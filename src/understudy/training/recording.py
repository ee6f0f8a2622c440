"""Writes the matches that the arena recorded into the run folder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from understudy.arena.recording import PlayedMatch, engine_name
from understudy.match.recordings import MatchRecordings, RecordedMatch, RecordingMeta
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events
from understudy.telemetry.journal import Journal


class RecordingWriter:
    """The recordings of one run, written by its learner under the learner's lock.

    Where one cannot be written, the journal says so once, and training goes on without it.
    """

    def __init__(self, folder: RunFolder, journal: Journal) -> None:
        self._folder = folder
        self._journal = journal
        self._recordings = MatchRecordings(folder.root)
        self._failed = False

    def write(self, matches: Sequence[PlayedMatch], *, version: int, steps: int) -> None:
        """Write matches that ended in the iteration after `version` and the run's `steps`."""
        try:
            for match in matches:
                self._recordings.put(self._recorded(match, version=version, steps=steps))
                self._failed = False
        except OSError as error:
            if self._failed:
                return
            self._failed = True
            message = f"a match could not be recorded: {error}"
            self._journal.write(events.Problem(where="recording", message=message))

    def _recorded(self, match: PlayedMatch, *, version: int, steps: int) -> RecordedMatch:
        game, _, rules = self._folder.identity.game.rpartition(" ")
        largest = max(self._folder.spec.actions.parts) - 1
        meta = RecordingMeta(
            game=game,
            rules=int(rules),
            options=self._folder.identity.game_options,
            engine=engine_name(),
            seed=match.seed,
            side=match.side,
            opponent=match.opponent,
            score=match.score,
            frames=len(match.actions),
            version=version,
            steps=steps,
            recorded_at=self._folder.clock.time(),
        )
        actions = match.actions.astype(np.min_scalar_type(largest))
        return RecordedMatch(meta, actions, match.checksums)
