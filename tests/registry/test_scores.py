from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.core.statistics import wilson
from understudy.registry.scores import (
    ENOUGH,
    Score,
    best_versions,
    closed,
    last_good,
    score_of,
    thinned,
    with_match,
    with_rewards,
)

Scores = tuple[Score, ...]


def played(*results: tuple[int, int, int], scores: Scores = ()) -> Scores:
    """After so many matches of a version, of which so many were won."""
    for version, matches, wins in results:
        for number in range(matches):
            scores = with_match(scores, version, won=number < wins, reward=0.0)
    return scores


def spans(scores: Scores) -> list[tuple[int, int, int]]:
    return [(one.first, one.last, one.matches) for one in scores]


def test_neighbours_are_pooled_until_there_are_enough_matches() -> None:
    scores = played(*((version, 7, 3) for version in range(1, 13)))
    assert spans(scores) == [(1, 6, 42), (7, 12, 42)]
    rate = scores[0].win_rate
    assert rate is not None and rate.mean == 18 / 42
    assert (rate.low, rate.high) == wilson(18, 42)
    assert score_of(scores, 6) == scores[0] and score_of(scores, 13) is None


def test_a_version_that_plays_again_adds_to_its_own_score() -> None:
    scores = played((1, 40, 40), (2, 40, 0), (1, 10, 0))
    assert spans(scores) == [(1, 1, 50), (2, 2, 40)]


def test_no_score_joins_two_lines_of_versions() -> None:
    scores = played((5, 3, 3))
    assert spans(played((6, 2, 0), scores=closed(scores))) == [(5, 5, 3), (6, 6, 2)]


def test_a_late_match_of_a_version_between_two_scores_is_in_neither() -> None:
    scores = played((1, 40, 0), (3, 1, 0), (2, 1, 0))
    assert spans(scores) == [(1, 1, 40), (2, 2, 1), (3, 3, 1)]


def test_matches_have_a_reward_and_the_untrained_policy_a_score_of_its_own() -> None:
    scores: Scores = ()
    for number in range(50):
        scores = with_match(scores, 0 if number < 3 else 1, won=False, reward=float(number % 2))
    assert [(one.first, one.last, one.rewarded) for one in scores] == [(0, 0, 3), (1, 1, 47)]
    mean = scores[1].mean_return
    assert (
        mean is not None and mean.mean == pytest.approx(24 / 47) and scores[0].mean_return is None
    )
    assert mean.low < 24 / 47 < mean.high
    lucky = played((0, 40, 40), (1, 40, 0))
    assert best_versions(lucky, {0, 1}) == [1], "nothing goes back to the untrained policy"


@given(st.lists(st.tuples(st.integers(1, 30), st.booleans()), max_size=300))
def test_every_match_is_counted_once_and_no_version_twice(
    matches: list[tuple[int, bool]],
) -> None:
    scores: Scores = ()
    for version, won in matches:
        scores = with_match(scores, version, won=won, reward=0.0)
    assert sum(one.matches for one in scores) == len(matches)
    assert sum(one.wins for one in scores) == sum(won for _, won in matches)
    ends = [end for one in scores for end in (one.first, one.last)]
    assert ends == sorted(ends)
    assert all(one.last < other.first for one, other in pairwise(scores))
    assert all(score_of(scores, version) is not None for version, _ in matches)


@given(st.lists(st.floats(-10, 10), min_size=ENOUGH, max_size=100))
def test_rewards_have_a_mean_and_its_standard_error(rewards: list[float]) -> None:
    (score,) = with_rewards((), 3, rewards)
    mean = sum(rewards) / len(rewards)
    spread = math.sqrt(sum((one - mean) ** 2 for one in rewards) / len(rewards))
    found = score.mean_reward
    assert found is not None and score.win_rate is None
    assert found.mean == pytest.approx(mean, abs=1e-9)
    margin = 1.959964 * spread / math.sqrt(len(rewards))
    assert found.high - found.mean == pytest.approx(margin, abs=1e-5)


def test_the_best_is_good_at_least_and_not_by_luck() -> None:
    lucky = Score(first=1, last=1, matches=40, wins=36)
    steady = Score(first=2, last=4, matches=400, wins=352)
    poor = Score(first=5, last=5, matches=400, wins=40)
    few = Score(first=6, last=6, matches=5, wins=5)
    scores = (lucky, steady, poor, few)
    assert best_versions(scores, range(1, 7)) == [4, 1, 5]
    assert best_versions(scores, {2, 3, 6}) == [3]


def test_rewards_are_compared_only_where_no_win_rate_is_known() -> None:
    rewards = with_rewards(with_rewards((), 1, [1.0] * 40), 2, [2.0] * 40)
    assert best_versions(rewards, {1, 2}) == [2, 1]
    assert best_versions((*rewards, Score(first=3, last=3, matches=40)), {1, 2, 3}) == [3]


def test_the_last_good_version_before_a_bad_night() -> None:
    nights = ((10, 24), (20, 32), (30, 34), (40, 30), (50, 8), (60, 4), (70, 6))
    scores = tuple(Score(first=n - 9, last=n, matches=40, wins=wins) for n, wins in nights)
    everything = range(1, 80)
    found = last_good(scores, everything, before=79)
    assert found == (40, scores[3]), "75% of 40 may be as good as 85% of 40; 20% may not"
    assert last_good(scores, {5, 25, 33, 45, 66}, before=79) == (33, scores[3])
    again = last_good(scores, everything, before=40)
    assert again == (30, scores[2]), "the one that is left behind is not gone to"
    assert last_good(scores, {50, 60, 70}, before=79) is None
    assert last_good((), everything, before=79) is None


def test_scores_go_with_their_versions() -> None:
    scores = played((1, 40, 0), (2, 40, 0), (3, 40, 0), (4, 2, 0))
    assert spans(thinned(scores, {3})) == [(1, 1, 40), (3, 3, 40), (4, 4, 2)], "the start stays"
    assert spans(thinned(scores[1:], {3})) == [(2, 2, 40), (3, 3, 40), (4, 4, 2)]
    assert thinned((), {2}) == ()
