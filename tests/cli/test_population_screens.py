"""What screens say of a population, whose data lies in the run folders of its agents."""

from __future__ import annotations

from pathlib import Path

import pytest
from run.dashboards import standing, unpacked

from .calling import understudy


@pytest.fixture(scope="module")
def population(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(tmp_path_factory.mktemp("runs"), "population") / "population"


def test_status_leads_to_the_agents(population: Path) -> None:
    told = understudy("status", "--run", population)
    assert told.code == 0
    agent = f"understudy status --run {population / 'agent-1'}"
    assert f"The 2 agents of this population are runs of their own: {agent}" in told.out


def test_the_monitor_shows_the_agents_side_by_side(population: Path) -> None:
    told = understudy("monitor", population, "--once")
    assert told.code == 0
    heading, *rows = told.out.splitlines()
    assert "win rate" in heading and [row.split()[:2] for row in rows] == [
        ["agent-1", "training"], ["agent-2", "training"]
    ]  # fmt: skip
    assert understudy("monitor", population / "agent-2", "--once").code == 0


def test_the_doctor_examines_each_agent(population: Path) -> None:
    told = understudy("doctor", "--run", population)
    assert told.code == 0
    for agent in ("agent-1", "agent-2"):
        assert f"{population / agent}: 1 note" in told.out
    assert "there is one agent" not in told.out, "an agent keeps the settings of its population"
    told = understudy("doctor", "--run", population, "--json")
    assert [Path(one["run"]).name for one in told.json["agents"]] == ["agent-1", "agent-2"]


def test_the_dashboard_has_a_page_for_each_agent(population: Path) -> None:
    with standing(population.parent) as board:
        _, _, text = board.ask("/")
        for agent in ("agent-1", "agent-2"):
            address = f"/runs/{agent}%20%28population%29"
            assert f'href="{address}"' in text
            assert "Nothing was trained yet" not in board.ask(f"{address}/training")[2]
        assert "runs of their own" in board.ask("/runs/population")[2]
        assert "runs of their own" in board.ask("/runs/population/training")[2]
