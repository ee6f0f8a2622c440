"""Agents of the stand-in, and `run_match`, behind the tournament's interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from .environment import (
    CameraResolution,
    MatchStats,
    RenderMode,
    Result,
    WarehouseBrawl,
)

_EDGE = 6.0
"""From here on outwards it walks back: the blocks end at 7."""
_ABOVE = 0.5
"""An opponent that is higher by more than this cannot be walked to."""
_TAP_FRAMES = 6
"""A jump is a new press of its key, so that the key is tapped once in so many frames."""
_REACH = 2.0


class Agent(ABC):
    """The base class of all agents, `SubmittedAgent` included."""

    def __init__(self, file_path: str | None = None) -> None:
        self.file_path = self._gdown() if file_path is None else file_path
        self.initialized = False

    def get_env_info(self, env: Any) -> None:
        """Take over the spaces of the game, then initialise."""
        self.observation_space, self.obs_helper = env.observation_space, env.obs_helper
        self.action_space, self.act_helper = env.action_space, env.act_helper
        self.env = env
        self._initialize()
        self.initialized = True

    @abstractmethod
    def predict(self, obs: Any) -> Any:
        """The action of this frame, 10 numbers."""

    def save(self, file_path: str) -> None:  # noqa: B027
        """Nothing, unless an agent has something to save."""

    def reset(self) -> None:  # noqa: B027
        """Never called by `run_match`."""

    def learn(self, env: Any, total_timesteps: int, log_interval: int = 1) -> None:  # noqa: B027
        """Nothing, unless an agent learns."""

    def _initialize(self) -> None:  # noqa: B027
        """What an agent does once it knows the game."""

    def _gdown(self) -> str | None:
        """Download the agent's file, if it has one."""
        return None


class ConstantAgent(Agent):
    """Does nothing."""

    def predict(self, obs: Any) -> Any:
        return self.act_helper.zeros()


class RandomAgent(Agent):
    """Any keys, each pressed half of the time."""

    def predict(self, obs: Any) -> Any:
        return self.action_space.sample()


class BasedAgent(Agent):
    """Walks at the opponent, returns from the edge, jumps when it is below, strikes when near."""

    def __init__(self, file_path: str | None = None) -> None:
        super().__init__(file_path)
        self._frame = 0

    def predict(self, obs: Any) -> Any:
        self._frame += 1
        x, y = self.obs_helper.get_section(obs, "player_pos")
        other_x, other_y = self.obs_helper.get_section(obs, "opponent_pos")
        outside = abs(x) > _EDGE
        keys = ["d" if (0.0 if outside else other_x) > x else "a"]
        falls = outside or bool(self.obs_helper.get_section(obs, "player_aerial")[0])
        if self._frame % _TAP_FRAMES == 0 and (falls or y - other_y > _ABOVE):
            keys.append("space")
        if np.hypot(other_x - x, other_y - y) < _REACH:
            keys.append("j")
        return self.act_helper.press_keys(keys)


class ClockworkAgent(Agent):
    """Plays a sheet of (frames, keys) over and over, whatever happens."""

    SHEET: tuple[tuple[int, tuple[str, ...]], ...] = (
        (5, ("a",)),
        (2, ("l",)),
        (12, ()),
        (5, ("d",)),
        (4, ("j",)),
        (10, ()),
        (4, ("s", "j")),
        (14, ()),
        (8, ("space",)),
        (30, ("k",)),
    )

    def __init__(self, file_path: str | None = None) -> None:
        super().__init__(file_path)
        self._frame = 0
        self._keys = [keys for frames, keys in self.SHEET for _ in range(frames)]

    def predict(self, obs: Any) -> Any:
        keys = self._keys[self._frame % len(self._keys)]
        self._frame += 1
        return self.act_helper.press_keys(list(keys))


def run_match(
    agent_1: Agent | Callable[[], Agent],
    agent_2: Agent | Callable[[], Agent],
    max_timesteps: int = 30 * 90,
    video_path: str | None = None,
    agent_1_name: str | None = None,
    agent_2_name: str | None = None,
    resolution: CameraResolution = CameraResolution.LOW,
    reward_manager: Any = None,
    train_mode: bool = False,
    mode: RenderMode = RenderMode.RGB_ARRAY,
) -> MatchStats:
    """One match of two agents. The platform makes one more step a frame than in training."""
    env = WarehouseBrawl(mode=mode, resolution=resolution, train_mode=train_mode)
    env.agent_1_name, env.agent_2_name = agent_1_name or "agent_1", agent_2_name or "agent_2"
    observations, _ = env.reset()
    print(f"{env.agent_1_name} plays {env.agent_2_name}")
    players = [one if isinstance(one, Agent) else one() for one in (agent_1, agent_2)]
    for player in players:
        if not player.initialized:
            player.get_env_info(env)
    for _ in range(max_timesteps):
        env.objects["platform1"].physics_process(env.dt)
        actions = {slot: player.predict(observations[slot]) for slot, player in enumerate(players)}
        observations, _, terminated, truncated, _ = env.step(actions)
        if terminated or truncated:
            break
    one, two = env.get_stats(0), env.get_stats(1)
    ahead = one.lives_left - two.lives_left
    result = Result.WIN if ahead > 0 else Result.LOSS if ahead < 0 else Result.DRAW
    return MatchStats(env.steps / env.fps, one, two, result)
