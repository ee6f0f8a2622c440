from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from understudy.core.errors import MissingDependency
from understudy.screens.curves import draw
from understudy.telemetry.history import History
from understudy.telemetry.table import Value
from understudy.telemetry.training_rows import BEHAVIOUR, CHECKPOINTS, LEAGUE, REWARDS, TRAINING

BLUE = (0, 114, 178)


def example(intervals: int) -> History:
    history = History()
    add = history.add
    for i in range(1, intervals + 1):
        at: dict[str, Value] = {"steps": 1000 * i, "time_s": float(i)}
        share = i / intervals
        for name in ("based", "random", f"step-{i // 5}"):
            add(BEHAVIOUR, {**at, "opponent": name, "matches": 9, "win_rate": share})
        terms: dict[str, Value] = {f"term_{n}": share - n / 12 for n in range(14)}
        add(REWARDS, {**at, "opponent": "all", "matches": 9, "return": share, **terms})
        numbers = ("value_loss", "policy_loss", "entropy", "kl", "learning_rate", "gradient_norm")
        at["stage"] = f"stage {i // 10}"
        add(TRAINING, {**at, "iterations": 2, **dict.fromkeys(numbers, 0.1 + share)})
        add(LEAGUE, {**at, "event": "rating", "mu": 25 + share, "sigma": 3 - share})
        if i % 5 == 0:
            add(LEAGUE, {**at, "event": "snapshot", "name": f"step-{i}", "kept": 1})
            add(CHECKPOINTS, {**at, "opponent": "held out", "matches": 20, "win_rate": share})
    return history


def pixels(picture: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(picture)) as image:
        return np.asarray(image.convert("RGB"))


def test_every_panel_of_a_picture_has_something_in_it() -> None:
    seen = pixels(draw(example(50), title="brawl-1"))
    height, width, _ = seen.shape
    for row in range(3):
        for column in range(2):
            panel = seen[
                height * row // 3 : height * (row + 1) // 3,
                width * column // 2 : width * (column + 1) // 2,
            ]
            colourful = np.ptp(panel.astype(int), axis=2) > 60
            assert colourful.sum() > 500, f"panel {row}, {column} is empty"
    assert (seen == BLUE).all(2).any()


@pytest.mark.parametrize("intervals", [0, 1])
def test_a_run_that_has_hardly_begun_can_be_drawn(intervals: int) -> None:
    assert pixels(draw(example(intervals), title="brawl-1")).ndim == 3


def test_numbers_that_never_change_can_be_drawn() -> None:
    history = History()
    for i in range(1, 4):
        row: dict[str, Value] = {"steps": i, "time_s": 1.0, "stage": "", "iterations": 1}
        history.add(TRAINING, {**row, "learning_rate": 5e-4, "gradient_norm": 0.0, "kl": 0.0})
    assert pixels(draw(history, title="brawl-1")).ndim == 3


def test_drawing_leaves_no_global_state_of_matplotlib() -> None:
    code = (
        "import sys\n"
        "from understudy.screens.curves import draw\n"
        "from understudy.telemetry.history import History\n"
        "draw(History(), title='x')\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)


def test_without_matplotlib_the_error_has_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependency, match=r'pip install "\.\[plots\]"'):
        draw(History(), title="brawl-1")
