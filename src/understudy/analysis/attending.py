"""Which frames told most: the pool's weights, as shares of the frames that were there to see.

Weights are [T, N, window], the oldest frame first; in a match's first frames the slots of frames
that never were have weight 0. A share of 1 is what attention to all frames alike would give.
"""

from __future__ import annotations

import numpy as np

from understudy.core.arrays import NDArray


def evenness(weights: NDArray) -> NDArray:
    """[T, N, W] to [T, N]: entropy over that of uniform weights; 1 is alike, 0 is one frame.

    The first frame of a match has only itself to look at, and counts as 1.
    """
    length, _, window = weights.shape
    logs = np.log(np.maximum(weights, 1e-30), dtype=np.float64)
    entropy = -(weights * logs).sum(-1)
    most = np.log(np.minimum(np.arange(1, length + 1), window))
    even: NDArray = np.where(
        most[:, None] > 0, entropy / np.where(most > 0, most, 1.0)[:, None], 1.0
    )
    return even


def received(weights: NDArray) -> NDArray:
    """[T, N, W] to [T, N]: the mean weight of a frame while it was in the window, 1 if uniform.

    Of the last frames, which did not pass through the whole window, nothing is known: NaN.
    """
    length, matches, window = weights.shape
    total, looks = np.zeros((length, matches)), np.zeros(length)
    held = np.minimum(np.arange(1, length + 1), window)
    for ago in range(min(window, length)):
        # At frame t, the slot `window - 1 - ago` holds frame t - ago.
        relative = weights[ago:, :, window - 1 - ago] * held[ago:, None]
        total[: length - ago] += relative
        looks[: length - ago] += 1
    return np.where(looks[:, None] < min(window, length), np.nan, total / looks[:, None])


def by_action(share: NDArray, chosen: NDArray) -> dict[int, tuple[float, int]]:
    """share [T, N] and chosen bool [O, T, N]: each option's mean share, and in how many frames.

    Frames whose share is not known do not count.
    """
    known = [where & np.isfinite(share) for where in chosen]
    return {
        option: (float(share[where].mean()), int(where.sum()))
        for option, where in enumerate(known)
        if where.any()
    }
