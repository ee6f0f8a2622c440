"""Who plays in each mode, who may take over, and what a bot is told about it."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from walk.toys import SetClock

from understudy import Understudy
from understudy.core.clock import SystemClock
from understudy.core.errors import ConfigError, InputError, RunFolderError
from understudy.gates.promotion.records import Assigned, Declared, Ordered, Resolved
from understudy.promotion.log import PromotionLog
from understudy.promotion.promotion import Promotion
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import Versions
from understudy.telemetry import events as ev
from understudy.telemetry.status_reader import StatusReader

from .minds import REMEMBERING, auto, episodes, journal, lively, mind, publish, tried


def records(root: Path, kind: type[Any]) -> list[Any]:
    return [one for _, one in PromotionLog(root / "promotion").new() if isinstance(one, kind)]


def endings(root: Path) -> list[tuple[str, float]]:
    return [(one.ending, one.result) for one in records(root, Resolved)]


def play(bot: Understudy, outcome: str = "victory", *, decisions: int = 3) -> tuple[str, int]:
    """One match; returns who played it."""
    with bot.match(opponent="Terran") as match:
        for step in range(decisions):
            match.decide([step, 1.0], fallback="left")
        match.finish(outcome)
    return match.role, match.version


# --- auto ----------------------------------------------------------------------------------------


def test_in_auto_the_rules_play_and_the_newest_version_is_measured(tmp_path: Path) -> None:
    with auto(tmp_path, first_matches=1000) as bot:
        publish(bot.folder, 1, champion=False)
        bot.refresh()
        assert bot.mode == "auto"
        assert play(bot) == ("rules", 0)
    (episode,) = episodes(tmp_path)
    assert not episode.sampled.any() and (episode.versions == 1).all() and episode.values.all()
    (assigned,) = records(tmp_path, Assigned)
    assert (assigned.version, assigned.stratum) == (0, "opponent=Terran")
    assert endings(tmp_path) == [("finished", 1.0)]
    (finished,) = (one for one in journal(tmp_path) if isinstance(one, ev.MatchFinished))
    assert (finished.role, finished.fallback, finished.id) == ("rules", 3, assigned.match)


def test_a_canary_plays_whole_matches_and_nothing_replaces_it_within_one(tmp_path: Path) -> None:
    with auto(tmp_path) as bot:
        tried(bot, 1)
        with bot.match() as match:
            assert (match.role, match.version) == ("canary", 1)
            match.decide([1, 2], fallback="left")
            publish(bot.folder, 2, champion=False)
            assert bot.refresh() == 2
            match.decide([1, 2], fallback="left")
            match.finish("defeat")
    (episode,) = episodes(tmp_path)
    assert episode.sampled.all() and episode.versions.tolist() == [1, 1]
    assert endings(tmp_path) == [("finished", 0.0)]


@pytest.mark.parametrize("who", ["rules", "canary"])
def test_in_auto_every_match_needs_a_fallback(tmp_path: Path, who: str) -> None:
    with auto(tmp_path) as bot:
        if who == "canary":
            tried(bot, 1)
        with bot.match() as match:
            assert match.role == who
            with pytest.raises(InputError, match="mode 'auto' needs fallback="):
                match.decide([1, 2])
            assert match.decisions == 0
            match.decide([1, 2], fallback="left")
            with pytest.raises(InputError, match="mode 'auto' needs fallback="):
                match.decide([1, 2])
            match.finish("tie")
    assert endings(tmp_path) == [("finished", 0.5)]


def test_a_better_version_takes_over_beside_a_holdout_and_the_console_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with auto(tmp_path, alpha=0.9, first_share=0.5, share=0.5, holdout=0.5) as bot:
        tried(bot, 1)
        while bot.folder.pointers.read("champion").version == 0:  # type: ignore[union-attr]
            with bot.match() as match:
                match.decide([1, 2], fallback="left")
                match.finish("victory" if match.role == "canary" else "defeat")
        roles = {play(bot) for _ in range(20)}
    assert roles == {("champion", 1), ("holdout", 0)}
    said = capsys.readouterr().err
    assert said.count("understudy: version 1 is tried: a test tries it\n") == 1
    assert said.count("understudy: version 1 plays from now on: ") == 1
    changes = [one for one in journal(tmp_path) if isinstance(one, ev.RoleChanged)]
    assert [(one.version, one.kind) for one in changes] == [(1, "promoted")]
    with auto(tmp_path, alpha=0.9, holdout=0.5):
        pass
    assert "plays from now on" not in capsys.readouterr().err, "it is no news"


def test_a_match_reads_no_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They were read when roles changed, off the path of the game."""
    with auto(tmp_path) as bot:
        tried(bot, 1)
        publish(bot.folder, 2, champion=False)
        bot.refresh()

        def read(self: Versions, number: int) -> None:
            raise AssertionError("a large network takes long to read")

        with monkeypatch.context() as patch:
            patch.setattr(Versions, "policy", read)
            assert play(bot) == ("canary", 1)


def test_versions_that_play_no_longer_are_dropped(tmp_path: Path) -> None:
    with auto(tmp_path) as bot:
        tried(bot, 1)
        publish(bot.folder, 2, champion=False)
        bot.refresh()
        assert bot._roster is not None and list(bot._roster._policies) == [1]
        Promotion(bot.folder).order(Ordered(order="stop", version=1))
        bot.refresh()
        assert bot._roster._policies == {}
        assert play(bot) == ("rules", 0)


def test_a_version_that_cannot_be_loaded_loses_its_matches_and_the_rules_play(
    tmp_path: Path,
) -> None:
    with auto(tmp_path) as bot:
        tried(bot, 1)
        publish(bot.folder, 2, champion=False)
        weights = bot.folder.versions.folder(1) / "weights.npz"
        weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    with auto(tmp_path) as bot, bot.match() as match:
        assert (match.role, match.version) == ("canary", 1)
        assert match.decide([1, 2], fallback="wait") == "wait"
        match.finish("victory")
    assert endings(tmp_path) == [("fault", 0.0)]
    (resolved,) = records(tmp_path, Resolved)
    assert "cannot be loaded" in resolved.words and "checksum" in resolved.words
    (episode,) = episodes(tmp_path)
    assert episode.meta.outcome == "victory" and not episode.sampled.any()


def test_a_version_that_cannot_be_loaded_is_not_read_at_every_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, read = SetClock(), list[int]()

    def broken(self: Versions, number: int) -> None:
        read.append(number)
        raise RunFolderError("a large network that is damaged")

    with auto(tmp_path, clock=clock) as bot:
        bot._watcher.stop()
        tried(bot, 1)
        publish(bot.folder, 2, champion=False)
        bot.refresh()
        with monkeypatch.context() as patch:
            patch.setattr(Versions, "policy", broken)
            bot._roster._policies.clear()  # type: ignore[union-attr]
            for _ in range(5):
                bot._roster.follow()  # type: ignore[union-attr]
            assert read == [1]
            clock.advance(5.0)
            for _ in range(5):
                bot._roster.follow()  # type: ignore[union-attr]
            assert read == [1, 1]
        clock.advance(5.0)
        bot.refresh()
        assert play(bot) == ("canary", 1)
        assert endings(tmp_path) == [("finished", 1.0)], "it is whole again"


def test_a_pinned_champion_plays_every_match_until_it_is_released(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with auto(tmp_path) as bot:
        publish(bot.folder, 5, champion=False)
        tried(bot, 6)
        bot.folder.pointers.pin("champion", 5, by="rollback")
        bot.refresh()
        assert [play(bot) for _ in range(3)] == [("champion", 5)] * 3
        bot.folder.pointers.pin("champion", 0, by="rollback")
        bot.refresh()
        assert play(bot) == ("rules", 0)
        bot.folder.pointers.release("champion")
        bot.refresh()
        assert play(bot) == ("canary", 6)
    said = capsys.readouterr().err
    assert said.count("version 5 plays every match: pinned") == 1
    assert said.count("the rules play every match: pinned") == 1
    assert said.count("evidence decides who plays: at present the rules play") == 1


def test_policy_latest_plays_the_newest_version_untested_and_says_so_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with auto(tmp_path, policy="latest") as bot:
        assert play(bot) == ("rules", 0)
        for number in (1, 2):
            publish(bot.folder, number, champion=False)
            bot.refresh()
            assert play(bot) == ("newest", number)
    assert capsys.readouterr().err.count("untested: promotion.policy is 'latest'") == 1


def test_bots_with_other_rules_do_not_count_as_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with mind(tmp_path, mode="auto", rules="v1") as old:
        play(old)
        with mind(tmp_path, mode="auto", rules="v2") as new:
            old.refresh()
            assert play(old) == ("rules", 0)
            play(new)
    said = capsys.readouterr().err
    assert said.count("rules 'v2' and score None instead of 'v1' and None") == 1
    assert said.count("another bot of this run declared rules 'v2'") == 1
    assert len(records(tmp_path, Assigned)) == len(records(tmp_path, Resolved)) == 2
    assert len(episodes(tmp_path)) == 3, "all are learned from"


@pytest.mark.parametrize("made", ["learn", "train"])
def test_shadow_leaves_the_champion_of_learning_alone_and_auto_says_that_it_sets_it_aside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], made: str
) -> None:
    def champion() -> int:
        with mind(tmp_path, mode="play") as bot:
            return bot.version

    with mind(tmp_path) as bot:
        publish(bot.folder, 3, mode=made)
        bot.folder.pointers.move("champion", 3, by="latest")
    with mind(tmp_path, mode="shadow") as bot:
        assert play(bot) == ("rules", 0)
    assert champion() == 3 and not bot.folder.by_evidence
    bot.folder.pointers.pin("champion", 3, by="rollback")
    mind(tmp_path, mode="shadow").close()
    assert not bot.folder.by_evidence
    bot.folder.pointers.release("champion")
    assert "without evidence" not in capsys.readouterr().err
    for _ in range(2):
        mind(tmp_path, mode="auto").close()
        assert champion() == 0
    said = "version 3 was the champion without evidence; the rules play until a version is better"
    assert capsys.readouterr().err.count(said) == 1


def test_shadow_declares_where_versions_learned_from_the_rules(tmp_path: Path) -> None:
    with mind(tmp_path) as bot:
        publish(bot.folder, 3, mode="shadow")
        bot.folder.pointers.move("champion", 3, by="latest")
    mind(tmp_path, mode="shadow").close()
    champion = bot.folder.pointers.read("champion")
    assert champion is not None and (champion.version, champion.by) == (0, "promotion")


def test_a_test_by_a_simulator_ends_where_a_bot_is_judged_by_its_matches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with mind(tmp_path, mode="shadow") as bot:
        publish(bot.folder, 1, champion=False)
        assert Promotion(bot.folder).nominate(1, experience=0, reason="a test", simulator=True)
    for _ in range(2):
        with auto(tmp_path) as bot:
            assert bot.promotion is not None and bot.promotion.state.test is None
    words = "from now on versions are tested by the matches that are played"
    assert capsys.readouterr().err.count(words) == 1
    assert [(one.order, one.words) for one in records(tmp_path, Ordered)] == [("stop", words)]


def test_a_bot_has_no_simulator(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"promotion\.evidence: expected 'matches'.* train"):
        auto(tmp_path / "run", evidence="simulator")
    assert not (tmp_path / "run").exists()
    with mind(tmp_path / "run", mode="learn", settings={"promotion.evidence": "simulator"}):
        pass
    with pytest.raises(ConfigError, match=r"settings=\{'promotion.evidence': 'matches'\}"):
        mind(tmp_path / "run", mode="auto")
    with mind(tmp_path / "run", mode="auto", settings={"promotion.evidence": "matches"}):
        pass


def test_what_is_declared_is_in_the_log(tmp_path: Path) -> None:
    for changes in ({}, {"rules": "v2"}, {"rules": "v2", "score": (0, 100)}):
        mind(tmp_path, mode="shadow", **changes).close()
    declared = [(one.rules, one.score) for one in records(tmp_path, Declared)]
    assert declared == [("", None), ("v2", None), ("v2", (0.0, 100.0))]


# --- what ends -----------------------------------------------------------------------------------

CHILD = """
import sys, time
from understudy import Understudy
mind = Understudy.open(sys.argv[1], features=["a"], actions=["x", "y"], mode="auto", learner="off")
unplayed = mind.match()
forgotten = mind.match()
forgotten.decide([1.0], fallback="x")
with mind.match() as match:
    match.decide([1.0], fallback="x")
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_sigterm_leaves_no_match_without_a_result(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CHILD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        child.send_signal(signal.SIGTERM)
        assert child.wait(20) == 143
    resolved = {one.order: one.ending for one in records(tmp_path, Resolved)}
    assert [resolved[order] for order in sorted(resolved)] == ["void", "aborted", "aborted"]


def test_a_match_without_a_decision_counts_for_no_arm(tmp_path: Path) -> None:
    with auto(tmp_path) as bot:
        tried(bot, 1)
        with bot.match():
            pass
        with bot.match() as match:
            assert match.finish("victory") is True
    assert endings(tmp_path) == [("void", 0.0)] * 2 and episodes(tmp_path) == []


def test_a_match_that_is_dropped_without_a_decision_holds_up_nothing(tmp_path: Path) -> None:
    with auto(tmp_path) as bot:
        for _ in range(3):
            bot.match(opponent="Terran")  # the game did not start
        assert play(bot) == ("rules", 0)
        assert endings(tmp_path) == [("void", 0.0)] * 3 + [("finished", 1.0)]
        assert bot.promotion is not None and bot.promotion.state.records[0].matches == 1
        bot.match()
        bot.refresh()
        assert endings(tmp_path)[-1] == ("void", 0.0), "without another match"
        held = bot.match()
        held.decide([1, 2], fallback="left")
        del held
        gc.collect()
        assert len(records(tmp_path, Assigned)) - len(endings(tmp_path)) == 1, "it has a decision"


def test_a_bot_that_closes_voids_what_is_undecided_and_it_can_still_be_learned_from(
    tmp_path: Path,
) -> None:
    bot = auto(tmp_path)
    match = bot.match()
    bot.close()
    assert endings(tmp_path) == [("void", 0.0)]
    match.decide([1, 2], fallback="left")
    match.finish("victory")
    assert endings(tmp_path) == [("void", 0.0)], "it has its result"
    assert len(episodes(tmp_path)) == 1


# --- results -------------------------------------------------------------------------------------


def test_rules_and_scale_that_are_left_out_are_those_of_the_run(tmp_path: Path) -> None:
    with mind(tmp_path, mode="auto", rules="v2", score=(0, 10)):
        pass
    with mind(tmp_path, mode="auto") as bot, bot.match() as match:
        match.decide([0, 1], fallback="left")
        match.finish("defeat", score=5)
        assert bot.score == (0.0, 10.0) and match.result == 0.5
    assert [(one.rules, one.score) for one in records(tmp_path, Declared)] == [("v2", (0, 10))]


def test_a_score_is_judged_on_its_scale(tmp_path: Path) -> None:
    with mind(tmp_path, mode="auto", score=(-10, 30)) as bot:
        for outcome, score in (("victory", 30.0), ("defeat", 0), ("tie", -10), ("aborted", None)):
            with bot.match() as match:
                match.decide([1, 2], fallback="left")
                match.finish(outcome, score=score)
                assert match.result == (0.0 if score is None else (score + 10) / 40)
    assert endings(tmp_path) == [
        ("finished", 1.0), ("finished", 0.25), ("finished", 0.0), ("aborted", 0.0)
    ]  # fmt: skip
    rewards = [float(one.rewards[-1]) for one in episodes(tmp_path)]
    assert rewards == [10.0, -5.0, 0.0, 0.0], "a score is not a reward"


@pytest.mark.parametrize(
    ("scale", "score", "expected"),
    [
        (None, 0.5, r"score=0.5 has no scale.*open\(..., score=\(low, high\)\)"),
        ((0, 1), None, "expected score=, a number between 0 and 1"),
        ((0, 1), "1", "score: expected a number, got '1'"),
        ((0, 1), 1.5, "1.5 is not between 0 and 1"),
        ((0, 1), -0.01, "-0.01 is not between 0 and 1"),
        ((0, 1), float("nan"), "nan is not between 0 and 1"),
        ((0, 1), float("inf"), "inf is not between 0 and 1"),
        ((0, 1), "high", "expected a number, got 'high'"),
    ],
)
def test_a_score_that_cannot_be_is_an_error_and_costs_nothing(
    tmp_path: Path, scale: tuple[float, float] | None, score: Any, expected: str
) -> None:
    with mind(tmp_path, mode="auto", score=scale) as bot, bot.match() as match:
        match.decide([1, 2], fallback="left")
        with pytest.raises(InputError, match=f"finish: .*{expected}"):
            match.finish("victory", score=score)
        assert match.outcome is None
        match.decide([1, 2], fallback="left")
        match.finish("victory", score=None if scale is None else 1.0)
    assert endings(tmp_path) == [("finished", 1.0)] and len(episodes(tmp_path)[0]) == 2


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"score": (1, 0)}, r"score: expected two finite numbers, low < high, got \(1, 0\)"),
        ({"score": (0, float("inf"))}, "score: expected two finite numbers"),
        ({"score": 5}, r"score: expected \(low, high\).*got 5"),
        ({"score": (1, 2, 3)}, r"score: expected \(low, high\)"),
        ({"score": ("a", "b")}, r"score: expected \(low, high\)"),
        ({"rules": 2}, "rules: expected a name of at most 200 characters, such as 'v2', got '2'"),
        ({"rules": "x" * 201}, "rules: expected a name of at most 200"),
    ],
)
def test_a_scale_or_a_name_that_cannot_be_is_an_error_at_once(
    tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    with pytest.raises(InputError, match=expected):
        mind(tmp_path / "run", **changes)
    assert not (tmp_path / "run").exists()


# --- play ----------------------------------------------------------------------------------------


def test_in_play_the_champion_plays_and_nothing_is_recorded(tmp_path: Path) -> None:
    with mind(tmp_path) as bot:
        publish(bot.folder, 1)
    with mind(tmp_path, mode="play", learner="process") as bot:
        assert bot._learner is None
        with bot.match() as match:
            assert (match.role, match.version) == ("champion", 1)
            taken = {match.decide([1, 2]) for _ in range(100)}
            assert match.last.sampled and match.last.version == 1
            publish(bot.folder, 2)
            bot.refresh()
            match.decide([1, 2])
            assert match.last.version == 1, "swapped between matches"
            assert match.finish("victory") is True
        assert len(taken) > 1, "drawn"
        with bot.match() as match:
            assert match.version == 2
    assert episodes(tmp_path) == [] and not (tmp_path / "promotion").exists()
    status = StatusReader(tmp_path, SystemClock()).read()
    assert (status.matches, status.wins, status.unsaved, status.episodes.written) == (1, 1, 0, 0)


@pytest.mark.parametrize("network", [None, REMEMBERING])
def test_in_play_the_likeliest_action_can_be_chosen(tmp_path: Path, network: Any) -> None:
    changes = {} if network is None else {"network": network}
    with mind(tmp_path, **changes) as bot:
        publish(bot.folder, 1)
    with mind(tmp_path, mode="play", choose="likeliest", **changes) as bot:
        memory = bot.policy.begin()
        with bot.match() as match:
            for step in range(20):
                seen = np.array([[step, 1.0]], np.float32)
                choice = bot.policy.act(seen, memory)
                memory = choice.memory
                assert match.decide(seen[0]) == bot.spec.actions.names[choice.actions[0, 0]]  # type: ignore[union-attr]
                assert match.last.probability == pytest.approx(float(np.exp(choice.log_probs[0])))


def test_in_play_without_a_champion_the_rules_play(tmp_path: Path) -> None:
    with mind(tmp_path, mode="play") as bot:
        with bot.match() as match:
            assert (match.role, match.version) == ("rules", 0)
            with pytest.raises(InputError, match=r"needs fallback=.* while there is no champion"):
                match.decide([1, 2])
            assert match.decide([1, 2], fallback="wait") == "wait"
        publish(bot.folder, 1)
        bot.refresh()
        assert play(bot) == ("champion", 1)
        bot.folder.pointers.move("champion", 0, by="promotion")  # rolled back to the rules
        bot.refresh()
        assert play(bot) == ("rules", 0)


@pytest.mark.parametrize("mode", ["shadow", "auto", "learn"])
def test_only_play_takes_a_way_to_choose(tmp_path: Path, mode: str) -> None:
    with pytest.raises(ConfigError, match=f"choose: .* only with mode 'play'; mode '{mode}'"):
        mind(tmp_path / "run", mode=mode, choose="likeliest")
    with pytest.raises(ConfigError, match=r"choose: expected one of .*'likliest'.*'likeliest'"):
        mind(tmp_path / "run", mode="play", choose="likliest")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("mode", "role"), [("shadow", "rules"), ("learn", "newest")])
def test_a_bot_can_see_who_plays(tmp_path: Path, mode: str, role: str) -> None:
    with mind(tmp_path, mode=mode) as bot:
        publish(bot.folder, 3, champion=False, weights=lively(bot.folder, 3))
        bot.folder.pointers.move("champion", 3, by="test")
        bot.refresh()
        assert play(bot) == (role, 3 if mode == "learn" else 0)


def test_a_run_of_evidence_can_be_opened_to_learn(tmp_path: Path) -> None:
    """There the newest version plays, whatever the champion is."""
    with mind(tmp_path, mode="shadow") as bot:
        publish(bot.folder, 1, champion=False)
    with mind(tmp_path, mode="learn") as bot:
        assert bot.version == 1
    folder = RunFolder.load(tmp_path, SystemClock())
    champion = folder.pointers.read("champion")
    assert champion is not None and champion.version == 0
