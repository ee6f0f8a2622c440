"""The stand-in keeps the tournament's interface, habits and order of strength."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from understudy.adapters.ai2.stand_in import write_stand_in
from understudy.adapters.ai2.stand_in.environment.agent import (
    Agent,
    BasedAgent,
    ClockworkAgent,
    ConstantAgent,
    RandomAgent,
    run_match,
)
from understudy.adapters.ai2.stand_in.environment.environment import Result, WarehouseBrawl
from understudy.core.errors import ConfigError


class SeededRandomAgent(RandomAgent):
    """Draws from the global random, which `results` seeds: by chance a match of the random agent
    ends in a draw."""

    def predict(self, obs: Any) -> Any:
        self.action_space.seed(random.getrandbits(31))
        return super().predict(obs)


def results(one: type[Agent], two: type[Agent], matches: int) -> list[Result]:
    found = []
    for seed in range(matches):
        random.seed(seed)
        found.append(run_match(one, two).player1_result)
    return found


def test_the_scripted_agents_are_as_strong_as_the_tournaments() -> None:
    assert results(BasedAgent, ConstantAgent, 6) == [Result.WIN] * 6
    assert results(BasedAgent, SeededRandomAgent, 6).count(Result.WIN) >= 5
    assert results(SeededRandomAgent, ConstantAgent, 4) == [Result.LOSS] * 4
    assert results(BasedAgent, ClockworkAgent, 4).count(Result.WIN) >= 3


def test_neither_slot_has_an_advantage() -> None:
    """The same match with slots exchanged is the same match, seen from the other side."""

    def play(exchanged: bool) -> list[Any]:
        random.seed(11)
        env = WarehouseBrawl()
        env.match.players.reverse() if exchanged else None
        rng = np.random.default_rng(5)
        seen = []
        for _ in range(600):
            one, two = rng.random((2, 10)) < 0.25
            obs, *_ = env.step({0: two, 1: one} if exchanged else {0: one, 1: two})
            seen.append(obs[1 if exchanged else 0])
        return seen

    for here, there in zip(play(False), play(True), strict=True):
        np.testing.assert_array_equal(here, there)


def test_the_habits_of_the_tournament(capsys: pytest.CaptureFixture[str]) -> None:
    env = WarehouseBrawl(train_mode=True)
    assert "Obs space" in capsys.readouterr().out
    random.seed(1)
    first, info = env.reset(seed=1)
    random.seed(1)
    again, _ = env.reset(seed=2)
    np.testing.assert_array_equal(first[0], again[0])
    others = [env.reset(seed=1)[0][0] for _ in range(8)]
    assert any(not np.array_equal(first[0], other) for other in others)
    assert info == {} and first[0].dtype == np.float64 and first[0].shape == (64,)
    assert not np.all(first[0] <= env.observation_space.high)
    _, rewards, terminated, truncated, _ = env.step({0: np.zeros(10), 1: np.full(10, 0.4)})
    assert rewards == {0: 0, 1: 0} and not terminated and not truncated
    assert env.get_stats(0).lives_left == env.players[0].stocks == 3


def test_run_match_moves_the_platform_twice_and_never_resets() -> None:
    class Watcher(ConstantAgent):
        speeds: list[float] = []  # noqa: RUF012 - read after the match
        resets = 0

        def predict(self, obs: Any) -> Any:
            self.speeds.append(float(obs[28]))
            return super().predict(obs)

        def reset(self) -> None:
            self.resets += 1

    watcher = Watcher()
    run_match(watcher, ConstantAgent, max_timesteps=4)
    assert watcher.resets == 0
    env = WarehouseBrawl()
    start = env.reset()[0][0][28]
    once = env.step({0: np.zeros(10), 1: np.zeros(10)})[0][0][28]
    assert watcher.speeds[2] - watcher.speeds[1] == pytest.approx(2 * (once - start))


def test_it_needs_numpy_alone(stand_in: Path) -> None:
    script = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "import numpy\n"
        "theirs = {name.partition('.')[0] for name in sys.modules}\n"
        "import environment.agent\n"
        "ours = {name.partition('.')[0] for name in sys.modules} - theirs\n"
        "print(sorted(ours - set(sys.stdlib_module_names)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=stand_in, capture_output=True, check=True, text=True
    )
    assert done.stdout.strip() == "['environment']"


def test_it_is_not_written_over_something(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x", encoding="utf-8")
    with pytest.raises(ConfigError, match="expected a new or empty folder"):
        write_stand_in(tmp_path)
