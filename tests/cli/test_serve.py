"""`understudy serve` as a person starts it: the walk of a decision, bad input, and a good end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from server.standing import Parrot, ask, hear, until
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from understudy.cli.serve import _summary
from understudy.core.clock import SystemClock
from understudy.core.config import Config
from understudy.policy.spec import PolicySpec
from understudy.policy.transformer import Transformer
from understudy.registry.run_folder import RunFolder
from understudy.run import serve
from understudy.run.serve import ServeSummary
from understudy.run.server_wiring import ServeOptions
from understudy.session import schema
from understudy.telemetry.status import Status

from .calling import understudy

GAME = """
[game]
name = "skirmish"
features = ["health", "enemies"]
actions = ["attack", "retreat"]
fallback = "retreat"
"""
HELLO = {"type": "hello", "protocol": 1}


@dataclass
class Place:
    """A server in a process of its own."""

    child: subprocess.Popen[str]
    folder: Path
    url: str

    def connect(self) -> ClientConnection:
        one: ClientConnection = connect(self.url, compression=None)
        return one


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("serve")
    (folder / "game.toml").write_text(GAME, encoding="utf-8")
    line = "serve --schema game.toml --run run --port 0 --learner off"
    with subprocess.Popen(
        [sys.executable, "-m", "understudy", *line.split()],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        assert child.stderr is not None
        try:
            first = child.stderr.readline()
            assert "skirmish at ws://127.0.0.1:" in first and "run folder run" in first, first
            yield Place(child, folder, "ws://" + first.split("ws://")[1].split(",")[0])
        finally:
            child.kill()


def observe(territory: str, **more: Any) -> dict[str, Any]:
    return {"type": "observation", "territory": territory, "features": [1.0, 2.0], **more}


def test_the_walk_of_a_decision(place: Place) -> None:
    with place.connect() as one:
        welcome = ask(one, HELLO)
        assert welcome["game"] == "skirmish" and welcome["features"] == ["health", "enemies"]
        decision = ask(one, observe("walk", tick=1, id="a"))
        assert (decision["type"], decision["id"], decision["tick"]) == ("decision", "a", 1)
        assert decision["action"] in ("attack", "retreat") and decision["verdict"] == "SEND"
        again = ask(one, observe("walk", tick=1))
        assert again["duplicate"] and again["decision_id"] == decision["decision_id"]
        reward = {"type": "reward", "decision_id": decision["decision_id"], "reward": 0.5}
        assert ask(one, reward)["status"] == "settled"
        assert ask(one, reward)["status"] != "settled"  # once
        assert ask(one, {"type": "end", "territory": "walk"})["type"] == "ended"


def test_a_client_that_reconnects_goes_on(place: Place) -> None:
    with place.connect() as one:
        key = ask(one, {**HELLO, "client": "back"})["resume"]
        first = ask(one, observe("mine", tick=5))
    with place.connect() as other:
        assert ask(other, observe("mine", tick=6))["code"] == "not_yours"
    with place.connect() as one:
        ask(one, {**HELLO, "client": "back", "resume": key})
        assert ask(one, observe("mine", tick=5))["decision_id"] == first["decision_id"]
        assert ask(one, observe("mine", tick=6))["type"] == "decision"


@pytest.mark.parametrize(
    "bad",
    [
        "{",
        "[]",
        "null",
        '"text"',
        "\udcff".encode("utf-8", "surrogateescape"),
        '{"type": "observation"}',
        '{"type": "dance"}',
        '{"territory": "t"}',
        '{"type": "observation", "territory": "t", "features": [1, NaN]}',
        '{"type": "observation", "territory": "t", "features": [1, 1e39]}',
        '{"type": "observation", "territory": "t", "features": [1, 1e999]}',
        '{"type": "observation", "territory": "t", "features": [1]}',
        '{"type": "observation", "territory": "t", "features": ["1", 2]}',
        '{"type": "observation", "territory": "", "features": [1, 2]}',
        '{"type": "observation", "territory": "t", "features": [1, 2], "colour": 1}',
        '{"type": "observation", "territory": "t", "features": {"health": 1}}',
        '{"type": "observation", "territory": "t", "features": [1, 2], "legal": [false, false]}',
        '{"type": "reward", "decision_id": 1, "reward": "much"}',
        '{"type": "end", "territory": "never heard of"}',
        '{"type": "observation", "territory": "t", "features": ' + "[" * 5000 + "]" * 5000 + "}",
    ],
)
def test_bad_input_is_a_structured_error_and_nothing_else_happens(
    place: Place, bad: str | bytes
) -> None:
    with place.connect() as one, place.connect() as neighbour:
        assert ask(neighbour, observe("beside", tick=1))["type"] in ("decision", "error")
        said = ask(one, bad)
        assert said["type"] == "error" and said["code"] and said["message"]
        assert "Traceback" not in said["message"] and "/" not in said["message"].replace("n/a", "")
        assert ask(one, {"type": "ping"})["type"] == "pong"
        assert ask(neighbour, {"type": "ping"})["type"] == "pong"


def test_a_message_of_ten_megabytes(place: Place) -> None:
    with place.connect() as one, place.connect() as neighbour:
        one.send("x" * 10_000_000)
        assert hear(one)["code"] == "too_large"
        with pytest.raises(ConnectionClosed):
            hear(one)
        assert ask(neighbour, {"type": "ping"})["type"] == "pong"


def test_a_second_server_in_the_same_run_folder_is_refused(place: Place) -> None:
    options = ("--schema", place.folder / "game.toml", "--run", place.folder / "run", "--port", 0)
    called = understudy("serve", *options, "--learner", "off")
    assert called.code == 2 and "another server" in called.err


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_says_goodbye_and_where_everything_is(place: Place) -> None:
    with place.connect() as one:
        assert ask(one, observe("last", tick=1))["type"] == "decision"
        place.child.send_signal(signal.SIGINT)
        with pytest.raises(ConnectionClosed) as end:
            hear(one)
        assert end.value.rcvd is not None and end.value.rcvd.code == 1001
    out, err = place.child.communicate(timeout=30)
    assert place.child.returncode == 130
    assert out == "" and "Traceback" not in err
    for words in ("everything up to here is kept", "Ledger ", "Run folder      run", "p99"):
        assert words in err
    counts = [int(word) for word in err.split("Ledger")[1].split("\n")[0].split() if word.isdigit()]
    assert counts[0] == sum(counts[1:]) > 0


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_sigterm_ends_it_as_well_and_json_is_one_object(tmp_path: Path) -> None:
    line = "serve territory --run run --port 0 --learner off --json"
    with subprocess.Popen(
        [sys.executable, "-m", "understudy", *line.split()],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        journal = tmp_path / "run" / "journal"
        until(lambda: list(journal.glob("server-*.jsonl")) or child.poll() is not None)
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=30)
    assert child.returncode == 143 and err == ""
    told = json.loads(out)
    assert told["game"] == "territory" and told["gate"] == "cost" and told["interrupted"]
    assert told["ledger"] == dict.fromkeys(
        ("opened", "settled", "expired", "superseded", "orphaned", "open"), 0
    )
    assert out.count("\n") == 1


@pytest.fixture
def served_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[ServeOptions]:
    """What would be served, by a server that never starts."""
    asked: list[ServeOptions] = []

    def note(options: ServeOptions, **_: object) -> None:
        asked.append(options)
        raise typer.Exit(0)

    monkeypatch.setattr(serve, "serve", note)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "game.toml").write_text(GAME, encoding="utf-8")
    (tmp_path / "mine.toml").write_text("[learner]\npublish_interval_s = 5.0\n", encoding="utf-8")
    return asked


@pytest.mark.parametrize(
    ("flags", "interval_s"),
    [
        ("", 0.5),
        ("--network mlp-large", 0.5),
        ("--network decision-transformer", 30.0),
        ("--network decision-transformer --config live", 30.0),
        ("--network decision-transformer --set learner.publish_interval_s=0.5", 0.5),
        ("--network decision-transformer --config mine.toml", 5.0),
    ],
)
def test_where_there_is_memory_a_new_run_publishes_less_often(
    served_options: list[ServeOptions], flags: str, interval_s: float
) -> None:
    assert understudy("serve", "--schema", "game.toml", *flags.split()).code == 0
    (one,) = served_options
    assert one.config.learner.publish_interval_s == interval_s
    assert one.config.learner.max_version_lag == (100 if "mine" in flags else 1_000)


def test_a_run_that_exists_keeps_its_settings(
    served_options: list[ServeOptions], tmp_path: Path
) -> None:
    declared = schema.load(tmp_path / "game.toml")
    spec = PolicySpec(declared.features, declared.actions, Transformer())
    RunFolder.open(
        tmp_path / "run", spec=spec, config=Config(), clock=SystemClock(), game=declared.name
    )
    assert understudy("serve", "--schema", "game.toml", "--run", "run").code == 0
    assert served_options[0].network == Transformer()
    assert served_options[0].config == Config()


@pytest.mark.parametrize(
    ("waiting", "words"), [(0, "0 segments for"), (1, "1 segment for"), (2, "2 segments for")]
)
def test_the_summary_counts_segments(waiting: int, words: str) -> None:
    live = Parrot().status()
    status = Status(buffer_file_count=waiting)
    lines = _summary(ServeSummary("ws://x", 1.0, live, (None, None), status, 130), 80)
    text = "\n".join(lines)
    assert max(map(len, lines)) <= 80
    assert f"Waiting         {words} the next learner" in text


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("serve", "--schema"),
        ("serve territory --schema x.toml", "one of them"),
        ("serve teritory", "'territory'"),
        ("serve brawl", "--schema my_game.toml"),
        ("serve --schema nowhere.toml", "nowhere.toml"),
        ("serve territory --learner thread", "--learner"),
        ("serve territory --relay store --learner process", "--learner"),
        (
            "serve territory --relay store --promotion auto --set promotion.judge=here",
            "promotion.judge",
        ),
        ("serve territory --promotion auto --set promotion.judge=learner", "promotion.judge"),
        ("serve territory --relay s3://me:secret@bucket/x", "credentials"),
        ("serve territory --shard 3/3", "--shard"),
        ("serve territory --port 70000", "--port"),
        ("serve territory --gate cst", "'cost'"),
        ("serve territory --gate nowhere:Gate", "nowhere"),
        ("serve territory --set live.queu=3", "'live.queue'"),
        ("serve territory --threshold nan", "--threshold"),
        (
            "serve territory --score 1,0",
            "--score: expected two finite numbers, the lower one first",
        ),
        ("serve territory --score 0,inf", "--score"),
        ("serve territory --host 0.0.0.0", "--token-file"),
        ("serve territory --host 0.0.0.0 --token-file token", "--tls-cert"),
        ("serve territory --behind-proxy", "--token-file"),
        ("serve territory --token-file nowhere", "nowhere"),
        ("serve territory --tls-cert cert.pem", "--tls-key"),
        ("serve territory --tls-cert nowhere.pem --tls-key token", "nowhere.pem"),
        ("serve territory --tls-cert token --tls-key token", "PEM"),
        ("serve territory --allow-origin *", "--allow-origin"),
        ("serve territory --address-header X-Real-IP", "--behind-proxy"),
        ("serve territory --host nowhere.invalid --token-file token --behind-proxy", "--host"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_made(
    line: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "token").write_text("correct-horse-battery", encoding="utf-8")
    (tmp_path / "token").chmod(0o600)
    called = understudy(*line.split())
    assert called.code == 2, called.err
    assert called.err.count("\n") == 1 and called.err.startswith("understudy: ")
    assert named in called.err
    assert not (tmp_path / "runs").exists()
