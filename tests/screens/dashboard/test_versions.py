"""The page of versions: roles, evidence, lineage and what a person may change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from promotion.scripted import ScriptedRun
from run.dashboards import unpacked
from walk.toys import SPEC

from understudy.core.clock import SystemClock
from understudy.policy import weights
from understudy.registry.run_folder import RunFolder
from understudy.registry.scores import Score
from understudy.registry.versions import WEIGHTS, Manifest
from understudy.run import controls
from understudy.screens.dashboard.pages import versions
from understudy.screens.html import run_charts
from understudy.screens.html.parts import TrendCharts
from understudy.telemetry.events import BotStopped
from understudy.telemetry.trends import Trend

from .readings import HOSTILE, actions_of, outlines, reading_of


@pytest.fixture
def tested(tmp_path: Path) -> ScriptedRun:
    """Version 3 was promoted, and version 4 is tested."""
    run = ScriptedRun(tmp_path / "auto", seed=1, promotion__alpha=0.3, promotion__holdout=0.0)
    run.nominate(3)
    run.play(300, {0: 0.2, 3: 0.9}, until="promoted", opponent=HOSTILE)
    run.nominate(4)
    run.play(9, {0: 0.5, 3: 0.5, 4: 0.5}, opponent=HOSTILE)
    return run


def test_a_running_test_is_shown_with_its_evidence_and_can_be_stopped(tested: ScriptedRun) -> None:
    page = outlines(versions.parts, reading_of(tested.folder.root))
    assert "version 3" in page["roles"].text
    chart, *more = [one["aria-label"] for one in page["evidence"].of("svg")]
    assert "Test of version 4" in chart
    assert "enough to promote (3.33333) at 3.33" in chart
    assert any("The last 2 tests" in one for one in more)
    assert "version 3: promoted" in page["evidence"].text
    assert "It has not ended" in page["evidence"].text
    assert "promoted: it became the champion" in page["story"].text
    actions = actions_of(page["roles"])
    assert actions["approve"]["data-version"] == "4"
    assert "stop" in actions
    assert "release" not in actions, "nothing is pinned"


def test_versions_and_rules_have_their_colours_in_every_chart(tested: ScriptedRun) -> None:
    reading = reading_of(tested.folder.root)
    keys = [one for one in versions.parts(reading) if one.key == "evidence"]
    drawn = str(keys[0].body).partition("Mean result by player (a tie counts half)")[2]
    assert '<li class="k1">versions' in drawn and '<li class="k2">the rules' in drawn
    assert 'f2"><title>the rules:' in drawn and 'f1"><title>version 3:' in drawn
    rules = {"rules_win_rate": Trend()}
    for match in range(20):
        rules["rules_win_rate"].add(float(match), 1.0, 0)
    before = str(TrendCharts(rules).draw(run_charts.WIN_RATE))
    assert "thick s2" in before and "s1" not in before, "before a version has played, too"


def test_after_the_end_the_page_tells_of_the_next_session(tested: ScriptedRun) -> None:
    assert "Now: " in outlines(versions.parts, reading_of(tested.folder.root))["roles"].text
    tested.journal.write(BotStopped(matches=9))
    page = outlines(versions.parts, reading_of(tested.folder.root))
    assert "In the next session: version 3" in page["roles"].text
    assert "Now: " not in page["roles"].text


def test_names_of_opponents_stay_text(tested: ScriptedRun) -> None:
    page = outlines(versions.parts, reading_of(tested.folder.root))
    assert not any(one.of("script") for one in page.values())
    assert "<script>" in page["evidence"].text


def test_a_pinned_champion_can_be_released_and_a_stopped_test_is_gone(tested: ScriptedRun) -> None:
    controls.order(tested.folder, "stop")
    controls.roll_back(tested.folder, 4)
    page = outlines(versions.parts, reading_of(tested.folder.root))
    actions = actions_of(page["roles"])
    assert "release" in actions
    assert not {"stop", "approve"} & set(actions)
    assert "pinned by a person" in page["roles"].text
    assert "stopped: a person stopped the test" in page["story"].text


def test_every_kept_version_but_the_champion_can_be_pinned(tmp_path: Path) -> None:
    run = unpacked(tmp_path, "ring") / "ring"
    page = outlines(versions.parts, reading_of(run))
    buttons = page["versions"].of("button", **{"data-action": "rollback"})
    assert [one["data-version"] for one in buttons] == ["3", "1"], "2 is the champion"
    assert "pause-learning" not in actions_of(page["roles"]), "no learner runs"
    assert not {"evidence", "story"} & set(page), "no promotion log"


def test_training_cannot_be_paused(tmp_path: Path) -> None:
    run = unpacked(tmp_path, "arena") / "arena"
    actions = actions_of(outlines(versions.parts, reading_of(run))["roles"])
    assert not {"pause-learning", "resume-learning"} & set(actions)


def test_paused_learning_can_go_on(tmp_path: Path) -> None:
    run = unpacked(tmp_path, "ring") / "ring"
    controls.switch_learning(run, paused=True)
    assert "resume-learning" in actions_of(outlines(versions.parts, reading_of(run))["roles"])


def scored(folder: RunFolder, number: int, parent: int | None, *scores: Score) -> None:
    contents = {WEIGHTS: weights.encode(weights.fresh(SPEC, np.random.default_rng(0)))}
    manifest = Manifest(
        number=number, parent=parent, created_at=0.0, spec=SPEC, scores=scores, mode="learn"
    )
    folder.versions.commit(manifest, contents)
    folder.pointers.move("candidate", number, by="latest")
    folder.pointers.move("champion", number, by="latest")


def test_win_rates_are_of_groups_of_versions_and_the_last_good_one_is_offered(
    tmp_path: Path,
) -> None:
    folder = ScriptedRun(tmp_path / "run").folder
    scores = (
        Score(first=1, last=2, matches=100, wins=80),
        Score(first=3, last=4, matches=100, wins=20),
    )
    for number in range(1, 4):
        scored(folder, number, number - 1 or None)
    scored(folder, 4, 3, *scores)
    page = outlines(versions.parts, reading_of(folder.root))
    (chart,) = [one["aria-label"] for one in page["scores"].of("svg")]
    assert "mean from 80% to 20%" in chart
    assert actions_of(page["roles"])["rollback"]["data-version"] == "2"
    assert "in one line of learning" in page["lineage"].of("svg")[0]["aria-label"]


def test_a_branch_after_a_rollback_is_seen(tmp_path: Path) -> None:
    folder = ScriptedRun(tmp_path / "run").folder
    for number, parent in ((1, None), (2, 1), (3, 1)):
        scored(folder, number, parent)
    page = outlines(versions.parts, reading_of(folder.root))
    assert "in 2 lines of learning" in page["lineage"].of("svg")[0]["aria-label"]


def test_a_run_without_a_version_says_so(tmp_path: Path) -> None:
    run = ScriptedRun(tmp_path / "run")
    page = outlines(versions.parts, reading_of(run.folder.root))
    assert "No version of the policy was published yet" in page["lineage"].text
    assert "No version was tested yet" in page["evidence"].text
    assert "Champion" in page["roles"].text
    assert "the rules play every match" in page["roles"].text


def test_a_damaged_manifest_is_named_and_hides_nothing_else(tmp_path: Path) -> None:
    run = unpacked(tmp_path, "ring") / "ring"
    folder = RunFolder.load(run, SystemClock())
    path = folder.versions.folder(1) / "manifest.json"
    path.write_bytes(path.read_bytes()[:-9])
    page = outlines(versions.parts, reading_of(run))
    assert "version 1" in page["roles"].text
    assert len(page["lineage"].of("circle")) == 2


def test_a_log_that_is_too_long_is_not_read_whole(
    tested: ScriptedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "_LONGEST_LOG", 10)
    found = outlines(versions.parts, reading_of(tested.folder.root))
    assert "this run has more" in found["evidence"].text
    assert "promoted" in found["story"].text, "verdicts are shown all the same"
