"""Which frames told most, beside loops."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.analysis.study import by_action, evenness, received

FRAMES, MATCHES, WINDOW = 11, 2, 4


def uniform() -> np.ndarray:
    weights = np.zeros((FRAMES, MATCHES, WINDOW), np.float32)
    for frame in range(FRAMES):
        held = min(frame + 1, WINDOW)
        weights[frame, :, WINDOW - held :] = 1 / held
    return weights


def drawn() -> np.ndarray:
    raw = np.random.default_rng(0).random((FRAMES, MATCHES, WINDOW)) * (uniform() > 0)
    return np.asarray(raw / raw.sum(-1, keepdims=True))


def test_attention_to_all_alike_is_even_and_to_one_frame_is_not() -> None:
    np.testing.assert_allclose(evenness(uniform()), 1.0, atol=1e-6)
    one = np.zeros_like(uniform())
    one[..., -1] = 1
    np.testing.assert_allclose(evenness(one)[1:], 0.0, atol=1e-6)
    assert (evenness(drawn())[1:] < 1).all()


def test_what_a_frame_got_is_the_mean_over_all_that_could_look_at_it() -> None:
    weights = drawn()
    found = received(weights)
    for frame in range(FRAMES):
        for match in range(MATCHES):
            looks = [
                weights[now, match, WINDOW - 1 - (now - frame)] * min(now + 1, WINDOW)
                for now in range(frame, min(frame + WINDOW, FRAMES))
            ]
            if len(looks) == WINDOW:
                assert found[frame, match] == pytest.approx(np.mean(looks))
            else:  # the record ended while the frame was still in the window
                assert np.isnan(found[frame, match])
    known = received(uniform())[: FRAMES - WINDOW + 1]
    np.testing.assert_allclose(known, 1.0, atol=1e-6)


def test_shares_by_action_leave_out_what_is_not_known() -> None:
    share = np.array([[1.0, 2.0], [3.0, np.nan]])
    chosen = np.array([[[True, False], [True, True]], [[False, True], [False, False]]])
    assert by_action(share, chosen) == {0: (2.0, 2), 1: (2.0, 1)}
    assert by_action(share, ~np.ones_like(chosen)) == {}
