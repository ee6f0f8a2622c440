"""A game of one's own from file to agent: train, resume, eval, tournament, watch, and what fails.

Each command starts as in a new process: the run folder alone knows where the game came from.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import pytest

from understudy.core.clock import SystemClock
from understudy.games import catalog
from understudy.judging.simulator import Simulator
from understudy.promotion.promotion import Promotion
from understudy.registry.run_folder import RunFolder
from understudy.run.replay_process import replay_command

from .calling import understudy

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "tictactoe.py"
SMALL = tuple(
    flag
    for setting in (
        "train.games=32",
        "train.segment=16",
        "train.record=4",
        "train.checkpoint_steps=1024",
        "learner.minibatches=2",
        "learner.epochs=1",
        "monitor.benchmark_steps=0",
        "monitor.csv=false",
    )
    for flag in ("--set", setting)
)
BOTS = """
from my_game import Random

class Corner(Random):
    pass

BOTS = {"corner": Corner()}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a game, bots, and a run of 2,048 steps."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "my_game.py").write_text(EXAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "my_bots.py").write_text(BOTS, encoding="utf-8")
    done = subprocess.run(
        [*_command("train", "my_game.py:TicTacToe", "--bots", "my_bots.py", "--run", "runs/one"),
         "--steps", "2048", "--json", *SMALL],
        cwd=folder, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def copied(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_code: None
) -> Iterator[Path]:
    """The project copied whole to another place, and the one that it was copied from gone."""
    folder = tmp_path / "elsewhere"
    copytree(project, folder)
    monkeypatch.chdir(folder)
    hidden = project.with_name("hidden")
    project.rename(hidden)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield folder
    hidden.rename(project)


def _command(*args: object) -> list[str]:
    return [sys.executable, "-m", "understudy", *map(str, args)]


def test_the_run_remembers_where_its_game_and_bots_came_from(project: Path) -> None:
    identity = RunFolder.load(project / "runs" / "one", SystemClock()).identity
    assert identity.game == "tictactoe 1" and identity.game_code is not None
    assert identity.game_code.relative == "../../my_game.py"
    assert identity.game_code.name == "TicTacToe" and len(identity.game_code.sha256) == 64
    assert [code.relative for code in identity.bot_code] == ["../../my_bots.py"]


def test_eval_finds_the_game_by_file_or_by_name(copied: Path) -> None:
    by_file = understudy("eval", "my_game.py:TicTacToe", "--matches", 20, "--json")
    assert by_file.code == 0, by_file.err
    assert list(by_file.json["opponents"]) == ["random", "rules", "corner"]
    assert by_file.json["game"] == "tictactoe"
    by_name = understudy("eval", "tictactoe", "--agent", "runs/one", "--matches", 20, "--json")
    assert by_name.json["opponents"] == by_file.json["opponents"] and not by_name.err


def test_a_tournament_takes_runs_and_bots_of_the_game(copied: Path) -> None:
    found = understudy(
        "tournament",
        "my_game.py:TicTacToe",
        "runs/one",
        "random",
        "rules",
        "--matches",
        20,
        "--json",
    )
    assert found.code == 0, found.err
    assert {row["name"] for row in found.json["standings"]} == {"runs/one", "random", "rules"}


def test_the_simulator_of_a_run_finds_its_game_and_bots(copied: Path) -> None:
    folder, problems = RunFolder.load(Path("runs/one"), SystemClock()), list[str]()
    Simulator(folder, Promotion(folder), rules="corner", options={}, problem=problems.append)
    assert catalog.known("tictactoe") and not problems


def test_play_says_which_command_trains_a_custom_game(copied: Path) -> None:
    found = understudy("play", "my_game.py:TicTacToe")
    assert found.code == 2 and "`understudy train my_game.py:TicTacToe`" in found.err


def test_ratings_and_games_know_it_too(copied: Path) -> None:
    listed = understudy("games", "my_game.py:TicTacToe", "--json")
    assert listed.json[0]["name"] == "tictactoe" and listed.json[0]["bots"] == ["random", "rules"]
    ratings = understudy("ratings", "--run", "runs/one", "--matches", 4, "--json")
    assert ratings.code == 0 and "corner" in ratings.json["opponents"], ratings.err


def test_watch_draws_a_match_in_words_and_as_an_animation(copied: Path) -> None:
    pytest.importorskip("PIL")
    found = understudy("watch", "my_game.py:TicTacToe", "--left", "runs/one", "--right", "random")
    assert found.code == 0, found.err
    assert "(A) runs/one" in found.out and "crosses" in found.out and "AA" in found.out
    written = understudy(
        "watch", "tictactoe", "--left", "runs/one", "--gif", "m.gif", "--png", "m.png", "--json"
    )
    assert written.code == 0 and written.json["gif"] == "m.gif", written.err
    assert (copied / "m.gif").stat().st_size > 1000 and (copied / "m.png").stat().st_size > 1000


def test_a_recorded_match_is_replayed_and_drawn(copied: Path) -> None:
    listed = understudy("watch", "tictactoe", "--match", "runs/one", "--json")
    assert listed.code == 0, listed.err
    first = listed.json[0]
    assert not first.get("problem")
    shown = understudy("watch", "my_game.py:TicTacToe", "--match", f"runs/one:{first['id']}")
    assert shown.code == 0 and "bit for bit" in shown.out, shown.err


def test_a_process_that_has_not_loaded_the_game_lists_its_matches(copied: Path) -> None:
    """As the dashboard does, which runs no code of a run: the replay is another process."""
    run = copied / "runs" / "one"
    look = (
        "import sys; from pathlib import Path; from understudy.core.clock import SystemClock; "
        "from understudy.judging.replays import listed; "
        "from understudy.registry.run_folder import RunFolder; "
        "[print(one.id, one.problem) for one in listed(RunFolder.load(Path(sys.argv[1]), "
        "SystemClock()))]; assert 'my_game' not in sys.modules"
    )
    told = subprocess.run(
        [sys.executable, "-c", look, run], capture_output=True, text=True, check=True, cwd=copied
    )
    newest, *rest = [line.strip() for line in told.stdout.splitlines()]
    assert newest.isdecimal() and all(one.isdecimal() for one in rest), "each can be replayed"
    replay = subprocess.run(
        replay_command(run, newest), capture_output=True, text=True, check=True
    ).stdout.splitlines()
    kinds = [json.loads(line)["kind"] for line in replay]
    assert kinds[0] == "header" and "frames" in kinds and "problem" not in kinds


def test_a_resume_goes_on_with_the_same_bots(copied: Path) -> None:
    found = understudy(
        "train", "my_game.py:TicTacToe", "--run", "runs/one", "--resume", "--steps", 3072, "--json"
    )
    assert found.code == 0 and found.json["steps"] == 3072, found.err
    assert "corner" in found.json["opponents"]


def test_a_changed_file_is_noted_and_changed_rules_are_refused(copied: Path) -> None:
    path = copied / "my_game.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text + "\n# a comment\n", encoding="utf-8")
    noted = understudy("eval", "tictactoe", "--agent", "runs/one", "--matches", 4)
    assert noted.code == 0 and "my_game.py has changed since runs/one was made" in noted.err
    path.write_text(text.replace("version = 1", "version = 2"), encoding="utf-8")
    resumed = understudy(
        "train", "my_game.py:TicTacToe", "--run", "runs/one", "--resume", "--steps", 4096
    )
    assert resumed.code == 2 and "'tictactoe 1', now it is 'tictactoe 2'" in resumed.err
    judged = understudy("eval", "my_game.py:TicTacToe", "--agent", "runs/one", "--matches", 4)
    assert judged.code == 0 and "learned under tictactoe 1; this is tictactoe 2" in judged.err


def test_a_game_that_is_gone_is_named_with_what_to_do(copied: Path) -> None:
    (copied / "my_game.py").unlink()
    found = understudy("eval", "tictactoe", "--agent", "runs/one", "--matches", 4)
    assert found.code == 2 and "is gone" in found.err and "on the command line" in found.err
    status = understudy("status", "--run", "runs/one", "--json")
    assert status.code == 0, "what reads no rules needs no game"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("missing.py:TicTacToe",), "there is no file missing.py"),
        (("my_game.py:TicTac",), "Did you mean 'TicTacToe'?"),
        (("my_game.py",), "There is no game 'my_game.py'"),
        (("my_game.py:TicTacToe", "--option", "size=3"), "it has no option 'size'"),
        (("my_game.py:TicTacToe", "--option", "size"), "--option size: expected key=value"),
        (("my_game.py:TicTacToe", "--bots", "none.py"), "--bots: there is no file none.py"),
        (("my_game.py:TicTacToe", "--opponents", "self"), "at least one scripted bot"),
        (("my_game.py:State",), "cannot be made without board, frame"),
    ],
)
def test_what_cannot_be_trained_is_an_error_before_anything_is_written(
    copied: Path, args: tuple[str, ...], words: str
) -> None:
    found = understudy("train", *args, "--run", "runs/two", "--steps", 1024, *SMALL)
    assert found.code == 2 and words in found.err.replace("\n", " ")
    assert not (copied / "runs" / "two").exists()


def test_a_game_without_bots_asks_for_some(copied: Path) -> None:
    path = copied / "my_game.py"
    path.write_text(
        path.read_text(encoding="utf-8").replace("BOTS = {", "NOT = {"), encoding="utf-8"
    )
    found = understudy("train", "my_game.py:TicTacToe", "--run", "runs/two", *SMALL)
    assert found.code == 2 and "no scripted bots" in found.err and "--bots FILE" in found.err


def test_a_wrong_drawing_is_named(copied: Path) -> None:
    path = copied / "my_game.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("return Drawing(", "return list("), encoding="utf-8")
    found = understudy("watch", "my_game.py:TicTacToe", "--left", "random", "--right", "rules")
    assert found.code == 2 and "draw: fails in frame 0 (TypeError: " in found.err
    assert "of my_game.py" in found.err.replace("\n", " ")
    path.write_text(text.replace("    def draw(", "    def paint("), encoding="utf-8")
    found = understudy("watch", "my_game.py:TicTacToe", "--left", "random", "--right", "rules")
    assert found.code == 2 and "give TicTacToe a function draw(state, index)" in found.err


def test_a_killed_session_of_a_custom_game_resumes(copied: Path) -> None:
    folder = RunFolder.load(copied / "runs" / "one", SystemClock())
    before = max(folder.versions.numbers())
    resumed = ("train", "my_game.py:TicTacToe", "--run", "runs/one", "--resume", "--json")
    child = subprocess.Popen(
        [*_command(*resumed), "--steps", "10M"], cwd=copied, stdout=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 120
        while max(folder.versions.numbers()) < before + 2:
            assert child.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        child.kill()
        child.wait()
    if sys.platform != "win32":
        assert child.returncode == -signal.SIGKILL
    kept = folder.versions.manifest(max(folder.versions.numbers())).counters["steps"]
    again = understudy(*resumed, "--steps", kept + 1024)
    assert again.code == 0 and again.json["steps"] == kept + 1024, again.err


def test_a_game_of_one_player_is_trained_and_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_code: None
) -> None:
    monkeypatch.chdir(tmp_path)
    found = understudy("train", "swarm", "--steps", 2048, "--json", *SMALL)
    assert found.code == 0 and list(found.json["opponents"]) == ["game"], found.err
    judged = understudy("eval", "swarm", "--matches", 10, "--json")
    assert judged.code == 0 and list(judged.json["opponents"]) == ["game"], judged.err
    refused = understudy("eval", "swarm", "--opponents", "rules", "--matches", 10)
    assert refused.code == 2 and "swarm has one player" in refused.err
    refused = understudy("tournament", "swarm", "rules", "random")
    assert refused.code == 2 and "`understudy eval swarm`" in refused.err


def test_a_short_training_plays_well_against_chance(copied: Path) -> None:
    trained = understudy(
        "train", "my_game.py:TicTacToe", "--opponents", "random", "--steps", "64k",
        "--run", "runs/two", "--json", "--set", "train.games=128", "--set", "train.segment=16",
        "--set", "monitor.benchmark_steps=0", "--set", "monitor.csv=false",
    )  # fmt: skip
    assert trained.code == 0, trained.err
    judged = understudy(
        "eval", "tictactoe", "--agent", "runs/two", "--opponents", "random", "--matches", 400,
        "--greedy", "--json",
    )  # fmt: skip
    # Chance against chance wins 43%, the best player against it 97%.
    assert judged.json["opponents"]["random"]["win_rate"] > 0.8
