"""Does it get worse by going on? Long runs with all versions kept, one judged for every minute.

    python benchmarks/stability.py [--only mlp,transformer,territory] [--seeds 5101,5102,5103]
                                   [--minutes 20] [--matches 400] [--keep DIR] [--jobs 1]
                                   [--set KEY=VALUE] [--json]
    python benchmarks/stability.py --keep DIR --judge            # judge what is there, play nothing

Three kinds of runs, each the real command with the learner in its own process: `play swarm` against
`hard` with the MLP, against `medium` with the decision transformer, and territory behind a server.
Afterwards the newest version of each minute plays frozen matches on seeds that nothing was learned
from, drawing its actions and taking the likeliest ones. In both, the lowest of the last three
quarters of the run may be 8 points under the best of them, and the last 4; `fall` is the most that
one lies under an earlier one, which a policy that climbs does not do. For territory a point is a
hundredth of what the best version gains over the untrained policy, in reward a decision.

Where cores are shared, `--set learner.niceness=0` gives the learner its part of them: else every
other program comes first, and matches wait for it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import machine
import numpy as np
import served
import territory_learning

from understudy.adapters.territory.remote_play import RemoteSession, play_remote
from understudy.arena.compiling import compiled_duel
from understudy.core.clock import SystemClock
from understudy.games import catalog
from understudy.match.duel import Duel
from understudy.match.live_match import EVALUATION, match_seeds
from understudy.match.players import PolicyPlayer
from understudy.match.series import play
from understudy.policy.policy import Policy, untrained
from understudy.registry.run_folder import RunFolder

MOST_UNDER_BEST, MOST_LAST_UNDER_BEST = 8.0, 4.0
KEEP_ALL = "registry.keep_versions=1000000"
HOW = ("drawn", "likeliest")


@dataclass(frozen=True)
class Kind:
    """What is run, with how many of the seeds."""

    name: str
    seeds: int
    network: str = ""
    difficulty: str = ""


KINDS = (
    Kind("mlp", 3, "mlp", "hard"),
    Kind("transformer", 2, "decision-transformer", "medium"),
    Kind("territory", 2),
)


def run_swarm(kind: Kind, seed: int, minutes: float, run: Path, settings: Sequence[str]) -> None:
    """The command itself; nothing is judged yet."""
    subprocess.run(
        [sys.executable, "-m", "understudy", "play", "swarm", "--difficulty", kind.difficulty,
         "--network", kind.network, "--minutes", str(minutes), "--seed", str(seed), "--eval", "0",
         "--run", str(run), *(word for one in settings for word in ("--set", one)), "--json"],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip


def run_territory(
    kind: Kind, seed: int, minutes: float, run: Path, settings: Sequence[str]
) -> None:
    """A server with its learner, played by territories over a WebSocket."""
    settings = (*territory_learning.SETTINGS, *settings)
    with served.understudy(run, "territory", "--seed", str(seed), settings=settings) as server:
        session = RemoteSession(
            url=server.url,
            territories=territory_learning.TERRITORIES,
            speed=600.0,
            minutes=minutes,
            seed=seed,
        )
        play_remote(session, show=lambda progress: None)


def versions_by_minute(folder: RunFolder) -> Iterator[tuple[int, int]]:
    """(minute, the newest version that was there by its end), for each minute that made one."""
    newest: dict[int, int] = {}
    for number in folder.versions.numbers():
        age_s = folder.versions.manifest(number).created_at - folder.identity.created_at
        newest[int(age_s // 60.0) + 1] = number
    yield from sorted(newest.items())


def win_rate(policy: Policy, kind: Kind, seed: int, matches: int, *, drawn: bool) -> float:
    """In per cent, over frozen matches that all versions play."""
    game = catalog.make("swarm", difficulty=kind.difficulty)
    seeds = match_seeds(seed, np.arange(matches), purpose=EVALUATION)
    player = PolicyPlayer(policy, sampled=drawn)
    end = play(Duel(game, player), seeds, np.zeros(matches, np.bool_), engine=compiled_duel)
    return 100.0 * float((end.score > 0).mean())


def reward(policy: Policy, seed: int, matches: int, *, drawn: bool) -> float:
    """A decision of territory behind its gate, times 100."""
    judged = territory_learning.frozen(
        seed, policy, gate=territory_learning.GATE, sampled=drawn, matches=matches
    )
    return 100.0 * judged.mean


def curve(kind: Kind, seed: int, run: Path, matches: int) -> dict[str, Any]:
    """What each minute's version is worth, and whether that holds."""
    folder = RunFolder.load(run, SystemClock())
    points: dict[str, list[float]] = {how: [] for how in HOW}
    minutes: list[int] = []
    gained = 1.0
    if kind.name == "territory":
        start = untrained(folder.spec, folder.config.learner.seed)
        zero = {how: reward(start, seed, matches, drawn=how == "drawn") for how in HOW}
    for minute, number in versions_by_minute(folder):
        policy = folder.versions.policy(number)
        minutes.append(minute)
        for how in HOW:
            drawn = how == "drawn"
            points[how].append(
                reward(policy, seed, matches, drawn=drawn) - zero[how]
                if kind.name == "territory"
                else win_rate(policy, kind, seed, matches, drawn=drawn)
            )
        print(
            f"{kind.name} {seed}, minute {minute}, version {number}: "
            + ", ".join(f"{how} {points[how][-1]:.2f}" for how in HOW),
            file=sys.stderr,
        )
    late = [index for index, minute in enumerate(minutes) if minute > max(minutes) / 4.0]
    found: dict[str, Any] = {"kind": kind.name, "seed": seed, "minutes": minutes}
    for how in HOW:
        values = [points[how][index] for index in late]
        if kind.name == "territory":
            gained = max(*values, 1e-9) / 100.0
        best, low, last = (number / gained for number in (max(values), min(values), values[-1]))
        fall = float(np.max(np.maximum.accumulate(values) - values)) / gained
        found[how] = {
            "curve": [round(number, 2) for number in points[how]],
            "best": best, "low": low, "last": last, "fall": fall,
            "holds": best > 0.0
            and best - low <= MOST_UNDER_BEST
            and best - last <= MOST_LAST_UNDER_BEST,
        }  # fmt: skip
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(kind.name for kind in KINDS))
    parser.add_argument("--seeds", default="5101,5102,5103")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--matches", type=int, default=400)
    parser.add_argument("--keep", type=Path, help="where the run folders stay")
    parser.add_argument("--judge", action="store_true", help="play nothing, judge what is there")
    parser.add_argument("--play", action="store_true", help="judge nothing")
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side, two cores each")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    chosen = [kind for kind in KINDS if kind.name in arguments.only.split(",")]
    plan = [(kind, seed) for kind in chosen for seed in seeds[: kind.seeds]]
    print(machine.describe("numpy", "jax"), file=sys.stderr)
    with tempfile.TemporaryDirectory() as place:
        root = arguments.keep or Path(place)
        root.mkdir(parents=True, exist_ok=True)
        if not arguments.judge:
            settings = (KEEP_ALL, *arguments.set)
            play_all(plan, arguments.minutes, root, jobs=arguments.jobs, settings=settings)
        if arguments.play:
            return
        found = [
            curve(kind, seed, root / f"{kind.name}-{seed}", arguments.matches)
            for kind, seed in plan
        ]
    if arguments.json:
        print(json.dumps({"machine": machine.describe("numpy", "jax"), "runs": found}))
    else:
        print("\n".join(table(found)))
    sys.exit(0 if all(one[how]["holds"] for one in found for how in HOW) else 1)


def play_all(
    plan: list[tuple[Kind, int]], minutes: float, root: Path, *, jobs: int, settings: Sequence[str]
) -> None:
    """Every run, `jobs` at a time; the first that fails ends the benchmark."""
    rounds = -(-len(plan) // jobs)
    print(f"{len(plan)} runs of {minutes:g} min, about {rounds * minutes:.0f} min", file=sys.stderr)
    said = threading.Lock()

    def one(kind: Kind, seed: int) -> None:
        begin = run_territory if kind.name == "territory" else run_swarm
        begin(kind, seed, minutes, root / f"{kind.name}-{seed}", settings)
        with said:
            print(f"{kind.name} {seed} played", file=sys.stderr)

    with ThreadPoolExecutor(jobs) as pool:
        for done in [pool.submit(one, *each) for each in plan]:
            done.result()


def table(found: list[dict[str, Any]]) -> list[str]:
    """One line a run and way of playing."""
    lines = [f"{'run':<20}{'actions':<11}{'best':>8}{'lowest':>8}{'last':>8}{'fall':>8}  holds"]
    for one in found:
        for how in HOW:
            row = one[how]
            lines.append(
                f"{one['kind'] + ' ' + str(one['seed']):<20}{how:<11}{row['best']:>8.1f}"
                f"{row['low']:>8.1f}{row['last']:>8.1f}{row['fall']:>8.1f}"
                f"  {'yes' if row['holds'] else 'NO'}"
            )
    return [*lines, "of the last three quarters of the run; points are per cent of matches won, or "
            "of the best gain over untrained (territory)"]  # fmt: skip


if __name__ == "__main__":
    main()
