"""The bot: nothing that was finished is lost, whatever happens to the game, the disk or the bot."""

from __future__ import annotations

import errno
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from understudy import Config, Discrete, Mlp, MultiDiscrete, Understudy
from understudy.bot.outbox import Outbox
from understudy.bot.recorder import Recorder
from understudy.core import files
from understudy.core.clock import SystemClock
from understudy.core.config import with_values
from understudy.core.dependencies import install_line
from understudy.core.errors import ConfigError, InputError, RunFolderError
from understudy.experience.spool import Spool
from understudy.registry.run_folder import RunFolder, latest
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Reader
from understudy.telemetry.status_reader import StatusReader

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


LEFT_OPEN = """
import sys
from understudy import Understudy
mind = Understudy.open(sys.argv[1], features=["a"], actions=["x", "y"], learner="off")
forgotten = mind.match()
forgotten.decide([1.0], fallback="x")
forgotten = mind.match()
for step in range(3):
    forgotten.decide([step], fallback="y")
mind.match()  # without a decision there is nothing to keep
with mind.match() as match:
    match.decide([1.0], fallback="x")
    match.finish("victory")
if sys.argv[2] == "closed":
    mind.close()
"""


@pytest.mark.parametrize("end", ["closed", "not closed"])
def test_matches_left_open_are_told_and_kept_as_aborted(tmp_path: Path, end: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LEFT_OPEN, str(tmp_path), end],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert "2 matches were never finished and kept as aborted" in done.stderr
    assert done.stderr.count("\n") == (3 if end == "closed" else 1)  # with the console's line
    kept = sorted((str(one.meta.outcome), len(one)) for one in episodes(tmp_path))
    assert kept == [("aborted", 1), ("aborted", 3), ("victory", 1)]
    status = StatusReader(tmp_path, SystemClock()).read()
    assert (status.matches, status.aborted, status.episodes.written) == (3, 2, 3)


def play(bot: Understudy, *, decisions: int = 3, outcome: str = "victory", **tags: object) -> None:
    with bot.match(**tags) as match:
        for step in range(decisions):
            match.decide([step, 1.0], fallback="left")
        match.finish(outcome)


# --- opening -----------------------------------------------------------------------------------


def test_single_settings_change_no_others_and_what_changes_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def opened(**changes: Any) -> tuple[Config, str]:
        with mind(tmp_path, **changes) as bot:
            return bot.folder.config, capsys.readouterr().err

    first, said = opened(settings={"learner.batch_matches": 3, "rewards.weights.combo": 1.0})
    assert first.learner.batch_matches == 3 and said == ""
    assert opened() == (first, "")
    gamma, said = opened(settings={"learner.gamma": 0.9})
    assert gamma == with_values(first, {"learner.gamma": 0.9})
    assert said.endswith(": settings changed: learner.gamma 0.995 -> 0.9\n")
    bounds, said = opened(settings={"features.bounds.minerals": [0, 8]})
    assert bounds.features.bounds == {"minerals": (0.0, 8.0)}
    dotted = with_values(Config(), {"features.bounds.units.marine": [0, 5]})
    assert dotted.features.bounds == {"units.marine": (0.0, 5.0)}
    with pytest.raises(ConfigError, match=r"features\.bounds\.speeed: this game has no such feat"):
        opened(settings={"features.bounds.speeed": [0, 8]})
    default, said = opened(config=Config())
    assert default == Config()
    for change in (
        "learner.gamma 0.9 -> 0.995",
        "learner.batch_matches 3 -> 10",
        "rewards.weights.combo 1.0 -> unset",
    ):
        assert change in said
    both, _ = opened(config=first, settings={"learner.gamma": 0.8})
    assert both == with_values(first, {"learner.gamma": 0.8})


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"learner.gama": 0.9}, "settings: unknown key learner.gama. Did you mean .*gamma'"),
        ({"lerner.gamma": 0.9}, "settings: unknown key lerner. Did you mean .*learner'"),
        ({"learner.gamma": "high"}, "settings: learner.gamma: expected a number; got 'high'"),
        ({"gamma": 0.9}, "settings: gamma: expected a dotted key such as learner.gamma"),
    ],
)
def test_a_setting_that_cannot_be_is_an_error(
    tmp_path: Path, settings: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ConfigError, match=expected):
        mind(tmp_path / "run", settings=settings)
    assert not (tmp_path / "run").exists()


def test_a_run_among_the_runs_is_the_latest_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mind(Path("elsewhere")).close()
    assert not Path("runs").exists()
    for run in (Path("runs/zerg"), tmp_path / "runs" / "protoss"):
        mind(run).close()
        assert latest() == run


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
        ({"actions": 10}, "actions: expected a list of names.*got 10"),
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
        ({"network": "mlp-larg"}, "network: expected one of mlp, .*'mlp-larg'.*'mlp-large'"),
        ({"network": Mlp}, r"network: expected a name \(mlp, .*, Mlp\(...\).*not the class"),
        ({"network": "small"}, "network.opponent: expected at most the 2 features"),
        ({"network": 64}, r"network: expected a name \(mlp, .*; got 64"),
    ],
)
def test_a_wrong_option_names_the_nearest(
    tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ConfigError, match=expected):
        mind(tmp_path / "run", **changes)
    assert not (tmp_path / "run").exists()


def test_a_network_goes_by_its_name(tmp_path: Path) -> None:
    with mind(tmp_path, network="mlp-large") as bot:
        assert bot.spec.network == Mlp((256, 256))


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


def test_two_bots_at_once_with_one_seed_do_not_share_ids(tmp_path: Path) -> None:
    """They see one another's journals only if one was faster."""
    with mind(tmp_path, seed=5) as one:
        for path in (tmp_path / "journal").glob("bot-*"):
            path.unlink()
        with mind(tmp_path, seed=5) as other:
            play(one)
            play(other)
    assert len({episode.meta.id for episode in episodes(tmp_path)}) == 2


def test_opening_does_not_read_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(self: Reader) -> None:
        raise AssertionError("a long run has a long journal")

    with monkeypatch.context() as patch:
        patch.setattr(Reader, "new", read)
        mind(tmp_path, seed=5).close()


def test_the_same_seed_in_lockstep_is_the_same_in_another_folder(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with with_learner(tmp_path / name, Nobody()) as bot:
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
        with bot.match() as match:
            assert match.finish("victory") is True
        assert bot.matches == 1
    assert [episode.meta.outcome for episode in episodes(tmp_path)] == ["aborted"]
    assert StatusReader(tmp_path, SystemClock()).read().matches == 1


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


@pytest.mark.parametrize(
    ("kind", "name"), [(Recorder, "episode"), (Outbox, "put"), (Spool, "put"), (Outbox, "flush")]
)
def test_a_signal_inside_finish_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type, name: str
) -> None:
    """The result stands, the reward of the result counts once, and so does the match."""
    unharmed = getattr(kind, name)
    pressed: list[int] = []

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        if not pressed:
            pressed.append(1)
            raise SystemExit(143)
        return unharmed(*args, **kwargs)

    monkeypatch.setattr(kind, name, interrupted)
    with pytest.raises(SystemExit), mind(tmp_path) as bot:
        play(bot, decisions=2)
    (episode,) = episodes(tmp_path)
    assert episode.meta.outcome == "victory"
    assert episode.rewards.tolist() == [0.0, 10.0]
    finished = [event for event in journal(tmp_path) if isinstance(event, ev.MatchFinished)]
    assert [event.id for event in finished] == [episode.meta.id]
    assert bot.matches == 1


def test_a_signal_after_the_match_was_kept_does_not_keep_it_twice(tmp_path: Path) -> None:
    class Impatient(Nobody):
        def wake(self) -> None:
            raise KeyboardInterrupt

    bot = with_learner(tmp_path, Impatient())
    with pytest.raises(KeyboardInterrupt), bot:
        play(bot)
    assert len(episodes(tmp_path)) == bot.matches == 1


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


class FullDisk:
    """A stderr that is redirected to the disk that is full."""

    closed = False
    encoding = "utf-8"

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_that_stderr_goes_to_as_well_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mind(tmp_path) as bot:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", FullDisk())
            patch.setattr(Spool, "put", full)
            patch.setattr(files, "append", full)
            with bot.match() as match:
                match.decide([1, 2])
                assert match.finish("victory") is False
            bot.folder.pointers.move("champion", 7, by="test")  # a version that is not there
            bot.refresh()
        publish(bot.folder, 8)
        deadline = time.monotonic() + 20.0
        while bot.version != 8 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert bot.version == 8, "the watch goes on"
    assert [one.meta.outcome for one in episodes(tmp_path)] == ["victory"]


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
    assert out == "" and err.count(install_line("learn")) == 1
    assert "understudy: 6 matches" in err
    assert len(episodes(tmp_path)) == 6
    assert any(isinstance(e, ev.Problem) and "jax" in e.message for e in journal(tmp_path))


class Nobody:
    """A learner that learns nothing."""

    alive = True

    def wake(self) -> None:
        pass

    def stop(self, timeout_s: float) -> bool:
        return True


def with_learner(root: Path, learner: Nobody) -> Understudy:
    mind(root).close()
    folder = RunFolder.load(root, SystemClock())
    return Understudy(folder, mode="learn", learner=learner, result_rewards={}, seed=1)


def reporting(**report: float) -> Config:
    return with_values(Config(), {f"report.{name}": value for name, value in report.items()})


def test_the_console_is_one_line_now_and_then(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with mind(tmp_path) as bot:
        for _ in range(12):
            play(bot)
        assert capsys.readouterr().err == ""
    assert capsys.readouterr().err == (
        "understudy: 12 matches, 100% won (first fifth 100%, last fifth 100%); "
        "the policy plays, untrained; 0 matches learned from, 12 waiting\n"
    )
    with mind(tmp_path, config=reporting(statistics_every_matches=4)) as bot:
        for _ in range(8):
            play(bot)
    changed, *lines = capsys.readouterr().err.splitlines()
    assert "settings changed: report." in changed
    assert [line[:24] for line in lines] == [
        f"understudy: {matches} matches, " for matches in (16, 20, 20)
    ]


def test_a_verbose_console_has_every_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with mind(tmp_path, config=reporting(statistics_every_matches=5, verbose=True)) as bot:
        for _ in range(4):
            play(bot)
        assert capsys.readouterr().err == ""
        play(bot)
        out = capsys.readouterr().err
        assert "STATISTICS" in out and "Matches: 5 (5 won" in out
        assert "STATUS REPORT" not in out


def test_a_status_report_by_the_clock_also_in_the_middle_of_a_long_match(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reports = reporting(status_every_s=0.05, verbose=True)
    with mind(tmp_path, config=reports) as bot, bot.match() as match:
        match.decide([0, 0])
        out, deadline = "", time.monotonic() + 20.0
        while out.count("STATUS REPORT") < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
            out += capsys.readouterr().err
        assert out.count("STATUS REPORT") >= 2


def test_the_console_can_be_turned_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quiet = reporting(status_every_s=0, statistics_every_matches=0)
    with mind(tmp_path, config=quiet) as bot:
        for _ in range(6):
            play(bot)
        bot._console.tick()
    assert capsys.readouterr().err == ""


def test_a_dead_console_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with mind(tmp_path, config=reporting(status_every_s=1e-9)) as bot, monkeypatch.context() as to:
        to.setattr(sys, "stderr", FullDisk())
        for _ in range(5):
            play(bot)
        bot._console.tick()
    assert len(episodes(tmp_path)) == 5


def test_status_agrees_with_what_was_played(tmp_path: Path) -> None:
    with mind(tmp_path) as bot:
        for outcome in ("victory", "victory", "defeat", "tie", "aborted"):
            play(bot, outcome=outcome)
    status = StatusReader(tmp_path, SystemClock()).read()
    assert (status.wins, status.defeats, status.ties, status.aborted) == (2, 1, 1, 1)
    assert status.episodes.written == status.buffer_file_count == status.matches == 5
    assert status.learner == "not started"
