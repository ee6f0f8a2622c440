"""The arena: self-play at the speed of the machine, one compiled iteration after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np

from understudy.arena import slots as slotting
from understudy.arena.iteration import Played, compiled
from understudy.arena.mix import Mix
from understudy.arena.placing import check_devices, everywhere, placed
from understudy.arena.rivals import Rivals
from understudy.arena.slots import Plan, Slots
from understudy.core.config import Config
from understudy.core.errors import ConfigError
from understudy.core.ops import Array
from understudy.games.base import Bot, Game
from understudy.learner.descent import Frozen, Report, State
from understudy.learner.trainer import Trainer


@dataclass(frozen=True)
class Result:
    """Of all matches against one kind of opponent in one iteration."""

    started: int
    wins: int
    draws: int
    losses: int
    frames: int
    returns: float

    @property
    def matches(self) -> int:
        """How many ended."""
        return self.wins + self.draws + self.losses


@dataclass(frozen=True)
class Iteration:
    """What one iteration came to."""

    metrics: dict[str, float]
    results: dict[str, Result]

    @property
    def matches(self) -> int:
        """How many ended."""
        return sum(result.matches for result in self.results.values())


class Arena:
    """Plays and learns; the trainer holds what is learned."""

    def __init__(
        self,
        trainer: Trainer,
        config: Config,
        game: Game,
        bots: Mapping[str, Bot],
        mix: Mix,
        *,
        seed: int,
    ) -> None:
        check(game, config, mix)
        train = config.train
        self.plan = Plan(
            spec=trainer.spec,
            config=config.learner,
            game=game,
            bots=tuple(bots[name] for name in mix.scripted),
            mix=mix,
            games=train.games,
            segment=train.segment,
            groups=train.groups if mix.meets_itself else 1,
        )
        self.trainer = trainer
        self.rivals = Rivals(self.plan.groups, self.trainer.weights().params)
        self._slots = placed(self.plan, _begin(self.plan)(np.uint32(seed & 0xFFFFFFFF)))

    @property
    def steps_an_iteration(self) -> int:
        """Decisions that are trained on in one iteration."""
        return self.plan.games * self.plan.segment

    def iterate(self) -> Iteration:
        """A rollout of every slot and the update on it; `NotFinite` if learning broke."""
        played: list[Played] = []

        def step(state: State, frozen: Frozen) -> tuple[State, Report]:
            state, frozen, rivals, free = everywhere(
                (state, frozen, self.rivals.params, jnp.asarray(self.rivals.free))
            )
            state, slots, result = compiled(self.plan)(state, frozen, rivals, free, self._slots)
            self._slots = placed(self.plan, slots)
            played.append(jax.device_get(result))
            self.rivals.settle(played[0].meetings)  # matches were played, whatever is learned
            return state, played[0].report

        metrics = self.trainer.learn(step)
        result = played[0]
        self.trainer.absorb_returns(
            self.steps_an_iteration, return_square=float(result.return_square)
        )
        return Iteration(metrics, _results(self.plan, result))


@cache
def _begin(plan: Plan) -> jax.stages.Wrapped:
    nobody_yet = plan.mix.bounds(with_self=False)
    return jax.jit(partial(_begun, plan, nobody_yet))


def _begun(plan: Plan, bounds: Array, seed: Array) -> Slots:
    return slotting.begin(plan, seed, bounds)


def _results(plan: Plan, played: Played) -> dict[str, Result]:
    columns = np.stack(played.counts)
    return {
        name: Result(
            started=int(column[0]),
            wins=int(column[1]),
            draws=int(column[2]),
            losses=int(column[3]),
            frames=int(column[4]),
            returns=float(column[5]),
        )
        for name, column in zip(plan.mix.names, columns.T, strict=True)
    }


def check(game: Game, config: Config, mix: Mix) -> None:
    """An arena that cannot be is an error that names the setting."""
    train, learner = config.train, config.learner
    if game.players != 2:
        raise ConfigError(f"train: expected a game of two players; {game.name} has {game.players}")
    if mix.meets_itself and train.games % train.groups:
        raise ConfigError(
            f"train.games: expected a multiple of train.groups ({train.groups}), got {train.games}"
        )
    if learner.algorithm != "actor_critic":
        raise ConfigError(
            f"learner.algorithm: train knows actor_critic alone, got {learner.algorithm!r}"
        )
    check_devices(train.games, train.groups if mix.meets_itself else 1)
    if train.games % learner.minibatches:
        raise ConfigError(
            f"train.games: expected a multiple of learner.minibatches ({learner.minibatches}), "
            f"got {train.games}"
        )
