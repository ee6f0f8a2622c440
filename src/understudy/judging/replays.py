"""Recorded matches of a run by the name that people give them: `RUN:ID`.

A run of `understudy train` has recordings of both sides' actions, a run of `understudy play` has
episodes; ids of the former are numbers, those of the latter the hex digits of the file's name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np

from understudy.core.arrays import NDArray, read_bytes
from understudy.core.clock import SystemClock
from understudy.core.dependencies import install_line, not_installed
from understudy.core.errors import ConfigError, FileFormatError, MissingDependency, RunFolderError
from understudy.core.ops import NUMPY
from understudy.experience import episode as episodes
from understudy.experience.episode import Episode
from understudy.experience.spool import files_of
from understudy.games import catalog, custom
from understudy.games.base import State
from understudy.judging.players import check_game
from understudy.match.recordings import MatchRecordings, RecordedMatch, RecordingMeta
from understudy.match.replaying import (
    RULES,
    SEED,
    episode_options,
    missing_tag,
    replay_episode,
    replay_recording,
)
from understudy.registry.run_folder import RunFolder
from understudy.telemetry.text import plain

_FLAG = "--match"
_OUTCOMES = {1: "won", 0: "drawn", -1: "lost"}


class MatchListing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One match of a run that was recorded."""

    id: str
    opponent: str = ""
    outcome: str = ""
    """Of the learner: won, drawn, lost; of an episode: victory, defeat, tie, aborted."""
    frames: int = 0
    at: float = 0.0
    steps: int | None = None
    """As in `RecordingMeta`; None for an episode."""
    version: int | None = None
    problem: str = ""
    """Why it cannot be replayed; empty where it can."""


@dataclass(frozen=True)
class ReplayedMatch:
    """A recorded match, played again; every state, or every observation, was compared."""

    id: str
    game: str
    options: Mapping[str, str]
    """That the game was made with."""
    seed: int
    side: int
    """The player that the learner was."""
    opponent: str
    outcome: str
    """As in `MatchListing`."""
    at: float
    states: list[State]
    """T + 1, each a batch of one"""
    actions: NDArray
    """int32 [T, players, parts], as executed"""
    meta: RecordingMeta | None = None
    """Of a recording of `train`."""
    episode: Episode | None = None
    """Of a run of `play`."""

    @property
    def frames(self) -> int:
        return len(self.actions)

    @property
    def reward(self) -> float:
        """Of the learner, over the whole match, by the game's own reward."""
        if self.episode is not None:
            return float(self.episode.rewards.sum())
        game = catalog.make(self.game, **self.options)
        return sum(
            float(game.reward(NUMPY, before, after)[self.side, 0])
            for before, after in pairwise(self.states)
        )

    @property
    def compared(self) -> str:
        """What was compared, in words."""
        what = "observations" if self.episode is not None else "states"
        return f"all {what} are as recorded, bit for bit"


class ReplayedEpisode(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an episode of a game that cannot be drawn, replayed."""

    game: str
    match: str
    seed: int
    opponent: str
    outcome: str
    frames: int
    reward: float
    states: str
    """What was compared."""


def named_match(text: str, game: str) -> tuple[RunFolder, str | None]:
    """The run and the id of `RUN:ID`; no id where only a run is named."""
    path, which = Path(text), None
    if not path.is_dir():
        stem, colon, tail = text.rpartition(":")
        if not colon or not tail or not Path(stem).is_dir():
            raise ConfigError(
                f"{_FLAG} {text}: expected RUN:ID, or RUN to list what there is; there is no run "
                f"folder {(stem if colon else text)!r}"
            )
        path, which = Path(stem), tail
    folder = RunFolder.load(path, SystemClock())
    if custom.is_custom(game):
        game = custom.load_game(game, folder.identity.game_options)
    check_game(_FLAG, folder, game)
    folder.load_code()
    return folder, which


def listed(folder: RunFolder) -> Iterator[MatchListing]:
    """The recorded matches of a run, newest first. A file is read when its row is asked for."""
    recordings = MatchRecordings(folder.root)
    for number in reversed(recordings.numbers()):
        try:
            yield _recording_row(folder, number, recordings.meta(number))
        except RunFolderError:
            continue  # training has pruned it meanwhile
        except (FileFormatError, OSError) as error:
            yield MatchListing(id=str(number), problem=str(error))
    for name, path in sorted(files_of(folder.root).items(), reverse=True):
        try:
            yield _episode_row(folder, name, _episode(folder, path))
        except (FileFormatError, OSError) as error:
            yield MatchListing(id=_id_of(name), problem=str(error))


def count_recorded(folder: RunFolder) -> int:
    """How many `listed` would list."""
    return len(MatchRecordings(folder.root).numbers()) + len(files_of(folder.root))


def load_recording(folder: RunFolder, which: str) -> RecordedMatch:
    """The recording with this id."""
    if not which.isdecimal():
        raise ConfigError(
            f"{_FLAG} {folder.root}:{which}: expected a number after the colon; {_FLAG} "
            f"{folder.root} lists what there is"
        )
    return MatchRecordings(folder.root).load(int(which))


def replay_here(match: RecordedMatch, *, what: str) -> list[State]:
    """The states of a recording, T + 1, computed by the engine that recorded it: JAX."""
    if not_installed("jax"):
        engine = plain(match.meta.engine, limit=60)
        raise MissingDependency(
            f"{what}: recorded with {engine}, which a replay needs too: {install_line('learn')}"
        )
    from understudy.supervise.compile_cache import keep_compiled

    keep_compiled()
    from understudy.arena.recording import engine_name, replayed

    return replay_recording(match, replayed, here=engine_name(), what=what)


def replay_match(folder: RunFolder, which: str) -> ReplayedMatch:
    """Replay the recording, or the episode, with this id; one whose id begins so is enough."""
    episodes_there = files_of(folder.root)
    recorded = which.isdecimal() and int(which) in MatchRecordings(folder.root).numbers()
    if recorded or not episodes_there:
        return _replayed_recording(folder, which)
    names = [name for name in episodes_there if which == name or _id_of(name).startswith(which)]
    if len(names) != 1:
        raise RunFolderError(
            f"{_FLAG} {folder.root}:{which}: expected one episode, found {len(names)}; {_FLAG} "
            f"{folder.root} lists what there is"
        )
    path = episodes_there[names[0]]
    return _replayed_episode(folder, path)


def replayed_in_words(match: ReplayedMatch) -> ReplayedEpisode:
    """What a replayed match was, for a game that cannot be drawn."""
    return ReplayedEpisode(
        game=match.game,
        match=match.id,
        seed=match.seed,
        opponent=match.opponent,
        outcome=match.outcome,
        frames=match.frames,
        reward=round(match.reward, 4),
        states=match.compared,
    )


def _replayed_recording(folder: RunFolder, which: str) -> ReplayedMatch:
    match = load_recording(folder, which)
    meta = match.meta
    return ReplayedMatch(
        id=which,
        game=meta.game,
        options=meta.options,
        seed=meta.seed,
        side=meta.side,
        opponent=meta.opponent,
        outcome=_OUTCOMES[meta.score],
        at=meta.recorded_at,
        states=replay_here(match, what=f"{folder.root}:{which}"),
        actions=match.actions.astype(np.int32),
        meta=meta,
    )


def _replayed_episode(folder: RunFolder, path: Path) -> ReplayedMatch:
    game, episode = folder.identity.game_name, _episode(folder, path)
    states, tags = replay_episode(episode, game, what=str(path)), episode.meta.tags
    return ReplayedMatch(
        id=_id_of(path.name),
        game=game,
        options=episode_options(episode, game),
        seed=int(tags[SEED]),
        side=0,
        opponent=tags.get("opponent", ""),
        outcome=str(episode.meta.outcome),
        at=episode.meta.finished_at,
        states=states,
        actions=episode.actions[:, None],
        episode=episode,
    )


def _recording_row(folder: RunFolder, number: int, meta: RecordingMeta) -> MatchListing:
    return MatchListing(
        id=str(number),
        opponent=meta.opponent,
        outcome=_OUTCOMES[meta.score],
        frames=meta.frames,
        at=meta.recorded_at,
        steps=meta.steps,
        version=meta.version,
        problem=_other_rules(folder, meta.game, f"{meta.game} {meta.rules}"),
    )


def _episode_row(folder: RunFolder, name: str, episode: Episode) -> MatchListing:
    tags = episode.meta.tags
    missing = missing_tag(tags)
    return MatchListing(
        id=_id_of(name),
        opponent=tags.get("opponent", ""),
        outcome=str(episode.meta.outcome),
        frames=len(episode),
        at=episode.meta.finished_at,
        version=int(episode.versions[-1]),
        problem=missing or _other_rules(folder, tags[RULES].partition(" ")[0], tags[RULES]),
    )


def _other_rules(folder: RunFolder, game: str, recorded: str) -> str:
    """Why a match of these rules cannot be replayed. A custom game is not loaded for a list: its
    rules are those that the run was made with, and the replay itself compares every state."""
    identity = folder.identity
    if catalog.known(game):
        rules = f"{game} {catalog.make(game).version}"
    elif identity.game_code is not None and identity.game_name == game:
        rules = identity.game
    else:
        return f"there is no game {game!r}"
    return "" if recorded == rules else f"recorded under {recorded}, this is {rules}"


def _episode(folder: RunFolder, path: Path) -> Episode:
    data = read_bytes(path, limit=episodes.MAX_BYTES)
    return episodes.decode(data, folder.spec, what=str(path))


def _id_of(name: str) -> str:
    """The hex digits of an episode's name; the whole name where a person chose it."""
    stem = name.removesuffix(".npz")
    time_ns, _, chance = stem.partition("-")
    return chance if time_ns.isdecimal() and chance else stem
