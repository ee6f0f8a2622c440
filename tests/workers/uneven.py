"""A toy game that is slow in one process of several: the first that makes it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from training.environments.contest import Contest


class Uneven(Contest):
    """`slow` is a file that names the slow process."""

    def __init__(self, slow: str, seconds: float = 0.02) -> None:
        super().__init__()
        try:
            with Path(slow).open("x", encoding="utf-8") as file:
                file.write(str(os.getpid()))
            self._seconds = seconds
        except FileExistsError:
            here = Path(slow).read_text(encoding="utf-8") == str(os.getpid())
            self._seconds = seconds if here else 0.0

    def step(self, actions: dict[str, Any]) -> Any:
        time.sleep(self._seconds)
        return super().step(actions)


def parallel_env(**options: Any) -> Uneven:
    return Uneven(**options)
