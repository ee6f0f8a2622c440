from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import pytest
from promotion.scripted import ScriptedRun
from walk.toys import open_run, settings

from understudy.core.clock import SystemClock
from understudy.gates.promotion.records import Ordered
from understudy.promotion.history import read_history
from understudy.registry.run_folder import RunFolder
from understudy.telemetry.events import BotStarted, RoleChanged
from understudy.telemetry.journal import Journal, Reader

from .calling import understudy

CHANCES = {0: 0.3, 3: 0.05, 9: 0.95, 12: 0.9}


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Version 3 was stopped, 9 is the champion, 12 is tried; a match is open. Only for looking."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)  # nothing here is cut off
        run = ScriptedRun(tmp_path_factory.mktemp("promotion") / "run", seed=1)
        run.nominate(3)
        run.play(100, CHANCES, until="harmful", opponent="Zerg", map="Acropolis")
        run.nominate(9)
        run.play(100, CHANCES, until="promoted", opponent="Terran", map="Acropolis")
        run.nominate(12)
        run.play(20, CHANCES, opponent="Zerg")
        run.assign(opponent="Zerg")
        for words in ("it is certain: entropy 0.01", "it is certain: entropy 0.02"):  # two bots
            run.journal.write(RoleChanged(version=11, kind="refused", words=words))
    return run.folder.root


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Version 9 is the champion by a person's word, 12 is tried, 3 is there. May be changed."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    run = ScriptedRun(tmp_path / "run", seed=1)
    run.commit(3, 9)
    run.promotion.order(Ordered(order="approve", version=9))
    run.nominate(12)
    run.play(3, CHANCES)
    return run.folder.root


def promotion(run: Path, *args: object) -> Any:
    """The JSON of a command that succeeds."""
    called = understudy("promotion", *args, "--run", run, "--json")
    assert called.code == 0, called.err
    return called.json


def pointer(run: Path, name: Any) -> int:
    record = RunFolder.load(run, SystemClock()).pointers.read(name)
    assert record is not None
    return record.version


def test_status_says_who_plays_and_what_is_tried(scripted: Path) -> None:
    told = promotion(scripted, "status")
    assert (told["incumbent"], told["open"], told["policy"]) == (9, 1, "auto")
    [test] = told["tests"]
    assert (test["version"], test["against"]) == (12, 9)
    assert [one["kind"] for one in told["verdicts"]] == ["harmful", "promoted"]
    called = understudy("promotion", "status", "--run", scripted)
    assert called.code == 0
    for words in (
        "Plays       version 9 (champion) plays; version 12 is tried in 18% of the",
        "Test ",
        "version 12 against version 9, since ",
        "Open        1 match of ",
        f"understudy promotion explain 12 --run {scripted}",
    ):
        assert words in called.out, words


def test_status_of_a_bot_in_another_mode(run: Path) -> None:
    journal = Journal(run / "journal", "bot", SystemClock())
    journal.write(BotStarted(pid=1, mode="shadow", learner="off", version=12))
    words = understudy("promotion", "status", "--run", run).out
    assert "Mode        shadow; what follows holds for matches of mode auto" in words
    words = understudy("status", "--run", run).out
    assert "the rules play, 12 is measured" in words
    assert "Promotion   in mode auto canary: version 9 plays, version 12 in 18%; E" in words


def test_looking_changes_nothing(scripted: Path, tmp_path: Path) -> None:
    def everything() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in scripted.rglob("*") if path.is_file()}

    before = everything()
    understudy("status", "--run", scripted)
    understudy("promotion", "status", "--run", scripted, "--csv", tmp_path)
    understudy("promotion", "explain", 9, "--run", scripted)
    assert everything() == before


def test_explain_has_all_matches_as_json_and_the_last_as_text(scripted: Path) -> None:
    story = promotion(scripted, "explain", 9)
    [test] = story["trials"]
    assert story["role"] == "champion" and test["ending"]["kind"] == "promoted"
    assert test["matches"][-1]["better"] >= 20.0
    called = understudy("promotion", "explain", 9, "--run", scripted)
    assert test["matches"][-1]["match"][:8] in called.out
    assert "it became the champion" in called.out
    assert "a few matches" not in understudy("promotion", "explain", 3, "--run", scripted).out


def test_explain_tells_of_health_checks_that_failed(scripted: Path) -> None:
    [refused] = promotion(scripted, "explain", 11)["verdicts"]
    assert (refused["kind"], refused["words"]) == ("refused", "it is certain: entropy 0.01")
    assert (
        "it is certain: entropy 0.01"
        in understudy("promotion", "explain", 11, "--run", scripted).out
    )


def test_explain_tells_of_the_rules(scripted: Path) -> None:
    told = promotion(scripted, "explain", 0)
    assert told["role"] == "rules" and told["record"]["matches"] > 0
    assert 9 in told["tested_against"]
    text = understudy("promotion", "explain", 0, "--run", scripted).out
    assert "Version     the rules: they play while" in text


def test_explain_of_a_version_that_was_never_tested(scripted: Path) -> None:
    called = understudy("promotion", "explain", 5, "--run", scripted)
    assert called.code == 2
    assert "version 5 was never tested or promoted" in called.err
    assert "3 (retired), 9 (champion), 12 (canary)" in called.err


def test_approve_promotes_and_closes_the_test_of_another(run: Path) -> None:
    told = promotion(run, "approve", 3, "--words", "it is funnier")
    assert told["incumbent"] == 3 and not told["tests"]
    assert (pointer(run, "champion"), pointer(run, "canary")) == (3, 0)
    kinds = [one["kind"] for one in promotion(run, "explain", 12)["verdicts"]]
    assert kinds == ["nominated", "closed"]
    assert "it is funnier" in understudy("promotion", "explain", 3, "--run", run).out
    told_of = [one.e for one in Reader(run / "journal").new() if isinstance(one.e, RoleChanged)]
    assert [(one.version, one.kind) for one in told_of] == [(12, "closed"), (3, "promoted")]


def test_approve_gives_the_matches_back_to_the_rules(run: Path) -> None:
    called = understudy("promotion", "approve", 0, "--run", run)
    assert called.code == 0 and "From the next match on the rules play" in called.out
    assert pointer(run, "champion") == 0
    again = understudy("promotion", "approve", 0, "--run", run)
    assert again.code == 2 and "the rules play already" in again.err


def test_an_order_tells_the_whole_status(run: Path) -> None:
    told, status = promotion(run, "pause"), promotion(run, "status")
    assert told == status and told["paused"] and told["matches"] > 0 and told["results"]


def test_approve_answers_a_test(run: Path) -> None:
    called = understudy("promotion", "approve", 12, "--run", run)
    assert called.code == 0 and "Version 12: it became the champion." in called.out
    assert "From the next match on version 12 (champion) plays" in called.out
    assert pointer(run, "champion") == 12


@pytest.mark.parametrize(
    ("version", "words"),
    [(99, "version 99 is not in"), (9, "version 9 is the champion already"), (12, "does not")],
)
def test_approve_refuses(run: Path, version: int, words: str) -> None:
    if version == 12:  # damaged
        weights = next((run / "versions").glob("*12/weights.npz"))
        weights.write_bytes(weights.read_bytes()[:-9])
    before = len(read_history(RunFolder.load(run, SystemClock())).times)
    called = understudy("promotion", "approve", version, "--run", run)
    assert called.code == 2 and words in called.err
    assert pointer(run, "champion") == 9
    assert len(read_history(RunFolder.load(run, SystemClock())).times) == before


def test_stop_ends_the_test_for_good(run: Path) -> None:
    assert not promotion(run, "stop")["tests"]
    assert pointer(run, "canary") == 0
    assert promotion(run, "explain", 12)["role"] == "retired"
    called = understudy("promotion", "stop", "--run", run)
    assert called.code == 2 and "nothing to stop" in called.err


def test_pause_and_resume(run: Path) -> None:
    called = understudy("promotion", "resume", "--run", run)
    assert called.code == 2 and "promotion is not paused" in called.err
    called = understudy("promotion", "pause", "--run", run)
    assert "Promotion was paused." in called.out
    assert promotion(run, "status")["paused"]
    words = understudy("promotion", "status", "--run", run).out
    assert "paused by a person" in words and "understudy promotion resume --run" in words
    assert understudy("promotion", "pause", "--run", run).code == 2
    assert not promotion(run, "resume")["paused"]


def test_a_pinned_champion_plays_every_match_until_it_is_released(run: Path) -> None:
    called = understudy("models", "rollback", 3, "--run", run)
    assert "Version 3 is pinned as champion. It plays every match of mode auto" in called.out
    assert "plays now" not in called.out
    assert "version 3, pinned by a person, plays every match" in (
        understudy("promotion", "status", "--run", run).out
    )
    called = understudy("promotion", "approve", 12, "--run", run)
    assert f"To let version 12 play: understudy models release --run {run}" in called.out
    assert pointer(run, "champion") == 3
    called = understudy("models", "release", "--run", run)
    assert "from the next match of mode auto on version 12 (champion) plays" in called.out
    assert pointer(run, "champion") == 12


def test_models_list_has_the_roles(scripted: Path) -> None:
    rows = understudy("models", "list", "--run", scripted, "--json").json
    roles = {row["version"]: row["roles"] for row in rows}
    assert roles == {3: [], 9: ["champion"], 12: ["candidate", "canary"]}


def test_where_the_rules_play_there_is_nothing_to_roll_back(tmp_path: Path) -> None:
    run = ScriptedRun(tmp_path / "run")
    run.nominate(4)
    called = understudy("models", "rollback", "--run", run.folder.root)
    assert called.code == 2 and "the rules play" in called.err
    called = understudy("models", "release", "--run", run.folder.root)
    assert "on the rules play; version 4 is tried in 20% of the matches" in called.out
    called = understudy("promotion", "plot", "--run", run.folder.root, "-o", tmp_path / "a.png")
    assert called.code == 2 and "nothing to draw" in called.err


def test_a_run_without_a_log_says_how_to_begin_one(tmp_path: Path) -> None:
    folder = open_run(tmp_path / "run", settings())
    for command in (("status",), ("explain", 1), ("approve", 1), ("stop",), ("plot",)):
        called = understudy("promotion", *command, "--run", folder.root)
        assert called.code == 2 and "no promotion log" in called.err, called.err
    assert not folder.promotion.exists()


def test_the_tables(scripted: Path, tmp_path: Path) -> None:
    where = tmp_path / "new" / "tables"
    called = understudy("promotion", "status", "--run", scripted, "--csv", where)
    assert called.code == 0 and "promotion_matches.csv" in called.out
    with (where / "promotion_matches.csv").open(encoding="utf-8") as file:
        matches = list(csv.DictReader(file))
    assert len(matches) == promotion(scripted, "status")["matches"]
    with (where / "win_rates.csv").open(encoding="utf-8") as file:
        rates = {(row["player"], row["mode"], row["tag"]): row for row in csv.DictReader(file)}
    finished = [row for row in matches if row["ending"] == "finished"]
    for version, player in ((9, "version 9"), (0, "rules")):
        mine = [float(row["result"]) for row in finished if row["version"] == str(version)]
        row = rates[player, "auto", ""]
        assert (int(row["matches"]), int(row["wins"])) == (len(mine), sum(mine))
    assert int(rates["rules", "auto", "opponent=Zerg"]["matches"]) > 0
    (tmp_path / "file").write_text("", encoding="utf-8")
    called = understudy("promotion", "status", "--run", scripted, "--csv", tmp_path / "file")
    assert called.code == 2 and "--csv" in called.err


def test_status_of_the_run_says_who_plays(scripted: Path) -> None:
    told = understudy("status", "--run", scripted, "--json").json
    assert told["promotion"]["incumbent"] == 9
    players = {(one["player"], one["mode"]) for one in told["played"] if not one["tag"]}
    assert {("rules", "auto"), ("version 9", "auto")} <= players
    words = understudy("status", "--run", scripted).out
    assert "Promotion   canary: version 9 plays, version 12 in 18%; E " in words
    assert told["promotion"]["stage"] == "canary"
    assert told["promotion"]["line"] in words.replace("\n            ", " ")
    assert "\nPlayers     " in words and "rules, opponent=Zerg: " in words
    assert f"understudy promotion status --run {scripted}" in words


def test_the_picture(scripted: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "promotion.png"
    called = understudy("promotion", "plot", "--run", scripted, "-o", picture)
    assert called.code == 0, called.err
    assert picture.read_bytes().startswith(b"\x89PNG")
    called = understudy("promotion", "plot", "--run", scripted, "-o", tmp_path / "a.jpg")
    assert called.code == 2 and "expected a name that ends in .png" in called.err
