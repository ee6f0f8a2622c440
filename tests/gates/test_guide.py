"""docs/gates.md keeps what it promises: its gate runs as it stands, and its numbers are ours."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from understudy.adapters.gate_factory import SHIPPED, make_gate
from understudy.adapters.territory import cost_gate
from understudy.games.territory import observation, tables
from understudy.gates import foresight

PAGE = (Path(__file__).parents[2] / "docs" / "gates.md").read_text(encoding="utf-8")


def test_the_gate_of_ones_own_runs_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 1
    assert len([line for line in blocks[0].splitlines() if line.strip()]) <= 10
    (tmp_path / "my_gates.py").write_text(blocks[0], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "my_gates", raising=False)
    careful = make_gate("my_gates:Careful", game="territory", threshold=0.1, budget_ms=5.0)
    seen = np.zeros(len(observation.FEATURES), np.float32)
    assert careful.evaluate(seen, np.array([1], np.int32)) == (True, 0.5, ("protectors about",))
    seen[2] = 0.45
    assert not careful.evaluate(seen, np.array([1], np.int32)).send
    monkeypatch.delitem(sys.modules, "my_gates")


def test_every_shipped_gate_is_described() -> None:
    for name in SHIPPED:
        assert f"| `{name}`" in PAGE


def test_the_numbers_of_the_page_are_those_of_the_code() -> None:
    for promise in (
        f"| COST | {cost_gate.COST:.1f}: what the game takes",
        f"{cost_gate.POOR} if for this one and no second",
        f"within {tables.KILL_RANGE} chunks, falling to 0 at {tables.SAFE_RANGE}",
        f"(slope below {1 / foresight.SLOPE_TOLERATED:g}, above {foresight.SLOPE_TOLERATED:g})",
        f"by over {foresight.BIAS_TOLERATED:g}",
    ):
        assert promise in PAGE
    assert (cost_gate.NEAR, cost_gate.MANY, foresight.FEWEST) == (0.25, 2.0, 30)
    assert (tables.HELD, tables.HEALTH) == (3, (1.0, 3.0))
