"""From rules to champion in a slow game: one match a batch, and a reward at the end alone.

    python benchmarks/slow_takeover.py [--seeds 1601,1602,...] [--matches 4000] [--workers 2]
    python benchmarks/slow_takeover.py --score      # judged by a declared score, 2,500 matches

The game of `slow_game.py`, with rules. A match has 60 decisions between two actions; which is right
depends linearly on eight features. The rules weigh four of these as they should and do not see the
others, so that they are right in two of three decisions; that wins half of the matches: the chance
to win rises with the share of right actions, and is one half where the rules have their mean. An
untrained policy wins 1 match of 11, always right would be 99.5%. The reward is 0 until the match
ends, then +10 or -5. No feature shows how the match goes.

A real bot plays it in mode `auto`, with all defaults but `learner.batch_matches` = 1, in lockstep
with the learner in this process: play, learn, publish and adopt take turns, so that a seed always
gives the same run. A minute of the run's clock passes in a match. The folder lies in memory where
the system has such a place: `fsync` is called as ever, and costs nothing there.

Goals: at least 4 of 5 seeds have a champion by evidence at the end, and that wins at least 65% of
400 frozen matches (actions drawn, as it plays); no disjoint window of 300 matches over all seeds
lies below the rules less 5 points with its whole 95% interval.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import machine
import numpy as np
from takeover_runs import (
    MARGIN,
    Found,
    Started,
    minutes_left,
    run_seeds,
    say,
    seed_list,
    window_words,
    windows,
    worst,
)

from understudy.bot.understudy import RESULT_REWARDS, Understudy
from understudy.core.arrays import NDArray
from understudy.core.clock import LogicalClock
from understudy.core.config import Config, with_values
from understudy.core.spaces import Discrete
from understudy.core.statistics import wilson
from understudy.policy.policy import Policy
from understudy.policy.presets import network
from understudy.policy.spec import PolicySpec
from understudy.registry.run_folder import RunFolder
from understudy.run.play import LockstepLearner

SEEDS = (1601, 1602, 1603, 1604, 1605)
MATCHES, MATCHES_WITH_SCORE = 4000, 2500
DECISIONS, FEATURES, SEEN = 60, 8, 4
RULES_RIGHT = 2.0 / 3.0
"""The share of right actions of the rules."""
STEEPNESS = 16.0
"""Of the chance to win over the share of right actions, as in `slow_game.py`."""
MATCH_S = 60.0
FROZEN, LENGTH = 400, 300
LEAST, LEAST_PROMOTED = 0.65, 0.8
ACTIONS = ("left", "right")
SETTINGS = {"learner.batch_matches": 1, "report.status_every_s": 0.0}
SPEC = PolicySpec(
    tuple(f"feature {index}" for index in range(FEATURES)), Discrete(ACTIONS), network("mlp")
)
_PLAY, _FREEZE, _GAME = range(3)
"""Streams of chance of a seed."""
_TELL_EVERY = 200


class SlowGame(NamedTuple):
    """Which actions are right, and what the rules know of that."""

    weights: NDArray
    """[F] of length 1"""

    @classmethod
    def of(cls, seed: int) -> SlowGame:
        """The seen and the unseen weights have random directions. With the cosine between them and
        the whole the rules are right in `RULES_RIGHT` of all decisions."""
        drawn = np.random.default_rng([seed, _GAME]).normal(size=FEATURES)
        seen, unseen = drawn[:SEEN], drawn[SEEN:]
        angle = math.pi * (1.0 - RULES_RIGHT)
        seen = seen / np.linalg.norm(seen) * math.cos(angle)
        unseen = unseen / np.linalg.norm(unseen) * math.sin(angle)
        return cls(np.concatenate([seen, unseen]))

    def right(self, seen: NDArray) -> NDArray:
        """The right actions [N] of observations [N, F]."""
        actions: NDArray = (seen @ self.weights > 0.0).astype(np.int64)
        return actions

    def rules(self, seen: NDArray) -> NDArray:
        """The actions [N] of the rules."""
        actions: NDArray = (seen[:, :SEEN] @ self.weights[:SEEN] > 0.0).astype(np.int64)
        return actions


def chance(share: NDArray) -> NDArray:
    """The chance to win with these shares of right actions."""
    odds: NDArray = 1.0 / (1.0 + np.exp(STEEPNESS * (RULES_RIGHT - share)))
    return odds


def win_rate(right: float) -> float:
    """The exact win rate of a player that is right in this share of decisions."""
    counts = np.arange(DECISIONS + 1)
    ways = np.array([math.comb(DECISIONS, int(count)) for count in counts], np.float64)
    odds = ways * right**counts * (1.0 - right) ** (DECISIONS - counts)
    return float((odds * chance(counts / DECISIONS)).sum())


def one_match(mind: Understudy, game: SlowGame, rng: np.random.Generator) -> tuple[str, bool]:
    """Who was given the match, and whether it was won."""
    seen = rng.normal(size=(DECISIONS, FEATURES)).astype(np.float32)
    right, rules = game.right(seen), game.rules(seen).tolist()
    with mind.match(opponent="script") as match:
        done = [
            match.decide(row, fallback=ACTIONS[action])
            for row, action in zip(seen, rules, strict=True)
        ]
        share = np.mean([ACTIONS.index(one) for one in done] == right, keepdims=True)
        won = bool(rng.random() < chance(share))
        score = None if mind.score is None else share.item()
        match.finish("victory" if won else "defeat", score=score)
    return match.role, won


def frozen(policy: Policy, game: SlowGame, seed: int) -> int:
    """Matches won of `FROZEN` that nothing was learned from, with drawn actions."""
    rng = np.random.default_rng([seed, _FREEZE])
    count = FROZEN * DECISIONS
    seen = rng.normal(size=(count, FEATURES)).astype(np.float32)
    draws = rng.random((count, 1), dtype=np.float32)
    actions = policy.act(seen, policy.begin(count), uniforms=draws).actions[:, 0]
    shares = (actions == game.right(seen)).reshape(FROZEN, DECISIONS).mean(1)
    return int((rng.random(FROZEN) < chance(shares)).sum())


def one_seed(seed: int, matches: int, *, score: bool) -> Found:
    """The whole run of a seed."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as root:
        config = with_values(Config(), {**SETTINGS, "learner.seed": seed})
        clock = LogicalClock()
        folder = RunFolder.open(Path(root) / "run", spec=SPEC, config=config, clock=clock)
        learner = LockstepLearner(folder)
        mind = Understudy(
            folder,
            mode="auto",
            learner=learner,
            result_rewards=RESULT_REWARDS,
            score=(0.0, 1.0) if score else None,
            rules="four features",
            seed=seed,
        )
        learner.mind = mind
        return _played(mind, clock, seed, matches)


def _played(mind: Understudy, clock: LogicalClock, seed: int, matches: int) -> Found:
    game, began = SlowGame.of(seed), time.perf_counter()
    results: list[int] = []
    roles: Counter[str] = Counter()
    told: list[tuple[int, str, int]] = []
    assert mind.promotion is not None
    with mind:
        for number in range(1, matches + 1):
            role, won = one_match(mind, game, np.random.default_rng([seed, _PLAY, number]))
            clock.now += MATCH_S
            results.append(int(won))
            roles[role] += 1
            news = mind.promotion.verdicts[len(told) :]
            told += [(number, one.kind, one.version) for one in news]
            if number % _TELL_EVERY == 0:
                champion = mind.promotion.state.incumbent
                left = minutes_left(number, matches, time.perf_counter() - began)
                last = sum(results[-LENGTH:]) / len(results[-LENGTH:])
                plays = f"version {champion} plays" if champion else "the rules play"
                say(f"seed {seed}: match {number}, last {LENGTH} {last:.0%}, {plays}, {left}")
        champion = mind.promotion.state.incumbent
        policy = mind.folder.versions.policy(champion) if champion else None
    kinds = Counter(kind for _, kind, _ in told)
    promoted = [number for number, kind, _ in told if kind == "promoted"]
    return {
        "seed": seed,
        "promoted_after": promoted[0] if promoted else None,
        "champion": champion,
        "frozen_wins": None if policy is None else frozen(policy, game, seed),
        "tests": kinds["nominated"],
        "suspensions": kinds["suspended"],
        "roles": dict(roles),
        "verdicts": told,
        "results": results,
        "seconds": round(time.perf_counter() - began, 1),
    }


def summary(found: Sequence[Found]) -> Found:
    """All seeds, and whether the goals hold."""
    rules = win_rate(RULES_RIGHT)
    rates = [one["frozen_wins"] / FROZEN for one in found if one["champion"]]
    parts = windows([one["results"] for one in found], LENGTH)
    promoted = len(rates)
    return {
        "rules": rules,
        "promoted": promoted,
        "windows": [one._asdict() for one in parts],
        "worst": worst(parts)._asdict() if parts else None,
        "held": {
            "promoted": promoted >= LEAST_PROMOTED * len(found),
            "champions": bool(rates) and min(rates) >= LEAST,
            "windows": bool(parts) and not any(one.below(rules) for one in parts),
        },
    }


def row(one: Found) -> str:
    roles = ", ".join(f"{role} {count:,}" for role, count in sorted(one["roles"].items()))
    ended = "the rules play at the end"
    if one["champion"]:
        low, high = wilson(one["frozen_wins"], FROZEN)
        ended = (
            f"version {one['champion']} plays at the end and wins "
            f"{one['frozen_wins'] / FROZEN:.1%} ({low:.1%} to {high:.1%}) of {FROZEN} frozen"
        )
    after = one["promoted_after"]
    first = "no version promoted" if after is None else f"first promotion after {after:,} matches"
    return (
        f"seed {one['seed']}: {first}, {ended}; {one['tests']} tests, practice suspended "
        f"{one['suspensions']} times; matches: {roles}; {one['seconds']:.0f} s"
    )


def words(found: Sequence[Found], result: Found) -> str:
    lines = [row(one) for one in found]
    rules = result["rules"]
    parts = windows([one["results"] for one in found], LENGTH)
    lines.append(f"windows of {LENGTH}: " + " ".join(f"{one.mean:.0%}" for one in parts))
    if parts:
        lines.append(
            f"worst window: {window_words(worst(parts))}; the rules win {rules:.1%}, "
            f"less {MARGIN:.0%}: {rules - MARGIN:.1%}"
        )
    goals = ", ".join(f"{name} {'yes' if ok else 'NO'}" for name, ok in result["held"].items())
    lines.append(
        f"goals held: {goals} (promoted {result['promoted']} of {len(found)}, champions at least "
        f"{LEAST:.0%}, no window below the rules less {MARGIN:.0%})"
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", default=",".join(map(str, SEEDS)))
    parser.add_argument("--matches", type=int, help="default 4000; with --score 2500")
    parser.add_argument("--score", action="store_true", help="declare a score, and judge by it")
    parser.add_argument("--workers", type=int, default=1, help="seeds at the same time")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one-seed", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    matches = arguments.matches or (MATCHES_WITH_SCORE if arguments.score else MATCHES)
    if arguments.one_seed is not None:
        print(json.dumps(one_seed(arguments.one_seed, matches, score=arguments.score)))
        return
    about = machine.describe("numpy", "jax")
    say(about)
    score = ["--score"] if arguments.score else []

    def started(seed: int, place: int) -> Started:
        one = ["--one-seed", str(seed), "--matches", str(matches), *score]
        # As in a learner's own process: more threads gain nothing with networks of this size.
        return [sys.executable, __file__, *one], {"NPROC": "1", "OMP_NUM_THREADS": "1"}

    found = run_seeds(seed_list(arguments.seeds), started, workers=arguments.workers)
    result = summary(found)
    if arguments.json:
        print(json.dumps({"machine": about, "matches": matches, **result, "seeds": found}))
    else:
        print(words(found, result))
    sys.exit(0 if all(result["held"].values()) else 1)


if __name__ == "__main__":
    main()
