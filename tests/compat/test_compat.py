"""Run folders that earlier programs wrote: this one opens, serves, resumes and rolls back each.

Fixtures are found by their kind (`expected.json`), so those of a later commit are tested as soon
as `make.py` has written them. What is compared is behaviour: files may gain fields and statistics.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import subprocess
import sys
import tomllib
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from cli.calling import understudy
from server.standing import ask, process, until
from websockets.sync.client import connect

from compat.answers import answers
from understudy import Understudy, with_values
from understudy.core.clock import SystemClock
from understudy.core.config.tables import RENAMED
from understudy.registry.run_folder import RunFolder

FIXTURES = sorted((Path(__file__).parent / "runs").glob("*/*.zip"))
ENDINGS = ("settled", "expired", "superseded", "orphaned", "open")


@dataclass(frozen=True)
class Fixture:
    """A run folder, unpacked, and what the program that wrote it said of it."""

    here: Path
    expected: dict[str, Any]

    @property
    def run(self) -> Path:
        return self.here / "run"

    @property
    def folder(self) -> RunFolder:
        return RunFolder.load(self.run, SystemClock())

    @property
    def newest(self) -> int:
        return int(self.expected["versions"][-1])

    def versions(self) -> list[int]:
        return self.folder.versions.numbers()


def kind_of(path: Path) -> str:
    with zipfile.ZipFile(path) as archive:
        return str(json.loads(archive.read("expected.json"))["kind"])


def holds(path: Path, name: str) -> bool:
    with zipfile.ZipFile(path) as archive:
        return any(one.startswith(name) for one in archive.namelist())


KINDS = {path: kind_of(path) for path in FIXTURES}


def fixtures(*kinds: str, holding: str = "") -> pytest.MarkDecorator:
    """All fixtures of these kinds that hold a file whose path begins so."""
    chosen = [path for path in FIXTURES if KINDS[path] in kinds and holds(path, holding)]
    ids = [f"{path.parent.name}-{path.stem}" for path in chosen]
    return pytest.mark.parametrize("fixture", chosen, ids=ids, indirect=True)


@pytest.fixture
def fixture(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Fixture:
    with zipfile.ZipFile(request.param) as archive:
        archive.extractall(tmp_path)
    monkeypatch.chdir(tmp_path)
    text = (tmp_path / "expected.json").read_text(encoding="utf-8")
    return Fixture(tmp_path, json.loads(text))


def test_every_kind_is_there() -> None:
    assert set(KINDS.values()) == {"ring", "served", "trained", "config"}
    total = sum(path.stat().st_size for path in FIXTURES)
    assert total <= 8 * 2**20, "a repository is no place for more: make smaller ones"


# --- every run ------------------------------------------------------------------------------------


@fixtures("ring", "served", "trained")
def test_the_doctor_looks_at_a_run_and_finds_it_well(fixture: Fixture) -> None:
    called = understudy("doctor", "--run", fixture.run, "--strict", "--json")
    assert called.code == 0 and called.json["findings"] == [], called.out
    kinds = {"ring": "ring", "served": "server", "trained": "training"}
    assert called.json["kind"] == kinds[fixture.expected["kind"]]


@fixtures("ring", "served", "trained")
def test_a_run_opens_and_tells_what_it_told_then(fixture: Fixture) -> None:
    rows = understudy("models", "list", "--run", fixture.run, "--json").json
    assert [row["version"] for row in rows] == fixture.expected["versions"]
    playing = [row for row in rows if any("champion" in role for role in row["roles"])]
    assert [row["version"] for row in playing] == [fixture.expected["champion"]]
    assert ("champion (pinned)" in playing[0]["roles"]) == fixture.expected["pinned"]
    now, then = (
        understudy("status", "--run", fixture.run, "--json").json,
        fixture.expected["status"],
    )
    for name in (
        "matches", "wins", "steps", "versions", "version", "episodes", "ledger", "stage",
        "snapshots", "buffer_file_count", "archive_file_count", "total_samples", "problems",
    ):  # fmt: skip
        assert of_then(now[name], then[name]) == then[name], name
    folder = fixture.folder
    for number in fixture.expected["versions"]:
        folder.versions.verify(number)


def of_then(now: Any, then: Any) -> Any:
    """Without what was not told then."""
    return {key: now[key] for key in then} if isinstance(then, dict) else now


@fixtures("ring", "served", "trained")
def test_every_version_answers_as_it_did_then(fixture: Fixture) -> None:
    for number, then in fixture.expected["answers"].items():
        now = answers(fixture.run, int(number), fixture.expected["questions"])
        assert now["actions"] == then["actions"]
        for name in ("log_probs", "values"):
            np.testing.assert_allclose(now[name], then[name], rtol=1e-5, atol=1e-5)
    learned = fixture.expected["answers"]
    assert len({json.dumps(one) for one in learned.values()}) == len(learned), "all differ"


@fixtures("ring", "served", "trained")
def test_a_run_goes_back(fixture: Fixture) -> None:
    oldest = fixture.expected["versions"][0]
    called = understudy("models", "rollback", oldest, "--run", fixture.run, "--json")
    assert called.json == {"champion": oldest, "pinned": True}
    called = understudy("models", "release", "--run", fixture.run, "--json")
    assert called.json == {"champion": oldest, "pinned": False}


@fixtures("ring", "served", "trained")
def test_a_run_keeps_its_settings(fixture: Fixture) -> None:
    for path in fixture.run.rglob("config.toml"):
        assert_still_means(path, shown=path)


@fixtures("config")
def test_a_file_of_settings_over_another_means_what_it_says(fixture: Fixture) -> None:
    mine = fixture.here / "mine.toml"
    for path in (mine, fixture.here / "base.toml"):
        assert_still_means(path, shown=mine)


def assert_still_means(path: Path, *, shown: Path) -> None:
    """Every key that the file names has the value that `config show` resolves."""
    called = understudy("config", "show", shown, "--json")
    assert called.code == 0, called.err
    now = dict(leaves(called.json))
    for key, value in leaves(tomllib.loads(path.read_text(encoding="utf-8"))):
        if key != "extends":
            assert now[RENAMED.get(key, key)] == value, key


def leaves(table: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted keys and values; tables of a list go by their names."""
    if isinstance(table, list) and all(isinstance(one, dict) for one in table):
        table = {one["name"]: one for one in table}
    if not isinstance(table, dict):
        yield prefix, table
        return
    for name, value in table.items():
        yield from leaves(value, f"{prefix}.{name}" if prefix else name)


# --- the ring -------------------------------------------------------------------------------------


def opened(fixture: Fixture, **options: Any) -> Understudy:
    """As a bot opens its run, with all the time that a busy machine needs to stop."""
    spec = fixture.folder.spec
    patient = with_values(fixture.folder.config, {"learner.drain_s": 600.0})
    return Understudy.open(
        fixture.run,
        features=spec.features,
        actions=spec.actions,
        mode=fixture.expected["mode"],
        config=patient,
        **options,
    )


def play(mind: Understudy) -> str:
    """One match; the id of its episode."""
    spec, rng = mind.spec, np.random.default_rng(5)
    first = [0] * len(spec.actions.parts)
    names = getattr(spec.actions, "names", None)
    rules: Any = names[0] if names else first
    with mind.match(opponent="bandit") as match:
        for _ in range(12):
            match.decide(rng.normal(0.0, 2.0, len(spec.features)), fallback=rules)
            match.reward(0.5)
        assert match.finish("victory")
    return match.id


@fixtures("ring")
def test_a_ring_learns_on_and_takes_in_once_what_waited(fixture: Fixture) -> None:
    expected = fixture.expected
    waiting = set(expected["waiting"])
    assert waiting == {path.name for path in fixture.run.glob("buffer/*.npz")} != set()
    with opened(fixture, learner="thread") as mind:
        assert mind.version == expected["champion"]
        played = play(mind)
    folder = fixture.folder
    manifests = [folder.versions.verify(number) for number in folder.versions.numbers()]
    new = [one for one in manifests if one.number > fixture.newest]
    assert new, "nothing was published"
    assert new[0].parent == expected["champion"], "it goes on from the version that plays"
    taken = Counter(key for one in manifests for key in one.ingested)
    assert set(taken.values()) == {1}
    assert played in taken
    assert waiting < {name for one in new for name in one.ingested.values()}
    assert not list(fixture.run.glob("buffer/*.npz"))
    assert not list(fixture.run.glob("quarantine/*"))
    champion = folder.pointers.read("champion")
    assert champion is not None and champion.pinned == expected["pinned"]
    # In shadow the rules play: no version is the champion before there is evidence for it.
    newest = 0 if folder.by_evidence else new[-1].number
    assert champion.version == (expected["champion"] if champion.pinned else newest)
    status = understudy("status", "--run", fixture.run, "--json").json
    assert status["problems"] == expected["status"]["problems"]
    assert status["matches"] == expected["status"]["matches"] + 1


@fixtures("ring")
def test_a_bot_plays_the_version_that_it_was_sent_back_to(fixture: Fixture) -> None:
    oldest = fixture.expected["versions"][0]
    assert understudy("models", "rollback", oldest, "--run", fixture.run).code == 0
    with opened(fixture, learner="off") as mind:
        assert mind.version == oldest
        play(mind)
        assert mind.version == oldest


# --- a server -------------------------------------------------------------------------------------

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


@contextlib.contextmanager
def served(fixture: Fixture, *flags: str) -> Iterator[str]:
    """The address of a server in the run, from here to the end of the block."""
    line = ["--schema", "game.toml", "--run", "run", "--port", "0", "--learner", "off", "--quiet"]
    with process(*line, *flags, cwd=fixture.here) as (child, url):
        yield url
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=60)
        assert child.returncode == 130, said


def seen(tick: int) -> list[float]:
    """As `write_runs.observe` has it."""
    return [10.0 - tick % 7, float(tick % 3), float(tick % 2), float(tick % 11)]


def observation(territory: str, tick: int) -> dict[str, Any]:
    return {"type": "observation", "territory": territory, "tick": tick, "features": seen(tick)}


def ledger(fixture: Fixture) -> dict[str, int]:
    """Decisions of the whole run by how they ended; the sum is checked."""
    counts: dict[str, int] = understudy("status", "--run", fixture.run, "--json").json["ledger"]
    assert counts["opened"] == sum(counts[name] for name in ENDINGS), counts
    return counts


def rewards_of(fixture: Fixture, tick: int) -> dict[str, float]:
    """What the decision of this tick was worth in each territory, from the segments that wait."""
    found = {}
    for path in fixture.run.glob("buffer/*.npz"):
        with np.load(path, allow_pickle=False) as arrays:
            tags = json.loads(arrays["meta"].tobytes())["tags"]
            rows = (arrays["observations"] == np.array(seen(tick), np.float32)).all(axis=1)
            for reward in arrays["rewards"][rows]:
                found[tags["territory"]] = float(reward)
    return found


@posix
@fixtures("served")
def test_a_server_goes_on_with_open_decisions(fixture: Fixture) -> None:
    """The client comes back under its name, and what was opened and added then is settled now."""
    expected, tick = fixture.expected, fixture.expected["tick"]
    before = ledger(fixture)
    with served(fixture) as url, connect(url) as socket:
        assert ask(socket, expected["hello"])["client"] == expected["hello"]["client"]
        for name, key in expected["opened"].items():
            again = ask(socket, observation(name, tick))
            assert again["duplicate"] and again["decision_id"] == key
            decision = ask(socket, observation(name, tick + 1))
            assert decision["type"] == "decision" and decision["version"] == fixture.newest
            assert decision["decision_id"] > max(expected["opened"].values())
            assert (
                ask(socket, {"type": "end", "territory": name, "reward": 1.0})["last"] == "settled"
            )
    after, territories = ledger(fixture), len(expected["opened"])
    assert after["open"] == 0
    assert after["opened"] == before["opened"] + territories
    assert after["settled"] == before["settled"] + 2 * territories
    worth = rewards_of(fixture, tick)
    assert worth.keys() == expected["opened"].keys()
    assert worth["north"] == pytest.approx(worth["south"] + 0.25), "a part of it came back then"


@posix
@fixtures("served")
def test_open_decisions_that_waited_too_long_expire(fixture: Fixture) -> None:
    before = ledger(fixture)
    with served(fixture, "--set", "live.reward_window_s=0.001") as url:
        until(lambda: status_of(url)["ledger"]["open"] == 0)
    after = ledger(fixture)
    assert (after["opened"], after["settled"]) == (before["opened"], before["settled"])
    assert after["expired"] + after["orphaned"] == before["open"]


def status_of(url: str) -> dict[str, Any]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    with contextlib.closing(connection):
        connection.request("GET", "/status")
        status: dict[str, Any] = json.loads(connection.getresponse().read())
    return status


@posix
@fixtures("served")
def test_the_learner_behind_a_server_goes_on(fixture: Fixture) -> None:
    folder = fixture.folder
    before = {
        key for number in fixture.versions() for key in folder.versions.manifest(number).ingested
    }
    line = [sys.executable, "-m", "understudy", "learner", "--continuous", "--run", "run"]
    with subprocess.Popen(line) as child:
        until(lambda: child.poll() is not None or fixture.newest + 1 in folder.versions.numbers())
        child.send_signal(signal.SIGTERM)
    assert child.returncode == 0
    first = folder.versions.verify(fixture.newest + 1)
    assert first.parent == fixture.newest
    assert set(first.ingested.values()) == set(fixture.expected["waiting"])
    assert not before & first.ingested.keys()
    held = [one.samples for key, one in first.replay.items() if key in before]
    assert held and max(held) > 0, "how often each was sampled is known from then"
    assert not list(fixture.run.glob("quarantine/*"))
    champion = folder.pointers.read("champion")
    assert champion is not None and champion.version == folder.versions.head()


# --- training -------------------------------------------------------------------------------------


@fixtures("trained")
def test_training_goes_on(fixture: Fixture) -> None:
    expected, train = fixture.expected, fixture.folder.config.train
    steps = expected["steps"] + train.games * train.segment
    before = understudy("status", "--run", fixture.run, "--json").json
    rows = rounds(fixture)
    line = ("train", expected["game"], "--run", "run", "--resume", "--steps", steps, "--json")
    called = understudy(*line)
    assert called.code == 0, called.err
    assert (called.json["steps"], called.json["version"]) == (steps, fixture.newest + 1)
    folder = fixture.folder
    manifest = folder.versions.verify(fixture.newest + 1)
    assert manifest.parent == fixture.newest
    champion = folder.pointers.read("champion")
    assert champion is not None and champion.version == manifest.number
    after = understudy("status", "--run", fixture.run, "--json").json
    assert after["problems"] == before["problems"]
    assert (after["stage"], after["snapshots"]) == (before["stage"], before["snapshots"])
    assert rounds(fixture)[: len(rows)] == rows
    for agent in fixture.run.glob("agent-*"):
        head = RunFolder.load(agent, SystemClock()).versions.head()
        assert head is not None and head > fixture.newest


def rounds(fixture: Fixture) -> list[Any]:
    """What became of the agents of a population so far; nothing where it is none."""
    path = fixture.run / "lineage.json"
    told = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"rows": []}
    return list(told["rows"])


@fixtures("trained", holding="run/league/")
def test_a_league_is_read_as_it_was(fixture: Fixture) -> None:
    told = understudy("ratings", "--run", fixture.run, "--no-play", "--json").json
    snapshots = [name for name in told["opponents"] if name.startswith("step-")]
    assert len(snapshots) == fixture.expected["status"]["snapshots"] > 0
    assert sum(one["matches"] for one in told["opponents"].values()) > 0
    agent = f"{fixture.run}@{snapshots[0]}"
    options = ("--opponents", "random", "--matches", 2, "--engine", "numpy", "--json")
    played = understudy("eval", "brawl", "--agent", agent, *options)
    assert played.code == 0, played.err
    assert played.json["opponents"]["random"]["matches"] == 2
