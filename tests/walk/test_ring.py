"""The whole ring, for real: play, spool, learner, registry, and back into play."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from understudy import Config, Understudy
from understudy.core.clock import SystemClock
from understudy.core.config import with_values
from understudy.core.ops import NUMPY
from understudy.policy import distributions
from understudy.policy.policy import Policy
from understudy.policy.weights import normalise
from understudy.telemetry.status_reader import StatusReader

ACTIONS = ("good", "neutral", "bad")
REWARDS = {"good": 1.0, "neutral": 0.0, "bad": -1.0}
QUICK = with_values(
    Config(),
    {
        "learner.niceness": 0,
        "learner.publish_interval_s": 0.0,
        "learner.gather_s": 0.05,
        "learner.gamma": 0.0,  # a bandit has no future
        "learner.imitation": "advantage",  # a clone of rules that draw at random prefers nothing
        "report.statistics_every_matches": 0,
    },
)


def probabilities(policy: Policy) -> dict[str, float]:
    obs = np.full((1, 2), 0.5, np.float32)
    weights = policy.weights
    logits, _, _ = policy.spec.network.step(
        NUMPY, weights.params, normalise(NUMPY, weights, obs), policy.begin()
    )
    log_p = distributions.log_probs(NUMPY, policy.spec.actions, logits, None)
    return dict(zip(ACTIONS, np.exp(log_p[0]).tolist(), strict=True))


def play_bandit(mind: Understudy, matches: int, rng: np.random.Generator) -> None:
    for _ in range(matches):
        with mind.match(opponent="bandit") as match:
            for _ in range(20):
                seen = rng.random(2)
                action = match.decide(seen, fallback=ACTIONS[rng.integers(3)])
                match.reward(REWARDS[action])
            match.finish("tie")


@pytest.mark.parametrize(
    ("mode", "learner"), [("learn", "process"), ("learn", "thread"), ("shadow", "thread")]
)
def test_rewarded_action_becomes_likelier_and_punished_one_rarer(
    tmp_path: Path,
    mode: Literal["learn", "shadow"],
    learner: Literal["process", "thread"],
) -> None:
    """The old system had the sign wrong and nothing in its loss curve showed it."""
    rng = np.random.default_rng(1)
    with Understudy.open(
        tmp_path / "run",
        features=["a", "b"],
        actions=ACTIONS,
        mode=mode,
        learner=learner,
        config=QUICK,
        seed=1,
    ) as mind:
        before = probabilities(mind.policy)
        deadline = time.monotonic() + 240.0
        while probabilities(mind.policy)["good"] < 0.7 and time.monotonic() < deadline:
            play_bandit(mind, 10, rng)
            time.sleep(0.05)
        after = probabilities(mind.policy)
        assert mind.version > 0
    assert after["good"] > 0.7 > before["good"]
    assert after["bad"] < before["bad"] / 2
    status = StatusReader(tmp_path / "run", SystemClock()).read()
    assert status.episodes.written == status.episodes.ingested == status.episodes.archived
    assert status.buffer_file_count == 0
    assert status.version == mind.folder.versions.head() == status.versions
