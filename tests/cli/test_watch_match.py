"""`understudy watch --match`: recorded matches are listed, replayed, or refused with a reason."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from understudy.core.clock import SystemClock
from understudy.experience import episode as episodes
from understudy.match.recordings import MatchRecordings, RecordedMatch, encode
from understudy.registry.run_folder import RunFolder

from .calling import Called, alone, understudy
from .runs_of_brawl import brawl_run
from .training import SMALL

STEPS = 24 * 512


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short training of brawl that records matches. Tests only look at it."""
    run = tmp_path_factory.mktemp("recorded") / "run"
    called = exactly(
        "train", "brawl", *SMALL, "--config", "small", "--opponents", "random", "--steps", STEPS,
        "--set", "train.segment=64", "--set", "train.record=8",
        "--set", f"train.checkpoint_steps={STEPS // 2}", "--run", run, "--json",
    )  # fmt: skip
    assert called.code == 0, called.err
    return run


@pytest.fixture
def run(trained: Path) -> Path:
    """A copy that a test may change."""
    shutil.copytree(trained, "run")
    return Path("run")


def watch(*args: object, game: str = "brawl") -> Called:
    return understudy("watch", game, "--match", *args)


def exactly(*args: object) -> Called:
    """`understudy ARGS…` in a process whose compiler rounds alike in training and in replays.

    The emitters that all other tests compile with (conftest.py) do not: a replay diverges.
    """
    done = subprocess.run(
        [sys.executable, "-m", "understudy", *map(str, args)],
        capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "XLA_FLAGS": "--xla_backend_optimization_level=0"},
    )  # fmt: skip
    return Called(done.returncode, done.stdout, done.stderr)


def newest(run: Path) -> int:
    return MatchRecordings(run).numbers()[-1]


def test_matches_of_a_training_are_listed_newest_first(trained: Path) -> None:
    rows = watch(trained, "--json").json
    kept = MatchRecordings(trained)
    assert [int(row["id"]) for row in rows] == kept.numbers()[::-1] and len(rows) >= 2
    for row in rows:
        meta = kept.meta(int(row["id"]))
        assert (row["opponent"], row["frames"], row["steps"]) == (
            "random", meta.frames, meta.steps,
        )  # fmt: skip
        assert row["outcome"] == {1: "won", 0: "drawn", -1: "lost"}[meta.score]
        assert meta.options == {} and 0 < meta.steps <= STEPS
    words = watch(trained).out.splitlines()
    assert words[0].split() == ["id", "opponent", "outcome", "frames", "steps", "version", "when"]
    assert [line.split()[0] for line in words[1:-1]] == [row["id"] for row in rows]
    assert words[-1] == (
        f"Watch one: understudy watch brawl --match {trained.as_posix()}:{rows[0]['id']}"
    )


def test_a_recorded_match_is_watched_as_any_other(trained: Path) -> None:
    kept = MatchRecordings(trained)
    for number in kept.numbers()[-2:]:
        match = f"{trained.as_posix()}:{number}"
        meta = kept.meta(number)
        told = exactly("watch", "brawl", "--match", match, "--json").json
        assert (told["match"], told["frames"], told["seed"]) == (match, meta.frames, meta.seed)
        assert {told["left"], told["right"]} == {trained.as_posix(), "random"}
        winner = {1: trained.as_posix(), 0: None, -1: "random"}[meta.score]
        assert told["winner"] == winner
        assert msgspec.convert(told["recorded"], type(meta)) == meta
    words = exactly("watch", "brawl", "--match", match)
    assert words.code == 0 and words.err == ""
    assert f"Recorded: {match}, " in words.out
    assert "Replayed: all states are as recorded, bit for bit" in words.out
    assert words.out.count("is knocked out") == sum(
        event["event"] == "knocked_out" for event in told["events"]
    )


def test_a_recorded_match_becomes_a_picture(trained: Path) -> None:
    match = f"{trained}:{newest(trained)}"
    called = exactly("watch", "brawl", "--match", match, "--png", "match.png")
    assert called.code == 0, called.err
    assert Path("match.png").read_bytes().startswith(b"\x89PNG")


def test_a_damaged_recording_is_told_of_and_not_shown(run: Path) -> None:
    number = newest(run)
    path = run / "matches" / f"{number:08d}.match"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    called = watch(f"run:{number}")
    assert called.code == 2 and called.out == ""
    assert f"{number:08d}.match: does not match its checksum" in called.err
    rows = watch(run, "--json").json
    assert "does not match its checksum" in rows[0]["problem"] and "problem" not in rows[1]
    listed = watch(run).out
    assert f"{number}  cannot be replayed: " in listed and listed.count("cannot be replayed") == 1


def changed(run: Path, number: int, match: RecordedMatch) -> None:
    (run / "matches" / f"{number:08d}.match").write_bytes(encode(match))


def test_other_rules_are_told_of_and_not_shown(run: Path) -> None:
    number = newest(run)
    match = MatchRecordings(run).load(number)
    other = msgspec.structs.replace(match.meta, rules=99)
    changed(run, number, RecordedMatch(other, match.actions, match.checksums))
    called = watch(f"run:{number}")
    assert called.code == 2 and called.out == ""
    assert f"run:{number}: rules: recorded under brawl 99, this program plays brawl " in called.err
    assert "cannot be replayed: recorded under brawl 99, this is brawl" in watch(run).out


def test_a_replay_that_diverges_is_never_shown_as_if_right(run: Path) -> None:
    number = newest(run)
    match = MatchRecordings(run).load(number)
    sums = match.checksums.copy()
    sums[100:] ^= 1
    changed(run, number, RecordedMatch(match.meta, match.actions, sums))
    called = exactly("watch", "brawl", "--match", f"run:{number}", "--gif", "match.gif")
    assert called.code == 2 and called.out == "" and not Path("match.gif").exists()
    assert f"run:{number}: the replay diverges at frame 101 of {match.meta.frames}" in called.err
    assert f"recorded with {match.meta.engine}; this is " in called.err


def test_a_recording_needs_the_engine_that_recorded(run: Path) -> None:
    called = alone("watch", "brawl", "--match", f"run:{newest(run)}", folder=Path.cwd())
    assert called.code == 2 and "recorded with jax" in called.err
    assert 'pip install ".[learn]"' in called.err
    listed = alone("watch", "brawl", "--match", "run", "--json", folder=Path.cwd())
    assert listed.json == watch(run, "--json").json


def test_wrong_names_say_what_was_expected(run: Path) -> None:
    brawl_run(Path("bare"))
    for asked, message in (
        ("nowhere:1", "--match nowhere:1: expected RUN:ID, or RUN to list what there is"),
        ("nowhere", "there is no run folder 'nowhere'"),
        ("run:", "--match run:: expected RUN:ID"),
        ("run:best", "--match run:best: expected a number after the colon"),
        ("run:999", "there is no recorded match 999; there are 1 to"),
        ("bare:1", "there is no recorded match 1; this run has none"),
    ):
        called = watch(asked)
        assert called.code == 2 and called.out == "" and message in called.err, called.err
    assert "bare has no recorded matches" in watch("bare").out
    assert watch("bare", "--json").json == []
    refused = watch("run", game="swarm")
    assert refused.code == 2 and "made for brawl" in refused.err
    for flags in (("--left", "run"), ("--right", "random"), ("--seed", 0), ("--greedy",)):
        called = watch("run:1", *flags)
        assert called.code == 2 and f"{flags[0]}: a recorded match" in called.err


@pytest.fixture
def played() -> Path:
    called = understudy(
        "play", "swarm", "--matches", 3, "--learner", "off", "--run", "mine", "--json",
        "--difficulty", "easy",
    )  # fmt: skip
    assert called.code == 0, called.err
    return Path("mine")


def test_episodes_of_play_are_replayed_too(played: Path) -> None:
    rows = watch(played, "--json", game="swarm").json
    assert len(rows) == 3 and all("problem" not in row for row in rows)
    assert [row["at"] for row in rows] == sorted((row["at"] for row in rows), reverse=True)
    for row in rows:
        told = watch(f"mine:{row['id'][:12]}", "--json", game="swarm").json
        assert (told["match"], told["outcome"], told["frames"], told["opponent"]) == (
            f"mine:{row['id']}", row["outcome"], row["frames"], row["opponent"],
        )  # fmt: skip
        assert told["events"][-1]["event"] == {
            "victory": "won", "defeat": "lost", "tie": "drawn"
        }[row["outcome"]]  # fmt: skip
    words = watch(f"mine:{row['id']}", game="swarm").out
    assert "all observations are as recorded, bit for bit" in words
    drawn = watch(f"mine:{row['id']}", "--png", "x.png", game="swarm")
    assert drawn.code == 0 and Path("x.png").read_bytes().startswith(b"\x89PNG")
    nothing = watch("mine:zz", game="swarm")
    assert nothing.code == 2 and "expected one episode, found 0" in nothing.err


def test_an_episode_without_tags_is_still_read_and_says_why_it_cannot_be_replayed(
    played: Path,
) -> None:
    path = sorted((played / "buffer").glob("*.npz"))[-1]
    spec = RunFolder.load(played, SystemClock()).spec
    episode = episodes.decode(path.read_bytes(), spec, what=path.name)
    tags = {name: value for name, value in episode.meta.tags.items() if name != "seed"}
    meta = msgspec.structs.replace(episode.meta, tags=tags)
    path.write_bytes(episodes.encode(dataclasses.replace(episode, meta=meta)))
    row = watch(played, "--json", game="swarm").json[0]
    assert row["problem"].startswith("it has no tag 'seed'") and row["frames"] == len(episode)
    called = watch(f"mine:{row['id']}", game="swarm")
    assert called.code == 2 and f"{path.name}: tags: expected 'seed'" in called.err
