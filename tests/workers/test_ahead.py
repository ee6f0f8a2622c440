"""Workers that play on while the learner learns: what is how old, and that it is told truly."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from policy.makers import MLP, lively_policy
from training.environments.contest import Contest

from understudy.adapters.environments.parallel import shared_spaces
from understudy.core.ops import NUMPY
from understudy.policy import distributions
from understudy.policy.policy import Policy
from understudy.policy.spec import PolicySpec
from understudy.policy.weights import normalise
from understudy.workers.plan import RolloutPlan
from understudy.workers.players import AheadPlayers, PlayWork
from understudy.workers.pool import worker_pool
from understudy.workers.rollout import Played

UPDATES, STEPS, GAMES, WORKERS = 14, 8, 5, 2
WIDTH = 3 * 2
"""Columns of a part: the most environments of a worker, two agents each."""


@pytest.fixture
def players(tmp_path: Path) -> Iterator[AheadPlayers]:
    """The first worker's games take as long as twenty of the second one's."""
    spaces = shared_spaces(Contest())
    plan = RolloutPlan(
        environment="pettingzoo:workers.uneven",
        options={"slow": str(tmp_path / "slow")},
        spec=PolicySpec(spaces.features, spaces.actions, MLP),
        games=GAMES,
        sides=False,
        seed=3,
    )
    pool = worker_pool(WORKERS, errors=tmp_path / "err")
    ahead = AheadPlayers(plan, pool)
    yield ahead
    ahead.close()


def policies(spec: PolicySpec, count: int) -> list[Policy]:
    """One for each update; each has another return scale."""
    found = []
    for number in range(count):
        policy = lively_policy(spec, number)
        weights = replace(policy.weights, value_scale=np.float32(1.0 + 0.5 * number))
        found.append(Policy(spec, weights, 0))
    return found


def check_column(played: Played, column: int, then: Policy, now: Policy) -> None:
    """That weights of then played a column, whose values are in units of now."""
    rows, spec = played.arrays, then.spec
    obs = normalise(NUMPY, then.weights, rows["obs"][:, column])
    logits, values = spec.network.step(NUMPY, then.weights.params, obs, ())[:2]
    legal = rows["legal"][:, column]
    expected = distributions.log_prob(
        NUMPY, spec.actions, logits, rows["actions"][:, column], legal
    )
    np.testing.assert_allclose(rows["log_probs"][:, column], expected, atol=1e-5)
    scale = then.weights.value_scale / now.weights.value_scale
    np.testing.assert_allclose(rows["values"][:, column], values * scale, rtol=1e-4, atol=1e-5)


def test_no_part_is_more_than_one_update_old_and_each_says_how_old_it_is(
    players: AheadPlayers,
) -> None:
    spec = players.pool.workers[0].first.plan.spec  # type: ignore[union-attr]
    made = policies(spec, UPDATES)
    lags, parts = [], {0: 0, 1: 0}
    for number, policy in enumerate(made):
        played = players.play(PlayWork(policy, STEPS, 0.9, ahead=number > 0))
        assert played is not None and played.lag is not None
        assert played.arrays["valid"].shape == (STEPS, WORKERS * WIDTH), "one shape for the learner"
        for column in range(WORKERS * WIDTH):
            lag = int(played.lag[column])
            if played.arrays["valid"][:, column].any():
                check_column(played, column, made[number - lag], policy)
        lags.append(set(played.lag.tolist()))
        for match in played.finished:
            parts[int(match.number >= 3)] += 1
    assert lags[0] == {0}, "the first segment is that of the first weights"
    assert set().union(*lags) == {0, 1}, "never more than one update old"
    fast = max(parts.values()) / min(parts.values())
    assert fast > 1.3, "the fast worker does not wait for the slow one"


def test_a_part_that_is_lost_is_in_no_segment(players: AheadPlayers) -> None:
    spec = players.pool.workers[0].first.plan.spec  # type: ignore[union-attr]
    made = policies(spec, 6)
    for number, policy in enumerate(made):
        if number == 3:
            worker = players.pool.workers[0]
            assert worker.ready is not None
            os.kill(worker.ready.pid, signal.SIGKILL)
        played = players.play(PlayWork(policy, STEPS, 0.9))
        assert played is not None and played.lag is not None
        assert played.lag.max() <= 1
        count = played.arrays["valid"].sum() / STEPS
        assert count in (2 * 6, 2 * 4, 6 + 4), "all of each part, and nothing else"
    assert players.pool.lost == 1
