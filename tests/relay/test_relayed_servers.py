"""Servers in several places: a relay beside each, and one learner behind the store."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path

import pytest
from cli.calling import understudy
from server.standing import ask, process
from websockets.sync.client import connect

from understudy.core.clock import SystemClock
from understudy.registry.run_folder import RunFolder
from understudy.relay import bucket
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
