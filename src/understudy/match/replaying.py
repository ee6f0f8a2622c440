"""Replays: a match played again from its seed and its actions, every state compared.

The rules are deterministic under one engine, so a seed and the actions of all sides give the same
states bit for bit. Another engine (NumPy for a match that JAX played, another kind of device) may
round differently, so a replay runs on the engine that recorded, and every state is compared with
the recorded checksum. A replay is complete and right, or an error that names the frame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.chance import fold, mix
from understudy.core.errors import ConfigError, FileFormatError, ReplayDiverged
from understudy.core.ops import NUMPY, Array, Ops
from understudy.experience.episode import Episode, Outcome
from understudy.games import catalog
from understudy.games.base import Game, State
from understudy.games.delay import undelayed
from understudy.match.recordings import RecordedMatch
from understudy.telemetry.text import plain

SEED, RULES = "seed", "rules"
"""Tags of an episode that can be replayed."""
_SERVED = {"territory", "client"}
"""Tags of an episode that a server recorded."""

ReplayEngine: TypeAlias = Callable[[Game, int, NDArray], list[State]]
"""(game, seed, actions int32 [T, players, parts]): the T + 1 states of one match, as NumPy arrays
with a batch of one."""


def checksum(ops: Ops, state: State) -> Array:
    """uint32 [B]: a hash of every bit of the game's own state.

    A delay is left out: it keeps past observations, which follow from the states before. Every
    word is mixed with its place, and the results are added up, so the order of computation does
    not matter and one changed bit changes the sum.
    """
    xp = ops.xp
    words = xp.concatenate(
        [
            (leaf.astype(xp.uint32) if leaf.dtype == np.bool_ else leaf.view(xp.uint32)).reshape(
                -1, leaf.shape[-1]
            )
            for leaf in undelayed(state)
        ]
    )
    place = mix(np.arange(1, len(words) + 1, dtype=np.uint32))
    return fold(place[:, None], words).sum(0, dtype=xp.uint32)


def played_again(game: Game, seed: int, actions: NDArray) -> list[State]:
    """A `ReplayEngine` under NumPy."""
    states = [game.start(NUMPY, np.array([seed], np.uint32))]
    for frame in actions:
        states.append(game.step(NUMPY, states[-1], frame[..., None]))
    return states


def replay_recording(
    match: RecordedMatch, engine: ReplayEngine, *, here: str, what: str
) -> list[State]:
    """The states of a recorded match, T + 1, all of them compared with their checksums.

    `here` names the engine in errors, `what` the recording. Raises `ReplayDiverged` at the first
    state that is not the recorded one, and `FileFormatError` where the rules are others.
    """
    meta = match.meta
    game = _made(meta.game, meta.options, what=f"{what}: options")
    _check_rules(f"{what}: rules", f"{meta.game} {meta.rules}", game)
    parts = np.array(game.actions.parts)
    if match.actions.shape[1:] != (game.players, len(parts)) or (match.actions >= parts).any():
        raise FileFormatError(
            f"{what}: actions: expected {game.players} players with {len(parts)} parts within "
            f"{parts}"
        )
    states = engine(game, meta.seed, match.actions.astype(np.int32))
    for frame, (state, expected) in enumerate(zip(states[1:], match.checksums, strict=True), 1):
        if checksum(NUMPY, state)[0] != expected:
            raise ReplayDiverged(
                f"{what}: the replay diverges at frame {frame} of {meta.frames}: the state "
                f"is not the one that was recorded with {plain(meta.engine, limit=60)}; this is "
                f"{here}"
            )
    score = float(game.score(NUMPY, states[-1])[meta.side, 0])
    if not game.over(NUMPY, states[-1])[0] or score != meta.score:
        raise FileFormatError(
            f"{what}: score: expected {score:+g}, which is that of the replayed match, got "
            f"{meta.score:+d}"
        )
    return states


def replay_episode(episode: Episode, game: str, *, what: str) -> list[State]:
    """The states of an episode that `understudy play` recorded, all observations compared.

    The game has one player (its enemy is part of the rules), so the seed in the tags and the
    actions are all there is to a match.
    """
    tags = episode.meta.tags
    missing = missing_tag(tags)
    if missing:
        raise FileFormatError(f"{what}: tags: expected {SEED!r} and {RULES!r}: {missing}")
    rules = _made(game, episode_options(episode, game), what=f"{what}: tags")
    _check_rules(f"{what}: tags: {RULES}", tags[RULES], rules)
    if rules.players != 1:
        raise FileFormatError(
            f"{what}: actions: an episode has those of one side, {game} has {rules.players}"
        )
    if not (tags[SEED].isdecimal() and int(tags[SEED]) < 2**32):
        raise FileFormatError(f"{what}: tags: seed: expected a uint32, got {tags[SEED]!r}")
    states = played_again(rules, int(tags[SEED]), episode.actions[:, None])
    for frame, (state, seen) in enumerate(zip(states[:-1], episode.observations, strict=True)):
        if rules.observe(NUMPY, state)[0, :, 0].tobytes() != seen.tobytes():
            raise ReplayDiverged(
                f"{what}: the replay diverges at frame {frame} of {len(episode)}: what is seen is "
                "not what was recorded; another version of NumPy or another machine may round "
                "differently"
            )
    outcome = episode.meta.outcome
    if outcome is not Outcome.ABORTED and not rules.over(NUMPY, states[-1])[0]:
        raise FileFormatError(f"{what}: outcome: {outcome}, but the replayed match is not over")
    return states


def missing_tag(tags: Mapping[str, str]) -> str:
    """Why an episode with these tags cannot be replayed, in words; empty: nothing is missing."""
    missing = next((tag for tag in (SEED, RULES) if tag not in tags), None)
    if missing is None:
        return ""
    if tags.keys() >= _SERVED:
        return (
            "a server recorded it, which keeps what a client observed and no state of the game, so "
            "there is nothing to play again"
        )
    return (
        f"it has no tag {missing!r}, as an episode of an earlier program or of a custom bot has "
        "none"
    )


def episode_options(episode: Episode, game: str) -> dict[str, str]:
    """The options of the game that an episode was played under: its tags of those names."""
    tags = episode.meta.tags
    return {option: tags[option] for option in catalog.defaults(game) if option in tags}


def _made(game: str, options: Mapping[str, str], *, what: str) -> Game:
    try:
        return catalog.make(game, **options)
    except ConfigError as error:
        raise FileFormatError(f"{what}: {error}") from error


def _check_rules(what: str, recorded: str, game: Game) -> None:
    rules = f"{game.name} {game.version}"
    if recorded != rules:
        raise FileFormatError(
            f"{what}: recorded under {recorded}, this program plays {rules}; replay it with the "
            "program that recorded it"
        )


def replay_tags(game: Game, seed: int) -> dict[str, str]:
    """What an episode of this match is tagged with, so that it can be replayed."""
    return {SEED: str(seed), RULES: f"{game.name} {game.version}"}
