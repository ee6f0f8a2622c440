from __future__ import annotations

import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from server.standing import process, standing

from understudy.core.clock import SystemClock
from understudy.core.errors import ConfigError
from understudy.registry.run_folder import RunFolder, remember
from understudy.run.view import ViewReader
from understudy.screens.monitor.plain import ChangeLines, follow
from understudy.screens.monitor.server_reader import ServerReader
from understudy.telemetry.events import Note
from understudy.telemetry.journal import Journal
from understudy.telemetry.run_view import RunView
from understudy.telemetry.status import Status

from .calling import understudy


@pytest.fixture
def run(played: Path, tmp_path: Path) -> Path:
    """A run folder that may be changed."""
    shutil.copytree(played, tmp_path / "runs" / "mine")
    return tmp_path / "runs" / "mine"


def test_once_is_one_block_of_plain_text(played: Path) -> None:
    called = understudy("monitor", played, "--once")
    assert called.code == 0 and called.err == ""
    for part in ("Who plays: mode learn", "Matches     6:", "Version     3, the newest of 3",
                 "Archive     6 files", "Gradient", "version 3 published"):  # fmt: skip
        assert part in called.out, part
    assert "\x1b" not in called.out


def test_json_is_the_whole_view(played: Path) -> None:
    called = understudy("monitor", played, "--once", "--json")
    view = msgspec.json.decode(called.out.encode(), type=RunView)
    assert view.status.matches == 6 and view.trends["loss"].bins and view.recent
    assert len(view.files.archive) == 3 and view.files.version is not None
    assert view.files.version.name == "versions/00000003" and view.files.version.bytes > 1000


def test_a_folder_of_runs_is_a_table(run: Path) -> None:
    shutil.copytree(run, run.parent / "other")
    (run.parent / "bad").mkdir()
    (run.parent / "bad" / "run.json").write_text("{", encoding="utf-8")
    lines = understudy("monitor", run.parent, "--once").out.splitlines()
    assert [line.split()[0] for line in lines] == ["run", "bad", "mine", "other"]
    assert "cannot be read" in lines[1]
    told = understudy("monitor", run.parent, "--once", "--json").json
    assert [one["name"] for one in told] == ["bad", "mine", "other"]
    assert told[0]["error"] and told[1]["view"]["status"]["matches"] == 6


def test_the_latest_run_is_watched_by_default(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    remember(Path("runs/mine"))
    assert understudy("monitor", "--once").out.startswith(str(Path("runs/mine")))


@pytest.mark.parametrize(
    ("line", "part"),
    [
        (("nowhere",), "there is no such folder"),
        (("empty",), "neither a run folder nor a folder of runs"),
        (("--interval", "0"), "--interval: expected 0.1 seconds or more"),
        (("--json",), "--json: expected only together with --once"),
        (("mine", "--url", "http://x"), "--url: expected either"),
        (("--url", "127.0.0.1:8765", "--once"), "--url 127.0.0.1:8765: expected an address"),
        (("--url", "http://me:secret@x", "--once"), "expected no name or password"),
        (("--token-file", "t"), "--token-file: expected only together with --url"),
    ],
)
def test_mistakes_are_one_line(
    line: tuple[str, ...], part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    called = understudy("monitor", *line)
    assert called.code == 2 and part in called.err and called.err.count("\n") == 1
    assert "secret" not in called.err


def test_in_a_pipe_there_is_one_line_for_each_change(run: Path) -> None:
    """A real process, read as a pipe, and ended with Ctrl-C's signal."""
    with subprocess.Popen(
        [sys.executable, "-m", "understudy", "monitor", str(run), "--interval", "0.1"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    ) as child:  # fmt: skip
        assert child.stdout is not None
        first = []
        for line in child.stdout:
            first.append(line)
            if "version 3 published" in line:
                break
        assert "─ Log" not in "".join(first)  # a block, no screen
        Journal(run / "journal", "bot", SystemClock()).write(
            Note(where="test", message="[bold]hello[/] \x1b[31m")
        )
        for line in child.stdout:
            if "hello" in line:
                break
        child.terminate()
        assert line.rstrip().endswith("test: [bold]hello[/] \\x1b[31m")
        assert child.stderr is not None and child.stderr.read() == ""


def test_changes_are_said_once(run: Path) -> None:
    reader = ViewReader(RunFolder.load(run, SystemClock()))
    changes = ChangeLines(reader.read())
    assert changes.of(reader.read()) == []
    understudy("learner", "pause", run)
    assert [line.partition(":")[0] for line in changes.of(reader.read())] == ["learner", "paused"]
    understudy("models", "rollback", 1, "--run", run)
    assert changes.of(reader.read()) == ["champion: 1 (pinned)"]
    assert changes.lost("gone") == ["LOST: gone (tried again)"] and changes.lost("gone") == []
    assert changes.of(reader.read()) == ["it can be read again"]


def test_following_survives_a_run_that_goes(run: Path) -> None:
    first, stop = ViewReader(RunFolder.load(run, SystemClock())).read(), threading.Event()
    said: list[str] = []
    answers: Iterator[RunView | OSError] = iter([OSError("the disk is gone"), first])

    def read() -> RunView:
        answer = next(answers, None)
        if answer is None:
            stop.set()
            return first
        if isinstance(answer, OSError):
            raise answer
        return answer

    def say(line: str) -> bool:
        said.append(line)
        return True

    follow(read, first, say, interval_s=0.001, stop=stop)
    assert said == ["LOST: the disk is gone (tried again)", "it can be read again"]


def test_following_ends_with_the_line_that_nothing_reads(run: Path) -> None:
    first = ViewReader(RunFolder.load(run, SystemClock())).read()
    said: list[str] = []

    def read() -> RunView:
        raise OSError(f"reading {len(said)}")

    def say(line: str) -> bool:
        said.append(line)
        return len(said) < 2

    follow(read, first, say, interval_s=0.001)
    assert len(said) == 2


@pytest.mark.skipif(os.name != "posix", reason="Windows tells it only of a line that is written")
def test_following_ends_when_the_reader_of_the_pipe_has_gone(run: Path) -> None:
    """As in `understudy monitor RUN | head -1`, of a run in which nothing happens any more."""
    with subprocess.Popen(
        [sys.executable, "-m", "understudy", "monitor", str(run), "--interval", "0.1"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as child:  # fmt: skip
        assert child.stdout is not None and child.stderr is not None
        assert child.stdout.readline()
        child.stdout.close()
        try:
            assert (child.wait(timeout=60), child.stderr.read()) == (0, b"")
        finally:
            child.kill()


# --- a server ------------------------------------------------------------------------------------


def test_a_server_is_watched_by_its_address(tmp_path: Path) -> None:
    with standing(tmp_path, run=lambda: Status(learner="training", learning="on")) as server:
        url = f"http://127.0.0.1:{server.port}"
        called = understudy("monitor", "--url", url, "--once")
        told = understudy("monitor", "--url", f"{server.url}", "--once", "--json").json
        reader = ServerReader(url, token=None, clock=SystemClock())
        views = [reader.read() for _ in range(3)]
    assert called.code == 0, called.err
    for part in ("Ledger      5 decisions", "open: 3 sent, 2 waited", "the gate missed 6 deadlines",
                 "State       training", "0.250 lately, 0.500 since the start"):  # fmt: skip
        assert part in called.out, part
    assert told["server"]["game"] == "parrot" and told["status"]["ledger"]["settled"] == 4
    assert len(views[-1].trends["recent_reward"].bins) == 3
    with pytest.raises(ConfigError, match="no server answers at http"):
        reader.read()


def test_a_server_with_a_token_wants_it(tmp_path: Path) -> None:
    token = "0123456789abcdef"
    (tmp_path / "token").write_text(token, encoding="utf-8")
    (tmp_path / "token").chmod(0o600)
    with standing(tmp_path / "server", token=token) as server:
        url = f"http://127.0.0.1:{server.port}"
        without = understudy("monitor", "--url", url, "--once")
        line = ("monitor", "--url", url, "--token-file", tmp_path / "token", "--once", "--json")
        with_it = understudy(*line)
    assert without.code == 2 and "--token-file FILE" in without.err
    assert with_it.json["server"]["version"] == 3
    assert token not in with_it.out + with_it.err + without.err


def test_another_kind_of_server_is_said() -> None:
    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"hello": 1}')

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Other) as other:
        threading.Thread(target=other.handle_request, daemon=True).start()
        url = f"http://127.0.0.1:{other.server_port}"
        called = understudy("monitor", "--url", url, "--once")
    assert called.code == 2 and "expected the status of `understudy serve`" in called.err


def test_a_real_server_process(tmp_path: Path) -> None:
    line = ("territory", "--run", str(tmp_path / "run"), "--port", "0", "--learner", "off")
    with process(*line) as (_, address):
        called = understudy("monitor", "--url", address, "--once", "--json")
        told = json.loads(called.out)["server"]
        by_folder = understudy("monitor", tmp_path / "run", "--once")
    assert (told["game"], told["gate"], told["learner"]) == ("territory", "cost", "not started")
    assert "Who decides" in by_folder.out and "Ledger" in by_folder.out
