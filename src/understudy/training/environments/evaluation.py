"""The frozen matches at the end of a session: mean rewards, and win rates of zero-sum environments.

In self-play the rewards of a zero-sum match add up to 0 however well the policy plays. Its strength
shows only against other players: a random one and earlier versions of the run.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from understudy.core.errors import FileFormatError
from understudy.match.live_match import EVALUATION, match_seeds
from understudy.match.tally import Tally
from understudy.policy.policy import Policy
from understudy.registry.versions import Versions
from understudy.training.environments.environments import Environments
from understudy.training.environments.factory import maker
from understudy.training.environments.rollout import judge, meet
from understudy.training.environments.session import (
    EnvironmentSession,
    Evaluation,
    EvaluationProgress,
    zero_sum,
)

RANDOM = "random"
_SNAPSHOTS = 3
"""Earlier versions that are met, spread evenly over those that the run still has."""


def evaluate_environment(
    session: EnvironmentSession,
    policy: Policy,
    versions: Versions,
    *,
    show: Callable[[EvaluationProgress], None] = lambda progress: None,
) -> Evaluation:
    """Play `session.evaluate` frozen matches on seeds that nothing was learned from.

    The policy plays every side, with its likeliest actions. Where these matches were zero-sum, as
    many follow against a random player, and as many against earlier versions, shared among them.
    """
    began, asked = time.monotonic(), session.evaluate
    count = min(session.config.train.games, asked)
    seed = session.config.learner.seed
    seeds = match_seeds(seed, np.arange(count), purpose=EVALUATION)
    make = maker(session.environment, **session.options)

    def opened() -> contextlib.closing[Environments]:
        return contextlib.closing(Environments(make, count, seeds, features=policy.spec.features))

    def shown(opponent: str, matches: int) -> Callable[[float], None]:
        return lambda share: show(EvaluationProgress(policy.version, opponent, matches, share))

    with opened() as environments:
        agents = environments.agents
        matches = judge(policy, environments, asked, show=shown("", asked))
    met: dict[str, Tally] = {}
    if zero_sum(matches):
        snapshots = _snapshots(versions, before=policy.version)
        each = -(-asked // max(len(snapshots), 1))
        opponents = {RANDOM: (random_player(policy), asked)}
        opponents |= {f"version {one.version}": (one, each) for one in snapshots}
        for name, (opponent, number) in opponents.items():
            with opened() as environments:
                rng = np.random.default_rng([seed, EVALUATION])
                met[name] = meet(
                    policy, opponent, environments, number, rng=rng, show=shown(name, number)
                )
    return Evaluation(
        version=policy.version,
        agents=agents,
        matches=tuple(matches),
        opponents=met,
        seconds=time.monotonic() - began,
    )


def random_player(policy: Policy) -> Policy:
    """Uniform over the legal options; real numbers are normal around the middle of their range."""
    zero = {name: np.zeros_like(value) for name, value in policy.weights.params.items()}
    return Policy(policy.spec, replace(policy.weights, params=zero), 0)


def _snapshots(versions: Versions, *, before: int) -> list[Policy]:
    """Earlier versions, oldest first; damaged ones are left out, as when a run is resumed."""
    earlier = []
    for number in versions.numbers():
        with contextlib.suppress(FileFormatError, OSError):
            if number < before:
                versions.verify(number)
                earlier.append(number)
    places = np.linspace(0, len(earlier) - 1, min(_SNAPSHOTS, len(earlier))).round().astype(int)
    return [versions.policy(earlier[place]) for place in places]
