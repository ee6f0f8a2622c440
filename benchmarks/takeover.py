"""From rules to champion in swarm, with the real command: learning while the rules play.

    python benchmarks/takeover.py [--seeds 1701,1702,...] [--minutes 12] [--workers 1]
    python benchmarks/takeover.py --evidence simulator          # 6 minutes a seed
    python benchmarks/takeover.py --mode learn                  # naive learning, for the picture

A run is `understudy play swarm --mode auto --difficulty hard --minutes 12` from an empty folder,
pinned to two cores together with its learner where the system can do that. With `--workers N` as
many runs go on at the same time, each on two cores of its own. Afterwards the champion plays 400
frozen matches on seeds that nothing was learned from: its likeliest actions, as the command judges
every version, and drawn ones, as it plays. The rules also play all matches of the run alone, on the
same seeds: what the bot would have done without a learner. The seeds were not used for tuning.

`--out FILE` keeps everything as JSON, the result of each match too: `takeover_picture.py` draws
that. `--runs DIR` keeps the run folders.

Goals, in mode auto: every seed has a champion by evidence at the end, which wins at least 80% of
the frozen matches, and no disjoint window of 500 matches over all seeds lies below the rules less
5 points with its whole 95% interval, neither in wins nor with ties counted by half.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import machine
import numpy as np
from takeover_runs import (
    MARGIN,
    Found,
    MatchWindow,
    Started,
    run_seeds,
    say,
    seed_list,
    window_words,
    windows,
    worst,
)

from understudy.core import files
from understudy.core.arrays import NDArray
from understudy.core.clock import SystemClock
from understudy.games import catalog
from understudy.match.duel import Duel
from understudy.match.evaluate import evaluate
from understudy.match.live_match import EVALUATION, TRAINING, match_seeds
from understudy.match.players import BotPlayer, PolicyPlayer
from understudy.match.series import play
from understudy.promotion.history import read_history
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events
from understudy.telemetry.journal import Reader

SEEDS = (1701, 1702, 1703, 1704, 1705)
MINUTES = {"matches": 12.0, "simulator": 6.0}
FROZEN, LENGTH, LEAST = 400, 500, 0.80
CORES = 2
RESULTS = {"victory": 1.0, "tie": 0.5}
"""What an outcome counts; any other counts 0."""
COUNTS: dict[str, Callable[[NDArray], NDArray]] = {
    "wins": lambda results: (results == 1.0).astype(np.float64),
    "ties by half": lambda results: results,
}
_TELL_EVERY_S = 60.0


def command(run: Path, seed: int, arguments: argparse.Namespace) -> list[str]:
    """The command of one seed."""
    line = ["play", "swarm", "--mode", arguments.mode, "--difficulty", "hard"]
    line += ["--seed", str(seed), "--run", str(run), "--minutes", str(arguments.minutes)]
    line += ["--eval", str(FROZEN), "--json"]
    if arguments.mode == "auto":
        line += ["--evidence", arguments.evidence]
    return [sys.executable, "-m", "understudy", *line]


def one_seed(seed: int, arguments: argparse.Namespace) -> Found:
    """The command, and what its run folder tells."""
    with _folder(arguments.runs) as root:
        run = root / f"{arguments.mode}-{arguments.evidence}-{seed}"
        if run.exists():
            raise SystemExit(f"--runs: {run} exists already; every run begins in an empty folder")
        began = time.monotonic()
        with subprocess.Popen(
            command(run, seed, arguments), stdout=subprocess.PIPE, encoding="utf-8", cwd=root
        ) as process:
            said = _followed(process, run, seed, arguments, began)
        if process.returncode:
            raise SystemExit(f"seed {seed}: the command ended with {process.returncode}")
        found = {"seed": seed, **json.loads(said), **told(run)}
        found["rules_results"] = rules_alone(seed, len(found["results"]))
        found["seconds"] = round(time.monotonic() - began, 1)
        if found["champion_version"]:
            found["champion_drawn"] = drawn(run, found["champion_version"], seed)
        return found


@contextlib.contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept.resolve()
        return
    with tempfile.TemporaryDirectory() as root:
        yield Path(root)


def _followed(
    process: subprocess.Popen[str],
    run: Path,
    seed: int,
    arguments: argparse.Namespace,
    began: float,
) -> str:
    """What the command prints; a line of progress once a minute meanwhile."""
    reader, results = Reader(run / "journal"), list[float]()
    while True:
        try:
            return process.communicate(timeout=_TELL_EVERY_S)[0]
        except subprocess.TimeoutExpired:
            results += [_result(one.e) for one in reader.new() if _is_match(one.e)]
        last, left = results[-LENGTH:], arguments.minutes - (time.monotonic() - began) / 60.0
        mean = f"{sum(last) / len(last):.0%}" if last else "-"
        say(
            f"seed {seed}: {len(results):,} matches, last {LENGTH} {mean}, "
            f"about {max(left, 0.0):.0f} min left"
        )


def _is_match(event: events.Event) -> bool:
    return isinstance(event, events.MatchFinished)


def _result(event: events.Event) -> float:
    assert isinstance(event, events.MatchFinished)
    return RESULTS.get(event.outcome, 0.0)


def told(run: Path) -> Found:
    """Matches and verdicts of a run folder, in order."""
    folder = RunFolder.load(run, SystemClock())
    entries = Reader(folder.journal).new()
    start = next(one.t for one in entries if isinstance(one.e, events.BotStarted))
    played = [one.e for one in entries if isinstance(one.e, events.MatchFinished)]
    known = read_history(folder)
    orders = np.array([one.order for one in known.matches])
    verdicts = [
        {
            "kind": one.kind,
            "version": one.version,
            "match": int((orders <= one.sequence).sum()),
            "seconds": round(known.times[one.sequence] - start, 1),
        }
        for one in known.verdicts
    ]
    kinds: Counter[str] = Counter(one.kind for one in known.verdicts)
    promoted = [one for one in verdicts if one["kind"] == "promoted"]
    return {
        "results": [_result(one) for one in played],
        "roles": dict(Counter(one.role for one in played)),
        "verdicts": verdicts,
        "promoted_after": promoted[0] if promoted else None,
        "champion_version": known.state.incumbent,
        "tests": kinds["nominated"],
        "suspensions": kinds["suspended"],
    }


def rules_alone(seed: int, matches: int) -> list[float]:
    """The results of the rules in the matches that the command plays with this seed.

    Side by side, which changes none of them: no match knows of the others.
    """
    seeds = match_seeds(seed, np.arange(matches), purpose=TRAINING)
    game = catalog.make("swarm", difficulty="hard")
    rules = BotPlayer(catalog.bots("swarm")[catalog.rules_named("swarm")])
    score = play(Duel(game, rules), seeds, np.zeros(matches, np.bool_)).score
    return [0.5 * float(1 + one) for one in np.sign(score)]


def drawn(run: Path, version: int, seed: int) -> dict[str, object]:
    """Frozen matches of a version that draws its actions, on the seeds that the command judges."""
    policy = RunFolder.load(run, SystemClock()).versions.policy(version)
    seeds = match_seeds(seed, np.arange(FROZEN), purpose=EVALUATION)
    game = catalog.make("swarm", difficulty="hard")
    return evaluate(game, PolicyPlayer(policy, sampled=True), seeds).as_dict()


def counted_windows(found: Sequence[Found]) -> dict[str, list[MatchWindow]]:
    """Windows by wins, and with ties counted by half."""
    return {
        name: windows([count(np.array(one["results"])).tolist() for one in found], LENGTH)
        for name, count in COUNTS.items()
    }


def summary(found: Sequence[Found]) -> Found:
    """All seeds together, and whether the goals hold."""
    alone = np.concatenate([one["rules_results"] for one in found])
    rules = {name: float(count(alone).mean()) for name, count in COUNTS.items()}
    parts = counted_windows(found)
    champions = [one["champion"]["win_rate"] for one in found if one["champion_version"]]
    return {
        "rules": rules,
        "windows": {name: [one._asdict() for one in many] for name, many in parts.items()},
        "held": {
            "promoted": len(champions) == len(found),
            "champions": bool(champions) and min(champions) >= LEAST,
            "windows": all(
                bool(many) and not any(one.below(rules[name]) for one in many)
                for name, many in parts.items()
            ),
        },
    }


def row(one: Found) -> str:
    matches = f"{len(one['results']):,} matches"
    if one["promoted_after"] is None:
        first = "no version promoted"
    else:
        after = one["promoted_after"]
        first = f"first promotion after {after['match']:,} matches, {after['seconds']:.0f} s"
    ended = f"newest version {_rate(one['eval'])}"
    if one["champion_version"]:
        ended = (
            f"champion {one['champion_version']} {_rate(one['champion'])}, "
            f"drawn {one['champion_drawn']['win_rate']:.1%}"
        )
    roles = ", ".join(f"{role} {count:,}" for role, count in sorted(one["roles"].items()))
    return (
        f"seed {one['seed']}: {first}; {ended}; rules {one['rules']['win_rate']:.1%}; "
        f"{one['tests']} tests, practice suspended {one['suspensions']} times; {matches} ({roles})"
    )


def _rate(tally: Found) -> str:
    low, high = tally["interval"]
    return f"{tally['win_rate']:.1%} ({low:.1%} to {high:.1%})"


def words(found: Sequence[Found], result: Found, *, mode: str) -> str:
    lines = [row(one) for one in found]
    for name, parts in counted_windows(found).items():
        if not parts:
            continue
        rules = result["rules"][name]
        lines.append(
            f"{name}: windows of {LENGTH}: {' '.join(f'{one.mean:.0%}' for one in parts)}; worst "
            f"{window_words(worst(parts))}; the rules {rules:.1%}, less {MARGIN:.0%} "
            f"{rules - MARGIN:.1%}"
        )
    if mode == "auto":
        held = result["held"].items()
        goals = ", ".join(f"{name} {'yes' if holds else 'NO'}" for name, holds in held)
        lines.append(
            f"goals held: {goals} (all promoted, champions at least {LEAST:.0%}, no window below "
            f"the rules less {MARGIN:.0%})"
        )
    return "\n".join(lines)


def cores_of(place: int) -> str:
    """The cores of a run, as a list of numbers; empty where the system cannot pin processes."""
    if not hasattr(os, "sched_getaffinity"):
        return ""
    mine = sorted(os.sched_getaffinity(0))[CORES * place : CORES * (place + 1)]
    if not mine:
        raise SystemExit(f"--workers: expected one for every {CORES} cores at most")
    return ",".join(map(str, mine))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", default=",".join(map(str, SEEDS)))
    parser.add_argument("--minutes", type=float, help="default 12; with a simulator 6")
    parser.add_argument("--evidence", choices=tuple(MINUTES), default="matches")
    parser.add_argument("--mode", choices=("auto", "learn"), default="auto")
    parser.add_argument("--workers", type=int, default=1, help="seeds at the same time")
    parser.add_argument("--runs", type=Path, help="keep the run folders there")
    parser.add_argument("--out", type=Path, help="write everything to this file, as JSON")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one-seed", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--cores", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.minutes = arguments.minutes or MINUTES[arguments.evidence]
    if arguments.one_seed is not None:
        if arguments.cores:
            os.sched_setaffinity(0, map(int, arguments.cores.split(",")))
        print(json.dumps(one_seed(arguments.one_seed, arguments)))
        return
    seeds, workers = seed_list(arguments.seeds), arguments.workers
    for place in range(workers):
        cores_of(place)
    about = machine.describe("numpy", "jax", "optax")
    rounds = -(-len(seeds) // workers)
    say(about)
    say(f"{len(seeds)} seeds, about {rounds * (arguments.minutes + 0.5):.0f} min")
    given = [one for one in sys.argv[1:] if one != "--json"]

    def started(seed: int, place: int) -> Started:
        one = ["--one-seed", str(seed), "--cores", cores_of(place)]
        return [sys.executable, __file__, *given, *one], {}

    found = run_seeds(seeds, started, workers=workers)
    result = summary(found)
    told_all = {
        "machine": about,
        "mode": arguments.mode,
        "evidence": arguments.evidence,
        "minutes": arguments.minutes,
        **result,
        "seeds": found,
    }
    if arguments.out is not None:
        files.write_atomic(arguments.out, json.dumps(told_all).encode())
    print(json.dumps(told_all) if arguments.json else words(found, result, mode=arguments.mode))
    sys.exit(0 if arguments.mode != "auto" or all(result["held"].values()) else 1)


if __name__ == "__main__":
    main()
