"""A benchmark is compiled for once, however often the policy changes."""

from __future__ import annotations

from typing import Any

from understudy.arena.compiling import compiled_duel
from understudy.core.ops import Array, Ops
from understudy.games.brawl import Brawl, bots
from understudy.match.evaluate import judge
from understudy.match.players import BotPlayer, PolicyPlayer
from understudy.policy.mlp import Mlp
from understudy.policy.policy import untrained
from understudy.policy.spec import PolicySpec
from understudy.training.arena_learning import benchmark


class Counting(Brawl):
    """Brawl that counts how often its rules are read."""

    read = 0

    def step(self, ops: Ops, state: Any, actions: Array) -> Any:
        Counting.read += 1
        return super().step(ops, state, actions)


def test_the_second_benchmark_does_not_compile() -> None:
    game = Counting()
    spec = PolicySpec(game.features, game.actions, Mlp((8,)))
    known = {name: bots()[name] for name in ("constant", "based")}

    def one(seed: int) -> Any:
        policy = untrained(spec, seed)
        return benchmark(game, policy, known, matches=4, seed=1, engine=compiled_duel)

    first = one(0)
    read = Counting.read
    assert one(1) != first and Counting.read == read
    assert list(first) == ["constant", "based"]
    based = first["based"]
    assert based.tally.matches == 4 and based.measures["falls"] > 0
    assert based.measures["damage_taken"] > based.measures["damage_dealt"]
    agent, opponents = (
        PolicyPlayer(untrained(spec, 0), sampled=True),
        {"based": BotPlayer(known["based"])},
    )
    again = judge(Brawl(), agent, opponents, matches=4, seed=1)["based"]
    assert again.tally == based.tally, "who else is met changes nothing"
