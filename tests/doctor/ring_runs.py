"""Runs of a bot for the tests of the doctor: played by a real bot with a real learner in lockstep,
or, where only counts matter, written by the writers that bot and learner have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from understudy.bot.match import Match
from understudy.bot.understudy import Understudy
from understudy.core.clock import LogicalClock
from understudy.core.config import Config, with_values
from understudy.core.spaces import Discrete
from understudy.policy.mlp import Mlp
from understudy.policy.spec import PolicySpec
from understudy.registry.run_folder import RunFolder
from understudy.run.play import LockstepLearner
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Journal

ACTIONS = ("left", "right", "wait")
SPEC = PolicySpec(("ball", "luck"), Discrete(ACTIONS), Mlp(widths=(16,)))
SHOTS = 16
CHANCE = 6
QUICK = {
    "learner.learning_rate": 5e-3,
    "learner.learning_rate_max": 1e-2,
    "learner.batch_matches": 8,
    "learner.replay_matches": 0,
    "learner.epochs": 2,
    "learner.minibatches": 2,
    "learner.publish_interval_s": 0.0,
    "learner.gather_s": 0.0,
}
"""One shape for all tests: compiling is what takes the time."""

Rewards = Callable[[str, float], float]


def saved(action: str, ball: float) -> float:
    """What a goalkeeper earns: 1 for a dive to the right side, -1 for any other decision."""
    return 1.0 if action == ("left" if ball < 0.0 else "right") else -1.0


class Goalkeeper:
    """A bot that plays shoot-outs in one process, and learns in lockstep unless told otherwise."""

    def __init__(
        self, root: Path, settings: Mapping[str, Any] | None = None, *, learns: bool = True
    ) -> None:
        config = with_values(Config(), {**QUICK, **(settings or {})})
        self.folder = RunFolder.open(root, spec=SPEC, config=config, clock=LogicalClock())
        learner = LockstepLearner(self.folder) if learns else None
        self.mind = Understudy(
            self.folder,
            mode="learn",
            learner=learner or "off",
            result_rewards={"victory": 0.0, "defeat": 0.0, "tie": 0.0, "aborted": 0.0},
            seed=config.learner.seed,
        )
        if learner is not None:
            learner.mind = self.mind

    def play(
        self,
        matches: int,
        *,
        needed: int = 11,
        reward: Rewards = saved,
        luck: Callable[[np.random.Generator], float] = lambda rng: float(rng.uniform(-1, 1)),
        outcome: str = "",
        result: Mapping[str, float] | None = None,
        legal: Sequence[bool] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """So many saves win: by default more than one side alone gives, `CHANCE` is what an
        untrained goalkeeper has half of the time. `result` adds to the last reward."""
        for seed in range(matches):
            rng = np.random.default_rng(seed)
            with self.mind.match(**(tags or {})) as match:
                saves = self._shots(match, rng, reward, luck, legal)
                ended = outcome or ("victory" if saves >= needed else "defeat")
                match.reward((result or {}).get(ended, 0.0))
                match.finish(ended)

    def _shots(
        self,
        match: Match,
        rng: np.random.Generator,
        reward: Rewards,
        luck: Callable[[np.random.Generator], float],
        legal: Sequence[bool] | None,
    ) -> int:
        saves = 0
        for _ in range(SHOTS):
            ball = float(rng.uniform(-1, 1))
            action = str(match.decide([ball, luck(rng)], legal=legal))
            match.reward(reward(action, ball))
            saves += saved(action, ball) > 0.0
        return saves

    def close(self) -> None:
        self.mind.close()


class WrittenRing:
    """The run folder of a bot whose matches and batches are given."""

    def __init__(self, root: Path, settings: Mapping[str, Any] | None = None) -> None:
        self.clock = LogicalClock(tick_s=1.0)
        config = with_values(Config(), settings or {})
        self.folder = RunFolder.open(root, spec=SPEC, config=config, clock=self.clock)
        (root / "buffer").mkdir()
        self.bot = Journal(self.folder.journal, "bot", self.clock)
        self.learner = Journal(self.folder.journal, "learner", self.clock)
        self.bot.write(ev.BotStarted(pid=1, mode="learn", learner="process", version=0))
        self._count = self._version = 0

    def matches(
        self,
        count: int,
        *,
        won: float,
        reward: Callable[[float], float] = lambda won: won,
        outcome: str = "",
    ) -> None:
        """So many matches with this win rate, met exactly and evenly; `reward` of 1 or -1."""
        for number in range(count):
            self._count += 1
            victory = int((number + 1) * won) > int(number * won)
            self.bot.write(
                ev.MatchFinished(
                    id=str(self._count),
                    outcome=outcome or ("victory" if victory else "defeat"),
                    decisions=10,
                    reward=reward(1.0 if victory else -1.0),
                    version=self._version,
                    seconds=1.0,
                    saved=True,
                )
            )

    def batches(self, count: int, **figures: Any) -> None:
        """Batches with the figures of a healthy run, but for those given; a version each."""
        healthy = {
            "loss": 0.01, "policy_loss": 0.01, "value_loss": 0.02, "entropy": 0.8, "kl": 0.008,
            "explained_variance": 0.8, "clip_share": 0.1, "gradient_norm": 0.3,
            "learning_rate": 5e-4, "samples_per_insert": 6.0, "behaviour_kl": 0.1,
        }  # fmt: skip
        for _ in range(count):
            self._version += 1
            self.learner.write(
                ev.BatchTrained(
                    matches=8, replayed=0, steps=80, seconds=0.1, **{**healthy, **figures}
                )
            )
            self.learner.write(
                ev.VersionPublished(version=self._version, parent=None, matches=8, promoted=True)
            )
