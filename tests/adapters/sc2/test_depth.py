"""The stand-in has depth: rules win about half, no strategy alone much more, looking wins.

Without a socket, over all builds; and a few matches through the protocol, which must go as the
same matches without it go.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("sc2")

from adapters.sc2.ducks import open_mind
from understudy.adapters.sc2.stand_in import players, rules
from understudy.adapters.sc2.stand_in.balance import FIRST_SEED, SCRIPTED, mean, win_rates
from understudy.adapters.sc2.stand_in.rules import Kind, Side
from understudy.sc2 import contained, play_async, stand_in

with contained():
    from sc2.data import Race
    from sc2.main import play_from_websocket
    from sc2.player import Bot

from adapters.sc2.matches import NO_PORTS
from understudy.adapters.sc2.template.bot import STRATEGIES, LearningBot

SEEDS = FIRST_SEED + 10_000


def rate(name: str, matches: int) -> float:
    return mean(win_rates(SCRIPTED[name], matches=matches, first_seed=SEEDS))


def test_the_rules_win_about_half() -> None:
    assert 0.38 <= rate("rules", 25) <= 0.62


@pytest.mark.parametrize("strategy", players.STRATEGIES)
def test_no_strategy_alone_wins_more_than_six_in_ten(strategy: str) -> None:
    assert rate(strategy, 15) <= 0.6


def test_looking_at_the_opponent_wins_nearly_always() -> None:
    assert rate("scripted", 30) >= 0.95


def test_matches_have_some_twenty_decisions() -> None:
    counts = [
        players.play(SCRIPTED[name], SEEDS + seed)[1]
        for name in ("rules", "scripted")
        for seed in range(12)
    ]
    assert 15 <= sum(counts) / len(counts) <= 30
    assert max(counts) <= 30


@pytest.mark.parametrize("build", players.BUILDS)
def test_the_template_plays_as_its_rules_do_without_a_socket(tmp_path: Path, build: str) -> None:
    """The same seed, strategies as commands of a `BotAI` and as purchases: the same course."""

    async def through_the_protocol(bot: LearningBot) -> str:
        scenario = stand_in.Scenario(seed=SEEDS, build=build)
        async with stand_in.serving(scenario) as address, stand_in.connected(address) as socket:
            game = play_from_websocket(socket, Bot(Race.Zerg, bot), False, NO_PORTS)
            result = await play_async(game, bot.strategist)
        return str(getattr(result, "name", ""))

    result, decisions = players.play(players.template_rules, SEEDS, build)
    with open_mind(tmp_path, actions=STRATEGIES) as mind:
        bot = LearningBot(mind)
        name = asyncio.run(through_the_protocol(bot))
        match = bot.strategist.match
        assert match is not None
    if build in ("Timing", "Macro"):  # the others are close
        assert name == result
    assert abs(match.decisions - decisions) <= 8


# --- the rules -----------------------------------------------------------------------------------


def test_both_sides_live_under_the_same_rules() -> None:
    """Two equal players: the match stays symmetric, and is a tie."""
    game = rules.start()
    for step in range(200):
        strategy = players.STRATEGIES[step // 50]
        ours, theirs = (players.ordered(side, strategy, game.loop) for side in game.sides)
        game = rules.advance(game._replace(sides=(ours, theirs)), 8)
        assert game.sides[0] == game.sides[1]


@pytest.mark.parametrize("loops", [1, 4, 8, 10])
def test_time_passes_alike_in_steps_of_any_length(loops: int) -> None:
    game = rules.start()
    while game.loop < 240:
        game = rules.advance(game, loops)
    side = game.sides[0]
    assert game.loop == 240
    assert side.minerals == pytest.approx(100 + 12 * rules.INCOME * 240)


@pytest.mark.parametrize("kind", list(rules.PRICES))
def test_a_purchase_is_paid_and_arrives(kind: Kind) -> None:
    side = Side(minerals=1000.0, gas=1000.0, larvae=5.0, laboratories=int(kind == "upgrade"))
    before = rules.owned(side, kind)
    assert rules.can_buy(side, kind)
    bought = rules.buy(side, kind, 0)
    price = rules.PRICES[kind]
    assert bought.minerals == side.minerals - price.minerals
    assert bought.larvae == side.larvae - price.larvae
    assert rules.making(bought, kind) == 1
    game = rules.MatchState(0, (bought, Side()))
    game = rules.advance(game, price.loops)
    assert rules.owned(game.sides[0], kind) >= before + 1
    assert rules.making(game.sides[0], kind) == 0


def test_nothing_is_bought_without_means() -> None:
    poor = Side(minerals=10.0)
    assert not any(rules.can_buy(poor, kind) for kind in rules.PRICES)
    full = Side(minerals=1000.0, workers=16.0, supply_cap=16)
    assert not rules.can_buy(full, "worker")
    assert rules.can_buy(full, "supply")
    assert not rules.can_buy(Side(minerals=1000.0, gas=1000.0), "upgrade"), "no laboratory"
    assert rules.short_of_minerals(Side(minerals=10.0), "hall")
    assert not rules.short_of_minerals(Side(minerals=10.0, halls=3.0), "hall")


def test_the_larger_army_wins_and_the_base_falls() -> None:
    ours = rules.send(Side(army=30.0, front=0.95), 1.0, pulls=False)
    game = rules.advance(rules.MatchState(0, (ours, Side(army=5.0))), 2000)
    assert rules.outcome(game) == "Victory"
    assert game.sides[0].army > 20
    swapped = rules.advance(rules.MatchState(0, (Side(army=5.0), ours)), 2000)
    assert rules.outcome(swapped) == "Defeat"
