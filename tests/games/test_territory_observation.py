"""What is seen of a territory, what it is worth, and that a mask follows from the numbers alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY, Array
from understudy.games.territory import BOTS, Territory, tables
from understudy.games.territory.imagine import imagine
from understudy.games.territory.observation import (
    FEATURES,
    SLOTS,
    Seen,
    features,
    legal,
    legal_from_features,
    seen,
)
from understudy.games.territory.rewards import WEIGHTS, reward, terms

GAME = Territory()
SEEDS = np.arange(60, dtype=np.uint32)
SENT = np.array([True])


def played(ticks: int = 60, bot: str = "wary", seeds: NDArray = SEEDS) -> Any:
    state = GAME.start(NUMPY, seeds)
    for _ in range(ticks):
        actions = BOTS[bot].act(NUMPY, GAME.observe(NUMPY, state)[0], seeds, state.frame)
        state = GAME.step(NUMPY, state, actions[None])
    return state


def scene(**fields: Any) -> Seen:
    """One quiet territory; fields over chunks as {chunk: count}, the others as numbers."""
    counts = {
        name: np.zeros((tables.CHUNKS, 1), np.float32)
        for name in ("workers", "mining", "protectors", "energy_parasites", "combat_parasites")
    }
    for name in counts.keys() & fields.keys():
        for chunk, count in fields.pop(name).items():
            counts[name][chunk] = count
    numbers = {"queen_energy": 50.0, "queen_energy_max": 100.0} | {
        key: value for key, value in fields.items() if key.startswith("queen")
    }
    return Seen(
        **counts,
        **{name: np.full(1, value, np.float32) for name, value in numbers.items()},
        player_energy=np.array(fields.get("player_energy", (50.0, 50.0)), np.float32)[:, None],
        player_minerals=np.zeros((2, 1), np.float32),
    )


def act(chunk: int, kind: int) -> NDArray:
    return np.array([tables.action_of(chunk, kind)], np.int32)


NOTHING = np.array([tables.NO_SPAWN], np.int32)


def test_there_are_28_features_as_the_old_game_had_them() -> None:
    assert len(FEATURES) == 28
    assert FEATURES[:6] == (
        "chunk1.id", "chunk1.workers", "chunk1.protectors", "chunk1.energy_parasites",
        "chunk1.combat_parasites", "chunk2.id",
    )  # fmt: skip
    assert FEATURES[-3:] == ("energy_capacity", "combat_capacity", "player_energy_rate")


def test_the_five_chunks_with_most_workers_are_described_and_others_are_not() -> None:
    view = scene(
        workers={9: 1, 200: 4, 3: 2, 77: 2, 255: 6, 128: 3},
        mining={200: 1},
        protectors={201: 2, 255: 1},
        energy_parasites={3: 2},
        combat_parasites={255: 1, 9: 5},
        player_energy=(50.0, 47.0),
        queen_energy=52.0,
    )
    row = dict(zip(FEATURES, features(NUMPY, view)[:, 0], strict=True))
    assert [round(row[f"chunk{slot}.id"] * 255) for slot in range(1, 6)] == [255, 200, 128, 3, 77]
    np.testing.assert_allclose(
        [row[f"chunk{slot}.workers"] for slot in range(1, 6)], np.array([6, 4, 3, 2, 2]) / 6
    )
    assert row["chunk4.energy_parasites"] == pytest.approx(2 / 3)
    assert row["chunk1.combat_parasites"] == pytest.approx(1 / 3)
    # 255 lies at (15, 15), 200 at (8, 12), 201 beside it: two protectors next to the second chunk
    # are seven chunks from the first.
    near = np.clip((8 - np.array([0, 6])) / 6, 0, 1)
    assert row["chunk1.protectors"] == pytest.approx((near[0] + 2 * near[1]) / 3)
    assert row["chunk2.protectors"] == pytest.approx((2 + (8 - 7) / 6) / 3)
    assert (row["energy_capacity"], row["combat_capacity"]) == pytest.approx((0.3, 0.2))
    assert row["player_energy_rate"] == pytest.approx(-0.3)


def test_empty_slots_say_so() -> None:
    row = features(NUMPY, scene(workers={0: 1}))[:, 0]
    assert row[0] == 0.0, "chunk 0 is a chunk"
    np.testing.assert_allclose(row[5:25].reshape(4, 5), [[-1 / 255, 0, 0, 0, 0]] * 4)


def test_every_feature_varies_in_play() -> None:
    rows = np.concatenate([GAME.observe(NUMPY, played(ticks))[0] for ticks in (5, 25, 60)], axis=1)
    assert [name for name, row in zip(FEATURES, rows, strict=True) if row.std() < 0.03] == []
    assert np.abs(rows).max() < 5


def test_the_mask_follows_from_the_features_alone() -> None:
    for energy in np.arange(0.0, 101.0, 0.5):
        view = scene(workers={5: 1}, queen_energy=energy)
        mask = legal(NUMPY, view)
        np.testing.assert_array_equal(mask, legal_from_features(NUMPY, features(NUMPY, view)))
        assert mask.shape == (513, 1) and mask[0, 0]
        assert (mask[1::2] == (energy >= 15)).all() and (mask[2::2] == (energy >= 25)).all()
    state = played()
    np.testing.assert_array_equal(
        GAME.legal(NUMPY, state)[0], legal_from_features(NUMPY, GAME.observe(NUMPY, state)[0])
    )


def test_bots_choose_only_what_is_legal() -> None:
    for name, bot in BOTS.items():
        state = GAME.start(NUMPY, SEEDS)
        for _ in range(60):
            actions = bot.act(NUMPY, GAME.observe(NUMPY, state)[0], SEEDS, state.frame)
            assert actions.shape == (1, len(SEEDS)) and actions.dtype == np.int32
            assert np.take_along_axis(GAME.legal(NUMPY, state)[0], actions, axis=0).all(), name
            state = GAME.step(NUMPY, state, actions[None])


# --- the reward ----------------------------------------------------------------------------------

BUSY = scene(workers={40: 4, 90: 4}, mining={40: 4, 90: 4}, protectors={90: 2})


def worth(action: Array, after: Seen, before: Seen = BUSY, sent: NDArray = SENT) -> float:
    return float(reward(NUMPY, before, action, sent, after)[0])


def test_workers_who_stop_mining_are_worth_their_share_and_cost_it_when_they_go_on() -> None:
    held = BUSY._replace(mining=scene(mining={40: 1, 90: 4}).mining)
    assert worth(act(40, 0), held) == pytest.approx(0.4 * 3 / 8)
    again = terms(NUMPY, held, act(40, 0), SENT, BUSY)
    assert again.mining[0] == pytest.approx(-3 / 8)


def test_the_weights_are_those_of_the_old_game() -> None:
    assert WEIGHTS._asdict() == {
        "mining": 0.4, "protectors": 0.3, "player_energy": 0.3, "cleared": 0.2, "killed": 0.15,
        "no_impact": -0.1, "skipped": -0.1, "far": -0.2,
    }  # fmt: skip


def test_a_killed_protector_counts_as_a_drop_and_as_a_kill() -> None:
    fewer = BUSY._replace(protectors=scene(protectors={90: 1}).protectors)
    assert worth(act(90, 1), fewer) == pytest.approx(0.3 / 2 + 0.15)


def test_drained_energy_counts() -> None:
    drained = BUSY._replace(player_energy=scene(player_energy=(50.0, 45.0)).player_energy)
    assert worth(act(90, 0), drained) == pytest.approx(0.3 * 5 / 25)


def test_a_chunk_is_cleared_where_parasites_were_and_not_where_ore_ran_out() -> None:
    moved = scene(workers={90: 8}, mining={90: 8}, protectors={90: 2})
    assert terms(NUMPY, BUSY, act(40, 0), SENT, moved).cleared[0] == 1
    assert terms(NUMPY, BUSY, act(90, 0), SENT, moved).cleared[0] == 0
    infested = BUSY._replace(energy_parasites=scene(energy_parasites={40: 1}).energy_parasites)
    assert terms(NUMPY, infested, NOTHING, SENT, moved).cleared[0] == 1


def test_a_spawn_without_impact_costs_and_so_does_skipping_while_workers_mine() -> None:
    assert worth(act(40, 0), BUSY) == pytest.approx(-0.1)
    assert worth(NOTHING, BUSY) == pytest.approx(-0.1)
    idle = scene(workers={40: 4, 90: 4}, protectors={90: 2})
    assert worth(NOTHING, idle, before=idle) == 0.0


def test_what_was_not_sent_is_judged_as_no_spawn() -> None:
    for after in (BUSY, scene(workers={40: 8}, mining={40: 2})):
        blocked = worth(act(0, 0), after, sent=np.array([False]))
        assert blocked == worth(NOTHING, after)


def test_spawning_far_away_costs_the_more_the_further() -> None:
    costs = [
        float(terms(NUMPY, BUSY, act(chunk, tables.ENERGY), SENT, BUSY).far[0])
        for chunk in (40, 41, 43, 47, 255)  # 40 is column 8 of row 2, 90 column 10 of row 5
    ]
    assert costs[:2] == [0.0, 0.0]
    assert costs == sorted(costs) and costs[-2] > costs[2] > 0 and costs[-1] == 1.0
    guards = BUSY._replace(protectors=scene(protectors={255: 2}).protectors)
    assert terms(NUMPY, guards, act(255, tables.COMBAT), SENT, guards).far[0] == 0.0
    assert terms(NUMPY, guards, act(255, tables.ENERGY), SENT, guards).far[0] == 1.0


def test_a_reward_is_bounded() -> None:
    many = dict.fromkeys(range(20), 3.0)
    before = scene(workers=many, mining=many, protectors=many, energy_parasites=many)
    assert worth(act(3, 0), scene(), before=before) == 1.0
    assert worth(NOTHING, before, before=scene(workers={1: 1})) >= -1.0


def test_the_games_reward_is_that_of_two_observations() -> None:
    state = played(40)
    actions = BOTS["queen"].act(NUMPY, GAME.observe(NUMPY, state)[0], SEEDS, state.frame)
    after = GAME.step(NUMPY, state, actions[None])
    sent = np.ones(len(SEEDS), np.bool_)
    told = reward(NUMPY, seen(NUMPY, state), actions[0], sent, seen(NUMPY, after))
    np.testing.assert_array_equal(GAME.reward(NUMPY, state, after)[0], told)


# --- imagined states -----------------------------------------------------------------------------


def test_an_imagined_state_looks_like_what_it_was_imagined_from() -> None:
    state = played()
    looks = GAME.observe(NUMPY, state)[0]
    imagined = imagine(NUMPY, looks, SEEDS)
    again = GAME.observe(NUMPY, imagined)[0]
    guards = [index for index, name in enumerate(FEATURES) if name.endswith("protectors")]
    exact = [index for index in range(28) if index not in guards]
    np.testing.assert_allclose(again[exact], looks[exact], atol=1e-5)
    assert np.abs(again[guards] - looks[guards]).mean() < 0.03
    np.testing.assert_array_equal(GAME.legal(NUMPY, imagined), GAME.legal(NUMPY, state))
    for name, leaf in imagined._asdict().items():
        real = getattr(state, name)
        assert (leaf.dtype, leaf.shape) == (real.dtype, real.shape), name


def test_imagining_is_seeded_and_the_future_depends_on_the_seed() -> None:
    looks = GAME.observe(NUMPY, played())[0]
    one, two = imagine(NUMPY, looks, SEEDS), imagine(NUMPY, looks, SEEDS)
    for left, right in zip(one, two, strict=True):
        np.testing.assert_array_equal(left, right)
    other = imagine(NUMPY, looks, SEEDS + np.uint32(1000))
    assert (other.style != one.style).any()


def test_a_rollout_tells_a_guarded_chunk_from_a_free_one() -> None:
    """What the gate is for: the same spawn, with and without protectors next to it."""

    def outlook(protectors: float) -> float:
        looks = np.zeros((28, 200), np.float32)
        looks[: 5 * SLOTS : 5] = -1 / 255
        looks[0:3] = np.array([100 / 255, 4 / 6, protectors], np.float32)[:, None]
        looks[25:27] = np.array([0.3, 0.2], np.float32)[:, None]
        state = imagine(NUMPY, looks, np.arange(200, dtype=np.uint32))
        total = np.zeros(200, np.float32)
        for tick in range(8):
            action = act(100, tables.ENERGY) if tick == 0 else NOTHING
            after = GAME.step(NUMPY, state, np.broadcast_to(action, (1, 1, 200)))
            total += GAME.reward(NUMPY, state, after)[0]
            state = after
        return float(total.mean())

    assert outlook(0.0) > outlook(1.0) + 0.1


def test_nobody_at_all_can_be_imagined() -> None:
    looks = np.zeros((28, 1), np.float32)
    looks[: 5 * SLOTS : 5] = -1 / 255
    state = imagine(NUMPY, looks, np.zeros(1, np.uint32))
    assert state.workers[0] == 0 and state.protectors[0] == 0
    after = GAME.step(NUMPY, state, np.zeros((1, 1, 1), np.int32))
    assert np.isfinite(GAME.observe(NUMPY, after)).all()
    assert abs(GAME.reward(NUMPY, state, after)[0, 0]) < 0.05, "only the player's energy moves"


def test_a_chunk_beyond_the_map_is_its_last() -> None:
    looks = np.zeros((28, 2), np.float32)
    looks[: 5 * SLOTS : 5] = -1 / 255
    looks[0], looks[1] = (256 / 255, 4.0), 2 / 6
    state = imagine(NUMPY, looks, SEEDS[:2])
    workers = GAME.seen(NUMPY, state).workers
    assert (workers[tables.CHUNKS - 1] == 2).all() and (workers.sum(axis=0) == 2).all()


@given(st.integers(0, 2**32 - 1))
def test_anything_can_be_imagined(seed: int) -> None:
    """Live clients send what they like; what comes of it is a match like any other."""
    rng = np.random.default_rng(seed)
    looks = rng.standard_cauchy((28, 8)).astype(np.float32)
    looks[rng.random(looks.shape) < 0.1] = np.inf
    looks[rng.random(looks.shape) < 0.1] = -np.inf
    state = imagine(NUMPY, looks, SEEDS[:8])
    for most, field in (
        (tables.GRID, state.worker),
        (tables.GRID, state.protector),
        (tables.GRID, state.parasite),
        (tables.GRID, state.vein),
        (tables.VEINS, state.errand),
        (tables.WORKERS_MOST + 1, state.workers),
        (tables.PROTECTORS_MOST + 1, state.protectors),
    ):
        assert (field >= 0).all() and (field < most).all()
    for amount in (state.queen_energy, state.player_energy):
        assert (amount >= 0).all() and (amount <= 100).all()
    after = GAME.step(NUMPY, state, np.zeros((1, 1, 8), np.int32))
    assert np.isfinite(GAME.observe(NUMPY, after)).all()
    assert np.isfinite(GAME.reward(NUMPY, state, after)).all()
