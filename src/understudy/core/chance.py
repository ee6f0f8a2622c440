"""Random numbers from a counter: the same bits under NumPy and under JAX.

A number is a hash of (seed, match, frame, index), so any draw can be recomputed alone and no
generator state has to be carried. Everything is uint32 arithmetic that wraps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from understudy.core.ops import Array, Ops

_GOLDEN = np.uint32(0x9E3779B9)
_MUL1 = np.uint32(0x7FEB352D)
_MUL2 = np.uint32(0x846CA68B)
_S16, _S15, _S8 = np.uint32(16), np.uint32(15), np.uint32(8)
_TO_UNIT = np.float32(2.0**-24)


def mix(word: Array) -> Array:
    """Scramble uint32 words (two rounds of xor-shift and multiply); any shape."""
    word = (word ^ (word >> _S16)) * _MUL1
    word = (word ^ (word >> _S15)) * _MUL2
    return word ^ (word >> _S16)


def fold(key: Array, word: Array | int) -> Array:
    """A new key from a key (an array, at least [1]) and one more word; shapes broadcast."""
    if isinstance(word, int):
        word = np.uint32(word & 0xFFFFFFFF)
    return mix(key * _GOLDEN + word)


def uniform(ops: Ops, key: Array, indices: Array) -> Array:
    """float32 in [0, 1): key [B] and indices [N] (uint32) give [N, B]; one draw per index."""
    xp: Any = ops.xp
    words = mix(key[None, :] * _GOLDEN + mix(indices[:, None] + _GOLDEN))
    return (words >> _S8).astype(xp.float32) * _TO_UNIT


SCRIPT, SAMPLING = 0, 0x5EED
"""What a side draws for: a scripted bot's noise, or a policy's sampled actions."""


def side_key(ops: Ops, seeds: Array, side: Array | int, purpose: int = SCRIPT) -> Array:
    """The key, uint32 [B], that one side of a match draws from: every side has a stream of its own.

    seeds uint32 [B] are those of the matches; `side` is a player's index, or int or bool [B].
    Side 0 draws a script's noise from the seed itself, so a game of one player needs no rule of
    its own. The arena has streams of its own, on which the bits of every training depend.
    """
    side = ops.xp.asarray(side).astype(ops.xp.uint32)
    key = ops.xp.where(side > 0, fold(seeds, side), seeds)
    return fold(key, purpose) if purpose else key
