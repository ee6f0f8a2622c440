"""Writes the matches that the arena recorded into the run folder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from understudy.arena.recording import PlayedMatch, engine_name
from understudy.match.recordings import MatchRecordings, RecordedMatch, RecordingMeta
from understudy.registry.run_folder import RunFolder


def keep_matches(
    folder: RunFolder, matches: Sequence[PlayedMatch], *, version: int, steps: int
) -> None:
    """Write these matches, which ended in the iteration after `version` and the run's `steps`; use
    it under the learner's lock."""
    game, _, rules = folder.identity.game.rpartition(" ")
    largest = max(folder.spec.actions.parts) - 1
    for match in matches:
        meta = RecordingMeta(
            game=game,
            rules=int(rules),
            options=folder.identity.game_options,
            engine=engine_name(),
            seed=match.seed,
            side=match.side,
            opponent=match.opponent,
            score=match.score,
            frames=len(match.actions),
            version=version,
            steps=steps,
            recorded_at=folder.clock.time(),
        )
        actions = match.actions.astype(np.min_scalar_type(largest))
        MatchRecordings(folder.root).put(RecordedMatch(meta, actions, match.checksums))
