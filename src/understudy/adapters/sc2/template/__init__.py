"""What `understudy new sc2-bot` copies: a bot, its program, and a page about both.

The files are modules here, so that they are checked and tested like all others. In a folder of
their own they import each other by their own names.
"""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

from understudy.core.errors import ConfigError

FILES = ("bot.py", "run.py", "README.md")
_HERE = "understudy.adapters.sc2.template"


def bot_files(name: str) -> dict[str, str]:
    """The files of a new bot, by name, with their text."""
    return {one: _adapted(one, name) for one in FILES}


def make_bot(folder: Path) -> list[Path]:
    """Writes the files of a new bot.

    Raises:
        ConfigError: The folder exists and is not empty.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"new: {folder} exists already; choose another name, or remove it")
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for name, text in bot_files(folder.resolve().name).items():
        path = folder / name
        path.write_text(text, encoding="utf-8")
        made.append(path)
    return made


def _adapted(file: str, name: str) -> str:
    text = resources.files(_HERE).joinpath(file).read_text(encoding="utf-8")
    text = re.sub(rf"from {re.escape(_HERE)}\.(\w+) import", r"from \1 import", text)
    return text.replace("MY_BOT", name)
