"""Another match's latents, frame by frame, in place of one's own."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.analysis.ablation import (
    Bank,
    SwappedLatents,
    bank_of,
    donor_latents,
    draw_donors,
    swapped,
)
from understudy.analysis.recording import record
from understudy.arena.compiling import compiled_duel
from understudy.core.ops import NUMPY
from understudy.match.duel import Duel
from understudy.match.live_match import EVALUATION, match_seeds
from understudy.match.players import PolicyPlayer
from understudy.match.series import Engine, plain, play

from .makers import GAME, NETWORK, OPPONENTS, lively, player

BANK = Bank(
    latents=np.arange(10, dtype=np.float32)[:, None],
    starts=np.array([0, 3, 7], np.int32),
    lengths=np.array([3, 4, 3], np.int32),
    labels=np.array([0, 1, 1], np.int32),
)


def test_a_donor_is_followed_frame_by_frame_then_back_and_forth() -> None:
    for donor, walk in ((0, [0, 1, 2, 2, 1, 0, 0, 1]), (1, [3, 4, 5, 6, 6, 5, 4, 3, 3])):
        heard = [
            donor_latents(NUMPY, BANK.params, np.array([donor]), np.array([frame], np.int32))[0, 0]
            for frame in range(len(walk))
        ]
        assert heard == walk


def test_donors_are_of_the_same_opponent_or_of_any_other() -> None:
    labels = np.repeat([0, 1], 200)
    same, other = (draw_donors(BANK, labels, same=same, seed=0) for same in (True, False))
    assert (BANK.labels[same] == labels).all()
    assert (BANK.labels[other] != labels).all()
    assert set(same) == {0, 1, 2}  # all of them have their turn
    np.testing.assert_array_equal(same, draw_donors(BANK, labels, same=True, seed=0))
    assert (same != draw_donors(BANK, labels, same=True, seed=1)).any()


@pytest.mark.parametrize("engine", [plain, compiled_duel])
def test_told_its_own_latents_it_plays_the_very_same_match(engine: Engine) -> None:
    """The seam changes nothing but the latent; told others', it plays otherwise."""
    me, matches = player(), 6
    seen = record(GAME, me, OPPONENTS, matches=matches, frames=GAME.max_frames, seed=0)
    bank = bank_of(me.policy, seen)
    assert len(bank.latents) == seen.lengths.sum()
    seeds = np.tile(match_seeds(0, np.arange(matches), purpose=EVALUATION), 3)
    second = np.tile(np.arange(matches) % 2 == 1, 3)
    against = tuple((one, matches) for one in OPPONENTS.values())

    def paths(donors: np.ndarray) -> np.ndarray:
        policy = swapped(me.policy, NETWORK, bank, donors.astype(np.int32))
        told_so = PolicyPlayer(policy, sampled=True)
        # Thinned as matches end: a column must keep its donor.
        return play(Duel(GAME, told_so, against), seeds, second, engine=engine, few=1).path

    own = play(Duel(GAME, me, against), seeds, second, engine=engine, few=1).path
    columns = np.arange(3 * matches)
    np.testing.assert_array_equal(paths(columns), own)
    assert (paths(columns[::-1]) != own).mean() > 0.3


def test_the_program_is_one_whatever_the_donors() -> None:
    one, other = (SwappedLatents(NETWORK, np.full(n, n, np.int32)) for n in (3, 5))
    assert one == other and hash(one) == hash(other)
    with pytest.raises(ValueError, match="3 donors for 4 matches"):
        one.memory(NUMPY, 4)
    with pytest.raises(NotImplementedError):
        one.unroll(NUMPY, {}, None, None, None)
    policy = lively()
    assert "bank.latents" not in policy.weights.params
    assert "bank.latents" in swapped(policy, NETWORK, BANK, one.donors).weights.params
    assert "bank.latents" not in policy.weights.params
