"""The reader of `benchmarks/recognition_bound.py` reads what is there, on seeds it never saw."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from understudy.analysis.recording import MatchRecording

pytest.importorskip("optax")


def seen(signal: float, *, frames: int, matches: int = 96) -> MatchRecording:
    """Two opponents, the second of which differs in one number; half of the numbers are theirs."""
    rng = np.random.default_rng(3)
    labels = np.repeat(np.arange(2, dtype=np.int32), matches)
    noise = rng.normal(size=(frames, 2 * matches, 8)).astype(np.float32)
    noise[..., -1] += signal * labels
    noise[..., 0] += 9 * labels  # what the agent sees of itself is not read
    return MatchRecording(
        opponents=("one", "two"),
        labels=labels,
        numbers=np.tile(np.arange(matches, dtype=np.int32), 2),
        seen=noise,
        done=np.zeros((frames, 2 * matches, 1), np.int32),
        lengths=np.full(2 * matches, frames, np.int32),
    )


def test_a_reader_names_who_shows_it_and_guesses_otherwise(benchmark: Any) -> None:
    bound = benchmark("recognition_bound")
    told = bound.reader_accuracy(seen(2.0, frames=bound.FRAMES), passes=8)
    guessed = bound.reader_accuracy(seen(0.0, frames=bound.FRAMES), passes=2)
    assert told.keys() == {1, 2, 4} and told[4] > 0.9
    assert guessed[4] < 0.75
