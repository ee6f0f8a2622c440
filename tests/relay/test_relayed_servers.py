"""Servers in several places: a relay beside each, and one learner behind the store."""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from cli.calling import understudy
from promotion.runs import assigned, folded, records, resolved
from server.standing import ask, process
from session.played import ATTACK, publish
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from relay.judged import brought, own_log, own_prefix
from understudy.core.clock import SystemClock
from understudy.gates.promotion.records import Assigned, Resolved
from understudy.promotion.promotion import Promotion
from understudy.registry.run_folder import RunFolder, holds_run
from understudy.relay import bucket
from understudy.relay.local import read_side
from understudy.relay.stores import open_store
from understudy.session.shards import shard_of

GAME = """
[game]
name = "skirmish"
features = ["health", "enemies"]
actions = ["attack", "retreat"]
fallback = "retreat"

[[rewards]]
name = "health"
feature = "health"
of = "change"
weight = 1.0
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_server_sends_what_it_records_and_starts_no_learner(tmp_path: Path) -> None:
    (tmp_path / "game.toml").write_text(GAME, encoding="utf-8")
    line = "--schema game.toml --run run --port 0 --quiet --relay store --shard 1/3"
    line += " --set live.segment=4 --set relay.poll_s=0.1"
    mine = next(name for name in map(str, range(99)) if shard_of(name, 3) == 1)
    foreign = next(name for name in map(str, range(99)) if shard_of(name, 3) == 2)
    store = open_store(str(tmp_path / "store"))
    with (
        process(*line.split(), cwd=tmp_path) as (child, url),
        connect(url, compression=None) as socket,
    ):
        ask(socket, {"type": "hello", "protocol": 1})
        for tick in range(20):
            told = {"type": "observation", "territory": mine, "features": [tick, 1], "tick": tick}
            assert ask(socket, told)["type"] == "decision"
        refused = ask(socket, {**told, "territory": foreign})
        assert refused["code"] == "wrong_shard"
        assert refused["message"].endswith("shard 2/3")
        deadline = time.monotonic() + 60.0  # the relay's process starts first
        while not store.list(bucket.EPISODES):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        assert child.wait(30) == 130
    assert not (tmp_path / "run" / "learner.lock").exists()
    assert not list((tmp_path / "run" / "buffer").glob("*.npz")), "the relay has sent them all"
    called = understudy(
        "relay", tmp_path / "learner", tmp_path / "store", "--side", "learner", "--once", "--json"
    )
    assert called.code == 0, called.err
    assert json.loads(called.out)["received"] >= 4
    made = RunFolder.load(tmp_path / "learner", SystemClock())
    assert made.identity.game == "skirmish"
    assert (made.root / "ledger").is_dir(), "a continuous learner may work here"


# --- evidence ------------------------------------------------------------------------------------

_PATIENCE_S = 120.0


@dataclass
class _Place:
    """A machine that played, from its run folder."""

    name: str
    folder: RunFolder


class _Server:
    """`understudy serve` of one shard, and a client that plays it; it may be killed."""

    def __init__(self, root: Path, number: int) -> None:
        self._root = root
        self.run = root / f"server{number}"
        line = (
            f"--schema game.toml --run {self.run.name} --port 0 --quiet --relay store "
            f"--shard {number}/2 --promotion auto --score=-5,5 --set live.promotion_segment=16 "
            "--set live.least_settled=4 --set relay.poll_s=0.1 --set promotion.first_share=0.5 "
            "--set promotion.practice_share=0 --set promotion.first_matches=1000000"
        )
        self._line = line.split()
        names = (str(one) for one in itertools.count())
        self._mine = (one for one in names if shard_of(one, 2) == number)
        self._tick = 0
        self._stack = contextlib.ExitStack()
        self.start()

    def start(self) -> None:
        self._stack = contextlib.ExitStack()
        self.child, url = self._stack.enter_context(process(*self._line, cwd=self._root))
        self._socket: ClientConnection = self._stack.enter_context(connect(url, compression=None))
        ask(self._socket, {"type": "hello", "protocol": 1})
        # A new client each time: the territories before are those of another one.
        self._territories = list(itertools.islice(self._mine, 3))

    def play(self) -> None:
        """One decision of each territory."""
        self._tick += 1
        for name in self._territories:
            seen = {"territory": name, "features": [self._tick % 5, 1], "tick": self._tick}
            assert ask(self._socket, {"type": "observation", **seen})["type"] == "decision"

    def kill(self) -> None:
        self.child.kill()
        self.child.wait()
        with contextlib.suppress(ConnectionClosed, OSError):
            self._stack.close()

    def kill_relay(self) -> None:
        """The server starts it again."""
        for one in psutil.Process(self.child.pid).children():
            if "relay" in one.cmdline():
                one.kill()

    def open_segments(self) -> set[str]:
        """Segments of its own log that have no result."""
        log = own_log(_Place("", RunFolder.load(self.run, SystemClock())))
        over = {record.order for _, record in log if isinstance(record, Resolved)}
        return {
            record.match
            for number, record in log
            if isinstance(record, Assigned) and number not in over
        }

    def end(self) -> None:
        self.child.send_signal(signal.SIGINT)
        assert self.child.wait(60) == 130
        self._stack.close()


class _LearnersRelay:
    def __init__(self, root: Path) -> None:
        self._root = root
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "understudy", "relay", "learner", "store"]
        quiet = subprocess.DEVNULL
        self.child = subprocess.Popen(
            [*command, "--side", "learner"], cwd=self._root, stdout=quiet, stderr=quiet
        )

    def kill(self) -> None:
        self.child.kill()
        self.child.wait()


def _play_until(servers: list[_Server], holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "it does not happen"
        for _, one in itertools.product(range(10), servers):
            one.play()


def check_servers_with_kills(root: Path, kills: list[str]) -> None:
    """Two servers and the learner's relay as processes; each of `kills` names what is killed. Then
    every segment that is over is in the log that is judged by, once and in its server's order."""
    (root / "game.toml").write_text(GAME, encoding="utf-8")
    learner = root / "learner"
    relay = _LearnersRelay(root)
    servers = [_Server(root, number) for number in range(2)]
    try:
        _play_until(servers, lambda: holds_run(learner))
        folder = RunFolder.load(learner, SystemClock())
        _play_until(servers, lambda: len(resolved(folder)) > 5)
        publish(folder, 1, ATTACK)
        promotion = Promotion(folder)
        assert promotion.nominate(1, experience=1, reason="a test")
        promotion.close()

        def tested() -> bool:
            return {one.stratum for one in assigned(folder) if one.arm == "canary"} == {
                "shard=0/2",
                "shard=1/2",
            }

        _play_until(servers, tested)
        left: set[str] = set()
        for what in kills:
            before = len(resolved(folder))
            if what == "learner":
                relay.kill()
                relay.start()
            elif what == "server":
                _play_until(servers, lambda: bool(servers[0].open_segments()))
                servers[0].kill()
                left |= servers[0].open_segments()
                servers[0].start()
            else:
                servers[1].kill_relay()
            _play_until(servers, lambda before=before: len(resolved(folder)) > before)  # type: ignore[misc]
        for one in servers:
            one.end()
    finally:
        relay.kill()
        for one in servers:
            one.kill()
    for _ in range(2):  # what was sent last is judged, and comes back
        for run in (learner, *(one.run for one in servers)):
            line = ["-m", "understudy", "relay", run.name, "store", "--once", "--json"]
            subprocess.run([sys.executable, *line], cwd=root, check=True, capture_output=True)
    log = records(folder)
    for one in servers:
        side = read_side(one.run)
        assert side is not None
        place = _Place(side.machine, RunFolder.load(one.run, SystemClock()))
        assert brought(log, place) == own_prefix(place), "once each, in the order of its server"
        assert records(place.folder) == log
    matches = Counter(one.match for one in assigned(folder))
    assert set(matches.values()) == {1}
    assert not folded(folder).open
    endings = Counter(one.ending for one in resolved(folder))
    assert endings["finished"] > 10 and endings["vanished"] == 0
    results = {one.order: one.ending for one in resolved(folder)}
    ended = {one.match: results[number] for number, one in log if isinstance(one, Assigned)}
    assert ("server" in kills) == bool(left)
    assert {ended[match] for match in left} <= {"void"}, "what a killed server left is void"


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_killed_servers_and_relays_lose_and_repeat_no_segment(tmp_path: Path) -> None:
    check_servers_with_kills(tmp_path, ["server", "learner", "relay"])


@pytest.mark.soak
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("seed", range(3))
def test_servers_and_relays_that_are_killed_at_random(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    check_servers_with_kills(
        tmp_path, [chance.choice(["server", "learner", "relay"]) for _ in range(10)]
    )
