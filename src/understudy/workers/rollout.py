"""Rollouts in environments with the NumPy policy, which also plays live: segments as plain arrays.

`SharedRollout`: the policy plays every agent of parallel environments, and every agent is a column.
`SideRollout`: the policy plays one side of each environment, another one in the next match, and
opponents play the others; a row of a column is a decision of the policy, whatever turns the others
take before its next one. Neither imports JAX, so that worker processes can play them.

A time limit is not an end: the last reward of a truncated match is increased by the policy's value
of the last observation.

The uniform numbers that choose actions may be kept for several steps (`train.noise_steps`). Each
is still uniform, so every action has the probability that the policy gives it; only successive
draws are correlated. A policy with high entropy then moves one way for a while: of 4,000 matches of
MountainCar under uniform actions none reaches the goal with a draw each step, and 9 % do with one
in 16 steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from understudy.adapters.environments.matches import EnvironmentMatches
from understudy.adapters.environments.parallel import Environments, Finished
from understudy.adapters.environments.sides import (
    RANDOM,
    PolicyRows,
    PolicySide,
    RandomSide,
    RowChance,
    ScriptedBot,
    ScriptedSide,
    SidePlayer,
)
from understudy.core.arrays import NDArray
from understudy.core.errors import InputError
from understudy.core.opponents import SELF
from understudy.core.ops import Tree
from understudy.policy.policy import Policy

_POLICY, _NOISE, _MEETING = 3, 4, 5
"""What rows draw for: actions, whether to draw anew, opponents."""


class OpponentOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Who is met in matches that begin from now on."""

    names: tuple[str, ...]
    """Scripted opponents; `self`, where it is met at all, is the last."""
    bounds: tuple[tuple[float, ...], ...]
    """[groups][names]: opponent i is met where a draw from [0, 1) lies below bound i, and not below
    the one before."""
    met: tuple[str, ...] = ()
    """[groups]: the snapshot that `self` is."""
    kinds: tuple[int, ...] = ()
    """[names]: what the network learns to name each opponent by; -1: nothing."""


class ColumnMatch(NamedTuple):
    """A match that ended."""

    number: int
    """Of its environment, among all of the run."""
    finished: Finished
    side: int = 0
    """The side that the policy played, where it played one."""
    opponent: str = ""


class Played(NamedTuple):
    """A segment of T steps in B columns."""

    arrays: dict[str, NDArray]
    """The fields of `learner.maths.segments.Segments` but its memory."""
    memory: Tree
    """[B, ...] at the beginning."""
    finished: list[ColumnMatch]
    started: list[tuple[int, str]]
    """The environment and the opponent of each match that began; empty where all share a policy."""
    lag: NDArray | None = None
    """int [B]: updates between the weights that played a column and those that learn from it; None:
    there are none."""


class _Draws:
    """The uniform numbers of the policy's rows."""

    def __init__(self, rows: int, seed: int, *, noise_steps: int) -> None:
        self._actions = RowChance(rows, seed, purpose=_POLICY)
        self._renewals = RowChance(rows, seed, purpose=_NOISE)
        self._noise_steps = noise_steps
        self._kept: NDArray | None = None

    def draw(self, rows: NDArray, first: NDArray, parts: int) -> NDArray:
        """Uniform numbers [B, parts]; a column draws anew once in `noise_steps` steps, by chance,
        and where a match begins."""
        fresh = self._actions.draw(rows, parts)
        if self._noise_steps > 1:
            renewed = self._renewals.draw(rows, 1)[:, 0] * self._noise_steps < 1.0
            if self._kept is not None:
                fresh = np.where((first | renewed)[:, None], fresh, self._kept)
        self._kept = fresh
        return fresh


class _Moment(NamedTuple):
    """What the policy decides on in every column."""

    obs: NDArray
    """float32 [B, F]"""
    legal: NDArray
    """bool [B, options]"""
    first: NDArray
    """bool [B]: a match begins"""


class _Consequences(NamedTuple):
    """What became of one decision in every column."""

    arrays: dict[str, NDArray]
    """Fields of the segment, [B, ...]: at least `rewards`, `ongoing` and `valid`."""
    cut: NDArray
    """bool [B]: a time limit ended the match"""
    last_obs: NDArray
    """float32 [B, F]: what it ended with, where it was cut"""


class EnvironmentRollout(ABC):
    """Plays segments; a column of them is a row of the policy."""

    def __init__(self, columns: NDArray, rows: int, *, seed: int, noise_steps: int) -> None:
        """`columns`, int [B], are the rows that are played here, of all `rows` of the run."""
        self._columns = columns
        self._total_rows = rows
        self._draws = _Draws(rows, seed, noise_steps=noise_steps)
        self._policy: PolicyRows | None = None

    def play(
        self,
        policy: Policy,
        steps: int,
        *,
        gamma: float,
        order: OpponentOrder | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Played | None:
        """The next segment, of so many steps; None if `stop` ended it early. The memory of the
        policy goes on from the segment before."""
        at, parts, scale = self._columns, len(policy.spec.actions.parts), policy.weights.value_scale
        self._prepare(policy, order)
        rows = self._policy = _taken_over(self._policy, policy, self._total_rows)
        began, recorded = rows.memory(at), []
        for _ in range(steps):
            if stop():
                return None
            now = self._moment()
            uniforms = self._draws.draw(at, now.first, parts)
            choice = rows.act(at, now.obs, now.first, legal=now.legal, uniforms=uniforms)
            after = self._carry_on(choice.actions)
            if after.cut.any():
                cut = np.flatnonzero(after.cut)
                goes_on = np.zeros(len(cut), np.bool_)
                beyond = rows.act(at[cut], after.last_obs[cut], goes_on, keep=False).values
                after.arrays["rewards"][cut] += np.float32(gamma) * beyond
            recorded.append(
                {
                    **now._asdict(),
                    "actions": choice.actions,
                    "log_probs": choice.log_probs,
                    "values": choice.values / scale,
                    **after.arrays,
                }
            )
        now = self._moment()
        ahead = rows.act(at, now.obs, now.first, legal=now.legal, keep=False).values
        arrays = _stacked(recorded, ahead / scale, next_obs=now.obs, next_first=now.first)
        return Played(arrays, began, *self._news())

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def _prepare(self, policy: Policy, order: OpponentOrder | None) -> None:
        """Before a segment of this policy; `self._policy` is None before the first one."""

    @abstractmethod
    def _moment(self) -> _Moment:
        """What the policy decides on next."""

    @abstractmethod
    def _carry_on(self, actions: NDArray) -> _Consequences:
        """Act, actions [B, parts], and go on to the next decision in every column."""

    @abstractmethod
    def _news(self) -> tuple[list[ColumnMatch], list[tuple[int, str]]]:
        """The matches that ended and those that began, as `Played` has them, since the last
        time."""


class SharedRollout(EnvironmentRollout):
    """The policy plays every agent; `first` is the number of the first environment among all
    `total` of the run."""

    def __init__(
        self,
        environments: Environments,
        *,
        seed: int,
        noise_steps: int = 1,
        first: int = 0,
        total: int | None = None,
    ) -> None:
        agents, columns = len(environments.agents), environments.columns
        super().__init__(
            np.arange(columns) + first * agents,
            columns if total is None else total * agents,
            seed=seed,
            noise_steps=noise_steps,
        )
        self._environments = environments
        self._first_number = first
        self._alive = np.zeros(columns, np.bool_)

    def close(self) -> None:
        self._environments.close()

    def _prepare(self, policy: Policy, order: OpponentOrder | None) -> None:
        """Nothing: there are no opponents."""

    def _moment(self) -> _Moment:
        now = self._environments.moment()
        self._alive = now.alive
        return _Moment(now.obs, now.legal, now.first)

    def _carry_on(self, actions: NDArray) -> _Consequences:
        after = self._environments.step(actions)
        arrays = {
            "rewards": after.rewards,
            "ongoing": (self._alive & ~after.ended).astype(np.float32),
            "valid": self._alive.astype(np.float32),
        }
        return _Consequences(arrays, after.cut, after.last_obs)

    def _news(self) -> tuple[list[ColumnMatch], list[tuple[int, str]]]:
        finished, self._environments.finished = self._environments.finished, []
        return [ColumnMatch(self._first_number + index, match) for index, match in finished], []


class SideRollout(EnvironmentRollout):
    """The policy plays one side of each environment.

    Without orders for opponents the same policy plays the other sides: that is how agents that act
    one after the other share a policy.
    """

    def __init__(
        self,
        environments: EnvironmentMatches,
        *,
        seed: int,
        seeds: Sequence[int],
        bots: Mapping[str, ScriptedBot] | None = None,
        noise_steps: int = 1,
    ) -> None:
        """`seeds` are those of the first matches; later ones follow from them."""
        self._agents = len(environments.agents)
        self._total = environments.rows // self._agents
        self._numbers = np.array([environments.number(i) for i in range(len(environments))])
        super().__init__(self._numbers, self._total, seed=seed, noise_steps=noise_steps)
        self._environments = environments
        self._seed = seed
        self._seeds = list(seeds)
        self._meeting = RowChance(self._total, seed, purpose=_MEETING)
        self._same: PolicySide | None = None
        spaces, rows = environments.spaces, environments.rows
        self._players: dict[str, SidePlayer] = {
            RANDOM: RandomSide(spaces, rows=rows, seed=seed),
            **{n: ScriptedSide(n, bot, spaces, seed=seed) for n, bot in (bots or {}).items()},
        }
        self._scripted = tuple(self._players)
        self._order: OpponentOrder | None = None
        self._side = np.zeros(len(environments), np.int64)
        self._opponent = [""] * len(environments)
        self._kind = np.full(len(environments), -1, np.int32)
        self._finished: list[ColumnMatch] = []
        self._started: list[tuple[int, str]] = []

    def add_snapshot(self, name: str, policy: Policy) -> None:
        """Make an opponent known by its name."""
        self._players[name] = PolicySide(
            policy, self._environments.spaces, rows=self._environments.rows, seed=self._seed
        )

    def close(self) -> None:
        self._environments.close()

    def _prepare(self, policy: Policy, order: OpponentOrder | None) -> None:
        environments = self._environments
        self._order = order
        if order is None:
            self._same = self._same or PolicySide(
                policy, environments.spaces, rows=environments.rows, seed=self._seed
            )
            self._same.replace(policy)
        if self._policy is None:
            self._begin_all()

    def _moment(self) -> _Moment:
        found = [
            self._environments.decision(index, int(side)) for index, side in enumerate(self._side)
        ]
        obs, legal, first = zip(*found, strict=True)
        return _Moment(np.stack(obs), np.stack(legal), np.array(first))

    def _carry_on(self, actions: NDArray) -> _Consequences:
        spaces, kinds = self._environments.spaces, self._kind.copy()
        row = _Row.of(self, actions)
        own = {index: spaces.action_of(action) for index, action in enumerate(actions)}
        self._reach(list(range(len(own))), own, row)
        arrays = {
            "rewards": row.rewards,
            "ongoing": (~row.ended).astype(np.float32),
            "valid": np.ones(len(actions), np.float32),
            "opponent_actions": row.opponent_actions,
            "foretold": row.foretold,
            "opponent_kinds": kinds,
        }
        return _Consequences(arrays, row.cut, row.last_obs)

    def _news(self) -> tuple[list[ColumnMatch], list[tuple[int, str]]]:
        finished, self._finished = self._finished, []
        started, self._started = self._started, []
        self._forget()
        return finished, started

    def _begin_all(self) -> None:
        count = len(self._environments)
        for index in range(count):
            self._begin(index, self._seeds[index])
        self._reach([i for i in range(count) if not self._is_next(i)], {}, _Row.of(self, None))

    def _begin(self, index: int, seed: int | None = None) -> None:
        """Begin a match, on the next side, against the next opponent."""
        environments, number = self._environments, int(self._numbers[index])
        side = (number + environments.match(index) + 1) % self._agents
        name, kind = self._draw_opponent(number)
        opponent = self._players[name] if name else self._same
        environments.begin(
            index, [None if one == side else opponent for one in range(self._agents)], seed=seed
        )
        if environments.over(index):
            raise InputError("the environment began a match in which no agent acts")
        self._side[index], self._opponent[index], self._kind[index] = side, name, kind
        self._started.append((number, name))

    def _draw_opponent(self, number: int) -> tuple[str, int]:
        order = self._order
        if order is None:
            return "", -1
        draw = float(self._meeting.draw(np.array([number]), 1)[0, 0])
        group = number * len(order.bounds) // self._total
        bounds = order.bounds[group]
        place = min(int(np.searchsorted(bounds, draw, side="right")), len(bounds) - 1)
        name = order.names[place]
        return order.met[group] if name == SELF else name, order.kinds[place]

    def _is_next(self, index: int) -> bool:
        """Whether the policy must decide."""
        return self._environments.waits_for(index, int(self._side[index]))

    def _reach(self, todo: list[int], own: Mapping[int, Any], row: _Row) -> None:
        """Turn after turn until the policy must decide in every environment."""
        environments = self._environments
        while todo:
            taken = environments.turn(todo, own)
            own = {}
            waiting = []
            for index in todo:
                side = int(self._side[index])
                if not row.settled[index]:
                    self._note(row, index, side, taken[index])
                if environments.over(index):
                    self._finish(index, side)
                    self._begin(index)
                if not self._is_next(index):
                    waiting.append(index)
            todo = waiting

    def _finish(self, index: int, side: int) -> None:
        """Note a match that is over; one without a result is not counted."""
        environments = self._environments
        if not environments.aborted(index):
            number, finished = int(self._numbers[index]), environments.finished(index)
            self._finished.append(ColumnMatch(number, finished, side, self._opponent[index]))

    def _note(self, row: _Row, index: int, side: int, taken: Mapping[int, Any]) -> None:
        """What a turn of an environment means for the policy's last decision in it."""
        environments = self._environments
        others = [action for one, action in taken.items() if one != side]
        if others and not row.foretold[index]:
            parts = environments.spaces.parts_of(others[0])
            if parts is not None:
                row.opponent_actions[index], row.foretold[index] = parts, 1.0
        ended, cut = environments.out(index, side)
        if ended or environments.over(index) or environments.waits_for(index, side):
            row.settled[index] = True
            row.rewards[index] = environments.gained(index, side) - row.before[index]
            row.ended[index], row.cut[index] = ended or environments.over(index), cut
            if cut:
                row.last_obs[index] = environments.observed(index, side)

    def _forget(self) -> None:
        """Drop snapshots that no match is against and that no order names."""
        named = {*self._opponent, *(self._order.met if self._order else ()), *self._scripted}
        for name in [name for name in self._players if name not in named]:
            del self._players[name]


class _Row(NamedTuple):
    """What became of one decision in every column."""

    before: NDArray
    """float64 [B]: rewards of the match until then"""
    settled: NDArray
    """bool [B]: all below is known"""
    rewards: NDArray
    ended: NDArray
    cut: NDArray
    last_obs: NDArray
    opponent_actions: NDArray
    foretold: NDArray

    @classmethod
    def of(cls, rollout: SideRollout, actions: NDArray | None) -> _Row:
        """Of actions [B, parts]; None: there was no decision."""
        environments = rollout._environments
        count = len(environments)
        sides = rollout._side
        shape = (
            (count, len(environments.spaces.actions.parts)) if actions is None else actions.shape
        )
        return cls(
            before=np.array([environments.gained(i, int(side)) for i, side in enumerate(sides)]),
            settled=np.full(count, actions is None),
            rewards=np.zeros(count, np.float32),
            ended=np.zeros(count, np.bool_),
            cut=np.zeros(count, np.bool_),
            last_obs=np.zeros((count, len(environments.spaces.features)), np.float32),
            opponent_actions=np.zeros(shape, np.int32 if actions is None else actions.dtype),
            foretold=np.zeros(count, np.float32),
        )


def _taken_over(rows: PolicyRows | None, policy: Policy, count: int) -> PolicyRows:
    """The rows of a policy that goes on with the memory of the one before."""
    if rows is None:
        return PolicyRows(policy, count)
    rows.policy = policy
    return rows


def _stacked(
    recorded: list[dict[str, NDArray]],
    bootstrap: NDArray,
    *,
    next_obs: NDArray,
    next_first: NDArray,
) -> dict[str, NDArray]:
    arrays: dict[str, NDArray] = {
        key: np.stack([row[key] for row in recorded]) for key in recorded[0]
    }
    arrays.setdefault("opponent_actions", np.zeros_like(arrays["actions"]))
    arrays.setdefault("foretold", np.zeros_like(arrays["valid"]))
    arrays.setdefault("opponent_kinds", np.full(arrays["valid"].shape, -1, np.int32))
    return {
        **arrays,
        "bootstrap": np.asarray(bootstrap, np.float32),
        "next_obs": next_obs.copy(),
        "next_first": next_first.copy(),
    }
