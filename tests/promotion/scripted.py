"""Scripted promotion: players win with a known chance, and nothing is learned.

`ScriptedLog` keeps its records in memory, for what is pure. `ScriptedRun` writes the log and the
journal of a run folder as a bot of mode `auto` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
from walk.toys import SPEC, START, SetClock, open_run, settings

from understudy.gates.promotion import roles
from understudy.gates.promotion.records import (
    Assigned,
    Declared,
    Nominated,
    Paired,
    Record,
    Resolved,
    TrialSettings,
)
from understudy.gates.promotion.roles import PromotionState, PromotionVerdict
from understudy.policy import weights
from understudy.promotion.promotion import Promotion
from understudy.registry.versions import WEIGHTS, Manifest
from understudy.telemetry.events import BotStarted, MatchFinished, VersionPublished
from understudy.telemetry.journal import Journal

MATCH_S = 600.0
PRACTICE_SHARE = 0.2


class ScriptedLog:
    """Records in memory, each ten minutes after the one before it."""

    def __init__(self, *, seed: int = 0, session: str = "here/1/a") -> None:
        self.rng = np.random.default_rng(seed)
        self.records: list[tuple[int, Record]] = []
        self.state = PromotionState()
        self.verdicts: list[PromotionVerdict] = []
        self.session = session
        self.now = START
        self.practice = 0
        """The version that practises; 0: none."""
        self.append(Declared(rules="v1"))

    def append(self, record: Record) -> int:
        number = len(self.records) + 1
        stamped = msgspec.structs.replace(record, at=self.now, session=self.session)
        self.records.append((number, stamped))
        self.state, verdicts = roles.fold(self.state, [self.records[-1]])
        self.verdicts += verdicts
        return number

    def nominate(self, version: int, **values: object) -> int:
        trial = msgspec.convert(values, TrialSettings)
        return self.append(Nominated(version=version, experience=60, reason="new", settings=trial))

    def assign(self, stratum: str = "") -> tuple[int, Assigned]:
        coin = roles.shares(self.state, practice=self.practice, practice_share=PRACTICE_SHARE)
        uniform = float(self.rng.random())
        match = self.rng.bytes(8).hex()
        assigned = roles.assigned(coin, uniform, match=match, stratum=stratum)
        return self.append(assigned), assigned

    def play(
        self, matches: int, chances: Mapping[int, float], *, until: str = "", stratum: str = ""
    ) -> None:
        """Matches one after the other; stops early after a verdict of kind `until`."""
        for _ in range(matches):
            order, assigned = self.assign(stratum)
            self.now += MATCH_S
            won = self.rng.random() < chances[assigned.version]
            self.append(Resolved(order=order, result=float(won)))
            if until and any(one.kind == until for one in self.verdicts):
                return

    def pair(self, test: int, canary: list[float], incumbent: list[float]) -> None:
        self.append(Paired(test=test, canary=tuple(canary), incumbent=tuple(incumbent)))


class ScriptedRun:
    """A run folder with the promotion log and the journal of a bot."""

    def __init__(self, root: Path, *, seed: int = 0, **config: object) -> None:
        self.clock = SetClock()
        self.folder = open_run(root, settings(**config), self.clock)
        self.rng = np.random.default_rng(seed)
        self.promotion = Promotion(self.folder)
        self.promotion.declare(rules="v1", score=None)
        self.journal = Journal(self.folder.journal, "bot", self.clock)
        self.journal.write(BotStarted(pid=1, mode="auto", learner="off", version=0))

    def commit(self, *numbers: int) -> None:
        """Versions with fresh weights."""
        contents = {WEIGHTS: weights.encode(weights.fresh(SPEC, np.random.default_rng(0)))}
        for number in numbers:
            manifest = Manifest(number=number, parent=None, created_at=self.clock.time(), spec=SPEC)
            self.folder.versions.commit(manifest, contents)
            self.folder.pointers.move("candidate", number, by="latest")
            self.journal.write(
                VersionPublished(version=number, parent=None, matches=1, promoted=False)
            )

    def nominate(self, version: int) -> None:
        """Commit a version and open its test."""
        self.commit(version)
        assert self.promotion.nominate(version, experience=60, reason="it learned from 60 matches")

    def play(
        self, matches: int, chances: Mapping[int, float], *, until: str = "", **tags: str
    ) -> None:
        """Matches one after the other; stops early after a verdict of kind `until`."""
        for _ in range(matches):
            order, assigned = self.assign(**tags)
            self.clock.advance(MATCH_S)
            won = bool(self.rng.random() < chances[assigned.version])
            self.resolve(order, assigned, won=won, tags=tags)
            if until and any(one.kind == until for one in self.promotion.verdicts):
                return

    def assign(self, **tags: str) -> tuple[int, Assigned]:
        name = self.rng.bytes(8).hex()
        return self.promotion.assign(name, tags, float(self.rng.random()))

    def resolve(self, order: int, assigned: Assigned, *, won: bool, tags: dict[str, str]) -> None:
        self.promotion.resolve(order, float(won), "finished")
        self.journal.write(
            MatchFinished(
                id=assigned.match,
                outcome="victory" if won else "defeat",
                decisions=4,
                fallback=0 if assigned.version else 4,
                reward=float(won),
                version=assigned.version,
                seconds=MATCH_S,
                saved=True,
                tags=tags,
                mode="auto",
            )
        )
