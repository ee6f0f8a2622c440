"""A toy environment that numbers itself, its matches and its decisions, so that a test can tell
what was trained from."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

AGENT = "agent"
_SHARES = 4096
"""Matches that the reward of one tells apart."""


def match_length(number: int) -> int:
    """Decisions in each match of an environment."""
    return 3 + number % 5


def match_reward(number: int, match: int) -> float:
    """The reward of a match, which no other has; exact in floating point."""
    return number + match / _SHARES


class Numbered(ParallelEnv[str, Any, Any]):  # type: ignore[misc]
    """Observes its own number, of all that were ever made, and how many decisions it has seen.

    `folder` has a file for each: its name is the number, and it holds the id of the process. Where
    a file `hold` lies there, the first environment that is made renames it to `held` and is not
    made until that is removed.
    """

    metadata = {"name": "numbered", "render_modes": []}  # noqa: RUF012
    render_mode = None

    def __init__(self, folder: str, seconds: float = 0.002) -> None:
        self.possible_agents = [AGENT]
        self.agents: list[str] = []
        self._seconds = seconds
        with contextlib.suppress(FileNotFoundError):
            held = (Path(folder) / "hold").rename(Path(folder) / "held")
            while held.exists():
                time.sleep(0.01)
        self._number = _claim(Path(folder))
        self._decisions = self._match = self._step = 0

    def observation_space(self, agent: str) -> Any:
        return spaces.Box(0.0, 2.0**24, (2,))

    def action_space(self, agent: str) -> Any:
        return spaces.Discrete(2)

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.agents = [AGENT]
        self._step = 0
        return self._observed(), {AGENT: {}}

    def step(self, actions: dict[str, Any]) -> Any:
        time.sleep(self._seconds)
        self._decisions += 1
        self._step += 1
        over = self._step == match_length(self._number)
        reward = match_reward(self._number, self._match) if over else 0.0
        if over:
            self.agents = []
            self._match += 1
        return self._observed(), {AGENT: reward}, {AGENT: over}, {AGENT: False}, {AGENT: {}}

    def _observed(self) -> dict[str, Any]:
        return {AGENT: np.array([self._number, self._decisions], np.float32)}


def parallel_env(**options: Any) -> Numbered:
    return Numbered(**options)


def _claim(folder: Path) -> int:
    """The next number that no environment of any process has."""
    for number in itertools.count():
        try:
            with (folder / str(number)).open("x", encoding="utf-8") as file:
                file.write(str(os.getpid()))
        except FileExistsError:
            continue
        return number
    raise AssertionError
