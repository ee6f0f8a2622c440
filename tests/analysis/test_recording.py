"""What is recorded is what was seen and done in the very matches that are judged."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.analysis.recording import portion, record
from understudy.arena.compiling import compiled_duel
from understudy.core.ops import NUMPY
from understudy.match.duel import Duel, witnessed
from understudy.match.evaluate import judge
from understudy.match.live_match import EVALUATION, match_seeds
from understudy.match.series import Engine, plain

from .makers import GAME, OPPONENTS, player

MATCHES, FRAMES = 6, 150


@pytest.mark.parametrize("engine", [plain, compiled_duel])
def test_every_frame_that_the_agent_saw_is_there(engine: Engine) -> None:
    me = player()
    found = record(
        GAME, me, OPPONENTS, matches=MATCHES, frames=FRAMES, seed=3, skip=10, engine=engine
    )
    assert found.opponents == tuple(OPPONENTS)
    assert found.labels.tolist() == np.repeat([0, 1, 2], MATCHES).tolist()
    assert found.numbers.tolist() == 3 * list(range(MATCHES))
    seeds = match_seeds(3, 10 + np.arange(MATCHES), purpose=EVALUATION)
    for column in range(len(found.labels)):
        label, number = found.labels[column], found.numbers[column]
        opponent = list(OPPONENTS.values())[label]
        second = number % 2 == 1
        states = list(
            witnessed(
                Duel(GAME, me, ((opponent, 1),)), seeds[number : number + 1], np.array([second])
            )
        )
        length = len(states) - 1
        assert found.lengths[column] == length
        for frame, state in enumerate(states[:-1]):
            seen = GAME.observe(NUMPY, state)[int(second), :, 0]
            np.testing.assert_allclose(found.seen[frame, column], seen, atol=1e-6)
        if label != 1:
            assert (found.done[:length, column] == {0: 0, 2: 2}[int(label)]).all()
    assert len(np.unique(found.done[:2, found.labels == 1])) == 2  # moody does this and that


def test_a_record_is_of_the_matches_that_eval_counts() -> None:
    found = record(GAME, player(), OPPONENTS, matches=MATCHES, frames=FRAMES, seed=0)
    reports = judge(GAME, player(), OPPONENTS, matches=MATCHES, seed=0)
    for label, name in enumerate(OPPONENTS):
        assert found.lengths[found.labels == label].mean() == reports[name].mean_frames


def test_recording_ends_with_the_last_match_or_where_it_was_told_to() -> None:
    short = record(GAME, player(), OPPONENTS, matches=2, frames=20, seed=0)
    assert len(short.seen) == len(short.done) == 20
    assert short.lengths.max() <= 20
    shares: list[float] = []
    long = record(GAME, player(), OPPONENTS, matches=2, frames=4000, seed=0, show=shares.append)
    assert len(long.seen) <= GAME.max_frames + 64
    assert shares == sorted(shares)
    assert long.reaching(1).all() and not long.reaching(GAME.max_frames + 1).any()
    assert long.columns(each=1).tolist() == [0, 2, 4]


def test_a_portion_of_the_work() -> None:
    shown: list[float] = []
    portion(shown.append, 0.5, 0.9)(0.5)
    assert shown == [pytest.approx(0.7)]
