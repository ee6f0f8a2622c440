"""Writes one run folder of each kind with the installed program: `python -m compat.write_runs`.

`make.py` calls it inside the environment of the commit. It writes into the current folder, which
has a neutral relative name everywhere: `NAME/run`, and `NAME/expected.json` for what the tests
compare with. Everything is driven through the command line and the public API; only the arena
replaces the preset `small` by a tiny network of the same kind, to keep its files small.

Settings that depend on age are off: the tests open these folders years later.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

import understudy
from compat.answers import answers, questions
from understudy import Config, Mlp, MultiDiscrete, Transformer, Understudy, with_values
from understudy.core.clock import SystemClock
from understudy.registry.run_folder import RunFolder

YEARS_S = 1e9
AGELESS: dict[str, object] = {"learner.max_age_s": YEARS_S, "spool.archive_age_s": YEARS_S}
FEATURES = ("health", "enemies", "gold", "supply")
ACTIONS = ("attack", "retreat", "gather")
SHAPES = MultiDiscrete((3, 2))
"""Of the run with memory: where to go, and whether to fire."""
_RUN = Path("run")

# --- commands -------------------------------------------------------------------------------------


def cli(*args: object) -> str:
    """`understudy ARGS…`; its stdout."""
    return finished(sys.executable, "-m", "understudy", *map(str, args))


def finished(*line: str) -> str:
    """The stdout of a command that succeeds."""
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(line)}\n{done.stdout}{done.stderr}")
    return done.stdout


def settings(values: Mapping[str, object]) -> list[str]:
    """As flags."""
    return [flag for key, value in values.items() for flag in ("--set", f"{key}={value}")]


# --- the ring -------------------------------------------------------------------------------------

_RING = AGELESS | {
    "learner.batch_matches": 2,
    "learner.replay_matches": 2,
    "learner.minibatches": 2,
    "learner.epochs": 2,
    "learner.niceness": 0,
    "report.status_every_s": 0,
    "report.statistics_every_matches": 0,
}


def session(
    *,
    mode: Literal["shadow", "learn"],
    learner: Literal["thread", "off"],
    network: Mlp | Transformer,
    actions: MultiDiscrete | Sequence[str],
    matches: int,
    seed: int,
) -> None:
    """Open the run, play some matches of 12 decisions, close it."""
    rng = np.random.default_rng(seed)
    with Understudy.open(
        _RUN,
        features=FEATURES,
        actions=actions,
        mode=mode,
        learner=learner,
        network=network,
        config=with_values(Config(), _RING),
        seed=seed,
    ) as mind:
        for number in range(matches):
            with mind.match(opponent="bandit", number=number) as match:
                for _ in range(12):
                    seen = rng.normal(0.0, 2.0, len(FEATURES))
                    if mode == "shadow":
                        legal = [True, bool(seen[0] < 0), True]
                        match.decide(seen, fallback=ACTIONS[0 if seen[0] < 0 else 2], legal=legal)
                    else:
                        match.decide(seen)
                    match.reward(float(seen[1]) / 10)
                match.finish("victory" if rng.random() < 0.5 else "defeat")


def ring() -> dict[str, object]:
    """A bot that learns: three versions or more, a rollback, and matches that wait."""
    for seed in (1, 2, 3):
        session(mode="learn", learner="thread", network=Mlp((16,)), actions=ACTIONS, matches=2,
                seed=seed)  # fmt: skip
    cli("models", "rollback", 2, "--run", _RUN)
    session(mode="learn", learner="off", network=Mlp((16,)), actions=ACTIONS, matches=3, seed=4)
    return {"kind": "ring", "mode": "learn"}


def shadow() -> dict[str, object]:
    """A bot whose rules play, with masks; matches wait."""
    for seed in (1, 2):
        session(mode="shadow", learner="thread", network=Mlp((16,)), actions=ACTIONS, matches=2,
                seed=seed)  # fmt: skip
    session(mode="shadow", learner="off", network=Mlp((16,)), actions=ACTIONS, matches=2, seed=3)
    return {"kind": "ring", "mode": "shadow"}


def memory() -> dict[str, object]:
    """A bot with a network that has memory, and actions of two parts; a match waits."""
    network = Transformer(width=8, heads=2, layers=1, feed=16, window=4)
    for seed in (1, 2):
        session(mode="learn", learner="thread", network=network, actions=SHAPES, matches=2,
                seed=seed)  # fmt: skip
    session(mode="learn", learner="off", network=network, actions=SHAPES, matches=1, seed=3)
    return {"kind": "ring", "mode": "learn"}


# --- a server -------------------------------------------------------------------------------------

_SERVED = AGELESS | {
    "learner.niceness": 0,
    "learner.publish_interval_s": 0.05,
    "learner.epochs": 1,
    "learner.minibatches": 1,
    "live.reward_window_s": YEARS_S,
    "live.segment": 8,
    "live.segment_s": 60.0,
    "continuous.max_age_s": YEARS_S,
    "continuous.training_interval_s": 0.02,
    "continuous.batch": 4,
    "continuous.min_batch": 2,
    "continuous.length": 4,
    "registry.keep_versions": 3,
}
_TERRITORIES = ("north", "south", "west")


@contextlib.contextmanager
def served(*flags: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`understudy serve` for the schema beside the run, and its address."""
    line = ["serve", "--schema", "game.toml", "--run", str(_RUN), "--port", "0", "--quiet",
            "--learner", "off"]  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-m", "understudy", *line, *flags], stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stderr is not None
        first = child.stderr.readline()
        try:
            yield child, "ws://" + first.split("ws://")[1].split(",")[0]
        finally:
            child.kill()


def ask(socket: Any, **message: object) -> dict[str, Any]:
    """One message and its answer."""
    socket.send(json.dumps(message))
    answer: dict[str, Any] = json.loads(socket.recv(timeout=30))
    if answer["type"] == "error":
        raise SystemExit(f"{message}: {answer}")
    return answer


def observe(socket: Any, territory: str, tick: int) -> dict[str, Any]:
    """What is seen depends on the tick alone."""
    seen = [10.0 - tick % 7, float(tick % 3), float(tick % 2), float(tick % 11)]
    return ask(socket, type="observation", territory=territory, tick=tick, features=seen)


def server() -> dict[str, object]:
    """A server killed with open decisions, after a learner had published versions.

    One decision of `north` has a part of its reward. Settled decisions wait in the ledger, and
    segments in the buffer.
    """
    from websockets.sync.client import connect

    hello: dict[str, object] = {"type": "hello", "protocol": 1, "client": "compat"}
    opened: dict[str, dict[str, Any]] = {}
    with served("--seed", "3", *settings(_SERVED)) as (child, url), connect(url) as socket:
        hello["resume"] = ask(socket, **hello)["resume"]
        for tick in range(1, 61):
            for name in _TERRITORIES:
                observe(socket, name, tick)
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=60)
    learn_until(4)
    with served() as (child, url), connect(url) as socket:
        ask(socket, **hello)
        for tick in range(61, 82):
            opened = {name: observe(socket, name, tick) for name in _TERRITORIES}
        ask(socket, type="reward", decision_id=opened["north"]["decision_id"], reward=0.25)
        child.kill()
    return {
        "kind": "served",
        "hello": hello,
        "tick": 81,
        "opened": {name: one["decision_id"] for name, one in opened.items()},
    }


def learn_until(version: int) -> None:
    """`understudy learner --continuous` until it has published this version."""
    line = [sys.executable, "-m", "understudy", "learner", "--run", str(_RUN), "--continuous"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, bufsize=1) as child:
        assert child.stdout is not None
        for text in child.stdout:
            if text.startswith(f"version {version}:"):
                child.send_signal(signal.SIGTERM)
    if child.returncode:
        raise SystemExit(f"{' '.join(line)}: exit code {child.returncode}")


# --- training -------------------------------------------------------------------------------------

_SMALL: dict[str, object] = {
    "learner.minibatches": 2,
    "learner.epochs": 1,
    "monitor.benchmark_steps": 0,
    "train.games": 8,
    "train.segment": 64,
    "train.groups": 2,
    "train.checkpoint_steps": 8_192,
    "league.save_freq": 8_192,
    "league.stint": 1,
}
_STAGES = """
extends = "small"

[[curriculum.stages]]
name = "first"
opponents = "random=3,based=1"
measure = "score:random"
threshold = 0.02
min_matches = 4
window = 32
rewards = "dense"

[[curriculum.stages]]
name = "second"
opponents = "self=2,random=1"
"""
_TINY_STRATEGIST = """
from understudy.policy import presets
from understudy.policy.strategist import Strategist
from understudy.__main__ import main
tiny = Strategist(width=8, heads=2, layers=1, feed=16, window=5, latent=8, lstm=16,
                  head_widths=(16,), kinds=presets.KINDS)
presets.PRESETS = {**presets.PRESETS, "small": tiny}
main()
"""


def trained(steps: int, game: str = "brawl") -> dict[str, object]:
    return {"kind": "trained", "game": game, "steps": steps}


def arena() -> dict[str, object]:
    """A curriculum in its second stage, with snapshots, ratings and an option of the game.

    The network is that of `--preset small`, made tiny: attention, LSTM, auxiliary heads.
    """
    Path("stages.toml").write_text(_STAGES, encoding="utf-8")
    steps = 24_576
    line = ["train", "brawl", "--config", "stages.toml", "--run", str(_RUN), "--steps", str(steps),
            "--seed", "3", "--delay", "2", *settings(_SMALL)]  # fmt: skip
    finished(sys.executable, "-c", _TINY_STRATEGIST, *line)
    return trained(steps)


def population() -> dict[str, object]:
    """Two agents after a round in which both had enough matches to be judged."""
    steps = 98_304
    more = {
        "train.games": 16,
        "train.checkpoint_steps": steps // 2,
        "population.interval_steps": steps // 2,
        "population.replaced": 0.5,
        "registry.keep_versions": 2,
    }
    cli("train", "brawl", "--preset", "mlp", "--population", 2, "--opponents", "random,constant",
        "--run", _RUN, "--steps", steps, *settings(_SMALL | more))  # fmt: skip
    return trained(steps)


def host() -> dict[str, object]:
    """A Gymnasium environment."""
    steps = 512
    few = {"train.games": 4, "train.segment": 16, "learner.minibatches": 2, "learner.epochs": 2,
           "train.checkpoint_steps": 128}  # fmt: skip
    game = "gymnasium:CartPole-v1"
    cli("train", game, "--run", _RUN, "--steps", steps, *settings(few))
    return trained(steps, game)


# --- settings -------------------------------------------------------------------------------------

_BASE = """
extends = "competition_10m"

[learner]
algorithm = "actor_critic"
learning_rate = 4e-4
learning_rate_min = 2e-5
learning_rate_max = 8e-4
kl_target = 0.012
gamma = 0.997
gae_lambda = 0.9
clip = 0.15
behaviour_clip = 1.5
entropy_weight = 0.04
value_weight = 0.4
opponent_weight = 0.2
recognition_weight = 0.05
imitation_weight = 0.9
imitation_cap = 10.0
imitation_temperature = 0.6
max_gradient_norm = 0.6
epochs = 2
minibatches = 2
kl_stop = 0.1
precision = "float32"
batch_matches = 5
gather_s = 0.2
replay_matches = 4
samples_per_insert = 6
replay_capacity = 100
priority = "surprise"
max_version_lag = 50
max_age_s = 1800.0
publish_interval_s = 1.5
drain_s = 5.0
niceness = 5
seed = 11
"""
_MINE = """
extends = "base.toml"

[train]
preset = "mlp"
games = 8
segment = 32
steps = 4096
opponents = "based=2,random"
groups = 2
snapshot_steps = 2048
checkpoint_steps = 2048
schedule = "linear"
entropy_schedule = "constant"

[league]
max_saved = 7
mode = "selective"
sampler = "recent"
recent = 3
recent_share = 0.9
power = 1.5
stint = 2

[rewards]
set = "sparse"
weights = { combo = 0.1 }

[curriculum]
step_back = false

[curriculum.stages.based]
threshold = 0.6
hold = 0.2

[monitor]
csv = false
tensorboard = false
benchmark_steps = 1024
benchmark_matches = 4

[population]
agents = 1
interval_steps = 2048
replaced = 0.5
spread = 1.3

[live]
segment = 64
segment_s = 5.0
max_gap = 2
reward_window_s = 30.0
reward_clip = 2.0
threshold = 0.1
explore_share = 0.05
gate_budget_ms = 4.0
sync_ms = 20.0
max_message_bytes = 4096
messages_per_s = 100.0
messages_per_s_in_all = 1000.0
territories_per_client = 10
max_territories = 100
max_clients = 20
queue = 16

[continuous]
training_interval_s = 0.5
batch = 16
min_batch = 4
length = 4
capacity = 1000
samples_per_insert = 4.0
priority = "prioritised"
alpha = 0.5
beta = 0.5
max_age_s = 600.0
revalidate = false
actual_weight = 0.6
simulated_weight = 0.4
on_disagreement = "penalty"
disagreement_penalty = 0.2
waits = "counterfactual"
wait_multiplier = 0.4
learning_rate_decay = 0.98
entropy_floor = 0.01

[spool]
archive_matches = 50
archive_bytes = 1000000
archive_age_s = 86400.0

[registry]
keep_versions = 5

[report]
status_every_s = 10.0
statistics_every_matches = 3
"""


def config() -> dict[str, object]:
    """A file of settings over another file, over one that ships, with a key of older runs."""
    Path("base.toml").write_text(_BASE, encoding="utf-8")
    Path("mine.toml").write_text(_MINE, encoding="utf-8")
    return {"kind": "config", "settings": json.loads(cli("config", "show", "mine.toml", "--json"))}


# --- all of them ----------------------------------------------------------------------------------

WRITERS: Mapping[str, Callable[[], dict[str, object]]] = {
    "ring": ring,
    "shadow": shadow,
    "memory": memory,
    "served": server,
    "arena": arena,
    "population": population,
    "host": host,
    "config": config,
}
_LEFT_OUT = ("logs", "learner.lock", "server.lock", "training_curves.png", "lineage.png")
"""Nothing reads them again, and a log may hold a path of this machine."""


def read_back() -> dict[str, object]:
    """What the program that wrote a run says of it."""
    folder = RunFolder.load(_RUN, SystemClock())
    asked = questions(_RUN)
    numbers = folder.versions.numbers()
    champion = folder.pointers.read("champion")
    assert champion is not None and numbers
    return {
        "versions": numbers,
        "champion": champion.version,
        "pinned": champion.pinned,
        "waiting": sorted(path.name for path in _RUN.glob("buffer/*.npz")),
        "status": json.loads(cli("status", "--run", _RUN, "--json")),
        "questions": asked,
        "answers": {str(number): answers(_RUN, number, asked) for number in numbers},
    }


def main(schema: Path, names: Sequence[str]) -> None:
    """Write the runs of these names, or all."""
    installed = Path(understudy.__file__)
    if not installed.is_relative_to(sys.prefix):
        raise SystemExit(f"{installed} is not the program that was installed in {sys.prefix}")
    base = Path.cwd()
    for name in names or WRITERS:
        print(name, flush=True)
        (base / name).mkdir()
        os.chdir(base / name)
        if name == "served":
            shutil.copy(schema, "game.toml")
        expected = WRITERS[name]()
        if _RUN.exists():
            expected |= read_back()
            tidy()
        text = json.dumps(expected, separators=(",", ":"))
        Path("expected.json").write_text(text, encoding="utf-8")
    os.chdir(base)


def tidy() -> None:
    """Remove what no program reads again."""
    for path in [one for name in _LEFT_OUT for one in _RUN.rglob(name)]:
        if path.is_dir():
            for file in path.iterdir():
                file.unlink()
        else:
            path.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
