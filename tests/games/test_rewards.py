"""Sets of rewards by name, changed by settings; wrong names and weights name the key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from understudy.core.errors import ConfigError
from understudy.core.ops import NUMPY
from understudy.games import catalog
from understudy.games.rewards import LIMIT, Moment, RewardSet, rewards_of, terms_of, weights_of


@dataclass
class Settings:
    set: str = "default"
    weights: Mapping[str, float] = field(default_factory=dict)


def test_settings_change_weights_add_terms_and_take_them_out() -> None:
    chosen = Settings("sparse", {"combo": 0.5, "loss": 0.0, "win": 2.0})
    weights = weights_of("brawl", chosen)
    assert weights["combo"] == 0.5 and weights["win"] == 2.0 and "loss" not in weights
    rewards, (row,) = rewards_of("brawl", chosen, gamma=0.99)
    assert dict(zip(rewards.names, row, strict=True)) == {
        name: np.float32(weight) for name, weight in weights.items()
    }
    assert catalog.reward_sets("brawl")["sparse"]["win"] == 1.0, "the set itself is as it was"


def test_several_sets_share_one_set_of_terms() -> None:
    rewards, weights = rewards_of("brawl", Settings("dense", {"time": -0.01}), "sparse", gamma=0.99)
    assert weights.shape == (2, len(rewards.names)) and weights.dtype == np.float32
    dense, sparse = (dict(zip(rewards.names, row, strict=True)) for row in weights)
    assert dense["time"] == np.float32(-0.01) and sparse["time"] == 0
    assert sparse["closing"] == 0 < dense["closing"]
    assert {name for name, weight in sparse.items() if weight} == set(
        catalog.reward_sets("brawl")["sparse"]
    )


def test_sparse_has_the_proportions_of_the_original() -> None:
    sparse = catalog.reward_sets("brawl")["sparse"]
    hundredfold = {name: round(weight * 100) for name, weight in sparse.items()}
    assert hundredfold == {
        "damage_dealt": 1, "damage_taken": -1, "knockout_dealt": 50, "knocked_out": -50,
        "win": 100, "loss": -100,
    }  # fmt: skip
    assert sparse.items() <= catalog.reward_sets("brawl")["dense"].items()


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        (Settings("sprase"), r"^rewards\.set: .*Did you mean 'sparse'\?"),
        (Settings(weights={"comb": 1.0}), r"^rewards\.weights\.comb: .*Did you mean 'combo'\?"),
        (Settings(weights={"win": float("nan")}), r"^rewards\.weights\.win: expected a weight"),
        (Settings(weights={"win": 1000.0}), r"^rewards\.weights\.win: .* -256 to 256"),
        (Settings(weights={"win": 1e-6}), r"^rewards\.weights\.win: 1e-06 is too small"),
        (
            Settings(weights=dict.fromkeys(("damage", "knockout", "result", "closing"), 0.0)),
            "every weight is 0",
        ),
    ],
)
def test_what_is_wrong_names_the_key(chosen: Settings, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        rewards_of("brawl", chosen, gamma=0.99)


def test_another_place_for_settings_is_named_too() -> None:
    key = "curriculum.stages.1.rewards"
    with pytest.raises(ConfigError, match=rf"^{key}: brawl has no set of rewards 'dens'"):
        weights_of("brawl", "dens", key=key)
    with pytest.raises(ConfigError, match=rf"^{key}\.weights\.x: "):
        weights_of("brawl", Settings(weights={"x": 1.0}), key=key)


@pytest.mark.parametrize("name", catalog.names())
def test_every_set_of_every_game_names_terms_that_exist(name: str) -> None:
    assert "default" in catalog.reward_sets(name)
    for each, weights in catalog.reward_sets(name).items():
        assert weights.keys() <= terms_of(name, gamma=1.0).keys(), each
        assert weights_of(name, Settings(each, weights)) == weights


def test_a_game_without_terms_is_rewarded_by_its_own_reward() -> None:
    game = catalog.make("swarm")
    before = game.start(NUMPY, np.arange(4, dtype=np.uint32))
    actions = np.zeros((1, len(game.actions.parts), 4), np.int32)
    after = game.step(NUMPY, before, actions)
    rewards, (weights,) = rewards_of("swarm", Settings(), gamma=0.99)
    assert rewards.names == ("reward",)
    parts = rewards.parts(NUMPY, Moment(game, before, after, actions), weights)
    np.testing.assert_allclose(parts.sum(0), game.reward(NUMPY, before, after), atol=1e-5)
    assert not catalog.measures("swarm")


def test_no_term_that_counts_in_every_frame_outweighs_the_result() -> None:
    """Pressing, camping and the like, for all of a match, stay below what a win is worth."""
    frames = catalog.make("brawl").max_frames
    dense = catalog.reward_sets("brawl")["dense"]
    for name in ("stun", "edge_pressure", "over_pit", "camping"):
        assert abs(dense[name]) * frames < dense["win"], name
    assert sum(abs(weight) for weight in dense.values()) < LIMIT


def test_measures_are_summed_as_they_are() -> None:
    game = catalog.make("brawl")
    measures = RewardSet.of(catalog.measures("brawl"))
    before = game.start(NUMPY, np.arange(3, dtype=np.uint32))
    actions = np.zeros((2, 1, 3), np.int32)
    moment = Moment(game, before, game.step(NUMPY, before, actions), actions)
    assert measures.names[:4] == ("damage_dealt", "damage_taken", "knockouts", "falls")
    assert measures.values(NUMPY, moment).shape == (len(measures.names), 2, 3)
    assert not measures.values(NUMPY, moment).any()


def test_the_page_lists_every_term_with_its_weight_in_each_set_and_every_measure() -> None:
    page = (Path(__file__).parents[2] / "docs" / "rewards.md").read_text(encoding="utf-8")
    lines = [
        [cell.strip() for cell in line.replace("\\|", "/").strip("|").split("|")]
        for line in page.splitlines()
        if line.startswith("|")
    ]
    sets = lines[0][3:]
    assert sets == list(catalog.reward_sets("brawl"))
    written: dict[str, dict[str, float]] = {name: {} for name in sets}
    for term, _, _, *cells in lines[2:]:
        for name, cell in zip(sets, cells, strict=True):
            if cell:
                written[name][term.strip("`")] = float(cell.replace("\u2212", "-"))
    assert written == {
        name: dict(weights) for name, weights in catalog.reward_sets("brawl").items()
    }
    assert {line[0].strip("`") for line in lines[2:]} == set(terms_of("brawl", gamma=1.0))
    for name in catalog.measures("brawl"):
        assert f"`{name}`" in page
