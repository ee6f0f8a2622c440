"""The benchmark of a checkpoint: a policy that is still learning, frozen for a few matches.

It is called again and again with other weights. No columns are dropped as matches end, so that
every call runs the very same program, and only the first one compiles it.
"""

from __future__ import annotations

from collections.abc import Mapping

from understudy.games.base import Bot, Game
from understudy.match.evaluate import judge
from understudy.match.players import BotPlayer, PolicyPlayer
from understudy.match.series import Engine
from understudy.match.tally import Report
from understudy.policy.policy import Policy


def benchmark(
    game: Game,
    policy: Policy,
    bots: Mapping[str, Bot],
    *,
    matches: int,
    seed: int,
    engine: Engine,
) -> dict[str, Report]:
    """`matches` against each bot with actions drawn as it plays, on seeds that nobody trains on."""
    opponents = {name: BotPlayer(bot) for name, bot in bots.items()}
    return judge(
        game,
        PolicyPlayer(policy, sampled=True),
        opponents,
        matches=matches,
        seed=seed,
        engine=engine,
        few=matches * len(bots),
    )
