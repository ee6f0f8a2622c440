"""`understudy play`: what it prints is what happened, and Ctrl-C costs nothing."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import psutil
import pytest
from judging.swarm_versions import NETWORK, commit, run_of_swarm, settings

from understudy.cli.play import _line
from understudy.core.clock import SystemClock
from understudy.match.tally import Tally
from understudy.promotion.promotion import Promotion
from understudy.registry.run_folder import RunFolder
from understudy.run.play import PlayProgress, PlaySession
from understudy.telemetry.promotion_status import ArmResult, PromotionStatus, TrialStatus
from understudy.telemetry.status import Status
from understudy.telemetry.status_reader import StatusReader

from .calling import SMALL, lockstep, understudy


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def check_agreement(told: dict[str, Any], run: object) -> None:
    """What `play --json` says is what `status --json` says."""
    status = understudy("status", "--run", run, "--json").json
    shared = ("matches", "win_rate_first", "win_rate_last", "versions", "episodes", "decision_ms")
    assert {key: told[key] for key in shared} == {key: status[key] for key in shared}
    assert told["episodes"].keys() == {"written", "ingested", "archived", "quarantined"}
    assert told["decision_ms"].keys() == {"p50", "p99"}


def test_json_is_one_object_with_everything(tmp_path: Path) -> None:
    called = lockstep("run", "--seed", 1, "--eval", 6, matches=10)
    assert called.code == 0
    assert called.err == "" and called.out.count("\n") == 1
    told = called.json
    assert told["matches"] == 10 and told["versions"] == 5
    assert told["interrupted"] is False
    assert told["episodes"]["written"] == told["episodes"]["ingested"] == 10
    for name in ("eval", "start", "rules"):
        assert told[name].keys() == {
            "matches", "wins", "draws", "losses", "win_rate", "interval"
        }  # fmt: skip
        assert told[name]["matches"] == 6
    check_agreement(told, "run")


def test_a_person_sees_the_climb_and_where_it_is() -> None:
    options = ("--matches", 2, "--difficulty", "easy", "--learner", "off", "--eval", 4)
    called = understudy("play", "swarm", *options)
    assert called.code == 0
    assert called.out == ""  # stdout belongs to --json; what moves is on stderr
    for text in (
        "run folder runs/swarm-1",
        "The bot starts untrained.\nNo learner runs: matches are recorded for a later one.\n",
        "  match 2  wins of last 2:",
        "at the start",
        "now  ",
        "the rules",
        "Run folder      runs/swarm-1",
        "understudy status --run runs/swarm-1",
    ):
        assert text in called.err.replace("\\", "/")
    assert "STATISTICS" not in called.err and "first fifth" not in called.err, "of two matches"
    assert understudy("status", "--json").json["matches"] == 2
    understudy("play", "swarm", *options)
    assert understudy("status", "--json").json["run"].endswith("swarm-2")


def test_in_mode_auto_a_line_of_80_columns_says_who_plays_and_why() -> None:
    run, config = Path("runs/mine"), settings()
    folder = run_of_swarm(run, config=config)
    commit(folder, 1, "DEFENSIVE")
    promotion = Promotion(folder)
    promotion.declare(rules="rules", score=None)
    assert promotion.nominate(1, experience=100, reason="a test asks for it")
    options = ("--run", run, "--matches", 12, "--learner", "off", "--eval", 0)
    called = understudy("play", "swarm", "--mode", "auto", *options)
    assert called.code == 0 and called.out == ""
    for text in (
        'Mode auto: the bot "rules" plays as the rules until a version is better by evidence.\n',
        "  match 12  rules ",
        "\nStages: shadow -> cameos -> practice -> canary -> champion.\n",
        "\nStage           shadow -> cameos -> practice -> [canary] -> champion\n",
        "\nWho plays       the rules play, version 1 in ",
        "\nWhy             no version has shown yet that it is better\n",
        "\nTested now      mean result: version 1 ",
        "Win rate in this session by who played (a tie is no win; 95% interval):",
        "\n  the rules  [",
    ):
        assert text in called.err
    told = understudy("play", "swarm", "--rules", "rules", *options, "--json").json
    assert told["mode"] == "auto" and told["playing"] == "the rules"


def test_the_line_shows_both_arms_of_a_test_by_the_same_measure() -> None:
    canary = ArmResult(version=3, matches=10, mean=0.55)
    incumbent = ArmResult(version=0, matches=20, mean=0.475)
    trial = TrialStatus(
        number=2, recheck=False, since=0.0, version=3, against=0, canary=canary,
        incumbent=incumbent, better=3.14, better_enough=20.0, worse=0.5, worse_enough=4.0,
        share=0.5, short=100, hopeless=0.2, long=300, promising=2.0, longest=600,
    )  # fmt: skip
    auto = PromotionStatus(incumbent=0, tests=(trial,))
    recheck = msgspec.structs.replace(
        trial, recheck=True, version=7, canary=ArmResult(version=7, matches=4, mean=0.25)
    )

    def line(status: PromotionStatus | None, mode: Literal["auto", "shadow"] = "auto") -> str:
        session = PlaySession(
            game="swarm", run=Path("runs/one"), difficulty="hard", matches=1000, mode=mode,
            network=NETWORK, config=settings(),
        )  # fmt: skip
        tallies = {"the rules": Tally(1, 2, 1), "version 7": Tally(1, 1, 0)}
        progress = PlayProgress(session, played=40, by_player=tallies, promotion=status, version=7)
        told = _line(progress).text(80)
        assert len(told) <= 80
        return told.partition("match 40  ")[2]

    assert line(auto) == "rules 48%  canary 3 55%  E 3.1"
    assert line(PromotionStatus(incumbent=7, tests=(recheck,))) == (
        "rules 48%  rechecked 7 25%  E- 0.5"
    )
    assert line(PromotionStatus(incumbent=7)) == "champion 7 75%", "a tie counts one half"
    assert line(msgspec.structs.replace(auto, pinned=7)) == "champion 7 (pinned) 75%"
    assert line(msgspec.structs.replace(auto, pinned=0)) == "rules (pinned) 50%"
    assert line(msgspec.structs.replace(auto, policy="latest")) == "newest 7 75%"
    assert line(None, "shadow") == "rules 50%  champion 7 75%"


@pytest.mark.parametrize(
    ("policy", "pinned", "expected"),
    [
        ("latest", None, "Mode auto: the newest version plays every match, without a test."),
        ("auto", 0, "Mode auto: the rules, pinned by a person, play every match."),
        ("auto", 1, "Mode auto: version 1, pinned by a person, plays every match."),
    ],
)
def test_who_plays_is_said_first_where_evidence_does_not_decide(
    policy: str, pinned: int | None, expected: str
) -> None:
    folder = run_of_swarm(Path("runs/mine"), config=settings(policy=policy))
    commit(folder, 1, "DEFENSIVE")
    if pinned is not None:
        folder.pointers.pin("champion", pinned, by="rollback")
    options = ("--run", folder.root, "--matches", 1, "--learner", "off", "--eval", 0)
    said = understudy("play", "swarm", "--mode", "auto", *options).err
    assert expected in said and "until a version is better" not in said


def test_a_run_keeps_its_settings() -> None:
    first = ("--matches", 1, "--difficulty", "easy", "--learner", "off", "--run", "run", "--json")
    settings = ("learner.gamma=0.5", "report.statistics_every_matches=3", "learner.priority=won")
    flags = [flag for one in settings for flag in ("--set", one)]
    assert understudy("play", "swarm", *first, *flags).code == 0
    assert understudy("play", "swarm", *first, "--set", "learner.clip=0.1").code == 0
    config = RunFolder.load(Path("run"), SystemClock()).config
    assert (config.learner.gamma, config.learner.clip) == (0.5, 0.1)
    assert config.learner.priority == "won"
    assert config.report.status_every_s == 0


def test_a_run_that_goes_on_counts_only_versions_of_this_session_as_new(played: Path) -> None:
    shutil.copytree(played, "run")
    options = ("--matches", 1, "--difficulty", "easy", "--learner", "off", "--eval", 0)
    called = understudy("play", "swarm", "--run", "run", *options)
    assert called.code == 0 and "  version 3\n" in called.err, called.err
    assert " new" not in called.err


# --- for real: another process learns ------------------------------------------------------------


def command(*args: object) -> list[str]:
    quick = ("--set", "learner.niceness=0", "--set", "learner.publish_interval_s=0.1")
    line = ("play", "swarm", "--difficulty", "easy", "--run", "run", *SMALL, *quick, *args)
    return [sys.executable, "-m", "understudy", *map(str, line)]


@contextlib.contextmanager
def playing(*args: object) -> Iterator[subprocess.Popen[str]]:
    """A game in another process. A test that fails ends it at once, and does not wait for it."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command(*args), stdout=pipe, stderr=pipe, text=True) as play:
        try:
            yield play
        except BaseException:
            if play.poll() is None:
                for process in (*psutil.Process(play.pid).children(recursive=True), play):
                    process.kill()
            raise


def status() -> Status:
    return StatusReader(Path("run"), SystemClock()).read()


def wait_for(play: subprocess.Popen[str], holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60.0
    while not holds():
        assert play.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)


def test_with_the_learner_in_the_background() -> None:
    done = subprocess.run(
        command("--matches", 12, "--json"), capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1 and done.stderr == ""
    told = json.loads(done.stdout)
    assert told["matches"] == 12 and told["versions"] >= 1
    written = {"written": 12, "ingested": 12, "archived": 12, "quarantined": 0}
    assert told["episodes"] == written
    check_agreement(told, "run")
    assert status().learner == "stopped"


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_drains_sums_up_and_exits_130() -> None:
    with playing("--minutes", 5) as play:
        wait_for(play, lambda: status().matches >= 3 and status().versions)
        play.send_signal(signal.SIGINT)
        _, said = play.communicate(timeout=60)
    assert play.returncode == 130
    assert "Interrupted: everything up to here is kept." in said
    assert "Run folder      run" in said
    assert "Traceback" not in said
    now = status()
    assert now.aborted <= 1  # none, where it fell between two matches
    assert now.episodes.written == now.episodes.ingested == now.matches
    assert now.buffer_file_count == 0
    assert now.learner == "stopped"


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_sigterm_before_the_first_version_keeps_what_there_is_and_exits_143() -> None:
    flags = ("--minutes", 5, "--learner", "off", "--json")
    with subprocess.Popen(
        command(*flags), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as play:
        wait_for(play, lambda: status().matches >= 1)
        play.send_signal(signal.SIGTERM)
        out, said = play.communicate(timeout=60)
    assert play.returncode == 143 and said == ""
    told = json.loads(out)
    now = status()
    assert told["interrupted"] is True and told["matches"] == now.matches
    assert now.version == 0 and now.aborted <= 1  # none, where it fell between two matches
    assert now.episodes.written == now.buffer_file_count == now.matches


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_twice_does_not_wait_and_loses_nothing() -> None:
    passes = 20_000  # the learner is in its first batch for minutes, and drains no faster
    # Without replay: a batch of few matches beside earlier ones is one pass.
    slow = ("drain_s=600", f"samples_per_insert={passes}", f"epochs={passes}", "replay_matches=0")
    flags = [flag for one in slow for flag in ("--set", f"learner.{one}")]
    with playing("--minutes", 5, "--json", *flags) as play:
        wait_for(play, lambda: status().matches >= 3 and status().learner_pid)
        learner = psutil.Process(status().learner_pid)
        play.send_signal(signal.SIGINT)
        time.sleep(1.0)  # by now it waits for the learner
        play.send_signal(signal.SIGINT)
        out, said = play.communicate(timeout=60)
    assert play.returncode == 130
    assert "Traceback" not in said
    assert json.loads(out)["interrupted"] is True
    assert not learner.is_running() or learner.status() == psutil.STATUS_ZOMBIE
    now = status()
    assert now.learner != "stopped", "it was not killed: it said goodbye"
    assert now.unsaved == 0
    assert now.episodes.written == now.matches
    assert now.buffer_file_count == now.matches
