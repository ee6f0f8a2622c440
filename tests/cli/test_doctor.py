"""`understudy doctor`: words, JSON and exit codes; `status` and the end of a session name the
worst finding."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from doctor.ring_runs import WrittenRing

from understudy.cli.progress import ProgressDisplay
from understudy.supervise.sessions import SessionSummary

from .calling import SMALL, understudy


@pytest.fixture
def sick(tmp_path: Path) -> Path:
    """A run with a warning and no problem."""
    run = WrittenRing(tmp_path / "sick")
    run.batches(30, behaviour_kl=60.0)
    return run.folder.root


def test_a_healthy_run(played: Path) -> None:
    called = understudy("doctor", "--run", played)
    assert (
        called.code == 0
        and called.out == f"{played}: no check found anything wrong in 6 matches and 3 versions\n"
    )
    assert "Problems    none\n" in understudy("status", "--run", played).out


def test_a_warning_counts_with_strict(sick: Path) -> None:
    called = understudy("doctor", "--run", sick)
    assert called.code == 0 and "WARNING, likely  [far-from-what-played]" in called.out
    assert understudy("doctor", "--run", sick, "--strict").code == 1


def test_a_problem_is_exit_code_1(tmp_path: Path) -> None:
    run = WrittenRing(tmp_path / "run")
    run.batches(45, kl=0.0)
    assert understudy("doctor", "--run", run.folder.root).code == 1


def test_json_has_every_field(sick: Path) -> None:
    told = understudy("doctor", "--run", sick, "--json").json
    assert told["run"] == str(sick) and told["kind"] == "ring"
    (finding,) = told["findings"]
    fields = {"check", "weight", "certainty", "title", "evidence", "next_step", "link"}
    assert finding.keys() == fields
    assert finding["link"] == "docs/doctor.md#far-from-what-played"


def test_status_names_the_worst_finding(sick: Path) -> None:
    out = understudy("status", "--run", sick).out
    assert "\nDoctor      warning, likely: The trained policy is far" in out
    assert "\nProblems    none in the journal\n" in out
    assert f"understudy doctor --run {sick}" in out


def test_every_session_ends_with_the_worst_finding(
    sick: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`train` and `serve` close through the same screen."""
    with pytest.raises(typer.Exit):
        ProgressDisplay(quiet=False).end(SessionSummary(code=0), lambda width: "Done.", run=sick)
    said = capsys.readouterr().err
    assert said.startswith("Done.\nDoctor          warning, likely: The trained policy")
    assert max(map(len, said.splitlines()[:-1])) < 80
    with pytest.raises(typer.Exit):
        ProgressDisplay(quiet=True).end(SessionSummary(code=0), lambda width: "Done.", run=sick)
    assert capsys.readouterr().err == ""


def test_the_end_of_play_names_the_worst_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # `--set learner.learning_rate=1` is what a person did.
    rate = ("--set", "learner.learning_rate=1.0", "--set", "learner.learning_rate_max=1.0")
    play = ("play", "swarm", "--run", "run", "--lockstep", "--matches", 6, "--eval", 0, *SMALL)
    called = understudy(*play, "--seed", 3, *rate)
    assert called.code == 0
    text = " ".join(called.err.split())
    assert "Doctor problem," in text and text.endswith("understudy doctor --run run")
