"""Promotion by evidence in a served game: who decides which stretch of a territory, and for how
long."""

from __future__ import annotations

from pathlib import Path

from promotion.runs import folded

from .played import ATTACK, ServedGame


def test_the_rules_play_until_a_better_version_has_taken_over(tmp_path: Path) -> None:
    served = ServedGame(tmp_path)
    served.play(15.0)
    assert served.champion() == 0
    decisions = served.decide()
    assert {(one["action"], one["by"], one["version"]) for one in decisions} == {
        ("retreat", "rules", 0)
    }
    assert not any(one["degraded"] for one in decisions)
    served.publish(1, ATTACK)
    served.play(900.0, until=lambda: served.champion() == 1)
    assert served.champion() == 1
    assert any("version 1" in one for one in served.said)
    served.play(15.0)
    decisions = served.decide()
    assert {one["version"] for one in decisions} <= {0, 1}  # 0: the holdout
    assert 1 in {one["version"] for one in decisions}
    state = folded(served.folder)
    assert (state.incumbent, state.score) == (1, (0.0, 1.0))
    assert served.problems == []
