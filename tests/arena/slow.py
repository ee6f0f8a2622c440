"""The arena written slowly: one column, one match, one frame after the other, under NumPy.

Every match begins from its seed with an empty memory on both sides; nothing else is carried over.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from understudy.arena import columns as arena_columns
from understudy.arena.mix import Mix
from understudy.core.arrays import NDArray
from understudy.core.chance import fold, uniform
from understudy.core.ops import NUMPY
from understudy.games.moments import Moment
from understudy.match.live_match import TRAINING
from understudy.policy import distributions

from .makers import WEIGHTS, Story, fixed_of


@dataclass
class Told:
    """What one column plays, frame by frame, and what its matches came to."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    started: Counter[tuple[int, int]] = field(default_factory=Counter)
    """(chapter, opponent) to matches"""
    ended: Counter[tuple[int, int, float]] = field(default_factory=Counter)
    """(chapter, opponent, score) to matches"""
    frames: Counter[tuple[int, int]] = field(default_factory=Counter)
    returns: dict[tuple[int, int], float] = field(default_factory=dict)
    sums: dict[tuple[int, int], NDArray] = field(default_factory=dict)
    matches: list[tuple[int, float, int, float]] = field(default_factory=list)
    """opponent, score, frames and return of each that ended"""
    cuts: int = 0


def tell(story: Story, column: int, seed: int) -> Told:
    """The whole story of one column, from the seed of the arena alone."""
    plan, told = story.plan, Told()
    key = fold(fold(np.array([TRAINING], np.uint32), seed), column)
    match = fold(fold(key, arena_columns._SEED), 1)
    cut_at = 1 + int(_draw(fold(key, arena_columns._CUT)) * np.float32(plan.game.max_frames - 1))
    number, now = 1, _Match(story, column, match, met(story.mix, match, free=False))
    for chapter in range(len(story.chapters)):
        free = story.chapters[chapter].free[column * plan.groups // plan.games]
        for _ in range(plan.segment):
            row = now.frame()
            over = bool(plan.game.over(NUMPY, now.state)[0])
            cut = now.frames == cut_at and not over
            told.rows.append(row | {"ongoing": not (over or cut), "valid": not cut})
            told.cuts += cut
            if over and number > 1:  # the very first match of a column is in no count
                score = float(plan.game.score(NUMPY, now.state)[now.side, 0])
                told.ended[chapter, now.index, score] += 1
                told.frames[chapter, now.index] += now.frames
                at = (chapter, now.index)
                told.returns[at] = told.returns.get(at, 0.0) + now.returned
                told.sums[at] = told.sums.get(at, np.float32(0)) + now.sums
                told.matches.append((now.index, score, now.frames, now.returned))
            if over or cut:
                number, cut_at = number + 1, -1
                match = fold(fold(match, arena_columns._SEED), number)
                now = _Match(story, column, match, met(story.mix, match, free=free))
                told.started[chapter, now.index] += 1
    return told


def met(mix: Mix, match: NDArray, *, free: bool) -> str:
    """Whom the match of this seed [1] is against."""
    weights = {
        name: weight
        for name, weight in zip(mix.names, mix.weights, strict=True)
        if free or name != "self"
    }
    left = float(_draw(fold(match, arena_columns._OPPONENT))) * sum(weights.values())
    for name, weight in weights.items():
        if left < weight:
            return name
        left -= weight
    raise AssertionError("a draw is below 1")


class _Match:
    def __init__(self, story: Story, column: int, seed: NDArray, opponent: str) -> None:
        self.plan, self.seed, self.opponent = story.plan, seed, opponent
        self.side = column % 2
        self.ours, self.rival = (
            story.ours,
            story.snapshots[column * story.plan.groups // story.plan.games],
        )
        network = story.plan.spec.network
        self.state = story.plan.game.start(NUMPY, seed)
        self.memories = [network.memory(NUMPY, 1), network.memory(NUMPY, 1)]
        group = column * story.plan.groups // story.plan.games
        self.bots = story.mix.scripted
        self.index = len(self.bots) + group if opponent == "self" else self.bots.index(opponent)
        kinds = story.plan.kinds or (-1,) * story.plan.opponent_kinds
        self.kind = kinds[min(self.index, len(self.bots))]
        self.frames, self.returned = 0, 0.0
        self.sums = np.zeros(story.plan.sums, np.float32)

    def frame(self) -> dict[str, Any]:
        game = self.plan.game
        obs, legal = game.observe(NUMPY, self.state), game.legal(NUMPY, self.state)
        us, them = self.side, 1 - self.side
        ours, log_prob, value = self._act(0, self.ours, obs[us].T, legal[us].T, arena_columns._OURS)
        if self.opponent == "self":
            theirs, _, _ = self._act(
                1, self.rival, obs[them].T, legal[them].T, arena_columns._THEIRS
            )
        else:
            bot = self.plan.bots[self.index]
            noise = fold(self.seed, arena_columns._BOT)
            theirs = bot.act(NUMPY, obs[them], noise, np.array([self.frames], np.int32)).T
        both = np.zeros((2, 1, 1), np.int32)
        both[us], both[them] = ours.T, theirs.T
        after = game.step(NUMPY, self.state, both)
        moment, rewards = Moment(game, self.state, after, both), self.plan.rewards
        terms = rewards.parts(NUMPY, moment, WEIGHTS[: len(rewards.names)])[:, us, 0]
        measures = self.plan.measures.values(NUMPY, moment)[:, us, 0]
        self.sums = self.sums + np.concatenate([terms, measures])
        reward = float(terms.sum())
        row = {
            "obs": obs[us, :, 0],
            "legal": legal[us, :, 0],
            "actions": ours[0],
            "log_probs": log_prob,
            "values": value,
            "rewards": reward,
            "first": self.frames == 0,
            "opponent_actions": theirs[0],
            "opponent_kinds": self.kind,
            "seed": int(self.seed[0]),
            "index": self.index,
            "score": float(game.score(NUMPY, after)[us, 0]),
            "state": after,
        }
        self.state, self.frames, self.returned = after, self.frames + 1, self.returned + reward
        return row

    def _act(
        self, who: int, params: dict[str, NDArray], obs: NDArray, legal: NDArray, use: int
    ) -> tuple[NDArray, float, float]:
        spec = self.plan.spec
        fixed = fixed_of(spec)
        seen = (obs - fixed.obs_mean) * fixed.obs_scale
        logits, values, self.memories[who] = spec.network.step(
            NUMPY, params, seen, self.memories[who]
        )
        key = fold(fold(self.seed, use), self.frames)
        uniforms = uniform(NUMPY, key, np.arange(len(spec.actions.parts), dtype=np.uint32)).T
        actions, log_probs = distributions.choose(NUMPY, spec.actions, logits, legal, uniforms)
        return actions, float(log_probs[0]), float(values[0])


def _draw(key: NDArray) -> np.float32:
    return np.float32(uniform(NUMPY, key, np.zeros(1, np.uint32))[0, 0])
