"""`understudy eval` on real matches: names, counts, both slots, and what it needs."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import msgspec
import pytest

from understudy.cli.progress import ProgressDisplay
from understudy.core import files
from understudy.core.clock import SystemClock
from understudy.games import catalog
from understudy.judging.players import engine_named
from understudy.match.series import plain
from understudy.match.tally import wilson
from understudy.policy.mlp import Mlp
from understudy.policy.spec import PolicySpec
from understudy.registry.run_folder import RunFolder, remember

from .calling import alone, understudy
from .leagues_of_brawl import brawl_league
from .runs_of_brawl import brawl_run

BRAWL = ("eval", "brawl", "--engine", "numpy")
FEW = ("--opponents", "random", "--matches", "3")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_one_object_with_everything_that_was_counted() -> None:
    asked = ("--agent", "aggressive", "--opponents", "random,aggressive", "--matches", 6)
    result = understudy(*BRAWL, *asked, "--json").json
    assert {name: result[name] for name in ("game", "agent", "version", "matches")} == {
        "game": "brawl",
        "agent": "aggressive",
        "version": None,
        "matches": 6,
    }
    assert list(result["opponents"]) == ["random", "aggressive"]
    for row in result["opponents"].values():
        assert row["matches"] == row["wins"] + row["draws"] + row["losses"] == 6
        assert row["win_rate"] == round(row["wins"] / 6, 4)
        assert row["interval"] == [round(bound, 4) for bound in wilson(row["wins"], 6)]
        assert 1 <= row["distinct"] <= 6
        assert 0 < row["mean_frames"] <= 2700
        assert row["kind"] == "bot"
        measures = row["measures"]
        ratio = measures["damage_dealt"] / measures["damage_taken"]
        assert row["damage_ratio"] == pytest.approx(ratio, rel=1e-3)
        assert 0 <= measures["falls"] <= 3 and 0 < measures["knockouts"] <= 3
    beaten = result["opponents"]["random"]
    assert beaten["wins"] >= 5  # from both slots
    assert beaten["mean_return"] > 2 and beaten["damage_ratio"] > 1


def test_a_run_is_judged_by_its_champion_or_by_the_version_named(elsewhere: Path) -> None:
    run = brawl_run(elsewhere / "runs" / "mine")
    remember(Path("runs/mine"))

    def judged(*args: object, greedy: bool = True) -> dict[str, object]:
        # Untrained policies draw alike; their likeliest actions differ.
        called = understudy(*BRAWL, *FEW, "--json", *args, *(("--greedy",) if greedy else ()))
        assert called.code == 0, called.err
        found: dict[str, object] = called.json
        return found

    remember(Path("runs/of-another-game"))
    latest = judged()  # of the latest run of brawl
    assert (latest["agent"], latest["version"]) == ("runs/mine", 2)
    assert judged("--agent", run)["opponents"] == latest["opponents"]
    first = judged("--agent", "runs/mine@1")
    assert (first["agent"], first["version"]) == ("runs/mine@1", 1)
    assert first["opponents"] != latest["opponents"]
    assert judged("--agent", "runs/mine", greedy=False)["opponents"] != latest["opponents"]
    assert judged("--seed", 1)["opponents"] != latest["opponents"]


def test_a_run_plays_under_the_options_that_it_was_trained_under(elsewhere: Path) -> None:
    slow, keys = elsewhere / "slow", elsewhere / "keys"
    brawl_run(slow, versions=1, delay="6")
    brawl_run(keys, versions=1, actions="keys")

    def wins(*args: object) -> object:
        called = understudy(*BRAWL, *FEW, "--greedy", "--json", *args)
        assert called.code == 0, called.err
        return called.json["opponents"]

    late = wins("--agent", slow)
    assert late == wins("--agent", slow, "--delay", 6)
    assert late != wins("--agent", slow, "--delay", 0)
    wins("--agent", keys)
    called = understudy("eval", "brawl", "--agent", slow, "--opponents", keys, "--matches", 1)
    assert called.code == 2 and "its actions are not those of brawl here" in called.err


def test_a_run_among_the_opponents_decides_the_options_too(elsewhere: Path) -> None:
    """A run that learned to wait would else be judged without its delay, in silence."""
    slow = brawl_run(elsewhere / "slow", versions=1, delay="6")

    def judged(*args: object) -> tuple[object, str]:
        called = understudy(*BRAWL, "--agent", "aggressive", "--matches", 3, "--json", *args)
        assert called.code == 0, called.err
        return called.json["opponents"], called.err

    theirs, said = judged("--opponents", slow)
    assert not said
    late, said = judged("--opponents", slow, "--delay", 6)
    assert theirs == late and not said
    soon, said = judged("--opponents", f"random,{slow}", "--delay", 0)
    assert soon != judged("--opponents", f"random,{slow}")[0]
    assert f"{slow} learned under delay=6; this is delay=0" in said


def test_a_run_that_learned_under_other_options_is_told_of(elsewhere: Path) -> None:
    slow = brawl_run(elsewhere / "slow", versions=1, delay="6")
    quick = brawl_run(elsewhere / "quick", versions=1)
    said = brawl_run(elsewhere / "said", versions=1, delay="0", actions="chords")
    few = ("--matches", 1, "--json")
    called = understudy(*BRAWL, "--agent", slow, "--opponents", quick, *few)
    assert called.code == 0 and f"{quick} learned under delay=0; this is delay=6" in called.err
    called = understudy(*BRAWL, "--agent", said, "--opponents", quick, *few)
    assert (called.code, called.err) == (0, "")  # a default that was spelled out is no difference


def test_a_table_for_people() -> None:
    called = understudy(*BRAWL, *FEW, "--agent", "aggressive")
    assert called.code == 0
    assert "brawl: aggressive, 3 frozen matches v each" in called.out
    head, row = called.out.splitlines()[2:]
    words = "wins draws losses rate interval return damage KOs falls frames distinct"
    assert all(word in head for word in words.split())
    assert len(row) == len(head)
    assert row.startswith("random") and "%" in row and " to " in row


def test_bots_that_no_training_meets() -> None:
    called = understudy(*BRAWL, "--agent", "turtle", "--opponents", "hawk,random", "--matches", 2)
    stranger, known = called.out.splitlines()[3:]
    assert stranger.startswith("hawk (held out) ") and known.startswith("random ")


def test_an_agent_is_judged_by_its_league(elsewhere: Path) -> None:
    """The pool as one row, then the oldest and the newest snapshot."""
    run = brawl_league(elsewhere / "mine", snapshots=5)
    named = f"{run}@step-1000"
    asked = ("--opponents", f"league,random,{named}", "--snapshots", 3, "--matches", 4)
    called = understudy(*BRAWL, "--agent", run, *asked, "--json")
    assert called.code == 0, called.err
    rows = called.json["opponents"]
    assert list(rows) == ["league", "step-1000", "step-5000", "random", named]
    kinds = ["league", "snapshot", "snapshot", "bot", "snapshot"]
    assert [row["kind"] for row in rows.values()] == kinds
    assert rows["league"]["snapshots"] == ["step-1000", "step-3000", "step-5000"]
    assert [row["matches"] for row in rows.values()] == [6, 4, 4, 4, 4], "as many for each"
    assert rows[named] == rows["step-1000"] != rows["step-5000"]


def test_snapshots_that_are_not_there(elsewhere: Path) -> None:
    run = brawl_league(elsewhere / "mine", snapshots=2)
    plain_run = brawl_run(elsewhere / "plain", versions=1)

    def refused(agent: object, opponents: object = "random") -> str:
        called = understudy(*BRAWL, "--agent", agent, "--opponents", opponents)
        assert (called.code, called.out) == (2, "")
        return called.err

    said = refused(f"{run}@step-1500")
    assert "--agent" in said and "has no snapshot 'step-1500'" in said
    assert "step-1000 to step-2000, 2 in all" in said
    assert "has no snapshot 'step-1' (there: none)" in refused(f"{plain_run}@step-1")
    assert "--opponents league" in refused(plain_run, "league")
    assert "has no snapshots" in refused(plain_run, "league")
    assert "--opponents league: expected a run as the agent" in refused("based", "league")
    file = run / "league" / "step-000001000.npz"
    file.write_bytes(file.read_bytes()[:-1])
    assert "checksum" in refused(run, "league")


def test_a_file_with_every_measure(elsewhere: Path) -> None:
    asked = ("--agent", "aggressive", *FEW, "--csv", "table.csv", "--json")
    result = understudy(*BRAWL, *asked).json["opponents"]["random"]
    (row,) = csv.DictReader((elsewhere / "table.csv").read_text("utf-8").splitlines())
    assert (row["opponent"], row["kind"], row["matches"]) == ("random", "bot", "3")
    assert [float(row[f"interval_{end}"]) for end in ("low", "high")] == result["interval"]
    for name, mean in result["measures"].items():
        assert float(row[name]) == mean
    called = understudy(*BRAWL, "--agent", "based", "--csv", "nowhere/table.csv")
    assert called.code == 2 and "--csv: there is no folder 'nowhere'" in called.err


def test_a_file_that_cannot_be_is_told_before_the_first_match(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        ProgressDisplay,
        "show_share",
        lambda display, share, words: pytest.fail("a match was played"),
    )
    asked = (*BRAWL, "--agent", "aggressive", *FEW, "--csv")
    called = understudy(*asked, elsewhere)
    assert called.code == 2 and "is a folder; expected the name of a file" in called.err

    def refuse(folder: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files, "check_writable", refuse)
    called = understudy(*asked, "table.csv")
    assert called.code == 2
    assert "--csv table.csv: cannot be written (Permission denied)" in called.err


@pytest.mark.parametrize(
    ("line", "named", "hint"),
    [
        ("--agent basd", "--agent: there is no bot or run folder 'basd'", "Did you mean 'based'?"),
        ("--agent based --opponents rndom", "--opponents: there is no bot", "'random'"),
        ("--agent based --opponents based,based", "--opponents", "named twice"),
        ("--agent based --opponents ,", "--opponents", "`all`"),
        ("--agent based --matches 0", "--matches", "1 or more"),
        ("--agent based --snapshots 0", "--snapshots", "1 or more"),
        ("--agent based --opponents trtle", "--opponents", "'turtle'"),
        ("--agent based --opponents all,based", "--opponents", "named twice"),
        ("--agent runs/x@step-x", "--agent runs/x@step-x", "RUN@step-N"),
        ("--agent based --engine torch", "--engine", "auto, numpy, jax"),
        ("--agent based --delay 99", "delay", "must be one of"),
        ("--agent runs/x@new", "--agent runs/x@new", "whole number"),
        ("", "--agent", "name a run folder or a bot"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(line: str, named: str, hint: str) -> None:
    called = understudy("eval", "brawl", *line.split())
    assert (called.code, called.out) == (2, "")
    assert called.err.count("\n") == 1 and named in called.err and hint in called.err


def test_runs_that_do_not_fit_are_refused(elsewhere: Path) -> None:
    def made_for(game: str, features: tuple[str, ...]) -> Path:
        spec = PolicySpec(features, catalog.make("brawl").actions, Mlp((8,)))
        root = elsewhere / game.partition(" ")[0]
        RunFolder.open(root, spec=spec, config=None, clock=SystemClock(), game=game)
        return root

    swarm = made_for("swarm 1", ("a",))
    called = understudy("eval", "brawl", "--agent", swarm)
    refused = "was made for swarm 1, not for brawl"
    assert called.code == 2 and f"--agent {swarm}: this run {refused}" in called.err
    called = understudy("eval", "brawl", "--agent", "based", "--opponents", swarm)
    assert called.code == 2 and f"--opponents {swarm}: this run {refused}" in called.err
    called = understudy("eval", "brawl", "--agent", made_for("brawl 1", ("a", "b")))
    assert called.code == 2 and "its features are not those of brawl" in called.err
    empty = brawl_run(elsewhere / "empty", versions=0)
    called = understudy("eval", "brawl", "--agent", empty)
    assert called.code == 2 and "no version yet" in called.err
    called = understudy("eval", "brawl", "--agent", f"{brawl_run(elsewhere / 'one', versions=1)}@7")
    assert called.code == 2 and "version 7 is not in" in called.err
    called = understudy("eval", "swarm", "--agent", "rules", "--opponents", "random")
    assert called.code == 2 and "swarm has one player" in called.err


def test_other_rules_are_told(elsewhere: Path) -> None:
    """A version that learned under older rules may be judged, but not in silence."""
    run = brawl_run(elsewhere / "old", versions=1)
    path = run / "run.json"
    kept = msgspec.json.decode(path.read_bytes())
    path.write_bytes(msgspec.json.encode({**kept, "game": "brawl 0"}))
    called = understudy(*BRAWL, *FEW, "--agent", run, "--json")
    assert called.code == 0 and "learned under brawl 0; this is brawl" in called.err


def test_ctrl_c_ends_it_without_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def impatient(display: ProgressDisplay, share: float, words: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ProgressDisplay, "show_share", impatient)
    called = understudy(*BRAWL, *FEW, "--agent", "aggressive")
    assert (called.code, called.out) == (130, "")


def test_engines_by_name(monkeypatch: pytest.MonkeyPatch, elsewhere: Path) -> None:
    pytest.importorskip("jax")
    from understudy.arena.compiling import compiled_duel

    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(elsewhere))
    assert engine_named("numpy") is plain
    assert engine_named("jax") is engine_named("auto") is compiled_duel
    monkeypatch.setitem(sys.modules, "jax", None)
    assert engine_named("auto") is plain


def test_numpy_msgspec_and_typer_are_enough(elsewhere: Path) -> None:
    brawl_run(elsewhere / "mine", versions=1)
    asked = ("eval", "brawl", "--agent", "mine", *FEW, "--json")
    called = alone(*asked, folder=elsewhere)
    assert called.code == 0, called.err
    assert called.json["opponents"]["random"]["matches"] == 3
    called = alone(*asked, "--engine", "jax", folder=elsewhere)
    assert called.code == 2 and 'pip install ".[learn]"' in called.err
