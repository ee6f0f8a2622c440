"""The lookahead gate (`--gate rollout`): plays a few ticks ahead, with the action and without.

It uses the game's own rules.

What the policy saw does not say everything, so a few worlds that fit it are imagined and the means
are taken. An action is sent if it gains more than the threshold over doing nothing; what is
*expected* is the reward of the decision itself, the one that the game will tell, so that the two
can be compared. The same inputs give the same verdict, unless time runs out: then it is WAIT, and
nothing is expected.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from understudy.core import chance
from understudy.core.arrays import NDArray
from understudy.core.clock import Clock, SystemClock
from understudy.core.ops import NUMPY, Array, Ops, mapped
from understudy.games.base import Game, State
from understudy.gates.decision import NOTHING_TO_BLOCK, Verdict

AT_ONCE = 4
"""Decisions that are simulated together. What is judged before time runs out stays judged, so it is
as few as make sense: in territory one alone takes 3 ms, four together 4 ms, eight 8 ms."""

Imagine: TypeAlias = Callable[[Ops, Array, Array], State]
"""`imagine(ops, features, seeds)`: states of a game that fit what a side sees, features float32
[F, B]; what they leave open is drawn from seeds uint32 [B]."""


class LookaheadGate:
    """A gate for any game whose states can be imagined.

    `nothing` is the action int [parts] that leaves the game alone, `ticks` how far it looks ahead,
    `worlds` how many it imagines for each decision, `gamma` what a reward is worth a tick later.
    """

    name = "rollout"

    def __init__(
        self,
        game: Game,
        imagine: Imagine,
        *,
        threshold: float,
        budget_ms: float,
        nothing: tuple[int, ...] = (0,),
        ticks: int = 2,
        worlds: int = 4,
        gamma: float = 0.9,
        clock: Clock | None = None,
    ) -> None:
        self._game = game
        self._imagine = imagine
        self._threshold = threshold
        self._budget_ms = budget_ms
        self._nothing = np.array(nothing, np.int32)
        self._ticks = ticks
        self._worlds = worlds
        self._gamma = gamma
        self._clock = clock or SystemClock()

    def evaluate(self, observation: NDArray, action: NDArray) -> Verdict:
        """observation float32 [F] and action int32 [parts]."""
        return self.evaluate_all(observation[None], np.asarray(action)[None])[0]

    def evaluate_all(self, observations: NDArray, actions: NDArray) -> list[Verdict]:
        """observations [B, F] and actions [B, parts]; doing nothing is sent without a look."""
        until = self._clock.monotonic() + self._budget_ms / 1e3
        actions = np.asarray(actions)
        idle = (actions == self._nothing).all(axis=1)
        verdicts = [NOTHING_TO_BLOCK] * len(idle)
        late = Verdict(False, math.nan, (f"past the time budget of {self._budget_ms:g} ms",))
        asked = np.flatnonzero(~idle)
        for start in range(0, len(asked), AT_ONCE):
            some = asked[start : start + AT_ONCE]
            found = self._look_ahead(observations[some], actions[some], until)
            for place, index in enumerate(some):
                verdicts[index] = late if found is None else self._verdict(*found[:, place])
        return verdicts

    def _verdict(self, reward: float, gain: float) -> Verdict:
        words = f"{'gains' if gain > 0 else 'loses'} {abs(gain):.3f} over {self._ticks} ticks"
        return Verdict(bool(gain > self._threshold), float(reward), (words,))

    def _look_ahead(self, observations: NDArray, actions: NDArray, until: float) -> NDArray | None:
        """[2, B]: the reward of the decision if it is sent, and what sending gains over the ticks
        to come; None where time ran out.

        One batch holds every world twice, with the action and without: half the array operations.
        """
        count, worlds = len(observations), self._worlds
        if self._clock.monotonic() > until:
            return None
        features = np.repeat(observations.T.astype(np.float32), worlds, axis=1)
        once = self._imagine(NUMPY, features, seeds_of(observations, worlds))
        state = mapped(lambda leaf: np.concatenate([leaf, leaf], axis=-1), once)
        still = np.broadcast_to(self._nothing[:, None], (len(self._nothing), count * worlds))
        sent = np.repeat(actions.T.astype(np.int32), worlds, axis=1)
        chosen = self._everyone(np.concatenate([sent, still], axis=1))
        after = self._everyone(np.concatenate([still, still], axis=1))
        rewards = []
        for _ in range(self._ticks):
            if self._clock.monotonic() > until:
                return None
            before, state = state, self._game.step(NUMPY, state, chosen)
            goes_on = ~self._game.over(NUMPY, before)
            rewards.append(self._game.reward(NUMPY, before, state)[0] * goes_on)
            chosen = after
        if self._clock.monotonic() > until:
            return None
        means = np.stack(rewards).reshape(self._ticks, 2, count, worlds).mean(axis=-1)
        discounts = self._gamma ** np.arange(self._ticks)
        return np.stack([means[0, 0], discounts @ (means[:, 0] - means[:, 1])])

    def _everyone(self, ours: NDArray) -> NDArray:
        """int32 [parts, B] of the first side as [players, parts, B]; the others do nothing."""
        others = np.broadcast_to(
            self._nothing[None, :, None], (self._game.players - 1, *ours.shape)
        )
        return np.concatenate([ours[None], others], axis=0)


def seeds_of(observations: NDArray, worlds: int) -> NDArray:
    """uint32 [B * worlds]: different worlds for each of observations float32 [B, F], the same for
    the same observation, so that its actions are compared in equal worlds."""
    bits = np.ascontiguousarray(observations, np.float32).view(np.uint32)
    places = chance.mix(np.arange(1, bits.shape[1] + 1, dtype=np.uint32)) | np.uint32(1)
    keys = chance.mix((bits * places).sum(axis=1, dtype=np.uint32))
    seeds: NDArray = chance.fold(keys[:, None], np.arange(worlds, dtype=np.uint32))
    return seeds.reshape(-1)
