"""Games are made by name, and a wrong name says what was meant."""

from __future__ import annotations

import pytest

from understudy.core.errors import ConfigError
from understudy.games import catalog
from understudy.games.swarm import Swarm


def test_make_gives_the_game_with_its_options() -> None:
    assert catalog.make("swarm", difficulty="easy") == Swarm("easy")
    assert catalog.make("swarm") == Swarm("hard")


@pytest.mark.parametrize(
    ("name", "options", "hint"),
    [
        ("swrm", {}, "'swarm'"),
        ("swarm", {"dificulty": "hard"}, "'difficulty'"),
        ("swarm", {"difficulty": "hrad"}, "'hard'"),
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
    (swarm,) = catalog.describe()
    assert (swarm.name, swarm.version) == ("swarm", 1)
    assert swarm.options["difficulty"][0] == Swarm().difficulty
    for choice in swarm.options["difficulty"]:
        assert catalog.make("swarm", difficulty=choice).name in catalog.names()


def test_bots_are_listed_by_name() -> None:
    bots = set(catalog.bots("swarm"))
    assert bots == {
        "rules", "random", "economy", "aggressive", "defensive", "tech", "all_in"
    }  # fmt: skip
    with pytest.raises(ConfigError, match="no game"):
        catalog.bots("chess")
