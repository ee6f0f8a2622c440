"""`understudy gate`: the report of a run whose gate is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from understudy.core.clock import LogicalClock
from understudy.core.config import Config, LiveConfig
from understudy.core.spaces import Discrete
from understudy.experience.episode import Episode, Meta, Outcome
from understudy.experience.spool import Spool
from understudy.gates.decision import OpenGate
from understudy.policy.mlp import Mlp
from understudy.policy.spec import PolicySpec
from understudy.registry.run_folder import RunFolder, remember

from .calling import understudy

SPEC = PolicySpec(
    features=("a", "b"), actions=Discrete(("none", "x", "y")), network=Mlp(widths=(4,))
)
LENGTH = 20


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def segment(index: int, *, right: float, share: float, judged: bool = True) -> Episode:
    """A gate that expects `right` times what follows a decision; waiting is worth 0."""
    rng = np.random.default_rng(index)
    truth = rng.uniform(-0.5, 0.5, LENGTH)
    expected = right * truth
    explored = (expected <= 0) & (rng.random(LENGTH) < share)
    sent = (expected > 0) | explored
    rewards = np.where(sent, truth, 0.0) + rng.normal(0, 0.1, LENGTH)
    gate: dict[str, Any] = {
        "sent": sent,
        "explored": explored,
        "expected": expected.astype(np.float32),
    }
    return Episode(
        meta=Meta(id=f"live-{index * LENGTH}", outcome=Outcome.ABORTED, finished_at=0.0),
        observations=np.zeros((LENGTH, 2), np.float32),
        actions=np.ones((LENGTH, 1), np.int32),
        log_probs=np.full(LENGTH, -1.0, np.float32),
        values=np.zeros(LENGTH, np.float32),
        rewards=rewards.astype(np.float32),
        sampled=np.ones(LENGTH, bool),
        versions=np.zeros(LENGTH, np.int64),
        bootstrap=np.zeros(2, np.float32),
        **(gate if judged else {}),
    )


def a_run(
    name: str, *, right: float = 1.0, segments: int = 100, share: float = 0.2, judged: bool = True
) -> Spool:
    clock = LogicalClock()
    config = Config(live=LiveConfig(explore_share=share))
    root = Path("runs") / name
    RunFolder.open(root, spec=SPEC, config=config, clock=clock, game="")
    spool = Spool(root, SPEC, clock)
    for index in range(segments):
        put = spool.put(segment(index, right=right, share=share, judged=judged))
        if index % 2:
            spool.archive(put)
    remember(root)
    return spool


def test_a_good_gate_and_an_inverted_one_are_told_apart() -> None:
    a_run("good")
    a_run("wrong", right=-1.0)
    good = understudy("gate", "--run", "runs/good", "--json").json
    wrong = understudy("gate", "--run", "runs/wrong", "--json").json
    assert (good["run"], good["episodes"], good["unreadable"], good["idle"]) == (
        "runs/good", 100, 0, 0,
    )  # fmt: skip
    assert good["calibration"]["proposals"] == 100 * LENGTH  # buffer and archive, each once
    assert good["calibration"]["foresight"]["findings"] == ["calibrated"]
    assert good["calibration"]["worth"]["verdict"] == "saves"
    assert wrong["calibration"]["foresight"]["findings"] == ["inverted"]
    assert wrong["calibration"]["worth"]["verdict"] == "costs"
    assert wrong["calibration"]["worth"]["good_share"] > 0.8


def test_the_page_says_it_in_words() -> None:
    a_run("mine")
    called = understudy("gate")  # of the latest run
    assert called.code == 0, called.err
    assert (
        "The gate of runs/mine (a game of its own): 2,000 proposals in 100 episodes" in called.out
    )
    assert "Foresight: calibrated" in called.out
    assert "the gate pays" in called.out
    assert "would have been good" in called.out and "with everything sent" in called.out
    rows = [line.split()[0] for line in called.out.splitlines() if line.strip()]
    assert rows.count("WAIT") == rows.count("SEND") == 4


def test_a_share_that_was_changed_is_pointed_out() -> None:
    spool = a_run("changed", share=0.5)
    RunFolder.open(Path("runs/changed"), spec=SPEC, config=Config(), clock=LogicalClock(), game="")
    assert spool.pending()
    assert "the share was changed on the way" in understudy("gate").out


def test_too_little_data_gets_no_verdict() -> None:
    a_run("young", segments=3, share=0.02)
    called = understudy("gate")
    assert called.code == 0, called.err
    assert "fewer than 30 explored: no verdict" in called.out


def test_damaged_files_are_passed_over_and_counted() -> None:
    spool = a_run("torn", segments=4)
    (spool.buffer / spool.pending()[0]).write_bytes(b"torn")
    called = understudy("gate")
    assert "Files that could not be read, and are left out: 1" in called.out
    assert "in 3 episodes" in called.out


def test_what_is_archived_meanwhile_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    spool = a_run("moving", segments=6)
    moved = spool.pending()[-1]
    listed = Spool.pending

    def archived_after_listing(self: Spool) -> list[str]:
        names = listed(self)
        self.archive(moved)
        return names

    monkeypatch.setattr(Spool, "pending", archived_after_listing)
    assert understudy("gate", "--json").json["episodes"] == 6


def test_what_no_gate_judged_is_not_in_its_report() -> None:
    """Safe answers of an overloaded server, and verdicts that time ran out for."""
    a_run("busy", segments=40)
    sure = understudy("gate", "--run", "runs/busy", "--json").json
    spool = a_run("busier", segments=40)
    for index in range(40, 60):
        made = segment(index, right=1.0, share=0.2)
        said: dict[str, Any] = {"sent": np.ones(LENGTH, bool), "explored": np.zeros(LENGTH, bool)}
        safe: dict[str, Any] = {
            "sampled": np.zeros(LENGTH, bool),
            "expected": np.zeros(LENGTH, np.float32),
        }
        spool.put(replace(made, **said, **safe))
        late = {"sent": np.zeros(LENGTH, bool), "expected": np.full(LENGTH, np.nan, np.float32)}
        meta = msgspec.structs.replace(made.meta, id=f"late-{index}")
        spool.put(replace(made, **said | late, meta=meta))
    busy = understudy("gate", "--run", "runs/busier", "--json").json
    assert busy["calibration"] == sure["calibration"]
    assert (sure["unspoken"], busy["unspoken"]) == (0, 20 * LENGTH)


def test_an_open_gate_is_no_gate() -> None:
    spool = a_run("open", segments=0)
    verdict = OpenGate().evaluate(np.zeros(2, np.float32), np.ones(1, np.int32))
    nothing: dict[str, Any] = {"expected": np.full(LENGTH, verdict.expected_reward, np.float32)}
    everything: dict[str, Any] = {"sent": np.ones(LENGTH, bool), "explored": np.zeros(LENGTH, bool)}
    spool.put(replace(segment(1, right=1.0, share=0.0), **nothing, **everything))
    called = understudy("gate", "--run", "runs/open")
    assert called.code == 2 and "judged by a gate" in called.err


def test_a_run_without_a_gate_is_told_so() -> None:
    a_run("plain", judged=False, segments=2)
    called = understudy("gate", "--run", "runs/plain")
    assert called.code == 2
    assert called.err.count("\n") == 1
    assert "--run runs/plain" in called.err and "serve --gate" in called.err
