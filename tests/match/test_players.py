"""A pool plays exactly as its members would alone; equal forms are one program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from understudy.arena import compiling
from understudy.arena.compiling import compiled_duel
from understudy.core.ops import Array, Ops
from understudy.match.duel import Duel, begin
from understudy.match.evaluate import judge
from understudy.match.live_match import EVALUATION, match_seeds
from understudy.match.players import BotPlayer, Player, PolicyPlayer, PoolPlayer
from understudy.match.series import Engine, evened, plain, play
from understudy.policy.mlp import Mlp
from understudy.policy.policy import Policy, untrained
from understudy.policy.spec import AnyNetwork, PolicySpec
from understudy.policy.strategist import Strategist

from .tug import Moody, Tug

GAME = Tug()
SIGHTED = Strategist(
    width=4, heads=2, layers=1, feed=4, window=3, latent=3, lstm=4, head_widths=(4,), opponent=2
)
SHARE, MEMBERS = 4, 3
SEEDS = match_seeds(3, np.arange(SHARE * MEMBERS), purpose=EVALUATION)
SECOND = np.arange(SHARE * MEMBERS) % 2 == 1


def opinionated(network: AnyNetwork, seed: int) -> Policy:
    """All parameters drawn wide, so that every member plays in its own way."""
    policy = untrained(PolicySpec(GAME.features, GAME.actions, network), seed)
    rng = np.random.default_rng(seed)
    for name, value in policy.weights.params.items():
        policy.weights.params[name] = rng.normal(size=value.shape).astype(np.float32)
    return policy


@pytest.mark.parametrize(
    ("engine", "sampled"), [(plain, False), (plain, True), (compiled_duel, True)]
)
def test_a_pool_is_its_members_side_by_side(engine: Engine, sampled: bool) -> None:
    policies = tuple(opinionated(SIGHTED, seed) for seed in range(MEMBERS))
    me = BotPlayer(Moody())
    pool = Duel(GAME, me, ((PoolPlayer(policies, sampled), SHARE * MEMBERS),))
    alone = Duel(GAME, me, tuple((PolicyPlayer(one, sampled), SHARE) for one in policies))
    together, apart = (play(duel, SEEDS, SECOND, engine=engine) for duel in (pool, alone))
    for name, ours, theirs in zip(together._fields, together, apart, strict=True):
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
    swapped = Duel(GAME, me, ((PoolPlayer(policies[::-1], sampled), SHARE * MEMBERS),))
    assert (play(swapped, SEEDS, SECOND).path != together.path).any(), "members play alike"


def test_a_pool_keeps_equal_shares_as_matches_end() -> None:
    """Some members' matches are over sooner; results stay those of whoever played them."""
    policies = tuple(opinionated(Mlp((4,)), seed) for seed in range(MEMBERS))
    opponents = ((BotPlayer(Moody()), 6), (PoolPlayer(policies), SHARE * MEMBERS))
    duel = Duel(GAME, BotPlayer(Moody()), opponents)
    going = np.zeros(6 + SHARE * MEMBERS, np.bool_)
    going[[1, 4, 6, 8, 14]] = True
    keep = evened(duel, going)
    assert keep[:6].tolist() == [False, True, False, False, True, False]
    assert (keep | ~going).all()
    assert keep[6:].reshape(MEMBERS, SHARE).sum(1).tolist() == [2, 2, 2]
    seeds, second = np.resize(SEEDS, 18), np.arange(18) % 2 == 1
    thin, whole = (play(duel, seeds, second, few=few) for few in (1, 18))
    for ours, theirs in zip(thin, whole, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_matches_are_shared_out_evenly_or_a_few_more_are_played() -> None:
    policies = tuple(opinionated(Mlp((4,)), seed) for seed in range(MEMBERS))
    opponents: dict[str, Player] = {"pool": PoolPlayer(policies), "moody": BotPlayer(Moody())}
    reports = judge(GAME, BotPlayer(Moody()), opponents, matches=10, seed=0)
    assert [report.tally.matches for report in reports.values()] == [12, 10]
    lone = judge(GAME, BotPlayer(Moody()), {"moody": BotPlayer(Moody())}, matches=10, seed=0)
    assert reports["moody"] == lone["moody"], "its seeds are its own"
    duel = Duel(GAME, BotPlayer(Moody()), ((PoolPlayer(policies), 10),))
    with pytest.raises(ValueError, match="10 matches for a pool of 3"):
        begin(duel, SEEDS[:10], SECOND[:10])


def test_a_pool_is_of_one_spec() -> None:
    odd = (opinionated(Mlp((4,)), 0), opinionated(Mlp((5,)), 1))
    for policies in (odd, ()):
        with pytest.raises(ValueError, match="all of one spec"):
            PoolPlayer(policies)


class Counting(Tug):
    """Counts how often its rules are read: once for every program that is compiled."""

    def __init__(self) -> None:
        self.read = 0

    def step(self, ops: Ops, state: Any, actions: Array) -> Any:
        self.read += 1
        return super().step(ops, state, actions)


def test_other_weights_need_no_other_program() -> None:
    game = Counting()

    def judged(seed: int, *, sampled: bool = False) -> Any:
        pool = PoolPlayer(tuple(opinionated(Mlp((4,)), seed + one) for one in (1, 2)))
        agent = PolicyPlayer(opinionated(Mlp((4,)), seed), sampled)
        met: dict[str, Player] = {"pool": pool, "moody": BotPlayer(Moody())}
        return judge(game, agent, met, matches=6, seed=0, engine=compiled_duel)

    first = judged(0)
    read = game.read
    assert read > 0 and judged(10) != first
    assert game.read == read, "compiled again"
    judged(0, sampled=True)
    assert game.read == 2 * read


def test_a_player_without_a_form_is_compiled_for_itself() -> None:
    class Plain:
        """All that a player must be."""

        weights = ()

        def memory(self, ops: Ops, matches: int) -> Any:
            return ()

        def act(self, ops: Ops, weights: Any, view: Any, memory: Any) -> Any:
            return Moody().act(ops, view.obs, view.key(ops), view.frame), memory

    duel = Duel(GAME, Plain(), ((BotPlayer(Moody()), 12),))
    assert duel.program_key is None
    kept = compiling._shared_program.cache_info().currsize
    ends = [play(duel, SEEDS, SECOND, engine=engine) for engine in (plain, compiled_duel)]
    np.testing.assert_array_equal(ends[0].path, ends[1].path)
    assert compiling._shared_program.cache_info().currsize == kept
