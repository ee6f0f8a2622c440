"""The arena: self-play at the speed of the machine, one compiled iteration after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np

from understudy.arena import slots as slotting
from understudy.arena.iteration import Orders, Played, compiled, for_slots
from understudy.arena.mix import Mix, Share
from understudy.arena.placing import check_devices, everywhere, placed
from understudy.arena.results import Ended, Insight, Iteration, Result
from understudy.arena.rivals import NOBODY, Rivals
from understudy.arena.slots import Plan, Slots
from understudy.core.arrays import NDArray
from understudy.core.config import Config
from understudy.core.errors import ConfigError
from understudy.core.ops import Array
from understudy.games.base import Bot, Game
from understudy.games.moments import RewardSet
from understudy.learner.descent import Frozen, Report, State
from understudy.learner.trainer import Trainer

NO_MEASURES = RewardSet((), ())


class Arena:
    """Plays and learns; the trainer holds what is learned. `order` it before it plays."""

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
    ) -> None:
        check(game, config, meets_itself=meets_itself)
        train = config.train
        self.bots = tuple(bots)
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
        )
        self.trainer = trainer
        self.rivals = Rivals(
            self.plan.groups,
            self.trainer.weights().params,
            stint=config.league.stint * (self.plan.games // self.plan.groups),
        )
        self.share = Share()
        self._mix: Mix | None = None
        self._weights: NDArray | None = None
        self._seed = np.uint32(seed & 0xFFFFFFFF)
        self._slots: Slots | None = None

    @property
    def slots(self) -> Slots:
        """The matches in progress; the first iteration begins them."""
        if self._slots is None:
            raise ValueError("nothing was played yet")
        return self._slots

    @property
    def steps_an_iteration(self) -> int:
        """Decisions that are trained on in one iteration."""
        return self.plan.games * self.plan.segment

    def order(self, mix: Mix, weights: NDArray) -> None:
        """Whom matches that begin from now on are against, and what is rewarded, [terms]."""
        mix = mix.among(self.bots, with_self=self.plan.meets_itself)
        if self._mix is not None and mix != self._mix:
            self.share = Share()
        self._mix, self._weights = mix, weights

    def iterate(self) -> Iteration:
        """A rollout of every slot and the update on it; `NotFinite` if learning broke."""
        orders = self._orders()
        if self._slots is None:
            self._slots = placed(self.plan, _begin(self.plan)(self._seed, orders.bounds))
        met = list(self.rivals.met)
        slots, played = self._slots, list[Played]()

        def step(state: State, frozen: Frozen) -> tuple[State, Report]:
            state, frozen, rivals, given = everywhere((state, frozen, self.rivals.params, orders))
            state, after, result = compiled(self.plan)(state, frozen, rivals, given, slots)
            self._slots = placed(self.plan, after)
            played.append(jax.device_get(result))
            self._note(played[0])  # matches were played, whatever is learned
            return state, played[0].report

        metrics = self.trainer.learn(step)
        result = played[0]
        self.trainer.absorb_returns(
            self.steps_an_iteration, return_square=float(result.return_square)
        )
        return self._iteration(metrics, result, met)

    @property
    def mix(self) -> Mix:
        """Whom matches that begin now are against."""
        if self._mix is None:
            raise ValueError("order the arena before it plays")
        return self._mix

    def _orders(self) -> Orders:
        mix, free = self.mix, self.rivals.free
        own = self.share.owed(mix.own_share, ahead=self.plan.games) if free.any() else 0.0
        rows = [mix.bounds(own if one else 0.0) for one in free]
        return Orders(jnp.asarray(np.stack(rows)), jnp.asarray(self._weights, jnp.float32))

    def _note(self, played: Played) -> None:
        if not self.plan.meets_itself:
            return
        started, scripted = played.counts.started, len(self.plan.bots)
        # Before there is a snapshot, and where none is to be met, nothing is owed to them.
        if self.rivals.free.any() and self.mix.own_share:
            self.share = self.share.after(int(started.sum()), int(started[scripted:].sum()))
        self.rivals.note(started[scripted:])
        if self.mix.own_share:
            self.rivals.settle(played.meetings)
        else:
            self.rivals.leave(played.meetings)

    def _iteration(self, metrics: dict[str, float], played: Played, met: list[str]) -> Iteration:
        names = (*self.bots, *met) if self.plan.meets_itself else self.bots
        results: dict[str, Result] = {}
        for seat, name in enumerate(names):
            result = self._result(played, seat)
            if name in results:
                results[name] += result
            elif name != NOBODY:
                results[name] = result
        ends = played.ends
        ended = [
            Ended(
                names[ends.seat[at]],
                int(ends.score[at]),
                int(ends.frames[at]),
                float(ends.returned[at]),
            )
            for at in zip(*np.nonzero(ends.counts), strict=True)
        ]
        return Iteration(
            metrics, results, ended, float(played.counts.residual), _insight(played, names)
        )

    def _result(self, played: Played, seat: int) -> Result:
        terms, measures = self.plan.rewards.names, self.plan.measures.names
        counts = played.counts
        ledger = counts.ledger[seat].tolist()
        exact = [one + rest for one, rest in zip(ledger, counts.rest[seat].tolist(), strict=False)]
        return Result(
            started=int(counts.started[seat]),
            wins=int(counts.wins[seat]),
            draws=int(counts.draws[seat]),
            losses=int(counts.losses[seat]),
            frames=int(counts.frames[seat]),
            returns=float(counts.returns[seat]),
            terms=dict(zip(terms, exact, strict=True)),
            measures=dict(zip(measures, ledger[len(terms) :], strict=True)),
        )


@cache
def _begin(plan: Plan) -> jax.stages.Wrapped:
    return jax.jit(partial(_begun, plan))


def _begun(plan: Plan, seed: Array, bounds: Array) -> Slots:
    return slotting.begin(plan, seed, for_slots(plan, bounds))


def _insight(played: Played, names: Sequence[str]) -> Insight | None:
    strategy = played.strategy
    if not strategy.means.shape[1]:
        return None
    sums: dict[str, NDArray] = {}
    held: dict[str, float] = {}
    for name, mean, slots in zip(names, strategy.means, strategy.slots, strict=True):
        if slots and name != NOBODY:
            sums[name] = sums.get(name, 0.0) + mean * slots
            held[name] = held.get(name, 0.0) + float(slots)
    return Insight(
        latents={name: tuple((total / held[name]).tolist()) for name, total in sums.items()},
        mean=float(strategy.mean),
        spread=float(strategy.spread),
        attention_entropy=float(strategy.attention_entropy),
    )


def check(game: Game, config: Config, *, meets_itself: bool) -> None:
    """An arena that cannot be is an error that names the setting."""
    train, learner = config.train, config.learner
    if game.players != 2:
        raise ConfigError(f"train: expected a game of two players; {game.name} has {game.players}")
    if meets_itself and train.games % train.groups:
        raise ConfigError(
            f"train.games: expected a multiple of train.groups ({train.groups}), got {train.games}"
        )
    if learner.algorithm != "actor_critic":
        raise ConfigError(
            f"learner.algorithm: train knows actor_critic alone, got {learner.algorithm!r}"
        )
    check_devices(train.games, train.groups if meets_itself else 1)
    if train.games % learner.minibatches:
        raise ConfigError(
            f"train.games: expected a multiple of learner.minibatches ({learner.minibatches}), "
            f"got {train.games}"
        )
