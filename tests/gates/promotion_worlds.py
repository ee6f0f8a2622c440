"""Records of promotion for tests: a told story, and random worlds in which everything happens."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from understudy.core.statistics import STAKES
from understudy.gates.promotion import roles
from understudy.gates.promotion.records import (
    RULES,
    Arm,
    Assigned,
    Declared,
    Ending,
    Nominated,
    Ordered,
    Paired,
    Record,
    Resolved,
    TrialSettings,
)

HASTY = TrialSettings(
    alpha=0.35,
    first_share=0.3,
    first_canaries=3,
    harm=2.0,
    misfit=8.0,
    short=10,
    hopeless=0.4,
    long=20,
    promising=1.2,
    longest=30,
    alarm=8.0,
    cool_down=3,
)
"""Decides after a handful of matches, so that a short world sees every verdict."""
PRACTICE_SHARE = 0.25


class Story:
    """One run, told record by record, folded after each of them."""

    def __init__(self, settings: TrialSettings) -> None:
        self.settings = settings
        self.state = roles.PromotionState()
        self.log: list[tuple[int, Record]] = []
        self.verdicts: list[roles.PromotionVerdict] = []

    def say(self, record: Record) -> list[str]:
        """Fold one more record; returns the kinds of the verdicts that it brought."""
        self.log.append((len(self.log) + 1, record))
        self.state, verdicts = roles.fold(self.state, self.log[-1:])
        self.verdicts += verdicts
        return [verdict.kind for verdict in verdicts]

    def nominate(self, version: int, **fields: Any) -> list[str]:
        return self.say(Nominated(version=version, settings=self.settings, **fields))

    def order(self, order: Any, version: int = 0) -> list[str]:
        return self.say(Ordered(order=order, version=version))

    def begin(self, arm: Arm | float, *, stratum: str = "", practice: int = 0) -> int:
        """Assign a match to an arm, or by a uniform number; returns its number. `practice`: the
        version that may practise."""
        coin = roles.shares(self.state, practice=practice, practice_share=PRACTICE_SHARE)
        uniform = arm if isinstance(arm, float) else uniform_of(coin, arm)
        assigned = roles.assigned(coin, uniform, match=str(len(self.log)), stratum=stratum)
        assert isinstance(arm, float) or assigned.arm == arm
        self.say(assigned)
        return len(self.log)

    def end(self, number: int, result: float, ending: Ending = "finished") -> list[str]:
        return self.say(Resolved(order=number, result=result, ending=ending))

    def match(self, arm: Arm | float, result: float, *, practice: int = 0) -> list[str]:
        return self.end(self.begin(arm, practice=practice), result)

    def matches(self, canary: float, incumbent: float, count: int) -> list[str]:
        """Up to so many matches of each arm by turns, until something is decided."""
        for _ in range(count):
            for arm, result in (("incumbent", incumbent), ("canary", canary)):
                kinds = self.match(arm, result)  # type: ignore[arg-type]
                if kinds:
                    return kinds
        return []

    def plays(self, result: float, count: int) -> list[str]:
        """Up to so many matches of the champion, until something is decided."""
        for _ in range(count):
            kinds = self.match("incumbent", result)
            if kinds:
                return kinds
        return []


def uniform_of(coin: roles.Shares, arm: Arm) -> float:
    """A number that gives the match to this arm."""
    if arm == "holdout":
        return coin.holdout / 2
    rest = coin.share / 2 if arm == "canary" else (1.0 + coin.share) / 2
    rest = coin.practice_share + (1.0 - coin.practice_share) * rest
    if arm == "practice":
        rest = coin.practice_share / 2
    return coin.holdout + (1.0 - coin.holdout) * rest


def random_world(seed: int, *, events: int = 400) -> Story:
    """A run in which bots overlap, results are lost, and a person says all sorts of things."""
    rng = random.Random(seed)
    story = Story(HASTY)
    rates = {RULES: rng.random()}
    open_: list[int] = []
    version = 0
    story.say(Declared(rules="v1", policy=rng.choice(["auto", "manual"])))
    for _ in range(events):
        chance, test = rng.random(), story.state.test
        asked = test if test is not None and test.asks else None
        if asked is not None:
            rates[asked.version] = 0.0  # it breaks down
        if asked is not None and rng.random() < 0.1:
            story.say(Declared(rules=story.state.rules or "v1", score=story.state.score))
            story.order("resume")
        elif chance < 0.012:
            story.order(
                rng.choice(["approve", "stop", "pause", "resume", "resume"]),
                rng.randrange(version + 2),
            )
        elif chance < 0.016:
            story.say(
                Declared(
                    rules=rng.choice(["v1", "v2"]),
                    score=rng.choice([None, None, (0.0, 10.0)]),
                    policy=rng.choice(["auto", "auto", "auto", "manual", "paused"]),
                )
            )
        elif chance < 0.025:
            rates[story.state.incumbent] = rng.random()  # it breaks down, or recovers
        elif chance < 0.08:
            version += rng.random() < 0.9
            rates.setdefault(version, rng.random())
            story.nominate(version, simulator=rng.random() < 0.3)
        elif chance < 0.15 and story.state.test is not None and story.state.test.simulator:
            results = [tuple(float(rng.random() < 0.5) for _ in range(4)) for _ in range(2)]
            story.say(Paired(test=story.state.test.number, canary=results[0], incumbent=results[1]))
        elif chance < 0.55 and len(open_) < 4:
            stratum, practice = rng.choice(["", "a", "b"]), rng.choice([0, version + 1])
            open_.append(story.begin(rng.random(), stratum=stratum, practice=practice))
        elif open_:
            number = open_.pop(rng.randrange(len(open_)))
            assigned = story.log[number - 1][1]
            assert isinstance(assigned, Assigned)
            endings: list[Ending] = ["finished", "vanished", "fault", "void"]
            ending = rng.choices(endings, weights=(12, 1, 1, 1))[0]
            rate = rates.get(assigned.version, 0.5)
            result = rng.choice([float(rng.random() < rate)] * 3 + [rng.random()])
            story.end(number, result if ending == "finished" else 0.0, ending)
            if rng.random() < 0.05:
                story.end(number, 1.0)  # a second ending is noted, not counted
    return story


def plain(value: Any) -> Any:
    """A state as plain data that can be compared bit by bit."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return [(key, plain(one)) for key, one in value.items()]
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value


def slow_evidence(
    arms: Sequence[float],
    shares: Sequence[float],
    results: Sequence[float],
    strata: Sequence[Any],
    *,
    sign: float = 1.0,
) -> list[float]:
    """The evidence after each match, by definition, with plain numbers."""
    capital = [1.0] * len(STAKES)
    evidence = []
    for n, (arm, q, y) in enumerate(zip(arms, shares, results, strict=True)):
        same = [results[k] for k in range(n) if strata[k] == strata[n]]
        pooled = (sum(results[:n]) + 1.0) / (n + 2.0)
        m = (sum(same) + 10.0 * pooled) / (len(same) + 10.0)
        g = (arm - q) * (y - m) / (max(q, 1 - q) * max(m, 1 - m))
        capital = [one * (1 + sign * s * g) for one, s in zip(capital, STAKES, strict=True)]
        evidence.append(sum(capital) / len(capital))
    return evidence
