from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cli.runs_of_brawl import brawl_run

from understudy.adapters.gymnasium.env import GameEnv
from understudy.agents.files import write_module
from understudy.agents.loading import named_policy
from understudy.agents.module_file import plain_agent
from understudy.agents.players import named_player
from understudy.core.errors import ConfigError, RunFolderError
from understudy.games import catalog
from understudy.match.evaluate import judge
from understudy.match.players import BotPlayer

from .exports import exported, policy_of


@pytest.fixture
def run(tmp_path: Path) -> Path:
    root = brawl_run(tmp_path / "brawl-1")
    write_module(named_policy("RUN", str(root)), tmp_path / "agent.py", plain_agent(greedy=False))
    return root


@pytest.mark.parametrize("sampled", [True, False])
def test_a_file_plays_the_matches_of_its_version(run: Path, sampled: bool) -> None:
    game = catalog.make("brawl")
    against = {"based": BotPlayer(catalog.bots("brawl")["based"])}
    reports = [
        judge(
            game, named_player("--agent", name, game, sampled=sampled), against, matches=4, seed=1
        )
        for name in (str(run), str(run.parent / "agent.py"))
    ]
    assert reports[0] == reports[1]


def test_an_environment_is_played_against_a_run_or_its_file(run: Path) -> None:
    seen = []
    for opponent in (str(run), f"{run}@2", str(run.parent / "agent.py")):
        env = GameEnv("brawl", opponent=opponent, side=1)
        obs, _ = env.reset(seed=3)
        rows = [obs]
        for _ in range(100):
            obs, _, over, _, _ = env.step(0)
            rows.append(obs)
            if over:
                break
        seen.append(np.array(rows))
    assert np.array_equal(seen[0], seen[1]) and np.array_equal(seen[0], seen[2])
    still = GameEnv("brawl", opponent="constant", side=1)
    still.reset(seed=3)
    assert not np.array_equal(seen[0][50], [still.step(0)[0] for _ in range(50)][-1])


def test_agents_of_another_game_are_refused(run: Path, tmp_path: Path) -> None:
    other = exported(policy_of("mlp"), tmp_path / "other.py").path
    with pytest.raises(RunFolderError, match="its features are not those of brawl"):
        GameEnv("brawl", opponent=str(other))
    with pytest.raises(RunFolderError, match="was exported for brawl 4, not for swarm"):
        named_player("--agent", str(other), catalog.make("swarm"), sampled=True)
    with pytest.raises(ConfigError, match=r"'bassed', which is no run folder either. Did you mean"):
        GameEnv("brawl", opponent="bassed")


def test_a_bot_is_meant_where_a_run_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in `eval --opponents`."""
    brawl_run(tmp_path / "based")
    monkeypatch.chdir(tmp_path)
    agents = [GameEnv("brawl", opponent=name) for name in ("based", "./based")]
    kinds = [type(env._opponent).__name__ for env in agents]
    assert kinds == ["BotPlayer", "PolicyPlayer"]
