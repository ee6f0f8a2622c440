"""Three ways on the same seeds: counted match by match, and nothing where the latent is unheard."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from understudy.analysis import ablation
from understudy.analysis.ablation import CONTRASTS, PLAYED_FROM, WAYS, Ablation, play_all, worth
from understudy.analysis.findings import _ablation_lines, ablation_of
from understudy.analysis.recording import MatchRecording
from understudy.analysis.tables import ablation_rows
from understudy.match.duel import Duel
from understudy.match.live_match import EVALUATION, match_seeds
from understudy.match.players import PolicyPlayer
from understudy.match.series import play

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
    # Of each opponent, the donors lie side by side.
    assert (whole.donors["same"] // ablation._DONORS == whole.labels).all()
    assert (whole.donors["other"] // ablation._DONORS != whole.labels).all()
    monkeypatch.setattr(ablation, "_PLAY_BYTES", 1)  # two matches at a time
    parts = play_all(GAME, player(), OPPONENTS, matches=19, seed=0)
    np.testing.assert_array_equal(parts.scores["own"], whole.scores["own"])
    np.testing.assert_array_equal(parts.labels, whole.labels)
    assert (parts.donors["same"] // ablation._DONORS == whole.labels).all()


def test_as_many_donors_as_the_frames_of_their_matches_leave_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long = GAME.max_frames
    seen = MatchRecording(
        opponents=("a", "b"),
        labels=np.repeat(np.arange(2, dtype=np.int32), 4),
        numbers=np.tile(np.arange(4, dtype=np.int32), 2),
        seen=np.zeros((long, 8, 2), np.float32),
        done=np.zeros((long, 8, 1), np.int32),
        lengths=np.array([1, 2, 3, 4, 10, 20, 30, 40], np.int32),
    )
    fits = [ablation._donors_that_fit(seen, frames) for frames in (0, 33, 65, 66, 110, 999)]
    assert fits == [2, 2, 2, 3, 4, 4]
    kept = seen.only(seen.columns(each=3))
    assert kept.lengths.tolist() == [1, 2, 3, 10, 20, 30] and kept.seen.shape == (long, 6, 2)
    monkeypatch.setattr(ablation, "_BANK_BYTES", 1)
    found = play_all(GAME, player(), OPPONENTS, matches=60, seed=0)
    assert {len(np.unique(heard)) for heard in found.donors.values()} == {2 * len(OPPONENTS)}
    assert worth(found, "same", "other").score.donors == 2 * len(OPPONENTS)
    assert worth(found, "own", "same", label=1).wins.donors == 2


def test_an_agent_that_does_not_hear_its_latent_loses_nothing() -> None:
    policy = lively()
    policy.weights.params["lstm.latent.w"] = np.zeros_like(policy.weights.params["lstm.latent.w"])
    deaf = PolicyPlayer(policy, sampled=True)
    found = play_all(GAME, deaf, OPPONENTS, matches=24, seed=0)
    for way in WAYS:
        np.testing.assert_array_equal(found.scores[way], found.scores["own"])
    assert worth(found, "own", "other").wins.differing == 0


FOUND = Ablation(
    opponents=("a", "b"),
    labels=np.array([0, 0, 1, 1], np.int32),
    scores={
        "own": np.array([1, 0, 1, -1], np.float32),
        "same": np.array([1, 0, 0, -1], np.float32),
        "other": np.array([0, -1, -1, 1], np.float32),
    },
    donors={"same": np.array([0, 1, 2, 3]), "other": np.array([2, 3, 0, 0])},
)


def test_how_many_donors_there_were_is_told() -> None:
    header, rows = ablation_rows(FOUND)
    told = {tuple(row[:2]): dict(zip(header, row, strict=True))["donors"] for row in rows}
    assert [told["all", f"{one}-{two}"] for one, two in CONTRASTS] == [3, 4, 4]
    assert told["b", "own-other"] == 1 and told["b", "own"] == ""
    ways = ablation_of(FOUND)
    assert b'"donors":3' in msgspec.json.encode(ways["all"].worth["own-other"])
    assert "4 matches on the same seeds, told those of 4 others" in _ablation_lines(ways)[0]


def test_a_draw_is_half_a_score_and_no_win() -> None:
    gain = worth(FOUND, "own", "other")
    assert gain.wins.mean == pytest.approx((1 + 0 + 1 - 1) / 4)
    assert gain.score.mean == pytest.approx((0.5 + 0.5 + 1 - 1) / 4)
    assert worth(FOUND, "own", "same", label=0).wins.differing == 0
    assert worth(FOUND, "own", "same", label=1).score.mean == pytest.approx(0.25)
