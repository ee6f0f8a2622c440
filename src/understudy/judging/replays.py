"""Recorded matches of a run by the name that people give them: `RUN:ID`.

A run of `understudy train` has recordings of both sides' actions, a run of `understudy play` has
episodes; ids of the former are numbers, those of the latter the hex digits of the file's name.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec

from understudy.core.arrays import read_bytes
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
from understudy.match.replaying import RULES, SEED, replay_episode, replay_recording
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


class ReplayedEpisode(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an episode of a game that cannot be drawn, replayed."""

    game: str
    match: str
    seed: int
    opponent: str
    outcome: str
    frames: int
    reward: float
    states: str = "all observations are as recorded, bit for bit"


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
            yield _recording_row(number, recordings.meta(number))
        except RunFolderError:
            continue  # training has pruned it meanwhile
        except (FileFormatError, OSError) as error:
            yield MatchListing(id=str(number), problem=str(error))
    for name, path in sorted(files_of(folder.root).items(), reverse=True):
        try:
            yield _episode_row(name, _episode(folder, path))
        except (FileFormatError, OSError) as error:
            yield MatchListing(id=_id_of(name), problem=str(error))


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


def replayed_episode(folder: RunFolder, which: str) -> ReplayedEpisode:
    """Replay the episode with this id (or the one whose id begins so), and say what it was."""
    found = files_of(folder.root)
    names = [name for name in found if which == name or _id_of(name).startswith(which)]
    if len(names) != 1:
        raise RunFolderError(
            f"{_FLAG} {folder.root}:{which}: expected one episode, found {len(names)}; {_FLAG} "
            f"{folder.root} lists what there is"
        )
    path = found[names[0]]
    episode, game = _episode(folder, path), folder.identity.game_name
    replay_episode(episode, game, what=str(path))
    return ReplayedEpisode(
        game=game,
        match=_id_of(path.name),
        seed=int(episode.meta.tags[SEED]),
        opponent=episode.meta.tags.get("opponent", ""),
        outcome=str(episode.meta.outcome),
        frames=len(episode),
        reward=round(float(episode.rewards.sum()), 4),
    )


def replayed_recording(folder: RunFolder, which: str) -> ReplayedEpisode:
    """Replay the recording with this id, of a game that cannot be drawn, and say what it was."""
    match = load_recording(folder, which)
    meta, what = match.meta, f"{folder.root}:{which}"
    states = replay_here(match, what=what)
    game = catalog.make(meta.game, **meta.options)
    reward = sum(
        float(game.reward(NUMPY, before, after)[meta.side, 0]) for before, after in pairwise(states)
    )
    return ReplayedEpisode(
        game=meta.game,
        match=which,
        seed=meta.seed,
        opponent=meta.opponent,
        outcome=_OUTCOMES[meta.score],
        frames=meta.frames,
        reward=round(reward, 4),
        states="all states are as recorded, bit for bit",
    )


def _recording_row(number: int, meta: RecordingMeta) -> MatchListing:
    return MatchListing(
        id=str(number),
        opponent=meta.opponent,
        outcome=_OUTCOMES[meta.score],
        frames=meta.frames,
        at=meta.recorded_at,
        steps=meta.steps,
        version=meta.version,
        problem=_other_rules(meta.game, f"{meta.game} {meta.rules}"),
    )


def _episode_row(name: str, episode: Episode) -> MatchListing:
    tags = episode.meta.tags
    missing = next((tag for tag in (SEED, RULES) if tag not in tags), None)
    return MatchListing(
        id=_id_of(name),
        opponent=tags.get("opponent", ""),
        outcome=str(episode.meta.outcome),
        frames=len(episode),
        at=episode.meta.finished_at,
        version=int(episode.versions[-1]),
        problem=f"it has no tag {missing!r}"
        if missing
        else _other_rules(tags[RULES].partition(" ")[0], tags[RULES]),
    )


def _other_rules(game: str, recorded: str) -> str:
    if not catalog.known(game):
        return f"there is no game {game!r}"
    rules = f"{game} {catalog.make(game).version}"
    return "" if recorded == rules else f"recorded under {recorded}, this is {rules}"


def _episode(folder: RunFolder, path: Path) -> Episode:
    data = read_bytes(path, limit=episodes.MAX_BYTES)
    return episodes.decode(data, folder.spec, what=str(path))


def _id_of(name: str) -> str:
    """The hex digits of an episode's name; the whole name where a person chose it."""
    stem = name.removesuffix(".npz")
    time_ns, _, chance = stem.partition("-")
    return chance if time_ns.isdecimal() and chance else stem
