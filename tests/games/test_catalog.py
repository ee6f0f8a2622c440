"""Games are made by name, and a wrong name says what was meant."""

from __future__ import annotations

import pytest

from understudy.core.errors import ConfigError
from understudy.games import catalog
from understudy.games.brawl import Brawl
from understudy.games.delay import Delayed
from understudy.games.swarm import Swarm
from understudy.policy.presets import KINDS


def test_make_gives_the_game_with_its_options() -> None:
    assert catalog.make("swarm", difficulty="easy") == Swarm("easy")
    assert catalog.make("swarm") == Swarm("hard")
    assert catalog.make("brawl") == catalog.make("brawl", actions="chords", delay="0") == Brawl()
    assert catalog.make("brawl", actions="keys", delay="4") == Delayed(Brawl("keys"), 4)
    assert catalog.make("brawl", delay=4) == catalog.make("brawl", delay="4")
    assert list(catalog.bots("brawl", delay=4)) == list(catalog.bots("brawl"))
    assert catalog.defaults("brawl") == {"actions": "chords", "delay": "0"}


@pytest.mark.parametrize(
    ("name", "options", "hint"),
    [
        ("swrm", {}, "'swarm'"),
        ("swarm", {"dificulty": "hard"}, "'difficulty'"),
        ("swarm", {"difficulty": "hrad"}, "'hard'"),
        ("brwal", {}, "'brawl'"),
        ("brawl", {"actions": "chord"}, "'chords'"),
        ("brawl", {"dealy": "3"}, "'delay'"),
    ],
)
def test_a_wrong_name_is_an_error_that_suggests_the_nearest(
    name: str, options: dict[str, str], hint: str
) -> None:
    with pytest.raises(ConfigError, match=f"Did you mean {hint}"):
        catalog.make(name, **options)


def test_a_wrong_difficulty_is_caught_without_the_catalog_too() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'medium'"):
        Swarm("medum")


def test_describe_lists_every_choice_with_the_default_first() -> None:
    described = {game.name: game for game in catalog.describe()}
    assert tuple(described) == catalog.names() == ("swarm", "brawl", "territory")
    assert described["swarm"].options["difficulty"][0] == Swarm().difficulty
    assert described["brawl"].options["actions"][0] == Brawl().controls
    for name, game in described.items():
        defaults = {option: choices[0] for option, choices in game.options.items()}
        assert catalog.make(name, **defaults) == catalog.make(name)
        for option, choices in game.options.items():
            for choice in choices:
                made = catalog.make(name, **{option: choice})
                assert (made.name, made.version) == (name, game.version)


def test_bots_are_listed_by_name() -> None:
    bots = set(catalog.bots("swarm"))
    assert bots == {
        "rules", "random", "economy", "aggressive", "defensive", "tech", "all_in"
    }  # fmt: skip
    assert list(catalog.bots("brawl")) == [
        "constant", "random", "based", "aggressive", "defensive", "kiting", "clockwork"
    ]  # fmt: skip
    assert list(catalog.bots("territory")) == ["queen", "wary", "random", "nothing"]
    with pytest.raises(ConfigError, match="no game"):
        catalog.bots("chess")
    with pytest.raises(ConfigError, match="Did you mean 'keys'"):
        catalog.bots("brawl", actions="kyes")


def test_tables_have_columns_for_what_a_game_measures() -> None:
    for name in catalog.names():
        for column in catalog.measure_columns(name):
            assert set(column.ratio or (column.name,)) <= set(catalog.measures(name)), column
    names = [column.name for column in catalog.measure_columns()]
    assert names == ["damage_dealt", "damage_taken", "damage_ratio", "knockouts", "falls"]
    assert catalog.measure_columns("swarm") == ()


def test_every_built_in_game_can_be_drawn() -> None:
    assert catalog.drawn() == catalog.names()


def test_presets_have_a_kind_for_every_bot_and_for_snapshots() -> None:
    assert max(len(catalog.bots(name)) for name in catalog.names()) < KINDS
