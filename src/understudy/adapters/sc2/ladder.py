"""The arguments with which a ladder (AI Arena) starts a bot."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple


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
