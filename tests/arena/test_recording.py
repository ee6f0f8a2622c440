"""What the arena records is what it played, frame by frame, and playing it again gives the same."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.arena.columns import Ends
from understudy.arena.recording import (
    MatchRecorder,
    PlayedMatch,
    RecordedFrames,
    recorded_columns,
    replayed,
)
from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY
from understudy.games import catalog
from understudy.learner.maths.jax_ops import JAX
from understudy.match.replaying import checksum

from .makers import GAME, SEGMENT, Story, arena, plan, story
from .slow import tell

COLUMNS = (0, 3, 8, 13)
SEED = 5


@pytest.fixture(scope="module")
def recorded() -> tuple[Story, list[PlayedMatch]]:
    """Every match of four columns."""
    played = story(plan(recorded=COLUMNS), SEED)
    recorder = MatchRecorder(COLUMNS, steps=1, per_step=1000.0)
    names = [f"opponent {index}" for index in range(played.plan.opponents)]
    for chapter in played.chapters:
        assert chapter.rolled.recorded is not None
        recorder.add(chapter.rolled.recorded, chapter.rolled.ends, names)
    return played, recorder.take()


def told(played: Story, column: int) -> list[dict[str, list[Any]]]:
    """The matches of one column as the slow arena plays them: rows by field. Without the first,
    which no count has, and the last, which did not end."""
    matches: list[dict[str, list[Any]]] = []
    for row in tell(played, column, SEED).rows:
        if row["first"]:
            matches.append({name: [] for name in row})
        for name, value in row.items():
            matches[-1][name].append(value)
    return [match for match in matches[1:] if not match["ongoing"][-1]]


def test_a_recorded_match_is_that_of_the_slow_arena_state_by_state(
    recorded: tuple[Story, list[PlayedMatch]],
) -> None:
    played, found = recorded
    expected = {match["seed"][0]: (c, match) for c in COLUMNS for match in told(played, c)}
    assert {match.seed for match in found} == expected.keys() and len(found) > 8
    longest = max(found, key=lambda match: len(match.actions))
    assert len(longest.actions) > SEGMENT, "no match spans two rollouts"
    for match in found:
        column, slow = expected[match.seed]
        assert (match.side, match.opponent) == (column % 2, f"opponent {slow['index'][0]}")
        assert match.score == slow["score"][-1]
        sides = ("actions", "opponent_actions")[:: 1 - 2 * match.side]
        for player, name in enumerate(sides):
            np.testing.assert_array_equal(match.actions[:, player], np.array(slow[name]))
        again = replayed(GAME, match.seed, match.actions)
        assert len(again) == len(slow["state"]) + 1
        for index, (state, twin) in enumerate(zip(again[1:], slow["state"], strict=True)):
            assert all(a.tobytes() == b.tobytes() for a, b in zip(state, twin, strict=True))
            assert match.checksums[index] == checksum(NUMPY, twin)[0]
        assert GAME.over(NUMPY, again[-1])[0]


def test_recording_changes_nothing_of_what_is_played_and_learned() -> None:
    plain, recording = arena(seed=SEED), arena(seed=SEED, record=4)
    assert plain.plan.recorded == () and len(recording.plan.recorded) == 4
    for _ in range(4):
        one, other = plain.iterate(), recording.iterate()
        assert one.results == other.results and one.metrics == other.metrics
    before, after = (made.trainer.snapshot() for made in (plain, recording))
    assert before == after
    assert plain.recorder.take() == []
    found = recording.recorder.take()
    assert found and not recording.recorder.take(), "each match is handed out once"
    for match in found:
        states = replayed(GAME, match.seed, match.actions)
        sums = [checksum(NUMPY, state)[0] for state in states[1:]]
        np.testing.assert_array_equal(match.checksums, np.array(sums))
        assert match.opponent in recording.bots


def test_where_nothing_is_recorded_the_program_has_nothing_of_it() -> None:
    chapter = story(plan(), SEED).chapters[0]
    assert chapter.rolled.recorded is None
    assert len(jax.tree.leaves(chapter.rolled.recorded)) == 0


@pytest.mark.parametrize("options", [{}, {"actions": "keys", "delay": "3"}], ids=["plain", "late"])
def test_checksums_are_the_same_under_both_engines(options: dict[str, str]) -> None:
    game = catalog.make("brawl", **options)
    state = game.start(NUMPY, np.arange(6, dtype=np.uint32))
    for frame in range(3):
        compiled = jax.jit(lambda one: checksum(JAX, one))(state)
        np.testing.assert_array_equal(np.asarray(compiled), checksum(NUMPY, state))
        actions = np.full((2, len(game.actions.parts), 6), frame % 2, np.int32)
        state = game.step(NUMPY, state, actions)


@given(games=st.integers(1, 300), count=st.integers(0, 400))
def test_recorded_columns_are_spread_over_groups_and_sides(games: int, count: int) -> None:
    columns = recorded_columns(games, count)
    assert len(columns) <= count and all(0 <= column < games for column in columns)
    assert list(columns) == sorted(set(columns))
    if games % 2 == 0:
        assert len(columns) == min(count, games)
        odd = sum(column % 2 for column in columns)
        assert odd == len(columns) // 2
        gaps = np.diff([*columns, games])
        assert not columns or gaps.max() <= 2 + 2 * (games // len(columns))


def frames_of(first_seed: int, length: int, began: list[int]) -> tuple[RecordedFrames, Ends]:
    """One column in which matches end with the frames `began`, each with the next seed; the action
    of a frame is its number."""
    flags = np.zeros((length, 1), np.bool_)
    flags[began] = True
    seeds = (first_seed + np.cumsum(flags[:, 0]) - flags[:, 0]).astype(np.uint32)[:, None]
    actions = np.broadcast_to(
        np.arange(length, dtype=np.int32)[:, None, None, None], (length, 2, 1, 1)
    )
    zeros = np.zeros((length, 1), np.int32)
    ends = Ends(
        counts=flags, opponent=zeros, score=zeros + 1.0, frames=zeros, returned=zeros, sums=None,
        began=flags, next_opponent=zeros,
    )  # fmt: skip
    return RecordedFrames(seeds, actions, seeds + np.uint32(100)), ends


def taken(recorder: MatchRecorder) -> list[tuple[int, list[int]]]:
    return [(match.seed, numbers(match.actions)) for match in recorder.take()]


def numbers(actions: NDArray) -> list[int]:
    assert (actions[:, 0] == actions[:, 1]).all()
    return [int(one) for one in actions[:, 0, 0]]


def test_a_match_is_recorded_from_its_first_frame_to_its_last() -> None:
    recorder = MatchRecorder([0], steps=1, per_step=9.0)
    recorder.add(*frames_of(10, 6, [3]), ["them"])
    assert taken(recorder) == [], "the first match of a column began before it was recorded"
    recorder.add(*frames_of(11, 6, []), ["them"])
    recorder.add(*frames_of(11, 6, [1, 4]), ["them"])
    assert taken(recorder) == [(11, [4, 5, 0, 1, 2, 3, 4, 5, 0, 1]), (12, [2, 3, 4])]


def test_matches_are_chosen_as_they_begin_and_no_more_than_are_owed() -> None:
    recorder = MatchRecorder([0], steps=10, per_step=0.05)
    chosen = []
    for first in (10, 13, 16, 19, 22):
        recorder.add(*frames_of(first, 8, [1, 3, 5]), ["them"])
        chosen.append(taken(recorder))
    # One at once, then half a match an iteration: the first that begins in every other one.
    assert chosen == [[(11, [2, 3])], [], [(17, [2, 3])], [], [(23, [2, 3])]]


def test_a_match_that_does_not_count_is_not_recorded() -> None:
    recorder = MatchRecorder([0], steps=1, per_step=9.0)
    recorder.add(*frames_of(10, 4, [1]), ["them"])
    frames, ends = frames_of(11, 4, [1])
    recorder.add(frames, ends._replace(counts=np.zeros_like(ends.counts)), ["them"])
    assert taken(recorder) == []


def test_matches_that_began_anew_are_not_joined_to_those_before() -> None:
    """A copy in a population begins new matches in the middle of the old ones."""
    recorder = MatchRecorder([0], steps=1, per_step=9.0)
    recorder.add(*frames_of(10, 4, [1]), ["them"])
    recorder.add(*frames_of(50, 4, [2]), ["them"])
    assert taken(recorder) == []
    recorder.add(*frames_of(51, 4, [2]), ["them"])
    assert taken(recorder) == [(51, [3, 0, 1, 2])]
