from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from policy.makers import STRATEGIST, lively_policy

from understudy.adapters.ai2.layout import FEATURES, KEYS
from understudy.adapters.ai2.stand_in import write_stand_in
from understudy.adapters.ai2.submission import MatchStart, SubmissionPlayer, submission
from understudy.agents.agent import PolicyAgent
from understudy.agents.exported import load_exported
from understudy.agents.module_file import AgentSource, module_text
from understudy.core.arrays import NDArray
from understudy.core.errors import FileFormatError, RunFolderError
from understudy.core.spaces import Discrete, MultiBinary
from understudy.policy.mlp import Mlp
from understudy.policy.policy import Policy
from understudy.policy.spec import PolicySpec
from understudy.registry.run_folder import Identity

SPEC = PolicySpec(FEATURES, MultiBinary(KEYS), STRATEGIST)


def identity(spec: PolicySpec = SPEC, **options: str) -> Identity:
    return Identity(spec=spec, created_at=0.0, game="ai2", game_options=options)


@pytest.fixture(scope="module")
def policy() -> Policy:
    return lively_policy(SPEC, version=4)


_MATCHES = """
import json, random, sys
sys.path.insert(0, ".")
import numpy as np
import environment.agent as tournament
from user.my_agent import SubmittedAgent

class Recorded(SubmittedAgent):
    def predict(self, obs):
        keys = super().predict(obs)
        seen.append(np.asarray(obs, float).tolist())
        pressed.append(np.asarray(keys).tolist())
        return keys

agent = Recorded()
matches = []
for number in range(3):
    random.seed(number)
    seen, pressed = [], []
    stats = tournament.run_match(agent, tournament.BasedAgent, max_timesteps=400)
    matches.append({"seen": seen, "pressed": pressed})
assert "understudy" not in sys.modules and "msgspec" not in sys.modules
with open(sys.argv[1], "w") as file:
    json.dump(matches, file)
"""


def test_it_plays_matches_of_the_tournament_with_a_memory_that_starts_clean(
    tmp_path: Path, policy: Policy
) -> None:
    """One agent object plays all matches, as the tournament never calls `reset`; our own agent,
    which is reset before each match, presses the same keys."""
    text = module_text(
        policy, AgentSource("run", "ai2"), submission(SPEC, identity(frames="4"), greedy=True)
    )
    home = tmp_path / "stand_in"  # its own: the others' has no such agent
    write_stand_in(home)
    (home / "user" / "my_agent.py").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-B", "-c", _MATCHES, str(tmp_path / "matches.json")],
        cwd=home, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    matches = json.loads((tmp_path / "matches.json").read_text(encoding="utf-8"))
    for match in matches:
        ours = PolicyAgent(policy, greedy=True)
        held: Any = None
        for frame, (obs, keys) in enumerate(zip(match["seen"], match["pressed"], strict=True)):
            if frame % 4 == 0:
                held = ours.act(np.clip(np.asarray(obs, np.float32), -1000, 1000))
            assert keys == held.tolist(), frame
    assert len({tuple(keys) for match in matches for keys in match["pressed"]}) > 1


def frame(*, stocks: tuple[int, int] = (3, 3), damage: tuple[float, float] = (0, 0),
          x: tuple[float, float] = (5, -5)) -> NDArray:  # fmt: skip
    obs = np.zeros(64, np.float32)
    for side, start in enumerate((0, 32)):
        obs[start], obs[start + 12], obs[start + 13] = x[side], damage[side], stocks[side]
    return obs


@pytest.mark.parametrize(
    ("frames", "begins"),
    [
        ([frame(), frame(x=(4.7, -4.7))], [True, False]),
        # Hit, knocked out, back at the start, unhurt: all one match.
        ([frame(), frame(damage=(80, 0)), frame(stocks=(2, 3), damage=(80, 0), x=(13, -5)),
          frame(stocks=(2, 3), x=(-5, -5))], [True, False, False, False]),
        # The next match, after one with a knock-out, after one with a hit, after a walk.
        ([frame(stocks=(1, 3)), frame()], [True, True]),
        ([frame(), frame(damage=(0, 30)), frame()], [True, False, True]),
        ([frame(), frame(x=(4, -5)), frame(x=(0, 0)), frame()], [True, False, True, True]),
        # The agent joined in the middle: stocks that it never saw are not missed.
        ([frame(stocks=(2, 2)), frame(stocks=(1, 2)), frame(stocks=(1, 2), x=(-5, 5))],
         [True, False, True]),
    ],
)  # fmt: skip
def test_where_a_match_begins(frames: list[NDArray], begins: list[bool]) -> None:
    start = MatchStart()
    assert [start.begins(obs) for obs in frames] == begins


def test_observations_that_are_not_finite_do_not_reach_the_network(policy: Policy) -> None:
    player = SubmissionPlayer(PolicyAgent(policy, greedy=True), frames=1)
    keys = player.keys(np.full(64, np.nan))
    assert keys.shape == (10,) and set(keys.tolist()) <= {0.0, 1.0}
    other = SubmissionPlayer(PolicyAgent(policy, greedy=True), frames=1)
    assert other.keys(np.zeros(64)).tolist() == keys.tolist()


def test_runs_of_other_games_are_refused() -> None:
    for spec, words in (
        (PolicySpec(("x",), MultiBinary(KEYS), Mlp()), "the features of this run"),
        (PolicySpec(FEATURES, Discrete(("a", "b")), Mlp()), "the actions of this run"),
    ):
        with pytest.raises(RunFolderError, match=words):
            submission(spec, identity(spec), greedy=False)


def test_a_submission_is_not_loaded_here(tmp_path: Path, policy: Policy) -> None:
    text = module_text(policy, AgentSource("run"), submission(SPEC, identity(), greedy=False))
    (tmp_path / "my_agent.py").write_text(text, encoding="utf-8")
    with pytest.raises(FileFormatError, match="exported with --as ai2"):
        load_exported(tmp_path / "my_agent.py")
