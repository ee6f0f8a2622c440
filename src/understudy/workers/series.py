"""Series of frozen matches: two players in some environments, here or shared among workers.

    plan = SeriesPlan(environment="pettingzoo:my_game", environments=16, matches=200, seed=7)
    series = Series(plan, judged=SideSource.of_policy(policy, seed=1), other=SideSource.random(2))
    (matches,) = HereSeries().play([series])

Whatever is drawn follows from the seeds, the environment and how often a side has acted in this
series. So a series comes out the same, bit for bit, wherever its parts are played, and whatever was
played before it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import msgspec
import numpy as np

from understudy.adapters.environments.bots import load_bots
from understudy.adapters.environments.factory import maker
from understudy.adapters.environments.matches import (
    EnvironmentMatches,
    FrozenMatch,
    by_rounds,
    play_matches,
)
from understudy.adapters.environments.sides import (
    PolicySide,
    RandomSide,
    ScriptedBot,
    ScriptedSide,
    SidePlayer,
)
from understudy.adapters.gymnasium.spaces import SpaceTranslator
from understudy.match.live_match import EVALUATION, match_seeds
from understudy.policy.policy import Policy
from understudy.policy.spec import PolicySpec
from understudy.supervise.maths_threads import one_thread


class SeriesPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a series is played, and how many matches it has."""

    environment: str
    options: dict[str, Any] = {}
    features: tuple[str, ...] = ()
    bots: tuple[str, ...] = ()
    """Files and modules with scripted bots."""
    environments: int
    """Side by side."""
    matches: int
    seed: int = 0

    @property
    def each(self) -> int:
        """Matches of one environment."""
        return -(-self.matches // self.environments)

    def with_bots(self, bots: tuple[str, ...]) -> SeriesPlan:
        """The same, with its bots found elsewhere."""
        return msgspec.structs.replace(self, bots=bots)


class SideKind(msgspec.Struct, frozen=True, kw_only=True):
    """A player but for its weights."""

    kind: Literal["random", "bot", "policy"]
    seed: int
    name: str = ""
    """Of a bot."""
    sampled: bool = True
    spec: PolicySpec | None = None
    """Of a policy."""


@dataclass(frozen=True)
class SideSource:
    """How to make a player: a new one for every series, here or in a worker."""

    kind: SideKind
    policy: Policy | None = None

    @classmethod
    def random(cls, seed: int) -> SideSource:
        return cls(SideKind(kind="random", seed=seed))

    @classmethod
    def bot(cls, name: str, seed: int) -> SideSource:
        return cls(SideKind(kind="bot", name=name, seed=seed))

    @classmethod
    def of_policy(cls, policy: Policy, *, seed: int, sampled: bool = True) -> SideSource:
        return cls(SideKind(kind="policy", seed=seed, sampled=sampled, spec=policy.spec), policy)

    def player(
        self, spaces: SpaceTranslator, *, rows: int, bots: Mapping[str, ScriptedBot]
    ) -> SidePlayer:
        """A new player of sides in `rows` rows."""
        kind = self.kind
        if kind.kind == "random":
            return RandomSide(spaces, rows=rows, seed=kind.seed)
        if kind.kind == "bot":
            return ScriptedSide(kind.name, bots[kind.name], spaces, seed=kind.seed)
        assert self.policy is not None
        return PolicySide(self.policy, spaces, rows=rows, seed=kind.seed, sampled=kind.sampled)


@dataclass(frozen=True)
class Series:
    """Frozen matches of a judged player against another."""

    plan: SeriesPlan
    judged: SideSource
    other: SideSource | None
    """None: the judged one plays all sides."""

    def play_part(
        self,
        numbers: Sequence[int],
        *,
        make: Callable[[], Any] | None = None,
        show: Callable[[float], None] = lambda share: None,
    ) -> list[list[FrozenMatch]]:
        """The matches of these environments, by environment."""
        plan = self.plan
        make = make or maker(plan.environment, **plan.options)
        seeds = match_seeds(plan.seed, np.array(numbers), purpose=EVALUATION)
        opened = EnvironmentMatches(make, numbers, total=plan.environments, features=plan.features)
        with contextlib.closing(opened) as environments:
            bots = load_bots(plan.bots)
            sides = [
                one.player(environments.spaces, rows=environments.rows, bots=bots)
                for one in (self.judged, self.other)
                if one is not None
            ]
            return play_matches(
                environments, sides[0], sides[-1], plan.each, seeds=seeds, show=show
            )

    def joined(self, parts: Sequence[Sequence[Sequence[FrozenMatch]]]) -> list[FrozenMatch]:
        """The matches of all environments, whose parts come in the order of their numbers."""
        return by_rounds([some for part in parts for some in part])[: self.plan.matches]


class SeriesPlayers(Protocol):
    """Plays series."""

    def play(
        self, series: Sequence[Series], *, show: Callable[[float], None] = lambda share: None
    ) -> list[list[FrozenMatch]]:
        """The matches of each; `show` hears how much of all is done, 0 to 1."""


class HereSeries:
    """Plays series in this process, one after the other."""

    def __init__(self, make: Callable[[], Any] | None = None) -> None:
        """`make`: makes the environment of all plans, where it is made already."""
        self._make = make

    def play(
        self, series: Sequence[Series], *, show: Callable[[float], None] = lambda share: None
    ) -> list[list[FrozenMatch]]:
        played = []
        for done, one in enumerate(series):

            def shown(share: float, done: int = done) -> None:
                show((done + share) / len(series))

            numbers = range(one.plan.environments)
            with one_thread():
                part = one.play_part(numbers, make=self._make, show=shown)
            played.append(one.joined([part]))
        show(1.0)
        return played
