"""Whole runs of simulated bots through the promotion gate that ships: for `promotion_gate.py`.

`Life` is one bot, `Bots` are several on one folder whose matches overlap.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

import numpy as np

from understudy.gates.promotion import roles
from understudy.gates.promotion.records import (
    RULES,
    Declared,
    Nominated,
    Record,
    Resolved,
    TrialSettings,
)

Results = dict[str, list[float]]
"""One number a run under each name."""
STREAM_GAINS, STREAM_ODDS = (-0.20, -0.05, 0.0, 0.10, 0.20), (0.20, 0.25, 0.25, 0.15, 0.15)


class Life:
    """A bot that plays one match after the other, with known win rates of all versions.

    Matches are folded in pieces, and a piece ends where the coin of the next match changes: at the
    end of a canary's ramp, and at a verdict, where it is folded again up to there. So every match
    is assigned as if the state was folded after each.
    """

    PIECE = 48

    def __init__(
        self, rng: np.random.Generator, rates: dict[int, float], *, practice: int = 0
    ) -> None:
        """`practice`: the version that practises, with a share of 20%."""
        self.rng, self.rates, self.practice = rng, rates, practice
        self.state, self.sequence, self.matches = roles.PromotionState(), 0, 0

    def say(self, record: Record) -> list[roles.PromotionVerdict]:
        self.sequence += 1
        self.state, verdicts = roles.fold(self.state, [(self.sequence, record)])
        return verdicts

    def play(self, matches: int) -> list[tuple[int, roles.PromotionVerdict]]:
        """Play at most so many, up to a verdict; verdicts with the matches played before."""
        until = self.matches + matches
        while self.matches < until:
            verdicts = self._play_piece(min(until - self.matches, self.PIECE))
            if verdicts:
                return [(self.matches, verdict) for verdict in verdicts]
        return []

    def coin(self, state: roles.PromotionState) -> roles.Shares:
        return roles.shares(state, practice=self.practice, practice_share=0.2)

    def _play_piece(self, most: int) -> list[roles.PromotionVerdict]:
        coin, test = self.coin(self.state), self.state.test
        ramp = math.inf
        if test is not None and coin.test == test.number:
            ramp = test.settings.first_canaries - test.trial.arm_counts[1]
        records: list[tuple[int, Record]] = []
        for place, (uniform, luck) in enumerate(self.rng.random((most, 2)).tolist()):
            number = self.sequence + 2 * place + 1
            coined = roles.assigned(coin, uniform, match=str(number))
            result = float(luck < self.rates[coined.version])
            records += [(number, coined), (number + 1, Resolved(order=number, result=result))]
            ramp -= coined.arm == "canary"
            if ramp == 0:
                break
        after, verdicts = roles.fold(self.state, records)
        if verdicts and verdicts[0].sequence < records[-2][0]:
            records = records[: verdicts[0].sequence - self.sequence + 1]
            after, verdicts = roles.fold(self.state, records)
        assert verdicts or ramp == 0 or self.coin(after) == coin
        self.state = after
        self.sequence += len(records)
        self.matches += len(records) // 2
        return verdicts


def champion_of(life: Life, rate: float) -> int:
    """Nominate versions of this rate until one is promoted; returns it."""
    version = max(life.rates)
    while life.state.champion is None:
        version += 1
        life.rates[version] = rate
        life.say(Nominated(version=version))
        while life.state.test is not None:
            life.play(600)
    return life.state.incumbent


def dropped_champion(seed: int, runs: int) -> Results:
    """Promoted at 70% by its test, 200 matches later at 30%; the rules at 50%."""
    results: Results = {"halved": [], "rolled back": []}
    for run in range(runs):
        life = Life(np.random.default_rng([seed, run, 17]), {RULES: 0.5})
        version = champion_of(life, 0.7)
        until = life.matches + 200
        while life.matches < until:
            life.play(until - life.matches)
        life.rates[version] = 0.3
        halved = 0.0 if life.state.recheck is not None else math.inf
        back = 0.0 if life.state.champion is None else math.inf
        while life.matches < until + 1000 and back == math.inf:
            for at, verdict in life.play(until + 1000 - life.matches):
                if verdict.kind == "alarm":
                    halved = min(halved, at - until)
                elif verdict.kind == "rolled back":
                    back = at - until
        results["halved"].append(halved)
        results["rolled back"].append(back)
    return results


def healthy_champion(seed: int, runs: int) -> Results:
    """Promoted at 70% by its test, and 6,000 matches later still there."""
    results: Results = {"alarms": [], "rollbacks": []}
    for run in range(runs):
        life = Life(np.random.default_rng([seed, run, 18]), {RULES: 0.5})
        version = champion_of(life, 0.7)
        until = life.matches + 6000
        kinds = []
        while life.matches < until and life.state.incumbent == version:
            kinds += [verdict.kind for _, verdict in life.play(until - life.matches)]
        results["alarms"].append(float("alarm" in kinds))
        results["rollbacks"].append(float("rolled back" in kinds))
    return results


def asked_canary(seed: int, runs: int) -> Results:
    """Better by evidence at 70%, the rules at 50%; a person is asked, and answers never. After
    1,000 matches it falls to 10%, or to 30%; or it stays, for 3,000."""
    results: Results = {"stays": [], "falls to 10%": [], "falls to 30%": []}
    for run in range(runs):
        for place, (name, rate) in enumerate(zip(results, (0.7, 0.1, 0.3), strict=True)):
            life = Life(np.random.default_rng([seed, run, place, 21]), {RULES: 0.5})
            life.say(Declared(policy="manual"))
            version = 0
            while life.state.test is None or not life.state.test.asks:
                if life.state.test is None:
                    version += 1
                    life.rates[version] = 0.7
                    life.say(Nominated(version=version))
                life.play(600)
            until = life.matches + (3000 if name == "stays" else 1000)
            life.play(until - life.matches)
            if name == "stays":
                results[name].append(float(life.state.test is None))
                continue
            # One that was stopped while it was good counts as stopped at once.
            life.rates[version] = rate
            began = life.matches
            life.play(6000 if life.state.test is not None else 0)
            stopped = life.state.test is None
            results[name].append(life.matches - began if stopped else math.inf)
    return results


PRACTISING = 10**6
"""The version that practises in these lives."""


def tested_beside_practice(
    canary: float, *, practice: float, settings: TrialSettings, matches: int
) -> Callable[[int, int], Results]:
    """One test of a canary against rules at 50%, while a version of another rate practises."""

    def one(rng: np.random.Generator) -> dict[str, float]:
        life = Life(rng, {RULES: 0.5, 1: canary, PRACTISING: practice}, practice=PRACTISING)
        life.say(Nominated(version=1, settings=settings))
        while life.matches < matches and life.state.test is not None:
            life.play(matches - life.matches)
        promoted = life.state.champion is not None
        return {"promoted": promoted, "matches": life.matches}

    def simulate(seed: int, runs: int) -> Results:
        rows = [one(np.random.default_rng([seed, run, 22])) for run in range(runs)]
        return {name: [row[name] for row in rows] for name in rows[0]}

    return simulate


def practice_lives(seed: int, runs: int) -> Results:
    """The rules win 50%. Practice wins 25%; or 50%; or 70% for 1,000 matches and then 25%."""
    results: Results = {"worse": [], "worse: share": [], "equal": [], "falls": []}
    for run in range(runs):
        for place, (before, after) in enumerate(((0.25, 0.25), (0.5, 0.5), (0.7, 0.25))):
            rng = np.random.default_rng([seed, run, place, 23])
            life = Life(rng, {RULES: 0.5, PRACTISING: before}, practice=PRACTISING)
            suspended, waited = list[int](), 0
            while life.matches < 2000:
                began, had = life.matches, life.state.practice.suspended
                life.rates[PRACTISING] = before if began < 1000 else after
                left = (1000 if began < 1000 else 2000) - began
                kinds = [(at, verdict.kind) for at, verdict in life.play(left)]
                suspended += [at for at, kind in kinds if kind == "suspended"]
                waited += life.matches - began if had else 0
            if before < 0.5:
                results["worse"].append(min(suspended, default=math.inf))
                results["worse: share"].append(0.2 * (1.0 - waited / life.matches))
            elif before == 0.5:
                results["equal"].append(len(suspended) / 2.0)
            else:
                late = [at - 1000 for at in suspended if at > 1000]
                results["falls"].append(min(late, default=math.inf))
    return results


def stream(settings: TrialSettings, *, adapt: bool) -> Callable[[int, int], Results]:
    """3,000 matches, one candidate after the other, of the mix of gains and losses above.

    `adapt`: the opponents become stronger with the champion, which has 50% before every test; else
    they stay as they are, and rates end at 98%.
    """
    matches = 3000

    def one(rng: np.random.Generator) -> dict[str, float]:
        life, skills = Life(rng, {}), {RULES: 0.5}
        gains: list[float] = []
        first, version = math.inf, 0
        while life.matches < matches:
            incumbent = life.state.incumbent
            if not roles.nomination_refused(life.state, version + 1):
                version += 1
                skill = skills[incumbent] + rng.choice(STREAM_GAINS, p=STREAM_ODDS)
                skills[version] = skill if adapt else min(max(skill, 0.02), 0.98)
                life.say(Nominated(version=version, settings=settings))
            stronger = skills[incumbent] - 0.5 if adapt else 0.0
            life.rates = {
                one: min(max(skill - stronger, 0.02), 0.98) for one, skill in skills.items()
            }
            quiet = life.state.cool_down or matches
            for at, verdict in life.play(min(quiet, matches - life.matches)):
                if verdict.kind == "promoted":
                    gains.append(skills[verdict.version] - skills[incumbent])
                    first = min(first, at)
        return {
            "promotions": len(gains),
            "worse": sum(gain < -1e-9 for gain in gains),
            "not better": sum(gain < 1e-9 for gain in gains),
            "gains": sum(gains),
            "first": first,
        }

    def simulate(seed: int, runs: int) -> Results:
        rows = [one(np.random.default_rng([seed, run, 19])) for run in range(runs)]
        return {name: [row[name] for row in rows] for name in rows[0]}

    return simulate


def other_speeds(seed: int, runs: int, *, settings: TrialSettings) -> Results:
    """Equal candidates, 10,000 matches of four bots on one folder: one is ten times as fast as
    another, losses end three times as fast as wins, and one match in 500 vanishes and is noticed
    after a hundred others."""
    results: Results = {"promoted": []}
    for run in range(runs):
        bots = Bots(np.random.default_rng([seed, run, 20]), matches=10_000)
        state = roles.PromotionState()
        records: list[tuple[int, Record]] = [(1, Nominated(version=1, settings=settings))]
        while records and state.champion is None:
            state, _ = roles.fold(state, records)
            records = bots.play(roles.shares(state), records=50)
        results["promoted"].append(float(state.champion is not None))
    return results


class Bots:
    """Bots on one folder whose matches overlap; all results are wins with 50%."""

    PACE = (1.0, 2.0, 5.0, 10.0)

    def __init__(self, rng: np.random.Generator, *, matches: int) -> None:
        self.rng, self.left, self.sequence, self.clock = rng, matches, 1, 0.0
        self.idle = list(range(len(self.PACE)))
        self.ends: list[tuple[float, int, int, Resolved]] = []
        """When, the number of the assignment, which bot, and how it ends."""

    def play(self, coin: roles.Shares, *, records: int) -> list[tuple[int, Record]]:
        """So many records or a few more, all with the same coin; none: all matches are over."""
        played: list[tuple[int, Record]] = []
        while len(played) < records and (self.ends or self.left):
            while self.idle and self.left:
                played.append(self._begin(self.idle.pop(), coin))
            self.clock, _, bot, resolved = heapq.heappop(self.ends)
            self.sequence += 1
            played.append((self.sequence, resolved))
            self.idle.append(bot)
        return played

    def _begin(self, bot: int, coin: roles.Shares) -> tuple[int, Record]:
        uniform, luck, length, fate = self.rng.random(4).tolist()
        self.sequence += 1
        self.left -= 1
        number, takes = self.sequence, self.PACE[bot] * (0.5 + length)
        if fate < 0.002:
            takes, resolved = 100.0, Resolved(order=number, ending="vanished")
        elif luck < 0.5:
            resolved = Resolved(order=number, result=1.0)
        else:
            takes, resolved = takes / 3.0, Resolved(order=number)
        heapq.heappush(self.ends, (self.clock + takes, number, bot, resolved))
        return number, roles.assigned(coin, uniform, match=str(number))
