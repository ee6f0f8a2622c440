"""The example of docs/bring-your-own-bot.md: its game leaves something to learn."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

DOC = Path(__file__).parents[2] / "docs" / "bring-your-own-bot.md"
NIGHTS = 400


class Player:
    """Stands where a match of `Understudy` stands, and plays by hand."""

    def __init__(self, act: Callable[[list[float], str], str]) -> None:
        self.act = act

    def decide(self, seen: list[float], *, fallback: str, legal: list[bool]) -> str:
        return self.act(seen, fallback)

    def reward(self, amount: float) -> None:
        pass


def test_the_rules_of_the_example_can_be_beaten() -> None:
    """The last one's could not: whatever was learned ended below them."""
    text = DOC.read_text(encoding="utf-8").split("## A whole bot")[1]
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    example: dict[str, Any] = {}
    exec(compile(code.split("\nfor mode, ")[0], str(DOC), "exec"), example)

    def share(act: Callable[[list[float], str], str]) -> float:
        random.seed(1)
        won = [example["play"](Player(act)) == "victory" for _ in range(NIGHTS)]
        return won.count(True) / NIGHTS

    rules = share(lambda seen, fallback: fallback)
    sheltered = share(lambda seen, fallback: "shelter" if seen[2] > 0.5 else fallback)
    assert 0.5 < rules < 0.8 and sheltered > 0.9
