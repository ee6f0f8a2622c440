"""The stage plan of a run: its opponents and its rewards, stage by stage.

Without a curriculum the plan is one stage that never ends; that of an exploiter has its victim as
the only opponent. All stages share one set of reward terms and one list of bots, so that the arena
is compiled once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec
import numpy as np

from understudy.arena.mix import Mix, parse, union
from understudy.core.arrays import NDArray
from understudy.core.config import Config, RewardsConfig, StageConfig
from understudy.core.errors import ConfigError, nearest
from understudy.core.opponents import GAME, SELF
from understudy.games import catalog
from understudy.games.base import Bot
from understudy.games.moments import blended
from understudy.games.rewards import rewards_of, weights_of
from understudy.league.curriculum import Curriculum, CurriculumState, StageChange


def scripted_opponents(game: str, options: Mapping[str, str]) -> Mapping[str, Bot]:
    """The bots that training can meet; none in a game of one player."""
    alone = catalog.make(game, **options).players == 1
    return {} if alone else catalog.bots(game, **options)


class StagePlan:
    """The stages of a run, and the present one."""

    def __init__(self, game: str | None, config: Config, opponents: Sequence[str]) -> None:
        """`opponents`: the names of the bots that can be met; none in a game of one player, whose
        rules are the opponent `game`. `game` None: an environment, with its own rewards."""
        held_out = catalog.held_out(game) if game else ()
        bots = tuple(opponents) or ((GAME,) if game else ())
        stages = () if config.league.exploits else config.curriculum.stages
        self._curriculum = Curriculum(config.curriculum) if stages else None
        self._mixes = [_mix(stage, config, bots, held_out) for stage in stages]
        if config.league.exploits:
            self._mixes = [Mix((SELF,), (1.0,))]
        elif not stages:
            self._mixes = [parse(config.train.opponents, bots, held_out=held_out)]
        self.bots, self.meets_itself = union(self._mixes)
        # By the order of all bots of the game, so that a name means the same in every run.
        order = tuple(bots)
        known = (*(order.index(name) for name in self.bots), len(order))
        self.kinds = known if opponents else ()
        """What the network learns to name each opponent by; snapshots, the last, are one kind."""
        self._state = self._curriculum.start() if self._curriculum else None
        if game is None:
            _check_no_rewards(stages)
            return
        # In the order of the stages, begin and end: rows 2 i and 2 i + 1 of the weights.
        sets = [each for stage in stages for each in _rewards(game, stage, config)] or [
            config.rewards
        ]
        self.rewards, self._weights = rewards_of(game, *sets, gamma=config.learner.gamma)

    @property
    def state(self) -> CurriculumState | None:
        """For a version; None without a curriculum."""
        return self._state

    def resume(self, kept: CurriculumState | None, *, steps: int) -> StageChange | None:
        """Go on from what a version kept; a change where another stage is pinned by now."""
        if self._curriculum is None:
            return None
        if kept is None:  # the run has had no curriculum until now
            self._state = self._curriculum.start(steps=steps)
            return None
        self._state, change = self._curriculum.resumed(kept, steps=steps)
        return change

    @property
    def stage(self) -> str:
        """The name of the stage, nothing without a curriculum."""
        return self._state.stage if self._state else ""

    @property
    def mix(self) -> Mix:
        """The opponents of matches that begin now."""
        return self._mixes[self._index]

    def weights(self, steps: int) -> NDArray:
        """What each term of `rewards` weighs after so many steps of the run, float32 [terms]."""
        if self._curriculum is None or self._state is None:
            return np.asarray(self._weights[0])
        begin, end = self._weights[2 * self._index : 2 * self._index + 2]
        return blended(begin, end, self._curriculum.blend(self._state, steps))

    def note(
        self, results: Mapping[str, tuple[int, int, int]], *, steps: int
    ) -> StageChange | None:
        """Matches that ended, by opponent: wins, draws and losses; perhaps the stage is over."""
        if self._curriculum is None or self._state is None:
            return None
        self._state, change = self._curriculum.note(self._state, results, steps=steps)
        return change

    @property
    def _index(self) -> int:
        return self._curriculum.index(self._state) if self._curriculum and self._state else 0


def _check_no_rewards(stages: Sequence[StageConfig]) -> None:
    for stage in stages:
        for key in ("rewards", "rewards_end"):
            if getattr(stage, key):
                raise ConfigError(
                    f"{stage.where}.{key}: an environment brings its own rewards; leave it empty, "
                    f"got {getattr(stage, key)!r}"
                )


def _mix(stage: StageConfig, config: Config, bots: Sequence[str], held_out: Collection[str]) -> Mix:
    flag = f"{stage.where}.opponents" if stage.opponents else "train.opponents"
    text = stage.opponents or config.train.opponents
    mix = parse(text, bots, held_out=held_out, flag=flag)
    for name in stage.measured[1] if stage.measure else ():
        if name not in mix.names:
            raise ConfigError(
                f"{stage.where}.measure: {name} is not met in this stage "
                f"({', '.join(mix.names)}), so it would never be judged.{nearest(name, mix.names)}"
            )
    return mix


def _rewards(game: str, stage: StageConfig, config: Config) -> tuple[RewardsConfig, RewardsConfig]:
    """The rewards at the beginning and the end of a stage; a person's own weights are in both."""
    for key in ("rewards", "rewards_end"):
        if getattr(stage, key):
            weights_of(game, getattr(stage, key), key=f"{stage.where}.{key}")
    begin = stage.rewards or config.rewards.set
    return (
        msgspec.structs.replace(config.rewards, set=begin),
        msgspec.structs.replace(config.rewards, set=stage.rewards_end or begin),
    )
