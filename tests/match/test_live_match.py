"""One live match and many frozen ones are the same game."""

from __future__ import annotations

import numpy as np

from understudy.core.ops import NUMPY, Tree
from understudy.games import catalog
from understudy.match.evaluate import evaluate
from understudy.match.live_match import EVALUATION, TRAINING, LiveMatch, match_seeds
from understudy.match.players import BotPlayer, PolicyPlayer
from understudy.policy.mlp import Mlp
from understudy.policy.policy import Policy, untrained
from understudy.policy.spec import PolicySpec
from understudy.policy.transformer import Transformer

GAME = catalog.make("swarm", difficulty="easy")
SEEDS = match_seeds(1, np.arange(6), purpose=EVALUATION)


def test_seeds_differ_by_match_run_and_purpose() -> None:
    indices = np.arange(20_000)
    drawn = [
        match_seeds(seed, indices, purpose=purpose)
        for seed in (0, 1, 2**32, 2**40 + 1)
        for purpose in (TRAINING, EVALUATION)
    ]
    assert all(one.dtype == np.uint32 and one.shape == (20_000,) for one in drawn)
    assert np.array_equal(drawn[0], match_seeds(0, indices, purpose=TRAINING))
    for index, one in enumerate(drawn):
        assert len(np.unique(one)) > 19_990  # 2^32 is not infinite
        for other in drawn[index + 1 :]:
            assert (one == other).mean() < 0.001
    assert match_seeds(0, np.array([7]), purpose=TRAINING)[0] == drawn[0][7]


def live(seed: int, choose: object) -> tuple[str, int, float]:
    live_match = LiveMatch(GAME, int(seed))
    frames, total = 0, 0.0
    while not live_match.over:
        assert live_match.observe().shape == (len(GAME.features),)
        assert live_match.observe().dtype == np.float32
        total += live_match.act(choose(live_match, frames))  # type: ignore[operator]
        frames += 1
    return live_match.outcome(), frames, total


def test_the_rules_play_alike_alone_and_side_by_side() -> None:
    rules = catalog.bots("swarm")["rules"]
    outcomes = []
    for seed in SEEDS:
        one = np.array([seed], np.uint32)

        def choose(live_match: LiveMatch, frame: int, one: object = one) -> object:
            seen = live_match.observe()[:, None]
            return rules.act(NUMPY, seen, one, np.array([frame], np.int32))[:, 0]

        outcomes.append(live(seed, choose)[0])
    tally = evaluate(GAME, BotPlayer(rules), SEEDS)
    assert tally.wins == outcomes.count("victory")
    assert tally.losses == outcomes.count("defeat")
    assert tally.draws == outcomes.count("tie")
    assert tally.matches == len(SEEDS)


def test_a_policy_plays_alike_alone_and_side_by_side() -> None:
    """With memory as well: each match of a batch has its own."""
    for network in (Mlp((8,)), Transformer(width=8, heads=2, layers=1, feed=8, window=4)):
        policy = untrained(PolicySpec(GAME.features, GAME.actions, network), seed=3)
        outcomes = []
        for seed in SEEDS[:3]:
            memory = [policy.begin()]

            def choose(
                live_match: LiveMatch,
                frame: int,
                policy: Policy = policy,
                memory: list[Tree] = memory,
            ) -> object:
                choice = policy.act(
                    live_match.observe()[None], memory[0], legal=live_match.legal()[None]
                )
                memory[0] = choice.memory
                return choice.actions[0]

            outcomes.append(live(seed, choose)[0])
        tally = evaluate(GAME, PolicyPlayer(policy), SEEDS[:3])
        assert tally.wins == outcomes.count("victory")
        assert tally.losses == outcomes.count("defeat")


def test_evaluation_repeats_itself() -> None:
    policy = untrained(PolicySpec(GAME.features, GAME.actions, Mlp((8,))), seed=3)
    one, two = (evaluate(GAME, PolicyPlayer(policy), SEEDS) for _ in range(2))
    assert one == two


def test_the_same_seed_is_the_same_match() -> None:
    first, again, other = (live(seed, lambda live_match, frame: frame % 5) for seed in (5, 5, 6))
    assert first == again
    assert first != other
    assert LiveMatch(GAME, 5).tags == LiveMatch(GAME, 5).tags
    assert LiveMatch(GAME, 5).tags["difficulty"] == "easy"
