"""Iterations of the arena: they learn, and they can be repeated."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.arena.arena import Arena, check
from understudy.core.config import with_values
from understudy.core.errors import ConfigError
from understudy.games import catalog
from understudy.learner.trainer import Trainer

from .makers import CONFIG, GAME, GAMES, SEGMENT, arena, spec_of

ITERATIONS = 3


def trained(seed: int = 0) -> tuple[Arena, list[dict[str, float]]]:
    one = arena(seed=seed)
    return one, [one.iterate().metrics for _ in range(ITERATIONS)]


@pytest.fixture(scope="module")
def first() -> tuple[Arena, list[dict[str, float]]]:
    return trained()


def test_an_iteration_learns_and_says_how(first: tuple[Arena, list[dict[str, float]]]) -> None:
    one, metrics = first
    assert one.steps_an_iteration == GAMES * SEGMENT
    before, after = Trainer(spec_of(), CONFIG.learner).weights(), one.trainer.weights()
    moved = {n: np.abs(after.params[n] - before.params[n]).max() for n in before.params}
    assert all(change > 0 for change in moved.values()), moved
    for each in metrics:
        assert each["behaviour_kl_max"] < 5e-9, "every ratio is 1 within 1e-4"
        assert each["gradient_steps"] == CONFIG.learner.epochs * CONFIG.learner.minibatches
        assert 0.0 < each["opponent_loss"] < 2.0 and each["kl"] >= 0.0
        assert 0.0 < each["recognition_loss"] < 1.2, "naming one of three at random is ln 3"


def test_the_same_seed_learns_the_same_bits(
    first: tuple[Arena, list[dict[str, float]]],
) -> None:
    again, metrics = trained()
    assert metrics == first[1]
    assert again.trainer.snapshot() == first[0].trainer.snapshot()
    other, others = trained(seed=1)
    assert others != metrics and other.trainer.snapshot() != again.trainer.snapshot()


def test_a_trainer_goes_on_in_another_arena_as_if_nothing_had_happened() -> None:
    """Everything but the matches in flight: those begin anew in both."""
    one = arena()
    one.iterate()
    kept = one.trainer.snapshot()
    copies = [arena(seed=7), arena(seed=7)]
    for copy in copies:
        copy.trainer.restore(kept, what="version 1")
    assert copies[0].trainer.snapshot() == kept
    results = [copy.iterate() for copy in copies]
    assert results[0] == results[1]
    assert copies[0].trainer.snapshot() == copies[1].trainer.snapshot() != kept


def test_an_arena_that_cannot_be_names_the_setting() -> None:
    threes = with_values(CONFIG, {"train.groups": 3})
    with pytest.raises(ConfigError, match=r"train\.games: .*multiple of train\.groups \(3\)"):
        check(GAME, threes, meets_itself=True)
    check(GAME, threes, meets_itself=False)  # groups are of no account where nobody meets himself
    with pytest.raises(ConfigError, match=r"multiple of learner\.minibatches \(5\)"):
        check(GAME, with_values(CONFIG, {"learner.minibatches": 5}), meets_itself=False)
    with pytest.raises(ConfigError, match="swarm has one player, who cannot meet itself"):
        check(catalog.make("swarm"), CONFIG, meets_itself=True)
