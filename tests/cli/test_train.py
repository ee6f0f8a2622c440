"""`understudy train`: what it prints is what happened, and nothing that it learned gets lost."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TypeVar

import pytest

from understudy.cli.train import _parse_count
from understudy.core import config as configs
from understudy.core.clock import SystemClock
from understudy.core.errors import ConfigError
from understudy.games import rewards
from understudy.learner import hardware
from understudy.policy.mlp import Mlp
from understudy.policy.presets import network
from understudy.registry.run_folder import RunFolder
from understudy.telemetry.status import Status
from understudy.telemetry.status_reader import StatusReader
from understudy.training import train as training
from understudy.training.environments.session import EnvironmentSession
from understudy.training.session import TrainingSummary, TrainSession
from understudy.training.train import TrainingView

from .calling import Called, understudy
from .runs_of_brawl import brawl_run
from .training import ROLLOUT, SMALL, TINY, command, staged

CONTEST = "pettingzoo:training.environments.contest"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def train(*args: object) -> Called:
    return understudy("train", "brawl", *TINY, *args)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sessions of one run. Tests only look at it."""
    run = tmp_path_factory.mktemp("trained") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(run.parent)
        first = train("--steps", 3 * ROLLOUT, "--run", run, "--seed", 4, "--json")
        assert first.code == 0, first.err
        assert first.err == "" and first.out.count("\n") == 1
        told = first.json
        assert (told["steps"], told["version"]) == (3 * ROLLOUT, 1)
        resumed = understudy("train", "brawl", "--run", run, "--resume", "--steps", "1k", "--json")
        assert resumed.code == 0, resumed.err
        (run.parent / "told.json").write_text(resumed.out, encoding="utf-8")
    return run


def test_json_is_one_object_with_everything(trained: Path) -> None:
    told = json.loads((trained.parent / "told.json").read_text(encoding="utf-8"))
    assert told.keys() == {
        "run", "steps", "seconds", "steps_s", "compiled_s", "matches", "version", "interrupted",
        "opponents", "metrics", "stage", "rating", "snapshots", "exploits", "exploited", "champion",
    }  # fmt: skip
    assert told["steps"] == -(-1000 // ROLLOUT) * ROLLOUT, "rounded up to whole iterations"
    assert told["version"] == 2 and told["interrupted"] is False
    assert told["opponents"].keys() == {"random"}, "no snapshot before two million steps"
    assert (told["stage"], told["snapshots"], told["exploited"]) == ("", 0, None)
    assert told["rating"].keys() == {"mu", "sigma", "points", "margin"}
    assert told["seconds"] >= told["compiled_s"] > 0 and told["steps_s"] > 0
    assert 0.0 <= told["metrics"]["behaviour_kl"] <= told["metrics"]["behaviour_kl_max"] < 5e-9


def test_a_run_goes_on_with_what_it_is(trained: Path) -> None:
    """Network, settings, seed and opponents are the run's own."""
    folder = RunFolder.load(trained, SystemClock())
    assert folder.config.learner.seed == 4
    assert folder.config.train.opponents == "random,self"
    one, two = (folder.versions.verify(number) for number in (1, 2))
    assert two.parent == 1 and two.counters["iterations"] > one.counters["iterations"] == 3
    status = understudy("status", "--run", trained, "--json").json
    assert status["steps"] == two.counters["steps"]
    assert status["learner"] == "stopped" and status["version"] == 2


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[TrainSession]:
    """The sessions that were asked for; none of them trains."""
    return noted(monkeypatch, TrainSession)


S = TypeVar("S")


def noted(monkeypatch: pytest.MonkeyPatch, kind: type[S]) -> list[S]:
    sessions: list[S] = []

    def train(session: S, view: TrainingView) -> TrainingSummary:
        assert isinstance(session, kind)
        sessions.append(session)
        return TrainingSummary(code=0, run="", version=0, steps=0, matches=0, steps_s=0.0)

    monkeypatch.setattr(training, "train", train)
    return sessions


def test_a_run_goes_on_with_the_options_of_its_game(asked: list[TrainSession]) -> None:
    run = brawl_run(Path("run"), delay="2")
    assert understudy("train", "brawl", "--run", run, "--resume", "--actions", "keys").code == 0
    assert asked[0].game_options == {"delay": "2", "actions": "keys"}
    assert asked[0].network == Mlp((8,))


def test_evidence_is_a_setting_that_a_run_keeps(asked: list[TrainSession]) -> None:
    run = brawl_run(Path("run"))
    for words in ((), ("--evidence", "simulator"), (), ("--evidence", "latest")):
        assert understudy("train", "brawl", "--run", run, "--resume", *words).code == 0
        configs.save(run / "config.toml", asked[-1].config)
    found = [one.config.promotion.evidence for one in asked]
    assert found == ["matches", "simulator", "simulator", "matches"]


def test_a_person_sees_how_it_goes() -> None:
    called = train("--steps", ROLLOUT)
    assert called.code == 0 and called.out == ""  # stdout belongs to --json
    for text in (
        "understudy: train brawl, run folder runs/brawl-1",
        "8 matches side by side, 8 frames each an iteration; a version every 1,000,000 steps, "
        "a snapshot every 2,000,000 steps.",
        "  no snapshot yet: until there is one, scripted bots are met in its place",
        "\n100%  ",
        "Done.",
        "-  no match ended\n",
        "Version         1",
        "Run folder      runs/brawl-1",
        "understudy eval brawl --agent runs/brawl-1",
    ):
        assert text in called.err.replace("\\", "/"), called.err
    assert understudy("status", "--json").json["steps"] == ROLLOUT


@pytest.mark.parametrize(
    ("flags", "gpu", "preset"),
    [
        ((), False, "small"),
        ((), True, "seed"),
        (("--config", "curriculum"), True, "small"),
        (("--config", "classic"), True, "seed"),
        (("--config", "curriculum", "--network", "medium"), False, "medium"),
        (("--config", "curriculum", "--set", "train.preset=medium"), False, "medium"),
        (("--network", "mlp"), True, "mlp"),
    ],
)
def test_a_config_comes_with_its_network_unless_another_is_named(
    flags: tuple[str, ...],
    gpu: bool,
    preset: str,
    asked: list[TrainSession],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hardware, "has_gpu", lambda: gpu)
    called = understudy("train", "brawl", *flags)
    assert called.code == 0, called.err
    assert asked[-1].network == network(preset)
    assert asked[-1].config.train.preset == ("" if "classic" in flags else preset)


def test_the_old_name_of_a_network_still_works(asked: list[TrainSession]) -> None:
    called = understudy("train", "brawl", "--preset", "mlp")
    assert called.code == 0 and asked[-1].network == network("mlp")
    assert "understudy: --preset is called --network now" in called.err
    assert "--preset" not in understudy("train", "--help").out
    both = understudy("train", "brawl", "--preset", "mlp", "--network", "small")
    assert both.code == 2 and "the old name of --network" in both.err


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("--steps", "63"), "--steps: one rollout alone is 64 steps"),
        (("--steps", "many"), "--steps: expected a whole number such as 10_000_000, got 'many'"),
        (("--steps", "64", "--minutes", "1"), "--steps or --minutes: give one of them"),
        (("--minutes", "0"), "--minutes: expected more than 0"),
        (("--network", "smal"), "understudy: --network: expected one of mlp, "),
        (("--set", "train.preset=small"), "train.preset: the network is that of --network, and"),
        (("--config", "smal"), "Did you mean 'small'"),
        (("--config", "none.toml"), "--config: there is no file none.toml"),
        (("--opponents", "randm"), "Did you mean 'random'"),
        (("--opponents", "random,turtle"), "turtle is held out: no agent trains against it"),
        (("--opponents", "self"), "at least one scripted bot"),
        (("--set", "train.game=8"), "Did you mean 'train.games'"),
        (("--set", "train.games=7"), "train.games: expected a multiple of train.groups"),
        (("--delay", "99"), "delay must be one of"),
        (("--actions", "keyz"), "Did you mean 'keys'"),
        (("--stage", "first"), "understudy: --stage: expected no name (there are no stages)"),
        (("--set", "curriculum.pin=x"), "understudy: --set: curriculum.pin: expected no name"),
        (("--seed", "-1"), "understudy: --seed: expected 0 to 2**63 - 1, got -1"),
        (("--seed", "9" * 23), "understudy: --seed: expected 0 to 2**63 - 1, got 999"),
        (("--seed", "1", "--set", "learner.seed=-1"), "understudy: --set: learner.seed: expected"),
        (("--population", "0"), "understudy: --population: expected a number above 0, got 0"),
        (
            ("--evidence", "lates"),
            "--evidence: expected one of latest, simulator, got 'lates'. D",
        ),
        (("--evidence", "simulator", "--population", "2"), "--evidence: the best agent of a pop"),
        (("--set", "rewards.set=dens"), "rewards.set: brawl has no set of rewards 'dens'"),
        (("--set", "rewards.weights.combos=1"), "Did you mean 'combo'"),
        (("--set", "train.noise_steps=4"), "understudy: train.noise_steps: the arena draws every"),
        (("--set", "train.record=-1"), "understudy: --set: train.record: expected 0 or more"),
        (("--terms", "none.py"), "understudy: --terms: there is no file none.py"),
        (("--exploit", "runs/x"), "--opponents: an exploiter meets the agent of --exploit alone"),
        (("--resume", "--run", "nothing"), "--resume: nothing holds no run"),
        (("--resume",), "no run yet"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing_behind(
    args: tuple[str, ...], expected: str, tmp_path: Path
) -> None:
    called = train(*args)
    assert called.code == 2 and called.out == ""
    assert called.err.count("\n") == 1 and "Traceback" not in called.err
    assert expected in called.err
    assert not list(tmp_path.rglob("run.json"))


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("--opponents", "random"), "--opponents: the stages of the curriculum say whom they meet"),
        (("--stage", "secnd"), "--stage: expected one of first, second; got 'secnd'. Did"),
        (
            ("--set", "curriculum.stages.second.rewards=dnse"),
            "curriculum.stages.second.rewards: brawl",
        ),
        (
            ("--set", "curriculum.stages.second.opponents=rando"),
            "curriculum.stages.second.opponents:",
        ),
        (("--set", "curriculum.stages.third.hold=0.2"), "expected one of first, second"),
    ],
)
def test_a_mistake_in_a_curriculum_names_the_stage(
    args: tuple[str, ...], expected: str, tmp_path: Path
) -> None:
    called = understudy("train", "brawl", *SMALL, "--config", staged(Path("two.toml")), *args)
    assert called.code == 2 and called.err.count("\n") == 1
    assert expected in called.err
    assert not list(tmp_path.rglob("run.json"))


def test_other_games_and_other_folders_are_refused(trained: Path) -> None:
    assert "Did you mean 'brawl'" in understudy("train", "brwl", *TINY).err
    met = understudy("train", "swarm", *SMALL, "--opponents", "game,self").err
    assert "swarm has one player, who cannot meet itself" in met
    refused = train("--steps", 64, "--run", trained)
    assert refused.code == 2 and "--resume continues it" in refused.err
    other = understudy("train", "brawl", "--resume", "--run", trained, "--network", "small")
    assert other.code == 2 and "network" in other.err
    other = understudy(
        "train", "brawl", "--resume", "--run", trained, "--set", "train.preset=small"
    )
    assert other.code == 2 and "train.preset: the network is that of the run" in other.err


def test_a_budget_that_is_spent_already_is_told(trained: Path) -> None:
    before = (trained / "config.toml").read_bytes()
    call = ("train", "brawl", "--resume", "--run", trained)
    few = ("--set", "train.steps=1024", "--set", "learner.gamma=0.5")
    for flags in (("--steps", 1024), ("--steps", 64), few):
        refused = understudy(*call, *flags)
        assert (refused.code, refused.out) == (2, "")
        assert refused.err == (
            "understudy: --steps: this run has 1,024 steps already; name more of them, "
            "or --minutes\n"
        )
    assert (trained / "config.toml").read_bytes() == before


@pytest.mark.parametrize(
    ("text", "expected"),
    [("10_000_000", 10**7), ("10M", 10**7), ("1.5k", 1500), ("64,000", 64_000), ("1e6", 10**6)],
)
def test_steps_can_be_written_as_people_write_them(text: str, expected: int) -> None:
    assert _parse_count(text) == expected


@pytest.mark.parametrize("text", ["", "k", "-5", "0", "1.5", "inf", "nan", "1e999", "ten"])
def test_what_is_no_number_of_steps_is_told(text: str) -> None:
    with pytest.raises(ConfigError, match="--steps: expected a whole number"):
        _parse_count(text)


_TERMS = """
from understudy.games.rewards import term

@term("brawl")
def airborne(ops, moment):
    return (~moment.after.grounded).astype(ops.xp.float32)

@term("brawl")
def lived(ops, moment):
    return ops.xp.ones_like(moment.after.x)
"""


def test_a_term_of_ones_own_is_trained_on_and_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each frame adds the weight, rounded to multiples of 2**-16; a match adds them up exactly."""
    for known in ("_ADDED", "_LOADED"):  # what is added here is added for this test alone
        monkeypatch.setattr(rewards, known, {})
    Path("mine.py").write_text(_TERMS, encoding="utf-8")
    weights = ("--set", "rewards.weights.airborne=-0.01", "--set", "rewards.weights.lived=0.001")
    few = ("--set", "train.games=16", "--set", "train.segment=64", "--opponents", "random")
    call = (*TINY, *few, "--steps", "48k", "--run", "run", *weights)
    refused = understudy("train", "brawl", *call)
    assert refused.code == 2 and "rewards.weights.airborne: brawl has no reward term" in refused.err
    assert not Path("run").exists()
    done = understudy("train", "brawl", *call, "--terms", "mine.py", "--json")
    assert done.code == 0, done.err
    matches = _rows("monitor")
    rows = [row for row in _rows("reward_breakdown") if row["opponent"] == "random"]
    assert len(matches) == sum(int(row["matches"]) for row in rows) > 10
    frames = sum(int(row["l"]) for row in matches)
    sums = {
        name: sum(float(row[f"term_{name}"]) * int(row["matches"]) for row in rows)
        for name in ("airborne", "lived", "damage", "knockout", "result", "closing")
    }
    assert sums["lived"] == pytest.approx(frames * round(0.001 * 2**16) / 2**16, rel=1e-5)
    assert 0.01 * frames > -sums["airborne"] > 0.0
    assert sum(sums.values()) == pytest.approx(sum(float(row["r"]) for row in matches), rel=1e-4)
    assert all(float(row["residual"]) == 0.0 for row in rows)
    for known in ("_ADDED", "_LOADED"):  # as in a new process
        monkeypatch.setattr(rewards, known, {})
    resumed = understudy("train", "brawl", "--run", "run", "--resume", "--minutes", 1)
    assert resumed.code == 2
    assert "has no reward term 'airborne'" in resumed.err
    assert "in every session, a resume too: --terms my_terms.py" in resumed.err


def _rows(name: str) -> list[dict[str, str]]:
    lines = Path("run", f"{name}.csv").read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


# --- for real: in a process of its own -----------------------------------------------------------

_WITHOUT_JAX = """
import sys
for name in ("jax", "jaxlib", "optax"):
    sys.modules[name] = None
from understudy.cli.app import run
sys.argv = ["understudy", *sys.argv[1:]]
run()
"""


def test_what_was_trained_plays_where_there_is_no_jax(trained: Path) -> None:
    args = ("eval", "brawl", "--agent", trained, "--opponents", "random", "--matches", 2, "--json")
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_JAX, *map(str, args)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["version"] == 2 and told["opponents"]["random"]["matches"] == 2


def test_training_without_jax_says_what_is_missing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_JAX, "train", "brawl", *map(str, TINY), "--steps", "64"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2 and done.stdout == ""
    assert "the learner needs jax" in done.stderr and "Traceback" not in done.stderr


def status() -> Status:
    return StatusReader(Path("run"), SystemClock()).read()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_keeps_everything_and_exits_130() -> None:
    with subprocess.Popen(
        command(*TINY, "--minutes", 9, "--run", "run"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    ) as child:
        deadline = time.monotonic() + 120.0
        while status().steps < 5 * ROLLOUT:
            assert child.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        out, said = child.communicate(timeout=60)
    assert child.returncode == 130, said
    assert out == "" and "Traceback" not in said
    assert "Interrupted: everything up to here is kept." in said
    folder = RunFolder.load(Path("run"), SystemClock())
    head = folder.versions.head()
    assert head is not None
    now = status()
    assert folder.versions.verify(head).counters["steps"] == now.steps >= 5 * ROLLOUT
    assert now.learner == "stopped" and now.version == head


def test_a_zero_sum_environment_tells_each_side_and_whom_it_beats() -> None:
    few = ("--set", "train.segment=32", "--set", "train.checkpoint_steps=1024")
    called = understudy("train", CONTEST, "--run", "run", "--steps", 3072, "--eval", 16, *few)
    assert called.code == 0
    assert "16 frozen matches follow the training" in called.err
    assert "version 3 in 16 frozen matches v random\n" in called.err
    assert re.search(r"Mean reward of 16 frozen matches: left -?[\d.]+, right -?[\d.]+", called.err)
    told = understudy("status", "--run", "run", "--json").json
    assert f"Matches         {told['matches']:,}\n" in called.err
    assert told["reward"] == 0.0 and told["sides"].keys() == {"left", "right"}
    judged = told["last_benchmark"]
    assert judged["version"] == 3 and judged["matches"] == 16
    met = {name: sum(one[:3]) for name, one in judged["opponents"].items()}
    assert met == {"random": 16, "version 1": 8, "version 2": 8}
    wins, _, losses = judged["opponents"]["random"][:3]
    assert wins > losses
    row = rf"random +\[.*\] +[\d.]+% +[\d.]+% to [\d.]+% +{wins} +\d+ +{losses}\n"
    assert re.search(row, called.err), called.err
    described = understudy("status", "--run", "run").out
    assert re.search(r"\nReward      left -?[\d.]+, right -?[\d.]+, mean of the last", described)
    assert "Win rate" not in described


_TERMINATED = """
import os, signal
import gymnasium
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

class Terminated(CartPoleEnv):
    \"\"\"The scheduler ends the process after 40 steps of one environment.\"\"\"
    taken = 0

    def step(self, action):
        self.taken += 1
        if self.taken == 40:
            os.kill(os.getpid(), signal.SIGTERM)
        return super().step(action)

gymnasium.register("Terminated-v0", entry_point=Terminated)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_sigterm_before_the_first_version_keeps_what_there_is_and_exits_143() -> None:
    Path("scheduled.py").write_text(_TERMINATED, encoding="utf-8")
    few = ("train.games=2", "train.segment=16", "learner.minibatches=1", "learner.epochs=1")
    flags = [flag for one in few for flag in ("--set", one)]
    name = "gymnasium:scheduled:Terminated-v0"
    done = subprocess.run(
        [sys.executable, "-m", "understudy", "train", name, "--run", "run", "--json", *flags],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 143, done.stderr
    assert done.stderr == ""
    told = json.loads(done.stdout)
    # Two segments of 16 steps were over in both environments; one was learned from.
    assert (told["interrupted"], told["version"], told["updates"]) == (True, 1, 1)
    head = RunFolder.load(Path("run"), SystemClock()).versions.head()
    assert head == 1 and status().learner == "stopped"


def test_an_environment_is_made_with_the_options_that_are_given() -> None:
    environment = "gymnasium:understudy.adapters.gymnasium.env:understudy/Brawl-v0"
    few = ("--set", "train.games=2", "--set", "train.segment=16", "--set", "learner.minibatches=1")
    call = ("train", environment, "--run", "run", "--json", "--eval", 0, *few)
    refused = understudy(*call, "--steps", 64)
    assert refused.code == 2 and "opponent" in refused.err
    first = understudy(*call, "--steps", 64, "--option", "opponent=constant", "--option", "delay=3")
    assert first.code == 0 and first.json["version"] == 1 and "eval" not in first.json
    folder = RunFolder.load(Path("run"), SystemClock())
    assert folder.identity.game_options == {"opponent": "constant", "delay": "3"}
    # A match takes half a second.
    again = understudy(*call[:2], "--run", "run", "--resume", "--steps", 128, "--json", "--eval", 1)
    assert again.code == 0 and (again.json["steps"], again.json["version"]) == (128, 2)
    assert again.json["eval"]["matches"] == 1
    assert "--network: expected one of" in understudy(*call, "--network", "mpl").err
    wrong = understudy("train", "brawl", "--option", "opponent=constant")
    assert wrong.code == 2 and "brawl has no option 'opponent'" in wrong.err
    assert "--eval: brawl has no such choice" in understudy("train", "brawl", "--eval", 0).err


def test_a_budget_that_is_a_setting_counts_for_an_environment_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = noted(monkeypatch, EnvironmentSession)
    for flags in (
        ("--set", "train.steps=4096"),
        ("--set", "train.steps=4096", "--steps", "2k"),
        (),
    ):
        assert understudy("train", "gymnasium:CartPole-v1", *flags).code == 0
    assert [one.budget.steps for one in asked] == [4096, 2000, 200_000]
    assert [one.evaluate for one in asked] == [100] * 3


@pytest.mark.parametrize(
    ("game", "devices", "said"),
    [
        ("brawl", "two", "--devices: expected all, or a number from 1 on; got 'two'"),
        ("brawl", "0", "--devices: expected all, or a number from 1 on; got '0'"),
        ("brawl", "99", "--devices: expected all, or a number up to"),
        ("gymnasium:CartPole-v1", "2", "--devices: gymnasium:CartPole-v1 has no such choice"),
    ],
)
def test_devices_that_cannot_be_used_are_refused(game: str, devices: str, said: str) -> None:
    refused = understudy("train", game, "--devices", devices)
    assert refused.code == 2 and said in refused.err, refused.err
    assert not Path("runs").exists()
