"""Territory's rules: workers mine and move on, protectors hunt, parasites do what they are for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from understudy.core.ops import NUMPY, Array, Ops
from understudy.games.territory import BOTS, State, Territory, tables
from understudy.games.territory.state import at_work, chunk_of, on_guard, place_of
from understudy.learner.maths.jax_ops import JAX
from understudy.testing import check_game

GAME = Territory()
SEEDS = np.arange(300, dtype=np.uint32)


def begin(style: str | None = None, seeds: Array = SEEDS) -> Any:
    """Fresh matches, against one style of player alone if it is named."""
    if style is None:
        return GAME.start(NUMPY, seeds)
    wanted = [one.name for one in tables.STYLES].index(style)
    many = np.arange(6 * len(seeds), dtype=np.uint32)
    kept = many[GAME.start(NUMPY, many).style == wanted][: len(seeds)]
    return GAME.start(NUMPY, kept)


def tick(state: State, action: Array | int = tables.NO_SPAWN) -> State:
    actions = np.broadcast_to(np.asarray(action, np.int32), state.frame.shape)
    return GAME.step(NUMPY, state, actions[None, None])


def busiest(state: State) -> Array:
    """The chunk with most workers, int32 [B]."""
    return GAME.seen(NUMPY, state).workers.argmax(axis=0).astype(np.int32)


def spawn_at(chunk: Array, kind: int) -> Array:
    return tables.action_of(chunk, kind).astype(np.int32)


def without_protectors(state: State) -> State:
    return state._replace(protectors=np.zeros_like(state.protectors))


def with_parasites(state: State, chunk: Array, kind: int, count: int) -> State:
    """So many parasites in the youngest rows."""
    rows = slice(tables.LIFETIME - count, tables.LIFETIME)
    parasite, kinds, health = state.parasite.copy(), state.kind.copy(), state.health.copy()
    parasite[:, rows] = place_of(NUMPY, chunk)[:, None]
    kinds[rows], health[rows] = kind, tables.HEALTH[kind]
    return state._replace(parasite=parasite, kind=kinds, health=health)


def test_the_game_keeps_the_contract_under_both_engines() -> None:
    check_game(GAME, matches=8)


def test_an_action_is_a_chunk_and_a_kind() -> None:
    names = tables.action_names()
    assert len(names) == len(set(names)) == tables.OPTIONS == 513
    for chunk, kind in ((0, 0), (0, 1), (37, 0), (255, 1)):
        assert names[tables.action_of(chunk, kind)] == f"{tables.KINDS[kind]}@{chunk}"
        assert tables.spawn_of(tables.action_of(chunk, kind)) == (chunk, kind)
    state = begin()
    state = state._replace(queen_energy=np.full_like(state.queen_energy, 100.0))
    after = tick(state, tables.action_of(37, tables.COMBAT))
    assert (after.parasite[:, 0] == [[37 % 16], [37 // 16]]).all()
    assert (after.kind[0] == tables.COMBAT).all()


@pytest.mark.parametrize("ops", [NUMPY, JAX], ids=lambda ops: ops.name)
def test_chunk_and_kind_of_all_actions_at_once(ops: Ops) -> None:
    actions = ops.xp.arange(tables.OPTIONS, dtype=ops.xp.int32)
    chunk, kind = tables.spawn_of(actions)
    assert chunk.dtype == kind.dtype == np.int32
    np.testing.assert_array_equal(tables.action_of(chunk, kind)[1:], actions[1:])
    assert (chunk[0], kind[0]) == (chunk[1], kind[1]), "no spawn reads as some place of the map"
    assert chunk.min() == 0 and chunk.max() == tables.CHUNKS - 1 and set(kind.tolist()) == {0, 1}


def test_a_parasite_costs_what_the_table_says_and_energy_grows_up_to_a_maximum() -> None:
    state = begin()
    for kind, cost in enumerate(tables.COSTS):
        after = tick(state, tables.action_of(5, kind))
        spent = state.queen_energy + tables.QUEEN_ENERGY_GAIN - after.queen_energy
        np.testing.assert_allclose(spent, cost)
    for _ in range(30):
        state = tick(state)
    assert (state.queen_energy == tables.QUEEN_ENERGY_MAX).all()


def test_what_she_cannot_pay_for_is_illegal_and_no_spawn() -> None:
    state = begin()._replace(queen_energy=np.full(len(SEEDS), 20.0, np.float32))
    legal = GAME.legal(NUMPY, state)[0]
    assert legal[0].all() and legal[1::2].all() and not legal[2::2].any()
    poor = tick(state, tables.action_of(9, tables.COMBAT))
    for one, two in zip(poor, tick(state), strict=True):
        np.testing.assert_array_equal(one, two)


def test_seeds_vary_the_player_and_the_map() -> None:
    state = begin()
    assert set(state.style.tolist()) == set(range(len(tables.STYLES)))
    assert len(np.unique(chunk_of(state.vein))) > 200
    assert len(np.unique(state.ore)) > len(SEEDS)
    assert GAME.tags(state, 0) == {"opponent": tables.STYLES[int(state.style[0])].name}


def test_workers_move_on_when_ore_runs_out_so_that_no_chunk_stays_the_place() -> None:
    state = begin(seeds=SEEDS[:20])
    visited: list[set[int]] = [set() for _ in range(20)]
    mined = []
    for _ in range(tables.MAX_FRAMES):
        state = tick(state)
        best = busiest(state)
        for places, chunk in zip(visited, best, strict=True):
            places.add(int(chunk))
        mined.append(state.mining.sum() / at_work(state).sum())
    assert np.mean([len(places) for places in visited]) > 8
    assert np.mean(mined) > 0.9, "an undisturbed player mines nearly all the time"


def test_energy_parasites_hold_up_workers_and_drain_the_player() -> None:
    state = without_protectors(begin())
    chunk = busiest(state)
    crowd = GAME.seen(NUMPY, state).workers.max(axis=0)
    calm, held = tick(state), tick(state, spawn_at(chunk, tables.ENERGY))
    at = np.arange(len(SEEDS))
    before = GAME.seen(NUMPY, calm).mining[chunk, at]
    after = GAME.seen(NUMPY, held).mining[chunk, at]
    stayed = GAME.seen(NUMPY, held).workers[chunk, at] == crowd
    assert stayed.mean() > 0.4
    np.testing.assert_allclose((before - after)[stayed], np.minimum(crowd, tables.HELD)[stayed])
    drained = calm.player_energy[1] - held.player_energy[1]
    assert np.isclose(drained, tables.DRAIN)[stayed].all()


def test_workers_take_fright_and_a_chunk_full_of_parasites_is_cleared() -> None:
    state = without_protectors(begin("adaptive"))
    chunk = busiest(state)
    state = with_parasites(state, chunk, tables.ENERGY, 3)
    at = np.arange(len(chunk))
    for _ in range(6):
        state = tick(state)
    left = GAME.seen(NUMPY, state).workers[chunk, at]
    assert (left == 0).mean() > 0.9


def test_an_idle_parasite_dies_of_age() -> None:
    state = without_protectors(begin())
    state = tick(state, tables.action_of(0, tables.ENERGY))
    for _ in range(tables.LIFETIME - 1):
        assert (state.health > 0).sum(axis=0).min() == 1
        state = tick(state)
    assert (tick(state).health == 0).all()


@pytest.mark.parametrize("style", [style.name for style in tables.STYLES])
def test_protectors_kill_what_is_next_to_them(style: str) -> None:
    state = begin(style)
    chunk = chunk_of(state.protector[:, 0])
    state = tick(state, spawn_at(chunk, tables.ENERGY))
    for _ in range(7):
        state = tick(state)
    assert (state.health.sum(axis=0) == 0).mean() > 0.85


def test_a_parasite_beyond_safety_lives_longer() -> None:
    def lived(apart: int) -> float:
        state = begin("guard")
        column = chunk_of(state.protector[:, 0]) % tables.GRID
        state = state._replace(
            base=np.stack([np.zeros_like(column), np.zeros_like(column)]),
            protector=np.zeros_like(state.protector),
            errand=np.zeros_like(state.errand),
            vein=np.zeros_like(state.vein),
        )
        state = tick(state, tables.action_of(apart, tables.ENERGY))
        total = (state.health[0] > 0).astype(np.float32)
        for _ in range(12):
            state = tick(state)
            total += state.health[0] > 0
        return float(total.mean())

    assert lived(tables.SAFE_RANGE) > 3 * lived(tables.KILL_RANGE)


def test_combat_parasites_kill_protectors_who_come_back_after_a_while() -> None:
    state = begin("guard")
    state = with_parasites(state, chunk_of(state.protector[:, 0]), tables.COMBAT, 2)
    before = on_guard(state).sum(axis=0)
    for _ in range(4):
        state = tick(state)
    fewer = on_guard(state).sum(axis=0) < before
    assert fewer.mean() > 0.8
    for _ in range(tables.ABSENCE + tables.LIFETIME):
        state = tick(state)
    np.testing.assert_array_equal(on_guard(state).sum(axis=0), before)


def test_energy_parasites_never_hurt_protectors() -> None:
    state = begin("guard")
    state = with_parasites(state, chunk_of(state.protector[:, 0]), tables.ENERGY, 4)
    before = on_guard(state).sum(axis=0)
    for _ in range(5):
        state = tick(state)
        np.testing.assert_array_equal(on_guard(state).sum(axis=0), before)


def test_a_player_without_energy_strikes_worse() -> None:
    def killed(energy: float) -> float:
        state = begin("rusher")
        state = with_parasites(state, chunk_of(state.protector[:, 0]), tables.ENERGY, 1)
        state = state._replace(player_energy=np.full_like(state.player_energy, energy))
        return float((tick(state).health.sum(axis=0) == 0).mean())

    assert killed(0.0) + 0.15 < killed(100.0)


def test_everybody_stays_on_the_map_and_within_bounds() -> None:
    seeds = SEEDS[:20]
    state = begin(seeds=seeds)
    for _ in range(tables.MAX_FRAMES):
        features = GAME.observe(NUMPY, state)[0]
        state = GAME.step(
            NUMPY, state, BOTS["random"].act(NUMPY, features, seeds, state.frame)[None]
        )
        for field in ("worker", "protector", "parasite", "vein", "base"):
            place = getattr(state, field)
            assert (place >= 0).all() and (place < tables.GRID).all(), field
        assert (state.queen_energy >= 0).all()
        assert (state.player_energy >= 0).all() and (state.player_energy <= 100).all()
        assert (state.ore > 0).all()
    assert GAME.over(NUMPY, state).all()


def test_the_score_is_how_little_the_player_mined() -> None:
    state = begin()
    could = state.workers * np.float32(tables.MAX_FRAMES)
    for share, score in ((0.4, 1), (0.6, 0), (0.9, -1)):
        mined = np.stack([could, could]) * np.float32(share)
        ended = state._replace(frame=np.full_like(state.frame, tables.MAX_FRAMES), minerals=mined)
        assert (GAME.score(NUMPY, ended) == score).all()
    assert (GAME.score(NUMPY, state) == 0).all()
