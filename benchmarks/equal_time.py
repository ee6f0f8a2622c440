"""Equal time on the same cores: ours against sb3-contrib's RecurrentPPO, then 500 frozen matches.

    python benchmarks/equal_time.py [--minutes 20] [--json]        # about 45 minutes, quiet machine
    python benchmarks/equal_time.py --cpu-minutes 40 ...           # a machine that others use too
    python benchmarks/equal_time.py --run RUN --peer-model PEER.npz   # meet again, train nothing

Ours is `understudy train brawl --preset small --minutes 20`, compilation included. The peer
(`equal_time_peer.py`) has an LSTM policy, settings found by a search on other seeds, all matches
stepped at once, and the same seven scripted bots as opponents. By processor time, the peer has
that of all its threads, and ours half as many minutes by the clock: never more of two cores.
Matches are played under NumPy on seeds that nobody trained on, half from either slot, draws are not
wins. Exit code 1 where ours wins less than 90% by likeliest actions.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import equal_time_player
import machine
import peers

from understudy.core.clock import SystemClock
from understudy.games import catalog
from understudy.match.evaluate import judge
from understudy.match.players import BotPlayer, Player, PolicyPlayer
from understudy.registry.run_folder import RunFolder

GOAL = 0.90
MATCHES, BOT_MATCHES = 500, 100
MINUTES = 20.0
SEED = 9201
"""Of both, and of the matches; the search for the peer's settings used others."""
CORES = 2
STARVED = 0.75
"""Below this share of its threads, a peer that is timed by the clock was slowed by others."""
MODES = {"likeliest": False, "sampled": True}


def train_ours(run: Path, *, minutes: float, preset: str, config: str | None, seed: int) -> float:
    """The command itself; seconds of processor that it took (0 on Windows, which does not say)."""
    before = os.times()
    print(f"ours: {preset} for {minutes:g} minutes ...", file=sys.stderr, flush=True)
    subprocess.run(
        [sys.executable, "-m", "understudy", "train", "brawl", "--preset", preset,
         "--minutes", str(minutes), "--seed", str(seed), "--run", str(run), "--json",
         *(["--config", config] if config else [])],
        check=True, stdout=subprocess.PIPE, cwd=run.parent,
    )  # fmt: skip
    after = os.times()
    user_s = after.children_user - before.children_user
    return user_s + after.children_system - before.children_system


def train_peer(out: Path, *, minutes: float, cpu: bool, seed: int, settings: list[str]) -> None:
    """The peer in its own environment; on a busy machine one thread, since two would spin."""
    what = "processor minutes" if cpu else "minutes"
    print(f"peer: RecurrentPPO for {minutes:g} {what} ...", file=sys.stderr, flush=True)
    chosen = (["threads=1"] if cpu else []) + settings
    subprocess.run(
        [str(peers.python()), str(Path(__file__).with_name("equal_time_peer.py")),
         "--out", str(out), "--seed", str(seed), "--cpu-minutes" if cpu else "--minutes",
         str(minutes), *(word for one in chosen for word in ("--set", one))],
        check=True, stdout=subprocess.PIPE,
    )  # fmt: skip


def ours_of(run: Path) -> tuple[PolicyPlayer, dict[str, object]]:
    """The champion of a run, and what it took."""
    folder = RunFolder.load(run, SystemClock())
    record = folder.pointers.read("champion")
    version = record.version if record else folder.versions.head()
    if version is None:
        raise SystemExit(f"--run {run}: this run has no version yet")
    manifest = folder.versions.manifest(version)
    policy = folder.versions.policy(version)
    return PolicyPlayer(policy), {
        "run": run.as_posix(),
        "version": version,
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


def meet(
    ours: Callable[[bool], Player], peer: Callable[[bool], Player], *, matches: int,
    bot_matches: int, seed: int,
) -> dict[str, Any]:  # fmt: skip
    """Both against each other and against every scripted bot, by likeliest actions and by draws."""
    game = catalog.make("brawl")
    bots = {name: BotPlayer(bot) for name, bot in catalog.bots("brawl").items()}
    met: dict[str, Any] = {"head_to_head": {}, "ours_v_bots": {}, "peer_v_bots": {}}

    def reports(player: Player, against: Mapping[str, Player], count: int) -> dict[str, Any]:
        judged = judge(game, player, against, matches=count, seed=seed)
        return {name: report.as_dict() for name, report in judged.items()}

    for mode, sampled in MODES.items():
        mine, theirs = ours(sampled), peer(sampled)
        met["head_to_head"][mode] = reports(mine, {"peer": theirs}, matches)["peer"]
        if bot_matches:
            met["ours_v_bots"][mode] = reports(mine, bots, bot_matches)
            met["peer_v_bots"][mode] = reports(theirs, bots, bot_matches)
    return met


def starved(peer: Mapping[str, Any]) -> bool:
    """Whether others kept the peer from the processors while the clock ran."""
    by_clock = peer.get("budget_of") == "wall"
    return by_clock and bool(peer["cores_used"] < STARVED * _usable(peer["settings"]))


def _usable(settings: Mapping[str, Any]) -> int:
    """Cores that the peer can keep busy: environments one after the other have one."""
    return 1 if settings["dummy"] else int(settings["threads"])


def table(result: Mapping[str, Any]) -> str:
    """The figures for people."""
    ours, peer = result["ours"], result["peer"]
    spent = f" and {ours['cpu_s']:.0f} s of processor" if ours["cpu_s"] else ""
    lines = [
        result["machine"],
        f"ours  {ours['run']} version {ours['version']}: {ours['steps']:,} steps in "
        f"{ours['wall_s']:.0f} s{spent}, {ours['parameters']:,} parameters",
    ]
    if "steps" in peer:
        lines.append(
            f"peer  sb3-contrib {peer['sb3_contrib']}: {peer['steps']:,} steps in "
            f"{peer['wall_s']:.0f} s and {peer['cpu_s']:.0f} s of processor, "
            f"{peer['parameters']:,} parameters"
        )
    else:
        lines.append(f"peer  {peer['model']}")
    lines += ["", f"{'ours v peer':14} {'wins':>5} {'draws':>5} {'losses':>6}   win rate"]
    for mode, one in result["head_to_head"].items():
        low, high = one["interval"]
        lines.append(
            f"{mode:14} {one['wins']:5} {one['draws']:5} {one['losses']:6}   "
            f"{one['win_rate']:.1%} ({low:.1%} to {high:.1%}), {one['distinct']} distinct"
        )
    for mode in result["ours_v_bots"]:
        lines += ["", f"{'v bots, ' + mode:20} {'ours':>7} {'peer':>7}"]
        for name, one in result["ours_v_bots"][mode].items():
            theirs = result["peer_v_bots"][mode][name]
            lines.append(f"{name:20} {one['win_rate']:7.1%} {theirs['win_rate']:7.1%}")
    if result["peer_starved"]:
        lines.append(
            f"the peer got {peer['cores_used']:.1f} of the {_usable(peer['settings'])} cores that "
            "it can use: other programs were running, and this is no result; use --cpu-minutes"
        )
    return "\n".join(lines)


def measure(arguments: argparse.Namespace, root: Path) -> dict[str, Any]:
    """One after the other, each alone on the machine; then they meet."""
    cpu = arguments.cpu_minutes is not None
    minutes = arguments.cpu_minutes / CORES if cpu else arguments.minutes or MINUTES
    run, model, cpu_s = arguments.run, arguments.peer_model, None
    if run is None:
        run = root / "ours"
        cpu_s = train_ours(
            run, minutes=minutes, preset=arguments.preset, config=arguments.config,
            seed=arguments.seed,
        )  # fmt: skip
    if model is None:
        model = root / "peer.npz"
        train_peer(
            model, minutes=arguments.cpu_minutes if cpu else minutes, cpu=cpu, seed=arguments.seed,
            settings=arguments.peer_set,
        )  # fmt: skip
    player, told = ours_of(run)
    actions = player.policy.spec.actions
    peer = peer_told(model)
    met = meet(
        lambda sampled: PolicyPlayer(player.policy, sampled=sampled),
        lambda sampled: equal_time_player.load(model, actions, sampled=sampled),
        matches=arguments.matches,
        bot_matches=arguments.bot_matches,
        seed=arguments.seed,
    )
    return {
        "ours": told | {"cpu_s": cpu_s and round(cpu_s, 1)},
        "peer": peer,
        **met,
        "peer_starved": starved(peer),
        "reached": met["head_to_head"]["likeliest"]["win_rate"] >= GOAL,
        "machine": machine.describe("numpy"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    budgets = parser.add_mutually_exclusive_group()
    budgets.add_argument("--minutes", type=float, help=f"of each by the clock ({MINUTES:.0f})")
    budgets.add_argument("--cpu-minutes", type=float, help="of the peer; ours half by the clock")
    parser.add_argument("--run", type=Path, help="judge this run instead of training ours")
    parser.add_argument("--peer-model", type=Path, help="meet this .npz instead of training it")
    parser.add_argument("--preset", default="small")
    parser.add_argument(
        "--config", help="of ours, as in `understudy train` (default: the preset's)"
    )
    parser.add_argument("--peer-set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--matches", type=int, default=MATCHES)
    parser.add_argument(
        "--bot-matches", type=int, default=BOT_MATCHES, help="0: leave the bots out"
    )
    parser.add_argument("--keep", type=Path, help="keep the run and the peer in this folder")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = (arguments.keep or Path(temporary)).resolve()
        root.mkdir(parents=True, exist_ok=True)
        result = measure(arguments, root)
    print(json.dumps(result) if arguments.json else table(result))
    if not result["reached"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
