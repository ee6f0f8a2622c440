"""The game behind the tournament's interface, with the tournament's habits.

Observations are float64 and leave the declared bounds; rewards are always 0; `reset` ignores its
seed, and Python's global `random` decides; it prints on standard output.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from . import moves as m
from .rules import Match, Player


class RenderMode(Enum):
    NONE = 0
    RGB_ARRAY = 1
    PYGAME_WINDOW = 2


class CameraResolution(Enum):
    LOW = 1
    MEDIUM = 2
    HIGH = 3


class Result(Enum):
    WIN = 1
    LOSS = 0
    DRAW = 0.5


@dataclass
class PlayerStats:
    damage_taken: float
    damage_done: float
    lives_left: int


@dataclass
class MatchStats:
    match_time: float
    player1: PlayerStats
    player2: PlayerStats
    player1_result: Result


class Box:
    """The part of `gymnasium.spaces.Box` that agents use."""

    def __init__(self, low: list[float], high: list[float]) -> None:
        self.low, self.high = np.array(low, np.float32), np.array(high, np.float32)
        self.shape, self.dtype = self.low.shape, np.dtype(np.float32)
        self._rng = np.random.default_rng()

    def seed(self, seed: int | None = None) -> None:
        self._rng = np.random.default_rng(seed)

    def sample(self) -> Any:
        return self._rng.uniform(self.low, self.high).astype(np.float32)


class ObsHelper:
    """The parts of an observation by name."""

    def __init__(self) -> None:
        self.low: list[float] = []
        self.high: list[float] = []
        self.sections: dict[str, tuple[int, int]] = {}

    def add_section(self, low: list[float], high: list[float], name: str) -> None:
        self.sections[name] = (len(self.low), len(self.low) + len(low))
        self.low += low
        self.high += high

    def get_section(self, obs: Any, name: str) -> Any:
        start, end = self.sections[name]
        return obs[start:end]

    def get_as_box(self) -> Box:
        return Box(self.low, self.high)


class ActHelper:
    """The keys of an action by name."""

    def __init__(self) -> None:
        self.low: list[float] = []
        self.high: list[float] = []
        self.sections: dict[str, int] = {}

    def add_key(self, name: str) -> None:
        self.sections[name] = len(self.low)
        self.low.append(0.0)
        self.high.append(1.0)

    def zeros(self) -> Any:
        return np.zeros(len(self.low))

    def press_keys(self, keys: str | list[str], action: Any = None) -> Any:
        pressed = self.zeros() if action is None else action
        for key in [keys] if isinstance(keys, str) else keys:
            pressed[self.sections[key]] = 1.0
        return pressed

    def get_as_box(self) -> Box:
        return Box(self.low, self.high)


KEYS = ("w", "a", "s", "d", "space", "h", "l", "j", "k", "g")
_DECLARED = {
    "pos": ([-1.0, -1.0], [1.0, 1.0]),
    "vel": ([-1.0, -1.0], [1.0, 1.0]),
    "facing": ([0.0], [1.0]),
    "grounded": ([0.0], [1.0]),
    "aerial": ([0.0], [1.0]),
    "jumps_left": ([0.0], [2.0]),
    "state": ([0.0], [12.0]),
    "recoveries_left": ([0.0], [1.0]),
    "dodge_timer": ([0.0], [1.0]),
    "stun_frames": ([0.0], [1.0]),
    "damage": ([0.0], [1.0]),
    "stocks": ([0.0], [3.0]),
    "move_type": ([0.0], [11.0]),
    "weapon_type": ([0.0], [2.0]),
    "spawner_1": ([-1.0, -1.0, 0.0], [1.0, 1.0, 3.0]),
    "spawner_2": ([-1.0, -1.0, 0.0], [1.0, 1.0, 3.0]),
    "spawner_3": ([-1.0, -1.0, 0.0], [1.0, 1.0, 3.0]),
    "spawner_4": ([-1.0, -1.0, 0.0], [1.0, 1.0, 3.0]),
    "moving_platform_pos": ([-1.0, -1.0], [1.0, 1.0]),
    "moving_platform_vel": ([-1.0, -1.0], [1.0, 1.0]),
}
"""What the tournament declares; positions, speeds, timers and damage exceed it."""
_NO_WEAPONS = [0.0] * 9


class WarehouseBrawl:
    """The game: `reset()`, then `step({0: action, 1: action})` until terminated or truncated."""

    def __init__(
        self,
        mode: RenderMode = RenderMode.RGB_ARRAY,
        resolution: CameraResolution = CameraResolution.LOW,
        train_mode: bool = False,
    ) -> None:
        self.mode, self.resolution, self.train_mode = mode, resolution, train_mode
        self.agents = [0, 1]
        self.fps, self.dt = m.FRAMES_PER_S, m.DT
        self.max_timesteps = m.MAX_FRAMES
        self.agent_1_name, self.agent_2_name = "Team 1", "Team 2"
        self.obs_helper, self.act_helper = ObsHelper(), ActHelper()
        for name in ("player", "opponent"):
            for part, (low, high) in _DECLARED.items():
                self.obs_helper.add_section(list(low), list(high), f"{name}_{part}")
        for key in KEYS:
            self.act_helper.add_key(key)
        self.observation_space = self.obs_helper.get_as_box()
        self.action_space = self.act_helper.get_as_box()
        print("Obs space", self.obs_helper.low, self.obs_helper.high)
        print("Action space", self.act_helper.low, self.act_helper.high)
        self.reset()

    def reset(self, seed: int | None = None) -> tuple[dict[int, Any], dict[str, Any]]:
        """A new match. The seed is ignored."""
        self.seed = seed
        self.steps = 0
        self.match = Match()
        self.players: list[Player] = self.match.players
        self.objects: dict[str, Any] = {"platform1": self.match.platform}
        return self._observations(), {}

    def step(
        self, action: dict[int, Any]
    ) -> tuple[dict[int, Any], dict[int, int], bool, bool, dict[str, Any]]:
        """One frame."""
        one, two = ((np.asarray(action[slot]) > 0.5).tolist() for slot in (0, 1))
        for slot in self.match.step((one, two)):
            print(f"Player {slot} was knocked out in frame {self.steps}")
        self.steps += 1
        terminated = any(player.stocks <= 0 for player in self.players)
        truncated = self.steps >= self.max_timesteps
        return self._observations(), {0: 0, 1: 0}, terminated, truncated, {}

    def get_stats(self, agent_id: int) -> PlayerStats:
        player = self.players[agent_id]
        return PlayerStats(player.damage_taken_total, player.damage_done, player.stocks)

    def close(self) -> None:
        """Nothing is held."""

    def _observations(self) -> dict[int, Any]:
        match, platform = self.match, self.match.platform
        shared = [
            match.item_x, match.item_y, float(match.item + 1 if match.item else 0), *_NO_WEAPONS,
            platform.x, platform.y, platform.vx, platform.vy,
        ]  # fmt: skip
        one, two = (_seen(player) + shared for player in match.players)
        return {0: np.array(one + two), 1: np.array(two + one)}


def _seen(player: Player) -> list[float]:
    """The first 16 numbers of a player."""
    return [
        player.x, player.y, player.vx, player.vy, 1.0 if player.facing > 0 else 0.0,
        float(player.grounded), float(not player.grounded), float(player.jumps),
        float(player.state()), float(player.recoveries), float(player.dodge_wait), player.stun,
        player.damage, float(player.stocks), float(player.move), float(player.weapon),
    ]  # fmt: skip
