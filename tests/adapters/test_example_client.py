"""The clients that people copy, in Python and in JavaScript, against a real server on loopback."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("websockets")

from session.sessions import BY_GOLD, Table, Wait, game
from websockets.sync.client import connect

from understudy.adapters import example_client
from understudy.adapters.territory.translator import TerritoryTranslator
from understudy.core import files
from understudy.core.files import Disk
from understudy.server.app import Server
from understudy.server.clients import Clients
from understudy.session import schema
from understudy.telemetry.status import Status
from understudy.web.auth import make_auth
from understudy.web.listening import Listening, bound

GUIDE = Path(__file__).parents[2] / "docs" / "put-your-game-behind-understudy.md"
SCHEMA = GUIDE.parent / "examples" / "my_game.toml"
README = Path(__file__).parents[2] / "README.md"
JAVASCRIPT = Path(__file__).parents[2] / "docs" / "examples" / "client.js"


@contextmanager
def served(table: Table, folder: Path) -> Iterator[str]:
    """A real server around a real session; its address."""
    server = Server(
        table.session,
        config=table.config,
        auth=make_auth(host="127.0.0.1", allow_hosts=(), allow_origins=(), token=None),
        clients=Clients(folder / "server", table.session.holds),
        run=Status,
        problem=lambda words, error: pytest.fail(f"{words}: {error}"),
    )
    listening = Listening(
        server.app,
        max_message_bytes=table.config.max_message_bytes,
        max_clients=table.config.max_clients,
        tls=None,
        beat=lambda: server.beat(time.monotonic()),
    )
    at = bound("127.0.0.1", 0)
    thread = threading.Thread(target=listening.listen, args=(at,), daemon=True)
    thread.start()
    try:
        yield f"ws://127.0.0.1:{at.getsockname()[1]}/ws"
    finally:
        listening.should_exit = True
        thread.join(10.0)


def python_of(page: Path) -> list[str]:
    """The clients in Python that a page shows."""
    blocks = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    return [one for one in blocks if "websockets" in one]


class Crash(Exception):
    """Of a game."""


def run_client(code: str, url: str, *, crash_after: int, seen: object = (1, 2, 3)) -> list[object]:
    """What it did in its game, which always shows `seen`, until it ended, or crashed."""
    done: list[object] = []

    def do_in_my_game(action: object) -> None:
        done.append(action)
        if len(done) == crash_after:
            raise Crash

    code = code.replace("ws://127.0.0.1:8765/ws", url)
    code = re.sub(r"range\([\d_]+\)", "range(10)", code)
    with contextlib.suppress(Crash):
        exec(code, {"look_at_my_game": lambda: seen, "do_in_my_game": do_in_my_game})
    return done


def test_the_client_of_the_guide_goes_on_after_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = Table(tmp_path / "ledger")
    code, _ = python_of(GUIDE)
    with served(table, tmp_path) as url:
        assert len(run_client(code, url, crash_after=4)) == 4
        assert len(run_client(code, url, crash_after=0)) == 10
    assert table.session.status().errors == {"unknown_territory": 1}  # nothing to end, at first
    counts = table.ledger.counts
    assert (counts.opened, counts.open) == (14, 0)


def test_the_client_with_rules_of_its_own_is_understood(tmp_path: Path) -> None:
    table = Table(tmp_path, translator=schema.load(SCHEMA))
    _, code = python_of(GUIDE)
    seen = {"health": 90, "enemies_near": 2, "allies_near": 0, "gold": 5}
    with served(table, tmp_path) as url:
        assert len(run_client(code, url, crash_after=0, seen=seen)) == 10
    assert table.session.status().errors == {}
    counts = table.ledger.counts
    assert (counts.opened, counts.open) == (10, 0)


def test_the_client_of_the_readme_copes_with_not_yours(tmp_path: Path) -> None:
    table = Table(tmp_path / "ledger")
    (code,) = python_of(README)  # it keeps no key
    with served(table, tmp_path) as url, contextlib.chdir(tmp_path):
        assert len(run_client(code, url, crash_after=4)) == 4
        run_client(code, url, crash_after=0)  # to its end, though the territory is another's now


def test_every_decision_of_it_is_settled_and_every_territory_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = Table(tmp_path, translator=game())
    with served(table, tmp_path) as url:
        mean = example_client.play(url, territories=3, ticks=20)
    counts = table.ledger.counts
    assert (counts.opened, counts.settled, counts.open) == (60, 60, 0)
    assert len(table.session.status().ledger) and table.session.status().territories == 0
    learned = [reward for episode in table.episodes for reward in episode.rewards]
    assert mean == pytest.approx(sum(learned) / 60)
    assert 0.0 < mean < 1.0, "an untrained policy is right now and then"
    assert "skirmish: 3 features, 3 actions" in capsys.readouterr().out


def test_what_the_gate_holds_back_is_not_done(tmp_path: Path) -> None:
    table = Table(tmp_path, translator=game(), gate=Wait(), explore_share=0.0)
    with served(table, tmp_path) as url:
        assert example_client.play(url, territories=1, ticks=10) == 0.0
    assert table.session.status().waited == 10


def test_it_also_plays_where_observations_tell_the_reward(tmp_path: Path) -> None:
    table = Table(tmp_path, translator=game(rewards=BY_GOLD))
    with served(table, tmp_path) as url:
        example_client.play(url, territories=2, ticks=5)
    counts = table.ledger.counts
    assert (counts.opened, counts.open) == (10, 0)
    assert counts.settled >= 8


PARTS: dict[str, Any] = {
    "actions": {"move": ["left", "stay", "right"], "spell": ["none", "fire"]},
    "fallback": {"move": "stay", "spell": "none"},
}


def test_it_plays_actions_in_parts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(tmp_path, translator=game(**PARTS))
    with served(table, tmp_path) as url:
        mean = example_client.play(url, territories=3, ticks=20)
    assert table.ledger.counts.settled == 60
    assert 0.0 < mean < 1.0, "a part of it is right now and then"
    assert "skirmish: 3 features, 3 2 actions" in capsys.readouterr().out


def test_each_part_has_its_share() -> None:
    parts = {"move": ["left", "stay", "right"], "spell": ["none", "fire"]}
    assert example_client.worth(0.99, {"move": "right", "spell": "fire"}, parts) == 1.0
    assert example_client.worth(0.0, {"move": "left", "spell": "fire"}, parts) == 0.5
    assert example_client.worth(0.5, "b", {"": ["a", "b"]}) == 1.0


class FullNowAndThen(Disk):
    """Refuses every third batch of decisions, as a full disk would."""

    def __init__(self) -> None:
        self.asked = 0

    def append(self, path: Path, data: bytes) -> None:
        if b"open" in data:
            self.asked += 1
            if self.asked % 3 == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        super().append(path, data)


def test_a_decision_that_was_not_written_down_gets_no_reward(tmp_path: Path) -> None:
    table = Table(tmp_path, translator=game())
    with served(table, tmp_path) as url, files.using(FullNowAndThen()):
        example_client.play(url, territories=1, ticks=9)
    counts = table.ledger.counts
    assert (counts.opened, counts.settled, counts.open) == (6, 6, 0)
    assert table.session.status().unrecorded == 3


def test_the_territory_game_is_not_for_it(tmp_path: Path) -> None:
    table = Table(tmp_path, translator=TerritoryTranslator())
    with (
        served(table, tmp_path) as url,
        pytest.raises(SystemExit, match="understudy play territory --url"),
    ):
        example_client.play(url, territories=1, ticks=1)


def test_from_the_command_line(tmp_path: Path) -> None:
    table = Table(tmp_path, translator=game())
    with served(table, tmp_path) as url:
        done = subprocess.run(
            [sys.executable, "-m", "understudy.adapters.example_client", "--url", url,
             "--territories", "2",
             "--ticks", "10"],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 11 and "version" in lines[-1] and "mean" in lines[-1]
    assert table.ledger.counts.settled == 20


def test_an_error_is_told_with_its_field(tmp_path: Path) -> None:
    table = Table(tmp_path, translator=game())
    with served(table, tmp_path) as url, connect(url, compression=None) as socket:
        example_client.ask(socket, type="hello", protocol=1)
        with pytest.raises(SystemExit, match=r"wrong_features: .*\(field: features\)"):
            example_client.ask(socket, type="observation", territory="north", features=[1.0])


def node() -> list[str]:
    """A Node that has the WebSocket of browsers, and what makes it show it."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("there is no Node")
    for command in ([found], [found, "--experimental-websocket"]):
        line = [*command, "-e", "process.exit(typeof WebSocket === 'undefined' ? 1 : 0)"]
        if subprocess.run(line, capture_output=True, check=False, timeout=60).returncode == 0:
            return command
    pytest.skip("this Node has no WebSocket")


def test_the_one_in_javascript(tmp_path: Path) -> None:
    command = node()
    table = Table(tmp_path, translator=game())
    with served(table, tmp_path) as url:
        done = subprocess.run(
            [*command, str(JAVASCRIPT), url, "3", "10"],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "skirmish: 3 features, 3 actions" in done.stdout
    assert done.stdout.count("mean") == 10
    counts = table.ledger.counts
    assert (counts.opened, counts.settled, counts.open) == (30, 30, 0)


def test_the_one_in_javascript_plays_parts_and_stands_a_full_disk(tmp_path: Path) -> None:
    command = node()
    table = Table(tmp_path, translator=game(**PARTS))
    with served(table, tmp_path) as url, files.using(FullNowAndThen()):
        done = subprocess.run(
            [*command, str(JAVASCRIPT), url, "1", "9"],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "3 2 actions" in done.stdout
    counts = table.ledger.counts
    assert (counts.opened, counts.settled, counts.open) == (6, 6, 0)


def test_the_one_in_javascript_says_that_nobody_answers() -> None:
    done = subprocess.run(
        [*node(), str(JAVASCRIPT), "ws://127.0.0.1:1/ws"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1 and "no server answers there" in done.stderr
