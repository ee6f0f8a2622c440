"""A round robin is the matches that `judge` plays, all at once."""

from __future__ import annotations

import numpy as np
import pytest
from match.tug import Moody, Steady, Tug
from policy.makers import TRANSFORMER

from understudy.games import catalog
from understudy.league import anchors
from understudy.league.anchors import KNOWN, anchors_of, known_anchors, measured
from understudy.league.ratings import ORIGIN, Rating
from understudy.league.round_robin import PlayerGroups, round_robin
from understudy.match.evaluate import judge
from understudy.match.players import BotPlayer, Player, PolicyPlayer
from understudy.match.tally import Tally, wilson
from understudy.policy.policy import untrained
from understudy.policy.spec import PolicySpec

GAME = Tug()
SPEC = PolicySpec(GAME.features, GAME.actions, TRANSFORMER)
PLAYERS: dict[str, Player] = {
    "puller": BotPlayer(Steady(1)),
    "one": PolicyPlayer(untrained(SPEC, 1)),
    "moody": BotPlayer(Moody()),
    "two": PolicyPlayer(untrained(SPEC, 2)),
    "three": PolicyPlayer(untrained(SPEC, 3), sampled=True),
    "four": PolicyPlayer(untrained(SPEC, 4)),
}


def test_every_pair_as_it_would_be_judged_alone() -> None:
    shown: list[float] = []
    payoffs = round_robin(GAME, PLAYERS, matches=7, seed=3, show=shown.append)
    assert payoffs.names == tuple(PLAYERS)
    assert shown == sorted(shown) and shown[-1] <= 1.0
    for i, name in enumerate(PLAYERS):
        for j, other in enumerate(PLAYERS):
            if i < j:
                alone = judge(GAME, PLAYERS[name], {other: PLAYERS[other]}, matches=7, seed=3)
                assert payoffs.tally(i, j) == alone[other].tally
                assert payoffs.distinct[i, j] == payoffs.distinct[j, i] == alone[other].distinct


def test_policies_of_one_network_act_together() -> None:
    who = np.array([1, 4, 0, 1, 3, 5, 4, 1])
    groups = PlayerGroups.of(list(PLAYERS.values()), who)
    kinds = [
        [list(PLAYERS.values()).index(one) for one in group.players] for group in groups.groups
    ]
    assert kinds == [[0], [1, 3, 5], [4]]
    columns = groups.groups[1].columns  # padded with their own
    assert [sorted(set(row)) for row in columns.tolist()] == [[0, 3, 7], [4], [5]]
    assert columns.shape == (3, 3)


def test_one_player_is_no_round_robin() -> None:
    with pytest.raises(ValueError, match="two players"):
        round_robin(GAME, {"puller": PLAYERS["puller"]}, matches=1, seed=0)


def test_bots_are_rated_by_playing() -> None:
    found = measured(GAME, {"rests": Steady(0), "moody": Moody(), "pulls": Steady(1)}, matches=20)
    assert found["rests"].mu < found["moody"].mu < found["pulls"].mu
    assert found == measured(
        GAME, {"rests": Steady(0), "moody": Moody(), "pulls": Steady(1)}, matches=20
    )
    assert measured(GAME, {"alone": Steady(0)}) == {"alone": ORIGIN}


def test_the_games_of_the_package_have_their_anchors_at_once() -> None:
    found = anchors_of("brawl", {"delay": "0"})
    assert found == known_anchors("brawl", {})
    assert list(found) == list(catalog.bots("brawl"))
    assert found["random"].mu < found["constant"].mu < found["clockwork"].mu < found["based"].mu
    assert all(rating.sigma < 3.0 for rating in found.values())
    assert known_anchors("brawl", {"delay": "6"}) is None  # bots that see late are other bots
    assert known_anchors("swarm", {}) is None


def test_other_options_are_played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anchors, "measured", lambda game, bots, **rest: {"played": Rating()})
    assert anchors_of("brawl", {"delay": "6"}) == {"played": Rating()}


def test_the_results_that_are_kept_are_those_that_are_played() -> None:
    """One pair whose matches are short, with other seeds; all of them under `make soak`."""
    ((rules, results),) = KNOWN.items()
    assert rules == ("brawl", catalog.make("brawl").version)
    bots = catalog.bots("brawl")
    pair = ("constant", "based")
    players = {name: BotPlayer(bots[name]) for name in pair}
    tally = round_robin(catalog.make("brawl"), players, matches=10, seed=1).tally(0, 1)
    low, high = wilson(tally.losses, tally.matches, z=3.0)
    assert low < results[pair][2] / Tally(*results[pair]).matches <= high


@pytest.mark.soak
def test_all_results_that_are_kept() -> None:
    results = KNOWN["brawl", catalog.make("brawl").version]
    players = {name: BotPlayer(bot) for name, bot in catalog.bots("brawl").items()}
    payoffs = round_robin(catalog.make("brawl"), players, matches=200, seed=anchors.SEED)
    assert payoffs.pairs().keys() == results.keys()
    for pair, counts in payoffs.pairs().items():
        # Another machine or engine rounds otherwise, which turns a match or two of a pair.
        turned = [abs(now - then) for now, then in zip(counts, results[pair], strict=True)]
        assert max(turned) <= 2, (pair, counts)
