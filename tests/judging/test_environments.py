"""Players of environments by name."""

from __future__ import annotations

from pathlib import Path

from understudy.adapters.ai2.stand_in import write_stand_in
from understudy.judging.environments import EnvironmentResolver


def test_a_run_against_one_opponent_is_judged_against_all(tmp_path: Path) -> None:
    """`--option opponent=` made training one-sided; the tournament's own agents are known."""
    home = tmp_path / "stand_in"
    write_stand_in(home)
    options = {"home": str(home), "opponent": "based", "side": "0", "frames": "30"}
    players = EnvironmentResolver("ai2", leads=[], options=options)
    assert set(players.bots) == {"random", "constant", "based", "clockwork"}
    based, still = (players.resolve("--opponents", name) for name in ("based", "constant"))
    assert players.meet([(based, still)], 2)[0].tally.wins == 2
