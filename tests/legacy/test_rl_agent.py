"""The old bot's API: everything that was broken in it, proved to be otherwise."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from legacy import old_bot
from understudy import Config
from understudy.bot.outbox import Outbox
from understudy.core.clock import SystemClock
from understudy.core.config import with_values
from understudy.core.errors import FileFormatError, InputError, RunFolderError
from understudy.experience.episode import Episode, Outcome
from understudy.experience.spool import Spool
from understudy.gates.promotion.records import Ordered
from understudy.legacy.rl_agent import RLAgent, run_folder
from understudy.promotion.promotion import Promotion
from understudy.registry.run_folder import RunFolder

QUIET = with_values(
    Config(),
    {
        "learner.niceness": 0,
        "learner.publish_interval_s": 0.0,
        "learner.gather_s": 0.05,
        "report.status_every_s": 0.0,
        "report.statistics_every_matches": 0,
    },
)
STATE = np.linspace(0.0, 1.0, 15)


@pytest.fixture
def model_path(tmp_path: Path) -> Path:
    return tmp_path / "local_training" / "models" / "rl_agent_model.npz"


@pytest.fixture
def agent(model_path: Path) -> Iterator[RLAgent]:
    with RLAgent(model_path=model_path, learner="off", config=QUIET, seed=1) as one:
        yield one


def kept(model_path: Path) -> list[Episode]:
    root = run_folder(model_path)
    spool = Spool(root, RunFolder.load(root, SystemClock()).spec, SystemClock())
    return [spool.load(name) for name in spool.pending()]


def test_rewards_belong_to_the_decision_before_them(agent: RLAgent, model_path: Path) -> None:
    agent.update_reward(100.0)  # before the first decision: nobody's
    taken = []
    for step in range(4):
        index, label, probability = agent.get_action(STATE)
        assert label == agent.action_labels[index]
        assert 0.0 < probability <= 1.0
        taken.append(index)
        agent.update_reward(float(step))
        agent.update_reward(0.5)
    summary = agent.end_episode(final_reward=10.0)
    assert summary["steps"] == 4
    assert summary["episode_return"] == 18.0
    assert summary["avg_reward"] == 4.5
    (episode,) = kept(model_path)
    assert episode.rewards.tolist() == [0.5, 1.5, 2.5, 13.5]
    assert episode.actions[:, 0].tolist() == taken
    assert episode.sampled.all()
    assert episode.meta.outcome is Outcome.VICTORY
    agent.get_action(STATE)
    agent.end_episode()
    assert kept(model_path)[1].rewards.tolist() == [0.0]  # nothing leaks into the next match


def test_a_signal_inside_end_episode_costs_nothing(
    agent: RLAgent, model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: Outbox, episode: Episode) -> bool:
        raise SystemExit(143)

    agent.get_action(STATE)
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(Outbox, "put", interrupted)
        agent.end_episode(10.0)
    agent.close()
    (episode,) = kept(model_path)
    assert episode.meta.outcome is Outcome.VICTORY
    assert episode.rewards.tolist() == [10.0]


@pytest.mark.parametrize(("final", "outcome"), [(10.0, "victory"), (-5.0, "defeat"), (0.0, "tie")])
def test_the_final_reward_tells_the_result(
    agent: RLAgent, model_path: Path, final: float, outcome: str
) -> None:
    agent.get_action(STATE)
    agent.end_episode(final_reward=final, save_experience=False)
    (episode,) = kept(model_path)
    assert episode.meta.outcome == outcome
    assert episode.rewards.tolist() == [final]


def test_the_probability_is_that_of_the_action(agent: RLAgent, model_path: Path) -> None:
    assert agent.save_model()
    expected = old_bot.probabilities(model_path, STATE)
    for _ in range(20):
        index, _, probability = agent.get_action(STATE)
        assert probability == pytest.approx(expected[index], abs=1e-5)


def test_without_training_it_is_the_favourite_and_nothing_is_kept(
    agent: RLAgent, model_path: Path
) -> None:
    agent.save_model()
    favourite = int(old_bot.probabilities(model_path, STATE).argmax())
    for _ in range(10):
        assert agent.get_action(STATE, training=False)[0] == favourite
        agent.update_reward(1.0)
    assert agent.end_episode(1.0)["steps"] == 0
    assert kept(model_path) == []
    assert agent.episode_count == 0
    with pytest.raises(InputError, match="15 finite"):
        agent.get_action(STATE[:3], training=False)


def test_save_model_writes_what_the_old_code_reads(agent: RLAgent, model_path: Path) -> None:
    assert not model_path.exists()
    assert agent.save_model() is True
    with np.load(model_path) as old:
        shapes = {name: old[name].shape for name in old.files}
    assert shapes == {
        "W1": (15, 64), "b1": (64,), "W2": (64, 64), "b2": (64,), "W3": (64, 5), "b3": (5,),
        "baseline": (1,), "episode_count": (1,),
    }  # fmt: skip
    assert agent.save_model(model_path.parent / "new" / "backup.npz") is True
    blocked = model_path.parent / "file"
    blocked.write_text("in the way")
    assert agent.save_model(blocked / "model.npz") is False


def test_a_match_saved_as_an_old_file_reads_back_and_is_not_learned_from_twice(
    agent: RLAgent, model_path: Path, tmp_path: Path
) -> None:
    path = tmp_path / "buffer" / "game_20260125_143022_Victory.npz"
    assert agent.save_experience_data(path) is False  # nothing to save
    assert not path.exists()
    for step in range(3):
        agent.get_action(STATE * step)
        agent.update_reward(step)
    agent.end_episode(10.0)
    assert agent.save_experience_data(path) is True  # after the end, as the old bot did it
    with np.load(path) as old:
        assert old["states"].shape == (3, 15)
        assert old["actions"].dtype == np.int64
        assert old["rewards"].tolist() == [0.0, 1.0, 12.0]
        report = agent.train_from_batch([old])
    assert (report["games"], report["skipped"]) == (0, 1)
    assert len(kept(model_path)) == 1


def test_a_batch_is_handed_to_the_learner_once(
    agent: RLAgent, model_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    batch = []
    for seed in range(3):
        with np.load(old_bot.experience(tmp_path / f"{seed}.npz", seed=seed)) as old:
            batch.append(dict(old))
    bad = {**batch[0], "actions": np.full(20, 9)}
    report = agent.train_from_batch([*batch, bad, {"states": STATE}])
    assert report == {"loss": 0.0, "steps": 60, "games": 3, "skipped": 0, "rejected": 2}
    assert "outside 0 to 4" in capsys.readouterr().err
    for _ in range(3):  # the old learner trained on the same files 210 times in 3 s
        assert agent.train_from_batch(batch)["skipped"] == 3
    episodes = kept(model_path)
    assert len(episodes) == 3
    assert not any(episode.sampled.any() for episode in episodes)


def test_a_run_that_takes_no_more_imports_says_so_and_learns_from_no_copy(
    model_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = with_values(QUIET, {"retention.imported_files": 1})
    paths = [tmp_path / f"game_{number}_Victory.npz" for number in range(3)]
    with RLAgent(model_path=model_path, learner="off", config=config, seed=1) as agent:
        for number, path in enumerate(paths):
            agent.get_action(STATE * number)
            agent.end_episode(10.0)
            assert agent.save_experience_data(path)
        told = capsys.readouterr().err
        assert told.count("retention.imported_files") == 1 and str(paths[1]) in told
        copies = [dict(np.load(path)) for path in paths]
        report = agent.train_from_batch(copies)
        assert (report["games"], report["skipped"], report["rejected"]) == (0, 1, 2)
        assert capsys.readouterr().err.count("takes no more (retention.imported_files)") == 2
    assert len(kept(model_path)) == 3, "the matches, and no copy"


def test_counters_survive_a_restart(model_path: Path) -> None:
    options = {"model_path": model_path, "learner": "off", "config": QUIET}
    with RLAgent(**options) as first:  # type: ignore[arg-type]
        for _ in range(3):
            first.get_action(STATE)
            last = first.end_episode(1.0)
        assert last["episode"] == 2
        before = first.get_stats()
    with RLAgent(**options) as second:  # type: ignore[arg-type]
        assert second.get_stats() == before
        assert second.epsilon == last["epsilon"] > 0.5
        second.get_action(STATE)
        assert second.end_episode(0.0)["episode"] == 3
        assert second.save_model()
    with np.load(model_path) as old:
        assert old["episode_count"].tolist() == [4]
        assert old["baseline"][0] == pytest.approx(before["baseline"] * 0.95)


def test_an_old_model_is_where_it_begins(model_path: Path) -> None:
    old_bot.model(model_path)
    expected = old_bot.probabilities(model_path, STATE)
    with RLAgent(model_path=model_path, learner="off", config=QUIET) as agent:
        index, _, probability = agent.get_action(STATE, training=False)
        assert index == expected.argmax()
        assert probability == pytest.approx(expected.max(), abs=1e-4)
        stats = agent.get_stats()
        assert (stats["version"], stats["episode_count"], stats["baseline"]) == (1, 41, -3.5)
        assert agent.save_model()
    assert np.allclose(old_bot.probabilities(model_path, STATE), expected, atol=1e-5)


def test_a_damaged_model_is_said_before_the_first_match(model_path: Path) -> None:
    model_path.parent.mkdir(parents=True)
    model_path.write_bytes(b"half a fi")
    with pytest.raises(FileFormatError, match="move it away"):
        RLAgent(model_path=model_path, learner="off", config=QUIET)


def test_an_agent_for_every_game_is_one_run(model_path: Path) -> None:
    """The old bot makes an agent a game, and drops it in the middle of one that crashes."""
    options = {"model_path": model_path, "learner": "off", "config": QUIET}
    first, second = RLAgent(**options), RLAgent(**options)  # type: ignore[arg-type]
    first.get_action(STATE)
    second.get_action(STATE)
    second.end_episode(1.0)
    assert first.episode_count == second.episode_count == 1
    del first
    gc.collect()
    assert [one.meta.outcome for one in kept(model_path)] == ["victory", "aborted"]
    with pytest.raises(RunFolderError, match="other actions"):
        RLAgent(**options, state_dim=3)  # type: ignore[arg-type]
    second.close()
    with pytest.raises(InputError, match="closed"):
        second.get_action(STATE)


def test_the_end_of_the_program_keeps_an_unfinished_match(model_path: Path) -> None:
    code = (
        "import sys; from understudy.legacy.rl_agent import RLAgent\n"
        f"agent = RLAgent(model_path={str(model_path)!r}, learner='off')\n"
        "agent.get_action([0.0] * 15); agent.update_reward(2.0)\n"
        "assert not {'jax', 'typer', 'filelock'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    (episode,) = kept(model_path)
    assert episode.meta.outcome is Outcome.ABORTED
    assert episode.rewards.tolist() == [2.0]


def test_another_size_of_state_and_other_labels(tmp_path: Path) -> None:
    with RLAgent(
        model_path=tmp_path / "m.npz", state_dim=3, action_labels=("a", "b"), learner="off"
    ) as agent:
        assert agent.get_action([0.1, 0.2, 0.3])[1] in {"a", "b"}
        with pytest.raises(InputError, match="expected 3 numbers"):
            agent.get_action(STATE)
        assert agent.save_model()
    assert RunFolder.load(tmp_path / "m.run", SystemClock()).spec.features[0] == "state_0"


# --- modes ---------------------------------------------------------------------------------------


def in_mode(model_path: Path, mode: Any, **promotion: Any) -> RLAgent:
    values = {f"promotion.{name}": value for name, value in promotion.items()}
    config = with_values(QUIET, values)
    return RLAgent(model_path=model_path, learner="off", config=config, seed=1, mode=mode)


def one_match(agent: RLAgent, fallback: int | str | None = "TECH", decisions: int = 30) -> set[str]:
    """The labels that were taken."""
    taken = {agent.get_action(STATE, fallback=fallback)[1] for _ in range(decisions)}
    agent.end_episode(10.0)
    return taken


def role_of(agent: RLAgent) -> str | None:
    return agent.role


def test_in_shadow_the_rules_play_and_are_recorded(model_path: Path) -> None:
    with in_mode(model_path, "shadow") as agent:
        assert role_of(agent) is None
        assert agent.get_action(STATE, fallback=2) == (2, agent.action_labels[2], 1.0)
        assert agent.get_action(STATE, fallback=np.int64(3))[0] == 3  # type: ignore[arg-type]
        assert role_of(agent) == "rules"
        agent.update_reward(1.5)
        summary = agent.end_episode(10.0)
        assert (summary["steps"], summary["episode_return"]) == (2, 11.5)
        for wrong in (None, 5, -1, True, "WAIT"):
            with pytest.raises(InputError, match="fallback"):
                agent.get_action(STATE, fallback=wrong)
        with pytest.raises(InputError, match=r"mode .shadow. .*mode=.play."):
            agent.get_action(STATE, training=False, fallback=2)
    (episode,) = kept(model_path)
    assert episode.actions[:, 0].tolist() == [2, 3] and not episode.sampled.any()
    assert episode.meta.outcome is Outcome.VICTORY


def test_in_auto_a_version_plays_once_it_is_promoted_and_in_play_it_goes_on(
    model_path: Path,
) -> None:
    old_bot.model(model_path)  # version 1; the champion of mode learn, without evidence
    with in_mode(model_path, "auto", cameo_share=0.0) as agent:
        assert one_match(agent) == {"TECH"}, "the rules play until it is better"
        folder = RunFolder.load(run_folder(model_path), SystemClock())
        Promotion(folder).order(Ordered(order="approve", version=1))
        agent._shared.mind.refresh()
        for _ in range(20):
            taken = one_match(agent)
            if taken != {"TECH"}:
                break
        assert len(taken) > 1, "the champion draws its own actions"
        with pytest.raises(RunFolderError, match="open in mode 'auto', not in mode 'learn'"):
            RLAgent(model_path=model_path, learner="off")
    episodes = kept(model_path)
    assert not episodes[0].sampled.any() and episodes[-1].sampled.all()
    with in_mode(model_path, "play") as agent:
        assert len(one_match(agent, fallback=None)) > 1
        assert role_of(agent) is None
        agent.get_action(STATE, training=False)
        assert role_of(agent) == "champion"
    assert len(kept(model_path)) == len(episodes), "nothing is recorded"


def test_in_auto_the_newest_version_practises(model_path: Path) -> None:
    """Cameos and practice are those of any bot."""
    old_bot.model(model_path)
    options = {"practice_share": 0.5, "practice_agreement": 1e-9, "cameo_share": 0.2}
    with in_mode(model_path, "auto", **options) as agent:
        roles = []
        for _ in range(40):
            agent.get_action(STATE, fallback="TECH")
            roles.append(agent.role)
            one_match(agent, decisions=29)
        assert set(roles) == {"rules", "practice"}
    episodes = kept(model_path)
    for role, episode in zip(roles, episodes, strict=True):
        assert episode.sampled.all() == (role == "practice")
    assert any(episode.cameos is not None for episode in episodes)


def play(agent: RLAgent, matches: int, good: str) -> None:
    rng = np.random.default_rng(matches)
    for _ in range(matches):
        for _ in range(20):
            _, label, _ = agent.get_action(rng.random(15))
            agent.update_reward(1.0 if label == good else 0.0)
        agent.end_episode()


def test_what_is_rewarded_becomes_likelier_across_a_restart(model_path: Path) -> None:
    """The old policy gradient had the wrong sign, and every game began from random."""
    good = "TECH"
    states = np.random.default_rng(0).random((100, 15))
    likely = [0.2]
    for _ in range(2):
        with RLAgent(0.003, 0.0, model_path, learner="thread", config=QUIET) as agent:
            began = agent.get_stats()["version"]
            deadline = time.monotonic() + 25.0
            while agent.get_stats()["version"] < began + 3 and time.monotonic() < deadline:
                play(agent, 10, good)
                time.sleep(0.02)
            assert agent.get_stats()["version"] > began
            agent.save_model()
        likely.append(float(old_bot.probabilities(model_path, states)[:, 3].mean()))
        assert agent.epsilon < 0.8
    assert likely[0] < likely[1] < likely[2]
    assert likely[2] > 0.5
