"""What commands print in terminals of several widths, with and without colour, and in pipes."""

from __future__ import annotations

import io
import itertools
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from understudy.cli.eval import _table
from understudy.cli.output import StyledLine, emit, emit_table
from understudy.cli.payoff_table import found_page
from understudy.games import catalog
from understudy.judging.players import NamedPlayer
from understudy.league.payoffs import Payoffs, standings
from understudy.match.players import BotPlayer
from understudy.match.tally import EvaluationReport, Tally
from understudy.telemetry.layout import Column, cells

from .calling import Terminal, in_terminal, understudy
from .leagues_of_brawl import brawl_league
from .runs_of_brawl import brawl_run

WIDTHS = (60, 80, 120, 160)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A league in `league`, a run with versions in `mine`."""
    here = tmp_path_factory.mktemp("runs")
    brawl_league(here / "league", snapshots=3)
    brawl_run(here / "mine", versions=2)
    return here


COMMANDS: dict[str, tuple[Callable[[Path], tuple[object, ...]], str]] = {
    "ratings": (lambda runs: ("ratings", "--run", runs / "league", "--no-play"), "win rate"),
    "models list": (lambda runs: ("models", "list", "--run", runs / "mine"), "version"),
    "models show": (lambda runs: ("models", "show", 1, "--run", runs / "mine"), "Network"),
    "games": (lambda runs: ("games",), "swarm"),
    "config list": (lambda runs: ("config", "list"), "curriculum"),
    "config show": (lambda runs: ("config", "show", "curriculum", "--changed"), "[train]"),
    "status": (lambda runs: ("status", "--run", runs / "mine"), "Learner"),
    "doctor": (lambda runs: ("doctor", "--run", runs / "mine"), ""),
}  # fmt: skip


def printed(out: str) -> list[str]:
    """Without paths and commands, which are never broken."""
    return [
        line for line in out.splitlines() if "pytest-of" not in line and "understudy " not in line
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_no_row_is_wider_than_the_terminal(name: str, runs: Path) -> None:
    args, word = COMMANDS[name]
    piped = understudy(*args(runs))
    assert piped.code == 0 and word in piped.out, piped.err
    for width in WIDTHS:
        called = in_terminal(*args(runs), columns=width)
        assert called.code == 0 and word in called.out, called.err
        assert all(cells(line) <= width for line in printed(called.out)), (width, called.out)
        assert "\x1b" not in called.out, "NO_COLOR"
    assert "\x1b" not in piped.out


def shown(page: Callable[[], object], width: int | None, patch: pytest.MonkeyPatch) -> list[str]:
    """What a page prints in a terminal, or for None in a pipe."""
    patch.setattr(sys, "stdout", screen := io.StringIO() if width is None else Terminal())
    patch.setenv("COLUMNS", str(width or 80))
    patch.setenv("NO_COLOR", "1")
    page()
    return screen.getvalue().splitlines()


def eval_page() -> None:
    bot = BotPlayer(catalog.bots("brawl")["random"])
    names = ("random", "clockwork", "runs/한국/a-long-name@step-10000000", "league")
    against = [NamedPlayer(name, bot, None, note="20 of 153") for name in names]
    measures = dict.fromkeys(("damage_dealt", "damage_taken", "knockouts", "falls"), 12.5)
    report = EvaluationReport(
        tally=Tally(123, 4, 73), distinct=200, mean_frames=1234.0, mean_return=-1.23,
        measures=measures,
    )  # fmt: skip
    emit_table(*_table("brawl", against, dict.fromkeys(names, report)))


def test_a_narrow_table_of_eval_keeps_the_win_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    heads = {}
    for width in (*WIDTHS, None):
        lines = shown(eval_page, width, monkeypatch)
        heads[width] = " ".join(lines[0].split())
        assert all("61.5%" in line for line in lines[1:])
        assert width is None or all(cells(line) <= width for line in lines)
    first, rate = "opponent", "win rate 95% interval"
    every = f"{first} wins draws losses {rate} return damage KOs falls frames distinct"
    assert heads[None] == heads[160] == heads[120] == every
    assert heads[80] == f"{first} {rate} return damage KOs falls"
    assert heads[60] == f"{first} {rate}"


def test_a_round_robin_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    names = tuple(f"runs/brawl-{number}@step-{number}000" for number in range(1, 21))
    pairs = dict.fromkeys(itertools.combinations(names, 2), (12, 3, 5))
    payoffs = Payoffs.of(names, pairs)
    places = standings(payoffs, {})

    def page() -> None:
        emit(found_page(payoffs, places, payoffs.cycles()))

    for width in (*WIDTHS, None):
        lines = shown(page, width, monkeypatch)
        assert width is None or all(cells(line) <= width for line in lines), width
        assert "win rate" in lines[0] and "60.0%" in lines[1]
        head = next(line for line in lines if line.strip().startswith("1 "))
        assert head.strip()
        matrix = lines[[line.startswith("Win rate in %") for line in lines].index(True) + 1 :]
        numbers = next(line for line in matrix if line.split()[:2] == ["1", "2"]).split()
        assert numbers == [str(one) for one in range(1, len(numbers) + 1)], "the weakest go first"
        assert (len(numbers) == 20) is (width in (None, 160))


def test_colour_is_bold_headings_and_nothing_without_it(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = in_terminal("models", "list", "--run", runs / "mine", columns=80, colour=True)
    plain = in_terminal("models", "list", "--run", runs / "mine", columns=80)
    assert called.out.startswith("\x1b[1m") and called.out.count("\x1b[") == 2
    assert called.out.replace("\x1b[1m", "").replace("\x1b[0m", "") == plain.out
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys, "stdout", screen := Terminal())
    emit([StyledLine("PROBLEM", "red")])
    assert screen.getvalue() == "PROBLEM\n"


def test_names_from_outside_are_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", screen := Terminal())
    emit_table([Column("[red]name[/red]", text=True)], [["[bold]x[/bold] :smile:"]])
    assert "[red]name[/red]" in screen.getvalue()
    assert "[bold]x[/bold] :smile:" in screen.getvalue()


@pytest.mark.parametrize("encoding", ["cp949", "cp1252"])
def test_a_console_of_windows_shows_what_it_can(
    encoding: str, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(data, encoding=encoding))
    emit_table([Column("이름", text=True), Column("95%")], [["é ± \u2713", "± 3"]])
    shown = data.getvalue().decode(encoding)
    assert shown.count("\n") == 2 and "95%" in shown


@pytest.mark.parametrize("width", [60, 80])
def test_the_summary_of_a_session_fits(
    width: int, played: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(played, tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "dumb")
    options = ("--matches", 1, "--difficulty", "easy", "--learner", "off", "--eval", 2)
    called = understudy("play", "swarm", "--run", "run", *options, err=Terminal())
    assert called.code == 0
    lines = [line for line in called.err.splitlines() if "understudy " not in line]
    assert any("wins of last 1:" in line for line in lines)
    assert any(line.startswith("  now") for line in lines)
    assert all(cells(line) <= width for line in lines), called.err
