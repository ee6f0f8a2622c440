"""Opponents by the names that people give them, one by one and by the group."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cli.leagues_of_brawl import brawl_league

from understudy.core.clock import SystemClock
from understudy.core.errors import ConfigError
from understudy.games import catalog
from understudy.judging.players import PlayerResolver
from understudy.league import snapshots
from understudy.match.players import PolicyPlayer, PoolPlayer
from understudy.registry.run_folder import RunFolder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(brawl_league(tmp_path_factory.mktemp("league") / "run", snapshots=7))


def resolver(run: str) -> PlayerResolver:
    return PlayerResolver("brawl", leads=[("--agent", run)], delay=None, sampled=False)


def labels(run: str, names: str, most: int = 20) -> list[str]:
    listed = resolver(run).resolve_all("--opponents", names, agent=run, most=most)
    return [one.label for one in listed]


def test_groups_stand_for_their_members(run: str) -> None:
    assert labels(run, "all") == list(catalog.bots("brawl"))
    assert labels(run, "heldout") == [f"{one} (held out)" for one in catalog.held_out("brawl")]
    both = labels(run, "based, heldout ,random")
    assert both == ["based", *labels(run, "heldout"), "random"]
    ends = ["step-1000 (first)", "step-7000 (last)"]
    assert labels(run, "league") == ["league (7 of 7)", *ends]
    assert labels(run, "league", most=3) == ["league (3 of 7)", *ends]
    assert labels(run, "league", most=1) == ["league (1 of 7)", "step-7000 (last)"]
    for twice in ("all,based", "league,league", "heldout,hawk"):
        with pytest.raises(ConfigError, match="named twice"):
            labels(run, twice)


def test_a_league_is_its_snapshots_spread_evenly(run: str) -> None:
    league, first, _ = resolver(run).resolve_all("--opponents", "league", agent=run, most=3)
    assert league.members == ("step-1000", "step-4000", "step-7000")
    pool, oldest = league.player, first.player
    assert isinstance(pool, PoolPlayer) and isinstance(oldest, PolicyPlayer)
    named = resolver(run).resolve("--opponents", f"{run}@step-1000")
    assert isinstance(named.player, PolicyPlayer) and named.version is None
    for name, array in named.player.policy.weights.params.items():
        np.testing.assert_array_equal(array, oldest.policy.weights.params[name])
        np.testing.assert_array_equal(array, pool.weights[0][name][0])


@pytest.mark.parametrize("count", [1, 2, 3, 20, 21, 153])
def test_evenly_keeps_both_ends_and_skips_alike(count: int) -> None:
    picked = snapshots.evenly(range(count), 20)
    assert len(picked) == min(count, 20) and picked == sorted(set(picked))
    assert (picked[0], picked[-1]) == (0, count - 1)
    gaps = np.diff(picked)
    assert not len(gaps) or gaps.max() - gaps.min() <= 1
    assert snapshots.evenly(range(count), 1) == [count - 1]


def test_only_what_the_newest_version_lists_is_a_snapshot(run: str) -> None:
    folder = RunFolder.load(Path(run), SystemClock())
    stray = Path(run) / "league" / "step-000000500.npz"
    stray.write_bytes((Path(run) / "league" / "step-000001000.npz").read_bytes())
    assert [one.steps for one in snapshots.pool_of(folder)] == [1000 * n for n in range(1, 8)]
