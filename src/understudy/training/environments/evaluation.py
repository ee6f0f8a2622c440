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
from understudy.adapters.environments.matches import FrozenMatch
from understudy.adapters.environments.sides import RANDOM
from understudy.core.errors import FileFormatError
from understudy.league.snapshots import evenly, spread
from understudy.match.live_match import EVALUATION
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
from understudy.training.environments.spotting import facts_of
from understudy.workers.series import HereSeries, Series, SeriesPlan, SeriesPlayers, SideSource

_SNAPSHOTS = 3
"""Earlier versions, or snapshots of a league, that are met, spread evenly."""


def evaluate_environment(
    session: EnvironmentSession,
    policy: Policy,
    folder: RunFolder,
    make: Callable[[], Any],
    *,
    series: SeriesPlayers | None = None,
    show: Callable[[EvaluationProgress], None] = lambda progress: None,
) -> Evaluation:
    """Play `session.evaluate` frozen matches on seeds that nothing was learned from.

    Without a league the policy plays every side, with its likeliest actions. Where these matches
    were zero-sum, as many follow against a random player, and as many against earlier versions,
    shared among them. With a league all matches are against others: as many against each scripted
    opponent, and as many against its snapshots. `make` makes an environment; `series` plays the
    matches, None: this process does.
    """
    began, asked = time.monotonic(), session.evaluate
    judging = _Judging(session, policy, series or HereSeries(make), show)
    matches = [] if session.league else judging.alone(asked)
    finished = tuple(one.finished for one in matches)
    met: dict[str, Tally] = {}
    if session.league or zero_sum(finished):
        met[RANDOM] = judging.against_random(asked)
        for name in load_bots(session.bots):
            met[name] = judging.against_bot(name, asked)
        past = _past(folder, before=policy.version)
        each = -(-asked // max(len(past), 1))
        for name, one in past.items():
            met[name] = judging.against_policy(name, one, each)
    return Evaluation(
        version=policy.version,
        agents=facts_of(make, policy.spec.features).agents,
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
        series: SeriesPlayers,
        show: Callable[[EvaluationProgress], None],
    ) -> None:
        self._session = session
        self._policy = policy
        self._series = series
        self._show = show
        self._count = min(session.config.train.games, max(session.evaluate, 1))
        self._seed = session.config.learner.seed

    def alone(self, matches: int) -> list[FrozenMatch]:
        """The policy on every side, with its likeliest actions."""
        return self._played("", self._player(self._policy, sampled=False), None, matches)

    def against(self, name: str, opponent: SideSource, matches: int) -> Tally:
        """Both draw their actions (ADR 0017): two likeliest ones would play the same match every
        time where an environment has one fixed start."""
        played = self._played(name, self._player(self._policy), opponent, matches)
        return Tally.of(np.array([one.score for one in played]))

    def against_random(self, matches: int) -> Tally:
        return self.against(RANDOM, SideSource.random(self._seed + EVALUATION), matches)

    def against_bot(self, name: str, matches: int) -> Tally:
        return self.against(name, SideSource.bot(name, self._seed), matches)

    def against_policy(self, name: str, policy: Policy, matches: int) -> Tally:
        return self.against(name, self._player(policy), matches)

    def _player(self, policy: Policy, *, sampled: bool = True) -> SideSource:
        seed = (self._seed + EVALUATION) * 1_000_003 + policy.version
        return SideSource.of_policy(policy, seed=seed, sampled=sampled)

    def _played(
        self, name: str, judged: SideSource, other: SideSource | None, matches: int
    ) -> list[FrozenMatch]:
        def shown(share: float) -> None:
            self._show(EvaluationProgress(self._policy.version, name, matches, share))

        session = self._session
        plan = SeriesPlan(
            environment=session.environment,
            options=dict(session.options),
            features=self._policy.spec.features,
            bots=session.bots,
            environments=self._count,
            matches=matches,
            seed=self._seed,
        )
        return self._series.play([Series(plan, judged, other)], show=shown)[0]


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
