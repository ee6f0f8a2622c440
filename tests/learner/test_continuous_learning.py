"""The continuous learner with the real trainer: that it learns, and in the right direction."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import msgspec
import numpy as np
import pytest
from policy.makers import MLP, TRANSFORMER, aborted, lively_policy, play, spec_of
from walk.toys import SetClock, check_registry, manifests, metas, reasons

from understudy.core.arrays import NDArray
from understudy.core.config import Config, LearnerConfig, with_values
from understudy.core.ops import NUMPY
from understudy.experience.episode import Episode, Meta, Outcome, surprise
from understudy.experience.spool import Spool
from understudy.gates.decision import Verdict
from understudy.learner.batch import Batch
from understudy.learner.continuous.items import batch_of, cut
from understudy.learner.continuous.learner import ContinuousLearner
from understudy.learner.maths.descent import FixedInputs, TrainingBatch, _loss
from understudy.learner.maths.update import _Targets, _targets, _training_batch, _whole, update
from understudy.learner.trainer import Trainer
from understudy.policy.layers import Params
from understudy.policy.policy import Policy, untrained
from understudy.policy.spec import AnyNetwork, PolicySpec
from understudy.policy.weights import encode, normalise
from understudy.promotion.promotion import Promotion
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import WEIGHTS
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

from .toy_items import told

SPEC = spec_of()
SHAPE = {
    "learner.epochs": 2,
    "learner.minibatches": 2,
    "learner.learning_rate": 5e-3,
    "learner.learning_rate_max": 1e-2,
    "learner.publish_interval_s": 0.0,
    "learner.gamma": 0.5,
    "continuous.batch": 8,
    "continuous.min_batch": 4,
    "continuous.samples_per_insert": 8.0,
}
GOOD, BAD = 0, 2


def config_of(**values: Any) -> Config:
    dotted = {key.replace("__", "."): value for key, value in values.items()}
    return with_values(Config(), SHAPE | dotted)


def chances(policy: Policy) -> NDArray:
    """How likely each action is, as the policy itself draws them from even numbers."""
    rng = np.random.default_rng(5)
    draws = (np.arange(4000, dtype=np.float32)[:, None] + 0.5) / 4000.0
    seen = rng.normal(size=(1, 3)).astype(np.float32).repeat(4000, 0)
    actions = policy.act(seen, policy.begin(4000), uniforms=draws).actions
    return np.bincount(actions[:, 0], minlength=3) / 4000.0


def segments(policy: Policy, round_: int, clock: SetClock, **fields: Any) -> list[Episode]:
    """Segments of a match that goes on: the first action is rewarded, the last is punished."""
    rng = np.random.default_rng(round_)
    made = []
    for number in range(4):
        meta = Meta(id=f"live-{round_}-{number}", outcome=Outcome.ABORTED, finished_at=clock.time())
        one = play(policy, rng, 8, reward=lambda obs, action: 1.0 - float(action[0]), meta=meta)
        after = rng.normal(size=3).astype(np.float32)
        made.append(replace(one, bootstrap=after, **fields))
    return made


def live(root: Path, config: Config, *, rounds: int, gate: Any = None, **fields: Any) -> RunFolder:
    """A server without the server: the champion plays, the learner behind it learns."""
    clock = SetClock()
    folder = RunFolder.open(root, spec=SPEC, config=config, clock=clock)
    spool = Spool(root, SPEC, clock)
    journal = Journal(folder.journal, "learner", clock)
    mind = ContinuousLearner(folder, Trainer(SPEC, config.learner), journal, gate)
    for round_ in range(rounds):
        for one in segments(champion(folder), round_, clock, **fields):
            spool.put(one)
            clock.advance(0.01)
        for _ in range(8):
            while mind.work():
                pass
            clock.advance(1.0)
    mind.publish_rest()
    return folder


def champion(folder: RunFolder) -> Policy:
    record = folder.pointers.read("champion")
    return untrained(SPEC, 0) if record is None else folder.versions.policy(record.version)


@pytest.mark.parametrize(
    ("length", "priority"), [(8, "uniform"), (1, "uniform"), (8, "prioritised")]
)
def test_what_is_rewarded_becomes_likelier_and_what_is_punished_less(
    tmp_path: Path, length: int, priority: str
) -> None:
    config = config_of(continuous__length=length, continuous__priority=priority)
    before = update._cache_size()  # type: ignore[attr-defined]
    folder = live(tmp_path, config, rounds=8)
    assert update._cache_size() <= before + 1, "one shape, compiled once"  # type: ignore[attr-defined]
    gained = chances(champion(folder)) - chances(untrained(SPEC, 0))
    assert gained[GOOD] > 0.1
    assert gained[BAD] < -0.1
    check_registry(folder)
    trained = told(folder, events.ContinuousTrained)
    assert trained[-1].samples_per_insert <= 8.0


def by_rules(round_: int, clock: SetClock) -> list[Episode]:
    """The rules always take the punished action."""
    bad = np.full((8, 1), BAD, np.int32)
    zeros = np.zeros(8, np.float32)
    return [
        replace(
            one,
            meta=msgspec.structs.replace(one.meta, id=f"rules-{one.meta.id}"),
            actions=bad,
            rewards=1.0 - bad[:, 0].astype(np.float32),
            log_probs=zeros,
            values=zeros,
            sampled=np.zeros(8, bool),
        )
        for one in segments(untrained(SPEC, 0), round_, clock)
    ]


def test_rules_are_cloned_until_the_policy_has_experience_of_its_own_and_then_passed(
    tmp_path: Path,
) -> None:
    clock, config = SetClock(), with_values(config_of(), {"learner.imitation_fade_matches": 2.5})
    folder = RunFolder.open(tmp_path, spec=SPEC, config=config, clock=clock)
    spool, journal = Spool(tmp_path, SPEC, clock), Journal(folder.journal, "learner", clock)
    mind = ContinuousLearner(folder, Trainer(SPEC, config.learner), journal)
    seen = []
    for practice, rounds in ((False, 2), (True, 8)):
        for round_ in range(rounds):
            number = round_ + 10 * practice
            own = segments(champion(folder), 100 + number, clock) if practice else []
            for one in (*by_rules(number, clock), *own):
                spool.put(one)
                clock.advance(0.01)
            for _ in range(8):
                while mind.work():
                    pass
                clock.advance(1.0)
        seen.append((mind.imitation, chances(champion(folder))[BAD]))
    (whole, cloned), (left, passed) = seen
    assert (whole, left) == (1.0, 0.0)
    assert cloned > 0.6, "what the rules do is imitated, although it is punished"
    assert passed < cloned - 0.3, "and unlearned from the rules' own experience"
    again = ContinuousLearner(folder, Trainer(SPEC, config.learner), journal)
    assert again.imitation == 0.0, "a restart does not begin to imitate anew"


class Backwards:
    """Would send only what is punished, and expects much of it."""

    name = "backwards"

    def evaluate(self, observation: NDArray, action: NDArray) -> Verdict:
        return Verdict(bool(action[0] == BAD), 1.0 if action[0] == BAD else -1.0)


def test_a_gate_that_judges_otherwise_keeps_its_experience_from_teaching(tmp_path: Path) -> None:
    """Everything was sent; today's gate would have sent the punished action alone."""
    everything = np.ones(8, bool)
    config = config_of(continuous__length=8)
    folder = live(
        tmp_path, config, rounds=3, gate=Backwards(),
        sent=everything, explored=~everything, expected=np.zeros(8, np.float32),
    )  # fmt: skip
    trained = told(folder, events.ContinuousTrained)
    assert all(one.agreement is not None and one.agreement < 0.6 for one in trained)
    assert sum(one.skipped for one in trained) > sum(one.steps for one in trained)


def batch_for(spec: PolicySpec, episodes: list[Episode], *, length: int) -> Batch:
    parts = [cut(one, spec, length=length) for one in episodes]
    items = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    count, width = items["rewards"].shape
    return batch_of(
        items, spec, columns=8, version=0, max_lag=10,
        weights=np.ones(count, np.float32), learned=np.ones((count, width), bool),
    )  # fmt: skip


@partial(jax.jit, static_argnums=(0, 1))
def towards_of(spec: PolicySpec, config: LearnerConfig, params: Params, batch: Batch) -> _Targets:
    return _targets(
        spec, config, *_whole(spec, config, params, batch), batch, lam=config.gae_lambda
    )


@pytest.mark.parametrize("network", [MLP, TRANSFORMER], ids=["mlp", "transformer"])
def test_items_repeat_what_played_decision_by_decision(network: AnyNetwork) -> None:
    spec = spec_of(network)
    player = lively_policy(spec)
    rng = np.random.default_rng(3)
    episodes = [play(player, rng, 8, masked=True) for _ in range(8)]
    batch = batch_for(spec, episodes, length=8)
    seen = batch._replace(obs=normalise(NUMPY, player.weights, batch.obs))
    towards = towards_of(spec, config_of().learner, player.weights.params, seen)
    ratios = np.exp(np.asarray(towards.anchor_log_probs) - batch.log_probs)
    assert np.abs((ratios - 1.0) * batch.valid).max() < 1e-4


def test_every_first_ratio_on_fresh_items_is_one() -> None:
    player = lively_policy(SPEC)
    trainer = Trainer(SPEC, config_of().learner)
    trainer.restore({WEIGHTS: encode(player.weights)}, what="a lively one")
    batch = batch_for(SPEC, segments(player, 0, SetClock()) * 2, length=8)
    metrics, surprise = trainer.train_items(batch, new=(), learning_rate=1e-3, entropy_weight=0.0)
    assert metrics["behaviour_kl_max"] < 5e-9, "every ratio is 1 within 1e-4"
    assert surprise.shape == (8,) and (surprise > 0).all()


ENDS: dict[str, dict[str, Any]] = {
    "won": {},
    "cut": {"bootstrap": "the last observation"},
    "aborted": {"meta": aborted()},
    "a reward never came": {"settled": np.array([1, 1, 0, 1, 1, 1, 0, 1], bool)},
}


@pytest.mark.parametrize("length", [8, 3])
@pytest.mark.parametrize("end", ENDS)
def test_the_surprise_an_item_comes_in_with_is_what_the_learner_finds(
    end: str, length: int
) -> None:
    """Its priority is then replaced by what the learner found: both are on one scale."""
    player, config = lively_policy(SPEC), config_of().learner
    one = play(player, np.random.default_rng(5), 8, reward=lambda obs, action: float(obs[0]))
    changes = dict(ENDS[end])
    if end == "cut":  # as the value of a bootstrap is not recorded, let it be known
        changes["bootstrap"] = one.observations[-1]
    one = replace(one, **changes)
    trainer = Trainer(SPEC, config)
    trainer.restore({WEIGHTS: encode(player.weights)}, what="a lively one")
    batch = batch_for(SPEC, [one], length=length)
    _, found = trainer.train_items(batch, new=(), learning_rate=1e-3, entropy_weight=0.0)
    expected = surprise(one, gamma=config.gamma, lam=config.target_lambda, length=length)
    np.testing.assert_allclose(found[: len(expected)], expected, rtol=1e-4)
    assert (expected > 0).all() and not found[len(expected) :].any()


def test_importance_weights_reach_the_loss() -> None:
    """Doubling a weight doubles what that item adds to the gradient, and nothing else."""
    player = lively_policy(SPEC)
    rng = np.random.default_rng(4)
    played = [
        play(player, rng, 8, reward=lambda obs, action: float(obs[0] * action[0])) for _ in range(8)
    ]
    batch = batch_for(SPEC, played, length=8)
    config = LearnerConfig(minibatches=1)
    params = jax.tree.map(jnp.asarray, player.weights.params)
    towards = towards_of(SPEC, config, params, batch)

    @jax.jit
    def slope(batch_: TrainingBatch) -> Params:
        fixed = FixedInputs(0.0, 1.0, 1.0, 0.0, entropy_weight=jnp.float32(0.02))
        found, _ = jax.grad(_loss, argnums=2, has_aux=True)(
            SPEC, config, params, batch_, (), jnp.float32(64.0), fixed
        )
        slopes: Params = found
        return slopes

    def gradient(*weights: float) -> NDArray:
        each = np.tile(np.array(weights, np.float32), (9, 1))
        found = slope(_training_batch(batch._replace(weights=each), towards))
        return np.concatenate([np.ravel(part) for part in jax.tree.leaves(found)])

    alone = gradient(1, 0, 0, 0, 0, 0, 0, 0)
    even, doubled = gradient(*[1] * 8), gradient(2, *[1] * 7)
    assert np.abs(alone).max() > 1e-3
    np.testing.assert_allclose(doubled - even, alone, atol=1e-5)
    np.testing.assert_allclose(gradient(2, *[0] * 7), 2 * alone, atol=1e-5)


def test_trying_a_batch_changes_nothing() -> None:
    trainer = Trainer(SPEC, config_of().learner)
    player = Policy(SPEC, trainer.weights(), 0)
    batch = batch_for(SPEC, segments(player, 0, SetClock()), length=8)
    before = trainer.snapshot()[WEIGHTS]
    trainer.train_items(batch, new=(), learning_rate=1e-2, entropy_weight=0.0, keep=False)
    assert trainer.snapshot()[WEIGHTS] == before
    trainer.train_items(batch, new=(), learning_rate=1e-2, entropy_weight=0.0)
    assert trainer.snapshot()[WEIGHTS] != before


@pytest.mark.parametrize("number", [3.4028235e38, -3.4028235e38, 1e25])
def test_one_absurd_number_of_one_client_stops_nobody(tmp_path: Path, number: float) -> None:
    clock = SetClock()
    config = config_of()
    folder = RunFolder.open(tmp_path, spec=SPEC, config=config, clock=clock)
    spool = Spool(tmp_path, SPEC, clock)
    journal = Journal(folder.journal, "learner", clock)
    mind = ContinuousLearner(folder, Trainer(SPEC, config.learner), journal)
    published: list[int] = []
    for round_ in range(8):
        for client, one in enumerate(segments(champion(folder), round_, clock)):
            made = replace(
                one, meta=msgspec.structs.replace(one.meta, tags={"client": f"web-{client}"})
            )
            if (round_, client) == (3, 2):
                made.observations[5, 1] = number
            spool.put(made)
            clock.advance(0.01)
        for _ in range(4):
            while mind.work():
                pass
            clock.advance(1.0)
        published.append(mind.version)
    assert all(later > before for before, later in pairwise(published)), published
    assert [meta.id for meta in metas(tmp_path / "quarantine")] == ["live-3-2"]
    (reason,) = reasons(folder).values()
    assert "client 'web-2'" in reason and f"'{SPEC.features[1]}'" in reason
    assert f"{number:g}" in reason and "decision 5" in reason
    ingested = {key for one in manifests(folder) for key in one.ingested}
    assert len(ingested) == 8 * 4 - 1
    (problem,) = told(folder, events.EpisodeQuarantined)
    assert problem.reason == reason


def test_imitation_fades_once_and_lag_is_distance_where_evidence_moves_the_champion(
    tmp_path: Path,
) -> None:
    """The trainer has a fade of its own, for whole matches: a batch of items is not faded twice."""
    clock = SetClock()
    config = config_of(live__promotion="auto")
    folder = RunFolder.open(tmp_path, spec=SPEC, config=config, clock=clock)
    trainer, given = Trainer(SPEC, config.learner), []

    def noted(batch: Batch, **options: Any) -> Any:
        given.append((batch, options, trainer._mixed))
        return Trainer.train_items(trainer, batch, **options)

    trainer.train_items = noted  # type: ignore[method-assign]
    journal = Journal(folder.journal, "learner", clock)
    mind = ContinuousLearner(folder, trainer, journal)
    assert mind.max_lag == config.learner.max_version_lag
    Promotion(folder).declare(rules="", score=(0.0, 1.0))  # a learner at work follows it
    mind._counters["own"] = 1_000  # half of 50 matches of 40 decisions
    spool = Spool(tmp_path, SPEC, clock)
    for one in (*by_rules(0, clock), *segments(untrained(SPEC, 0), 1, clock)):
        spool.put(one)
    while mind.work():
        pass
    batch, options, mixed = given[0]
    assert not mixed and options["by_evidence"] and options["champion"] is None
    imitated = np.unique(batch.imitated)
    np.testing.assert_allclose(imitated, [0.0, 0.5])
    assert mind.max_lag is None, "the distance decides, and no age"
