"""Swarm's rules: seeded, varied, fair in the fog, and the strategies do what they are called."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from understudy.core.ops import NUMPY, Array
from understudy.games.swarm import BOTS, State, Swarm, tables
from understudy.games.swarm.features import FEATURES, SCALES

SEEDS = np.arange(600, dtype=np.uint32)


def run(game: Swarm, plan: list[str], seeds: Array = SEEDS) -> Any:
    """The state after playing a list of strategies."""
    state = game.start(NUMPY, seeds)
    for name in plan:
        actions = np.full((1, 1, len(seeds)), tables.STRATEGIES.index(name), np.int32)
        state = game.step(NUMPY, state, actions)
    return state


def test_features_are_the_fifteen_of_the_old_bot_in_their_order() -> None:
    assert FEATURES == (
        "minerals", "vespene", "supply_used", "supply_cap", "workers", "units", "enemy_units",
        "townhalls", "time_s", "enemy_bases", "upgrades", "larva", "map_control", "our_army_hp",
        "enemy_hp",
    )  # fmt: skip
    assert list(SCALES.values()) == [
        2000, 1000, 200, 200, 100, 100, 100, 10, 1000, 5, 10, 20, 1, 5000, 5000
    ]  # fmt: skip
    state = run(Swarm(), ["ECONOMY"] * 40)
    obs = dict(zip(FEATURES, Swarm().observe(NUMPY, state)[0], strict=True))
    np.testing.assert_allclose(obs["workers"], state.workers[0] / 100, rtol=1e-6)
    np.testing.assert_allclose(obs["time_s"], 0.160, rtol=1e-6)
    np.testing.assert_allclose(obs["townhalls"], state.halls[0] / 10, rtol=1e-6)


def test_every_feature_varies_in_play() -> None:
    """One of the old bot's features stood still for 2,587 states, and nobody saw it."""
    state = Swarm().start(NUMPY, SEEDS)
    seen = []
    for _ in range(120):
        obs = Swarm().observe(NUMPY, state)
        seen.append(obs[0])
        actions = BOTS["random"].act(NUMPY, obs[0], SEEDS, state.frame)
        state = Swarm().step(NUMPY, state, actions[None])
    play = np.stack(seen)
    spread = play.std(axis=(0, 2)) / play.mean(axis=(0, 2))
    still = [name for name, share in zip(FEATURES, spread, strict=True) if share < 0.2]
    assert not still


def test_the_same_seed_is_the_same_match_bit_for_bit() -> None:
    plan = ["ECONOMY"] * 30 + ["AGGRESSIVE"] * 30
    for one, two in zip(run(Swarm(), plan), run(Swarm(), plan), strict=True):
        np.testing.assert_array_equal(one, two)


def test_seeds_vary_every_starting_condition_and_every_build() -> None:
    state = Swarm().start(NUMPY, SEEDS)
    assert set(state.build.tolist()) == set(range(len(tables.BUILDS)))
    for field in ("distance", "pace", "income", "minerals", "workers"):
        assert len(np.unique(getattr(state, field)[..., :])) > len(SEEDS) / 2, field


def test_the_player_cannot_tell_builds_apart_before_scouting() -> None:
    obs = Swarm().observe(NUMPY, Swarm().start(NUMPY, SEEDS))[0]
    for name in ("enemy_units", "enemy_bases", "enemy_hp"):
        assert np.unique(obs[FEATURES.index(name)]).size == 1, name


def test_sightings_are_stale_at_home_and_fresh_in_the_field() -> None:
    def error(plan: list[str]) -> float:
        state = run(Swarm(), plan)
        return float((np.abs(state.seen[1] - state.halls[1]) / state.halls[1]).mean())

    assert error(["ECONOMY"] * 40) > 1.5 * error(["ECONOMY"] * 28 + ["AGGRESSIVE"] * 12) > 0


def test_protoss_armies_show_fewer_heads_for_the_same_hit_points() -> None:
    state = run(Swarm(), ["ECONOMY"] * 60)
    heads = state.seen[0] / state.seen[2]
    race = tables.BUILD_RACE[state.build]
    terran, zerg, protoss = (heads[race == index].mean() for index in range(3))
    assert protoss < terran < zerg


@pytest.mark.parametrize(
    ("strategy", "field"),
    [
        ("ECONOMY", "workers"),
        ("ECONOMY", "halls"),
        ("AGGRESSIVE", "front"),
        ("DEFENSIVE", "defence"),
        ("TECH", "upgrades"),
    ],
)
def test_each_strategy_leads_in_what_it_is_called_after(strategy: str, field: str) -> None:
    reached = {
        name: float(getattr(run(Swarm(), [name] * 20), field)[0].mean())
        for name in ("ECONOMY", "AGGRESSIVE", "DEFENSIVE", "TECH")
    }
    assert max(reached, key=lambda name: reached[name]) == strategy


def test_all_in_is_illegal_without_an_army_and_means_aggression() -> None:
    game = Swarm()
    state = game.start(NUMPY, SEEDS)
    legal = game.legal(NUMPY, state)
    assert legal[0, :4].all()
    assert not legal[0, tables.ALL_IN].any()
    for one, two in zip(run(game, ["ALL_IN"]), run(game, ["AGGRESSIVE"]), strict=True):
        np.testing.assert_array_equal(one, two)
    grown = run(game, ["DEFENSIVE"] * 60)
    able = game.legal(NUMPY, grown)[0, tables.ALL_IN]
    np.testing.assert_array_equal(able, grown.army[0] >= tables.ALL_IN_UNITS)
    assert able.any()


def test_all_in_pulls_workers_into_the_army() -> None:
    before = run(Swarm(), ["ECONOMY"] * 30 + ["DEFENSIVE"] * 40)
    able = before.army[0] >= tables.ALL_IN_UNITS
    actions = np.full((1, 1, len(SEEDS)), tables.ALL_IN, np.int32)
    after = Swarm().step(NUMPY, before, actions)
    assert (after.workers[0] < before.workers[0])[able].all()
    assert (after.army[0] > before.army[0])[able & (before.front[1] < 0.5)].all()


def test_bots_choose_only_what_is_legal() -> None:
    game = Swarm()
    for name, bot in BOTS.items():
        state = game.start(NUMPY, SEEDS)
        for _ in range(100):
            actions = bot.act(NUMPY, game.observe(NUMPY, state)[0], SEEDS, state.frame)
            assert actions.shape == (1, len(SEEDS))
            assert actions.dtype == np.int32
            legal = np.take_along_axis(game.legal(NUMPY, state)[0], actions, axis=0)
            assert legal.all(), name
            state = game.step(NUMPY, state, actions[None])


def test_the_time_limit_is_judged_on_arms() -> None:
    game = Swarm()
    state = run(game, ["ECONOMY"])
    last = np.full_like(state.frame, tables.MAX_FRAMES)
    for ours, theirs, score in ((10.0, 5.0, 1), (10.0, 8.0, 0), (5.0, 10.0, -1)):
        army = np.stack([np.full(len(SEEDS), ours), np.full(len(SEEDS), theirs)])
        ended = state._replace(frame=last, army=army.astype(np.float32))
        assert game.over(NUMPY, ended).all()
        assert (game.score(NUMPY, ended) == score).all()
        assert not game.over(NUMPY, ended._replace(frame=last - 1)).any()


def test_a_side_without_townhalls_or_hope_has_lost() -> None:
    game = Swarm()
    state = run(game, ["ECONOMY"])
    razed = state._replace(halls=state.halls * np.array([[1.0], [0.01]], np.float32))
    assert (game.score(NUMPY, razed) == 1).all()
    crushed = state._replace(army=state.army + np.array([[0.0], [90.0]], np.float32))
    assert (game.score(NUMPY, crushed) == -1).all()


def test_tags_name_the_opponent() -> None:
    game = Swarm("medium")
    state = game.start(NUMPY, SEEDS)
    index = int(np.flatnonzero(state.build == 0)[0])
    assert game.tags(state, index) == {
        "race": "terran", "build": "rush", "difficulty": "medium", "opponent": "terran/rush"
    }  # fmt: skip


def test_no_field_ever_goes_below_zero_or_above_its_cap() -> None:
    game = Swarm("very_hard")
    state: State = game.start(NUMPY, SEEDS)
    for _ in range(game.max_frames):
        actions = BOTS["random"].act(NUMPY, game.observe(NUMPY, state)[0], SEEDS, state.frame)
        state = game.step(NUMPY, state, actions[None])
        for field in ("workers", "army", "defence", "upgrades", "halls", "front"):
            assert (getattr(state, field) >= 0).all(), field
        assert (state.minerals > -1e-2).all()
        assert (state.larva > -1e-3).all()
        assert (state.supply_cap <= 200).all()
        assert (state.front <= 1).all()
        assert ((state.workers + state.army)[0] <= 201).all()
