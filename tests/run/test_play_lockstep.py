"""Lockstep with cameos and practice: the same seed gives the same bits."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from understudy.core.clock import SystemClock
from understudy.core.config import Config, with_values
from understudy.experience.episode import Episode
from understudy.experience.spool import Spool
from understudy.gates.promotion.records import Assigned, Record
from understudy.policy.mlp import Mlp
from understudy.promotion.log import PromotionLog
from understudy.registry import run_folder
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import WEIGHTS
from understudy.run.play import PlaySession, play

CONFIG = with_values(
    Config(),
    {
        "learner.batch_matches": 2,
        "learner.replay_matches": 2,
        "promotion.practice_share": 0.5,
        "promotion.practice_agreement": 0.05,
        "promotion.cameo_share": 0.3,
    },
)


def run(folder: Path) -> tuple[list[bytes], list[Record], list[Episode]]:
    """The weights of its versions, its log and its matches."""
    session = PlaySession(
        game="swarm", run=folder, difficulty="easy", matches=12, seed=3, mode="auto",
        lockstep=True, network=Mlp((8,)), config=with_values(CONFIG, {"learner.seed": 3}),
    )  # fmt: skip
    play(session, show=lambda progress: None)
    weights = [(one / WEIGHTS).read_bytes() for one in sorted((folder / "versions").iterdir())]
    records = [record for _, record in PromotionLog(folder / "promotion").new()]
    spool = Spool(folder, RunFolder.load(folder, SystemClock()).spec, SystemClock())
    archived = sorted(path.name for path in (folder / "archive").iterdir())
    episodes = [spool.load_archived(name) for name in archived]
    # A session's name has its process in it.
    return weights, [msgspec.structs.replace(one, session="") for one in records], episodes


def test_cameos_and_practice_repeat_bit_for_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_folder, "RUNS", tmp_path)
    first, again = run(tmp_path / "a"), run(tmp_path / "b")
    assert first[:2] == again[:2] and len(first[0]) > 3
    arms = {one.arm for one in first[1] if isinstance(one, Assigned)}
    assert "practice" in arms
    windows = [[one.cameos for one in played[2]] for played in (first, again)]
    assert any(one is not None and (one > 0).any() for one in windows[0])
    for one, other in zip(*windows, strict=True):
        assert (one is None) == (other is None)
        assert one is None or (one == other).all()
