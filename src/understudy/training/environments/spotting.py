"""What an environment is: its agents and spaces, and whether a league can be played in it.

Zero-sum is what matches of random players were: two agents, whose rewards add up to 0 in every
match. No environment declares it, so a person may (`train.zero_sum = "declared"`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from understudy.adapters.environments.bots import load_bots
from understudy.adapters.environments.matches import EnvironmentMatches
from understudy.adapters.environments.parallel import Finished, shared_spaces
from understudy.adapters.environments.sides import RandomSide
from understudy.adapters.environments.turns import is_aec
from understudy.core.errors import ConfigError
from understudy.core.spaces import ActionSpace
from understudy.training.environments.league import stages_of
from understudy.training.environments.session import EnvironmentSession, zero_sum

_MATCHES, _TURNS = 4, 2_000
"""Matches of random players that are looked at, and turns of them at most."""


class EnvironmentFacts(NamedTuple):
    """What is known of an environment before the first match."""

    agents: tuple[str, ...]
    features: tuple[str, ...]
    actions: ActionSpace
    aec: bool
    """Whether agents act one after the other."""


def facts_of(make: Callable[[], Any], features: Sequence[str] = ()) -> EnvironmentFacts:
    """Make one environment and look at it; `features` are those of the run, where there is one."""
    env = make()
    with contextlib.closing(env):
        spaces = shared_spaces(env, features)
        return EnvironmentFacts(
            tuple(env.possible_agents), spaces.features, spaces.actions, is_aec(env)
        )


def check_league(
    session: EnvironmentSession, make: Callable[[], Any], facts: EnvironmentFacts
) -> None:
    """An error where no league can be played: not two agents, not zero-sum, unknown opponents."""
    if len(facts.agents) != 2:
        raise ConfigError(
            f"--opponents: a league needs matches of two sides; {session.environment} has "
            f"{len(facts.agents)} ({', '.join(facts.agents)}); leave --opponents, --bots and the "
            "curriculum out"
        )
    stages_of(session.config, tuple(load_bots(session.bots)))
    if session.config.train.zero_sum == "detect":
        odd = [one for one in random_matches(make) if not zero_sum([one])]
        if odd:
            raise not_zero_sum(session.environment, odd[0])


def not_zero_sum(environment: str, match: Finished) -> ConfigError:
    """The error for a match whose rewards do not add up to 0."""
    gained = " and ".join(f"{one:g}" for one in match.sides)
    return ConfigError(
        f"--opponents: a league needs a zero-sum game, and a match of {environment} ended with "
        f"rewards of {gained}; leave --opponents, --bots and the curriculum out, or, if more "
        "reward than the other side means a win here, say --set train.zero_sum=declared"
    )


def random_matches(make: Callable[[], Any], *, matches: int = _MATCHES) -> list[Finished]:
    """Some matches of random players, or as many as end within a number of turns."""
    found: list[Finished] = []
    with contextlib.closing(EnvironmentMatches(make, [0])) as environments:
        player = RandomSide(environments.spaces, rows=environments.rows, seed=0)
        players = [player] * len(environments.agents)
        environments.begin(0, players, seed=0)
        for _ in range(_TURNS):
            environments.turn([0], {})
            if environments.over(0):
                found.append(environments.finished(0))
                if len(found) == matches:
                    break
                environments.begin(0, players)
    return found
