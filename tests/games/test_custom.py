"""Custom games and bots by name: what fits is in the catalog, what does not is named."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from understudy.core.errors import ConfigError
from understudy.core.ops import NUMPY
from understudy.games import catalog, custom, rewards
from understudy.games.rewards import rewards_of
from understudy.match.evaluate import judge
from understudy.match.players import BotPlayer
from understudy.testing import check_game

pytestmark = pytest.mark.usefixtures("fresh_code")

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "tictactoe.py"
TEXT = EXAMPLE.read_text(encoding="utf-8")


def written(folder: Path, text: str = TEXT, name: str = "my_game.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def changed(folder: Path, *changes: tuple[str, str]) -> str:
    """The example with some words replaced, as `FILE:NAME`."""
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return f"{written(folder, text)}:TicTacToe"


def test_the_example_keeps_the_whole_contract() -> None:
    check_game(catalog.make(custom.load_game(f"{EXAMPLE}:TicTacToe")))


def test_the_page_has_the_example_word_for_word() -> None:
    page = (EXAMPLE.parents[1] / "your-own-game.md").read_text(encoding="utf-8")
    rules, check, bots = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert TEXT.endswith(f"\n{rules}\n\n{bots}")
    assert "check_game(TicTacToe())" in check


def test_a_bot_blocks_and_wins(tmp_path: Path) -> None:
    bots = catalog.bots(custom.load_game(f"{EXAMPLE}:TicTacToe"))
    seen = np.zeros((19, 1), np.float32)
    seen[[0, 1, 12, 13, 18]] = 1.0  # mine: 0 and 1; theirs: 3 and 4; my turn
    args = (NUMPY, seen, np.zeros(1, np.uint32), np.zeros(1, np.int32))
    assert bots["rules"].act(*args)[0, 0] == 2, "wins rather than blocks"
    seen[1] = 0.0
    assert bots["rules"].act(*args)[0, 0] == 5, "blocks"


def test_frozen_matches_of_the_bots_are_as_strong_as_the_page_says(tmp_path: Path) -> None:
    name = custom.load_game(f"{EXAMPLE}:TicTacToe")
    players = {key: BotPlayer(bot) for key, bot in catalog.bots(name).items()}
    report = judge(catalog.make(name), players["rules"], players, matches=200, seed=1)
    assert report["random"].tally.win_rate > 0.85 and report["rules"].tally.wins == 0


def test_a_custom_game_is_in_the_catalog_under_its_own_name(tmp_path: Path) -> None:
    name = custom.load_game(f"{written(tmp_path)}:TicTacToe")
    assert name == "tictactoe" and catalog.known(name) and name not in catalog.names()
    assert list(catalog.bots(name)) == ["random", "rules"]
    assert catalog.rules_named(name) == "random"
    assert catalog.describe(name)[0].summary.startswith("Three in a row")
    chosen, weights = rewards_of(name, "default", gamma=1.0)
    assert chosen.names == ("reward",) and weights.tolist() == [[1.0]]
    assert catalog.make(name) is catalog.make(name), "compiled programs are shared"
    assert catalog.make(name, delay="2").start is not catalog.make(name).start


def test_options_feed_the_constructor(tmp_path: Path) -> None:
    sized = changed(
        tmp_path,
        (
            '    name = "tictactoe"\n',
            '    def __init__(self, size, style="9", fast=False):\n'
            "        self.size, self.style, self.fast = size, style, fast\n\n"
            '    name = "tictactoe"\n',
        ),
    )
    with pytest.raises(ConfigError, match="without size: add --option size="):
        custom.load_game(sized)
    with pytest.raises(ConfigError, match=r"no option 'sise'; it takes size, style, fast.*'size'"):
        custom.load_game(sized, {"size": "3", "sise": "4"})
    name = custom.load_game(sized, {"size": "3"})
    made = catalog.make(name, fast="true")
    assert (made.size, made.style, made.fast) == (3, "9", True)  # type: ignore[attr-defined]
    assert catalog.defaults(name) == {"delay": "0", "size": "3", "style": "9", "fast": "false"}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("    def reward(", "    def other(", "has no reward"),
        ("    players = 2\n", '    players = "two"\n', "players: expected an int"),
        ("astype(xp.int32),\n", "astype(xp.int8),\n", "state.board: expected"),
        ("        return self.score(ops, after)\n", "        return 1 / 0\n", "line .* of my_game"),
        ('    name = "tictactoe"\n', '    name = "brawl"\n', "'brawl' is a built-in game"),
        ('    name = "tictactoe"\n', '    name = "tic tac"\n', "name: expected one word"),
        ('    name = "tictactoe"\n', '    name = "t"\n    __hash__ = None\n', "frozen dataclass"),
        (".astype(xp.int32)[None]\n", ".astype(xp.int32)\n", r"act: expected actions \[parts, B\]"),
        (".astype(xp.int32)[None]\n", "[None]\n", "act: expected int32, got int64"),
        ("cell, WAIT)", "cell, cell)", "bot 'random': act: frame 0: chose option . of part 0"),
        ('"random": Random()', '"random": Random', "got a class"),
        ('"random": Random()', '"self": Random()', "'self' cannot be the name of a bot"),
        ('"random": Random()', '"a=b": Random()', "one word"),
        ('"random": Random()', '"random": 3', "has no act"),
        ("BOTS = {", "BOTS = 3\nOTHER = {", "expected a mapping BOTS"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, old: str, new: str, words: str) -> None:
    text = changed(tmp_path, (old, new))
    with pytest.raises(ConfigError, match=words) as caught:
        custom.load_game(text)
    assert str(caught.value).startswith(f"GAME {text}: ")
    assert not catalog.known("tictactoe")


def test_a_missing_class_is_told_with_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has no 'TicTac'; it has .*Did you mean 'TicTacToe'"):
        custom.load_game(f"{written(tmp_path)}:TicTac")
    with pytest.raises(ConfigError, match="GAME: there is no file"):
        custom.load_game(f"{tmp_path / 'missing.py'}:TicTacToe")


def test_a_game_may_be_made_by_a_function_or_be_there_already(tmp_path: Path) -> None:
    path = written(
        tmp_path, TEXT + "\ndef make():\n    return TicTacToe()\n\nready = TicTacToe()\n"
    )
    assert custom.load_game(f"{path}:make") == custom.load_game(f"{path}:ready") == "tictactoe"
    with pytest.raises(ConfigError, match="takes no options"):
        custom.load_game(f"{path}:ready", {"size": "3"})


BOTS = """
from my_game import Random

class Corner(Random):
    pass

BOTS = {"corner": Corner()}
"""


def test_bots_of_another_file_join_those_of_the_game(tmp_path: Path) -> None:
    name = custom.load_game(f"{written(tmp_path)}:TicTacToe")
    path = written(tmp_path, BOTS, "my_bots.py")
    assert custom.add_bots(name, path) == ("corner",)
    assert custom.add_bots(name, path) == ("corner",), "once more changes nothing"
    assert list(catalog.bots(name)) == ["random", "rules", "corner"]
    again = written(tmp_path, BOTS.replace('"corner"', '"rules"'), "other_bots.py")
    with pytest.raises(ConfigError, match="tictactoe has a bot 'rules' already"):
        custom.add_bots(name, again)
    with pytest.raises(ConfigError, match=r"expected a mapping BOTS .*has none"):
        custom.add_bots(name, written(tmp_path, "x = 1\n", "empty.py"))


def test_any_callable_can_be_loaded_as_an_opponent_of_an_environment(tmp_path: Path) -> None:
    text = "def first(obs, legal):\n    return int(legal.argmax())\n\nBOTS = {'first': first}\n"
    bots = custom.load_bots(written(tmp_path, text, "my_bots.py"))
    assert bots["first"](None, np.array([False, True])) == 1


def test_a_built_in_game_takes_more_bots(tmp_path: Path) -> None:
    text = "from understudy.games.catalog import bots\n\nBOTS = {'mine': bots('brawl')['random']}\n"
    assert custom.add_bots("brawl", written(tmp_path, text, "my_bots.py")) == ("mine",)
    assert "mine" in catalog.bots("brawl") and "mine" not in catalog.held_out("brawl")


def test_reward_terms_of_a_custom_game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewards, "_ADDED", {})
    monkeypatch.setattr(rewards, "_LOADED", {})
    name = custom.load_game(f"{written(tmp_path)}:TicTacToe")
    text = (
        "from understudy.games.rewards import term\n\n"
        '@term("tictactoe")\ndef centre(ops, moment):\n'
        "    held = moment.after.board[4]\n"
        "    return ops.xp.stack([held == 1, held == 2]).astype(ops.xp.float32)\n"
    )
    assert rewards.load_terms(written(tmp_path, text, "my_terms.py")) == ("centre",)
    assert set(rewards.terms_of(name, gamma=1.0)) == {"reward", "centre"}


def test_held_out_bots_are_apart(tmp_path: Path) -> None:
    text = changed(tmp_path, ("BOTS = {", 'HELD_OUT = {"stranger": Rules()}\nBOTS = {'))
    name = custom.load_game(text)
    assert list(catalog.held_out(name)) == ["stranger"] and "stranger" not in catalog.bots(name)
