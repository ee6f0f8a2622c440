"""Workers as Ray actors on two nodes: the same segments, kills, and code that travels."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from policy.makers import MLP, TRANSFORMER, lively_policy

from understudy.core.errors import ConfigError
from understudy.judging.environments import EnvironmentResolver, NamedSide
from understudy.policy.spec import PolicySpec
from understudy.registry.versions import Versions
from understudy.workers import ray_actors
from understudy.workers.players import LocalPlayers, PlayWork, WorkerPlayers
from understudy.workers.pool import worker_pool
from understudy.workers.ray_actors import RayLink, RayTransport, RayWorker
from understudy.workers.ray_mode import check_mode
from workers.test_players import CONTEST, ORDER, plan, same, until_whole, work
from workers.two_hosts import two_hosts
from workers.two_nodes import GOES_ON_S, TwoNodes

TESTS = Path(__file__).parent.parent
pytestmark = [
    pytest.mark.xdist_group("ray"),  # one cluster, where groups are kept together
    # The cluster's nodes are forked by Ray's own test code; another test may have imported JAX.
    pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning"),
]


def actor_of(players: WorkerPlayers, index: int) -> Any:
    link = players.pool.workers[index].link
    assert isinstance(link, RayLink)
    return link._actor


def node_and_jax(players: WorkerPlayers) -> list[tuple[str, bool]]:
    """Where each actor is, and whether it has imported JAX."""
    import ray

    def look(_: Any) -> tuple[str, bool]:
        return ray.get_runtime_context().get_node_id(), "jax" in sys.modules

    count = range(len(players.pool.workers))
    return ray.get([actor_of(players, index).__ray_call__.remote(look) for index in count])  # type: ignore[no-any-return]


def test_actors_of_two_nodes_play_the_same_segments_and_survive_a_kill(
    cluster: TwoNodes, tmp_path: Path
) -> None:
    asked = plan(CONTEST, TRANSFORMER, sides=True, games=5)
    told: list[str] = []
    alone = LocalPlayers(asked)
    pool = worker_pool(3, ray="auto", errors=tmp_path / "err", problem=told.append)
    players = WorkerPlayers(asked, pool)
    try:
        for seed in (1, 2):
            policy = lively_policy(asked.spec, seed)
            same(alone.play(work(policy, ORDER)), players.play(work(policy, ORDER)))
        found = node_and_jax(players)
        assert len({node for node, _ in found}) == 2
        assert not any(jax for _, jax in found)
        ready = pool.workers[1].ready
        assert ready is not None
        os.kill(ready.pid, signal.SIGKILL)
        began = time.monotonic()
        part, whole = players.play(work(policy, ORDER)), alone.play(work(policy, ORDER))
        assert part is not None and whole is not None
        valid = part.arrays["valid"]
        kept = valid.all(0)
        assert kept.tolist() == [True, True, False, False, True] and not valid[:, ~kept].any()
        np.testing.assert_array_equal(
            part.arrays["rewards"][:, kept], whole.arrays["rewards"][:, kept]
        )
        assert {match.number for match in part.finished} <= {0, 1, 4}, "nothing is invented"
        assert time.monotonic() - began < GOES_ON_S
        again = until_whole(players, work(policy, ORDER))
        assert again.arrays["first"][0].tolist()[2:4] == [True, True], "new matches"
        assert len(told) == 1 and "died (its process is lost) with 2 environments" in told[0]
    finally:
        players.close()


@contextlib.contextmanager
def three_workers(folder: Path, told: list[str]) -> Iterator[tuple[WorkerPlayers, PlayWork]]:
    """Workers with an environment each, that have played; two of them are on the second node."""
    asked = plan(CONTEST, MLP, sides=True, games=3)
    wanted = work(lively_policy(asked.spec, 1), ORDER)
    pool = worker_pool(3, ray="auto", errors=folder / "err", problem=told.append)
    players = WorkerPlayers(asked, pool)
    try:
        assert players.play(wanted) is not None
        yield players, wanted
    finally:
        players.close()


def until_masked(players: WorkerPlayers, wanted: PlayWork) -> None:
    """Until a segment of the first node alone; all of it, and nothing of the others."""
    began = time.monotonic()
    while True:
        played = players.play(wanted)
        assert played is not None
        columns = played.arrays["valid"].mean(0)
        assert set(columns.tolist()) <= {0.0, 1.0}, "whole columns, or nothing of them"
        assert {match.number for match in played.finished} <= set(np.flatnonzero(columns))
        if columns.sum() == 1.0:
            return
        assert time.monotonic() - began < GOES_ON_S, "training goes on with the node that is left"


def test_a_node_that_is_lost_is_left_out_until_there_is_another(
    cluster: TwoNodes, tmp_path: Path
) -> None:
    told: list[str] = []
    with three_workers(tmp_path, told) as (players, wanted):
        cluster.kill_node()
        until_masked(players, wanted)
        report = players.report()
        assert (report.count, report.ready, report.lost) == (3, 1, 2)
        assert any("is lost" in words for words in told)
        cluster.add_node()
        until_whole(players, wanted)


@pytest.mark.soak
def test_a_host_that_is_cut_off_is_left_out_until_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(part for part in sys.path if part))
    monkeypatch.setattr(ray_actors, "copy_user_code", lambda folder: {})
    told: list[str] = []
    with two_hosts() as hosts:
        monkeypatch.setenv("RAY_ADDRESS", hosts.address)
        with three_workers(tmp_path, told) as (players, wanted):
            hosts.pull_cable()
            until_masked(players, wanted)
            assert players.report().lost == 2 and len(told) == 2, told
            hosts.plug_in()
            hosts.add_node()  # Ray gives up a node that was away for long
            until_whole(players, wanted)


def test_a_node_and_then_the_last_worker_are_lost(cluster: TwoNodes, tmp_path: Path) -> None:
    """Ray takes the lost node for the place with the most free CPUs until it notices."""
    told: list[str] = []
    with three_workers(tmp_path, told) as (players, wanted):
        nodes = [node for node, _ in node_and_jax(players)]
        (alone,) = (index for index, node in enumerate(nodes) if nodes.count(node) == 1)
        last = players.pool.workers[alone].ready
        assert last is not None
        cluster.kill_node()
        os.kill(last.pid, signal.SIGKILL)
        began = time.monotonic()
        while (played := players.play(wanted)) is None or len(told) < 3:
            assert time.monotonic() - began < GOES_ON_S, told
        assert played.arrays["valid"].mean(0).sum() == 1.0, "one worker, on the node that is left"
        cluster.add_node()
        until_whole(players, wanted)


def test_frozen_matches_of_actors_are_those_of_this_process(
    cluster: TwoNodes, tmp_path: Path
) -> None:
    bots = tmp_path / "bots.py"
    bots.write_text("BOTS = {'right': lambda obs, legal, rng: 1 if legal[1] else 0}\n")
    resolver = EnvironmentResolver(CONTEST, leads=[], bots=[str(bots)], seed=4)
    spec = PolicySpec(resolver.features, resolver.actions, MLP)
    mine = NamedSide("mine", (resolver.side(lively_policy(spec, 3)),))
    sides = [mine, *(resolver.resolve("", name) for name in ("right", "random"))]
    alone = resolver.round_robin(sides, 40)
    with resolver.with_workers(2, ray="auto", note=pytest.fail):
        shared = resolver.round_robin(sides, 40)
    np.testing.assert_array_equal(alone.wins, shared.wins)
    np.testing.assert_array_equal(alone.draws, shared.draws)
    np.testing.assert_array_equal(alone.distinct, shared.distinct)


GAME = """
import sys
from training.environments.contest import Contest
from my_rules import ROUNDS

print("rules of", sys.modules["my_rules"].__file__, file=sys.stderr, flush=True)

def parallel_env(**options):
    assert ROUNDS == 4
    return Contest(**options)
"""


def train(folder: Path, run: str, *more: str, env: dict[str, str]) -> dict[str, Any]:
    command = [
        sys.executable, "-m", "understudy", "train", "pettingzoo:my_game", "--run", run,
        "--steps", "1600", "--eval", "8", "--bots", "my_bots.py", "--json",
        "--set", "train.games=8", "--set", "train.segment=25", "--set", "learner.epochs=1", *more,
    ]  # fmt: skip
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


def test_code_of_a_user_travels_and_the_same_is_learned(nodes: TwoNodes, tmp_path: Path) -> None:
    """The whole command, with `--ray auto`, against the same without workers."""
    (tmp_path / "my_game.py").write_text(GAME)
    (tmp_path / "my_rules.py").write_text("ROUNDS = 4\n")
    (tmp_path / "my_bots.py").write_text("BOTS = {'low': lambda obs, legal, rng: legal.argmax()}\n")
    env = {**os.environ, "PYTHONPATH": str(TESTS), "RAY_ADDRESS": nodes.cluster.address}
    alone = train(tmp_path, "runs/alone", env=env)
    shared = train(tmp_path, "runs/shared", "--workers", "2", "--ray", "auto", env=env)
    assert shared["workers"]["count"] == 2 and shared["workers"]["lost"] == 0
    for summary in (alone, shared):
        del summary["eval"]["seconds"]
    assert alone["eval"] == shared["eval"]
    one, two = (Versions(tmp_path / f"runs/{name}/versions") for name in ("alone", "shared"))
    assert one.head() == two.head() and one.head()
    weights, others = one.policy(one.head() or 0).weights, two.policy(two.head() or 0).weights
    for name, value in weights.params.items():
        np.testing.assert_array_equal(value, others.params[name])
    printed = (tmp_path / "runs/shared/logs/workers.err").read_text()
    places = {line.split()[-1] for line in printed.splitlines() if line.startswith("rules of")}
    assert places and not any(place.startswith(str(tmp_path)) for place in places), printed


def test_local_never_attaches_and_leaves_signals_and_nothing_behind(nodes: TwoNodes) -> None:
    import ray

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ADDRESS", nodes.cluster.address)
        patch.setattr(ray_actors, "copy_user_code", lambda folder: {})
        before = signal.getsignal(signal.SIGTERM)
        transport = RayTransport("local", 1)
        try:
            assert ray.get_runtime_context().gcs_address != nodes.cluster.address
            assert ray.cluster_resources()["CPU"] == 1.0
            assert signal.getsignal(signal.SIGTERM) is before
            with pytest.raises(ConfigError, match="is connected to a Ray cluster already"):
                RayTransport("local", 1)
        finally:
            transport.close()
        assert not ray.is_initialized()
        # A local Ray asks for tokens; a cluster without them must still answer afterwards.
        transport = RayTransport("auto", 1)
        try:
            assert ray.get_runtime_context().gcs_address == nodes.cluster.address
            ray.get(ray.remote(num_cpus=0)(RayWorker).remote().where.remote(), timeout=60.0)
        finally:
            transport.close()


@pytest.mark.parametrize(
    ("mode", "address", "expected"),
    [
        ("ray://10.0.0.1:10001", "", r"--ray ray://10.*submit a job instead.*ray job submit"),
        ("auto", "ray://10.0.0.1:10001", "--ray auto: RAY_ADDRESS ray://10.*submit a job"),
        ("10.0.0.1:6379", "", r"--ray: expected local .* or auto .*got '10\.0\.0\.1:6379'"),
    ],
)
def test_other_ways_to_a_cluster_are_refused(
    mode: str, address: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(ConfigError, match=expected):
        check_mode(mode)
