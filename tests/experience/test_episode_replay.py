from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from walk.toys import episode

from understudy.experience.episode import Meta, Outcome
from understudy.experience.episode_replay import EpisodeReplay, Priority

GAMMA = 0.9


def held(capacity: int = 10, limit: int = 4, priority: Priority = "uniform") -> EpisodeReplay:
    return EpisodeReplay(capacity=capacity, limit=limit, priority=priority, gamma=GAMMA, lam=0.8)


@settings(deadline=None)
@given(
    limit=st.integers(1, 6),
    capacity=st.integers(0, 5),
    draws=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3)), max_size=30),
)
def test_nothing_is_ever_sampled_beyond_the_limit(
    limit: int, capacity: int, draws: list[tuple[int, int]]
) -> None:
    rng = np.random.default_rng(0)
    replay = held(capacity, limit)
    counts: dict[str, int] = {}
    for number, (count, times) in enumerate(draws):
        key = str(number)
        replay.insert(key, episode(key), samples=1)
        counts[key] = 1
        chosen = [one.meta.id for one in replay.sample(rng, count, times=times)]
        assert len(chosen) == len(set(chosen)) <= count
        for one in chosen:
            counts[one] += times
        assert len(replay) <= capacity
    assert all(count <= limit for count in counts.values())
    assert replay.sampled == sum(counts.values())
    assert replay.samples_per_insert == replay.sampled / max(len(draws), 1)


def test_an_episode_leaves_when_it_has_no_samples_left() -> None:
    replay = held(limit=2)
    replay.insert("a.npz", episode("a"), samples=1)
    assert "a" in replay
    assert [one.meta.id for one in replay.sample(np.random.default_rng(0), 5, times=1)] == ["a"]
    assert "a" not in replay and replay.sample(np.random.default_rng(0), 5, times=1) == []


def test_the_oldest_leaves_first() -> None:
    replay = held(capacity=2)
    for key in "abc":
        replay.insert(key, episode(key), samples=1)
    assert list(replay.held) == ["b", "c"]


def test_what_is_resumed_keeps_its_count() -> None:
    replay = held(limit=4)
    replay.insert("a.npz", episode("a"), samples=3)
    assert replay.held["a"].samples == 3
    assert replay.sample(np.random.default_rng(0), 1, times=2) == []
    replay.insert("b.npz", episode("b"), samples=4)
    assert "b" not in replay


def preferred(replay: EpisodeReplay) -> float:
    """How often `good` is drawn before `plain`."""
    rng = np.random.default_rng(1)
    picks = [replay.sample(rng, 1, times=1)[0].meta.id for _ in range(400)]
    return picks.count("good") / len(picks)


@pytest.mark.parametrize(("priority", "low"), [("won", 0.7), ("surprise", 0.7)])
def test_priority_is_a_preference(priority: Priority, low: float) -> None:
    replay = held(limit=1000, priority=priority)
    lost = episode("plain")
    meta = type(lost.meta)(id="plain", outcome=Outcome.DEFEAT, finished_at=0.0)
    plain = episode("plain", meta=meta, rewards=np.zeros(3, np.float32))
    replay.insert("plain", plain, samples=1)
    replay.insert("good", episode("good"), samples=1)
    assert preferred(replay) > low


def test_rewards_as_large_as_numbers_get_can_still_be_sampled() -> None:
    replay = held(priority="surprise")
    huge = np.full(3, np.finfo(np.float32).max)
    replay.insert("a", episode("a", rewards=huge, values=-huge), samples=1)
    replay.insert("b", episode("b"), samples=1)
    assert len(replay.sample(np.random.default_rng(0), 2, times=1)) == 2


def test_a_match_is_not_surprising_because_it_was_aborted() -> None:
    """What an aborted match was worth after its end is unknown, and not 0."""
    replay = held(limit=1000, priority="surprise")
    calm = 50.0 / GAMMA ** np.arange(3, dtype=np.float32)
    aborted = Meta(id="plain", outcome=Outcome.ABORTED, finished_at=0.0)
    nothing = np.zeros(3, np.float32)
    replay.insert("plain", episode("plain", meta=aborted, values=calm, rewards=nothing), samples=1)
    replay.insert("good", episode("good"), samples=1)
    assert preferred(replay) > 0.7


def test_an_episode_that_comes_again_is_held_once_and_as_the_newest() -> None:
    replay = held(limit=4)
    for key in "aba":
        replay.insert(f"{key}.npz", episode(key), samples=2)
    assert list(replay.held) == ["b", "a"]
    assert (len(replay), replay.inserted, replay.sampled) == (2, 3, 6)
