"""The real learner behind a strategist: what is rewarded becomes more likely."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax")

from adapters.sc2.ducks import STRATEGIES, DuckBot, unit
from understudy.bot.understudy import RESULT_REWARDS, Understudy
from understudy.core.clock import LogicalClock
from understudy.core.config import Config, with_values
from understudy.core.spaces import Discrete
from understudy.policy.mlp import Mlp
from understudy.policy.policy import Policy
from understudy.policy.spec import PolicySpec
from understudy.registry.run_folder import RunFolder
from understudy.run.play import LockstepLearner
from understudy.sc2 import FEATURES, EnemySightings, Strategist, features

DECISIONS, MATCHES = 8, 80


def rushed(bot: DuckBot) -> DuckBot:
    """The same moment with an enemy army in sight."""
    bot.enemy_units = [unit("MARINE", 900 + number, (20.0, 20.0), 45) for number in range(20)]
    return bot


def probability(policy: Policy, bot: DuckBot, strategy: str) -> float:
    """How likely a strategy is, over many draws."""
    sightings = EnemySightings()
    sightings.update(bot)
    draws = 400
    row = np.array(features(bot, sightings.report(0)), np.float32)
    uniforms = np.random.default_rng(1).random((draws, 1), dtype=np.float32)
    seen = np.repeat(row[None], draws, axis=0)
    chosen = policy.act(seen, policy.begin(draws), uniforms=uniforms).actions[:, 0]
    return float((chosen == STRATEGIES.index(strategy)).mean())


def test_a_rewarded_strategy_becomes_more_likely_where_it_was_rewarded(tmp_path: Path) -> None:
    """DEFENSIVE wins against an army in sight, ECONOMY where there is none: the result says so."""
    spec = PolicySpec(FEATURES, Discrete(STRATEGIES), Mlp(widths=(16,)))
    config = with_values(
        Config(),
        {"report.status_every_s": 0.0, "learner.batch_matches": 8, "learner.seed": 3},
    )
    clock = LogicalClock()
    folder = RunFolder.open(tmp_path, spec=spec, config=config, clock=clock)
    learner = LockstepLearner(folder)
    mind = Understudy(folder, mode="learn", learner=learner, result_rewards=RESULT_REWARDS, seed=3)
    learner.mind = mind
    with mind:
        before = mind.policy
        for number in range(MATCHES):
            danger = number % 2 == 1
            bot = rushed(DuckBot()) if danger else DuckBot()
            strategist = Strategist(bot, mind, STRATEGIES)
            strategist.start()
            right = 0
            for decision in range(DECISIONS):
                bot.state.game_loop = 88 * decision
                followed = strategist.step(fallback="TECH")
                good = followed == ("DEFENSIVE" if danger else "ECONOMY")
                strategist.reward(1.0 if good else -1.0)
                right += good
            strategist.end("Victory" if right > DECISIONS / 2 else "Defeat")
            clock.now += 60.0
        after = mind.policy
    assert after.version > before.version == 0
    calm, danger_now = DuckBot(), rushed(DuckBot())
    for bot, strategy in ((danger_now, "DEFENSIVE"), (calm, "ECONOMY")):
        now, then = (probability(policy, bot, strategy) for policy in (after, before))
        assert now > then + 0.2, f"{strategy}: {then:.0%}, then {now:.0%}"
    assert probability(after, calm, "DEFENSIVE") < probability(after, danger_now, "DEFENSIVE")
