"""The bot: nothing that was finished is lost, whatever happens to the game, the disk or the bot."""

from __future__ import annotations

import errno
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from understudy import Config, Discrete, Mlp, MultiDiscrete, Understudy
from understudy.core.clock import SystemClock
from understudy.core.config import with_values
from understudy.core.errors import ConfigError, InputError, RunFolderError
from understudy.experience.spool import Spool
from understudy.live.bot import INSTALL_LINE
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events as ev
from understudy.telemetry.fold import StatusReader

from .minds import episodes, journal, mind, publish

CHILD = """
import sys, time
from understudy import Understudy
with Understudy.open(sys.argv[1], features=["a"], actions=["x", "y"], learner="off") as mind:
    with mind.match() as match:
        match.decide([1.0], fallback="x")
        match.finish("victory")
    with mind.match() as match:
        for step in range(3):
            match.decide([step], fallback="y")
        print("ready", flush=True)
        time.sleep(60)
"""


def play(bot: Understudy, *, decisions: int = 3, outcome: str = "victory", **tags: object) -> None:
    with bot.match(**tags) as match:
        for step in range(decisions):
            match.decide([step, 1.0], fallback="left")
        match.finish(outcome)


# --- opening -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"features": ("a", "a")}, "features: the name 'a' appears twice"),
        ({"features": ()}, "at least one"),
        ({"features": "abc"}, "got one string"),
        ({"features": ("a", 1)}, "features"),
        ({"actions": ("x", "x")}, "actions: the name 'x' appears twice"),
        ({"actions": ("x",)}, "at least 2"),
        ({"actions": ("x", "")}, "empty"),
        ({"actions": "xy"}, "actions: expected a list of names"),
        ({"actions": {"x": print, "y": None}}, "actions: 'y' is mapped to nothing"),
    ],
)
def test_a_declaration_that_cannot_work_is_an_error_at_once(
    tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    with pytest.raises(InputError, match=expected):
        mind(tmp_path / "run", **changes)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"mode": "lern"}, "mode: .*'lern'.*'learn'"),
        ({"learner": "proces"}, "learner: .*'process'"),
    ],
)
def test_a_wrong_option_names_the_nearest(
    tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ConfigError, match=expected):
        mind(tmp_path, **changes)


def test_actions_mapped_to_what_they_do(tmp_path: Path) -> None:
    with mind(tmp_path, actions={"x": print, "y": len}) as bot:
        assert bot.spec.actions == Discrete(("x", "y"))


def test_a_run_folder_is_for_one_kind_of_bot(tmp_path: Path) -> None:
    mind(tmp_path).close()
    for changes, expected in (
        ({"features": ("minerals", "larvae")}, "features .*'army' at position 1.*'larvae'"),
        ({"features": ("minerals",)}, "features .*2, now there are 1"),
        ({"actions": ("left", "right")}, "actions "),
        ({"network": Mlp((4,))}, "network "),
        ({"game": "swarm 1"}, "game "),
    ):
        with pytest.raises(RunFolderError, match=expected):
            mind(tmp_path, **changes)


def test_a_run_folder_remembers_what_was_declared_loosely(tmp_path: Path) -> None:
    loose: dict[str, Any] = {
        "features": ["a", "b"],
        "actions": MultiDiscrete([2, 3]),  # type: ignore[arg-type]
        "network": Mlp([4]),  # type: ignore[arg-type]
        "config": with_values(Config(), {"learner.gamma": 0.5}),
    }
    mind(tmp_path, **loose).close()
    mind(tmp_path, **loose).close()
    with mind(tmp_path, **{**loose, "network": None, "config": None}) as bot:
        assert bot.spec.network == Mlp((4,))
        assert bot.folder.config.learner.gamma == 0.5


def test_opening_again_plays_the_champion_from_the_first_decision(tmp_path: Path) -> None:
    with mind(tmp_path) as bot:
        publish(bot.folder, 1)
    with mind(tmp_path) as bot:
        assert bot.version == 1
    assert [e.version for e in journal(tmp_path) if isinstance(e, ev.BotStarted)] == [0, 1]


def test_a_run_that_is_continued_with_its_seed_plays_new_matches(tmp_path: Path) -> None:
    """Equal ids would be taken for copies: a whole session would end in quarantine."""
    for _ in range(3):
        with mind(tmp_path, seed=5) as bot:
            play(bot)
    kept = episodes(tmp_path)
    assert len({episode.meta.id for episode in kept}) == 3
    assert len({episode.log_probs.tobytes() for episode in kept}) == 3


def test_the_same_seed_decides_alike_in_another_folder(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with mind(tmp_path / name, seed=5) as bot:
            play(bot, decisions=50)
    one, two = episodes(tmp_path / "a")[0], episodes(tmp_path / "b")[0]
    assert np.array_equal(one.actions, two.actions)
    assert one.meta.id == two.meta.id


# --- losing nothing ----------------------------------------------------------------------------


def test_an_exception_keeps_the_match_as_aborted_and_goes_on_up(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), mind(tmp_path) as bot, bot.match() as match:
        match.decide([1, 2])
        match.reward(0.5)
        raise ZeroDivisionError
    (episode,) = episodes(tmp_path)
    assert episode.meta.outcome == "aborted"
    assert episode.rewards.tolist() == [0.5]
    assert isinstance(journal(tmp_path)[-1], ev.BotStopped)


def test_leaving_without_a_result_is_aborted_and_no_decision_is_no_episode(tmp_path: Path) -> None:
    with mind(tmp_path) as bot:
        with bot.match() as match:
            match.decide([1, 2])
        with bot.match():
            pass
        assert bot.matches == 2
    assert [episode.meta.outcome for episode in episodes(tmp_path)] == ["aborted"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("number", "kept"),
    [(signal.SIGTERM, ["victory", "aborted"]), (signal.SIGKILL, ["victory"])],
)
def test_a_killed_bot_loses_at_most_the_unfinished_match(
    tmp_path: Path, number: int, kept: list[str]
) -> None:
    command = [sys.executable, "-c", CHILD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        child.send_signal(number)
        assert child.wait(20) == (143 if number == signal.SIGTERM else -number)
    assert [episode.meta.outcome for episode in episodes(tmp_path)] == kept
    assert len(episodes(tmp_path)[-1]) == (3 if len(kept) == 2 else 1)


def test_sigterm_is_left_alone_where_a_bot_has_its_own_idea(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with mind(tmp_path):
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)
    with mind(tmp_path):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


def full(self: Spool, episode: object) -> str:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_said_and_play_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with mind(tmp_path) as bot:
        with monkeypatch.context() as patch:
            patch.setattr(Spool, "put", full)
            for _ in range(2):
                with bot.match() as match:
                    match.decide([1, 2])
                    assert match.finish("victory") is False
        assert "No space left" in capsys.readouterr().err
        assert episodes(tmp_path) == []
        play(bot, outcome="defeat")
    assert [one.meta.outcome for one in episodes(tmp_path)] == ["victory", "victory", "defeat"]


def test_matches_that_could_never_be_saved_are_an_error_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Spool, "put", full)
    bot = mind(tmp_path)
    play(bot)
    with pytest.raises(RunFolderError, match="1 matches could not be saved"):
        bot.close()
    assert journal(tmp_path)[-1] == ev.BotStopped(matches=1, unsaved=1)


def test_matches_side_by_side_in_threads_are_all_kept_once(tmp_path: Path) -> None:
    with mind(tmp_path) as bot:

        def several(name: int) -> None:
            for number in range(10):
                play(bot, decisions=5, opponent=f"{name}-{number}")

        threads = [threading.Thread(target=several, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert bot.matches == 40
    kept = episodes(tmp_path)
    assert len({episode.meta.tags["opponent"] for episode in kept}) == len(kept) == 40
    assert len({episode.meta.id for episode in kept}) == 40


def test_two_matches_at_once_do_not_mix(tmp_path: Path) -> None:
    with mind(tmp_path) as bot, bot.match() as one, bot.match() as two:
        for step in range(4):
            one.decide([step, 1])
            one.reward(1.0)
            if step % 2:
                two.decide([step, 2])
                two.reward(2.0)
        two.finish("tie")
        one.finish("tie")
    second, first = episodes(tmp_path)
    assert (len(first), len(second)) == (4, 2)
    assert first.rewards.tolist() == [1.0] * 4 and second.rewards.tolist() == [2.0] * 2


def test_tags_are_data_and_never_cost_a_match(tmp_path: Path) -> None:
    odd: dict[str, Any] = {"opponent": "../../etc\x00\x1b[31m", "map": "\ud800 broken", "number": 7}
    with mind(tmp_path) as bot:
        play(bot, **odd)
        with pytest.raises(InputError, match="'opponent' is longer than 200"):
            bot.match(opponent="x" * 201)
    (episode,) = episodes(tmp_path)
    assert episode.meta.tags["opponent"] == odd["opponent"]
    assert episode.meta.tags["map"] == "\\ud800 broken"
    assert episode.meta.tags["number"] == "7"
    assert "etc" not in "".join(path.name for path in tmp_path.rglob("*"))


# --- what it says ------------------------------------------------------------------------------


def test_the_journal_tells_the_story(tmp_path: Path) -> None:
    with mind(tmp_path, mode="shadow") as bot:
        play(bot, decisions=5, opponent="Zerg")
        publish(bot.folder, 1)
        bot.refresh()
    told = journal(tmp_path)
    kinds = [type(event).__name__ for event in told]
    assert kinds == ["BotStarted", "MatchFinished", "VersionAdopted", "BotStopped"]
    finished = told[1]
    assert isinstance(finished, ev.MatchFinished)
    assert finished.saved and finished.decisions == finished.fallback == 5
    assert 0 <= finished.agreed <= 5
    assert finished.tags == {"opponent": "Zerg"}
    assert finished.reward == 10.0
    assert 0 < finished.decision_us[0] <= finished.decision_us[1]


def test_features_that_never_change_are_journaled_once(tmp_path: Path) -> None:
    with mind(tmp_path) as bot:
        for _ in range(3):
            play(bot, decisions=150)  # the second feature is always 1
        with bot.match() as match:
            match.decide([0, 2])
            match.finish("tie")
    found = [event for event in journal(tmp_path) if isinstance(event, ev.ConstantFeatures)]
    assert [event.names for event in found] == [("army",), ()]
    assert found[0].decisions == 300


def test_without_jax_it_records_and_says_how_to_learn_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    with mind(tmp_path, learner="process") as bot:
        for _ in range(6):
            play(bot)
    out, err = capsys.readouterr()
    assert err.count(INSTALL_LINE) == 1
    assert out == ""
    assert len(episodes(tmp_path)) == 6
    assert any(isinstance(e, ev.Problem) and "jax" in e.message for e in journal(tmp_path))


class Nobody:
    """A learner that learns nothing."""

    def wake(self) -> None:
        pass

    def stop(self, timeout_s: float) -> bool:
        return True


class SetClock(SystemClock):
    """Monotonic time as the test sets it."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


def with_console(root: Path, clock: SetClock, **report: float) -> Understudy:
    mind(root).close()
    folder = RunFolder.load(root, clock)
    values = {f"report.{name}": value for name, value in report.items()}
    folder.config = with_values(folder.config, values)
    return Understudy(folder, mode="learn", learner=Nobody(), result_rewards={}, seed=1)


def test_the_console_reports_every_few_matches_and_every_half_minute(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = SetClock()
    with with_console(tmp_path, clock) as bot:
        for _ in range(4):
            play(bot)
        clock.now = 29.0
        with bot.match() as match:
            match.decide([0, 0])
            assert capsys.readouterr().out == ""  # nothing yet, and never in mid-match
            match.finish("victory")
        assert "STATISTICS" in (out := capsys.readouterr().out)
        assert "Matches: 5 (5 won" in out and "STATUS REPORT" not in out
        clock.now = 30.0
        play(bot)
        assert "STATUS REPORT" in capsys.readouterr().out
        clock.now = 59.0
        play(bot)
        assert capsys.readouterr().out == ""


def test_the_console_can_be_turned_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clock = SetClock()
    with with_console(tmp_path, clock, status_every_s=0, statistics_every_matches=0) as bot:
        for _ in range(6):
            clock.now += 100.0
            play(bot)
    with mind(tmp_path, learner="off") as bot:  # nobody learns: there is nothing to report
        for _ in range(6):
            play(bot)
    assert capsys.readouterr().out == ""


def test_status_agrees_with_what_was_played(tmp_path: Path) -> None:
    with mind(tmp_path) as bot:
        for outcome in ("victory", "victory", "defeat", "tie", "aborted"):
            play(bot, outcome=outcome)
    status = StatusReader(tmp_path, SystemClock()).read()
    assert (status.wins, status.defeats, status.ties, status.aborted) == (2, 1, 1, 1)
    assert status.episodes.written == status.buffer_file_count == status.matches == 5
    assert status.learner == "not started"
