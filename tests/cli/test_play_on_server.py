"""`understudy play territory --url`: flags that fit, one JSON object, and a line that climbs."""

from __future__ import annotations

from pathlib import Path

import pytest
from adapters.territory.stub_server import spawn, stub

from .calling import understudy


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


SHORT = ("--territories", 2, "--ticks", 3, "--speed", 1e6)


def test_json_is_one_object_with_everything() -> None:
    with stub(lambda message: spawn(message, 7, "combat")) as (_, url):
        called = understudy("play", "territory", "--url", url, *SHORT, "--json")
    assert called.code == 0 and called.err == "" and called.out.count("\n") == 1
    told = called.json
    assert (told["decisions"], told["ticks"], told["spawns"]) == (6, 3, 6)
    assert told["version"] == 3 and told["interrupted"] is False
    assert -1.0 <= told["mean_reward"] <= 1.0
    assert told["latency_ms"].keys() == {"p50", "p99"}
    assert not Path("runs").exists(), "the run is the server's"


def test_a_person_sees_how_it_goes() -> None:
    with stub(lambda message: spawn(message, 7, "combat")) as (_, url):
        called = understudy("play", "territory", "--url", url, *SHORT)
    assert called.code == 0 and called.out == ""
    for text in ("2 territories", "decisions/s", "reward", "p99", "version 3", "Done.", "left"):
        assert text in called.err


def test_the_token_comes_from_a_file_and_goes_into_the_hello() -> None:
    Path("token").write_text("a-secret-of-many-letters\n", encoding="utf-8")
    with stub(lambda message: spawn(message, -1, None)) as (server, url):
        called = understudy("play", "territory", "--url", url, *SHORT, "--token-file", "token")
    assert called.code == 0
    assert server.hellos[0]["token"] == "a-secret-of-many-letters"
    assert "a-secret" not in called.err


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("play territory", "understudy serve territory"),
        ("play swarm --url ws://127.0.0.1:1/ws", "--url: only territory"),
        ("play swarm --territories 3", "--territories: needs --url"),
        ("play swarm --speed 3", "--speed: needs --url"),
        ("play swarm --ticks 3", "--ticks: needs --url"),
        ("play territory --url ws://127.0.0.1:1/ws --run x", "--run: belongs to the server"),
        ("play territory --url ws://127.0.0.1:1/ws --matches 3", "--matches: belongs"),
        ("play territory --url ws://127.0.0.1:1/ws --difficulty hard", "--difficulty: belongs"),
        ("play territory --url ws://127.0.0.1:1/ws --learner off", "--learner: belongs"),
        ("play territory --url ws://127.0.0.1:1/ws --lockstep", "--lockstep: belongs"),
        ("play territory --url ws://127.0.0.1:1/ws --set a=1", "--set: belongs"),
        ("play territory --url ws://127.0.0.1:1/ws --ticks 1 --minutes 1", "--ticks or --minutes"),
        ("play territory --url http://127.0.0.1:1/ws", "--url: expected an address"),
        ("play territory --url ws://127.0.0.1:1/ws", "no server answers there"),
        ("play territory --url ws://127.0.0.1:1/ws --token-file nowhere", "--token-file nowhere"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(line: str, named: str) -> None:
    called = understudy(*line.split())
    assert called.code == 2 and called.out == ""
    assert named in called.err
    assert called.err.splitlines()[-1].startswith("understudy: ") and "Traceback" not in called.err
