"""On a ladder (AI Arena): the arguments with which it starts a bot, and the bot's run folder."""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from understudy.registry.run_folder import holds_run

CHAMPION, DATA, NAME = "champion", "data", "EXPORT"
"""Folders of a bot that was packed for a ladder; a file in the first names the export."""


class LadderArguments(NamedTuple):
    """Where the game of a ladder waits for the bot."""

    port: int
    server: str
    start_port: int | None
    """The first of the ports of a match between two bots; None: against the game's own AI."""
    opponent: str
    """Stable for each opponent; empty: the ladder does not say."""
    realtime: bool

    @property
    def address(self) -> str:
        """Of the game's socket."""
        return f"ws://{self.server}:{self.port}/sc2api"


def ladder_arguments(
    arguments: Sequence[str],
) -> tuple[LadderArguments | None, list[str]]:
    """The arguments of a ladder among `arguments`, and the others; None: no ladder started this.

    Reads `--GamePort`, `--LadderServer`, `--StartPort`, `--OpponentId` and `--RealTime`.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--GamePort", type=int)
    parser.add_argument("--LadderServer", default="127.0.0.1")
    parser.add_argument("--StartPort", type=int)
    parser.add_argument("--OpponentId", default="")
    parser.add_argument("--RealTime", action="store_true")
    found, others = parser.parse_known_args(arguments)
    if found.GamePort is None:
        return None, list(arguments)
    return LadderArguments(
        port=found.GamePort,
        server=found.LadderServer,
        start_port=found.StartPort,
        opponent=found.OpponentId,
        realtime=found.RealTime,
    ), others


def ladder_run(bot: Path) -> Path:
    """The run folder of a bot on a ladder: in `data/`, which a ladder keeps between matches.

    A bot that `understudy export --as ladder` packed has a folder `champion` beside its files. The
    run folder begins as a copy of it, under a name of that export: what an earlier export left in
    `data/` stays beside it, and the two never mix.
    """
    champion = bot / CHAMPION
    if not champion.is_dir():
        return bot / DATA / "run"
    name = (champion / NAME).read_text(encoding="utf-8").strip()
    target = bot / DATA / name
    if not holds_run(target):
        copy = target.with_name(f"{name}.{os.getpid()}.tmp")
        shutil.copytree(champion, copy)
        if target.exists():  # a match that was killed while it copied
            shutil.rmtree(target)
        copy.replace(target)
    return target
