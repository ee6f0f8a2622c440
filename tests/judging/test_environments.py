"""Players of environments by name."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from policy.makers import TRANSFORMER, lively_policy

from understudy.adapters.ai2.stand_in import write_stand_in
from understudy.judging.environments import EnvironmentResolver, NamedSide
from understudy.policy.spec import PolicySpec
from understudy.workers.pool import worker_pool
from understudy.workers.pooled_series import PooledSeries

CONTEST = "pettingzoo:training.environments.contest"


def test_a_run_against_one_opponent_is_judged_against_all(tmp_path: Path) -> None:
    """`--option opponent=` made training one-sided; the tournament's own agents are known."""
    home = tmp_path / "stand_in"
    write_stand_in(home)
    options = {"home": str(home), "opponent": "based", "side": "0", "frames": "30"}
    players = EnvironmentResolver("ai2", leads=[], options=options)
    assert set(players.bots) == {"random", "constant", "based", "clockwork"}
    based, still = (players.resolve("--opponents", name) for name in ("based", "constant"))
    assert players.meet([(based, still)], 2)[0].tally.wins == 2


def contestants() -> tuple[EnvironmentResolver, list[NamedSide]]:
    resolver = EnvironmentResolver(CONTEST, leads=[], seed=4)
    spec = PolicySpec(resolver.features, resolver.actions, TRANSFORMER)
    first, second = (
        NamedSide(f"policy {seed}", (resolver.side(lively_policy(spec, seed)),)) for seed in (3, 4)
    )
    return resolver, [first, second, resolver.resolve("", "random")]


def test_workers_judge_as_this_process_does() -> None:
    resolver, sides = contestants()
    alone = resolver.round_robin(sides, 50)
    with resolver.with_workers(2, note=pytest.fail):
        shared = resolver.round_robin(sides, 50)
    for field in ("wins", "draws", "distinct"):
        np.testing.assert_array_equal(getattr(alone, field), getattr(shared, field))


def test_what_a_pair_came_to_does_not_depend_on_other_pairs() -> None:
    resolver, (one, two, chance) = contestants()
    both = resolver.meet([(one, chance), (two, chance)], 30)
    assert both[1] == resolver.meet([(two, chance)], 30)[0]


def test_a_worker_that_dies_while_it_judges_is_replaced_and_the_result_is_the_same() -> None:
    resolver, sides = contestants()
    alone = resolver.round_robin(sides, 200)
    told: list[str] = []
    with worker_pool(2, problem=told.append) as pool:
        resolver._series = PooledSeries(pool)

        def kill(share: float) -> None:
            """When the first part is done, the other worker is in the middle of one."""
            for worker in pool.workers:
                if worker.ready is not None and not told:
                    os.kill(worker.ready.pid, signal.SIGKILL)

        shared = resolver.round_robin(sides, 200, show=kill)
    assert told and "is started again" in told[0]
    for field in ("wins", "draws", "distinct"):
        np.testing.assert_array_equal(getattr(alone, field), getattr(shared, field))
