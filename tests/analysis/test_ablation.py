"""Three ways on the same seeds: counted match by match, and nothing where the latent is unheard."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.analysis import ablation
from understudy.analysis.ablation import PLAYED_FROM, WAYS, Ablation, play_all, worth
from understudy.match.duel import Duel
from understudy.match.players import PolicyPlayer
from understudy.match.series import play
from understudy.match.stage import EVALUATION, match_seeds

from .makers import GAME, OPPONENTS, lively, player


def test_own_is_the_agent_as_it_is_and_parts_make_no_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = play_all(GAME, player(), OPPONENTS, matches=19, seed=0)
    assert whole.opponents == tuple(OPPONENTS)
    assert np.bincount(whole.labels).tolist() == [8, 8, 8]  # even, and at least 19 in all
    seeds = match_seeds(0, PLAYED_FROM + np.arange(8), purpose=EVALUATION)
    duel = Duel(GAME, player(), tuple((one, 8) for one in OPPONENTS.values()))
    end = play(duel, np.tile(seeds, 3), np.tile(np.arange(8) % 2 == 1, 3))
    np.testing.assert_array_equal(whole.scores["own"], end.score)
    monkeypatch.setattr(ablation, "_PLAY_BYTES", 1)  # two matches at a time
    parts = play_all(GAME, player(), OPPONENTS, matches=19, seed=0)
    np.testing.assert_array_equal(parts.scores["own"], whole.scores["own"])
    np.testing.assert_array_equal(parts.labels, whole.labels)


def test_an_agent_that_does_not_hear_its_latent_loses_nothing() -> None:
    policy = lively()
    policy.weights.params["lstm.latent.w"] = np.zeros_like(policy.weights.params["lstm.latent.w"])
    deaf = PolicyPlayer(policy, sampled=True)
    found = play_all(GAME, deaf, OPPONENTS, matches=24, seed=0)
    for way in WAYS:
        np.testing.assert_array_equal(found.scores[way], found.scores["own"])
    assert worth(found, "own", "other").wins.differing == 0


def test_a_draw_is_half_a_score_and_no_win() -> None:
    found = Ablation(
        opponents=("a", "b"),
        labels=np.array([0, 0, 1, 1], np.int32),
        scores={
            "own": np.array([1, 0, 1, -1], np.float32),
            "same": np.array([1, 0, 0, -1], np.float32),
            "other": np.array([0, -1, -1, 1], np.float32),
        },
    )
    gain = worth(found, "own", "other")
    assert gain.wins.mean == pytest.approx((1 + 0 + 1 - 1) / 4)
    assert gain.score.mean == pytest.approx((0.5 + 0.5 + 1 - 1) / 4)
    assert worth(found, "own", "same", label=0).wins.differing == 0
    assert worth(found, "own", "same", label=1).score.mean == pytest.approx(0.25)
