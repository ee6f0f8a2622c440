from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from session.sessions import FakeClock

from understudy.core.clock import SystemClock
from understudy.core.config import Config, with_values
from understudy.core.spaces import Discrete
from understudy.experience.ledger import Closing, Ledger, Opened
from understudy.experience.spool import Spool
from understudy.policy.mlp import Mlp
from understudy.policy.spec import PolicySpec
from understudy.registry.run_folder import RunFolder, remember
from understudy.relay.local import LocalState
from understudy.telemetry.events import BotStarted
from understudy.telemetry.journal import Journal

from .calling import understudy


def test_status_in_words(played: Path) -> None:
    called = understudy("status", "--run", played)
    assert called.code == 0
    for label in ("Run", "Matches", "Win rate", "Versions", "Learner", "Spool", "Episodes"):
        assert f"\n{label}" in "\n" + called.out
    assert "6 (" in called.out
    assert f"{played}" in called.out


def test_status_as_json(played: Path) -> None:
    told = understudy("status", "--run", played, "--json").json
    assert told["matches"] == 6 and told["versions"] == told["version"] == 3
    assert told["episodes"] == {"written": 6, "ingested": 6, "archived": 6, "quarantined": 0}
    assert told["archive_file_count"] == 6 and told["buffer_file_count"] == 0
    assert told["decision_ms"]["p50"] <= told["decision_ms"]["p99"]


def test_a_reader_takes_the_latest_run(
    played: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert understudy("status").code == 2
    shutil.copytree(played, "runs/copy")
    remember(Path("runs/copy"))
    assert understudy("status", "--json").json["run"] == str(Path("runs/copy"))
    assert understudy("models", "list", "--json").json[-1]["version"] == 3


def test_looking_changes_nothing(played: Path) -> None:
    def everything() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in played.rglob("*") if path.is_file()}

    before = everything()
    understudy("status", "--run", played)
    understudy("models", "list", "--run", played)
    understudy("models", "show", 2, "--run", played)
    assert everything() == before


def test_json_is_ascii_whatever_the_folder_is_called(played: Path, tmp_path: Path) -> None:
    """A narrow console would show a letter as `\\xe9`, which is no JSON."""
    run = tmp_path / "ligue-é"
    shutil.copytree(played, run)
    for command in (
        ("status",),
        ("models", "export", 3, "--out", run / "3.npz"),
    ):
        called = understudy(*command, "--run", run, "--json")
        assert called.out.isascii() and called.out.count("\n") == 1
        assert "ligue-é" in str(called.json)


def test_a_run_of_a_server_is_told_by_its_decisions(tmp_path: Path) -> None:
    clock = SystemClock()
    spec = PolicySpec(("health",), Discrete(("attack", "retreat")), Mlp((2,)))
    folder = RunFolder.open(tmp_path / "run", spec=spec, config=None, clock=clock)
    journal = Journal(folder.journal, "server", clock)
    journal.write(BotStarted(pid=1, mode="serve", learner="off", version=0))
    put = Spool(folder.root, spec, clock).put
    with Ledger(
        folder.root / "ledger", spec, segment=1, clock=clock, put=put, sync_ms=50.0
    ) as ledger:
        keys = ledger.take_ids(3)
        ledger.open([opened(key) for key in keys])
        ledger.close([Closing(id=key, state="settled", reward=1.0) for key in keys[:2]])
        ledger.flush()
        called = understudy("status", "--run", folder.root)
        told = understudy("status", "--run", folder.root, "--json").json
        LocalState(folder.root, "s3://bucket/game", "player")
        relayed = understudy("status", "--run", folder.root).out
    told_relay = f"for the relay; if none runs: understudy relay {folder.root} s3://bucket/game"
    assert f"2 segments wait {told_relay}" in relayed
    assert "understudy learner" not in relayed, "another machine learns"
    assert "Decisions   3 = 2 settled" in called.out and "+ 1 open" in called.out
    assert "2 segments wait to be learned from" in called.out
    assert " --continuous " in called.out and "Matches" not in called.out
    assert (told["ledger"]["opened"], told["ledger"]["open"]) == (3, 1)
    assert (told["continuous"], told["waiting"], told["rollbacks"]) == (None, False, 0)


def test_experience_that_waits_while_no_version_comes_is_a_problem(tmp_path: Path) -> None:
    spec = PolicySpec(("health",), Discrete(("attack", "retreat")), Mlp((2,)))
    earlier = FakeClock(SystemClock().time() - 500.0)
    config = with_values(Config(), {"learner.publish_interval_s": 50.0})
    folder = RunFolder.open(tmp_path / "run", spec=spec, config=config, clock=earlier)
    journal = Journal(folder.journal, "server", earlier)
    journal.write(BotStarted(pid=1, mode="serve", learner="process", version=0))
    earlier.now += 100.0
    spool = Spool(folder.root, spec, earlier)
    (spool.buffer / f"{int(earlier.now * 1e9):020d}-{'a' * 16}.npz").write_bytes(b"")
    called = understudy("status", "--run", folder.root)
    told = understudy("status", "--run", folder.root, "--json").json
    assert "\nStalled     no version yet, though experience has waited 6m " in called.out
    assert told["learning"] == "stalled" and told["experience_waits_s"] > 399.0
    journal.write(BotStarted(pid=2, mode="serve", learner="off", version=0))
    assert understudy("status", "--run", folder.root, "--json").json["learning"] == "off"
    assert "Stalled" not in understudy("status", "--run", folder.root).out


def opened(key: int) -> Opened:
    return Opened(
        id=key, territory="north", client="c1", tick=key, at=0.0, version=0, action=(0,),
        log_prob=-0.7, value=0.0, sampled=True, sent=True, explored=False, expected=0.0,
        observation=np.zeros(1, "<f4").tobytes(),
    )  # fmt: skip
