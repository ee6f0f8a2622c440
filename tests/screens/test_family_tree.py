"""The picture of a lineage: drawn for every population there can be, and it shows what happened."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

from understudy.core.arrays import NDArray
from understudy.core.errors import MissingDependency
from understudy.league.lineage import Lineage, LineageRow, Settings
from understudy.screens.family_tree import draw

FIRST = (Settings(1e-3, 0.0), Settings(2e-3, 0.0, 2.0), Settings(5e-4, 0.0))


def lineage(parents: tuple[tuple[int, ...], ...]) -> Lineage:
    made = Lineage(first=FIRST)
    for number, round_ in enumerate(parents, start=1):
        rows = [
            LineageRow(
                round=number,
                steps=number * 1000,
                agent=agent,
                parent=parent,
                fitness=None if agent == 3 else 0.1 * agent + 0.1 * number,
                parent_fitness=0.5,
                before=made.settings[agent - 1],
                after=made.settings[parent - 1],
                why="",
            )
            for agent, parent in enumerate(round_, start=1)
        ]
        made = made.after(rows)
    return made


def pixels(png: bytes) -> NDArray:
    from matplotlib.image import imread

    return np.asarray(imread(io.BytesIO(png), format="png"))


def picture(one: Lineage, *, best: int = 1) -> NDArray:
    return pixels(draw(one, (0.5, 0.6, None), best=best, steps=3500, title="x"))


def test_it_is_drawn_before_the_first_round_and_after_many() -> None:
    fresh = pixels(draw(Lineage(first=FIRST), (None,) * 3, best=1, steps=0, title="x"))
    many = picture(lineage(((1, 2, 3),) * 3))
    assert fresh.shape == many.shape and not np.array_equal(fresh, many)


def test_a_copy_and_the_line_of_the_best_are_seen() -> None:
    stays, copied = lineage(((1, 2, 3), (1, 2, 3))), lineage(((1, 2, 3), (1, 2, 2)))
    assert not np.array_equal(picture(stays), picture(copied))
    assert not np.array_equal(picture(copied, best=1), picture(copied, best=3))
    assert np.array_equal(picture(copied), picture(copied))


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependency, match=r'pip install "\.\[plots\]"'):
        draw(Lineage(first=FIRST), (None,) * 3, best=1, steps=0, title="x")
