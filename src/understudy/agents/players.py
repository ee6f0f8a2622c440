"""Agents as players of matches (`match.players`): whatever a name means, it plays a game's side."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from understudy.agents.exported import ExportedAgent, is_file, load_exported
from understudy.agents.loading import named_policy
from understudy.core import chance
from understudy.core.errors import ConfigError, RunFolderError
from understudy.core.ops import Array, Ops, Tree
from understudy.core.spaces import ActionSpace
from understudy.games.base import Game
from understudy.match.players import Player, PlayerView, PolicyPlayer


class PlayedGame(Protocol):
    """What an agent must fit: a game of ours, or an environment."""

    @property
    def name(self) -> str: ...

    @property
    def features(self) -> tuple[str, ...]: ...

    @property
    def actions(self) -> ActionSpace: ...


@dataclass(frozen=True)
class FilePlayer:
    """The code of an exported file as a player. It draws as `PolicyPlayer` does, so a file and its
    version play the same matches."""

    exported: ExportedAgent
    sampled: bool = False

    @property
    def weights(self) -> Tree:
        """None: they are in the file."""
        return ()

    def memory(self, ops: Ops, matches: int) -> Tree:
        return self.exported.policy.begin(matches)

    def act(self, ops: Ops, weights: Tree, view: PlayerView, memory: Tree) -> tuple[Array, Tree]:
        if ops.name != "numpy":
            raise ConfigError(
                f"--engine: {self.exported.path} plays with NumPy alone; use --engine numpy"
            )
        uniforms = None
        policy: Any = self.exported.policy
        if self.sampled:
            key = chance.fold(view.key(ops, chance.SAMPLING), view.frame.astype(np.uint32))
            parts = np.arange(len(policy.spec.actions.parts), dtype=np.uint32)
            uniforms = chance.uniform(ops, key, parts).T
        choice = policy.act(view.obs.T, memory, legal=view.legal.T, uniforms=uniforms)
        return choice.actions.T, choice.memory


def file_player(flag: str, name: str, game: Game, *, sampled: bool) -> FilePlayer:
    """The player that an exported file is, if it fits the game."""
    return FilePlayer(fitting_file(flag, name, game), sampled)


def fitting_file(flag: str, name: str, game: PlayedGame) -> ExportedAgent:
    """The exported file of that name; `RunFolderError` unless it was made for the game."""
    exported = load_exported(Path(name))
    what = exported.about.game or "a custom bot"
    if exported.about.game_name != game.name:
        raise RunFolderError(f"{flag} {name}: was exported for {what}, not for {game.name}")
    spec = exported.policy.spec
    check_fit(flag, name, game, spec.features, spec.actions)
    return exported


def named_player(flag: str, name: str, game: Game, *, sampled: bool) -> Player:
    """The player that a run, a version, a snapshot or an exported file is, if it fits the game."""
    if is_file(name):
        return file_player(flag, name, game, sampled=sampled)
    policy = named_policy(flag, name).policy
    check_fit(flag, name, game, policy.spec.features, policy.spec.actions)
    return PolicyPlayer(policy, sampled=sampled)


def check_fit(
    flag: str, name: str, game: PlayedGame, features: tuple[str, ...], actions: Any
) -> None:
    """`RunFolderError` unless an agent has the features and actions of a game."""
    # An exported file has classes of its own, whose instances look the same.
    for what, own, fits in (
        ("features", game.features, features == game.features),
        ("actions", game.actions, repr(actions) == repr(game.actions)),
    ):
        if not fits:
            raise RunFolderError(
                f"{flag} {name}: its {what} are not those of {game.name} here, which are {own}"
            )
