"""Matches in environments side by side: sides are played by players, or left to the caller.

Every environment is carried on by itself, so that a side that waits for its turn holds up no other
environment; the views of all sides that one player must act on at a time go to it together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from understudy.adapters.environments.parallel import Finished, shared_spaces
from understudy.adapters.environments.sides import SidePlayer, SideView
from understudy.adapters.environments.turns import Turns, turns_of
from understudy.core.arrays import NDArray
from understudy.core.errors import InputError


@dataclass
class _Table:
    """One environment, and what is known of the match in it."""

    number: int
    turns: Turns
    match: int = -1
    players: Sequence[SidePlayer | None] = ()
    acted: set[int] = field(default_factory=set)
    """Sides that have decided in this match."""
    path: Any = None
    """A hash over the actions."""


class SideDecision(NamedTuple):
    """What a side sees where it must decide."""

    obs: NDArray
    """float32 [F]"""
    legal: NDArray
    """bool [options]"""
    first: bool


class EnvironmentMatches:
    """Environments of one kind. `numbers` are theirs among all environments of a run, of which
    there are `total`."""

    def __init__(
        self,
        make: Callable[[], Any],
        numbers: Sequence[int],
        *,
        total: int | None = None,
        features: Sequence[str] = (),
    ) -> None:
        self._tables = [_Table(number, turns_of(make())) for number in numbers]
        first = self._tables[0].turns
        self.agents = first.agents
        self.spaces = shared_spaces(first.env, features)
        self.rows = (total if total is not None else len(numbers)) * len(self.agents)
        """Rows of all environments of the run (`sides`)."""

    def __len__(self) -> int:
        return len(self._tables)

    def number(self, index: int) -> int:
        """The number of an environment among all of the run."""
        return self._tables[index].number

    def match(self, index: int) -> int:
        """The number of the match in an environment, from 0; -1: none began yet."""
        return self._tables[index].match

    def begin(
        self, index: int, players: Sequence[SidePlayer | None], *, seed: int | None = None
    ) -> None:
        """Begin the next match with a player for each side; None: the caller acts for it."""
        table = self._tables[index]
        table.turns.reset(seed)
        table.match += 1
        table.players = players
        table.acted = set()
        table.path = hashlib.blake2b(digest_size=8)

    def over(self, index: int) -> bool:
        return not self._tables[index].turns.acting

    def waits_for(self, index: int, side: int) -> bool:
        """Whether a side must act now."""
        return side in self._tables[index].turns.acting

    def gained(self, index: int, side: int) -> float:
        """The rewards of a side in this match so far."""
        return self._tables[index].turns.gained[side]

    def out(self, index: int, side: int) -> tuple[bool, bool]:
        """Whether the match is over for a side, and whether a time limit cut it off."""
        turns = self._tables[index].turns
        cut = turns.truncated[side]
        return turns.terminated[side] or cut, cut

    def decision(self, index: int, side: int) -> SideDecision:
        """What a side must act on."""
        table = self._tables[index]
        seen, info = table.turns.seen(side)
        legal = self.spaces.legal_of(info, seen)
        if legal is None:
            legal = np.ones(self.spaces.actions.options, np.bool_)
        return SideDecision(self.observed(index, side), legal, side not in table.acted)

    def observed(self, index: int, side: int) -> NDArray:
        """The newest observation of a side, float32 [F]."""
        features = self.spaces.features_of(self._tables[index].turns.seen(side)[0])
        if not np.isfinite(features).all():
            bad = self.spaces.features[int(np.flatnonzero(~np.isfinite(features))[0])]
            raise InputError(f"the environment gave {bad} that is not a finite number")
        return features

    def turn(self, indices: Sequence[int], own: Mapping[int, Any]) -> dict[int, dict[int, Any]]:
        """One turn of each of these environments: all sides that act now do. `own` has the caller's
        actions by environment, for those in which a side of the caller acts. Returns all actions,
        by environment and side."""
        asked: dict[int, tuple[SidePlayer, list[tuple[int, int]]]] = {}
        actions: dict[int, dict[int, Any]] = {index: {} for index in indices}
        for index in indices:
            table = self._tables[index]
            for side in table.turns.acting:
                player = table.players[side]
                if player is None:
                    actions[index][side] = own[index]
                else:
                    asked.setdefault(id(player), (player, []))[1].append((index, side))
        for player, places in asked.values():
            chosen = player.act([self._view(index, side) for index, side in places])
            for (index, side), action in zip(places, chosen, strict=True):
                actions[index][side] = action
        for index in indices:
            table = self._tables[index]
            for side, action in sorted(actions[index].items()):
                table.acted.add(side)
                table.path.update(bytes([side]) + np.asarray(action).tobytes())
            table.turns.send(actions[index])
        for index in indices:
            self._tables[index].turns.receive()
        return actions

    def finished(self, index: int) -> Finished:
        """The match that has just ended in an environment."""
        turns = self._tables[index].turns
        sides = tuple(turns.gained)
        return Finished(float(np.mean(sides)), turns.steps, sides)

    def aborted(self, index: int) -> bool:
        """Whether the match that has just ended has no result."""
        return self._tables[index].turns.aborted

    def path(self, index: int) -> bytes:
        """A hash over all actions of the match so far: other matches have others."""
        digest: bytes = self._tables[index].path.digest()
        return digest

    def picture(self, index: int) -> Any:
        """What the environment draws now."""
        return self._tables[index].turns.picture()

    def close(self) -> None:
        for table in self._tables:
            table.turns.close()

    def _view(self, index: int, side: int) -> SideView:
        table = self._tables[index]
        seen = table.turns.seen(side)[0]
        obs, legal, first = self.decision(index, side)
        row = table.number * len(self.agents) + side
        return SideView(row, table.match, first, obs, legal, seen)


class FrozenMatch(NamedTuple):
    """One match of a series."""

    finished: Finished
    side: int
    """The side of the player that is judged."""
    path: bytes

    @property
    def score(self) -> int:
        """+1, 0 or -1: whether the side has more reward than the best of the others."""
        sides = self.finished.sides
        others = sides[: self.side] + sides[self.side + 1 :]
        return int(np.sign(round(sides[self.side] - max(others), 9))) if others else 0


def play_matches(
    environments: EnvironmentMatches,
    judged: SidePlayer,
    others: SidePlayer,
    each: int,
    *,
    seeds: NDArray,
    show: Callable[[float], None] = lambda share: None,
) -> list[list[FrozenMatch]]:
    """`each` matches in every environment, by environment, of the judged player on one side against
    another on all others; the side changes with every match. `seeds` uint32 [environments] are for
    the first match of each.

    Every environment plays the same number of them, since the first to end are the short ones.
    """
    count, agents = len(environments), len(environments.agents)
    ended: list[list[FrozenMatch]] = [[] for _ in range(count)]

    def side_of(index: int) -> int:
        return (environments.number(index) + len(ended[index])) % agents

    def begin(index: int, seed: int | None) -> None:
        side = side_of(index)
        environments.begin(
            index, [judged if one == side else others for one in range(agents)], seed=seed
        )

    for index, seed in enumerate(seeds.tolist()):
        begin(index, int(seed))
    open_ = list(range(count))
    while open_:
        show(sum(map(len, ended)) / (each * count))
        environments.turn(open_, {})
        for index in [one for one in open_ if environments.over(one)]:
            side = side_of(index)
            if not environments.aborted(index):
                ended[index].append(
                    FrozenMatch(environments.finished(index), side, environments.path(index))
                )
            if len(ended[index]) < each:
                begin(index, None)
        open_ = [index for index in open_ if len(ended[index]) < each]
    show(1.0)
    return ended


def by_rounds(ended: Sequence[Sequence[FrozenMatch]]) -> list[FrozenMatch]:
    """The first match of every environment, then the second of every one."""
    return [match for together in zip(*ended, strict=True) for match in together]
