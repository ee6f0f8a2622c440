"""What the compiled arena plays is what a slow one plays, and what is recorded can be learned."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import jax
import numpy as np
import pytest

from understudy.arena import columns as arena_columns
from understudy.arena.columns import Plan
from understudy.arena.iteration import IterationOutputs
from understudy.arena.mix import parse
from understudy.arena.rollout import Strategy
from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY
from understudy.games import catalog
from understudy.games.moments import LIMIT, QUANTUM, RewardSet
from understudy.learner.maths.jax_ops import JAX
from understudy.policy import distributions
from understudy.policy.mlp import Mlp
from understudy.policy.network import emptied
from understudy.policy.spec import AnyNetwork, PolicySpec
from understudy.policy.strategist import Strategist
from understudy.telemetry.training_rows import TrainingInterval
from understudy.training.learning import matches_trained

from .makers import FIXED, GAMES, GROUPS, NETWORK, Story, arena, mix_of, plan, rows, story
from .slow import Told, tell

SEED = 5


@pytest.fixture(scope="module")
def played() -> Story:
    return story(plan(), SEED)


@pytest.fixture(scope="module")
def told(played: Story) -> list[Told]:
    return [tell(played, column, SEED) for column in range(GAMES)]


def of_all(told: list[Told], field: str) -> NDArray:
    return np.array([[row[field] for row in one.rows] for one in told]).swapaxes(0, 1)


@pytest.mark.parametrize(
    "field", ["actions", "opponent_actions", "opponent_kinds", "legal", "first"]
)
def test_every_choice_is_that_of_the_slow_arena(
    played: Story, told: list[Told], field: str
) -> None:
    """Of bots, of snapshots and of the policy, wherever matches begin. In the slow arena both sides
    begin every match with an empty memory."""
    np.testing.assert_array_equal(rows(played, field), of_all(told, field))


@pytest.mark.parametrize("field", ["obs", "log_probs", "values", "rewards", "ongoing", "valid"])
def test_every_number_is_that_of_the_slow_arena(
    played: Story, told: list[Told], field: str
) -> None:
    np.testing.assert_allclose(rows(played, field), of_all(told, field), atol=1e-4)


def test_matches_are_counted_once_by_whom_they_were_against(
    played: Story, told: list[Told]
) -> None:
    """Every bot apart, and the snapshot of every group apart."""
    seen = set()
    assert played.plan.opponents == len(played.mix.scripted) + GROUPS
    for index, chapter in enumerate(played.chapters):
        for opponent in range(played.plan.opponents):
            counts = {field: column[opponent] for field, column in chapter.counts._asdict().items()
                      if field != "residual"}  # fmt: skip
            assert counts["started"] == sum(one.started[index, opponent] for one in told)
            for field, score in (("wins", 1.0), ("draws", 0.0), ("losses", -1.0)):
                assert counts[field] == sum(one.ended[index, opponent, score] for one in told)
                seen.add((opponent, field) if counts[field] else None)
            assert counts["frames"] == sum(one.frames[index, opponent] for one in told)
            expected = sum(one.returns.get((index, opponent), 0.0) for one in told)
            assert counts["returns"] == pytest.approx(expected, abs=1e-3)
            nothing = np.zeros(played.plan.sums)
            sums = sum(one.sums.get((index, opponent), nothing) for one in told)
            whole = np.concatenate([counts["rest"], np.zeros(len(played.plan.measures.names))])
            np.testing.assert_allclose(counts["sums"] + whole, sums, atol=1e-3)
    assert {(0, "wins"), (1, "losses"), (3, "wins"), (4, "wins"), (4, "draws")} <= seen


def test_every_match_that_ended_is_told_with_its_return(played: Story, told: list[Told]) -> None:
    listed: list[tuple[Any, ...]] = []
    for chapter in played.chapters:
        ends = chapter.rolled.ends
        at = np.nonzero(ends.counts)
        listed += zip(ends.opponent[at], ends.score[at], ends.frames[at], ends.returned[at],
                      strict=True)  # fmt: skip
    expected = sorted(match for one in told for match in one.matches)
    assert len(listed) == len(expected) > 2 * GAMES
    for got, wanted in zip(sorted(listed), expected, strict=True):
        assert got[:3] == wanted[:3] and got[3] == pytest.approx(wanted[3], abs=1e-3)


def test_the_terms_of_a_match_add_up_to_its_return_to_the_last_bit(played: Story) -> None:
    """Of matches in flight and of those that ended: what was trained on is what is told."""
    terms = len(played.plan.rewards.names)
    for chapter in played.chapters:
        np.testing.assert_array_equal(chapter.after.sums[:terms].sum(0), chapter.after.returned)
        assert chapter.counts.residual == 0.0
    assert np.abs(played.chapters[-1].after.returned).max() > 0.5


def test_the_terms_of_many_matches_add_up_to_their_returns_to_the_last_bit() -> None:
    """Sums of an iteration go far beyond what one float32 holds exactly; the table shows 0."""
    made, rng, matches = arena(), np.random.default_rng(0), 500
    worth = rng.integers(-(2**22), 2**23, (1, 2, matches)) * QUANTUM
    nobody, nothing = np.zeros((1, matches), np.int32), cast(Any, None)
    ends = arena_columns.Ends(
        counts=np.ones((1, matches), bool),
        opponent=nobody,
        score=nobody.astype(np.float32),
        frames=nobody + 9,
        returned=worth.sum(1).astype(np.float32),
        sums=np.concatenate([worth, np.ones((1, 1, matches))], axis=1).astype(np.float32),
        began=nobody > 0,
        next_opponent=nobody,
    )
    np.testing.assert_array_equal(ends.returned, worth.sum(1))  # each match by itself is exact
    counts = jax.device_get(jax.jit(partial(arena_columns.counted, made.plan))(ends))
    empty = np.zeros((made.plan.opponents, 0), np.float32)
    strategy = Strategy(empty, np.zeros(made.plan.opponents), 0.0, 0.0, 0.0)
    played = IterationOutputs(nothing, counts, ends, strategy, nothing, nothing)
    told = made._iteration({}, played, list(made.snapshots.met))
    assert told.results["rest"].terms == dict(
        zip(made.plan.rewards.names, worth[0].sum(1).tolist(), strict=True)
    )
    assert told.results["rest"].measures == {"strength": matches}
    interval = TrainingInterval()
    interval.add_matches(matches_trained(told, steps=1, stage=""))
    assert [row["residual"] for row in interval.rewards()] == [0.0, 0.0]
    assert abs(interval.against["rest"].returned) > 100 * LIMIT


def test_what_is_made_of_opponents_is_told_by_opponent(played: Story) -> None:
    chapter = played.chapters[-1]
    strategy, network = chapter.rolled.strategy, played.plan.spec.network
    assert isinstance(network, Strategist)
    state = jax.tree.map(np.asarray, chapter.after.state)
    obs = played.plan.game.observe(NUMPY, state)
    ours = np.where(np.arange(GAMES) % 2 == 1, obs[1], obs[0]).T
    memory = emptied(JAX, chapter.after.ours, chapter.after.first)
    seen = ((ours - FIXED.obs_mean) * FIXED.obs_scale).astype(np.float32)
    insight = network.step_insight(NUMPY, played.ours, seen, jax.tree.map(np.asarray, memory))
    opponents = np.asarray(arena_columns.opponent_index(played.plan, chapter.after))
    for opponent in range(played.plan.opponents):
        assert strategy.columns[opponent] == (opponents == opponent).sum()
        if (opponents == opponent).any():
            mean = insight.latent[opponents == opponent].mean(0)
            np.testing.assert_allclose(strategy.means[opponent], mean, atol=1e-4)
    assert strategy.mean == pytest.approx(insight.latent.mean(), abs=1e-4)
    spread = np.sqrt(((insight.latent - insight.latent.mean(0)) ** 2).mean())
    assert strategy.spread == pytest.approx(spread, abs=1e-4) and spread > 0.01
    assert insight.attention is not None
    shares = [row[row > 0] for row in insight.attention]
    entropy = np.mean([-(row * np.log(row)).sum() for row in shares])
    assert strategy.attention_entropy == pytest.approx(entropy, abs=1e-4)


def test_first_matches_are_cut_off_at_different_times_and_nothing_else_is(
    played: Story, told: list[Told]
) -> None:
    valid, first, ongoing = (rows(played, field) for field in ("valid", "first", "ongoing"))
    frames, columns = np.nonzero(valid == 0)
    assert len(frames) == sum(one.cuts for one in told) >= 3
    assert len(set(frames)) >= 3, "clocks are not spread"
    for frame, column in zip(frames, columns, strict=True):
        assert first[1 : frame + 1, column].sum() == 0, "not the column's first match"
        assert ongoing[frame, column] == 0 and first[frame + 1, column]
    ended = first[1:] == (ongoing[:-1] == 0)
    assert ended.all(), "a match begins exactly after one ended"


def test_we_play_both_sides(played: Story) -> None:
    """The toy shows its rope from one's own side: pulling and being paid go together on both."""
    actions, theirs, rewards = (
        rows(played, field) for field in ("actions", "opponent_actions", "rewards")
    )
    pulled = (actions[..., 0] == 1) & (theirs[..., 0] == 0) & (rows(played, "ongoing") == 1)
    for side in (0, 1):
        mine = pulled[:, side::2]
        assert mine.sum() > 10
        np.testing.assert_allclose(rewards[:, side::2][mine], 0.5, atol=1e-5)
    assert list(np.asarray(arena_columns.sides(played.plan, played.chapters[0].after))) == [
        0,
        1,
    ] * (GAMES // 2)


@pytest.mark.parametrize("network", [NETWORK, Mlp(widths=(6,))], ids=["strategist", "mlp"])
def test_before_a_gradient_step_every_ratio_is_one(network: AnyNetwork) -> None:
    """`unroll` over a segment from the memory that was kept gives what `step` gave in play."""
    played = story(plan(network=network), SEED)
    actions = played.plan.spec.actions
    unroll = jax.jit(partial(network.unroll, JAX))
    inner = 0
    for chapter in played.chapters:
        s = chapter.segments
        seen = ((s.obs - FIXED.obs_mean) * FIXED.obs_scale).astype(np.float32)
        logits, values, _ = unroll(played.ours, seen, s.first, s.memory)
        again = distributions.log_prob(JAX, actions, logits, s.actions, s.legal)
        np.testing.assert_allclose(np.exp(again - s.log_probs), 1.0, atol=1e-4)
        np.testing.assert_allclose(values, s.values, atol=1e-4)
        inner += int(s.first[1:].sum())
    assert inner > GAMES, "no match began inside a segment"


def test_a_segment_goes_on_where_the_last_one_stopped(played: Story) -> None:
    network = played.plan.spec.network
    for one, other in zip(played.chapters, played.chapters[1:], strict=False):
        assert not other.segments.first[0].all()
        for before, after in zip(
            jax.tree.leaves(other.segments.memory), jax.tree.leaves(one.after.ours), strict=True
        ):
            np.testing.assert_array_equal(before, after)
        state = jax.tree.map(np.asarray, one.after.state)
        obs = played.plan.game.observe(NUMPY, state)
        ours = np.where(np.arange(GAMES) % 2 == 1, obs[1], obs[0]).T
        np.testing.assert_allclose(other.segments.obs[0], ours, atol=1e-6)
        fresh = one.after.first
        memory = jax.tree.map(np.asarray, emptied(JAX, one.after.ours, fresh))
        seen = ((ours - FIXED.obs_mean) * FIXED.obs_scale).astype(np.float32)
        _, values, _ = network.step(NUMPY, played.ours, seen, memory)
        np.testing.assert_allclose(one.segments.bootstrap, values, atol=1e-4)
        np.testing.assert_allclose(one.segments.bootstrap, other.segments.values[0], atol=1e-4)


def test_the_same_seed_plays_the_same_matches_bit_for_bit(played: Story) -> None:
    story.cache_clear()
    again, other = story(plan(), SEED), story(plan(), SEED + 1)
    for one, two in zip(played.chapters, again.chapters, strict=True):
        assert jax.tree.all(jax.tree.map(np.array_equal, one, two))
    assert not np.array_equal(rows(played, "obs")[0], rows(other, "obs")[0])
    assert not set(played.chapters[0].before.seeds) & set(other.chapters[0].before.seeds)


def test_opponents_are_met_as_often_as_they_weigh() -> None:
    mix = mix_of("rest=1,pull=3,self=4")
    seeds = np.arange(20_000, dtype=np.uint32)
    for share, expected in ((0.5, [1 / 8, 3 / 8, 4 / 8]), (0.0, [1 / 4, 3 / 4, 0.0])):
        drawn = arena_columns._opponents(seeds, mix.bounds(share))
        shares = np.bincount(np.asarray(drawn), minlength=3) / len(seeds)
        np.testing.assert_allclose(shares, expected, atol=0.015)
        assert expected[2] > 0.0 or shares[2] == 0.0
    assert mix.own_share == 0.5


def test_nobody_meets_itself_before_there_is_somebody_to_meet(played: Story) -> None:
    own = len(played.plan.bots)
    assert [chapter.counts.started[own:].sum() > 0 for chapter in played.chapters] == [
        any(chapter.free) for chapter in played.chapters
    ]
    for chapter in played.chapters:
        met = (chapter.after.kind == own).reshape(GROUPS, -1).sum(1)
        np.testing.assert_array_equal(
            arena_columns.snapshot_meetings(played.plan, chapter.after), met
        )
    assert not (played.chapters[2].after.kind.reshape(GROUPS, -1)[1] == own).any()


def test_the_brawl_is_played_by_its_rules() -> None:
    """Matches of two columns, and so of both sides, are those that NumPy plays from the seeds."""
    game, bots, mix = catalog.make("brawl"), catalog.bots("brawl"), parse("random,self", ["random"])
    terms = catalog.terms("brawl")
    brawl = Plan(
        spec=PolicySpec(game.features, game.actions, Mlp(widths=(6,))),
        config=plan().config,
        game=game,
        bots=(bots["random"],),
        meets_itself=True,
        rewards=RewardSet.of({name: terms[name] for name in ("damage", "closing")}),
        measures=RewardSet.of(catalog.measures("brawl")),
        games=4,
        segment=8,
        groups=1,
    )
    played = story(brawl, SEED, mix)
    for column in (0, 1):
        told = tell(played, column, SEED)
        for field in ("actions", "opponent_actions", "obs", "rewards", "log_probs", "first"):
            expected = np.array([row[field] for row in told.rows])
            np.testing.assert_allclose(rows(played, field)[:, column], expected, atol=1e-4)
    assert np.abs(rows(played, "rewards")).max() > 0
