"""Equal time on the same cores: ours against sb3-contrib's RecurrentPPO, then frozen matches.

    python benchmarks/equal_time.py [--minutes 20] [--json]        # 2 hours on a quiet machine
    python benchmarks/equal_time.py --cpu-minutes 40 ...           # a machine that others use too
    python benchmarks/equal_time.py --run A B C --peer-model X.npz Y.npz Z.npz   # train nothing

Three seeds train on each side, and each of ours meets each of the peer's: nine pairings. Ours is
`understudy train brawl --network small --minutes 20`, compilation included. The peer
(`equal_time_peer.py`) has an LSTM policy, settings found by a search on other seeds, and all
matches stepped at once (`--peer-set dummy=true`: one after the other, as its users have them). It
is tried with one and with two threads and trains with the faster. By processor time, the peer has
that of all its threads, and ours half as many minutes by the clock: never more of two cores.

What is compared is two ways to train, not two optimisers. Curricula and shaped rewards are ours:
`--config curriculum` has three stages, its own past as an opponent, and the reward sets `approach`,
`dense` and `sparse`. The peer meets the seven scripted bots, all alike from the first match to the
last, with the game's own reward (set `default`: damage, knockouts, the result, closing distance).

One training at a time, such as on two cores of a larger machine, and the matches later:

    taskset -c 0,1 python benchmarks/equal_time.py --only ours --seed 9201 --run runs/ours-9201
    taskset -c 2,3 python benchmarks/equal_time.py --only peer --seed 9201 --peer-model 9201.npz

Matches are played under NumPy on seeds that no training used, half from either slot, draws are not
wins. Exit code 1 where ours wins less than 90% by likeliest actions, the mean of all pairings.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import equal_time_player
import machine
import peers
from equal_time_pairings import Maker, meet

from understudy.core.clock import SystemClock
from understudy.core.files import write_atomic
from understudy.core.spaces import ActionSpace
from understudy.match.players import PolicyPlayer
from understudy.registry.run_folder import RunFolder

GOAL = 0.90
MATCHES, BOT_MATCHES = 500, 100
MINUTES = 20.0
SEEDS = 3
SEED = 9201
"""The first of both sides, and that of the matches; the peer's settings were found on others."""
CORES = 2
POINTS = 40
"""Lines of the peer's log, and checkpoints."""
TRIAL_S = 30.0
"""How long the peer is tried with each number of threads."""
STARVED = 0.75
"""Below this share of its threads, a peer that is timed by the clock was slowed by others."""
DIFFERENCES = (
    "curricula and shaped rewards are ours: the peer meets the seven scripted bots alike, with the "
    "game's own reward"
)


def train_ours(run: Path, *, minutes: float, preset: str, config: str | None, seed: int) -> float:
    """The command itself; seconds of processor that it took (0 on Windows, which does not say)."""
    before = os.times()
    print(f"ours: {preset}, seed {seed}, {minutes:g} minutes ...", file=sys.stderr, flush=True)
    run.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [sys.executable, "-m", "understudy", "train", "brawl", "--network", preset,
         "--minutes", str(minutes), "--seed", str(seed), "--run", str(run), "--json",
         *(["--config", config] if config else [])],
        check=True, stdout=subprocess.PIPE, cwd=run.parent,
        env=os.environ | {"JAX_PLATFORMS": "cpu"},  # the peer has no more than these cores either
    )  # fmt: skip
    after = os.times()
    user_s = after.children_user - before.children_user
    return user_s + after.children_system - before.children_system


def train_peer(
    out: Path, *, python: Path, minutes: float, cpu: bool, seed: int, settings: Sequence[str],
    points: int = POINTS,
) -> dict[str, Any]:  # fmt: skip
    """The peer in its own environment; how it went."""
    what = "processor minutes" if cpu else "minutes"
    print(f"peer: seed {seed}, {minutes:g} {what} {settings} ...", file=sys.stderr, flush=True)
    done = subprocess.run(
        [str(python), str(Path(__file__).with_name("equal_time_peer.py")),
         "--out", str(out), "--seed", str(seed), "--cpu-minutes" if cpu else "--minutes",
         str(minutes), "--points", str(points),
         *(word for one in settings for word in ("--set", one))],
        check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def threads_of(
    *, cpu: bool, settings: Sequence[str], cores: int, steps_s: Callable[[int], float]
) -> tuple[int, dict[str, float]]:
    """The peer's faster number of threads, and what each made where it was tried.

    By processor time it has one thread: two would spin on a busy machine.
    """
    fixed = [int(one.removeprefix("threads=")) for one in settings if one.startswith("threads=")]
    if fixed or cpu or cores < CORES:
        return (fixed or [1])[-1], {}
    rates = {threads: steps_s(threads) for threads in (1, CORES)}
    return max(rates, key=lambda threads: rates[threads]), {str(k): v for k, v in rates.items()}


def trial(
    threads: int, *, python: Path, seed: int, settings: Sequence[str], seconds: float
) -> float:
    """Steps/s of the peer over a short training that is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        told = train_peer(
            Path(folder) / "trial.npz", python=python, minutes=seconds / 60.0, cpu=False, seed=seed,
            settings=[*settings, f"threads={threads}"], points=1,
        )  # fmt: skip
    rate = told["steps"] / told["wall_s"]
    print(f"peer: {rate:,.0f} steps/s with {threads} threads", file=sys.stderr, flush=True)
    return float(rate)


def ours_of(run: Path) -> tuple[PolicyPlayer, dict[str, object]]:
    """The champion of a run, and what it took."""
    folder = RunFolder.load(run, SystemClock())
    record = folder.pointers.read("champion")
    version = record.version if record else folder.versions.head()
    if version is None:
        raise SystemExit(f"--run {run}: this run has no version yet")
    manifest = folder.versions.manifest(version)
    policy = folder.versions.policy(version)
    config = folder.config
    return PolicyPlayer(policy), {
        "run": run.as_posix(),
        "version": version,
        "seed": config.learner.seed,
        "stages": [one.name for one in config.curriculum.stages],
        "rewards": sorted(
            {
                name or config.rewards.set
                for stage in config.curriculum.stages
                for name in (stage.rewards, stage.rewards_end or stage.rewards)
            }
            or {config.rewards.set}
        ),
        "steps": manifest.counters["steps"],
        "wall_s": round(manifest.created_at - folder.identity.created_at, 1),
        "parameters": sum(one.size for one in policy.weights.params.values()),
    }


def peer_told(model: Path) -> dict[str, object]:
    """What the peer's run wrote beside its model, without the curve."""
    beside = model.with_suffix(".json")
    if not beside.exists():  # a checkpoint from along the way
        return {"model": model.as_posix()}
    told: dict[str, object] = json.loads(beside.read_text(encoding="utf-8"))
    told.pop("curve", None)
    return {"model": model.as_posix(), **told}


def starved(peer: Mapping[str, Any]) -> bool:
    """Whether others kept the peer from the processors while the clock ran."""
    by_clock = peer.get("budget_of") == "wall"
    return by_clock and bool(peer["cores_used"] < STARVED * _usable(peer["settings"]))


def _usable(settings: Mapping[str, Any]) -> int:
    """Cores that the peer can keep busy: environments one after the other have one."""
    return 1 if settings["dummy"] else int(settings["threads"])


def table(result: Mapping[str, Any]) -> str:
    """The figures for people."""
    lines = [result["machine"], *map(_ours_line, result["ours"])]
    lines += [_peer_line(one) for one in result["peer"]]
    lines += [DIFFERENCES]
    for mode, rows in result["pairings"].items():
        lines += ["", f"win rate of ours, {mode} actions, {rows[0][0]['matches']} matches each"]
        columns = [f"peer {one.get('seed', index)}" for index, one in enumerate(result["peer"])]
        lines.append(f"{'':14}" + "".join(f"{one:>12}" for one in columns))
        for told, row in zip(result["ours"], rows, strict=True):
            lines.append(
                f"ours {told['seed']!s:9}" + "".join(f"{one['win_rate']:12.1%}" for one in row)
            )
        lines += _summary_lines(result["summary"][mode])
    for mode in result["ours_v_bots"]:
        ours, peer = result["ours_v_bots"][mode], result["peer_v_bots"][mode]
        head = f"{'v bots, ' + mode + ', mean (worst seed)':36} {'ours':>16} {'peer':>16}"
        lines += ["", head]
        lines += [f"{name:36} {_over(ours, name):>16} {_over(peer, name):>16}" for name in ours[0]]
    for one in result["peer"]:
        if starved(one):
            lines.append(
                f"peer {one['seed']} got {one['cores_used']:.1f} of the "
                f"{_usable(one['settings'])} cores that it can use: other programs were running, "
                "and this is no result; use --cpu-minutes"
            )
    return "\n".join(lines)


def _ours_line(told: Mapping[str, Any]) -> str:
    spent = f" and {told['cpu_s']:.0f} s of processor" if told["cpu_s"] else ""
    staged = f"{len(told['stages'])} stages" if told["stages"] else "no curriculum"
    return (
        f"ours  seed {told['seed']}, {told['run']} version {told['version']}: {told['steps']:,} "
        f"steps in {told['wall_s']:.0f} s{spent}, {told['parameters']:,} parameters, {staged}, "
        f"rewards {', '.join(told['rewards'])}"
    )


def _peer_line(told: Mapping[str, Any]) -> str:
    if "steps" not in told:
        return f"peer  {told['model']}"
    tried = told.get("threads_tried", {})
    rates = ", ".join(f"{threads}: {rate:,.0f} steps/s" for threads, rate in tried.items())
    return (
        f"peer  seed {told['seed']}, sb3-contrib {told['sb3_contrib']}: {told['steps']:,} steps in "
        f"{told['wall_s']:.0f} s and {told['cpu_s']:.0f} s of processor, "
        f"{told['parameters']:,} parameters, {told['settings']['threads']} threads"
        + (f" (tried {rates})" if rates else "")
    )


def _summary_lines(summed: Mapping[str, Any]) -> list[str]:
    low, high = summed["interval"]
    worst = summed["worst"]
    worst_low, worst_high = worst["interval"]
    return [
        f"mean {summed['mean']:.1%} (95%, over seeds and matches: {low:.1%} to {high:.1%})",
        f"worst pairing {worst['win_rate']:.1%} ({worst_low:.1%} to {worst_high:.1%}): "
        f"{worst['wins']} won, {worst['draws']} drawn, {worst['losses']} lost, "
        f"{worst['distinct']} distinct",
    ]


def _over(reports: Sequence[Mapping[str, Any]], bot: str) -> str:
    rates = [one[bot]["win_rate"] for one in reports]
    return f"{sum(rates) / len(rates):.1%} ({min(rates):.1%})"


Plan = Mapping[str, Sequence[tuple[int, Path]]]
"""The trainings of each side: seed and where to."""


def plan(arguments: argparse.Namespace, root: Path) -> Plan:
    """What is to be trained. Without `--only`, runs and models that are named exist already."""
    named = {"ours": arguments.run, "peer": arguments.peer_model}
    forms = {"ours": "ours-{}", "peer": "peer-{}.npz"}
    wanted: dict[str, list[tuple[int, Path]]] = {"ours": [], "peer": []}
    for side in [arguments.only] if arguments.only else [one for one in named if not named[one]]:
        seeds = range(arguments.seed, arguments.seed + arguments.seeds)
        places = named[side] or [root / forms[side].format(seed) for seed in seeds]
        wanted[side] = [(arguments.seed + i, place.resolve()) for i, place in enumerate(places)]
    return wanted


def announced(wanted: Plan, arguments: argparse.Namespace) -> str:
    """What will be trained, and how long that takes."""
    ours, theirs = len(wanted["ours"]), len(wanted["peer"])
    total = ours * arguments.minutes + theirs * (arguments.cpu_minutes or arguments.minutes)
    text = f"ours trains {ours} x {arguments.minutes:g} min, the peer {theirs} x "
    text += (
        f"{arguments.cpu_minutes:g} processor min"
        if arguments.cpu_minutes
        else (f"{arguments.minutes:g} min")
    )
    text += f": {total:.0f} min in all"
    if arguments.only:
        return f"{text}, no matches (--only)"
    pairings = (ours or len(arguments.run)) * (theirs or len(arguments.peer_model))
    return f"{text}, then {pairings} pairings of {arguments.matches} matches"


def train_all(arguments: argparse.Namespace, wanted: Plan) -> dict[Path, float]:
    """One training after the other, each alone on its cores; our runs' seconds of processor."""
    print(announced(wanted, arguments), file=sys.stderr, flush=True)
    cpu_s = {
        run: train_ours(
            run, minutes=arguments.minutes, preset=arguments.preset, config=arguments.config,
            seed=seed,
        )
        for seed, run in wanted["ours"]
    }  # fmt: skip
    if not wanted["peer"]:
        return cpu_s
    cpu, settings = arguments.cpu_minutes is not None, list(arguments.peer_set)
    python = arguments.peer_python or peers.python()
    threads, tried = threads_of(
        cpu=cpu, settings=settings, cores=_cores(),
        steps_s=lambda threads: trial(
            threads, python=python, seed=arguments.seed, settings=settings,
            seconds=arguments.trial_seconds,
        ),
    )  # fmt: skip
    for seed, model in wanted["peer"]:
        told = train_peer(
            model, python=python, minutes=arguments.cpu_minutes if cpu else arguments.minutes,
            cpu=cpu, seed=seed, settings=[f"threads={threads}", *settings],
        )  # fmt: skip
        told["threads_tried"] = tried
        write_atomic(model.with_suffix(".json"), json.dumps(told, indent=1).encode())
    return cpu_s


def measure(arguments: argparse.Namespace, root: Path) -> dict[str, Any]:
    """Trains what is missing; then they meet."""
    wanted = plan(arguments, root)
    cpu_s = train_all(arguments, wanted)
    runs = [run for _, run in wanted["ours"]] or arguments.run
    models = [model for _, model in wanted["peer"]] or arguments.peer_model
    ours = [ours_of(run) for run in runs]
    actions = ours[0][0].policy.spec.actions
    told = [peer_told(model) for model in models]
    met = meet(
        [_ours_maker(player) for player, _ in ours],
        [_peer_maker(model, actions) for model in models],
        matches=arguments.matches,
        bot_matches=arguments.bot_matches,
        seed=arguments.seed,
    )
    return {
        "ours": [
            said | {"cpu_s": round(cpu_s.get(run, 0.0), 1)}
            for run, (_, said) in zip(runs, ours, strict=True)
        ],
        "peer": told,
        **met,
        "peer_starved": any(starved(one) for one in told),
        "reached": met["summary"]["likeliest"]["mean"] >= GOAL,
        "differences": DIFFERENCES,
        "machine": machine.describe("numpy"),
    }


def _ours_maker(player: PolicyPlayer) -> Maker:
    return lambda sampled: PolicyPlayer(player.policy, sampled=sampled)


def _peer_maker(model: Path, actions: ActionSpace) -> Maker:
    return lambda sampled: equal_time_player.load(model, actions, sampled=sampled)


def _cores() -> int:
    """Those that this process may use: `taskset` gives it fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    budgets = parser.add_mutually_exclusive_group()
    budgets.add_argument(
        "--minutes", type=float, default=MINUTES, help="of each by the clock (%(default)g)"
    )
    budgets.add_argument("--cpu-minutes", type=float, help="of each peer; ours half by the clock")
    parser.add_argument("--seed", type=int, default=SEED, help="the first (%(default)s)")
    parser.add_argument(
        "--seeds", type=int, default=SEEDS, help="trainings of each side (%(default)s)"
    )
    parser.add_argument(
        "--only",
        choices=("ours", "peer"),
        help="train this side, to --run or --peer-model; no matches",
    )
    parser.add_argument("--run", type=Path, nargs="+", help="judge these runs instead of training")
    parser.add_argument("--peer-model", type=Path, nargs="+", help="meet these .npz instead")
    parser.add_argument("--preset", default="small")
    parser.add_argument(
        "--config", help="of ours, as in `understudy train` (default: the preset's)"
    )
    parser.add_argument("--peer-set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--peer-python", type=Path, help="default: that of .venv-bench")
    parser.add_argument(
        "--trial-seconds", type=float, default=TRIAL_S,
        help="to try the peer with one and with two threads, each (%(default)s)",
    )  # fmt: skip
    parser.add_argument("--matches", type=int, default=MATCHES)
    parser.add_argument(
        "--bot-matches", type=int, default=BOT_MATCHES, help="0: leave the bots out"
    )
    parser.add_argument("--keep", type=Path, help="keep the runs and the peers in this folder")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.cpu_minutes is not None:
        arguments.minutes = arguments.cpu_minutes / CORES
    places = {"ours": arguments.run, "peer": arguments.peer_model}
    if arguments.only and not (arguments.keep or places[arguments.only]):
        parser.error(f"--only {arguments.only}: expected --run or --peer-model, or --keep FOLDER")
    with tempfile.TemporaryDirectory() as temporary:
        root = (arguments.keep or Path(temporary)).resolve()
        root.mkdir(parents=True, exist_ok=True)
        if arguments.only:
            train_all(arguments, plan(arguments, root))
            return
        result = measure(arguments, root)
    print(json.dumps(result) if arguments.json else table(result))
    if not result["reached"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
