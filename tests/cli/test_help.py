"""Help that helps, and mistakes that name what was probably meant."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import typer

from understudy import __main__, __version__
from understudy.cli.app import make_app

from .calling import understudy


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def commands() -> dict[str, Any]:
    """Every command and every group of them, with its full name."""
    found: dict[str, Any] = {}

    def collect(command: Any, path: tuple[str, ...]) -> None:
        found[" ".join(path)] = command
        for name, one in getattr(command, "commands", {}).items():
            collect(one, (*path, name))

    collect(typer.main.get_command(make_app()), ())
    return found


def test_help_is_grouped() -> None:
    for flag in ("--help", "-h"):
        called = understudy(flag)
        assert called.code == 0
        places = [called.out.index(group) for group in ("Play", "Judge", "Look", "Manage")]
        assert places == sorted(places)
    assert understudy().out.strip() == called.out.strip()  # without anything: the help as well


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_command_has_help_with_an_example(name: str) -> None:
    help_text = commands()[name].help or ""
    assert f"Example: understudy {name}".strip() in " ".join(help_text.split())
    called = understudy(*name.split(), "--help")
    assert called.code == 0
    assert "Example:" in called.out


def test_only_what_is_finished_is_offered() -> None:
    offered = {name.split()[0] for name in commands() if name}
    assert offered >= {
        "play", "serve", "learner", "train", "eval", "tournament", "analyze", "status",
        "monitor", "dashboard", "doctor", "report", "watch", "models", "promotion", "ratings",
        "games", "config", "import", "export", "relay", "forget", "version", "help",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "named", "nearest"),
    [
        ("pley", "'pley'", "'play'"),
        ("models lst", "'lst'", "'list'"),
        ("help pley", "'pley'", "'play'"),
        ("play swrm", "'swrm'", "'swarm'"),
        ("play swarm --matchs 3", "--matchs", "--matches"),
        ("play swarm --difficulty hrd", "--difficulty", "'hard'"),
        ("play swarm --network mpl", "understudy: --network: expected one of", "'mlp'"),
        ("play swarm --learner proces", "learner", "'process'"),
        ("play swarm --mode atuo", "--mode", "'auto'"),
        ("play swarm --mode auto --rules ruls", "--rules: swarm has the bots", "'rules'"),
        ("play swarm --rules rules --evidence simulatr", "--evidence: ", "'simulator'"),
        ("play swarm --evidence simulator", "--evidence: ", "mode auto, not in mode learn"),
        ("play swarm --set learner.gama=1", "--set", "'learner.gamma'"),
        ("play swarm --set gamma=0.9", "--set: gamma: ", "'learner.gamma'"),
        ("play swarm --set nonsense", "--set nonsense", "learner.gamma=0.99"),
        ("play swarm --set learner.gamma=2", "learner.gamma", "0 to 1"),
        ("play swarm --set learner.gamma=x", "--set: learner.gamma", "a number"),
        ("play swarm --seed -1", "understudy: --seed: expected 0 to", "got -1"),
        ("play swarm --matches 3 --minutes 1", "--matches", "--minutes"),
        ("play swarm --matches 0", "--matches", "1 or more"),
        ("play swarm --matches three", "--matches", "integer"),
        ("play swarm --eval -1 --matches 1", "--eval", "0 or more"),
        ("train gymnasium:CartPole-v1 --eval -1", "--eval", "0 or more"),
        ("play", "game", "understudy play --help"),
        ("learner", "--run", "understudy learner --help"),
        ("status --run nowhere", "nowhere", "not a run folder"),
        ("status", "--run", "understudy play swarm"),
        ("status --jsn", "--jsn", "--json"),
        ("models show one", "version", "integer"),
    ],
)
def test_a_mistake_is_one_line_that_names_it_and_the_nearest(
    line: str, named: str, nearest: str
) -> None:
    called = understudy(*line.split(), *(["--json"] if "play swarm" in line else []))
    assert called.code == 2
    assert called.out == ""
    assert called.err.count("\n") == 1 and called.err.startswith("understudy: ")
    assert named in called.err and nearest in called.err


@pytest.mark.parametrize("word", ["version", "--version"])
def test_version(word: str) -> None:
    called = understudy(word)
    assert (called.code, called.out) == (0, f"{__version__}\n")


@pytest.mark.parametrize("line", ["", "play", "models", "models list"])
def test_help_is_a_command_too(line: str) -> None:
    called = understudy("help", *line.split())
    assert (called.code, called.err) == (0, "")
    assert called.out == understudy(*line.split(), "--help").out


def test_without_typer_one_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("understudy.cli")]:
        monkeypatch.delitem(sys.modules, name)
    with mock.patch.dict(sys.modules, {"typer": None}), pytest.raises(SystemExit) as end:
        __main__.main()
    assert 'pip install ".[learn]"' in str(end.value.code)


def test_trouble_with_a_file_is_one_line_too(played: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from understudy.core import files

    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write_atomic", full)
    called = understudy("models", "export", 1, "--out", "champion.npz", "--run", played)
    assert called.code == 2
    assert called.err.count("\n") == 1 and "No space left" in called.err
