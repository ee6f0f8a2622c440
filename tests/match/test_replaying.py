"""Replays are the match that was played, state by state, or an error that says where they part."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from understudy.core.arrays import NDArray
from understudy.core.errors import FileFormatError, ReplayDiverged
from understudy.core.ops import NUMPY
from understudy.experience.episode import Episode, Meta, Outcome
from understudy.games import catalog
from understudy.games.base import Game, State
from understudy.match.live_match import LiveMatch
from understudy.match.recordings import RecordedMatch, RecordingMeta
from understudy.match.replaying import (
    checksum,
    played_again,
    replay_episode,
    replay_recording,
    replay_tags,
)

DELAYED = {"delay": "2", "actions": "keys"}


def random_match(game: Game, seed: int) -> tuple[list[State], NDArray]:
    """States and actions [T, 2, parts] of a match between two that do anything."""
    rng, states, actions = np.random.default_rng(seed), [], []
    states.append(game.start(NUMPY, np.array([seed], np.uint32)))
    while not game.over(NUMPY, states[-1])[0]:
        actions.append(rng.integers(0, game.actions.parts, (2, len(game.actions.parts))))
        after = game.step(NUMPY, states[-1], actions[-1][..., None].astype(np.int32))
        states.append(after)
    return states, np.array(actions, np.int32)


@pytest.fixture(scope="module")
def played() -> tuple[list[State], RecordedMatch]:
    """A match under NumPy, as the arena would record it."""
    game = catalog.make("brawl", **DELAYED)
    states, actions = random_match(game, 3)
    meta = RecordingMeta(
        game="brawl",
        rules=game.version,
        options=DELAYED,
        engine="numpy",
        seed=3,
        side=1,
        opponent="random",
        score=int(game.score(NUMPY, states[-1])[1, 0]),
        frames=len(actions),
        version=0,
        steps=0,
        recorded_at=0.0,
    )
    sums = np.array([checksum(NUMPY, state)[0] for state in states[1:]])
    return states, RecordedMatch(meta, actions.astype(np.uint8), sums)


def replayed(match: RecordedMatch) -> list[State]:
    return replay_recording(match, played_again, here="numpy", what="runs/x:4")


def test_a_replay_has_every_state_bit_for_bit(
    played: tuple[list[State], RecordedMatch],
) -> None:
    states, match = played
    again = replayed(match)
    assert len(again) == len(states) == match.meta.frames + 1
    for one, other in zip(states, again, strict=True):
        assert all(a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True))


def test_a_checksum_sees_every_bit_of_the_games_own_state(
    played: tuple[list[State], RecordedMatch],
) -> None:
    state = played[0][20]
    known = checksum(NUMPY, state)
    assert known.dtype == np.uint32 and known.shape == (1,)
    rng = np.random.default_rng(0)
    for name in state._fields:
        leaf = getattr(state, name).copy()
        raw = leaf.view(np.uint8).reshape(-1)
        if leaf.dtype == np.bool_:
            leaf.reshape(-1)[0] ^= True
        else:
            raw[rng.integers(len(raw))] ^= 1 << rng.integers(8)
        changed = checksum(NUMPY, state._replace(**{name: leaf}))
        assert (changed[0] == known[0]) == (name == "past"), name
    swapped = checksum(NUMPY, state._replace(x=state.y, y=state.x))
    assert swapped[0] != known[0], "the same words in other places"


def test_columns_have_checksums_of_their_own() -> None:
    game = catalog.make("brawl")
    many = game.start(NUMPY, np.arange(5, dtype=np.uint32))
    alone = [
        checksum(NUMPY, game.start(NUMPY, np.array([seed], np.uint32)))[0] for seed in range(5)
    ]
    np.testing.assert_array_equal(checksum(NUMPY, many), np.array(alone))
    assert len(set(alone)) == 5


def test_a_replay_that_diverges_says_where_and_shows_nothing(
    played: tuple[list[State], RecordedMatch],
) -> None:
    match = played[1]
    sums = match.checksums.copy()
    sums[41] ^= 1
    with pytest.raises(
        ReplayDiverged,
        match=r"runs/x:4: the replay diverges at frame 42 of .* numpy; this is numpy",
    ):
        replayed(replace(match, checksums=sums))
    actions = match.actions.copy()
    actions[:, :, 0] ^= 1
    with pytest.raises(ReplayDiverged, match="diverges at frame"):
        replayed(replace(match, actions=actions))


def test_what_does_not_fit_the_rules_is_an_error_that_names_the_field(
    played: tuple[list[State], RecordedMatch],
) -> None:
    match = played[1]

    def changed(**fields: object) -> RecordedMatch:
        return replace(match, meta=msgspec.structs.replace(match.meta, **fields))

    with pytest.raises(FileFormatError, match="x:4: rules: recorded under brawl 0, this program"):
        replayed(changed(rules=0))
    with pytest.raises(FileFormatError, match=r"x:4: score: expected .* got"):
        replayed(changed(score=match.meta.score - 1))
    with pytest.raises(FileFormatError, match="x:4: actions: expected"):
        replayed(replace(match, actions=match.actions + np.uint8(9)))
    with pytest.raises(FileFormatError, match="x:4: actions: expected 2 players with 1 parts"):
        replayed(changed(options={"actions": "chords"}))
    with pytest.raises(FileFormatError, match="x:4: options: brawl has no option 'wind'"):
        replayed(changed(options={"wind": "2"}))
    half = match.meta.frames // 2
    cut = replace(match, actions=match.actions[:half], checksums=match.checksums[:half])
    with pytest.raises(FileFormatError, match="x:4: score"):
        replayed(replace(cut, meta=msgspec.structs.replace(match.meta, frames=half)))


@pytest.fixture(scope="module")
def episode() -> Episode:
    """A match of swarm as `play` keeps it."""
    game = catalog.make("swarm", difficulty="easy")
    match, rng = LiveMatch(game, 5), np.random.default_rng(1)
    seen, actions, rewards = [], [], []
    while not match.over:
        seen.append(match.observe())
        actions.append(int(rng.choice(np.flatnonzero(match.legal()))))
        rewards.append(match.act(actions[-1]))
    length = len(seen)
    tags = {**match.tags, **replay_tags(game, 5)}
    return Episode(
        meta=Meta(id="one", outcome=Outcome(match.outcome()), finished_at=0.0, tags=tags),
        observations=np.array(seen, np.float32),
        actions=np.array(actions, np.int32)[:, None],
        log_probs=np.zeros(length, np.float32),
        values=np.zeros(length, np.float32),
        rewards=np.array(rewards, np.float32),
        sampled=np.zeros(length, np.bool_),
        versions=np.zeros(length, np.int64),
    )


def tagged(episode: Episode, **tags: str | None) -> Episode:
    both = {**episode.meta.tags, **tags}
    kept = {name: value for name, value in both.items() if value is not None}
    return replace(episode, meta=msgspec.structs.replace(episode.meta, tags=kept))


def test_an_episode_of_play_is_replayed_bit_for_bit(episode: Episode) -> None:
    states = replay_episode(episode, "swarm", what="x.npz")
    game = catalog.make("swarm", difficulty="easy")
    assert len(states) == len(episode) + 1
    for index, state in enumerate(states[:-1]):
        seen = game.observe(NUMPY, state)[0, :, 0]
        assert seen.tobytes() == episode.observations[index].tobytes()
        reward = game.reward(NUMPY, state, states[index + 1])[0, 0]
        assert reward == episode.rewards[index]


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ({"seed": None}, "tags: .*it has no tag 'seed'"),
        ({"rules": None}, "tags: .*it has no tag 'rules'"),
        ({"rules": "swarm 0"}, "tags: rules: recorded under swarm 0, this program plays swarm 1"),
        ({"seed": "five"}, "tags: seed: expected a uint32, got 'five'"),
        ({"difficulty": "cruel"}, "tags: swarm: difficulty must be one of"),
        ({"seed": str(2**32)}, "tags: seed: expected a uint32"),
    ],
)
def test_an_episode_that_cannot_be_replayed_names_the_field(
    episode: Episode, tags: dict[str, str | None], message: str
) -> None:
    with pytest.raises(FileFormatError, match=rf"x\.npz: {message}"):
        replay_episode(tagged(episode, **tags), "swarm", what="x.npz")


def test_an_episode_of_another_match_diverges(episode: Episode) -> None:
    with pytest.raises(ReplayDiverged, match=r"x\.npz: the replay diverges at frame"):
        replay_episode(tagged(episode, seed="6"), "swarm", what="x.npz")
    changed = episode.observations.copy()
    changed[17, 3] = np.nextafter(changed[17, 3], np.float32(9))
    with pytest.raises(ReplayDiverged, match=f"at frame 17 of {len(episode)}"):
        replay_episode(replace(episode, observations=changed), "swarm", what="x.npz")
