"""Small leagues for the tests of this room."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from policy.makers import spec_of

from understudy.core.config import LeagueConfig
from understudy.league.league import League
from understudy.league.ratings import Rating
from understudy.policy.policy import untrained
from understudy.policy.spec import PolicySpec
from understudy.policy.weights import Weights

SPEC: PolicySpec = spec_of()
ANCHORS = {"weak": Rating(10.0, 1.0), "middling": Rating(25.0, 1.0), "strong": Rating(40.0, 1.0)}


def weights(seed: int = 0) -> Weights:
    return untrained(SPEC, seed).weights


def league(folder: Path, **settings: Any) -> League:
    return League(LeagueConfig(**({"save_freq": 100} | settings)), folder, SPEC, ANCHORS)
