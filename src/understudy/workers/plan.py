"""What is played in environments, as a value that travels to worker processes, and who plays it.

    plan = RolloutPlan(environment="pettingzoo:my_game", games=16, spec=spec, seed=7, ...)
    rollout = plan.rollout(range(4))          # environments 0 to 3 of the 16, in this process

Everything that is drawn follows from the plan and the number of an environment, so that the
environments of a plan play the same wherever each of them is played (`adapters.environments.sides`
says how).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from understudy.adapters.environments.bots import load_bots
from understudy.adapters.environments.factory import maker
from understudy.adapters.environments.matches import EnvironmentMatches
from understudy.adapters.environments.parallel import Environments
from understudy.match.live_match import TRAINING, match_seeds
from understudy.policy.spec import PolicySpec
from understudy.workers.rollout import EnvironmentRollout, SharedRollout, SideRollout


class RolloutPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All environments of a session, and how they are played."""

    environment: str
    options: dict[str, Any] = {}
    spec: PolicySpec
    games: int
    """Environments."""
    sides: bool
    """Whether the policy plays one side of each, and opponents the others."""
    bots: tuple[str, ...] = ()
    """Files and modules with scripted bots."""
    noise_steps: int = 1
    seed: int = 0
    start: int = 0
    """The steps of the run when the session began: it plays other matches than those before."""

    def with_bots(self, bots: tuple[str, ...]) -> RolloutPlan:
        """The same, with its bots found elsewhere."""
        return msgspec.structs.replace(self, bots=bots)

    def rollout(
        self,
        numbers: Sequence[int],
        *,
        make: Callable[[], Any] | None = None,
        restarts: int = 0,
    ) -> EnvironmentRollout:
        """Play these environments, consecutive numbers. `restarts`: how often a worker was started
        again: it plays other matches than those that were lost."""
        make = make or maker(self.environment, **self.options)
        numbers = list(numbers)
        seeds = match_seeds(
            self.seed, np.array(numbers) + self.start, purpose=TRAINING, series=restarts
        )
        chance = (self.seed * 1_000_003 + self.start) * 1_009 + restarts
        if self.sides:
            matches = EnvironmentMatches(
                make, numbers, total=self.games, features=self.spec.features
            )
            return SideRollout(
                matches,
                seed=chance,
                seeds=seeds.tolist(),
                bots=load_bots(self.bots),
                noise_steps=self.noise_steps,
            )
        environments = Environments(make, len(numbers), seeds, features=self.spec.features)
        return SharedRollout(
            environments,
            seed=chance,
            noise_steps=self.noise_steps,
            first=numbers[0],
            total=self.games,
        )
