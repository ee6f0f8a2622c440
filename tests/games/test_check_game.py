"""`check_game` passes a sound game and names what is wrong with every broken one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest

from understudy.core import chance
from understudy.core.ops import Array, Ops
from understudy.core.spaces import ActionSpace, Discrete
from understudy.games import catalog
from understudy.testing import check_game

_DRAWS = np.arange(1, dtype=np.uint32)


@pytest.mark.parametrize("difficulty", ["easy", "medium", "hard", "very_hard"])
def test_swarm_conforms(difficulty: str) -> None:
    check_game(catalog.make("swarm", difficulty=difficulty))


class Walk(NamedTuple):
    frame: Array
    place: Array


class Sound:
    """A walk of chance to the right: the smallest game that keeps every promise."""

    name = "walk"
    version = 1
    players = 1
    features: tuple[str, ...] = ("place",)
    actions: ActionSpace = Discrete(("left", "right"))
    max_frames = 9

    def start(self, ops: Ops, seeds: Array) -> Any:
        place = chance.uniform(ops, chance.fold(seeds, 1), _DRAWS)[0]
        return Walk(ops.xp.zeros(seeds.shape, ops.xp.int32), place)

    def step(self, ops: Ops, state: Any, actions: Array) -> Any:
        stride = actions[0, 0].astype(ops.xp.float32) - np.float32(0.4)
        return Walk(state.frame + np.int32(1), state.place + stride)

    def observe(self, ops: Ops, state: Any) -> Array:
        return state.place[None, None]

    def legal(self, ops: Ops, state: Any) -> Array:
        return ops.xp.ones((1, 2, *state.place.shape), ops.xp.bool_)

    def reward(self, ops: Ops, before: Any, after: Any) -> Array:
        return (after.place - before.place)[None]

    def over(self, ops: Ops, state: Any) -> Array:
        return (state.frame >= 5) | (state.place > np.float32(2))

    def score(self, ops: Ops, state: Any) -> Array:
        return (state.place > np.float32(2)).astype(ops.xp.float32)[None]

    def tags(self, state: Any, index: int) -> Mapping[str, str]:
        return {}


class Float64(Sound):
    def step(self, ops: Ops, state: Any, actions: Array) -> Any:
        after = super().step(ops, state, actions)
        return after._replace(place=after.place * np.float64(1.0))


class Impure(Sound):
    def step(self, ops: Ops, state: Any, actions: Array) -> Any:
        if ops.name == "numpy":
            state.place[:] = 0
        return super().step(ops, state, actions)


class Restless(Sound):
    calls = 0

    def step(self, ops: Ops, state: Any, actions: Array) -> Any:
        Restless.calls += 1
        after = super().step(ops, state, actions)
        return after._replace(place=after.place + np.float32(Restless.calls))


class Endless(Sound):
    def over(self, ops: Ops, state: Any) -> Array:
        return state.frame > 99

    def score(self, ops: Ops, state: Any) -> Array:
        return ops.xp.zeros_like(state.place)[None]


class Stuck(Sound):
    def legal(self, ops: Ops, state: Any) -> Array:
        return ops.xp.zeros((1, 2, *state.place.shape), ops.xp.bool_)


class FixedStart(Sound):
    def start(self, ops: Ops, seeds: Array) -> Any:
        return super().start(ops, seeds * np.uint32(0))


class Crowded(Sound):
    def step(self, ops: Ops, state: Any, actions: Array) -> Any:
        after = super().step(ops, state, actions)
        return after._replace(place=after.place + state.place.mean(dtype=np.float32))


class BatchFirst(Sound):
    def observe(self, ops: Ops, state: Any) -> Array:
        return state.place[:, None, None]


class EarlyWinner(Sound):
    def score(self, ops: Ops, state: Any) -> Array:
        return ops.xp.ones_like(state.place)[None]


class TwoEngines(Sound):
    def step(self, ops: Ops, state: Any, actions: Array) -> Any:
        after = super().step(ops, state, actions)
        return after._replace(place=after.place + np.float32(ops.name == "jax"))


def test_a_sound_game_passes() -> None:
    check_game(Sound())


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (Float64(), r"walk: state\.place: expected float32.*got float64 .*xp\.float32"),
        (Impure(), "step: wrote into the state"),
        (Restless(), "step: the same state and actions gave two results"),
        (Endless(), "over: 48 of 48 matches still run after max_frames"),
        (Stuck(), "legal: no option is legal"),
        (Crowded(), r"state\.place depends on the other matches"),
        (BatchFirst(), r"observe: expected shape \(1, 1, 48\)"),
        (EarlyWinner(), "score: a match that is not over has a winner"),
    ],
)
def test_a_broken_game_is_told_what_is_wrong(broken: Sound, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_game(broken, engines=False)


def test_a_game_with_one_fixed_start_passes_with_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    check_game(FixedStart(), engines=False)
    note = capsys.readouterr().err
    assert note.startswith("understudy: walk: start: all seeds gave the same state.")
    assert "right for a game with one fixed start" in note and note.count("\n") == 1
    check_game(Sound(), engines=False)
    assert capsys.readouterr().err == ""


def test_a_game_that_differs_between_engines_is_caught() -> None:
    pytest.importorskip("jax")
    with pytest.raises(AssertionError, match="NumPy and JAX differ in 100%"):
        check_game(TwoEngines())
