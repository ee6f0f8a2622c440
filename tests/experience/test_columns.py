from __future__ import annotations

import numpy as np
import pytest

from understudy.core.errors import InputError
from understudy.experience.slots import SlotColumns


def columns() -> SlotColumns:
    return SlotColumns(
        4, {"seen": ((2,), np.float32), "won": ((), np.bool_), "at": ((), np.float64)}
    )  # a byte between them: rows are aligned all the same


def rows(*numbers: float) -> dict[str, np.ndarray]:
    at = np.array(numbers)
    return {"seen": np.stack([at, -at], 1).astype(np.float32), "won": at > 1, "at": at}


def test_what_is_put_in_a_slot_is_taken_from_it() -> None:
    held = columns()
    held.put(np.array([3, 0]), rows(1.0, 2.0))
    taken = held.take(np.array([0, 3, 0, 1]))
    assert taken["seen"].tolist() == [[2, -2], [1, -1], [2, -2], [0, 0]]
    assert taken["won"].tolist() == [True, False, True, False]
    assert taken["at"].tolist() == [2, 1, 2, 0]
    assert taken["seen"].dtype == np.float32
    assert taken["at"].flags.aligned


def test_a_batch_is_a_copy() -> None:
    held = columns()
    held.put(np.array([0]), rows(1.0))
    held.take(np.array([0]))["at"][:] = 9.0
    assert held.take(np.array([0]))["at"].tolist() == [1.0]


def test_what_was_never_held_is_not_written() -> None:
    held = columns()
    held.put(np.array([-1, 2]), rows(5.0, 6.0))
    assert held.take(np.arange(4))["at"].tolist() == [0, 0, 6, 0]


def test_nothing_can_be_put_and_taken() -> None:
    held = columns()
    held.put(np.zeros(0, np.intp), rows())
    assert held.take(np.zeros(0, np.intp))["seen"].shape == (0, 2)


def test_wrong_columns_and_shapes_are_named() -> None:
    with pytest.raises(InputError, match=r"expected \['at', 'seen', 'won'\], got \['at'\]"):
        columns().put(np.array([0]), {"at": np.zeros(1)})
    with pytest.raises(InputError, match=r"column 'seen': expected shape \(1, 2\), got \(1, 3\)"):
        columns().put(np.array([0]), {**rows(1.0), "seen": np.zeros((1, 3))})
    with pytest.raises(IndexError):
        columns().take(np.array([4]))


def test_bytes_of_a_row_are_known() -> None:
    assert columns().row_nbytes == 24
    assert columns().nbytes == 96
