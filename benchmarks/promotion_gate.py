"""How often the promotion gate errs, how long it needs, and what it costs: simulated truth.

    python benchmarks/promotion_gate.py [--runs 2000] [--only better,stream] [--workers 2] [--json]

Every row plays matches whose true win rates are known through the gate that ships, with a look
after every match. Rows of one test run in `trial.advance`, a thousand tests side by side; rows of
champions and streams run in `roles.fold`, `shares` and `draw`, as a bot does. A run that does not
end as it should counts as infinite in a median. Exits with 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import functools
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
from promotion_lives import (
    Results,
    asked_canary,
    dropped_champion,
    healthy_champion,
    other_speeds,
    practice_lives,
    stream,
    tested_beside_practice,
)

from understudy.core.arrays import NDArray
from understudy.gates.promotion import roles, trial
from understudy.gates.promotion.records import (
    Nominated,
    Ordered,
    Record,
    Resolved,
    TrialSettings,
)
from understudy.gates.promotion.running import RunningTest
from understudy.promotion.expectation import expected_verdict
from understudy.promotion.history import MatchColumns

Chance = Callable[[NDArray, int, np.random.Generator], NDArray]
"""Results [runs] of match number n, given who plays [runs] (1: the canary)."""

DEFAULT = TrialSettings()
ENDLESS = TrialSettings(harm=math.inf, misfit=math.inf, hopeless=0.0, long=10**9, longest=10**9)
SMALL_SHARE = msgspec.structs.replace(ENDLESS, share=0.2)


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


# --- what is told to expect ----------------------------------------------------------------------


def told(canary: float, incumbent: float) -> Callable[[int, int], Results]:
    """Whether the range of `promotion status` holds the end of a test, told at several moments.

    One of ten runs is made: each tells what to expect four times, out of 200 futures.
    """

    def simulate(seed: int, runs: int) -> Results:
        rng = np.random.default_rng([seed, 17])
        seen: Results = {f"{what} {n}": [] for n in TOLD_AT for what in ("inside", "width")}
        for run in range(math.ceil(runs / 10)):
            columns, end = _whole_test(rng, canary, incumbent)
            for n in TOLD_AT:
                if n >= end:
                    continue
                so_far = MatchColumns(*(column[:n] for column in columns))
                now = RunningTest(
                    number=1000 * seed + run, version=1, against=0, alpha=DEFAULT.alpha,
                    settings=DEFAULT, trial=_advanced(so_far)[0] if n else trial.new_trial(),
                )  # fmt: skip
                expected = expected_verdict(
                    now, columns=so_far, pairs=np.zeros((0, 2)), incumbent_mean=incumbent
                )
                assert expected is not None
                seen[f"inside {n}"].append(float(expected.fewest <= end - n <= expected.most))
                seen[f"width {n}"].append(expected.most - expected.fewest)
        return seen

    return simulate


TOLD_AT = (0, 30, 60, 120)
"""Matches of a test after which it is asked what to expect."""


def _whole_test(
    rng: np.random.Generator, canary: float, incumbent: float
) -> tuple[MatchColumns, int]:
    """A test to its longest, and the match after which its verdict falls."""
    uniform, luck = rng.random((2, DEFAULT.longest))
    early = uniform < DEFAULT.first_share
    first = np.cumsum(early) - early < DEFAULT.first_canaries
    shares = np.where(first, DEFAULT.first_share, DEFAULT.share)
    arms = (uniform < shares).astype(np.float64)
    results = (luck < np.where(arms == 1, canary, incumbent)).astype(np.float64)
    columns = MatchColumns(arms, shares, results, np.zeros(len(arms), np.int64))
    return columns, 1 + int(np.argmax(_advanced(columns)[1].verdict != trial.CONTINUE))


def _advanced(columns: MatchColumns) -> tuple[trial.PromotionTrial, trial.TrialLooks]:
    return trial.advance(trial.new_trial(), DEFAULT, alpha=DEFAULT.alpha, **columns._asdict())


def within(goal: float | None) -> Callable[[Mapping[str, NDArray]], list[Figure]]:
    def judge(seen: Mapping[str, NDArray]) -> list[Figure]:
        return [
            Figure(
                f"ends within the range told after {n} matches (median width "
                f"{np.median(seen[f'width {n}']):.0f})",
                float(seen[f"inside {n}"].mean()),
                goal,
                at_least=True,
            )
            for n in TOLD_AT
        ]

    return judge


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
        thrown = uniform if match < 10_000 else 0.2
        coined = roles.assigned(coin, thrown, match=str(number), stratum=stratum)
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
        harm = seen["verdict"] == trial.HARM
        ended = harm | (seen["verdict"] == trial.HOPELESS)
        return [
            Figure("stopped as harmful or hopeless", float(ended.mean()), 0.85, at_least=True),
            Figure("stopped as harmful", float(harm.mean()), None),
            Figure("median", _median(seen["canaries"], ended), canaries, unit="canaries"),
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
        functools.partial(other_speeds, settings=ENDLESS),
        lambda seen: [Figure("promoted", float(seen["promoted"].mean()), 0.055)],
        25,
    ),
    "equal-practice": Row(
        "equal canary, practice of 20% of matches at 30%, 10,000 matches",
        tested_beside_practice(0.5, practice=0.3, settings=ENDLESS, matches=10_000),
        lambda seen: [Figure("promoted", float(seen["promoted"].mean()), 0.055)],
        25,
    ),
    "better-practice": Row(
        "canary 70%, incumbent 50%, practice of 20% of matches at 25%",
        tested_beside_practice(0.7, practice=0.25, settings=DEFAULT, matches=2000),
        lambda seen: [
            Figure("promoted", float(seen["promoted"].mean()), 0.88, at_least=True),
            Figure("median", _median(seen["matches"], seen["promoted"] == 1), 210, unit="matches"),
        ],
        25,
    ),
    "practice": Row(
        "practice of 20% of matches, rules 50%",
        practice_lives,
        lambda seen: [
            Figure("wins 25%: suspended, median", _median(seen["worse"]), 80, unit="matches"),
            Figure("the same: share of 2,000 matches", float(seen["worse: share"].mean()), 0.08),
            Figure("wins 50%: suspensions in 1,000", float(seen["equal"].mean()), 0.5, unit=""),
            Figure("falls from 70% to 25%: median", _median(seen["falls"]), 300, unit="matches"),
        ],
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
    "asked": Row(
        "canary 70%, rules 50%, a person is asked",
        asked_canary,
        lambda seen: [
            Figure("stopped in 3,000 matches", float(seen["stays"].mean()), 0.06),
            Figure("falls to 10%, stopped", _median(seen["falls to 10%"]), 70, unit="matches"),
            Figure("falls to 30%, stopped", _median(seen["falls to 30%"]), 160, unit="matches"),
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
    "told": Row("canary 70%, incumbent 50%: a test", told(0.7, 0.5), within(0.7), 100),
    "told-60": Row("canary 60%, incumbent 50%: a test", told(0.6, 0.5), within(None), 100),
    "told-30": Row("canary 30%, incumbent 50%: a test", told(0.3, 0.5), within(None), 100),
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
