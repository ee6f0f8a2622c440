from __future__ import annotations

import copy
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from understudy.adapters.ai2 import game_process
from understudy.adapters.ai2.checkout import HOME, Checkout
from understudy.adapters.ai2.game_process import AgentAction, GameDied, GameProcess, GameState
from understudy.adapters.ai2.layout import KEYS, MatchStanding, reward_terms
from understudy.core.arrays import NDArray
from understudy.core.errors import ConfigError, InputError, MissingDependency

_NO_KEYS = np.zeros(len(KEYS), np.uint8)


@pytest.fixture
def broken(stand_in: Path, tmp_path: Path) -> Path:
    """A copy of the stand-in for a test to damage."""
    return shutil.copytree(stand_in, tmp_path / "broken")


def played(home: Path, seed: int, players: tuple[str, str]) -> list[GameState]:
    game = GameProcess(Checkout.find(home))
    states = [game.reset(seed)]
    while not states[-1].over:
        game.send_step(30, [AgentAction(name) for name in players])
        states.append(game.state())
    game.close()
    return states


def test_a_seed_repeats_its_match(home: Path) -> None:
    one, two, other = (played(home, seed, ("based", "random")) for seed in (7, 7, 8))
    assert len(one) == len(two)
    assert all(np.array_equal(a.obs, b.obs) for a, b in zip(one, two, strict=True))
    assert not all(np.array_equal(a.obs, b.obs) for a, b in zip(one, other, strict=False))


def test_more_stocks_win(home: Path) -> None:
    last = played(home, 3, ("based", "constant"))[-1]
    assert last.standing.stocks[0] > last.standing.stocks[1]
    assert last.standing.damage[1] > 0.0
    last = played(home, 3, ("constant", "based"))[-1]
    assert last.standing.stocks[0] < last.standing.stocks[1]


def test_a_match_that_runs_out_of_time_ends(home: Path) -> None:
    last = played(home, 1, ("constant", "constant"))[-1]
    assert last.standing.stocks == (3.0, 3.0)
    assert last.frames == 2700


def test_nothing_reaches_standard_output(stand_in: Path, tmp_path: Path) -> None:
    script = tmp_path / "play.py"
    script.write_text(
        "import sys\n"
        "from understudy.adapters.ai2.env import TournamentEnv\n"
        "env = TournamentEnv(sys.argv[1], opponent='based', frames=30)\n"
        "env.reset(seed=1)\n"
        "while not env.step([0] * 10)[2]: pass\n"
        "env.close()\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, str(script), str(stand_in)], capture_output=True, check=True
    )
    assert done.stdout == b"" and done.stderr == b""


def test_a_missing_checkout_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(HOME, raising=False)
    with pytest.raises(ConfigError, match="--option home=PATH, or set AI2_HOME=PATH"):
        Checkout.find()
    with pytest.raises(ConfigError, match=r"--option home: there is no folder .*nowhere"):
        Checkout.find(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match=r"it has no environment/environment\.py"):
        Checkout.find(tmp_path)
    monkeypatch.setenv(HOME, str(tmp_path))
    with pytest.raises(ConfigError, match=r"AI2_HOME: .* it has no environment/environment\.py"):
        Checkout.find()


def test_a_checkout_that_would_download_is_refused(broken: Path) -> None:
    (broken / "assets").rmdir()
    with pytest.raises(ConfigError, match="no folder assets, so that the game would download it"):
        Checkout.find(broken)


def test_a_python_that_is_not_there_is_told(stand_in: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--option python: there is no file"):
        Checkout.find(stand_in, tmp_path / "python")


def test_a_python_that_cannot_be_started_is_told(stand_in: Path, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("no program", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"--option python: .* cannot be started \(.*a Python"):
        GameProcess(Checkout.find(stand_in, python)).reset(1)


def test_what_a_game_writes_to_standard_error_does_not_grow(broken: Path) -> None:
    rules = broken / "environment" / "rules.py"
    text = rules.read_text(encoding="utf-8")
    chatty = text.replace(
        "self.frames = 0", "self.frames = 0; import sys; print('-' * 10_000, file=sys.stderr)"
    )
    rules.write_text(chatty, encoding="utf-8")
    game = GameProcess(Checkout.find(broken))
    for seed in range(5):
        game.reset(seed)
    assert game.pid is not None
    os.kill(game.pid, signal.SIGKILL)
    with pytest.raises(GameDied) as caught:
        game.send_step(1, (_NO_KEYS, _NO_KEYS))
        game.state()
    assert str(caught.value).count("-" * 10_000) == 1


@pytest.mark.parametrize(
    "keys", [np.zeros(9), np.zeros((1, 10)), np.full(10, 0.9), np.full(10, -1), np.full(10, np.nan)]
)
def test_an_action_that_is_none_is_refused_and_not_sent(stand_in: Path, keys: NDArray) -> None:
    game = GameProcess(Checkout.find(stand_in))
    game.reset(1)
    with pytest.raises(InputError, match=r"action of player_1: expected 10 keys, each 0 or 1, got"):
        game.send_step(1, (_NO_KEYS, keys))
    game.send_step(2, (np.ones(10, np.bool_), _NO_KEYS.astype(np.float32)))
    assert game.state().frames == 2
    game.close()


def test_copies_of_an_agents_action_name_it() -> None:
    action = AgentAction("based")
    for one in (action.copy(), action[:], copy.deepcopy(action)):
        assert isinstance(one, AgentAction) and one.agent == "based"


def test_a_missing_library_is_named(broken: Path) -> None:
    game = broken / "environment" / "environment.py"
    game.write_text("import no_such_library\n", encoding="utf-8")
    with pytest.raises(MissingDependency, match=r"needs no_such_library.*--option python=PATH"):
        GameProcess(Checkout.find(broken)).reset(1)


@pytest.mark.skipif(os.name == "nt", reason="the Python without libraries is a shell script")
def test_a_python_without_numpy_is_told(stand_in: Path, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    with pytest.raises(MissingDependency, match=r"needs numpy, which .*/python does not have"):
        GameProcess(Checkout.find(stand_in, python)).reset(1)


@pytest.mark.skipif(os.name == "nt", reason="the other Python is a shell script")
def test_paths_of_this_python_are_kept_from_another_one(
    stand_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker process has all of its parent's paths in PYTHONPATH."""
    (tmp_path / "numpy.py").write_text("raise RuntimeError('of another Python')", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    game = GameProcess(Checkout.find(stand_in, python))
    assert game.reset(1).frames == 0
    game.close()


def test_libraries_on_pythonpath_are_found_with_safe_paths(
    broken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    (libraries / "only_here.py").touch()
    rules = broken / "environment" / "rules.py"
    text = rules.read_text(encoding="utf-8")
    rules.write_text(text.replace("import random", "import only_here, random"), encoding="utf-8")
    assert "only_here" in rules.read_text(encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(libraries))
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    game = GameProcess(Checkout.find(broken))
    assert game.reset(1).frames == 0
    game.close()


def test_pymunk_7_is_refused_by_name(broken: Path) -> None:
    (broken / "pymunk.py").write_text('version = "7.1.0"\n', encoding="utf-8")
    game = broken / "environment" / "environment.py"
    text = game.read_text(encoding="utf-8")
    game.write_text(text.replace("import numpy", "import pymunk\nimport numpy"), encoding="utf-8")
    with pytest.raises(MissingDependency, match=r"before version 7, and .* has 7\.1\.0.*pymunk<7"):
        GameProcess(Checkout.find(broken)).reset(1)


def test_another_number_of_observations_is_refused(broken: Path) -> None:
    game = broken / "environment" / "environment.py"
    text = game.read_text(encoding="utf-8")
    game.write_text(text.replace("*_NO_WEAPONS,", ""), encoding="utf-8")
    with pytest.raises(ConfigError, match="an observation has 64 numbers, this one has 46"):
        GameProcess(Checkout.find(broken)).reset(1)


def test_an_agent_that_a_checkout_does_not_have_is_named(broken: Path) -> None:
    agents = broken / "environment" / "agent.py"
    text = agents.read_text(encoding="utf-8")
    agents.write_text(text.replace("BasedAgent", "OtherAgent"), encoding="utf-8")
    game = GameProcess(Checkout.find(broken))
    for folder in ("user", "nowhere"):  # without a module train_agent, then without a package
        with pytest.raises(ConfigError, match="no agent 'based': BasedAgent is not in"):
            game.reset(1)
            game.send_step(1, (_NO_KEYS, AgentAction("based")))
            game.state()
        game.close()
        if folder == "user":
            (broken / "user").rmdir()


def test_a_game_that_always_dies_is_an_error_with_its_last_words(broken: Path) -> None:
    rules = broken / "environment" / "rules.py"
    text = rules.read_text(encoding="utf-8")
    broke = text.replace("self.frames = 0", "raise RuntimeError('no luck')")
    rules.write_text(broke, encoding="utf-8")
    with pytest.raises(GameDied, match="RuntimeError: no luck; that was process 3 in a row"):
        GameProcess(Checkout.find(broken)).reset(1)


def test_a_game_that_hangs_is_killed_and_the_next_match_is_played(
    broken: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = broken / "environment" / "environment.py"
    text = rules.read_text(encoding="utf-8")
    step = next(line for line in text.splitlines() if line.lstrip().startswith("def step("))
    marker = broken / "hung"
    hang = (
        f"\n    def step(self, actions):\n"
        f"        import pathlib, time\n"
        f"        marker = pathlib.Path({str(marker)!r})\n"
        f"        if not marker.exists():\n"
        f"            marker.touch(); time.sleep(600)\n"
        f"        return self._step(actions)\n\n"
    )
    text = text.replace(step, hang + step.replace("def step(", "def _step("))
    rules.write_text(text, encoding="utf-8")
    monkeypatch.setattr(game_process, "_ANSWER_S", 1.0)
    game = GameProcess(Checkout.find(broken))
    game.reset(1)
    game.send_step(1, [_NO_KEYS, _NO_KEYS])
    with pytest.raises(GameDied, match="after 1 seconds without an answer: it was killed"):
        game.state()
    monkeypatch.undo()
    game.reset(2)
    game.send_step(1, [_NO_KEYS, _NO_KEYS])
    assert game.state().frames == 1
    game.close()


def test_stepping_without_a_match_is_an_error(stand_in: Path) -> None:
    with pytest.raises(GameDied, match="reset the environment first"):
        GameProcess(Checkout.find(stand_in)).send_step(1, (_NO_KEYS, _NO_KEYS))


def test_terms_of_one_step() -> None:
    level = MatchStanding((3, 3), (0.0, 0.0))
    hit = MatchStanding((3, 3), (0.0, 12.0))
    stock = MatchStanding((3, 2), (0.0, 90.0))
    won = MatchStanding((3, 0), (20.0, 300.0))
    assert reward_terms(level, hit, over=False) == {
        "stocks": 0.0, "damage": pytest.approx(0.03), "result": 0.0,
    }  # fmt: skip
    assert reward_terms(level, stock, over=False)["stocks"] == 0.25
    total = sum(
        sum(reward_terms(a, b, over=b is won).values())
        for a, b in ((level, hit), (hit, stock), (stock, won))
    )
    assert total == pytest.approx(1.0)
    # Damage is worth nothing where stocks are equal at the end.
    assert sum(reward_terms(level, hit, over=True).values()) == pytest.approx(0.0)
