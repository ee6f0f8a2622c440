"""The benchmarks of the takeover: their windows find a dip, and their game is what they say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from understudy.core.config import Config
from understudy.policy.presets import network
from understudy.run.play import PlaySession, play


def test_a_window_below_the_rules_is_found_and_an_incomplete_one_left_out(benchmark: Any) -> None:
    runs = benchmark("takeover_runs")
    fair = [1.0, 0.0] * 150
    dip = [1.0, 0.0, 0.0, 0.0] * 75
    found = runs.windows([fair + dip + fair, fair + dip + [0.0] * 299], 300)
    assert [(one.first, one.seeds) for one in found] == [(0, 2), (300, 2), (600, 1)]
    assert [one.mean for one in found] == [0.5, 0.25, 0.5]
    assert [one.below(0.5) for one in found] == [False, True, False]
    assert runs.worst(found) == found[1]
    # A dip of one seed alone: 37.5% of 600 matches, and at most 41.4%.
    assert runs.windows([fair, dip], 300)[0].below(0.5)
    assert not runs.windows([fair, dip], 300)[0].below(0.46)


def test_each_seed_is_a_process_and_a_failure_is_told(benchmark: Any) -> None:
    runs = benchmark("takeover_runs")

    def started(seed: int, place: int) -> Any:
        code = f"import os, json; print(json.dumps([{seed}, {place}, os.environ['ONE']]))"
        return [sys.executable, "-S", "-c", code], {"ONE": "1"}

    found = runs.run_seeds([5, 6, 7], started, workers=2)
    assert [one[0] for one in found] == [5, 6, 7]
    assert {one[1] for one in found} <= {0, 1} and {one[2] for one in found} == {"1"}
    with pytest.raises(SystemExit, match=r"seed 5: .* ended with 3"):
        runs.run_seeds(
            [5],
            lambda seed, place: ([sys.executable, "-S", "-c", "import sys; sys.exit(3)"], {}),
            workers=1,
        )
    for wrong in ("", "1,1", "-1", "a"):
        with pytest.raises(SystemExit, match="--seeds: expected"):
            runs.seed_list(wrong)


def test_the_rules_of_the_slow_game_win_half_and_can_be_beaten(benchmark: Any) -> None:
    slow = benchmark("slow_takeover")
    game = slow.SlowGame.of(3)
    seen = np.random.default_rng(0).normal(size=(50_000, slow.FEATURES))
    right = float((game.rules(seen) == game.right(seen)).mean())
    assert abs(right - slow.RULES_RIGHT) < 0.01
    assert abs(slow.win_rate(slow.RULES_RIGHT) - 0.5) < 0.01
    assert slow.win_rate(1.0) > 0.99 and slow.win_rate(0.5) < 0.1


def test_the_rules_alone_play_the_matches_of_the_command(benchmark: Any, tmp_path: Path) -> None:
    takeover = benchmark("takeover")
    session = PlaySession(
        game="swarm", run=tmp_path / "run", difficulty="hard", matches=4, seed=9, mode="shadow",
        learner="off", network=network("mlp"), config=Config(),
    )  # fmt: skip
    play(session, show=lambda progress: None)
    told = takeover.told(tmp_path / "run")
    assert told["results"] == takeover.rules_alone(9, 4)
    assert told["roles"] == {"rules": 4} and told["champion_version"] == 0


def test_the_picture_takes_whole_windows_of_all_seeds(benchmark: Any) -> None:
    picture = benchmark("takeover_picture")
    curve = picture.curve([[1.0, 0.0, 0.5, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0]], 2)
    assert curve.at.tolist() == [2, 4]
    assert curve.rates.tolist() == [[0.5, 0.5], [1.0, 0.0]]


def test_a_served_takeover_prints_each_seed_when_it_ends(
    benchmark: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    served = benchmark("serve_takeover")
    measure, printed = served.fast_takeover, []

    def measured(seed: int, **options: Any) -> Any:
        printed.append(capsys.readouterr().out)
        return measure(seed, **options)

    monkeypatch.setattr(served, "fast_takeover", measured)
    monkeypatch.setattr(sys, "argv", ["serve_takeover.py", "--fast", "--minutes=0.01", "--seeds=2"])
    with pytest.raises(SystemExit, match="seed 0 was not taken over within 300 s; seed"):
        served.main()
    printed.append(capsys.readouterr().out)
    assert "Python" in printed[0] and "seed" not in printed[0]
    assert [words.partition(";")[0] for words in printed[1:]] == [
        "seed 0: taken over never",
        "seed 1: taken over never",
    ]


def test_a_served_takeover_tells_how_long_the_rest_takes(
    benchmark: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = benchmark("serve_takeover").Progress(2000, every_s=0.0)
    progress.tick()
    line = capsys.readouterr().err
    assert line.startswith("1 of 2,000 ticks, about ") and line.endswith(" min left\n")
