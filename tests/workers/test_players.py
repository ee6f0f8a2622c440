"""Rollouts of one side, and of worker processes: the same segments, whoever plays which part."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from policy.makers import MLP, TRANSFORMER, lively_policy

from understudy.adapters.environments.factory import maker
from understudy.adapters.environments.parallel import shared_spaces
from understudy.core.errors import InputError
from understudy.core.opponents import SELF
from understudy.policy.policy import Policy
from understudy.policy.spec import AnyNetwork, PolicySpec
from understudy.workers.plan import RolloutPlan
from understudy.workers.players import LocalPlayers, PlayWork, WorkerPlayers
from understudy.workers.pool import ProcessLink, worker_pool
from understudy.workers.rollout import OpponentOrder, Played

CONTEST = "pettingzoo:training.environments.contest"
ECHO = "pettingzoo:training.environments.toys"
CONNECT = "pettingzoo:pettingzoo.classic.connect_four_v3"
ORDER = OpponentOrder(
    names=("random", SELF), bounds=((0.5, 1.0), (0.5, 1.0)), met=("step-9", "step-9"), kinds=(0, 1)
)


def plan(
    environment: str, network: AnyNetwork = MLP, *, sides: bool, games: int = 5
) -> RolloutPlan:
    env = maker(environment)()
    spaces = shared_spaces(env)
    spec = PolicySpec(spaces.features, spaces.actions, network)
    return RolloutPlan(environment=environment, spec=spec, games=games, sides=sides, seed=3)


def work(policy: Policy, order: OpponentOrder | None = None, steps: int = 12) -> PlayWork:
    snapshots = {"step-9": lively_policy(policy.spec, 7).weights} if order else {}
    return PlayWork(policy, steps, 0.9, order, snapshots)


def in_processes(
    asked: RolloutPlan, workers: int, errors: Path, problem: Callable[[str], None]
) -> WorkerPlayers:
    return WorkerPlayers(asked, worker_pool(workers, errors=errors, problem=problem))


def same(one: Played | None, two: Played | None) -> None:
    assert one is not None and two is not None
    assert one.arrays.keys() == two.arrays.keys()
    for name, array in one.arrays.items():
        np.testing.assert_array_equal(array, two.arrays[name], err_msg=name)
    assert sorted(one.finished) == sorted(two.finished)
    assert sorted(one.started) == sorted(two.started)


def until_whole(workers: WorkerPlayers, wanted: PlayWork) -> Played:
    """The first segment in which no column is masked: a worker is back, however busy we are."""
    deadline = time.monotonic() + 60.0
    while True:
        played = workers.play(wanted)
        assert played is not None and time.monotonic() < deadline
        if (played.arrays["valid"] == 1.0).all():
            return played


def test_a_row_is_a_decision_of_the_policy_and_its_match_is_on_one_side() -> None:
    asked = plan(CONNECT, sides=True, games=4)
    policy = lively_policy(asked.spec, 1)
    played = LocalPlayers(asked).play(work(policy, ORDER, steps=80))
    assert played is not None
    rows: Any = played.arrays
    chosen = np.take_along_axis(rows["legal"], rows["actions"], -1)
    assert chosen.all(), "no illegal action"
    np.testing.assert_array_equal(rows["first"][1:], rows["ongoing"][:-1] == 0.0)
    assert (rows["valid"] == 1.0).all()
    # The first decision of a match is on a board with none or one of the opponent's pieces.
    pieces = rows["obs"].reshape(80, 4, -1, 2).sum(2)
    first = rows["first"]
    assert set(np.unique(pieces[first][:, 0])) == {0.0}
    assert set(np.unique(pieces[first][:, 1])) == {0.0, 1.0}
    ended = {number: [m for m in played.finished if m.number == number] for number in range(4)}
    for number, matches in ended.items():
        assert [m.side for m in matches] == [(number + k) % 2 for k in range(len(matches))]
        rewards = rows["rewards"][:, number][rows["ongoing"][:, number] == 0.0]
        np.testing.assert_array_equal(rewards, [m.finished.sides[m.side] for m in matches])
    assert {m.opponent for m in played.finished} == {"random", "step-9"}
    assert (rows["foretold"] >= rows["ongoing"]).all(), "the opponent's move after each decision"
    assert set(np.unique(rows["opponent_kinds"])) == {0, 1}


def test_agents_that_act_in_turn_share_a_policy_without_a_league() -> None:
    asked = plan(CONNECT, sides=True, games=2)
    played = LocalPlayers(asked).play(work(lively_policy(asked.spec, 1), steps=60))
    assert played is not None
    assert {(m.opponent, m.side) for m in played.finished} == {("", 0), ("", 1)}


@pytest.mark.parametrize(
    ("environment", "network", "sides"),
    [(CONTEST, TRANSFORMER, True), (CONNECT, MLP, True), (ECHO, TRANSFORMER, False)],
    ids=["parallel", "aec", "shared"],
)
def test_workers_play_the_same_segments_bit_for_bit(
    environment: str, network: AnyNetwork, sides: bool, tmp_path: Path
) -> None:
    asked = plan(environment, network, sides=sides)
    order = ORDER if sides else None
    alone = LocalPlayers(asked)
    workers = in_processes(asked, 2, tmp_path / "err", pytest.fail)
    try:
        for seed in (1, 2):  # the second one begins in the middle of matches
            policy = lively_policy(asked.spec, seed)
            one, two = alone.play(work(policy, order)), workers.play(work(policy, order))
            same(one, two)
            assert one is not None and one.finished
    finally:
        workers.close()


def test_a_worker_that_is_killed_is_started_again_and_its_columns_are_masked(
    tmp_path: Path,
) -> None:
    asked = plan(CONTEST, TRANSFORMER, sides=True, games=4)
    policy = lively_policy(asked.spec, 1)
    told: list[str] = []
    workers = in_processes(asked, 2, tmp_path / "err", told.append)
    alone = LocalPlayers(asked)
    try:
        same(workers.play(work(policy, ORDER)), alone.play(work(policy, ORDER)))
        _kill(workers, 1)
        half, whole = workers.play(work(policy, ORDER)), alone.play(work(policy, ORDER))
        assert half is not None and whole is not None
        for name, array in whole.arrays.items():
            axis = 0 if name in ("bootstrap", "next_obs", "next_first") else 1
            kept, lost = np.split(half.arrays[name], 2, axis)
            np.testing.assert_array_equal(kept, np.split(array, 2, axis)[0], err_msg=name)
            if name in ("valid", "ongoing", "rewards", "foretold"):
                assert not lost.any(), name
        assert half.arrays["legal"].any(-1).all()
        assert {match.number for match in half.finished} <= {0, 1}
        assert told == [
            f"worker 2 died (exit code {-signal.SIGKILL}) with 2 environments; their matches are "
            "lost, and it is started again"
        ]
        again = until_whole(workers, work(policy, ORDER))
        assert again.arrays["first"][0].tolist()[2:] == [True, True], "new matches"
    finally:
        workers.close()


def test_a_segment_whose_workers_died_does_not_wait_for_one_that_cannot_start(
    tmp_path: Path,
) -> None:
    made = tmp_path / "made"
    made.mkdir()
    options = {"folder": str(made)}
    spaces = shared_spaces(maker("pettingzoo:workers.numbered", **options)())
    spec = PolicySpec(spaces.features, spaces.actions, MLP)
    asked = RolloutPlan(
        environment="pettingzoo:workers.numbered", options=options, spec=spec, games=2, sides=False
    )
    workers = in_processes(asked, 2, tmp_path / "err", lambda words: None)
    wanted = work(lively_policy(spec, 1))
    try:
        assert workers.play(wanted) is not None
        (made / "hold").touch()
        _kill(workers, 1)
        assert workers.play(wanted) is not None
        while not (made / "held").exists():  # the second worker cannot start
            time.sleep(0.01)
        _kill(workers, 0)
        deadline = time.monotonic() + 60.0
        played = workers.play(wanted, stop=lambda: time.monotonic() > deadline)
        assert played is not None, "the first worker is back, and would not be asked"
        assert played.arrays["valid"].mean(0).tolist() == [1.0, 0.0]
        assert workers.pool.workers[1].ready is None
        (made / "held").unlink()
        until_whole(workers, wanted)
    finally:
        (made / "held").unlink(missing_ok=True)
        workers.close()


def _kill(workers: WorkerPlayers, index: int) -> None:
    link = workers.pool.workers[index].link
    assert isinstance(link, ProcessLink)
    os.kill(link.process.pid, signal.SIGKILL)
    link.process.wait()


def with_bot(tmp_path: Path, body: str) -> tuple[RolloutPlan, PlayWork]:
    """A plan and a work whose only opponent is a bot that does this."""
    bots = tmp_path / "bots.py"
    bots.write_text(f"BOTS = {{'odd': lambda observation, legal, rng: {body}}}\n", encoding="utf-8")
    asked = plan(CONTEST, sides=True, games=2).with_bots((str(bots),))
    order = OpponentOrder(names=("odd",), bounds=((1.0,),), met=("",), kinds=(0,))
    return asked, PlayWork(lively_policy(asked.spec, 1), 4, 0.9, order)


def test_an_error_of_an_environment_comes_back_in_words(tmp_path: Path) -> None:
    asked, wanted = with_bot(tmp_path, "77")
    workers = in_processes(asked, 1, tmp_path / "err", pytest.fail)
    try:
        with pytest.raises(InputError, match="--bots: odd chose 77, which is not legal"):
            workers.play(wanted)
    finally:
        workers.close()


def test_a_worker_that_dies_again_and_again_ends_the_session(tmp_path: Path) -> None:
    asked, wanted = with_bot(tmp_path, "__import__('os')._exit(7)")
    told: list[str] = []
    workers = in_processes(asked, 1, tmp_path / "err", told.append)
    try:
        for _ in range(2):
            assert workers.play(wanted) is None, "nothing was played"
        with pytest.raises(InputError, match=r"3 times in a row: see logs/workers\.err"):
            workers.play(wanted)
        assert len(told) == 2
    finally:
        workers.close()


def test_workers_do_not_import_jax(tmp_path: Path) -> None:
    """They are many, and it takes a second and 150 MB."""
    import subprocess
    import sys

    code = (
        "import sys, understudy.workers.worker;"
        "sys.exit(any(name in sys.modules for name in ('jax', 'jaxlib', 'optax')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
