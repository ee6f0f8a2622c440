"""How often the promotion gate errs, how long it needs, and what it costs: simulated truth.

    python benchmarks/promotion.py [--runs 2000] [--only better,stream] [--workers 2] [--json]

Every row plays matches whose true win rates are known through the gate that ships, with a look
after every match. Rows of one test run in `trial.advance`, a thousand tests side by side; rows of
champions and streams run in `roles.fold`, `shares` and `draw`, as a bot does. A run that does not
end as it should counts as infinite in a median. Exits with 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, NamedTuple

import msgspec
import numpy as np
from machine import describe

from understudy.core.arrays import NDArray
from understudy.gates.promotion import roles, trial
from understudy.gates.promotion.records import (
    RULES,
    Assigned,
    Nominated,
    Ordered,
    Record,
    Resolved,
    TrialSettings,
)

Results = dict[str, list[float]]
Chance = Callable[[NDArray, int, np.random.Generator], NDArray]
"""Results [runs] of match number n, given who plays [runs] (1: the canary)."""

DEFAULT = TrialSettings()
ENDLESS = TrialSettings(harm=math.inf, misfit=math.inf, hopeless=0.0, long=10**9, longest=10**9)
SMALL_SHARE = msgspec.structs.replace(ENDLESS, share=0.2)
STREAM_GAINS, STREAM_ODDS = (-0.20, -0.05, 0.0, 0.10, 0.20), (0.20, 0.25, 0.25, 0.15, 0.15)


class Figure(NamedTuple):
    what: str
    seen: float
    goal: float | None
    """None: shown without a goal."""
    at_least: bool = False
    unit: str = "%"

    @property
    def holds(self) -> bool:
        if self.goal is None:
            return True
        return self.seen >= self.goal if self.at_least else self.seen <= self.goal

    def words(self, value: float) -> str:
        if self.unit == "%":
            return f"{value:.1%}"
        return f"{value:+.3f}" if self.unit == "gain" else f"{value:g} {self.unit}".strip()


@dataclass(frozen=True)
class Row:
    """`simulate(seed, runs)` gives one number a run under each name; `judge` reads all of them."""

    title: str
    simulate: Callable[[int, int], Results]
    judge: Callable[[Mapping[str, NDArray]], list[Figure]]
    block: int
    """Runs of one call."""
    times: int = 1
    """How many times as many runs as `--runs`."""
    alone: bool = False
    """Measures time: one call, while nothing else runs."""


# --- one test, many side by side -----------------------------------------------------------------


def won(canary: float, incumbent: float) -> Chance:
    return lambda arms, _, rng: (
        rng.random(arms.shape) < np.where(arms == 1, canary, incumbent)
    ).astype(np.float64)


def drifting(arms: NDArray, match: int, rng: np.random.Generator) -> NDArray:
    """Opponents come and go: 20 to 80% within 500 matches, for both arms."""
    rate = 0.5 + 0.3 * math.sin(2.0 * math.pi * match / 1000.0)
    return (rng.random(arms.shape) < rate).astype(np.float64)


def drawn(arms: NDArray, _: int, rng: np.random.Generator) -> NDArray:
    """35% won, 30% drawn."""
    chance = rng.random(arms.shape)
    return np.where(chance < 0.35, 1.0, np.where(chance < 0.65, 0.5, 0.0))


def one_test(
    chance: Chance,
    *,
    settings: TrialSettings = DEFAULT,
    matches: int = 600,
    strata: Sequence[float] = (),
) -> Callable[[int, int], Results]:
    """`strata`: what each of so many opponents adds to a result's chance, drawn by tag."""

    def simulate(seed: int, runs: int) -> Results:
        rng = np.random.default_rng([seed, 15])
        now = trial.new_trial(shape=(runs,), strata=max(len(strata), 1))
        verdict, at = np.zeros(runs, int), np.full(runs, np.inf)
        canaries = np.full(runs, np.inf)
        for match in range(matches):
            shares = trial.canary_share(now, settings)
            arms = (rng.random(runs) < shares).astype(np.float64)
            tags = np.zeros(runs, int)
            results = chance(arms, match, rng)
            if strata:
                tags = rng.integers(len(strata), size=runs)
                results = (rng.random(runs) < np.asarray(strata)[tags]).astype(np.float64)
            now, looks = trial.advance(
                now,
                settings,
                alpha=settings.alpha,
                arms=arms[None],
                shares=shares[None],
                results=results[None],
                strata=tags[None],
            )
            new = (verdict == trial.CONTINUE) & (looks.verdict[0] != trial.CONTINUE)
            if new.any():
                verdict = np.where(new, looks.verdict[0], verdict)
                at, canaries = (
                    np.where(new, match + 1, at),
                    np.where(new, now.arm_counts[1], canaries),
                )
                if verdict.all():
                    break
        return {"verdict": verdict.tolist(), "at": at.tolist(), "canaries": canaries.tolist()}

    return simulate


def pairs(seed: int, runs: int) -> Results:
    """Canary 70%, incumbent 50% on the same seeds, whose luck the two do not share."""
    rng, settings = np.random.default_rng([seed, 16]), TrialSettings()
    at = np.full(runs, np.inf)
    open_ = np.ones(runs, bool)
    now = trial.new_trial(shape=(runs,))
    for pair in range(settings.longest):
        now, looks = trial.advance_pairs(
            now,
            settings,
            alpha=settings.alpha,
            canary=(rng.random((1, runs)) < 0.7).astype(np.float64),
            incumbent=(rng.random((1, runs)) < 0.5).astype(np.float64),
        )
        verdict = looks.verdict[0]
        at = np.where(open_ & (verdict == trial.BETTER), pair + 1, at)
        open_ &= verdict == trial.CONTINUE
    return {"at": at.tolist()}


# --- whole runs through `fold` -------------------------------------------------------------------


class Life:
    """A bot that plays one match after the other, with known win rates of all versions.

    Matches are folded in pieces, and a piece ends where the coin of the next match changes: at the
    end of a canary's ramp, and at a verdict, where it is folded again up to there. So every match
    is assigned as if the state was folded after each.
    """

    PIECE = 48

    def __init__(self, rng: np.random.Generator, rates: dict[int, float]) -> None:
        self.rng, self.rates = rng, rates
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

    def _play_piece(self, most: int) -> list[roles.PromotionVerdict]:
        coin, test = roles.shares(self.state), self.state.test
        ramp = math.inf
        if test is not None and coin.test == test.number:
            ramp = test.settings.first_canaries - test.trial.arm_counts[1]
        records: list[tuple[int, Record]] = []
        for place, (uniform, luck) in enumerate(self.rng.random((most, 2)).tolist()):
            number = self.sequence + 2 * place + 1
            coined = assigned(number, coin, uniform)
            result = float(luck < self.rates[coined.version])
            records += [(number, coined), (number + 1, Resolved(order=number, result=result))]
            ramp -= coined.arm == "canary"
            if ramp == 0:
                break
        after, verdicts = roles.fold(self.state, records)
        if verdicts and verdicts[0].sequence < records[-2][0]:
            records = records[: verdicts[0].sequence - self.sequence + 1]
            after, verdicts = roles.fold(self.state, records)
        assert verdicts or ramp == 0 or roles.shares(after) == coin
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


def other_speeds(seed: int, runs: int) -> Results:
    """Equal candidates, 10,000 matches of four bots on one folder: one is ten times as fast as
    another, losses end three times as fast as wins, and one match in 500 vanishes and is noticed
    after a hundred others."""
    results: Results = {"promoted": []}
    for run in range(runs):
        bots = Bots(np.random.default_rng([seed, run, 20]), matches=10_000)
        state = roles.PromotionState()
        records: list[tuple[int, Record]] = [(1, Nominated(version=1, settings=ENDLESS))]
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
        return number, assigned(number, coin, uniform)


def assigned(number: int, coin: roles.Shares, uniform: float, *, stratum: str = "") -> Assigned:
    arm, version = roles.draw(coin, uniform)
    return Assigned(
        match=str(number),
        arm=arm,
        version=version,
        test=coin.test,
        share=coin.share,
        holdout=coin.holdout,
        uniform=uniform,
        stratum=stratum,
    )


# --- cost ----------------------------------------------------------------------------------------


def fold_cost(seed: int, runs: int) -> Results:
    """CPU time of a fold of 10,000 matches of a champion, a canary and the holdout; of one more."""
    rng = np.random.default_rng([seed, 21])
    records: list[tuple[int, Record]] = [
        (1, Ordered(order="approve", version=1)),
        (2, Nominated(version=2, settings=ENDLESS)),
    ]
    coin = roles.shares(roles.fold(roles.PromotionState(), records)[0])._replace(share=0.5)
    for match in range(10_001):
        uniform, luck = rng.random(2).tolist()
        number = records[-1][0] + 1
        stratum = f"opponent {match % 4}"
        coined = assigned(number, coin, uniform if match < 10_000 else 0.2, stratum=stratum)
        result = float(luck < 0.5)
        records += [(number, coined), (number + 1, Resolved(order=number, result=result))]
    all_ms, more_ms = [], []
    for _ in range(7):
        began = time.process_time()
        state, _ = roles.fold(roles.PromotionState(), records[:-2])
        all_ms.append((time.process_time() - began) * 1e3)
    assert state.test is not None and int(state.test.trial.matches) > 8000
    for _ in range(200):
        began = time.process_time()
        roles.fold(state, records[-2:])
        more_ms.append((time.process_time() - began) * 1e3)
    return {"all": all_ms, "one more": more_ms}


# --- rows ----------------------------------------------------------------------------------------


def _median(values: NDArray, where: NDArray | bool = True) -> float:
    return float(np.median(np.where(where, values, np.inf)))


def promoted(goal: float) -> Callable[[Mapping[str, NDArray]], list[Figure]]:
    return lambda seen: [Figure("promoted", float((seen["verdict"] == trial.BETTER).mean()), goal)]


def stopped(canaries: float) -> Callable[[Mapping[str, NDArray]], list[Figure]]:
    def judge(seen: Mapping[str, NDArray]) -> list[Figure]:
        harm = np.isin(seen["verdict"], (trial.HARM, trial.HOPELESS))
        return [
            Figure("stopped", float(harm.mean()), 0.85, at_least=True),
            Figure("median", _median(seen["canaries"], harm), canaries, unit="canaries"),
        ]

    return judge


def found(seen: Mapping[str, NDArray]) -> list[Figure]:
    better = seen["verdict"] == trial.BETTER
    return [
        Figure("promoted", float(better.mean()), 0.88, at_least=True),
        Figure("median", _median(seen["at"], better), 175, unit="matches"),
    ]


def progress(gains: float | None) -> Callable[[Mapping[str, NDArray]], list[Figure]]:
    return lambda seen: [
        Figure("worse, of promotions", float(seen["worse"].sum() / seen["promotions"].sum()), 0.03),
        Figure("sum of gains", float(seen["gains"].mean()), gains, at_least=True, unit="gain"),
    ]


def _equal(title: str, simulate: Callable[[int, int], Results]) -> Row:
    return Row(f"equal canary, {title}, 10,000 looks", simulate, promoted(0.055), 1000, 5)


def _endless(chance: Chance, **options: Any) -> Callable[[int, int], Results]:
    return one_test(chance, settings=ENDLESS, matches=10_000, **options)


ROWS: dict[str, Row] = {
    "equal": _equal("50%", _endless(won(0.5, 0.5))),
    "equal-90": _equal("90%", _endless(won(0.9, 0.9))),
    "equal-drift": _equal("drift", _endless(drifting)),
    "equal-draws": _equal("draws", _endless(drawn)),
    "equal-share": _equal("q = 0.2", one_test(won(0.5, 0.5), settings=SMALL_SHARE, matches=10_000)),
    "equal-strata": _equal("four opponents", _endless(won(0.5, 0.5), strata=(0.2, 0.4, 0.6, 0.8))),
    "equal-speeds": Row(
        "equal canary, four bots of other speeds, 10,000 looks",
        other_speeds,
        lambda seen: [Figure("promoted", float(seen["promoted"].mean()), 0.055)],
        25,
    ),
    "better": Row("canary 70%, incumbent 50%", one_test(won(0.7, 0.5)), found, 1000),
    "worse-30": Row("canary 30%, incumbent 50%", one_test(won(0.3, 0.5)), stopped(22), 1000),
    "worse-10": Row("canary 10%, incumbent 50%", one_test(won(0.1, 0.5)), stopped(8), 1000),
    "champion-drop": Row(
        "champion falls from 70% to 30%, rules 50%",
        dropped_champion,
        lambda seen: [
            Figure("share halved, median", _median(seen["halved"]), 50, unit="matches"),
            Figure("rolled back, median", _median(seen["rolled back"]), 120, unit="matches"),
        ],
        25,
    ),
    "champion-healthy": Row(
        "champion stays at 70%, rules 50%, 6,000 matches",
        healthy_champion,
        lambda seen: [
            Figure("alarms", float(seen["alarms"].mean()), 0.08),
            Figure("rollbacks", float(seen["rollbacks"].mean()), 0.02),
        ],
        25,
    ),
    "stream": Row(
        "stream of candidates, opponents adapt, 3,000 matches",
        stream(DEFAULT, adapt=True),
        progress(0.42),
        25,
    ),
    "stream-fixed": Row(
        "the same, opponents stay", stream(DEFAULT, adapt=False), progress(None), 25
    ),
    "stream-reign": Row(
        "stream of candidates, opponents adapt, `spend = reign`",
        stream(TrialSettings(spend="reign"), adapt=True),
        lambda seen: [
            Figure(
                "not better, of promotions",
                float(seen["not better"].sum() / seen["promotions"].sum()),
                0.02,
            )
        ],
        25,
    ),
    "pairs": Row(
        "simulator, canary 70%, incumbent 50%",
        pairs,
        lambda seen: [Figure("median", _median(seen["at"]), 100, unit="pairs")],
        1000,
    ),
    "cost": Row(
        "cost of `fold`",
        fold_cost,
        lambda seen: [
            Figure("10,000 matches", round(float(seen["all"].min()), 1), 50, unit="ms CPU"),
            Figure("one more match", round(_median(seen["one more"]), 2), 1, unit="ms CPU"),
        ],
        1,
        alone=True,
    ),
}


def call(name: str, seed: int, runs: int) -> Results:
    return ROWS[name].simulate(seed, runs)


def measure(names: Sequence[str], *, runs: int, workers: int) -> dict[str, Results]:
    """All results of these rows, by name; blocks of runs go to `workers` processes."""
    seen: dict[str, Results] = {name: {} for name in names}
    jobs = [
        (name, block, min(row.block, runs * row.times - block * row.block))
        for name in names
        if not (row := ROWS[name]).alone
        for block in range(math.ceil(runs * row.times / row.block))
    ]

    def add(name: str, results: Results) -> None:
        for key, values in results.items():
            seen[name].setdefault(key, []).extend(values)

    began = time.monotonic()
    for name in names:
        if ROWS[name].alone:
            add(name, call(name, 0, 1))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(call, *job): job[0] for job in jobs}
        for done, future in enumerate(as_completed(waiting), 1):
            add(waiting[future], future.result())
            left_s = (time.monotonic() - began) * (len(jobs) - done) / done
            print(
                f"\r{done} of {len(jobs)} blocks, {left_s / 60:.0f} minutes left   ",
                end="" if done < len(jobs) else "\n",
                file=sys.stderr,
                flush=True,
            )
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000, help="of a row; five times that of equal")
    parser.add_argument("--only", default=",".join(ROWS), help=f"rows of {', '.join(ROWS)}")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    names = chosen.only.split(",")
    unknown = [name for name in names if name not in ROWS]
    if unknown:
        parser.error(f"--only {unknown[0]}: expected one of {', '.join(ROWS)}")
    if chosen.runs < 1 or chosen.workers < 1:
        parser.error("--runs and --workers: expected 1 or more")
    seen = measure(names, runs=chosen.runs, workers=chosen.workers)
    figures = [
        (name, figure)
        for name in names
        for figure in ROWS[name].judge({key: np.array(one) for key, one in seen[name].items()})
    ]
    if chosen.json:
        rows = [
            {"row": name, **figure._asdict(), "holds": figure.holds} for name, figure in figures
        ]
        print(json.dumps({"machine": describe("numpy"), "runs": chosen.runs, "rows": rows}))
    else:
        print(
            f"{describe('numpy')}; {chosen.runs} runs a row\n\n"
            "| what | goal | seen |\n|---|---|---|"
        )
        for name, figure in figures:
            goal = "none"
            if figure.goal is not None:
                goal = f"{'≥' if figure.at_least else '≤'} {figure.words(figure.goal)}"
            missed = "" if figure.holds else " (missed)"
            print(
                f"| {ROWS[name].title}: {figure.what} | {goal} "
                f"| {figure.words(figure.seen)}{missed} |"
            )
    sys.exit(not all(figure.holds for _, figure in figures))


if __name__ == "__main__":
    main()
