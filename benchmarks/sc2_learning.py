"""Does a StarCraft II bot learn beside the game? The template's bot in the stand-in, by seeds.

    python benchmarks/sc2_learning.py [--mode learn|auto|both] [--seeds 4101,...] [--minutes 10]
                                      [--matches 2500] [--json]

The bot of `understudy new sc2-bot` plays the stand-in through burnysc2 and a socket in one process,
with the learner in another, both with default settings, `game_step` 8, and results alone as reward.
The seeds were first played after the stand-in's rules were frozen (ADR 0042).

`learn`: from scratch, the newest version plays, for `--minutes`; then frozen matches of the version
that it came to, actions drawn. Goal: at least 80% of them in every seed.
`auto`: the template's rules play, and what is better by evidence takes over; `--matches` at most.
Goals: in every seed a version is promoted; no disjoint window of 300 matches over all seeds lies
below the rules less 5 points with its whole 95% interval. What the rules win is measured first.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import machine
from sc2_matches import ACTIONS, matches
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

from understudy import Understudy
from understudy.core.statistics import wilson
from understudy.sc2 import FEATURES

SEEDS = (4101, 4102, 4103, 4104, 4105)
MINUTES, MATCHES, FROZEN, RULES_MATCHES = 10.0, 2500, 200, 600
LEAST, LENGTH = 0.8, 300
QUIET = {"report.status_every_s": 0}
_SPREAD = 1_000_000
_TELL_EVERY = 100
_FROZEN_FROM, _RULES = 500_000, 99


def opened(run: Path, mode: Literal["learn", "auto", "play", "shadow"], seed: int) -> Understudy:
    return Understudy.open(
        run,
        features=FEATURES,
        actions=ACTIONS,
        mode=mode,
        learner="off" if mode == "shadow" else "process",
        rules="template",
        settings=QUIET,
        seed=seed,
    )


async def counted(mind: Understudy, number: int, first_seed: int) -> list[int]:
    """Results of so many matches, 1 for a victory."""
    results: list[int] = []
    async for bot in matches(mind, first_seed=first_seed):
        match = bot.strategist.match
        assert match is not None
        results.append(int(match.outcome == "victory"))
        if len(results) == number:
            break
    return results


async def learned(root: Path, seed: int, minutes: float) -> Found:
    """Mode `learn` from scratch, then frozen matches."""
    results: list[int] = []
    began = time.monotonic()
    first: float | None = None
    with opened(root, "learn", seed) as mind:
        async for bot in matches(mind, first_seed=seed * _SPREAD):
            match = bot.strategist.match
            assert match is not None
            results.append(int(match.outcome == "victory"))
            minutes_so_far = (time.monotonic() - began) / 60.0
            if first is None and len(results) >= 100 and sum(results[-100:]) >= 100 * LEAST:
                first = minutes_so_far
            if len(results) % _TELL_EVERY == 0:
                say(
                    f"seed {seed}: learn, match {len(results)}, last {_TELL_EVERY} "
                    f"{sum(results[-_TELL_EVERY:]) / _TELL_EVERY:.0%}, version {mind.version}, "
                    f"{minutes_so_far:.1f} min"
                )
            if minutes_so_far >= minutes:
                break
    with opened(root, "play", seed) as mind:
        version = mind.version
        frozen = await counted(mind, FROZEN, seed * _SPREAD + _FROZEN_FROM)
    return {
        "seed": seed,
        "matches": len(results),
        "minutes": minutes,
        "version": version,
        "minutes_to_goal": first,
        "hundreds": [sum(results[at : at + 100]) for at in range(0, len(results) - 99, 100)],
        "frozen_wins": sum(frozen),
    }


async def taken_over(root: Path, seed: int, limit: int) -> Found:
    """Mode `auto` from the template's rules."""
    results: list[int] = []
    roles: Counter[str] = Counter()
    told: list[tuple[int, str, int]] = []
    began = time.monotonic()
    with opened(root, "auto", seed) as mind:
        assert mind.promotion is not None
        async for bot in matches(mind, first_seed=seed * _SPREAD):
            match = bot.strategist.match
            assert match is not None
            results.append(int(match.outcome == "victory"))
            roles[match.role] += 1
            news = mind.promotion.verdicts[len(told) :]
            told += [(len(results), one.kind, one.version) for one in news]
            if len(results) % _TELL_EVERY == 0:
                left = minutes_left(len(results), limit, time.monotonic() - began)
                champion = mind.promotion.state.incumbent
                plays = f"version {champion} plays" if champion else "the rules play"
                share = sum(results[-_TELL_EVERY:]) / _TELL_EVERY
                say(
                    f"seed {seed}: auto, match {len(results)}, last {_TELL_EVERY} {share:.0%}, "
                    f"{plays}, {left}"
                )
            if len(results) >= limit:
                break
        champion = mind.promotion.state.incumbent
    promoted = [number for number, kind, _ in told if kind == "promoted"]
    return {
        "seed": seed,
        "promoted_after": promoted[0] if promoted else None,
        "champion": champion,
        "roles": dict(roles),
        "verdicts": told,
        "results": results,
        "minutes": (time.monotonic() - began) / 60.0,
    }


async def rules_alone(root: Path, number: int) -> Found:
    """What the template's rules win."""
    with opened(root, "shadow", _RULES) as mind:
        results = await counted(mind, number, _RULES * _SPREAD)
    return {"seed": _RULES, "wins": sum(results), "matches": number}


def one(part: str, seed: int, asked: argparse.Namespace) -> Found:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "run"
        if part == "learn":
            return asyncio.run(learned(root, seed, asked.minutes))
        if part == "auto":
            return asyncio.run(taken_over(root, seed, asked.matches))
        return asyncio.run(rules_alone(root, asked.rules_matches))


def learn_words(found: Sequence[Found]) -> list[str]:
    lines = []
    for one_seed in found:
        rate = one_seed["frozen_wins"] / FROZEN
        low, high = wilson(one_seed["frozen_wins"], FROZEN)
        first = one_seed["minutes_to_goal"]
        when = "never" if first is None else f"after {first:.1f} min"
        lines.append(
            f"learn, seed {one_seed['seed']}: {one_seed['matches']:,} matches in "
            f"{one_seed['minutes']:g} min; {LEAST:.0%} of a hundred {when}; version "
            f"{one_seed['version']} wins {rate:.1%} ({low:.1%} to {high:.1%}) of {FROZEN} frozen"
        )
        lines.append("  won of each hundred: " + " ".join(map(str, one_seed["hundreds"])))
    return lines


def auto_words(found: Sequence[Found], rules: float) -> list[str]:
    lines = [f"the rules win {rules:.1%}"]
    for one_seed in found:
        after = one_seed["promoted_after"]
        first = "no version promoted" if after is None else f"promoted after {after:,} matches"
        last = one_seed["results"][-LENGTH:]
        roles = ", ".join(f"{role} {count:,}" for role, count in sorted(one_seed["roles"].items()))
        lines.append(
            f"auto, seed {one_seed['seed']}: {first}; version {one_seed['champion']} plays at the "
            f"end; last {LENGTH} {sum(last) / len(last):.1%}; {roles}; "
            f"{one_seed['minutes']:.0f} min"
        )
    parts = windows([one_seed["results"] for one_seed in found], LENGTH)
    if parts:
        lines.append(f"windows of {LENGTH}: " + " ".join(f"{part.mean:.0%}" for part in parts))
        lines.append(f"worst window: {window_words(worst(parts))}; allowed {rules - MARGIN:.1%}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mode", choices=["learn", "auto", "both"], default="both")
    parser.add_argument("--seeds", default=",".join(map(str, SEEDS)))
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--matches", type=int, default=MATCHES)
    parser.add_argument("--rules-matches", type=int, default=RULES_MATCHES)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--part", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.part:
        part, seed = asked.part
        print(json.dumps(one(part, int(seed), asked)))
        return
    about = machine.describe("numpy", "jax", "burnysc2", "protobuf")
    say(about)
    limits = ["--minutes", asked.minutes, "--matches", asked.matches]
    limits += ["--rules-matches", asked.rules_matches]

    def run(part: str, seeds: Sequence[int]) -> list[Found]:
        def started(seed: int, place: int) -> Started:
            line = [sys.executable, __file__, "--part", part, seed, *limits]
            return [str(word) for word in line], {}

        return run_seeds(seeds, started, workers=1)  # a bot and its learner take two cores

    seeds, result, lines = seed_list(asked.seeds), {}, [about]
    held: dict[str, bool] = {}
    if asked.mode in ("learn", "both"):
        result["learn"] = run("learn", seeds)
        lines += learn_words(result["learn"])
        held["learned"] = min(one["frozen_wins"] for one in result["learn"]) >= LEAST * FROZEN
    if asked.mode in ("auto", "both"):
        (alone,) = run("rules", [_RULES])
        rules = alone["wins"] / alone["matches"]
        result["rules"], result["auto"] = [alone], run("auto", seeds)
        lines += auto_words(result["auto"], rules)
        parts = windows([one["results"] for one in result["auto"]], LENGTH)
        held["promoted"] = all(one["promoted_after"] for one in result["auto"])
        held["windows"] = bool(parts) and not any(part.below(rules) for part in parts)
    goals = ", ".join(f"{name} {'yes' if ok else 'NO'}" for name, ok in held.items())
    lines.append(f"goals held: {goals}")
    print(
        json.dumps({"machine": about, "held": held, **result}) if asked.json else "\n".join(lines)
    )
    sys.exit(0 if all(held.values()) else 1)


if __name__ == "__main__":
    main()
