from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from match.tug import Tug
from policy.makers import MLP, TRANSFORMER, lively_policy
from training.environments.contest import ROUNDS, Contest
from training.environments.toys import Countdown, Echo, Mirror

from understudy.adapters.environments.factory import Alone, maker
from understudy.adapters.environments.matches import (
    EnvironmentMatches,
    FrozenMatch,
    by_rounds,
    play_matches,
)
from understudy.adapters.environments.parallel import Environments, Finished
from understudy.adapters.environments.sides import PolicySide, RandomSide
from understudy.adapters.gymnasium.spaces import SpaceTranslator
from understudy.adapters.pettingzoo import env
from understudy.core.arrays import NDArray
from understudy.core.errors import ConfigError, InputError
from understudy.core.ops import NUMPY
from understudy.policy import distributions
from understudy.policy.policy import Policy
from understudy.policy.spec import AnyNetwork, PolicySpec
from understudy.policy.weights import normalise
from understudy.training.environments.session import zero_sum
from understudy.workers.rollout import (
    OpponentOrder,
    Played,
    SharedRollout,
    SideRollout,
)

GAMMA = 0.9


def seeds(count: int, start: int = 0) -> NDArray:
    return np.arange(start, start + count, dtype=np.uint32)


def opened(
    make: Callable[[], Any], count: int, network: AnyNetwork = MLP
) -> tuple[Environments, Policy]:
    environments = Environments(make, count, seeds(count))
    spec = PolicySpec(environments.spaces.features, environments.spaces.actions, network)
    return environments, lively_policy(spec, 3)


def played(environments: Environments, policy: Policy, steps: int) -> Any:
    rollout = SharedRollout(environments, seed=0)
    return segments_of(rollout.play(policy, steps, gamma=GAMMA))


def segments_of(played: Played | None) -> Any:
    assert played is not None
    return SimpleNamespace(**played.arrays, memory=played.memory, finished=played.finished)


@pytest.mark.parametrize("network", [MLP, TRANSFORMER], ids=["mlp", "transformer"])
@pytest.mark.parametrize("kind", ["discrete", "multi_binary", "continuous"])
def test_what_was_recorded_can_be_recomputed(network: AnyNetwork, kind: str) -> None:
    environments, policy = opened(lambda: Alone(Mirror(kind)), 3, network)
    rollout = SharedRollout(environments, seed=0)
    for _ in range(2):  # the second one begins in the middle of matches
        segments = segments_of(rollout.play(policy, 11, gamma=GAMMA))
        logits, values, _ = network.unroll(
            NUMPY,
            policy.weights.params,
            normalise(NUMPY, policy.weights, segments.obs),
            segments.first,
            segments.memory,
        )
        log_probs = distributions.log_prob(
            NUMPY, policy.spec.actions, logits, segments.actions, segments.legal
        )
        np.testing.assert_allclose(log_probs, segments.log_probs, atol=1e-4)
        np.testing.assert_allclose(values, segments.values, atol=1e-4)
        assert {segments.obs.dtype, segments.rewards.dtype} == {np.dtype(np.float32)}


def test_a_time_limit_is_worth_what_might_have_come_and_an_end_is_not() -> None:
    environments, policy = opened(lambda: Alone(Countdown(after=4)), 6)
    segments = played(environments, policy, 40)
    ended = segments.ongoing == 0.0
    cut = ended & (segments.actions[..., 0] == 0)
    assert cut.any() and (ended & ~cut).any()
    beyond = policy.act(np.array([[4.0]], np.float32), ()).values[0]
    np.testing.assert_allclose(segments.rewards[cut], 1.0 + GAMMA * beyond, rtol=1e-5)
    assert (segments.rewards[~cut] == 1.0).all()
    np.testing.assert_array_equal(segments.first[1:], ended[:-1])
    assert (segments.obs[segments.first] == 0.0).all()
    assert (segments.valid == 1.0).all()


def test_the_value_of_what_follows_is_that_of_the_next_observation() -> None:
    environments, policy = opened(lambda: Alone(Countdown()), 4)
    segments = played(environments, policy, 7)
    now = environments.moment()
    expected = policy.act(now.obs, ()).values / policy.weights.value_scale
    np.testing.assert_allclose(segments.bootstrap, expected)


def test_masks_are_obeyed() -> None:
    environments, policy = opened(lambda: Alone(Countdown(after=50)), 8)
    segments = played(environments, policy, 60)
    early = segments.obs[..., 0] < 2
    assert not segments.legal[early][:, 1].any()
    assert (segments.actions[early] == 0).all()
    assert (segments.actions[~early] == 1).any()


@pytest.mark.parametrize("mask_in", ["observation", "info"])
def test_a_mask_is_obeyed_wherever_it_is_and_may_be_empty_at_the_end(mask_in: str) -> None:
    environments, policy = opened(lambda: Contest(mask_in), 4)
    assert environments.spaces.features == ("observation",)
    segments = played(environments, policy, 3 * ROUNDS)  # the toy asserts that actions are legal
    assert (segments.legal.sum(-1) == 2).all()
    assert len(segments.finished) == 3 * 4


class Finite(Tug):
    """Nothing is legal when the rope is at its end, as in games that list the moves of a board."""

    max_frames = 3

    def legal(self, ops: Any, state: Any) -> Any:
        return super().legal(ops, state) & ~self.over(ops, state)


def test_our_own_parallel_environments_may_end_without_a_legal_option() -> None:
    environments, policy = opened(lambda: env.parallel_env(Finite()), 2)
    segments = played(environments, policy, 30)
    assert segments.legal.any(-1).all()
    assert segments.finished


def test_a_run_that_was_made_with_the_mask_among_its_features_goes_on_with_them() -> None:
    space = Contest().observation_space("left")
    flags = tuple(f"action_mask.{option}" for option in range(3))
    old = SpaceTranslator(space, Contest().action_space("left"), features=("observation", *flags))
    assert sorted(old.features) == sorted(("observation", *flags))
    seen = {"observation": np.ones(1, np.float32), "action_mask": np.array([1, 0, 1], np.int8)}
    named = dict(zip(old.features, old.features_of(seen).tolist(), strict=True))
    assert named == {"observation": 1.0, "action_mask.0": 1, "action_mask.1": 0, "action_mask.2": 1}
    legal = old.legal_of({}, seen)
    assert legal is not None and legal.tolist() == [True, False, True]


def test_an_agent_that_is_out_is_not_learned_from_until_it_is_back() -> None:
    environments, policy = opened(Echo, 2)
    assert environments.agents == ("left", "right")
    assert environments.columns == 4
    segments = played(environments, policy, 8)
    np.testing.assert_array_equal(segments.valid[:, 0], np.ones(8))
    np.testing.assert_array_equal(segments.valid[:, 1], [1, 1, 0, 0, 1, 1, 0, 0])
    np.testing.assert_array_equal(segments.ongoing[:, 0], [1, 1, 1, 0, 1, 1, 1, 0])
    np.testing.assert_array_equal(segments.ongoing[:, 1], [1, 0, 0, 0, 1, 0, 0, 0])
    np.testing.assert_array_equal(np.flatnonzero(segments.first[:, 1]), [0, 4])
    right = (segments.obs[..., 0] > 0) == (segments.actions[..., 0] == 1)
    alive = segments.valid > 0
    np.testing.assert_array_equal(segments.rewards[alive], right[alive])
    assert [one.number for one in segments.finished] == [0, 1, 0, 1]
    first = segments.finished[0].finished
    assert first.steps == 4
    assert first.reward == segments.rewards[:4, :2].sum() / 2


def test_the_same_seeds_give_the_same_segment() -> None:
    one, two, other = (
        played(*opened(lambda: Alone(Mirror("multi_discrete")), 3), 20),
        played(*opened(lambda: Alone(Mirror("multi_discrete")), 3), 20),
        played(
            Environments(lambda: Alone(Mirror("multi_discrete")), 3, seeds(3, 9)),
            opened(lambda: Alone(Mirror("multi_discrete")), 3)[1],
            20,
        ),
    )
    np.testing.assert_array_equal(one.obs, two.obs)
    np.testing.assert_array_equal(one.actions, two.actions)
    assert not np.array_equal(one.obs[0], other.obs[0])


def test_stopping_gives_no_half_segment() -> None:
    environments, policy = opened(lambda: Alone(Mirror("discrete")), 2)
    asked = iter([False, False, True])
    rollout = SharedRollout(environments, seed=0)
    assert rollout.play(policy, 9, gamma=GAMMA, stop=lambda: next(asked)) is None


@pytest.mark.parametrize(("noise_steps", "found"), [(1, False), (16, True)])
def test_draws_that_are_kept_reach_a_goal_that_others_never_do(
    noise_steps: int, found: bool
) -> None:
    """An undecided policy in MountainCar, one match in each of 32 environments."""
    environments, policy = opened(maker("gymnasium:MountainCar-v0"), 32)
    nought = {name: np.zeros_like(value) for name, value in policy.weights.params.items()}
    undecided = Policy(policy.spec, replace(policy.weights, params=nought), 0)
    rollout = SharedRollout(environments, seed=0, noise_steps=noise_steps)
    segments = segments_of(rollout.play(undecided, 200, gamma=GAMMA))
    matches = [one.finished for one in segments.finished]
    assert any(match.reward > -200.0 for match in matches) == found
    assert all(match.alike for match in matches) == (not found)
    # Every action keeps its probability; successive ones are the same by more than chance.
    actions = segments.actions[..., 0]
    np.testing.assert_allclose(segments.log_probs, np.log(1 / 3), rtol=1e-5)
    np.testing.assert_allclose(np.bincount(actions.ravel()) / actions.size, 1 / 3, atol=0.05)
    kept = 1.0 - 1.0 / noise_steps
    assert np.mean(actions[1:] == actions[:-1]) == pytest.approx(kept + (1 - kept) / 3, abs=0.02)


def test_a_match_of_several_agents_is_alike_only_if_it_is_for_each_of_them() -> None:
    """The sum of both is 0 in every match."""

    class ZeroSum(Echo):
        def step(self, actions: dict[str, Any]) -> Any:
            obs, _, ended, cut, infos = super().step(actions)
            gain = float(self._steps == 1 and self._rng.random() < 0.5)
            rewards = {agent: gain if agent == "left" else -gain for agent in ended}
            return obs, rewards, cut, ended, infos  # every end is a time limit

    environments, policy = opened(ZeroSum, 8)
    matches = [one.finished for one in played(environments, policy, 8).finished]
    assert {match.reward for match in matches} == {0.0}
    assert {match.alike for match in matches} == {True, False}


def frozen(
    make: Callable[[], Any],
    count: int,
    matches: int,
    params: dict[str, NDArray] | None = None,
    *,
    sampled: bool,
    alone: bool = False,
) -> list[FrozenMatch]:
    """Matches of a policy that knows nothing, but for these parameters, with itself or against a
    random player."""
    environments = EnvironmentMatches(make, range(count))
    spec = PolicySpec(environments.spaces.features, environments.spaces.actions, MLP)
    weights = lively_policy(spec, 3).weights
    nought = {name: np.zeros_like(value) for name, value in weights.params.items()}
    policy = Policy(spec, replace(weights, params=nought | (params or {})), 0)
    rows = environments.rows
    player = PolicySide(policy, environments.spaces, rows=rows, seed=1, sampled=sampled)
    other = player if alone else RandomSide(environments.spaces, rows=rows, seed=2)
    each = -(-matches // count)
    played = play_matches(environments, player, other, each, seeds=seeds(count))
    return by_rounds(played)[:matches]


def test_every_environment_is_judged_equally_often() -> None:
    # One environment's matches are 2 steps long, the others' 40: by the first 9 to end, nearly all
    # would be short ones.
    lengths = iter([2, 40, 40])
    matches = frozen(lambda: Alone(Countdown(after=next(lengths))), 3, 9, sampled=False, alone=True)
    assert sorted(match.finished.steps for match in matches) == [2, 2, 2] + [40] * 6
    assert all(match.finished.reward == match.finished.steps for match in matches)


class Tilted(Contest):
    """The left side wins, whatever is played."""

    def step(self, actions: dict[str, Any]) -> Any:
        obs, rewards, *rest = super().step(actions)
        return obs, {agent: 1.0 if agent == "left" else -1.0 for agent in rewards}, *rest


def test_sides_change_with_every_match() -> None:
    scores = [match.score for match in frozen(Tilted, 3, 12, sampled=True)]
    assert scores == [1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1]


def test_the_policy_is_the_one_whose_wins_are_counted() -> None:
    # Action 2 is never right: a player that takes it wherever it is legal loses.
    wrong = {"policy.b": np.array([0.0, 0.0, 50.0], np.float32)}
    scores = [match.score for match in frozen(Contest, 4, 40, wrong, sampled=True)]
    assert len(scores) == 40 and scores.count(-1) > 2 * scores.count(1)


def wrong(observation: Any, legal: NDArray, rng: np.random.Generator) -> int:
    """A scripted bot of the contest."""
    return 2 if legal[2] else int(observation["observation"][0] < 0)


class AgainstWrong(Contest):
    """One side of the contest, `wrong` inside it on the other; the side changes with every match,
    beginning with that of the environment's number."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._side = number % 2
        self._sides = self.possible_agents
        self.possible_agents = ["learner"]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        self.possible_agents = self._sides
        self._seen, infos = super().reset(seed, options)
        self.possible_agents, self.agents = ["learner"], ["learner"]
        return self._own(self._seen), self._own(infos)

    def step(self, actions: dict[str, Any]) -> Any:
        own, other = self._sides[self._side], self._sides[1 - self._side]
        seen = self._seen[other]
        self.agents = self._sides
        chosen = {own: actions["learner"], other: wrong(seen, seen["action_mask"], self._rng)}
        self._seen, *rest = super().step({side: chosen[side] for side in self._sides})
        result = tuple(self._own(part) for part in (self._seen, *rest))
        self.agents = ["learner"] if self.agents else []
        self._side = self._side if self.agents else 1 - self._side
        return result

    def _own(self, by_side: dict[str, Any]) -> dict[str, Any]:
        return {"learner": by_side[self._sides[self._side]]}


def test_a_league_of_one_opponent_plays_what_an_environment_with_it_inside_plays() -> None:
    """So both learn the same from as many decisions; where a run with a league seems to be behind,
    its opponents, its budget or the way it is judged are others."""
    count, numbers = 4, itertools.count()
    environments, policy = opened(lambda: AgainstWrong(next(numbers)), count)
    inside = SharedRollout(environments, seed=5, noise_steps=3)
    league = SideRollout(
        EnvironmentMatches(Contest, range(count)),
        seed=5,
        seeds=seeds(count).tolist(),
        bots={"wrong": wrong},
        noise_steps=3,
    )
    order = OpponentOrder(names=("wrong",), bounds=((1.0,),), met=("",), kinds=(-1,))
    for version in (1, 2):  # the second segment begins in the middle of matches
        policy = lively_policy(policy.spec, version)
        one = inside.play(policy, 2 * ROUNDS + 1, gamma=GAMMA)
        two = league.play(policy, 2 * ROUNDS + 1, gamma=GAMMA, order=order)
        assert one is not None and two is not None
        for name in one.arrays.keys() - {"opponent_actions", "foretold"}:
            np.testing.assert_array_equal(one.arrays[name], two.arrays[name], err_msg=name)
        assert len(one.finished) == len(two.finished) > count
        assert {match.side for match in two.finished} == {0, 1}


@pytest.mark.parametrize(
    ("sides", "expected"),
    [
        ([(1.0, -1.0), (0.0, 0.0)], True),
        ([(0.1, 0.2, -0.3)], True),
        ([(1.0, -1.0), (1.0, 0.0)], False),
        ([(0.0,)], False),
        ([], False),
    ],
)
def test_zero_sum_is_what_every_match_was(sides: list[tuple[float, ...]], expected: bool) -> None:
    assert zero_sum([Finished(0.0, 1, one) for one in sides]) is expected


class Broken(Mirror):
    def _worth(self, action: Any) -> float:
        return float("nan")


class Blind(Mirror):
    def _show(self) -> NDArray:
        return np.array([0.0, np.inf], np.float32)


class Unlike(Echo):
    def action_space(self, agent: str) -> Any:
        return super().action_space(agent) if agent == "left" else Mirror("discrete").action_space


def test_an_environment_that_is_broken_is_named() -> None:
    environments, policy = opened(lambda: Alone(Broken("discrete")), 1)
    with pytest.raises(InputError, match="a reward of nan"):
        played(environments, policy, 1)
    with pytest.raises(InputError, match=r"observation\.1 that is not a finite"):
        Environments(lambda: Alone(Blind("discrete")), 1, seeds(1))
    with pytest.raises(ConfigError, match="right has"):
        Environments(Unlike, 1, seeds(1))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("CartPole-v1", "expected gymnasium:<id> or pettingzoo:<module>"),
        ("gymnasium:", "expected gymnasium:<id>"),
        ("gymnasium:CartPoll-v1", "CartPoll"),
        ("gymnasium:no.such.module:X-v0", "no"),
        ("pettingzoo:no_such_module", "no_such_module"),
        (
            "pettingzoo:workers.test_rollout",
            r"has no parallel_env\(\) and no env\(\)",
        ),
    ],
)
def test_a_wrong_name_says_what_is_wrong(name: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        maker(name)


def test_names_make_environments() -> None:
    assert maker("pettingzoo:training.environments.toys")().possible_agents == ["left", "right"]
    brawl = maker("pettingzoo:understudy.adapters.pettingzoo.env", game="brawl")()
    assert brawl.possible_agents == ["player_0", "player_1"]
    ours = maker("gymnasium:understudy/Swarm-v0", difficulty="easy")()
    assert Environments(lambda: ours, 1, seeds(1)).spaces.actions.options == 5
    with pytest.raises(ConfigError, match="kind"):
        maker("gymnasium:training.environments.toys:Mirror-v0", kindd="discrete")
