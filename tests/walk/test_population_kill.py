"""A population is killed at any moment, and goes on from what all of its agents have."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from understudy.core.clock import SystemClock
from understudy.league import lineage as lineages
from understudy.registry.run_folder import RunFolder

from .population_child import AGENTS, ROLLOUT

KILLS = 2
FOREVER = 10_000_000


def start(run: Path, steps: int, *, resume: bool) -> subprocess.Popen[str]:
    script = Path(__file__).with_name("population_child.py")
    line = [sys.executable, str(script), str(run), str(steps), "resume" if resume else "new"]
    return subprocess.Popen(line, stderr=subprocess.PIPE, text=True, cwd=run.parent)


def newest(run: Path) -> int:
    """The last version of the last agent, by name alone."""
    folders = [path.name for path in (run / f"agent-{AGENTS}" / "versions").glob("[0-9]*")]
    return max(map(int, folders), default=0)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_killed_population_goes_on_from_what_all_agents_have(tmp_path: Path) -> None:
    run, chance, last = tmp_path / "run", random.Random(), 0
    for kill in range(KILLS):
        with start(run, FOREVER, resume=kill > 0) as child:
            deadline = time.monotonic() + 120.0
            while newest(run) < last + 5:
                assert child.poll() is None, child.communicate()[1]
                assert time.monotonic() < deadline
                time.sleep(0.005)
            time.sleep(chance.uniform(0.0, 0.2))
            child.kill()
            child.communicate()
        assert child.returncode == -signal.SIGKILL
        last = newest(run)
    goal = (last + 5) * ROLLOUT
    with start(run, goal, resume=True) as child:
        errors = child.communicate(timeout=120)[1]
    assert child.returncode == 0, errors
    check(run, goal)


def check(run: Path, goal: int) -> None:
    """No round is torn or told twice, and every agent has the same versions, all of them whole."""
    lineage = lineages.decode((run / lineages.FILE).read_bytes(), what="lineage.json")
    steps = [lineage.of_round(number)[0].steps for number in range(1, lineage.rounds + 1)]
    assert steps == list(range(3 * ROLLOUT, goal, 3 * ROLLOUT))
    settings = lineage.first
    for number in range(1, lineage.rounds + 1):
        rows = lineage.of_round(number)
        assert tuple(row.before for row in rows) == settings, "a round follows from the one before"
        settings = tuple(row.after for row in rows)
    table = (run / lineages.TABLE).read_text(encoding="utf-8").splitlines()
    assert len(table) == 1 + AGENTS * lineage.rounds
    for number, expected in enumerate(settings, start=1):
        folder = RunFolder.load(run / f"agent-{number}", SystemClock())
        assert folder.config.learner.learning_rate == expected.learning_rate
        kept = [folder.versions.verify(one).counters for one in folder.versions.numbers()]
        assert [one["steps"] for one in kept] == list(range(ROLLOUT, goal + 1, ROLLOUT))
        assert all(one["iterations"] * ROLLOUT == one["steps"] for one in kept)
    front = RunFolder.load(run, SystemClock()).versions
    assert front.verify(front.head() or 0).counters["steps"] == goal
