"""The bot that `understudy new sc2-bot` makes, in all three ways of playing.

Against the stand-in, or against StarCraft II where `SC2PATH` points to it (`SC2MAP` names the map).
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("sc2")

from adapters.sc2.ducks import episodes
from understudy.adapters.sc2.stand_in.installation import SCENARIO
from understudy.adapters.sc2.template import make_bot
from understudy.experience.episode import Outcome
from understudy.sc2 import FEATURES, stand_in

pytestmark = pytest.mark.skipif(os.name != "posix", reason="burnysc2 starts an .exe on Windows")

_ENDED = (Outcome.VICTORY, Outcome.DEFEAT, Outcome.TIE)
_LADDER = """
import asyncio, json, sys
from understudy.sc2 import contained
with contained():
    from sc2 import maps
    from sc2.data import Difficulty, Race
    from sc2.main import GameMatch, a_run_multiple_games
    from sc2.player import BotProcess, Computer
    folder, name, words = sys.argv[1:]
    bot = BotProcess(
        folder, [sys.executable, "run.py"], Race.Zerg, "MyBot", other_args=words, stdout="bot.log"
    )
    match = GameMatch(maps.get(name), [bot, Computer(Race.Terran, Difficulty.Hard)])
    found = asyncio.run(a_run_multiple_games([match]))
print(json.dumps([result.name for one in found for result in one.values()]))
"""


class Game(NamedTuple):
    """Where StarCraft II, or its stand-in, is installed."""

    environment: dict[str, str]
    map_name: str
    timeout_s: int


@pytest.fixture
def game(tmp_path: Path) -> Game:
    real = os.environ.get("SC2PATH", "")
    if real and not (Path(real) / SCENARIO).exists():
        return Game(dict(os.environ), os.environ.get("SC2MAP", "AcropolisLE"), 3600)
    folder = stand_in.install(tmp_path / "game", stand_in.Scenario(seed=3, build="Rush"))
    return Game(os.environ | {"SC2PATH": str(folder)}, stand_in.MAP, 120)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = make_bot(tmp_path / "my_bot")
    assert sorted(path.name for path in made) == ["README.md", "bot.py", "run.py"]
    assert "understudy.adapters" not in "".join(path.read_text(encoding="utf-8") for path in made)
    return tmp_path / "my_bot"


def python(
    *line: object, game: Game | None = None, where: Path
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, line)],
        capture_output=True,
        text=True,
        check=False,
        cwd=where,
        env=None if game is None else game.environment,
        timeout=120 if game is None else game.timeout_s,
    )


def test_in_process(folder: Path, tmp_path: Path) -> None:
    line = ("my_bot/run.py", "--stand-in", "--matches", 2, "--seed", 5, "--learner", "off")
    done = python(*line, where=tmp_path)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith("match 1: ") and second.startswith("match 2: ")
    run = tmp_path / "runs" / "my_bot"
    assert (run / "config.toml").exists()
    assert len(episodes(run)) == 2


def test_under_an_unmodified_run_game(folder: Path, tmp_path: Path, game: Game) -> None:
    line = ("my_bot/run.py", "--map", game.map_name, "--matches", 1, "--learner", "off")
    done = python(*line, game=game, where=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("match 1: "), "burnysc2's own log is not on stdout"
    assert "decisions, rules" in done.stdout
    run = tmp_path / "runs" / "my_bot"
    (kept,) = episodes(run)
    assert kept.meta.outcome in _ENDED


def test_as_a_ladder_starts_it(folder: Path, tmp_path: Path, game: Game) -> None:
    words = "--OpponentId=rival-7"
    done = python("-c", _LADDER, folder, game.map_name, words, game=game, where=tmp_path)
    assert done.returncode == 0, done.stderr
    (kept,) = episodes(folder / "data" / "run")
    assert kept.meta.outcome in _ENDED
    assert kept.meta.tags["opponent"] == "rival-7"
    assert kept.meta.tags["map"] == game.map_name
    assert kept.meta.tags["race"] == "Zerg"
    assert kept.observations.shape[1] == len(FEATURES)
    assert "Victory" in done.stdout or "Defeat" in done.stdout


def test_without_the_game_it_says_what_is_missing(folder: Path, tmp_path: Path) -> None:
    nothing = Game(os.environ | {"SC2PATH": str(tmp_path / "nothing")}, "", 60)
    done = python("my_bot/run.py", game=nothing, where=tmp_path)
    assert done.returncode == 1
    assert "StarCraft II is not in" in done.stderr
    assert "--stand-in" in done.stderr and "SC2PATH" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_an_unknown_map_is_named(folder: Path, tmp_path: Path, game: Game) -> None:
    done = python("my_bot/run.py", "--map", "Nowhere", game=game, where=tmp_path)
    assert done.returncode == 1
    assert "--map: Nowhere is not in" in done.stderr
    assert f"(there: {stand_in.MAP})" in done.stderr or game.map_name != stand_in.MAP


def test_ctrl_c_in_a_match_keeps_it_and_says_where(folder: Path, tmp_path: Path) -> None:
    line = [sys.executable, "my_bot/run.py", "--stand-in", "--learner", "off"]
    with subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as playing:
        assert playing.stdout is not None and playing.stderr is not None
        told = [playing.stdout.readline() for _ in range(2)]
        playing.send_signal(signal.SIGINT)
        told += playing.stdout.readlines()
        errors = playing.stderr.read()
        assert playing.wait(timeout=60) == 130
    assert "my_bot: stopped; every match is kept in runs/my_bot" in errors
    assert "Traceback" not in errors
    outcomes = [one.meta.outcome for one in episodes(tmp_path / "runs" / "my_bot")]
    assert len(told) == sum(one in _ENDED for one in outcomes), "each match that was told is kept"
    assert len(outcomes) <= len(told) + 1, "and the one that was played"


def test_on_a_ladder_without_a_game_it_says_so(folder: Path, tmp_path: Path) -> None:
    with socket.socket() as unused:  # bound, and nothing listens
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        done = python("my_bot/run.py", "--GamePort", port, where=tmp_path)
    assert done.returncode == 1
    assert f"my_bot: no game answers at ws://127.0.0.1:{port}/sc2api" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_burnysc2_it_says_how_to_install_it(folder: Path, tmp_path: Path) -> None:
    program = "import sys, runpy; sys.modules['sc2'] = None; runpy.run_path('my_bot/run.py')"
    done = python("-c", program, where=tmp_path)
    assert done.returncode == 1
    assert "install burnysc2 first" in done.stderr and "-m pip install burnysc2" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("flag", ["--matches", "--seed"])
@pytest.mark.parametrize("value", ["-3", "0.5", "many"])
def test_a_wrong_number_is_refused(
    capsys: pytest.CaptureFixture[str], flag: str, value: str
) -> None:
    from understudy.adapters.sc2.template import run

    with pytest.raises(SystemExit, match="2"):
        run.parser().parse_args([f"{flag}={value}"])
    told = capsys.readouterr().err
    assert f"argument {flag}: expected a whole number, 0 or more, got '{value}'" in told


@pytest.mark.parametrize("flag", ["--map=AcropolisLE", "--difficulty=Easy"])
def test_the_stand_in_has_no_maps_and_no_difficulties(
    capsys: pytest.CaptureFixture[str], flag: str
) -> None:
    from understudy.adapters.sc2.template import run

    with pytest.raises(SystemExit, match="2"):
        run.parse(["--stand-in", flag])
    assert "do not go with --stand-in" in capsys.readouterr().err
    options = run.parse([])
    assert (options.map, options.difficulty) == ("AcropolisLE", "Hard")


def test_an_unknown_flag_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    from understudy.adapters.sc2.template import run

    with pytest.raises(SystemExit, match="2"):
        run.parser().parse_args(["--stand-ins"])
    assert "unrecognized arguments: --stand-ins" in capsys.readouterr().err
