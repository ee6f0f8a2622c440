"""The arena: self-play at full speed of the machine, one compiled iteration after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from understudy.arena.columns import Columns, Plan
from understudy.arena.devices import begin_columns, check_games, everywhere, mesh
from understudy.arena.iteration import IterationInputs, IterationOutputs, compiled
from understudy.arena.mix import Mix, Share
from understudy.arena.recording import MatchRecorder, recorded_columns
from understudy.arena.results import EndedMatch, Iteration, OpponentLatents, Result
from understudy.arena.snapshot_opponents import NO_SNAPSHOT, SnapshotSides
from understudy.core.arrays import NDArray
from understudy.core.config import Config
from understudy.core.errors import ConfigError
from understudy.core.opponents import GAME
from understudy.games.base import Bot, Game
from understudy.games.frame import NO_MEASURES
from understudy.games.moments import RewardSet
from understudy.learner.maths.descent import LearnerState
from understudy.learner.trainer import Trainer
from understudy.policy.weights import Weights


class Arena:
    """Plays and learns; the trainer holds what is learned. Call `order` before `iterate`."""

    def __init__(
        self,
        trainer: Trainer,
        config: Config,
        game: Game,
        bots: Mapping[str, Bot],
        *,
        meets_itself: bool,
        rewards: RewardSet,
        measures: RewardSet = NO_MEASURES,
        kinds: tuple[int, ...] = (),
        seed: int,
        devices: int = 1,
    ) -> None:
        check(game, config, meets_itself=meets_itself, devices=devices)
        train = config.train
        self.bots = tuple(bots) if game.players > 1 else (GAME,)
        """The names of the opponents that are no snapshots."""
        self.plan = Plan(
            spec=trainer.spec,
            config=config.learner,
            game=game,
            bots=tuple(bots.values()),
            meets_itself=meets_itself,
            rewards=rewards,
            measures=measures,
            games=train.games,
            segment=train.segment,
            groups=train.groups if meets_itself else 1,
            kinds=kinds,
            recorded=recorded_columns(train.games, train.record, devices=devices),
            devices=devices,
        )
        self.recorder = MatchRecorder(
            self.plan.recorded,
            steps=self.steps_an_iteration,
            per_step=train.record / train.checkpoint_steps,
        )
        self.trainer = trainer
        self.snapshots = SnapshotSides(
            self.plan.groups,
            self.trainer.weights().params,
            stint=config.league.stint * (self.plan.games // self.plan.groups),
        )
        self.share = Share()
        self._mix: Mix | None = None
        self._weights: NDArray | None = None
        self._seed = np.uint32(seed & 0xFFFFFFFF)
        self._columns: Columns | None = None

    @property
    def columns(self) -> Columns:
        """The matches in progress; the first iteration begins them."""
        if self._columns is None:
            raise ValueError("nothing was played yet")
        return self._columns

    @property
    def groups(self) -> int:
        """Snapshots that can be met at one time."""
        return self.plan.groups

    @property
    def meets_itself(self) -> bool:
        """Whether snapshots are ever met."""
        return self.plan.meets_itself

    def weights(self) -> Weights:
        """What the learner has learned by now."""
        return self.trainer.weights()

    @property
    def steps_an_iteration(self) -> int:
        """Decisions that are trained on in one iteration."""
        return self.plan.games * self.plan.segment

    def order(self, mix: Mix, weights: NDArray) -> None:
        """Set the opponents of matches that begin from now on, and the rewards' weights [terms]."""
        mix = mix.among(self.bots, with_self=self.plan.meets_itself)
        if self._mix is not None and mix != self._mix:
            self.share = Share()
        self._mix, self._weights = mix, weights

    def iterate(self) -> Iteration:
        """A rollout of every column and the update on it; `NotFinite` if learning broke."""
        inputs = self.inputs()
        if self._columns is None:
            self._columns = begin_columns(self.plan)(self._seed, inputs.bounds)
        trainer = self.trainer
        state, fixed, self.snapshots.params, inputs = everywhere(
            mesh(self.plan), (trainer.state, trainer.fixed_inputs, self.snapshots.params, inputs)
        )
        state, self._columns, outputs = compiled(self.plan)(
            state, fixed, self.snapshots.params, inputs, self._columns
        )
        return self.accept(state, jax.device_get(outputs))

    def accept(self, state: LearnerState, outputs: IterationOutputs) -> Iteration:
        """Count the matches that were played and take what was learned from them.

        Raises `NotFinite` if learning broke; the matches count all the same.
        """
        met = list(self.snapshots.met)  # whom these matches were against; `_note` may replace them
        self._note(outputs)
        metrics = self.trainer.accept(state, outputs.report)
        self.trainer.absorb_returns(
            self.steps_an_iteration, return_square=float(outputs.return_square)
        )
        return self._iteration(metrics, outputs, met)

    @property
    def mix(self) -> Mix:
        """Whom matches that begin now are against."""
        if self._mix is None:
            raise ValueError("order the arena before it plays")
        return self._mix

    def inputs(self) -> IterationInputs:
        """What the next iteration is played by."""
        mix, free = self.mix, self.snapshots.free
        own = self.share.owed(mix.own_share, ahead=self.plan.games) if free.any() else 0.0
        rows = [mix.bounds(own if one else 0.0) for one in free]
        return IterationInputs(jnp.asarray(np.stack(rows)), jnp.asarray(self._weights, jnp.float32))

    def _note(self, outputs: IterationOutputs) -> None:
        if outputs.recorded is not None:
            self.recorder.add(outputs.recorded, outputs.ends, self._names(self.snapshots.met))
        if not self.plan.meets_itself:
            return
        started, scripted = outputs.counts.started, len(self.plan.bots)
        # Before there is a snapshot, and where none is to be met, nothing is owed to them.
        if self.snapshots.free.any() and self.mix.own_share:
            self.share = self.share.after(int(started.sum()), int(started[scripted:].sum()))
        self.snapshots.note(started[scripted:])
        if self.mix.own_share:
            self.snapshots.settle(outputs.meetings)
        else:
            self.snapshots.leave(outputs.meetings)

    def _iteration(
        self, metrics: dict[str, float], outputs: IterationOutputs, met: list[str]
    ) -> Iteration:
        names = self._names(met)
        results: dict[str, Result] = {}
        for opponent, name in enumerate(names):
            result = self._result(outputs, opponent)
            if name in results:
                results[name] += result
            elif name != NO_SNAPSHOT:
                results[name] = result
        ends = outputs.ends
        ended = [
            EndedMatch(
                names[ends.opponent[at]],
                int(ends.score[at]),
                int(ends.frames[at]),
                float(ends.returned[at]),
            )
            for at in zip(*np.nonzero(ends.counts), strict=True)
        ]
        return Iteration(
            metrics,
            results,
            ended,
            float(outputs.counts.residual),
            _opponent_latents(outputs, names),
        )

    def _names(self, met: Sequence[str]) -> tuple[str, ...]:
        """The opponents by index, with `met` in the groups."""
        return (*self.bots, *met) if self.plan.meets_itself else self.bots

    def _result(self, outputs: IterationOutputs, opponent: int) -> Result:
        terms, measures = self.plan.rewards.names, self.plan.measures.names
        counts = outputs.counts
        sums = counts.sums[opponent].tolist()
        exact = [
            one + rest for one, rest in zip(sums, counts.rest[opponent].tolist(), strict=False)
        ]
        return Result(
            started=int(counts.started[opponent]),
            wins=int(counts.wins[opponent]),
            draws=int(counts.draws[opponent]),
            losses=int(counts.losses[opponent]),
            frames=int(counts.frames[opponent]),
            returns=float(counts.returns[opponent]),
            terms=dict(zip(terms, exact, strict=True)),
            measures=dict(zip(measures, sums[len(terms) :], strict=True)),
        )


def _opponent_latents(outputs: IterationOutputs, names: Sequence[str]) -> OpponentLatents | None:
    strategy = outputs.strategy
    if not strategy.means.shape[1]:
        return None
    sums: dict[str, NDArray] = {}
    held: dict[str, float] = {}
    for name, mean, count in zip(names, strategy.means, strategy.columns, strict=True):
        if count and name != NO_SNAPSHOT:
            sums[name] = sums.get(name, 0.0) + mean * count
            held[name] = held.get(name, 0.0) + float(count)
    return OpponentLatents(
        latents={name: tuple((total / held[name]).tolist()) for name, total in sums.items()},
        mean=float(strategy.mean),
        spread=float(strategy.spread),
        attention_entropy=float(strategy.attention_entropy),
    )


def check(game: Game, config: Config, *, meets_itself: bool, devices: int = 1) -> None:
    """Raise a `ConfigError` that names the setting if no such arena can be played."""
    train, learner = config.train, config.learner
    if game.players not in (1, 2):
        raise ConfigError(
            f"train: expected a game of one or two players; {game.name} has {game.players}"
        )
    if game.players == 1 and meets_itself:
        raise ConfigError(
            f"train.opponents: {game.name} has one player, who cannot meet itself: leave self out"
        )
    if meets_itself and train.games % train.groups:
        raise ConfigError(
            f"train.games: expected a multiple of train.groups ({train.groups}), got {train.games}"
        )
    if learner.algorithm != "actor_critic":
        raise ConfigError(
            f"learner.algorithm: train knows actor_critic alone, got {learner.algorithm!r}"
        )
    if train.games % learner.minibatches:
        raise ConfigError(
            f"train.games: expected a multiple of learner.minibatches ({learner.minibatches}), "
            f"got {train.games}"
        )
    groups = train.groups if meets_itself else 1
    check_games(train.games, devices=devices, minibatches=learner.minibatches, groups=groups)
