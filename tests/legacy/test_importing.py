"""Old files come in whole, once, and never as what they are not."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from walk.toys import counts

from legacy import old_bot
from understudy.core import config as configs
from understudy.core.arrays import NDArray
from understudy.core.clock import SystemClock
from understudy.core.config import Config, with_values
from understudy.core.errors import RunFolderError
from understudy.core.ops import NUMPY
from understudy.core.spaces import Discrete
from understudy.experience.episode import Episode, Outcome
from understudy.experience.spool import Spool
from understudy.games.swarm import features as swarm_features
from understudy.games.swarm import tables as swarm_tables
from understudy.learner.ring import RingLearner
from understudy.learner.trainer import Trainer
from understudy.legacy import models
from understudy.legacy.experience import moved_back
from understudy.legacy.importing import ImportReport, import_files
from understudy.policy import distributions
from understudy.policy.mlp import Mlp
from understudy.policy.policy import Policy
from understudy.policy.spec import PolicySpec
from understudy.policy.weights import normalise
from understudy.registry.run_folder import RunFolder
from understudy.supervise.lock import learner_lock
from understudy.telemetry.journal import Journal

CLOCK = SystemClock()


def bring(*paths: Path, run: Path, **options: Any) -> ImportReport:
    return import_files(paths, run, clock=CLOCK, **options)


def waiting(run: Path) -> list[Episode]:
    folder = RunFolder.load(run, CLOCK)
    spool = Spool(run, folder.spec, CLOCK)
    return [spool.load(name) for name in spool.pending()]


def policy_probabilities(policy: Policy, states: NDArray) -> NDArray:
    obs = normalise(NUMPY, policy.weights, states.astype(np.float32))
    logits, _, _ = policy.spec.network.step(NUMPY, policy.weights.params, obs, ())
    found: NDArray = np.exp(distributions.log_probs(NUMPY, policy.spec.actions, logits, None))
    return found


def learn(run: Path) -> RingLearner:
    folder = RunFolder.load(run, CLOCK)
    trainer = Trainer(folder.spec, folder.config.learner)
    background = RingLearner(folder, trainer, Journal(folder.journal, "learner", CLOCK))
    while background.work(hurry=True):
        pass
    background.publish_rest()
    return background


def test_what_an_old_file_says_and_no_more(tmp_path: Path) -> None:
    old = old_bot.experience(tmp_path / "old" / "game_20260125_143022_Victory.npz")
    report = bring(old, run=tmp_path / "run")
    assert report.as_dict()["matches"] == 1
    assert report.decisions == 20
    (episode,) = waiting(tmp_path / "run")
    with np.load(old) as arrays:
        assert np.array_equal(episode.observations, arrays["states"])
        assert np.array_equal(episode.actions[:, 0], arrays["actions"])
        assert np.array_equal(episode.rewards, arrays["rewards"])
    assert not episode.sampled.any()  # no log-probabilities: never on-policy
    assert episode.meta.outcome is Outcome.VICTORY
    assert episode.meta.imported_from == old.name
    assert episode.meta.tags == {"imported": old.name, "recorded": "20260125_143022"}


@pytest.mark.parametrize(
    ("name", "outcome", "unknown"),
    [
        ("game_20260125_143022_Defeat.npz", Outcome.DEFEAT, False),
        ("game_20260125_143022_Tie.npz", Outcome.TIE, False),
        ("exp_20260125_143022_ep12.npz", Outcome.TIE, True),
        ("game_20260125_143022_Undecided.npz", Outcome.TIE, True),
        ("whatever.npz", Outcome.TIE, True),
    ],
)
def test_the_result_comes_from_the_name_or_is_said_to_be_unknown(
    tmp_path: Path, name: str, outcome: Outcome, unknown: bool
) -> None:
    bring(old_bot.experience(tmp_path / name), run=tmp_path / "run")
    (episode,) = waiting(tmp_path / "run")
    assert episode.meta.outcome is outcome
    assert (episode.meta.tags.get("result") == "unknown") == unknown


def damaged(folder: Path) -> dict[str, str]:
    """One file for each thing that can be wrong, and a word of the reason."""
    good = {
        "states": np.zeros((4, 15), np.float32),
        "actions": np.zeros(4, np.int64),
        "rewards": np.zeros(4),
    }
    changes: dict[str, tuple[dict[str, Any], str]] = {
        "wrong_width": ({"states": np.zeros((4, 50), np.float32)}, "shape"),
        "long_states": ({"states": np.zeros((5, 15))}, "states have shape (5, 15)"),
        "long_actions": ({"actions": np.zeros(5, np.int64)}, "actions have shape (5,)"),
        "long_rewards": ({"rewards": np.zeros(5)}, "rewards have shape (5,), expected (4,)"),
        "one_reward": ({"rewards": np.zeros(())}, "rewards have shape (), expected (4,)"),
        "no_two_alike": (
            {"actions": np.zeros(3, np.int64), "rewards": np.zeros(5)},
            "equally many of each; got states (4, 15), actions (3,), rewards (5,)",
        ),
        "not_finite": ({"rewards": np.array([0.0, np.nan, 0.0, 0.0])}, "finite"),
        "too_large": ({"rewards": np.full(4, 1e300)}, "finite"),
        "wrong_action": ({"actions": np.array([0, 1, 5, 0])}, "outside"),
        "negative_action": ({"actions": np.array([0, 1, -1, 0])}, "outside"),
        "float_action": ({"actions": np.zeros(4)}, "expected numbers"),
        "pickled": ({"states": np.array([{}, {}], dtype=object)}, "plain numbers"),
        "empty": ({"states": np.zeros((0,)), "actions": np.zeros(0), "rewards": np.zeros(0)}, "no"),
    }
    for name, (change, _) in changes.items():
        np.savez(folder / f"{name}.npz", **{**good, **change})
    np.savez(folder / "something_else.npz", x=np.zeros(3))
    whole = old_bot.experience(folder / "cut.npz").read_bytes()
    (folder / "cut.npz").write_bytes(whole[: len(whole) // 2])
    (folder / "text.npz").write_text("hello")
    return {
        **{f"{name}.npz": word for name, (_, word) in changes.items()},
        "something_else.npz": "neither",
        "cut.npz": "readable",
        "text.npz": "readable",
    }


def test_bad_files_are_named_and_the_others_go_on(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.mkdir()
    reasons = damaged(old)
    old_bot.experience(old / "zz_good.npz")
    report = bring(old, tmp_path / "missing.npz", run=tmp_path / "run")
    failed = {line.path.name: line.reason for line in report.of("failed")}
    assert failed.keys() == {*reasons, "missing.npz"}
    for name, word in reasons.items():
        assert word in failed[name], (name, failed[name])
    assert [line.path.name for line in report.of("experience")] == ["zz_good.npz"]
    assert len(waiting(tmp_path / "run")) == 1


def test_nothing_good_makes_no_run_folder(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    report = bring(tmp_path / "empty", tmp_path / "gone.npz", run=tmp_path / "run")
    assert len(report.of("failed")) == 2
    assert not (tmp_path / "run").exists()


def test_the_same_match_comes_in_once_and_its_file_stays(tmp_path: Path) -> None:
    old = tmp_path / "old"
    first = old_bot.experience(old / "deep" / "exp_20260125_143022_ep1.npz")
    old_bot.model(old / "rl_agent_model.npz")
    (old / "a_copy.npz").write_bytes(first.read_bytes())
    before = {path: hashlib.sha256(path.read_bytes()).digest() for path in old.rglob("*.npz")}
    report = bring(old, old, first, run=tmp_path / "run")
    assert [len(report.of(one)) for one in ("experience", "model", "known", "failed")] == [
        1, 1, 1, 0,
    ]  # fmt: skip
    learn(tmp_path / "run")  # out of the buffer, into the archive
    again = bring(old, run=tmp_path / "run")
    assert [len(again.of(one)) for one in ("experience", "model", "known", "failed")] == [
        0, 0, 3, 0,
    ]  # fmt: skip
    assert before == {path: hashlib.sha256(path.read_bytes()).digest() for path in before}


def test_a_run_that_remembers_enough_imports_takes_no_more(tmp_path: Path) -> None:
    run = tmp_path / "run"
    for number in (1, 2):
        old_bot.experience(tmp_path / f"exp_20260125_143022_ep{number}.npz", seed=number)
    first, second = sorted(tmp_path.glob("*.npz"))
    assert len(bring(first, run=run).of("experience")) == 1
    folder = RunFolder.load(run, SystemClock())
    configs.save(run / "config.toml", with_values(folder.config, {"retention.imported_files": 1}))
    report = bring(first, second, run=run)
    assert [line.path for line in report.of("known")] == [first]
    (refused,) = report.of("failed")
    assert refused.path == second and "retention.imported_files" in refused.reason
    assert len(waiting(run)) == 1


def test_a_run_folder_inside_a_folder_is_left_alone(tmp_path: Path) -> None:
    first = old_bot.experience(tmp_path / "old" / "exp_20260125_143022_ep1.npz")
    bring(first, run=tmp_path / "old" / "rl_agent_model.run")
    report = bring(tmp_path / "old", run=tmp_path / "run")
    assert [line.path for line in report.lines] == [first]
    (own,) = (tmp_path / "old" / "rl_agent_model.run" / "buffer").glob("*.npz")
    assert "Understudy itself" in bring(own, run=tmp_path / "run").lines[0].reason


def test_late_rewards_move_to_the_decisions_that_earned_them() -> None:
    stored = np.array([9.0, 1.0, 2.0, 3.0, 4.5 + 10.0], np.float32)  # left over, r0..r3, result
    assert moved_back(stored).tolist() == [1.0, 2.0, 3.0, 0.0, 14.5]
    assert moved_back(stored[:2]).tolist() == [9.0, 1.0]


def test_a_run_for_others_is_refused(tmp_path: Path) -> None:
    old = old_bot.experience(tmp_path / "exp.npz")
    spec = PolicySpec(("a", "b"), Discrete(("left", "right")), Mlp())
    RunFolder.open(tmp_path / "run", spec=spec, config=None, clock=CLOCK)
    with pytest.raises(RunFolderError, match="other features"):
        bring(old, run=tmp_path / "run")


def test_the_built_in_swarm_has_the_features_and_actions_of_the_old_bot() -> None:
    assert swarm_features.FEATURES == models.FEATURES
    assert swarm_tables.STRATEGIES == models.ACTIONS


def test_an_old_model_plays_as_it_did(tmp_path: Path) -> None:
    old = old_bot.model(tmp_path / "model.npz")
    report = bring(old, run=tmp_path / "run")
    assert [line.result for line in report.lines] == ["model"]
    folder = RunFolder.load(tmp_path / "run", CLOCK)
    for name in ("candidate", "champion"):
        record = folder.pointers.read(name)
        assert record is not None and record.version == 1
    states = np.random.default_rng(1).random((50, 15))
    policy = folder.versions.policy(1)
    expected = old_bot.probabilities(old, states)
    assert np.allclose(policy_probabilities(policy, states), expected, atol=1e-5)
    obs = states[:1].astype(np.float32)
    choice = policy.act(obs, policy.begin())
    assert choice.actions[0, 0] == expected[0].argmax()
    assert choice.values[0] == pytest.approx(-3.5)  # the baseline
    assert folder.versions.manifest(1).counters == {"old_episodes": 41}


def test_learning_goes_on_from_an_old_model(tmp_path: Path) -> None:
    """The first normaliser is fitted to the data; what the model does must not jump with it."""
    old = old_bot.model(tmp_path / "model.npz")
    config = with_values(
        Config(), {"learner.learning_rate": 1e-7, "learner.learning_rate_min": 1e-8}
    )
    RunFolder.open(tmp_path / "run", spec=models.spec(), config=config, clock=CLOCK)
    for index in range(4):
        old_bot.experience(tmp_path / "data" / f"{index}.npz", seed=index)
    bring(old, tmp_path / "data", run=tmp_path / "run")
    assert learn(tmp_path / "run").version == 2
    policy = RunFolder.load(tmp_path / "run", CLOCK).versions.policy(2)
    assert np.abs(policy.weights.obs_mean).max() > 0.1  # it was fitted
    states = np.random.default_rng(1).random((50, 15))
    found, expected = policy_probabilities(policy, states), old_bot.probabilities(old, states)
    assert np.allclose(found, expected, atol=1e-3)


def test_what_was_left_unfinished_is_neither_a_model_nor_a_match(tmp_path: Path) -> None:
    old = tmp_path / "old"
    for name in (".tmp.npz", "rl_agent_model.tmp.npz"):
        old_bot.model(old / name, seed=1)
    old_bot.experience(old / "exp_20260125_143022_ep1.tmp.npz")
    report = bring(old, run=tmp_path / "run")
    assert [line.result for line in report.lines] == ["failed"] * 3
    assert all("unfinished" in line.reason for line in report.lines)
    assert not (tmp_path / "run").exists()
    model = old_bot.model(old / "rl_agent_model.npz")
    assert [line.path for line in bring(old, run=tmp_path / "run").of("model")] == [model]


def test_an_old_model_can_only_be_the_first_version(tmp_path: Path) -> None:
    bring(old_bot.model(tmp_path / "one.npz"), run=tmp_path / "run")
    (line,) = bring(old_bot.model(tmp_path / "two.npz", seed=1), run=tmp_path / "run").lines
    assert line.result == "failed"
    assert "new run folder" in line.reason
    both = bring(tmp_path / "one.npz", tmp_path / "two.npz", run=tmp_path / "other")
    assert ["one of 2 models" in line.reason for line in both.lines] == [True, True]


def test_no_model_comes_in_while_a_learner_works(tmp_path: Path) -> None:
    good = old_bot.experience(tmp_path / "exp.npz")
    bring(good, run=tmp_path / "run")
    with learner_lock(tmp_path / "run"):
        more = old_bot.experience(tmp_path / "more.npz", seed=1)
        report = bring(old_bot.model(tmp_path / "m.npz"), more, run=tmp_path / "run")
    assert "another learner works" in report.of("failed")[0].reason
    assert len(report.of("experience")) == 1
    assert RunFolder.load(tmp_path / "run", CLOCK).versions.numbers() == []


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"W1": np.zeros((50, 64))}, "W1"),
        ({"b2": np.full(64, np.inf)}, "finite"),
        ({"episode_count": np.zeros(2)}, "episode_count"),
        ({"W3": None}, "no W3"),
    ],
)
def test_a_model_that_does_not_fit_is_refused(
    tmp_path: Path, change: dict[str, Any], word: str
) -> None:
    with np.load(old_bot.model(tmp_path / "good.npz")) as good:
        arrays = {**good, **change}
    np.savez(tmp_path / "bad.npz", **{k: v for k, v in arrays.items() if v is not None})
    (line,) = bring(tmp_path / "bad.npz", run=tmp_path / "run").lines
    assert line.result == "failed"
    assert word in line.reason


def test_the_learner_learns_from_imports_whenever_it_comes(tmp_path: Path) -> None:
    """Ingested, archived, and the action that earned more is likelier; an hour later, too."""
    run = tmp_path / "run"
    config = with_values(
        Config(),
        {
            "learner.gamma": 0.0,
            "learner.imitation": "advantage",
            "learner.publish_interval_s": 0.0,
            "learner.max_age_s": 1e-9,
        },
    )
    RunFolder.open(run, spec=models.spec(), config=config, clock=CLOCK)
    for index in range(40):
        old_bot.experience(tmp_path / "data" / f"exp_20260125_143022_ep{index}.npz", seed=index)
    bring(tmp_path / "data", run=run)
    learn(run)
    folder = RunFolder.load(run, CLOCK)
    assert counts(run) == (0, 40, 0)
    ingested = [
        key for n in folder.versions.numbers() for key in folder.versions.manifest(n).ingested
    ]
    assert len(ingested) == len(set(ingested)) == 40
    head = folder.versions.head()
    assert head is not None
    states = np.random.default_rng(99).random((200, 15))
    likely = policy_probabilities(folder.versions.policy(head), states).mean(0)
    assert likely[3] > 0.3
    assert likely[3] > 1.5 * np.delete(likely, 3).max()
