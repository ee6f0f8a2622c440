from __future__ import annotations

import re
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from learner.toy_items import continuous, segment
from learner.toy_items import settings as served_settings
from walk.toys import (
    SetClock,
    a_bad_night,
    matches_of,
    open_run,
    settings,
    spool_of,
    work_to_the_end,
)
from walk.toys import learner as learner_of

from understudy.core.clock import SystemClock
from understudy.experience.episode import Outcome
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import WEIGHTS
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Reader

from .calling import lockstep, understudy
from .runs_of_brawl import brawl_run


@pytest.fixture
def run(played: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy that may be changed."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(played, tmp_path / "run"))


def test_the_list(played: Path) -> None:
    rows = understudy("models", "list", "--run", played, "--json").json
    assert [row["version"] for row in rows] == [1, 2, 3]
    assert [row["parent"] for row in rows] == [None, 1, 2]
    assert [row["matches"] for row in rows] == [2, 4, 6]
    assert [row["roles"] for row in rows] == [[], [], ["candidate", "champion"]]
    assert all(isinstance(row["loss"], float) for row in rows)
    called = understudy("models", "list", "--run", played)
    assert called.out.count("\n") == 4
    assert "candidate, champion" in called.out.splitlines()[-1]


def test_one_version(played: Path) -> None:
    manifest = understudy("models", "show", 2, "--run", played, "--json").json
    assert (manifest["number"], manifest["parent"]) == (2, 1)
    assert len(manifest["ingested"]) == 2
    called = understudy("models", "show", 2, "--run", played)
    assert "Version    2" in called.out and "Parent     1" in called.out
    assert "2 matches since its parent; in all 4 matches, " in called.out
    for command in ("show", "rollback"):
        called = understudy("models", command, 9, "--run", played)
        assert called.code == 2
        assert "version 9 is not in" in called.err and "1 to 3" in called.err


def test_a_served_run_has_segments_and_its_pin_is_in_the_status(tmp_path: Path) -> None:
    folder = open_run(tmp_path / "run", served_settings(), SetClock())
    (folder.root / "ledger").mkdir()
    learner = continuous(folder)
    for number in range(6):
        spool_of(folder).put(segment(number))
        if number % 3 == 2:
            learner.work()
            folder.clock.advance(9.0)  # type: ignore[attr-defined]
    rows = understudy("models", "list", "--run", folder.root, "--json").json
    assert [(row["matches"], row["segments"]) for row in rows] == [(0, 3), (0, 6)]
    table = [
        line.split() for line in understudy("models", "list", "--run", folder.root).out.splitlines()
    ]
    assert [row[2] for row in table] == ["segments", "3", "6"]
    called = understudy("models", "show", 2, "--run", folder.root)
    assert "3 segments since its parent; in all 6 segments, " in called.out
    status = understudy("status", "--run", folder.root, "--json").json
    assert (status["champion"], status["pinned"]) == (2, False)
    understudy("models", "rollback", 1, "--run", folder.root)
    status = understudy("status", "--run", folder.root, "--json").json
    assert (status["champion"], status["pinned"]) == (1, True)
    words = understudy("status", "--run", folder.root).out
    assert "; 1 is pinned as champion\n" in words and "understudy models release --run" in words


def test_rewards_by_version_and_what_they_are_measured_against(tmp_path: Path) -> None:
    """A server's: version 0 draws at random, later ones prefer the action that pays."""
    folder = open_run(tmp_path / "run", served_settings(), SetClock())
    (folder.root / "ledger").mkdir()
    learner, rng = continuous(folder), np.random.default_rng(1)

    def play(version: int, right: float) -> None:
        for number in range(40):
            actions = (rng.random(8) < right).astype(np.int32)
            odds = np.where(actions == 1, right, 1.0 - right)
            one = segment(100 * version + number, length=8, versions=np.full(8, version))
            spool_of(folder).put(
                replace(
                    one,
                    meta=msgspec.structs.replace(one.meta, outcome=Outcome.ABORTED),
                    actions=actions[:, None],
                    rewards=(actions + rng.normal(0.0, 0.1, 8)).astype(np.float32),
                    log_probs=np.log(odds).astype(np.float32),
                    bootstrap=np.zeros(2, np.float32),
                )
            )
        folder.clock.advance(9.0)  # type: ignore[attr-defined]
        learner.work()

    def told() -> tuple[dict[str, Any], str]:
        status = understudy("status", "--run", folder.root, "--json").json
        return status["version_rewards"], understudy("status", "--run", folder.root).out

    play(0, 0.5)
    first, words = told()
    assert (
        first["now"] == first["start"]
        and "by version 0 in 40 segments (reward per decision)" in words
    )
    play(1, 0.8)
    reward, words = told()
    assert (reward["per"], reward["decisions"], reward["actions"]) == ("decision", 640, 2)
    assert reward["start"] == first["start"]
    assert (reward["now"]["first"], reward["now"]["count"]) == (1, 40)
    for found, truth in ((reward["now"]["reward"], 0.8), (reward["random"], 0.5)):
        assert found["low"] < truth < found["high"]
    assert (reward["fixed_action"], reward["fixed_known"]) == ("right", 2)
    for part in (
        "Reward      0.",
        "at the start 0.",
        "a random action 0.",
        "the fixed action 'right' ",
    ):
        assert part in words
    rows = understudy("models", "list", "--run", folder.root, "--json").json
    assert [row["reward"] and row["reward"]["count"] for row in rows] == [40, None]
    shown = understudy("models", "show", 1, "--run", folder.root).out
    assert (
        "Played     reward 0." in shown
        and "by version 0 in 40 segments (reward per decision)" in shown
    )


def test_rewards_of_matches_are_told_and_what_they_do_not_tell_is_said(tmp_path: Path) -> None:
    folder = open_run(tmp_path / "run", settings(), SetClock())
    spool, mind = spool_of(folder), learner_of(folder)
    for version, count in ((0, 40), (1, 12)):
        for one in matches_of(version, f"{version}", won=count, lost=0):
            spool.put(one)
        work_to_the_end(mind)
    words = understudy("status", "--run", folder.root).out
    assert "Reward      3 (3 to 3) by version 0 in 40 matches (reward per match)" in words
    table = understudy("models", "list", "--run", folder.root).out
    assert "(12 of 40 results)" in table


def test_show_counts_what_such_a_run_counts(tmp_path: Path) -> None:
    versions = RunFolder.load(brawl_run(tmp_path, versions=1), SystemClock()).versions
    before = versions.manifest(1)
    counters = {"steps": 6_400, "matches": 12, "iterations": 10}
    after = msgspec.structs.replace(before, number=2, parent=1, counters=counters)
    versions.commit(after, {WEIGHTS: versions.read(before, WEIGHTS)})
    out = understudy("models", "show", 2, "--run", tmp_path).out
    assert "Learned    12 matches, 6,400 steps, 10 iterations\n" in out
    assert "Learned    nothing yet\n" in understudy("models", "show", 1, "--run", tmp_path).out


def test_export_is_a_file_that_numpy_reads(played: Path, tmp_path: Path) -> None:
    out = tmp_path / "champion.npz"
    called = understudy("models", "export", 3, "-o", out, "--run", played, "--json")
    assert called.json == {"version": 3, "file": str(out), "bytes": out.stat().st_size}
    with np.load(out, allow_pickle=False) as arrays:
        assert "normaliser.mean" in arrays and len(arrays) > 4
    for bad in (tmp_path / "champion.txt", tmp_path / "nowhere" / "champion.npz"):
        called = understudy("models", "export", 3, "--out", bad, "--run", played)
        assert called.code == 2 and "--out" in called.err


def test_no_version_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = ("--matches", 1, "--difficulty", "easy", "--learner", "off", "--run", "run")
    assert understudy("play", "swarm", *options, "--json").code == 0
    assert "No version yet" in understudy("models", "list", "--run", "run").out
    assert understudy("models", "list", "--run", "run", "--json").json == []
    for command in ("rollback", "release"):
        called = understudy("models", command, "--run", "run")
        assert called.code == 2 and called.err.count("\n") == 1


def test_a_rollback_holds_until_it_is_released(run: Path) -> None:
    """Bots play the pinned version, the learner goes on from it, and nothing is ingested twice."""
    called = understudy("models", "rollback", 1, "--run", run, "--json")
    assert called.json == {"champion": 1, "pinned": True}
    again = lockstep(run, "--seed", 3, matches=4)
    assert again.code == 0 and again.json["episodes"]["quarantined"] == 0
    rows = understudy("models", "list", "--run", run, "--json").json
    assert [row["version"] for row in rows] == [1, 2, 3, 4, 5]
    assert [row["parent"] for row in rows] == [None, 1, 2, 1, 4]
    assert rows[0]["roles"] == ["champion (pinned)"] and rows[4]["roles"] == ["candidate"]
    told = [entry.e for entry in Reader(run / "journal").new()]
    assert [event.version for event in told if isinstance(event, ev.BotStarted)] == [0, 1]
    assert [event.version for event in told if isinstance(event, ev.MatchFinished)][-4:] == [1] * 4

    called = understudy("models", "release", "--run", run, "--json")
    assert called.json == {"champion": 1, "pinned": False}
    assert lockstep(run, "--seed", 3, matches=2).code == 0
    rows = understudy("models", "list", "--run", run, "--json").json
    assert rows[-1]["version"] == 6 and rows[-1]["parent"] == 5
    assert rows[-1]["roles"] == ["candidate", "champion"]
    versions = RunFolder.load(run, SystemClock()).versions
    ingested = Counter(key for row in rows for key in versions.manifest(row["version"]).ingested)
    assert len(ingested) == 12 and set(ingested.values()) == {1}


def test_a_rollback_without_a_number_goes_to_the_parent(run: Path) -> None:
    called = understudy("models", "rollback", "--run", run)
    assert called.code == 0
    assert "Version 2 plays now and is pinned: the parent of 3; " in called.out
    assert f"understudy models release --run {run}" in called.out
    called = understudy("models", "release", "--run", run)
    assert "Version 2 plays until the next one is promoted" in called.out


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that played well for half a minute, and badly ever since. Only for copying."""
    root, clock = tmp_path_factory.mktemp("night") / "run", SetClock()
    config = settings(registry__keep_versions=20, registry__keep_bytes=2**30)
    a_bad_night(open_run(root, config, clock), clock)
    return root


def test_the_list_says_how_versions_played_and_why_each_is_kept(night: Path) -> None:
    rows = understudy("models", "list", "--run", night, "--json").json
    assert all(row["kept"] for row in rows)
    assert [row["version"] for row in rows if "newest" in row["kept"]] == list(range(161, 181))
    best = [row for row in rows if "best" in row["kept"]]
    assert len(best) == 5
    assert all(row["version"] <= 60 and row["score"]["win_rate"] == 0.8 for row in best)
    assert rows[-1]["score"] is None, "it has not played yet"
    assert {"candidate", "champion", "session", "mode learn"} <= {*rows[-1]["kept"]}
    called = understudy("models", "list", "--run", night)
    (line,) = [one for one in called.out.splitlines() if one.split()[0] == str(best[0]["version"])]
    assert "80% won of 40" in line and "best" in line


def test_a_rollback_without_a_number_goes_to_the_last_one_that_played_well(
    night: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(night, tmp_path / "run"))
    called = understudy("models", "rollback", "--run", run)
    assert called.code == 0, called.err
    (number,) = re.findall(r"Version (\d+) plays now and is pinned", called.out)
    assert 50 < int(number) <= 60
    assert re.search(r"the last that played well \(versions \d+ to \d+: 80% won of 40", called.out)
    first = int(number)
    assert understudy("models", "rollback", "--run", run, "--json").json["champion"] < first
    rows = understudy("models", "list", "--run", run, "--json").json
    assert [row["version"] for row in rows if "pinned" in row["kept"]][-1] == first


def test_a_damaged_version_is_never_rolled_back_to(run: Path) -> None:
    weights = run / "versions" / "00000001" / "weights.npz"
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    called = understudy("models", "rollback", 1, "--run", run)
    assert called.code == 2 and "checksum" in called.err
    rows = understudy("models", "list", "--run", run, "--json").json
    assert rows[2]["roles"] == ["candidate", "champion"]
