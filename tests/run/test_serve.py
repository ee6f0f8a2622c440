"""A server with its real session: it is killed, its learner is killed, and nothing is lost."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import psutil
import pytest
from bot.minds import publish
from server.standing import ask, hear, process, until
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from understudy.core.clock import SystemClock
from understudy.core.config import Config, LiveConfig
from understudy.core.errors import RunFolderError
from understudy.experience.ledger import Ledger
from understudy.experience.spool import Spool
from understudy.gates.promotion.records import Assigned, Declared, Resolved
from understudy.policy.mlp import Mlp
from understudy.promotion.log import PromotionLog
from understudy.registry.run_folder import RunFolder
from understudy.run import serve, server_wiring
from understudy.run.server_wiring import ServeOptions, ServerWiring
from understudy.session import schema
from understudy.session.inbox import Incoming
from understudy.supervise.interrupts import INTERRUPTED
from understudy.supervise.process import LearnerProcess
from understudy.telemetry import events
from understudy.telemetry.journal import Reader
from understudy.web import listening

DOCS = Path(__file__).parents[2] / "docs"
GAME = """
[game]
name = "skirmish"
features = ["health", "enemies"]
actions = ["attack", "retreat"]
fallback = "retreat"
"""


def options(run: Path, **changes: object) -> ServeOptions:
    chosen: dict[str, object] = {"learner": "off", "config": Config(), "gate": "open", **changes}
    return ServeOptions(
        translator=schema.from_table(
            {
                "game": {
                    "name": "skirmish",
                    "features": ["health", "enemies"],
                    "actions": ["attack", "retreat"],
                    "fallback": "retreat",
                }
            }
        ),
        game="skirmish",
        run=run,
        network=Mlp(),
        **chosen,  # type: ignore[arg-type]
    )


@contextlib.contextmanager
def wired(one: ServeOptions) -> Iterator[ServerWiring]:
    with contextlib.ExitStack() as stack:
        yield ServerWiring(one, one.auth(), stack)


def decide(at: ServerWiring, tick: int) -> bytes:
    message = b'{"type":"observation","territory":"t","features":[1.0,2.0],"tick":%d}' % tick
    return at.session.receive([Incoming("c", message)])[0].data


def journal(run: Path) -> list[events.Event]:
    return [entry.e for entry in Reader(run / "journal").new()]


# --- killed -------------------------------------------------------------------------------------


def of_my_own(folder: Path) -> AbstractContextManager[tuple[subprocess.Popen[str], str]]:
    """A server for a game that a file declares, and its address."""
    (folder / "game.toml").write_text(GAME, encoding="utf-8")
    line = "--schema game.toml --run run --port 0 --learner off --quiet"
    line += " --set live.messages_per_s=1e6"
    return process(*line.split(), cwd=folder)


def talk_until_killed(
    socket: ClientConnection, child: subprocess.Popen[str], after_s: float, tick: int
) -> tuple[list[int], int]:
    """Observations in several territories, many in flight; ids that were acknowledged."""
    acknowledged: list[int] = []
    deadline = time.monotonic() + after_s
    with contextlib.suppress(ConnectionClosed):
        while True:
            for territory in range(8):
                socket.send(
                    f'{{"type":"observation","territory":"t{territory}","features":[1,2],'
                    f'"tick":{tick}}}'
                )
            tick += 1
            if time.monotonic() > deadline:
                child.kill()
            for _ in range(8):
                acknowledged.append(hear(socket)["decision_id"])
    return acknowledged, tick


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_every_acknowledged_decision_survives_sigkill(tmp_path: Path) -> None:
    hello: dict[str, object] = {"type": "hello", "protocol": 1, "client": "north"}
    acknowledged: list[int] = []
    tick, chance = 0, random.Random(5)
    for _ in range(2):
        with of_my_own(tmp_path) as (child, url), connect(url, compression=None) as socket:
            hello["resume"] = ask(socket, hello)["resume"]  # the same client, each time
            ids, tick = talk_until_killed(socket, child, chance.uniform(0.02, 0.2), tick)
            acknowledged += ids
    assert len(acknowledged) > 16 and len(set(acknowledged)) == len(acknowledged)
    with of_my_own(tmp_path) as (child, url), connect(url, compression=None) as socket:
        assert ask(socket, hello)["client"] == "north"
        for key in acknowledged:
            reward = {"type": "reward", "decision_id": key, "reward": 0.5}
            assert ask(socket, reward)["status"] == "settled"
        child.send_signal(signal.SIGINT)
        assert child.wait(30) == 130
        assert child.stderr is not None
        assert f"{len(acknowledged):,} settled" in child.stderr.read()


def test_a_server_of_any_game_knows_the_messages_of_all(tmp_path: Path) -> None:
    """In a process of its own: here, other tests have imported the games."""
    with of_my_own(tmp_path) as (_, url), connect(url, compression=None) as socket:
        incomplete = ask(socket, {"type": "observation_data", "data": {}})
        unknown = ask(socket, {"type": "spawn"})
        with urllib.request.urlopen(url.replace("ws:", "http:").replace("/ws", "/schema")) as page:
            published = page.read()
    assert (incomplete["code"], incomplete["field"]) == ("bad_message", "data.timestamp")
    types = "hello, observation, observation_data, reward, end, ping"
    assert unknown["message"] == f"type: expected one of {types}"
    assert published == (DOCS / "protocol.schema.json").read_bytes()


def test_what_was_settled_is_in_the_spool_when_it_closes(tmp_path: Path) -> None:
    with wired(options(tmp_path)) as at:
        for tick in range(40):
            decide(at, tick)
        for key in range(1, 41):
            reward = b'{"type":"reward","decision_id":%d,"reward":1}' % key
            at.session.receive([Incoming("c", reward)])
        at.session.receive([Incoming("c", b'{"type":"end","territory":"t"}')])
        at.close()
    folder = RunFolder.load(tmp_path, SystemClock())
    spool = Spool(tmp_path, folder.spec, SystemClock())
    episodes = [spool.load(name) for name in spool.pending()]
    assert sum(len(one.rewards) for one in episodes) == 40
    assert any(isinstance(one, events.BotStopped) for one in journal(tmp_path))


# --- the learner --------------------------------------------------------------------------------


def test_a_learner_that_is_killed_is_started_again_and_no_answer_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeper = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    monkeypatch.setattr(server_wiring, "learner_command", lambda options: sleeper)
    with wired(options(tmp_path, learner="process")) as at:
        learner = at._learner
        assert isinstance(learner, LearnerProcess)
        first = learner.pid
        psutil.Process(first).kill()
        tick = 0

        def restarted() -> bool:
            nonlocal tick
            tick += 1
            assert b'"type":"decision"' in decide(at, tick)
            return learner.pid != first and learner.alive

        until(restarted)
        at.close()
        assert not learner.alive
    died = [one for one in journal(tmp_path) if isinstance(one, events.LearnerDied)]
    assert len(died) == 1 and died[0].restart_in_s is not None


def test_the_learner_is_told_the_gate_by_the_command_line(tmp_path: Path) -> None:
    line = server_wiring.learner_command(options(tmp_path / "r", gate="my_gates:Careful"))
    assert line[line.index("--gate") + 1] == "my_gates:Careful"
    assert line[line.index("--threshold") + 1] == "0.0"
    assert {"learner", "--continuous", "--supervised"} <= set(line)


STUCK_GATE = """
from threading import Event

from understudy.gates.decision import Verdict

STUCK, FREE = Event(), Event()


class Slow:
    name = "slow"

    def evaluate(self, observation, action):
        if observation[0] == 1.0:  # not on the trial at the start
            STUCK.set()
            FREE.wait(2.0)
        return Verdict(True, 0.0)
"""


def test_a_gate_that_takes_its_time_does_not_stall_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stuck_gate.py").write_text(STUCK_GATE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])  # the gate's folder is added to it
    config = Config(live=LiveConfig(gate_deadline_ms=1.0))
    with wired(options(tmp_path / "run", gate="stuck_gate:Slow", config=config)) as at:
        answers = [json.loads(decide(at, tick)) for tick in range(7)]
        own = importlib.import_module("stuck_gate")
        assert own.STUCK.is_set()
        own.FREE.set()
        status = at.server.status()
    assert [one["degraded"] for one in answers] == [True] * 7
    assert {one["action"] for one in answers} == {"retreat"}
    assert status["gate"] == "slow"
    assert status["gate_misses"]
    assert status["safe_actions"] == {"gate_deadline": 7}
    problems = [one.message for one in journal(tmp_path / "run") if isinstance(one, events.Problem)]
    assert any("live.gate_deadline_ms = 1 ms" in one for one in problems)


def test_a_gate_that_ships_is_asked_inline(tmp_path: Path) -> None:
    before = set(threading.enumerate())  # a gate of another test may still be ending
    with wired(options(tmp_path / "run")) as at:
        decide(at, 0)
        assert not [one for one in set(threading.enumerate()) - before if one.name == "gate"]


def test_a_new_version_decides_from_the_next_batch_on(tmp_path: Path) -> None:
    with wired(options(tmp_path)) as at:
        assert b'"version":0' in decide(at, 0)
        folder = RunFolder.load(tmp_path, SystemClock())
        publish(folder, 1)
        at._watcher.look()
        assert b'"version":1' in decide(at, 1)
        adopted = [one for one in journal(tmp_path) if isinstance(one, events.VersionAdopted)]
        assert [(one.version, one.previous) for one in adopted] == [(1, 0)]


# --- one at a time ------------------------------------------------------------------------------


def test_two_servers_in_one_run_folder_are_one_too_many(tmp_path: Path) -> None:
    with (
        wired(options(tmp_path)),
        pytest.raises(RunFolderError, match="another server"),
        wired(options(tmp_path)),
    ):
        pass
    with wired(options(tmp_path)) as at:  # it is free again
        assert b'"type":"decision"' in decide(at, 0)


def test_a_server_that_is_refused_leaves_the_settings_of_the_other_alone(tmp_path: Path) -> None:
    other = Config(live=LiveConfig(queue=7))
    with wired(options(tmp_path)):
        with (
            pytest.raises(RunFolderError, match="another server"),
            wired(options(tmp_path, config=other)),
        ):
            pass
        assert RunFolder.load(tmp_path, SystemClock()).config == Config()


def test_a_run_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with (
        pytest.raises(RunFolderError, match="cannot be used as a run folder"),
        wired(options(tmp_path / "file" / "run")),
    ):
        pass


def test_a_start_that_fails_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object, **options: object) -> Ledger:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(server_wiring, "Ledger", broken)
        with pytest.raises(OSError, match="No space"), wired(options(tmp_path)):
            pass
    with wired(options(tmp_path)) as at:
        assert b'"type":"decision"' in decide(at, 0)


# --- the screen ---------------------------------------------------------------------------------


def test_a_screen_that_cannot_be_written_to_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "_SHOW_EVERY_S", 0.0)
    problems: list[Exception] = [
        OSError(28, "No space left on device"),
        OSError(5, "Input/output error"),
        ValueError("I/O operation on closed file"),
    ]

    def started(address: str) -> None:
        raise OSError(5, "Input/output error")

    def show(progress: serve.ServeProgress) -> None:
        if problems:
            raise problems.pop()
        signal.raise_signal(signal.SIGINT)

    served = serve.serve(options(tmp_path, port=0), started=started, show=show)
    assert served.code == INTERRUPTED and not problems


def test_ctrl_c_twice_still_says_goodbye(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raised inside the event loop, the second one cut connections and left tasks behind."""
    monkeypatch.setattr(serve, "_SHOW_EVERY_S", 0.0)
    heard: list[int | None] = []

    def client(url: str) -> None:
        with connect(url) as socket, pytest.raises(ConnectionClosed) as end:
            ask(socket, {"type": "hello", "protocol": 1})
            hear(socket)
        heard.append(None if end.value.rcvd is None else end.value.rcvd.code)

    threads: list[threading.Thread] = []

    def started(address: str) -> None:
        threads.append(threading.Thread(target=client, args=(address,), daemon=True))
        threads[0].start()

    def show(progress: serve.ServeProgress) -> None:
        if progress.live.clients:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    served = serve.serve(options(tmp_path, port=0), started=started, show=show)
    threads[0].join(timeout=30)
    assert served.code == INTERRUPTED and heard == [1001]


def test_what_was_there_at_the_start_is_not_collected_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "_SHOW_EVERY_S", 0.0)
    tracked: list[int] = []

    def show(progress: serve.ServeProgress) -> None:
        tracked.append(len(gc.get_objects()))
        signal.raise_signal(signal.SIGINT)

    before = len(gc.get_objects())
    serve.serve(options(tmp_path, port=0), started=lambda address: None, show=show)
    assert tracked[0] < before // 2
    assert gc.get_freeze_count() == 0  # a process that goes on collects everything again


def test_too_few_files_for_so_many_clients_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[int] = []

    def allow(wanted: int) -> int:
        asked.append(wanted)
        return 512

    def show(progress: serve.ServeProgress) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(serve, "_SHOW_EVERY_S", 0.0)
    monkeypatch.setattr(listening, "allow", allow)
    serve.serve(options(tmp_path, port=0), started=lambda address: None, show=show)
    assert asked == [Config().live.max_clients + 256]
    assert "only 512 files" in capsys.readouterr().err


def test_with_promotion_auto_the_rules_decide_and_a_killed_server_counts_for_no_arm(
    tmp_path: Path,
) -> None:
    declared = GAME + "\n[promotion]\nscore = [-0.5, 1.0]\n"
    (tmp_path / "game.toml").write_text(declared, encoding="utf-8")
    line = "--schema game.toml --run run --port 0 --learner off --quiet --promotion auto"

    def records() -> list[object]:
        return [record for _, record in PromotionLog(tmp_path / "run" / "promotion").new()]

    def played(socket: ClientConnection, territory: str, before: int) -> bool:
        observation = {"type": "observation", "territory": territory, "features": [1, 2]}
        answer = ask(socket, observation)
        assert (answer["by"], answer["action"]) == ("rules", "retreat")
        return sum(isinstance(one, Assigned) for one in records()) > before

    for life in range(2):
        with process(*line.split(), cwd=tmp_path) as (child, url), connect(url) as socket:
            ask(socket, {"type": "hello", "protocol": 1})
            until(functools.partial(played, socket, f"t{life}", life))
            if not life:
                _check_promotion_is_told(url)
            child.kill()
            child.wait()
    endings = [one.ending for one in records() if isinstance(one, Resolved)]
    assert endings == ["void"]
    (first, *_) = (one for one in records() if isinstance(one, Declared))
    assert first.score == (-0.5, 1.0), "of the schema"


def _check_promotion_is_told(url: str) -> None:
    """At `/status` and `/metrics`."""
    place = url.replace("ws://", "http://").removesuffix("/ws")
    with urllib.request.urlopen(f"{place}/status") as answer:
        status = json.loads(answer.read())
    assert status["promotion"] == "auto" and status["decided_by"]["rules"] >= 1
    told = status["by_evidence"]
    assert (told["incumbent"], told["tests"]) == (0, [])
    assert status["segments"] == [0, 0, 0] and set(status["playing"]) <= {"rules"}
    with urllib.request.urlopen(f"{place}/metrics") as answer:
        metrics = answer.read().decode()
    assert 'understudy_decided_total{role="rules"}' in metrics
    assert 'understudy_segments_total{ending="finished"} 0.0' in metrics
    assert "understudy_incumbent 0.0" in metrics
