"""Frozen evaluation: many matches side by side, nothing learned, everything counted."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY
from understudy.games.base import Bot, Game
from understudy.match.tally import Tally
from understudy.policy.policy import Policy


class Player(Protocol):
    """Chooses for many matches at once."""

    def act(self, obs: NDArray, legal: NDArray, frame: int) -> NDArray:
        """Actions int32 [parts, B] for obs [F, B] and legal [options, B]."""


class PolicyPlayer:
    """A policy that plays its likeliest action, or draws one, as it does while it learns."""

    def __init__(self, policy: Policy, matches: int, *, draws_with: int | None = None) -> None:
        self._policy = policy
        self._memory = policy.begin(matches)
        self._shape = (matches, len(policy.spec.actions.parts))
        self._rng = None if draws_with is None else np.random.default_rng(draws_with)

    def act(self, obs: NDArray, legal: NDArray, frame: int) -> NDArray:
        """Legal actions, the likeliest ones or drawn with the seed given."""
        uniforms = None if self._rng is None else self._rng.random(self._shape, dtype=np.float32)
        choice = self._policy.act(
            np.ascontiguousarray(obs.T), self._memory, legal=legal.T, uniforms=uniforms
        )
        self._memory = choice.memory
        return choice.actions.T


class BotPlayer:
    """A scripted bot."""

    def __init__(self, bot: Bot, seeds: NDArray) -> None:
        self._bot = bot
        self._seeds = seeds

    def act(self, obs: NDArray, legal: NDArray, frame: int) -> NDArray:
        """What the script says."""
        at = np.full(self._seeds.shape, frame, np.int32)
        return np.asarray(self._bot.act(NUMPY, obs, self._seeds, at))


def evaluate(game: Game, player: Player, seeds: NDArray) -> Tally:
    """Play one match for each seed, uint32 [B], from the first side of a one-sided game."""
    state = game.start(NUMPY, seeds)
    score = np.zeros(len(seeds), np.float32)
    going = np.ones(len(seeds), np.bool_)
    frame = 0
    while going.any():
        obs = game.observe(NUMPY, state)[0]
        legal = game.legal(NUMPY, state)[0]
        state = game.step(NUMPY, state, player.act(obs, legal, frame)[None])
        ended = going & game.over(NUMPY, state)
        score = np.where(ended, game.score(NUMPY, state)[0], score)
        going &= ~ended
        frame += 1
    return Tally(
        wins=int((score > 0).sum()), draws=int((score == 0).sum()), losses=int((score < 0).sum())
    )
