"""One frame function: every caller plays the same match through it."""

from __future__ import annotations

import numpy as np

from understudy.core.ops import NUMPY
from understudy.games import catalog
from understudy.games.frame import bot_frames, by_side, own_side
from understudy.match.duel import Duel
from understudy.match.players import BotPlayer
from understudy.match.series import play

MATCHES = 6
SECOND = np.arange(MATCHES) % 2 == 1


def test_exchanging_sides_twice_changes_nothing() -> None:
    players = np.arange(2 * 3 * MATCHES).reshape(2, 3, MATCHES)
    own, other = by_side(NUMPY, SECOND, players)
    assert np.array_equal(own[:, 0], players[0, :, 0])
    assert np.array_equal(own[:, 1], players[1, :, 1])
    assert np.array_equal(np.stack(by_side(NUMPY, SECOND, (own, other))), players)
    assert np.array_equal(own_side(NUMPY, SECOND, players.swapaxes(0, 1)), own)


def test_a_game_of_one_player_has_one_side() -> None:
    alone = np.arange(3 * MATCHES).reshape(1, 3, MATCHES)
    (own,) = by_side(NUMPY, SECOND, alone)
    assert np.array_equal(own, alone[0])
    assert np.array_equal(own_side(NUMPY, SECOND, alone.swapaxes(0, 1)), own)


def test_balance_tables_play_the_matches_of_a_duel() -> None:
    """The same seeds and sides: the same lengths, scores and rewards."""
    for name, names in (("brawl", ("clockwork", "random")), ("swarm", ("random",))):
        game, bots = catalog.make(name), [catalog.bots(name)[one] for one in names]
        second = SECOND if game.players == 2 else np.zeros(MATCHES, np.bool_)
        seeds = np.arange(MATCHES, dtype=np.uint32) + np.uint32(7)
        frames, score = np.zeros(MATCHES, np.int32), np.zeros(MATCHES, np.float32)
        returned = np.zeros(MATCHES, np.float32)
        for matches, frame in bot_frames(game, bots, seeds, second):
            frames[matches] += 1
            score[matches] = frame.score
            reward = game.reward(NUMPY, frame.moment.before, frame.moment.after)
            returned[matches] += own_side(NUMPY, second[matches], reward)
        player, *others = map(BotPlayer, bots)
        end = play(Duel(game, player, tuple((one, MATCHES) for one in others)), seeds, second)
        assert np.array_equal(end.frames, frames)
        assert np.array_equal(end.score, score)
        assert np.array_equal(end.returned, returned)
