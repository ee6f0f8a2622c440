from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from understudy.adapters.gymnasium.spaces import SpaceTranslator
from understudy.core.errors import ConfigError, InputError
from understudy.core.spaces import Continuous, Discrete, MultiBinary, MultiDiscrete

PLAIN = spaces.Box(-1.0, 1.0, (2,), np.float32)
TWO = spaces.Discrete(2)
NESTED = spaces.Dict(
    {
        "speed": spaces.Box(-9.0, 9.0, (2,), np.float64),
        "gear": spaces.Discrete(3, start=1),
        "lamps": spaces.MultiBinary(2),
        "dials": spaces.MultiDiscrete([2, 3]),
        "rest": spaces.Tuple((spaces.Box(0.0, 1.0, ()), spaces.Box(0.0, 1.0, (2, 2)))),
    }
)


def test_nested_observations_become_named_numbers() -> None:
    seam = SpaceTranslator(NESTED, TWO)
    seen = seam.features_of(
        {
            "speed": np.array([1.5, -2.5]),
            "gear": 2,
            "lamps": np.array([0, 1], np.int8),
            "dials": np.array([1, 0]),
            "rest": (np.float32(0.25), np.array([[0.1, 0.2], [0.3, 0.4]], np.float32)),
        }
    )
    assert seen.dtype == np.float32
    assert dict(zip(seam.features, seen.tolist(), strict=True)) == pytest.approx(
        {
            "speed.0": 1.5,
            "speed.1": -2.5,
            "gear=1": 0,
            "gear=2": 1,
            "gear=3": 0,
            "lamps.0": 0,
            "lamps.1": 1,
            "dials.0=0": 0,
            "dials.0=1": 1,
            "dials.1=0": 1,
            "dials.1=1": 0,
            "dials.1=2": 0,
            "rest.0": 0.25,
            "rest.1.0.0": 0.1,
            "rest.1.0.1": 0.2,
            "rest.1.1.0": 0.3,
            "rest.1.1.1": 0.4,
        }
    )
    assert SpaceTranslator(PLAIN, TWO).features == ("observation.0", "observation.1")
    assert SpaceTranslator(spaces.Discrete(2), TWO).features == ("observation=0", "observation=1")


def test_a_sample_of_every_space_fills_every_feature() -> None:
    seam = SpaceTranslator(NESTED, TWO)
    NESTED.seed(0)
    for _ in range(5):
        assert seam.features_of(NESTED.sample()).shape == (len(seam.features),)


@pytest.mark.parametrize(
    ("space", "ours", "drawn", "expected"),
    [
        (spaces.Discrete(3, start=4), Discrete(("4", "5", "6")), [2], 6),
        (spaces.MultiDiscrete([3, 2], start=[1, 0]), MultiDiscrete((3, 2)), [0, 1], [1, 1]),
        (spaces.MultiDiscrete(np.array([[2, 3], [4, 5]])), MultiDiscrete((2, 3, 4, 5)),
         [1, 2, 3, 4], [[1, 2], [3, 4]]),
        (spaces.MultiBinary(3), MultiBinary(("0", "1", "2")), [1, 0, 1], [1, 0, 1]),
        (spaces.MultiBinary((2, 1)), MultiBinary(("0", "1")), [1, 0], [[1], [0]]),
        (spaces.Box(0.0, 10.0, (2,)), Continuous(("0", "1"), (0.0, 0.0), (10.0, 10.0)),
         [0.0, 3.0], [5.0, 10.0]),
        (spaces.Box(-np.inf, 1.0, (1, 1), np.float64), Continuous(("0",), (None,), (1.0,)),
         [-40.0], [[-40.0]]),
    ],
)  # fmt: skip
def test_actions_go_both_ways(space: Any, ours: Any, drawn: list[float], expected: Any) -> None:
    seam = SpaceTranslator(PLAIN, space)
    assert seam.actions == ours
    kind = np.float32 if isinstance(ours, Continuous) else np.int32
    action = seam.action_of(np.array(drawn, kind))
    np.testing.assert_array_equal(action, expected)
    assert space.contains(action)


@pytest.mark.parametrize(
    ("space", "mask", "expected"),
    [
        (spaces.Discrete(3), np.array([1, 0, 1], np.int8), [1, 0, 1]),
        (
            spaces.MultiDiscrete([2, 3]),
            (np.array([1, 0], np.int8), np.array([0, 1, 1], np.int8)),
            [1, 0, 0, 1, 1],
        ),
        (spaces.MultiDiscrete([2, 3]), np.array([1, 0, 0, 1, 1], np.int8), [1, 0, 0, 1, 1]),
        (spaces.MultiBinary(3), np.array([0, 1, 2], np.int8), [1, 0, 0, 1, 1, 1]),
    ],
)
def test_masks_are_read_as_gymnasium_writes_them(space: Any, mask: Any, expected: Any) -> None:
    seam = SpaceTranslator(PLAIN, space)
    legal = seam.legal_of({"action_mask": mask})
    assert legal is not None
    assert legal.dtype == np.bool_
    assert legal.tolist() == [bool(flag) for flag in expected]
    assert seam.legal_of({}) is None
    assert seam.legal_of(None) is None
    with pytest.raises(InputError, match="action_mask: expected"):
        seam.legal_of({"action_mask": np.ones(17, np.int8)})


@pytest.mark.parametrize(
    ("space", "mask", "part"),
    [
        (spaces.Discrete(3), [0, 0, 0], "part 0 of 1"),
        (spaces.MultiDiscrete([2, 3, 2]), [0, 1, 0, 0, 0, 1, 1], "part 1 of 3"),
        (spaces.MultiDiscrete([2, 3]), (np.array([1, 1]), np.zeros(3)), "part 1 of 2"),
        (spaces.MultiBinary(2), [1, 0, 0, 0], "part 1 of 2"),
    ],
)
def test_a_part_without_a_legal_option_is_named(space: Any, mask: Any, part: str) -> None:
    mask = mask if isinstance(mask, tuple) else np.array(mask, np.int8)
    with pytest.raises(InputError, match=f"action_mask: {part} has no legal option"):
        SpaceTranslator(PLAIN, space).legal_of({"action_mask": mask})


@pytest.mark.parametrize(
    ("observed", "chosen", "expected"),
    [
        (spaces.Box(0, 255, (84, 84, 3), np.uint8), TWO, "looks like an image"),
        (spaces.Dict({"eye": spaces.Box(0, 255, (8, 8), np.uint8)}), TWO, "eye: .* an image"),
        (spaces.Text(5), TWO, "does not become numbers"),
        (PLAIN, spaces.Discrete(1), "actions: .*at least 2 names"),
        (PLAIN, spaces.MultiDiscrete([2, 1]), "actions: .*two or more options"),
        (PLAIN, spaces.Box(0, 5, (2,), np.int64), "a Box of real numbers"),
        (PLAIN, spaces.Tuple((TWO, TWO)), "expected Discrete, MultiDiscrete"),
    ],
)
def test_what_does_not_fit_is_named(observed: Any, chosen: Any, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        SpaceTranslator(observed, chosen)
