"""Populations: one program, and every agent learns what it would have learned alone."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from understudy.arena import population as populations
from understudy.arena.arena import Arena
from understudy.arena.population import Member, Population
from understudy.arena.results import Iteration
from understudy.core.config import with_values
from understudy.core.errors import NotFinite
from understudy.learner.trainer import Trainer

from .makers import BOTS, CONFIG, GAME, MEASURES, MIX, REWARDS, WEIGHTS, mix_of, spec_of

SETTINGS = ((5e-4, 0.02, 1.0), (1e-4, 0.1, 2.0), (7e-4, 0.0, 0.5))
"""Learning rate, entropy bonus and what the rewards are multiplied by, of each agent."""


def agent(kind: type[Arena], index: int, mix: str = MIX) -> Arena:
    config = with_values(CONFIG, {"learner.seed": 10 + index})
    parsed = mix_of(mix)
    trainer = Trainer(spec_of(), config.learner)
    rate, entropy, scale = SETTINGS[index]
    trainer.learning_rate, trainer.entropy_weight = rate, entropy
    made = kind(
        trainer,
        CONFIG,
        GAME,
        {name: BOTS[name] for name in parsed.scripted},
        meets_itself=parsed.meets_itself,
        rewards=REWARDS,
        measures=MEASURES,
        seed=100 + index,
    )
    made.order(parsed, WEIGHTS * np.float32(scale))
    return made


def members() -> list[Member]:
    made = [agent(Member, index) for index in range(len(SETTINGS))]
    return [one for one in made if isinstance(one, Member)]


def meet_a_rival(arena: Arena, iteration: int) -> None:
    """Everyone meets what it was after the first iteration, in both groups."""
    if iteration == 1:
        params = arena.trainer.weights().params
        for group in range(arena.plan.groups):
            arena.snapshots.offer(group, "step-256", lambda: params)


def test_agents_learn_what_each_would_have_learned_alone() -> None:
    together, alone = Population(members()), [agent(Arena, index) for index in range(len(SETTINGS))]
    for iteration in range(4):
        for arena in (*together.members, *alone):
            meet_a_rival(arena, iteration)
        found = together.iterate()
        for ours, one in zip(found, alone, strict=True):
            theirs = one.iterate()
            assert isinstance(ours, Iteration)
            assert ours.metrics == pytest.approx(theirs.metrics, rel=1e-3, abs=1e-4)
            assert ours.results.keys() == theirs.results.keys()
            assert {k: r.matches for k, r in ours.results.items()} == {
                k: r.matches for k, r in theirs.results.items()
            }
    for ours_, theirs_ in zip(together.members, alone, strict=True):
        assert ours_.snapshots.met == theirs_.snapshots.met == ["step-256"] * 2
        mine, expected = ours_.trainer.weights(), theirs_.trainer.weights()
        for name, value in expected.params.items():
            np.testing.assert_allclose(mine.params[name], value, atol=2e-5, err_msg=name)
    moved = [member.trainer.weights().params["value.w"] for member in together.members]
    assert not np.allclose(moved[0], moved[1]) and not np.allclose(moved[0], moved[2])
    program = populations._program(together.members[0].plan, None)
    assert program._cache_size() == 1, "compiled more than once"  # type: ignore[attr-defined]


def test_an_agent_whose_numbers_break_stays_as_it_was_and_the_others_learn() -> None:
    population = Population(members())
    broken = population.members[1].trainer
    before = broken.snapshot()
    broken.learning_rate = float("nan")
    found = population.iterate()
    assert [isinstance(one, NotFinite) for one in found] == [False, True, False]
    broken.learning_rate = SETTINGS[1][0]
    assert broken.snapshot() == {**before, "learner.npz": broken.snapshot()["learner.npz"]}
    assert all(isinstance(one, Iteration) for one in population.iterate())


def test_a_member_that_is_restarted_begins_new_matches_and_no_other_does() -> None:
    population = Population(members())
    for _ in range(3):
        population.iterate()
    before = jax.device_get(population._columns)
    population.members[2].restart(7)
    begun = population._begun([member.inputs() for member in population.members])
    assert (begun.started[2] == 1).all() and (begun.frame[2] == 0).all()
    np.testing.assert_array_equal(begun.seeds[:2], before.seeds[:2])
    assert (np.asarray(begun.seeds[2]) != before.seeds[2]).all()


def test_members_are_of_one_plan() -> None:
    other = agent(Member, 0, "rest=1,pull=1,moody=1")
    assert isinstance(other, Member)
    with pytest.raises(ValueError, match="one plan"):
        Population([*members(), other])
    with pytest.raises(ValueError, match="with the others"):
        other.iterate()
