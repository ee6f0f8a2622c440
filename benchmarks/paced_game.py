"""CartPole that takes as long for a frame as a real game: the environment of `ray_workers.py`."""

from __future__ import annotations

import math
import time
from typing import Any

import gymnasium
import numpy as np

from understudy.core.arrays import NDArray


class Paced(gymnasium.Wrapper[NDArray, int, NDArray, int]):
    """`frames_s` frames a second. `busy`: the core computes all the while, as in a simulator; else
    it sleeps, as while a game in another process or on another machine plays on. `spread`: matches
    take exp(N(0, spread)) times as long."""

    def __init__(self, frames_s: float = 1600.0, busy: bool = False, spread: float = 0.0) -> None:
        super().__init__(gymnasium.make("CartPole-v1", disable_env_checker=True))
        self._frame_s = 1.0 / frames_s
        self._busy = busy
        self._spread = spread
        self._factor = 1.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray, dict[str, Any]]:
        seen = self.env.reset(seed=seed, options=options)
        rng: np.random.Generator = self.env.unwrapped.np_random
        self._factor = math.exp(self._spread * float(rng.normal())) if self._spread else 1.0
        return seen

    def step(self, action: int) -> tuple[NDArray, Any, bool, bool, dict[str, Any]]:
        until = time.perf_counter() + self._frame_s * self._factor
        result = self.env.step(action)
        if self._busy:
            while time.perf_counter() < until:
                pass
        else:
            time.sleep(max(until - time.perf_counter(), 0.0))
        return result


gymnasium.register("Paced-v0", entry_point=f"{__name__}:Paced")
