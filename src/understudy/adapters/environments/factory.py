"""Gymnasium and PettingZoo environments by name.

    gymnasium:CartPole-v1           whatever `gymnasium.make` knows; gymnasium:my_module:MyEnv-v0
                                    imports a module first
    pettingzoo:my_package.my_game   a module with `parallel_env()`, or with `env()` (AEC: agents act
                                    one after the other, as in pettingzoo.classic.connect_four_v3)
    ai2                             the AI² tournament: a checkout (`adapters.ai2`)

Modules are also looked for in the working directory.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from understudy.core.dependencies import install_line
from understudy.core.errors import ConfigError, MissingDependency

KINDS = ("gymnasium", "pettingzoo")
AI2 = "ai2"
_AGENT = "agent"


class Alone:
    """A Gymnasium environment in the shape of a parallel one with a single agent."""

    possible_agents: Sequence[str] = (_AGENT,)

    def __init__(self, env: Any) -> None:
        self._env = env
        self.agents: list[str] = []

    def observation_space(self, agent: str) -> Any:
        return self._env.observation_space

    def action_space(self, agent: str) -> Any:
        return self._env.action_space

    def reset(self, seed: int | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        obs, info = self._env.reset(seed=seed)
        self.agents = [_AGENT]
        return {_AGENT: obs}, {_AGENT: info}

    def step(self, actions: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        """Observations, rewards, terminations, truncations and infos."""
        values = self._env.step(actions[_AGENT])
        if values[2] or values[3]:
            self.agents = []
        return tuple({_AGENT: value} for value in values)

    def close(self) -> None:
        self._env.close()


def is_environment(name: str) -> bool:
    """Whether a game is named as an environment."""
    return name == AI2 or name.partition(":")[0] in KINDS


def maker(name: str, **options: Any) -> Callable[[], Any]:
    """A factory of environments of this name: `gymnasium:<id>`, `pettingzoo:<module>` or `ai2`."""
    if name == AI2:
        return _ai2(options)
    kind, _, rest = name.partition(":")
    if kind not in KINDS or not rest:
        raise ConfigError(f"expected gymnasium:<id> or pettingzoo:<module>, or {AI2}; got {name!r}")
    here = str(Path.cwd())
    if here not in sys.path:  # custom environments usually lie in the working directory
        sys.path.append(here)
    return _gymnasium(rest, options) if kind == "gymnasium" else _pettingzoo(rest, options)


def resolved(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of an environment as its run keeps them, with defaults that later readers need."""
    if name != AI2:
        return dict(options)
    from understudy.adapters.ai2 import env

    return env.resolved(options)


def for_two(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options without those that make an environment of two sides one of a single side."""
    one_side = ("opponent", "side") if name == AI2 else ()
    return {key: value for key, value in options.items() if key not in one_side}


def bots_of(name: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Modules with the scripted bots that an environment brings, for a league in it."""
    return ("understudy.adapters.ai2.bots",) if name == AI2 and "opponent" not in options else ()


def _gymnasium(name: str, options: Mapping[str, Any]) -> Callable[[], Any]:
    import gymnasium

    import understudy.adapters.gymnasium.env  # noqa: F401  registers the built-in games

    def make() -> Alone:
        # The checker would repeat its advice, which concerns no learner, for every copy.
        return Alone(gymnasium.make(name, disable_env_checker=True, **options))

    try:
        make().close()
    except (gymnasium.error.Error, ImportError, TypeError) as error:
        raise ConfigError(f"gymnasium:{name}: {error}") from error
    return make


def _pettingzoo(name: str, options: Mapping[str, Any]) -> Callable[[], Any]:
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # it greets on standard output
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        if error.name == "pettingzoo":
            raise MissingDependency(
                f"pettingzoo is not installed: {install_line('envs')}"
            ) from error
        if name.startswith("pettingzoo.") and error.name:
            raise MissingDependency(
                f"pettingzoo:{name} needs {error.name}: pip install {error.name}"
            ) from error
        raise ConfigError(f"pettingzoo:{name}: {error}") from error
    make = getattr(module, "parallel_env", None) or getattr(module, "env", None)
    if not callable(make):
        raise ConfigError(f"pettingzoo:{name}: the module has no parallel_env() and no env()")
    if options:  # one that it does not take is told of once, and before anything is made
        try:
            make(**options).close()
        except TypeError as error:
            raise ConfigError(f"--option: pettingzoo:{name}: {error}") from error
    return lambda: make(**options)


def _ai2(options: Mapping[str, Any]) -> Callable[[], Any]:
    """Both sides of the tournament's game, or one side of it where an opponent is named."""
    from understudy.adapters.ai2.env import TournamentEnv, TournamentParallelEnv

    def make() -> Any:
        if "opponent" in options:
            return Alone(TournamentEnv(**options))
        return TournamentParallelEnv(**options)

    try:
        env = make()
    except TypeError as error:
        raise ConfigError(f"--option: {AI2}: {error}") from error
    env.reset(seed=0)  # a game that cannot start is told of once, and before anything is made
    env.close()
    return make
