"""`understudy train ai2`: a league against the tournament's scripted agents, in the stand-in."""

from __future__ import annotations

import json
from pathlib import Path

from understudy.adapters.ai2.layout import FEATURES
from understudy.adapters.ai2.stand_in import write_stand_in
from understudy.core.clock import SystemClock
from understudy.registry.run_folder import RunFolder

from .calling import understudy

_SMALL = (
    "--network", "mlp", "--set", "train.games=4", "--set", "train.segment=16",
    "--set", "learner.epochs=1", "--set", "monitor.csv=false", "--json",
)  # fmt: skip


def test_the_scripted_agents_are_met_and_a_resume_knows_them(tmp_path: Path) -> None:
    home, run = tmp_path / "stand_in", tmp_path / "run"
    write_stand_in(home)
    first = understudy(
        "train", "ai2", "--option", f"home={home}", "--config", "tournament", "--steps", "192",
        "--run", run, "--eval", "1", *_SMALL,
    )  # fmt: skip
    assert first.code == 0, first.err
    summary = json.loads(first.out)
    assert summary["stage"] == "based"
    assert set(summary["eval"]["opponents"]) >= {"random", "constant", "based", "clockwork"}
    folder = RunFolder.load(run, SystemClock())
    assert folder.spec.features == FEATURES
    assert folder.identity.game_options == {"home": str(home), "frames": "4"}
    again = understudy(
        "train", "ai2", "--run", run, "--resume", "--steps", "256", "--eval", "0", *_SMALL
    )
    assert again.code == 0, again.err


def test_a_checkout_that_is_not_there_is_told(tmp_path: Path) -> None:
    called = understudy(
        "train", "ai2", "--option", f"home={tmp_path / 'nowhere'}", "--config", "tournament"
    )
    assert called.code == 2
    assert "--option home: there is no folder" in called.err
