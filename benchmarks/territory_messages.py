"""Observations of matches that are really played, as the messages of both forms of the protocol.

The scripted queen plays; what a server would answer changes nothing, so that every load is the same
one for the same seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec
import numpy as np

from understudy.adapters.territory.matches import TerritoryMatches
from understudy.adapters.territory.messages import ObservationData
from understudy.core.ops import NUMPY
from understudy.games.territory import BOTS
from understudy.games.territory.observation import FEATURES, features, seen
from understudy.session.protocol import Observation

SCHEMA = f"""
[game]
name = "load"
features = {list(FEATURES)}
actions = {["none", *(f"spawn {index}" for index in range(1, 65))]}
fallback = "none"

[[rewards]]
name = "mining"
feature = "{FEATURES[1]}"
of = "drop"
"""
"""A declared game with the features of territory and 65 actions."""

HELLO = msgspec.json.encode({"type": "hello", "protocol": 1})


def _played(order: np.ndarray, *, seed: int) -> Iterator[TerritoryMatches]:
    """As many ticks as the territory that speaks most often has."""
    counts = np.bincount(order)
    ticks, territories = int(counts.max()), len(counts)
    matches = TerritoryMatches(count=territories, seed=seed)
    queen = BOTS["queen"]
    frame = np.zeros(territories, np.int32)
    for _ in range(ticks):
        yield matches
        seeds = np.arange(territories, dtype=np.uint32)
        obs = features(NUMPY, seen(NUMPY, matches.state))
        matches.play(queen.act(NUMPY, obs, seeds, frame)[0])


def queen(order: np.ndarray, *, seed: int = 0) -> list[bytes]:
    """`observation_data`: message i is the next one of territory order[i]."""
    told = [
        [msgspec.json.encode(ObservationData(data=one)) for one in matches.observations()]
        for matches in _played(order, seed=seed)
    ]
    return _dealt(told, order)


def generic(order: np.ndarray, *, seed: int = 0) -> list[bytes]:
    """`observation` with features in order: message i is the next one of territory order[i]."""
    told = []
    for tick, matches in enumerate(_played(order, seed=seed)):
        rows = features(NUMPY, seen(NUMPY, matches.state)).T.tolist()
        told.append(
            [
                msgspec.json.encode(Observation(territory=name, tick=tick, features=row))
                for name, row in zip(matches.names, rows, strict=True)
            ]
        )
    return _dealt(told, order)


def _dealt(told: list[list[bytes]], order: np.ndarray) -> list[bytes]:
    """told [tick][territory], in the order in which territories speak."""
    ticks = Counter[int]()
    messages = []
    for territory in order.tolist():
        messages.append(told[ticks[territory]][territory])
        ticks[territory] += 1
    return messages
