"""The page of a live server: counts add up, spawns lie where they were, and nothing is made up."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs
from walk.toys import SPEC

pytest.importorskip("starlette")

from doctor.written_runs import play, publish_certain, served
from run.dashboards import unpacked
from session.sessions import SMALL

from understudy.core.clock import SystemClock
from understudy.experience.episode import Episode, Meta, Outcome
from understudy.experience.spool import Spool
from understudy.games.territory import Territory, tables
from understudy.policy.spec import PolicySpec
from understudy.registry.run_folder import RunFolder
from understudy.screens.dashboard.pages import overview, server
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Journal
from understudy.telemetry.latency import Latency
from understudy.telemetry.status import Estimate, RewardStatus, VersionReward

from .readings import HOSTILE, outlines, reading_of

GATE = "doctor.written_runs:TestGate"


def territory(root: Path, actions: list[int]) -> RunFolder:
    """A served run whose one segment has these actions, all sent."""
    game = Territory()
    spec = PolicySpec(game.features, game.actions, SMALL)
    folder = RunFolder.open(root, spec=spec, config=None, clock=SystemClock(), game="territory 1")
    (root / "ledger").mkdir()
    count = len(actions)
    Spool(root, spec, folder.clock).put(
        Episode(
            meta=Meta(id="s", outcome=Outcome.ABORTED, finished_at=1.0),
            observations=np.zeros((count, len(spec.features)), np.float32),
            actions=np.array(actions, np.int32)[:, None],
            log_probs=np.zeros(count, np.float32),
            values=np.zeros(count, np.float32),
            rewards=np.zeros(count, np.float32),
            sampled=np.ones(count, np.bool_),
            versions=np.zeros(count, np.int64),
        )
    )
    return folder


def test_a_served_run_shows_verdicts_outcomes_and_what_its_gate_foresaw(tmp_path: Path) -> None:
    with served(tmp_path / "run", gate=GATE) as at:
        play(at, ticks=300)
        for _ in range(40):
            at.server.batching.latency.add(0.004)
        at.server.refusals["rate"] += 3
    reading = reading_of(tmp_path / "run")
    assert server.offered(reading)
    page = outlines(server.parts, reading)
    (bar,) = page["ledger"].of("svg")
    counts = reading.status.ledger
    assert counts is not None and f"settled {counts.settled:,}" in bar["aria-label"]
    totals = reading.status.server
    assert totals is not None and totals.decisions == 300
    assert f"WAIT {totals.waited}" in page["gate"].of("svg")[0]["aria-label"]
    assert "Foreseen and followed" in page["gate"].text and "test" in page["gate"].text
    (histogram, *_) = page["answers"].of("svg")
    assert "40 answers" in histogram["aria-label"] and "≤5 ms 40" in histogram["aria-label"]
    assert "rate" in page["clients"].text and "300" in page["clients"].text
    shares = re.findall(r"chunk \d+\s*([\d.]+)%", page["actions"].text)
    assert shares and "collapsed" in page["actions"].text


def test_a_run_folder_of_an_earlier_program_says_what_it_does_not_know(tmp_path: Path) -> None:
    page = outlines(server.parts, reading_of(unpacked(tmp_path, "served") / "served"))
    assert "those of earlier versions did not" in page["answers"].text
    assert page["ledger"].of("svg")


def test_a_server_that_nothing_has_asked_says_so(tmp_path: Path) -> None:
    with served(tmp_path / "run"):
        pass
    page = outlines(server.parts, reading_of(tmp_path / "run"))
    assert not any(one.of("svg") for one in page.values())
    for key in ("ledger", "rewards", "actions", "gate", "answers", "clients", "learner"):
        assert "yet" in page[key].text or "too few" in page[key].text or "comes" in page[key].text


def test_spawns_lie_on_the_map_by_kind_and_place(tmp_path: Path) -> None:
    spawn = tables.action_of(2 * tables.GRID + 5, tables.COMBAT)
    territory(tmp_path / "run", [tables.NO_SPAWN] * 30 + [spawn] * 7)
    page = outlines(server.parts, reading_of(tmp_path / "run"))
    (label,) = [one["aria-label"] for one in page["actions"].of("svg") if "aria-label" in one]
    assert "combat" in label and "highest 7 spawns at 2, 5" in label  # energy has no map
    assert "1 of 256 chunks are used" in page["actions"].text
    assert "may have collapsed" in page["actions"].text


def test_only_what_was_sent_is_counted_as_an_action(tmp_path: Path) -> None:
    publish_certain(tmp_path / "run", 7)
    with served(tmp_path / "run", {"live.threshold": 0.99}, gate=GATE) as at:
        play(at, ticks=100)  # the gate blocks nearly all
    text = outlines(server.parts, reading_of(tmp_path / "run"))["actions"].text
    assert "too few" in text


def test_names_of_clients_and_codes_stay_text(tmp_path: Path) -> None:
    with served(tmp_path / "run") as at:
        play(at, ticks=30, client=HOSTILE.replace("\x00", ""))
    folder = RunFolder.load(tmp_path / "run", SystemClock())
    Journal(folder.journal, "server", folder.clock).write(
        ev.ServerCounted(
            seconds=1.0,
            decisions=1,
            sent=1,
            waited=0,
            errors={HOSTILE: 1},
            gate=HOSTILE,
            decided_by={HOSTILE: 1},
            safe_actions={HOSTILE: 1},
        )
    )
    page = outlines(server.parts, reading_of(tmp_path / "run"))
    assert not any(one.of("script") for one in page.values())
    for key in ("deciding", "gate", "clients"):
        assert "<script>" in page[key].text


def test_the_first_page_shows_what_versions_earn(tmp_path: Path) -> None:
    reading = reading_of(unpacked(tmp_path, "served") / "served")
    earned = RewardStatus(
        per="decision",
        now=VersionReward(first=3, last=4, count=9, reward=Estimate(0.4, 0.3, 0.5)),
        start=VersionReward(first=0, last=0, count=9, reward=Estimate(-0.1, -0.2, 0.0)),
    )
    status = structs.replace(reading.status, version_rewards=earned)
    view = structs.replace(reading.view, status=status)
    curves = outlines(overview.parts, dataclasses.replace(reading, view=view))["curves"]
    assert "Reward per decision" in curves.text and "at the start" in curves.text


def test_the_page_is_not_offered_to_a_bot(tmp_path: Path) -> None:
    RunFolder.open(tmp_path / "run", spec=SPEC, config=None, clock=SystemClock())
    assert not server.offered(reading_of(tmp_path / "run"))


@pytest.mark.parametrize(
    ("taken", "bucket"), [(0.00005, "≤0.1 ms"), (0.15, "≤200 ms"), (9, ">5 s")]
)
def test_an_answer_is_counted_in_the_bucket_of_its_time(taken: float, bucket: str) -> None:
    latency = Latency()
    latency.add(taken)
    assert f"{bucket} 1" in str(server.latency_histogram(latency.counts)).replace("&gt;", ">")


def test_an_axis_of_times_goes_from_milliseconds_to_seconds(tmp_path: Path) -> None:
    with served(tmp_path / "run"):
        pass
    folder = RunFolder.load(tmp_path / "run", SystemClock())
    journal = Journal(folder.journal, "server", folder.clock)
    for answers in ((0,) * 5 + (9,), (0,) * 19 + (9,)):
        journal.write(ev.ServerCounted(seconds=1.0, decisions=9, sent=9, waited=0, answers=answers))
    text = outlines(server.parts, reading_of(tmp_path / "run"))["answers"].text
    assert "1 ms" in text and "1 s" in text and "e+" not in text
