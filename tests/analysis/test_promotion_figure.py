from __future__ import annotations

import numpy as np
import pytest
from promotion.scripted import ScriptedLog

from understudy.gates.promotion.records import Nominated
from understudy.promotion.history import history

pytest.importorskip("matplotlib")

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from understudy.analysis.canvas import keep
from understudy.analysis.promotion import promotion_figure


def panels(log: ScriptedLog) -> list[Axes]:
    return promotion_figure(history(log.records), title="zerg").axes


@pytest.fixture(scope="module")
def fallen() -> ScriptedLog:
    """Version 3 is stopped, 9 is promoted and rolled back, 12 is tried meanwhile."""
    log = ScriptedLog(seed=1)
    chances = {0: 0.5, 3: 0.05, 9: 0.95, 12: 0.9}
    log.nominate(3)
    log.play(200, chances, until="harmful")
    log.nominate(9)
    log.play(300, chances, until="promoted")
    log.nominate(12)
    log.play(12, chances)
    log.play(300, {0: 0.5, 9: 0.05, 12: 0.9}, until="rolled back")
    return log


def test_who_played_when(fallen: ScriptedLog) -> None:
    strip = panels(fallen)[0]
    told = history(fallen.records)
    rows = [label.get_text() for label in strip.get_yticklabels()]
    assert rows == ["rules", "version 3", "version 9", "version 12"]
    for ticks in strip.collections:
        name = str(ticks.get_label())
        places = [int(np.asarray(path.vertices)[0, 0]) for path in ticks.get_paths()]
        version = int(name.split()[1]) if " " in name else 0
        played = [place for place, one in enumerate(told.matches, 1) if
                  one.assigned.version == version]  # fmt: skip
        assert places == played
    heights = {
        round(float(np.ptp(np.asarray(path.vertices)[:, 1])), 2)
        for ticks in strip.collections
        for path in ticks.get_paths()
    }
    assert len(heights) == 2, "a win and a loss look different"


def test_the_evidence_of_each_test_with_its_thresholds(fallen: ScriptedLog) -> None:
    panel = panels(fallen)[1]
    assert panel.get_yscale() == "log"
    lines = [line for line in panel.lines if line.get_linestyle() == "-"]
    told = history(fallen.records)
    drawn = [np.asarray(line.get_ydata()) for line in lines[1:]]  # the first one is 1
    assert len(drawn) == 2 * len(told.trials) == 8
    for trial, better, worse in zip(told.trials, drawn[::2], drawn[1::2], strict=True):
        assert better[0] == worse[0] == 1.0
        assert better[1:] == pytest.approx(np.clip(trial.looks.better, 0.02, 1e4))
        assert worse[1:] == pytest.approx(np.clip(trial.looks.worse, 0.02, 1e4))
    levels = [
        np.asarray(line.get_ydata())[0] for line in panel.lines if line.get_linestyle() == "--"
    ]
    assert levels == pytest.approx([20, 4, 20, 4, 20, 4, 4, 4])
    words = {text.get_text() for text in panel.texts}
    assert {"test of 3: harmful", "test of 9: promoted", "recheck of 9: rolled back"} <= words


def test_win_rates_with_intervals(fallen: ScriptedLog) -> None:
    panel = panels(fallen)[2]
    told = history(fallen.records)
    for text, version in zip(panel.texts, (0, 3, 9, 12), strict=True):
        results = [one.result for one in told.matches if one.assigned.version == version]
        assert text.get_text() == f"{np.mean(results):.0%} of {len(results)}"


def test_practice_has_a_row_of_its_own_whatever_version_practised() -> None:
    log = ScriptedLog(seed=1)
    log.nominate(3)
    for version in (5, 6, 7):
        log.practice = version
        log.play(30, {0: 0.5, 3: 0.5, version: 0.6})
    told = history(log.records)
    strip, _, rates = panels(log)
    for panel in (strip, rates):
        rows = [label.get_text() for label in panel.get_yticklabels()]
        assert rows == ["rules", "version 3", "practice"]
    [ticks] = [one for one in strip.collections if one.get_label() == "practice"]
    assert len(ticks.get_paths()) == sum(one.practises for one in told.matches) > 5


def test_pairs_of_a_simulator_can_be_drawn_without_a_match() -> None:
    log = ScriptedLog()
    test = log.append(Nominated(version=7, simulator=True))
    log.pair(test, [1.0, 0.0, 1.0], [0.0, 0.0, 0.5])
    _, evidence, rates = panels(log)
    assert np.asarray(evidence.lines[1].get_xdata()).tolist() == [0.5, 1.0, 2.0, 3.0]
    assert [text.get_text() for text in rates.texts] == ["17% of 3", "67% of 3"]


def test_many_versions_leave_room(tmp_path_factory: pytest.TempPathFactory) -> None:
    log = ScriptedLog(seed=1)
    for version in range(1, 20):
        log.nominate(
            version, harm=1e9, long=20, longest=20
        )  # harmful ones would be tried less often
        log.play(25, {0: 0.5, version: 0.3})
        assert log.state.test is None
    figure = promotion_figure(history(log.records), title="many")
    assert len(figure.axes[0].get_yticklabels()) == 10
    path = tmp_path_factory.mktemp("many") / "many.png"
    keep(figure, path)
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    boxes = [text.get_window_extent(renderer) for text in figure.axes[1].texts]
    assert len(boxes) > 9
    assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])


def test_a_run_without_a_test_says_so() -> None:
    log = ScriptedLog(seed=1)
    log.play(5, {0: 0.5})
    evidence = panels(log)[1]
    assert [one.get_text() for one in evidence.texts] == ["no test yet"]
    log.nominate(3)
    log.play(5, {0: 0.5, 3: 0.5})
    assert "no test yet" not in [one.get_text() for one in panels(log)[1].texts]


def test_of_a_long_run_the_newest_matches_are_drawn(
    monkeypatch: pytest.MonkeyPatch, fallen: ScriptedLog
) -> None:
    whole = panels(fallen)
    monkeypatch.setattr("understudy.analysis.promotion._MOST_MATCHES", 30)
    strip, evidence, rates = panels(fallen)
    count = sum(one.counts for one in history(fallen.records).matches)
    assert f"the newest 30 of {count}" in strip.get_title(loc="left")
    ticks = [one for one in strip.collections if isinstance(one, LineCollection)]
    drawn = [place for one in ticks for place, _ in np.concatenate(one.get_segments())]
    assert min(drawn) == count - 29 and max(drawn) == count
    assert strip.get_xlim() == evidence.get_xlim() == (count - 30.0, count + 1.0)
    assert 0 < len(evidence.lines) < len(whole[1].lines)
    named = {one.get_text() for one in whole[2].texts}
    assert {one.get_text() for one in rates.texts} <= named, "results are those of all matches"
