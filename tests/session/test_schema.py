"""Games of one's own: what a file may declare, and what is said of a wrong one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from understudy.core import toml
from understudy.core.errors import ConfigError
from understudy.core.spaces import Discrete, MultiDiscrete
from understudy.session import schema
from understudy.session.protocol import Error, Observation
from understudy.session.translation import Sight, Step, TranslatedObservation

from .sessions import ACTIONS, FEATURES, game

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "my_game.toml"
GAME: dict[str, Any] = {
    "name": "skirmish",
    "features": FEATURES,
    "actions": ACTIONS,
    "fallback": "retreat",
}
PARTS = {"move": ["left", "right", "stay"], "weapon": ["none", "bow"]}


def sight(*numbers: float, legal: list[bool] | None = None) -> Sight:
    mask = None if legal is None else np.array(legal)
    return Sight(np.array(numbers, np.float32), mask)


def read(translator: schema.SchemaGame, **fields: Any) -> TranslatedObservation | Error:
    (reading,) = translator.read([Observation(**{"territory": "t", **fields})])
    return reading


def test_the_shipped_example_is_a_whole_game() -> None:
    declared = schema.load(EXAMPLE)
    assert declared.name == "skirmish"
    assert declared.actions == Discrete(("attack", "retreat", "gather"))
    assert declared.rewards_by_observation
    before, after = sight(100, 4, 1, 10), sight(99, 2, 1, 13)
    (worth,) = declared.rewards([Step(before, (0,), True, after)])
    assert worth == pytest.approx(0.3 * 2 - 0.5 * 1 + 0.1 * 3)


@pytest.mark.parametrize(
    ("of", "worth"), [("change", -3.0), ("rise", 0.0), ("drop", 3.0), ("value", 4.0)]
)
def test_what_a_term_counts(of: str, worth: float) -> None:
    declared = game(rewards=[{"name": "r", "feature": "enemies", "of": of}])
    step = Step(sight(0, 7, 0), (0,), True, sight(0, 4, 0))
    assert declared.rewards([step, step]) == [worth, worth]


def test_without_terms_the_client_says_what_a_decision_was_worth() -> None:
    assert not game().rewards_by_observation


def test_parts_are_chosen_together_and_told_by_name() -> None:
    declared = game(actions=PARTS, fallback={"move": "stay", "weapon": "none"})
    assert declared.actions == MultiDiscrete((3, 2))
    assert declared.label((1, 1)) == {"move": "right", "weapon": "bow"}
    assert declared.fallback([sight(0, 0, 0)]).tolist() == [[2, 0]]
    assert declared.choices["parts"]["move"] == ("left", "right", "stay")


def test_the_fallback_gives_way_to_what_is_legal() -> None:
    sights = [sight(0, 0, 0), sight(0, 0, 0, legal=[False, False, True])]
    assert game().fallback(sights).tolist() == [[1], [2]]


def test_the_rules_are_what_the_client_proposes_and_else_the_fallback() -> None:
    declared = game()
    proposing = read(declared, features=[1.0, 2.0, 3.0], proposed="gather")
    silent = read(declared, features=[1.0, 2.0, 3.0])
    assert isinstance(proposing, TranslatedObservation)
    assert isinstance(silent, TranslatedObservation)
    assert proposing.sight.proposed == (2,)
    assert silent.sight.proposed is None
    assert declared.fallback([proposing.sight, silent.sight]).tolist() == [[2], [1]]


def test_an_action_of_several_parts_is_proposed_by_the_names_of_its_parts() -> None:
    declared = game(actions=PARTS, fallback={"move": "stay", "weapon": "none"})
    mask = [False, True, True, True, True]
    reading = read(
        declared, features=[0.0] * 3, legal=mask, proposed={"weapon": "bow", "move": "right"}
    )
    assert isinstance(reading, TranslatedObservation)
    assert reading.sight.proposed == (1, 1)
    assert declared.fallback([reading.sight]).tolist() == [[1, 1]]


@pytest.mark.parametrize(
    ("parts", "proposed", "code", "field", "words"),
    [
        (False, "flee", "bad_message", "proposed", "expected one of attack, retreat, gather"),
        (False, {"action": "attack"}, "bad_message", "proposed", "the name of an action"),
        (False, "attack", "illegal", "proposed", "'attack' is not legal here"),
        (True, "left", "bad_message", "proposed", "a name each for move, weapon"),
        (True, {"move": "right"}, "bad_message", "proposed", "a name each for move, weapon"),
        (True, {"move": "up", "weapon": "bow"}, "bad_message", "proposed.move", "no 'up'"),
        (True, {"move": "left", "weapon": "bow"}, "illegal", "proposed.move", "not legal"),
    ],
)
def test_a_proposed_action_that_does_not_fit_is_refused_with_its_field(
    parts: bool, proposed: Any, code: str, field: str, words: str
) -> None:
    declared = game(actions=PARTS, fallback={"move": "stay", "weapon": "none"}) if parts else game()
    mask = [False] + [True] * (declared.actions.options - 1)
    error = read(declared, features=[0.0] * 3, legal=mask, proposed=proposed)
    assert isinstance(error, Error)
    assert (error.code, error.field) == (code, field)
    assert words in error.message


def test_a_long_name_of_a_proposed_action_is_not_quoted_whole() -> None:
    error = read(game(), features=[0.0] * 3, proposed="x" * 10_000)
    assert isinstance(error, Error)
    assert len(error.message) < 200


def test_features_come_in_order_or_by_name() -> None:
    declared = game()
    listed = read(declared, features=[1.0, 2.0, 3.0])
    named = read(declared, features={"gold": 3.0, "health": 1.0, "enemies": 2.0})
    assert isinstance(listed, TranslatedObservation)
    assert isinstance(named, TranslatedObservation)
    assert listed.sight.features.dtype == np.float32
    assert listed.sight.features.tolist() == named.sight.features.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("fields", "code", "field", "words"),
    [
        ({"features": [1.0]}, "wrong_features", "features", "expected 3 numbers, got 1"),
        (
            {"features": {"gold": 1.0}},
            "wrong_features",
            "features.health",
            "missing 2: health, enemies",
        ),
        (
            {"features": {"gold": 1.0, "health": 1.0, "enemies": 1.0, "Gold": 1.0}},
            "wrong_features",
            "features.Gold",
            "Did you mean 'gold'?",
        ),
        ({"features": [0.0, 1e39, 0.0]}, "bad_number", "features[1]", "32-bit"),
        (
            {"features": {"gold": -1e39, "health": 1.0, "enemies": 1.0}},
            "bad_number",
            "features.gold",
            "32-bit",
        ),
        ({"features": [0.0] * 3, "legal": [True]}, "bad_message", "legal", "expected 3 booleans"),
        ({"features": [0.0] * 3, "legal": [False] * 3}, "illegal", "legal", "at least one"),
    ],
)
def test_what_does_not_fit_is_named(
    fields: dict[str, Any], code: str, field: str, words: str
) -> None:
    got = read(game(), **fields)
    assert isinstance(got, Error)
    assert (got.code, got.field) == (code, field)
    assert words in got.message


def test_each_part_needs_something_legal() -> None:
    declared = game(actions=PARTS, fallback={"move": "stay", "weapon": "none"})
    got = read(declared, features=[0.0] * 3, legal=[True, True, True, False, False])
    assert isinstance(got, Error)
    assert "options 3 to 4" in got.message


def test_a_bad_neighbour_changes_nothing() -> None:
    declared = game()
    messages = [
        Observation(territory="a", features=[1.0, 2.0, 3.0]),
        Observation(territory="b", features=[1e39, 0.0, 0.0]),
        Observation(territory="c", features=[4.0, 5.0, 6.0]),
    ]
    first, wrong, last = declared.read(messages)
    assert isinstance(wrong, Error)
    assert isinstance(first, TranslatedObservation)
    assert isinstance(last, TranslatedObservation)
    assert (first.territory, last.sight.features.tolist()) == ("a", [4, 5, 6])


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "game: is missing"),
        ({"game": {**GAME, "fetures": []}}, "unknown key game.fetures. Did you mean 'features'?"),
        ({"game": GAME, "gate": "my_module:Gate"}, "unknown key gate"),
        (
            {"game": GAME, "promotion": {"scores": [0, 1]}},
            "unknown key promotion.scores. Did you mean 'score'?",
        ),
        ({"game": GAME, "promotion": {"score": [0.0]}}, "promotion.score: Expected `array`"),
        (
            {"game": GAME, "promotion": {"score": [1.0, 0.5]}},
            "promotion.score: expected two finite numbers, the lower one first, got [1, 0.5]",
        ),
        ({"game": GAME, "promotion": {"score": [0.0, math.inf]}}, "promotion.score: expected two"),
        ({"game": {**GAME, "gate": "my_module:Gate"}}, "unknown key game.gate"),
        ({"game": "skirmish"}, "game: expected a table"),
        ({"game": {**GAME, "name": "../etc"}}, "game.name: expected 1 to 64"),
        ({"game": {**GAME, "name": 3}}, "game.name: Expected `str`"),
        ({"game": {**GAME, "features": []}}, "game.features: expected 1 to"),
        ({"game": {**GAME, "features": ["a", "a"]}}, "game.features: the name 'a' appears twice"),
        ({"game": {**GAME, "actions": ["only"]}}, "game.actions: expected 2 to"),
        ({"game": {**GAME, "actions": {}}}, "game.actions: expected names"),
        ({"game": {**GAME, "actions": {"move": ["left"]}}}, "game.actions.move: expected 2 to"),
        ({"game": {**GAME, "fallback": "retrea"}}, "game.fallback: there is no 'retrea'. Did you"),
        ({"game": {**GAME, "actions": PARTS}}, "game.fallback: expected a table with one name"),
        (
            {"game": GAME, "rewards": [{"name": "r", "feature": "helth"}]},
            "rewards[0].feature: there is no 'helth'. Did you mean 'health'?",
        ),
        (
            {"game": GAME, "rewards": [{"name": "r", "feature": "gold", "of": "code"}]},
            "rewards[0].of: Invalid",
        ),
        (
            {"game": GAME, "rewards": [{"name": "r", "feature": "gold", "wait": 1.0}]},
            "unknown key rewards[0].wait. Did you mean 'weight'?",
        ),
        (
            {"game": GAME, "rewards": [{"name": "r", "feature": "gold", "weight": float("inf")}]},
            "rewards[0].weight: expected a finite number",
        ),
        (  # as a 32-bit float it is infinite, and so would be every reward
            {"game": GAME, "rewards": [{"name": "r", "feature": "gold", "weight": 1e39}]},
            "rewards[0].weight: expected a finite number of 32 bits (at most 3.4e38), got 1e+39",
        ),
        ({"game": GAME, "rewards": ["gold"]}, "rewards: expected a table"),
    ],
)
def test_a_wrong_schema_names_file_and_key(
    tmp_path: Path, table: dict[str, Any], words: str
) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(toml.dumps(table) if table else "", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        schema.load(path)
    assert str(caught.value).startswith(str(path))
    assert words in str(caught.value)


def test_a_file_that_is_not_there_or_not_toml(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        schema.load(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("[game", encoding="utf-8")
    with pytest.raises(ConfigError, match="not valid TOML"):
        schema.load(tmp_path / "bad.toml")


def test_a_schema_may_declare_the_scale_of_its_scores() -> None:
    assert schema.from_table({"game": GAME}).score is None
    declared = {"game": GAME, "promotion": {"score": [-0.5, 1]}}
    assert schema.from_table(declared).score == (-0.5, 1.0)
