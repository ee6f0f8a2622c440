"""The frozen matches at the end of a session: mean rewards, and win rates of zero-sum environments.

In self-play the rewards of a zero-sum match add up to 0 however well the policy plays. Its strength
shows only against other players: a random one, scripted bots, and its own past.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from understudy.adapters.environments.bots import load_bots
from understudy.adapters.environments.factory import maker
from understudy.adapters.environments.matches import EnvironmentMatches, FrozenMatch, play_series
from understudy.adapters.environments.sides import (
    RANDOM,
    PolicySide,
    RandomSide,
    ScriptedSide,
    SidePlayer,
)
from understudy.core.errors import FileFormatError
from understudy.league.snapshots import evenly, spread
from understudy.match.live_match import EVALUATION, match_seeds
from understudy.match.tally import Tally
from understudy.policy.policy import Policy
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import Versions
from understudy.training.environments.session import (
    EnvironmentSession,
    Evaluation,
    EvaluationProgress,
    zero_sum,
)

_SNAPSHOTS = 3
"""Earlier versions, or snapshots of a league, that are met, spread evenly."""


def evaluate_environment(
    session: EnvironmentSession,
    policy: Policy,
    folder: RunFolder,
    *,
    show: Callable[[EvaluationProgress], None] = lambda progress: None,
) -> Evaluation:
    """Play `session.evaluate` frozen matches on seeds that nothing was learned from.

    Without a league the policy plays every side, with its likeliest actions. Where these matches
    were zero-sum, as many follow against a random player, and as many against earlier versions,
    shared among them. With a league all matches are against others: as many against each scripted
    opponent, and as many against its snapshots.
    """
    began, asked = time.monotonic(), session.evaluate
    judging = _Judging(session, policy, show)
    matches: list[FrozenMatch] = []
    if not session.league:
        matches = judging.alone(asked)
    finished = tuple(one.finished for one in matches)
    met: dict[str, Tally] = {}
    if session.league or zero_sum(finished):
        met[RANDOM] = judging.against(RANDOM, judging.random, asked)
        for name, bot in load_bots(session.bots).items():
            scripted = ScriptedSide(name, bot, judging.spaces, seed=judging.seed)
            met[name] = judging.against(name, scripted, asked)
        past = _past(folder, before=policy.version)
        each = -(-asked // max(len(past), 1))
        for name, one in past.items():
            met[name] = judging.against(name, judging.player(one), each)
    return Evaluation(
        version=policy.version,
        agents=judging.agents,
        matches=finished,
        opponents=met,
        seconds=time.monotonic() - began,
    )


class _Judging:
    """The environments and players of one evaluation."""

    def __init__(
        self,
        session: EnvironmentSession,
        policy: Policy,
        show: Callable[[EvaluationProgress], None],
    ) -> None:
        self._make: Callable[[], Any] = maker(session.environment, **session.options)
        self._policy = policy
        self._show = show
        self._count = min(session.config.train.games, max(session.evaluate, 1))
        self.seed = session.config.learner.seed
        with self._opened() as one:
            self.spaces, self.agents, self._rows = one.spaces, one.agents, one.rows
        self.random = RandomSide(self.spaces, rows=self._rows, seed=self.seed + EVALUATION)

    def alone(self, matches: int) -> list[FrozenMatch]:
        """The policy on every side, with its likeliest actions."""
        player = self.player(self._policy, sampled=False)
        return self._played("", player, player, matches)

    def against(self, name: str, opponent: SidePlayer, matches: int) -> Tally:
        """Both draw their actions (ADR 0017): two likeliest ones would play the same match every
        time where an environment has one fixed start."""
        played = self._played(name, self.player(self._policy), opponent, matches)
        return Tally.of(np.array([one.score for one in played]))

    def player(self, policy: Policy, *, sampled: bool = True) -> PolicySide:
        seed = (self.seed + EVALUATION) * 1_000_003 + policy.version
        return PolicySide(policy, self.spaces, rows=self._rows, seed=seed, sampled=sampled)

    def _played(
        self, name: str, judged: SidePlayer, other: SidePlayer, matches: int
    ) -> list[FrozenMatch]:
        def shown(share: float) -> None:
            self._show(EvaluationProgress(self._policy.version, name, matches, share))

        seeds = match_seeds(self.seed, np.arange(self._count), purpose=EVALUATION)
        with self._opened() as environments:
            return play_series(environments, judged, other, matches, seeds=seeds, show=shown)

    def _opened(self) -> contextlib.closing[EnvironmentMatches]:
        features = self._policy.spec.features
        return contextlib.closing(
            EnvironmentMatches(self._make, range(self._count), features=features)
        )


def _past(folder: RunFolder, *, before: int) -> dict[str, Policy]:
    """Snapshots of the league; without any, earlier versions, oldest first."""
    snapshots, _ = spread(folder, _SNAPSHOTS)
    if snapshots:
        return snapshots
    earlier = evenly(_verified(folder.versions, before=before), _SNAPSHOTS)
    return {f"version {number}": folder.versions.policy(number) for number in earlier}


def _verified(versions: Versions, *, before: int) -> list[int]:
    """Earlier versions; damaged ones are left out, as when a run is resumed."""
    found = []
    for number in versions.numbers():
        with contextlib.suppress(FileFormatError, OSError):
            if number < before:
                versions.verify(number)
                found.append(number)
    return found
