"""Many matches side by side are the same matches as one at a time, under both engines."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from understudy.arena.compiling import compiled_duel
from understudy.core import chance
from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY, Array, Ops
from understudy.games.base import Bot
from understudy.games.moments import Moment, RewardSet
from understudy.match.duel import Duel, begin
from understudy.match.evaluate import judge
from understudy.match.live_match import EVALUATION, match_seeds
from understudy.match.players import BotPlayer, Player, PolicyPlayer
from understudy.match.series import Engine, Stride, plain, play
from understudy.policy.mlp import Mlp
from understudy.policy.policy import Policy, untrained
from understudy.policy.spec import AnyNetwork, PolicySpec
from understudy.policy.transformer import Transformer
from understudy.testing import check_game

from .tug import Moody, Steady, Tug

GAME = Tug()
MATCHES = 12
SEEDS = match_seeds(0, np.arange(MATCHES), purpose=EVALUATION)
SECOND = np.arange(MATCHES) % 2 == 1


def trained(network: AnyNetwork, seed: int) -> Policy:
    """Fresh weights choose almost evenly; these have opinions, which change within a match."""
    policy = untrained(PolicySpec(GAME.features, GAME.actions, network), seed)
    for name in ("policy.w", "policy.b"):
        noise = np.random.default_rng(seed).normal(size=policy.weights.params[name].shape)
        policy.weights.params[name] = noise.astype(np.float32)
    return policy


ATTENTIVE = trained(Transformer(width=8, heads=2, layers=1, feed=8, window=4), seed=1)
PLAIN = trained(Mlp((8,)), seed=2)
OPPONENTS: dict[str, Policy | Bot] = {"moody": Moody(), "plain": PLAIN, "heave": Steady(2)}


def player(one: Policy | Bot) -> Player:
    return PolicyPlayer(one) if isinstance(one, Policy) else BotPlayer(one)


def heaved(ops: Ops, moment: Moment) -> Array:
    """Who heaved in this frame."""
    return (moment.actions[:, 0] == 2).astype(ops.xp.float32)


def alone(
    seed: int, sides: tuple[Policy | Bot, Policy | Bot]
) -> tuple[float, float, list[tuple[int, int]]]:
    """One match, one frame after the other: the first side's score and return, and what both
    did."""
    state = GAME.start(NUMPY, np.array([seed], np.uint32))
    chances = (np.array([seed], np.uint32), chance.fold(np.array([seed], np.uint32), 1))
    memories = [one.begin() if isinstance(one, Policy) else None for one in sides]
    done: list[tuple[int, int]] = []
    returned = 0.0
    while not GAME.over(NUMPY, state)[0]:
        obs, legal = GAME.observe(NUMPY, state), GAME.legal(NUMPY, state)
        actions = []
        for slot, one in enumerate(sides):
            if isinstance(one, Policy):
                choice = one.act(obs[slot].T, memories[slot], legal=legal[slot].T)
                memories[slot] = choice.memory
                actions.append(int(choice.actions[0, 0]))
            else:
                frame = np.array([len(done)], np.int32)
                actions.append(int(one.act(NUMPY, obs[slot], chances[slot], frame)[0, 0]))
        before = state
        state = GAME.step(NUMPY, state, np.array(actions, np.int32).reshape(2, 1, 1))
        returned += float(GAME.reward(NUMPY, before, state)[0, 0])
        done.append((actions[0], actions[1]))
    return float(GAME.score(NUMPY, state)[0, 0]), returned, done


def test_the_toy_conforms() -> None:
    check_game(GAME)


@pytest.mark.parametrize("engine", [plain, compiled_duel])
def test_side_by_side_is_one_at_a_time(engine: Engine) -> None:
    """A policy with memory against a bot with noise, another policy, and a bot without."""
    reports = judge(
        GAME,
        player(ATTENTIVE),
        {name: player(one) for name, one in OPPONENTS.items()},
        matches=MATCHES,
        seed=0,
        engine=engine,
        measures={"heaves": heaved},
    )
    seen = set()
    for name, opponent in OPPONENTS.items():
        scores, returns, paths = [], [], []
        for seed, second in zip(SEEDS.tolist(), SECOND, strict=True):
            sides = (opponent, ATTENTIVE) if second else (ATTENTIVE, opponent)
            score, returned, path = alone(seed, sides)
            scores.append(-score if second else score)
            returns.append(-returned if second else returned)
            paths.append(tuple(pair[::-1] if second else pair for pair in path))
        tally = reports[name].tally
        assert (tally.wins, tally.draws, tally.losses) == tuple(
            scores.count(one) for one in (1.0, 0.0, -1.0)
        )
        assert reports[name].mean_frames == np.mean([len(path) for path in paths])
        assert reports[name].distinct == len(set(paths))
        assert reports[name].mean_return == pytest.approx(np.mean(returns), abs=1e-5)
        heaves = [sum(mine == 2 for mine, _ in path) for path in paths]
        assert reports[name].measures == {"heaves": np.mean(heaves)}
        seen |= set(scores)
    assert seen == {1.0, 0.0, -1.0}  # else the toy is too easy to tell anything


def test_both_engines_play_the_same_matches() -> None:
    opponents = ((player(PLAIN), 7), (player(Moody()), 5))
    duel = Duel(GAME, PolicyPlayer(ATTENTIVE, sampled=True), opponents)
    ends = [play(duel, SEEDS, SECOND, engine=engine) for engine in (plain, compiled_duel)]
    for field in ("score", "frames", "path"):
        ours, theirs = (np.asarray(getattr(end, field)) for end in ends)
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs), field


def test_a_draw_is_not_a_win_and_copies_of_one_match_are_seen() -> None:
    reports = judge(
        GAME,
        player(Steady(1)),
        {"same": player(Steady(1)), "idle": player(Steady(0))},
        matches=MATCHES,
        seed=0,
    )
    same, idle = reports["same"], reports["idle"]
    assert (same.tally.draws, same.tally.win_rate) == (MATCHES, 0.0)
    assert (same.distinct, same.mean_frames) == (1, GAME.max_frames)
    assert idle.tally.wins == MATCHES  # from either slot
    assert 1 < idle.distinct < MATCHES  # the start decides how long it takes, and nothing else
    assert idle.as_dict()["distinct"] == idle.distinct
    assert idle.as_dict()["interval"] == [0.7575, 1.0]


def test_two_copies_of_one_bot_have_chances_of_their_own() -> None:
    report = judge(GAME, player(Moody()), {"moody": player(Moody())}, matches=40, seed=0)["moody"]
    assert report.distinct == 40
    assert report.tally.wins and report.tally.losses


@pytest.mark.parametrize("sampled", [False, True])
def test_who_else_is_judged_changes_nothing(sampled: bool) -> None:
    def against(*names: str, seed: int = 0) -> dict[str, Any]:
        chosen = {name: player(OPPONENTS[name]) for name in names}
        return judge(GAME, PolicyPlayer(PLAIN, sampled=sampled), chosen, matches=MATCHES, seed=seed)

    lone = against("moody")["moody"]
    assert against("heave", "moody")["moody"] == lone == against("moody", "plain")["moody"]
    assert against("moody", seed=1) != against("moody")


def test_matches_that_are_over_make_room() -> None:
    """Columns go when half are over; who is left plays on as if nothing had happened."""
    sizes: list[int] = []

    def watched(duel: Duel) -> Stride:
        sizes.append(sum(count for _, count in duel.opponents))
        return plain(duel)

    everyone = (Steady(0), ATTENTIVE, Moody())
    opponents = tuple((player(one), MATCHES) for one in everyone)
    duel = Duel(GAME, player(Moody()), opponents, RewardSet.of({"heaves": heaved}))
    seeds, second = np.tile(SEEDS, 3), np.tile(SECOND, 3)
    fewer = play(duel, seeds, second, engine=watched, few=4)
    assert sizes[0] == 3 * MATCHES
    assert sizes[1:] and all(2 * after <= before for before, after in pairwise(sizes))
    for ours, theirs in zip(fewer, play(duel, seeds, second), strict=True):
        assert np.array_equal(ours, theirs)


def test_draws_differ_from_the_likeliest_action() -> None:
    paths = [
        play(Duel(GAME, one, ((player(Steady(1)), MATCHES),)), SEEDS, SECOND).path
        for one in (PolicyPlayer(PLAIN), PolicyPlayer(PLAIN, sampled=True))
    ]
    assert (paths[0] != paths[1]).mean() > 0.5  # a short match can go the same way


def test_progress_ends_at_one_and_a_wrong_count_is_told() -> None:
    shares: list[float] = []
    show: Callable[[float], None] = shares.append
    duel = Duel(GAME, player(Steady(1)), ((player(Steady(1)), MATCHES),))
    play(duel, SEEDS, SECOND, show=show)
    assert shares[-1] == 1.0 and shares == sorted(shares)
    half: NDArray = SEEDS[:6]
    with pytest.raises(ValueError, match="6 seeds for 12 matches"):
        begin(duel, half, SECOND[:6])
