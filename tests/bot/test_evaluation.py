"""Rules against a version in a bot's own simulator: fair, honest about chance, without a trace."""

from __future__ import annotations

import inspect
import json
import random
import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from understudy import Understudy
from understudy.bot.evaluation import paired_interval
from understudy.bot.match import Match, open_matches
from understudy.core.errors import InputError, RunFolderError
from understudy.policy.policy import Policy

from .minds import episodes, journal, lively, mind, publish


def digging(match: Match, seed: int) -> str:
    """The version meets what the rules meet; digging at the right moments wins."""
    luck = random.Random(seed)
    gold = 0
    for turn in range(5):
        here = luck.random()
        action = match.decide([here, turn], fallback="wait")
        gold += action != "wait" and here > 0.5
        match.reward(1.0)
    return "victory" if gold >= 1 else "defeat"


def files_of(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("mode", ["shadow", "auto", "learn", "play"])
def test_both_play_the_same_seeds_and_nothing_is_kept(tmp_path: Path, mode: str) -> None:
    seen: list[tuple[str, int, int]] = []

    def play(match: Match, seed: int) -> str:
        seen.append((match.role, match.version, seed))
        return digging(match, seed)

    with mind(tmp_path, mode=mode) as bot:
        publish(bot.folder, 1)
        publish(bot.folder, 2)
        bot.refresh()
        before = files_of(tmp_path)
        result = bot.evaluate(play, 3, seeds=[7, 5, 9])
        assert files_of(tmp_path) == before and not open_matches(bot)
        assert bot.matches == 0
        again = bot.evaluate(play, 3, seeds=[7, 5, 9])
    assert seen[:6] == [
        (role, version, seed)
        for seed in (7, 5, 9)
        for role, version in (("rules", 0), ("canary", 2))
    ]
    assert again == result, "the same seeds, the same result"
    assert result.rules == 0.0 and result.pairs == 3 and result.version == 2
    assert episodes(tmp_path) == []
    assert {type(event).__name__ for event in journal(tmp_path)} <= {
        "BotStarted", "VersionAdopted", "BotStopped"
    }  # fmt: skip


def test_a_better_version_shows_and_can_be_printed(tmp_path: Path) -> None:
    with mind(tmp_path, mode="shadow") as bot:
        publish(bot.folder, 1, champion=False)
        result = bot.evaluate(digging, 40, seeds=range(40), version=1)
    assert result.difference == result.policy > result.low > 0.0
    assert str(result).startswith("40 seeds: rules 0.0%, version 1 ")
    assert str(result).endswith(": version 1 is better")
    assert json.loads(json.dumps(result.as_dict()))["low"] == result.low


def test_scores_and_finish_are_results_too(tmp_path: Path) -> None:
    def scored(match: Match, seed: int) -> tuple[str, float]:
        match.decide([1, 2], fallback="wait")
        return "defeat", 75.0 if match.version else 50.0

    def finishes(match: Match, seed: int) -> None:
        match.decide([1, 2], fallback="wait")
        match.finish("tie", score=25.0)

    with mind(tmp_path, mode="auto", score=(0, 100)) as bot:
        publish(bot.folder, 1, champion=False)
        result = bot.evaluate(scored, 5)
        assert (result.rules, result.policy) == (0.5, 0.75)
        result = bot.evaluate(finishes, 5)
        assert (result.rules, result.policy, result.difference) == (0.25, 0.25, 0.0)
        assert "no difference is shown" in str(result)


def test_a_version_that_fails_loses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    act = Policy.act

    def fails(self: Policy, *args: Any, **options: Any) -> Any:
        if self.version == 2:
            raise ZeroDivisionError
        return act(self, *args, **options)

    def won(match: Match, seed: int) -> str:
        match.decide([1, 2], fallback="wait")
        return "victory"

    with mind(tmp_path, mode="shadow") as bot:
        publish(bot.folder, 1)
        bot.refresh()
        publish(bot.folder, 2, champion=False, weights=lively(bot.folder, 2))
        monkeypatch.setattr(Policy, "act", fails)
        result = bot.evaluate(won, 4, version=2)
    assert (result.rules, result.policy, result.faults) == (1.0, 0.0, 4)
    assert str(result).endswith("; it failed in 4 matches")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"matches": 0}, "matches: expected a whole number above 0, got 0"),
        ({"matches": 2.5}, "matches: expected a whole number"),
        ({"seeds": [1, 2]}, "seeds: expected 3 seeds, got 2"),
        ({"seeds": [1, -2, 3]}, "seeds: expected whole numbers, 0 or more, got -2"),
        ({"seeds": [1, 0.5, 3]}, "seeds: expected whole numbers, 0 or more, got 0.5"),
        ({"seeds": [1, 1, 3]}, "seeds: each may appear once"),
        ({"play": lambda match, seed: None}, "expected play.match, seed. to return an outcome"),
        ({"play": lambda match, seed: "vctory"}, "'vctory' is not an outcome.*'victory'"),
        ({"play": lambda match, seed: ("tie", 1.0)}, "score=1.0 has no scale"),
    ],
)
def test_what_cannot_be_evaluated_is_an_error(
    tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    with mind(tmp_path, mode="shadow") as bot:
        publish(bot.folder, 1, champion=False)
        with pytest.raises(InputError, match=expected):
            bot.evaluate(**{"play": digging, "matches": 3, **changes})


def test_there_must_be_a_version(tmp_path: Path) -> None:
    with mind(tmp_path, mode="shadow") as bot:
        with pytest.raises(RunFolderError, match="has no version yet"):
            bot.evaluate(digging, 3)
        for version in (0, 7):
            with pytest.raises(RunFolderError, match=f"version {version} is not in"):
                bot.evaluate(digging, 3, version=version)


def test_the_example_of_the_docstring_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = inspect.cleandoc(Understudy.evaluate.__doc__ or "").split("Example:\n")[1]
    with mind(tmp_path, mode="auto", actions=("wait", "dig")) as bot:
        publish(bot.folder, 1, champion=False)
        exec(textwrap.dedent(text), {"mind": bot})
    assert re.match(r"20 seeds: rules 0\.0%, version 1 \d+\.\d%; ", capsys.readouterr().out)


# --- the interval --------------------------------------------------------------------------------


def test_the_interval_of_pairs_that_are_known() -> None:
    assert paired_interval(np.zeros(0), confidence=0.95) == (-1.0, 1.0)
    low, high = paired_interval(np.ones(50), confidence=0.95)
    assert low > 0.7 and high == 1.0
    differences = np.tile([1.0, 0.0, 0.0, -1.0], 250)
    low, high = paired_interval(differences, confidence=0.95)
    assert -0.12 < low < 0.0 < high < 0.12
    assert paired_interval(-differences, confidence=0.95) == pytest.approx((-high, -low))


def test_the_interval_covers_the_truth_also_when_one_looks_often() -> None:
    """At 80% confidence at most 1 of 5 sequences of looks may ever miss it; here 1 of 4 fails."""
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(100):
        differences = rng.choice([1.0, 0.0, -1.0], size=200, p=[0.3, 0.5, 0.2])
        looks = (paired_interval(differences[:n], confidence=0.8) for n in range(10, 201, 10))
        missed += any(not low <= 0.1 <= high for low, high in looks)
    assert 0 < missed < 25
