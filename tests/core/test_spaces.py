from __future__ import annotations

import msgspec
import pytest

from understudy.core.errors import InputError
from understudy.core.spaces import ActionSpace, Continuous, Discrete, MultiBinary, MultiDiscrete

SPACES: list[tuple[ActionSpace, tuple[int, ...], int]] = [
    (Discrete(("a", "b", "c")), (3,), 3),
    (MultiDiscrete((3, 2, 4)), (3, 2, 4), 9),
    (MultiBinary(("jump", "fire")), (2, 2), 4),
    (MultiBinary(("jump",)), (2,), 2),
    (Continuous(("turn", "push"), (-2.0, None), (2.0, None)), (2, 2), 4),
]


@pytest.mark.parametrize(("space", "parts", "options"), SPACES)
def test_every_space_is_parts_side_by_side(
    space: ActionSpace, parts: tuple[int, ...], options: int
) -> None:
    assert space.parts == parts
    assert space.options == options == sum(parts)


@pytest.mark.parametrize("space", [space for space, _, _ in SPACES])
def test_a_space_is_plain_data_that_says_its_kind(space: ActionSpace) -> None:
    assert msgspec.json.decode(msgspec.json.encode(space), type=ActionSpace) == space
    assert hash(space) == hash(space)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: Discrete(("a",)), "at least 2 names"),
        (lambda: Discrete(("a", "b", "a")), "the name 'a' appears twice"),
        (lambda: Discrete(("a", "")), "a name is empty"),
        (lambda: Discrete(10), r"expected their names, such as \('left', 'right'\), got 10"),  # type: ignore[arg-type]
        (lambda: Discrete("left"), "expected their names.*got 'left'"),  # type: ignore[arg-type]
        (lambda: MultiBinary(4), "switches: expected their names.*got 4"),  # type: ignore[arg-type]
        (lambda: MultiDiscrete(3), r"such as MultiDiscrete\(\(3, 4\)\), got 3"),  # type: ignore[arg-type]
        (lambda: MultiDiscrete(()), "two or more options"),
        (lambda: MultiDiscrete((3, 1)), r"got \(3, 1\)"),
        (lambda: MultiBinary(()), "switches: expected at least 1"),
        (lambda: MultiBinary(("x", "x")), "switches: the name 'x' appears twice"),
        (lambda: Continuous((), (), ()), "numbers: expected at least 1"),
        (lambda: Continuous(("x", "y"), (0.0,), (1.0, 1.0)), "low: expected 2 bounds, got 1"),
        (lambda: Continuous(("x",), (0.0,), (float("inf"),)), "high: expected finite bounds"),
        (lambda: Continuous(("x",), (float("nan"),), (1.0,)), "low: expected finite bounds"),
        (lambda: Continuous(("x",), (1.0,), (1.0,)), "'x' has low 1.0 that is not below 1.0"),
    ],
)
def test_an_impossible_space_is_an_error(make: object, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        make()  # type: ignore[operator]
