"""The tournament's game as environments: PettingZoo's with both sides, Gymnasium's with one.

    from understudy.adapters.ai2.env import TournamentEnv, parallel_env

    env = parallel_env(home="UTMIST-AI2")              # player_0, player_1; both act
    env = TournamentEnv(home="UTMIST-AI2", opponent="based")

An observation is float32 [64], in the order of `layout.FEATURES`; an action is `MultiBinary(10)`,
in the order of `layout.KEYS`; it is held for `frames` frames. The reward of a step is the change of
the lead (`layout.reward_terms`), zero-sum; a whole match adds up to its result. Running out of time
is a result like any other, so that every end is `terminated`. `truncated` says that the process of
the game died: the match has no result, and `info["aborted"]` says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, SupportsFloat

import numpy as np

from understudy.adapters.ai2.checkout import Checkout
from understudy.adapters.ai2.game_process import AgentAction, GameDied, GameProcess, GameState
from understudy.adapters.ai2.layout import (
    BOUND,
    DECISION_FRAMES,
    FEATURES,
    KEYS,
    as_seen,
    reward_terms,
    score_of,
)
from understudy.adapters.gymnasium.spaces import named
from understudy.core.arrays import NDArray
from understudy.core.dependencies import needs
from understudy.core.errors import ConfigError, InputError, nearest
from understudy.telemetry.text import complain

with needs("{} is not installed", extra="envs"):
    import gymnasium
    from gymnasium import spaces
    from pettingzoo import ParallelEnv

SIDES = ("player_0", "player_1")
OPTIONS = ("home", "python", "frames", "opponent", "side")
_MAX_FRAMES = 255


class _Step(NamedTuple):
    """The result of one decision, by slot."""

    obs: NDArray
    """float32 [2, 64]"""
    rewards: tuple[float, float]
    terms: dict[str, float]
    """Of slot 0."""
    over: bool
    aborted: str
    """Why the match has no result; empty where all is well."""


class TournamentMatch:
    """One match after the other in one process, with rewards; both environments are views of it."""

    def __init__(self, checkout: Checkout, frames: int) -> None:
        if not isinstance(frames, int) or not 1 <= frames <= _MAX_FRAMES:
            raise ConfigError(
                f"ai2: frames: expected a whole number from 1 to {_MAX_FRAMES}, got {frames!r}"
            )
        self.process = GameProcess(checkout)
        self._frames = frames
        self._now: GameState | None = None
        self._broken: GameDied | None = None

    @property
    def state(self) -> GameState:
        if self._now is None:
            raise InputError("ai2: step: reset the environment first")
        return self._now

    def reset(self, seed: int) -> NDArray:
        """A new match; observations [2, 64]."""
        self._now = self.process.reset(seed)
        self._broken = None
        return as_seen(self._now.obs)

    def send(self, actions: Sequence[NDArray]) -> None:
        """Begin a step with the actions of both slots; `receive` ends it."""
        try:
            self.process.send_step(self._frames, actions)
        except GameDied as error:
            self._broken = error

    def receive(self) -> _Step:
        """End the step that `send` began."""
        before = self.state
        try:
            if self._broken is not None:
                raise self._broken
            after = self.process.state()
        except GameDied as error:
            self._broken = None
            complain(f"{error}; its match has no result, and the next one begins")
            return _Step(as_seen(before.obs), (0.0, 0.0), {}, False, str(error))
        self._now = after
        terms = reward_terms(before.standing, after.standing, over=after.over)
        reward = sum(terms.values())
        return _Step(as_seen(after.obs), (reward, -reward), terms, after.over, "")

    def info(self, step: _Step, slot: int) -> dict[str, Any]:
        """Reward terms by name; at the end the score, or why there is none."""
        sign = 1.0 if slot == 0 else -1.0
        info: dict[str, Any] = {"terms": {name: sign * one for name, one in step.terms.items()}}
        if step.over:
            info["score"] = sign * score_of(self.state.standing.stocks)
        if step.aborted:
            info["aborted"] = step.aborted
        return info


class TournamentParallelEnv(ParallelEnv[str, NDArray, NDArray]):  # type: ignore[misc]
    """Both sides of the game. An `AgentAction` in the place of keys lets an agent of the tournament
    play a side, inside the game's own process.

    `send` and `receive` are the two halves of `step`, so that several games can play at a time.
    """

    metadata = {"render_modes": [], "name": "ai2", "is_parallelizable": True}  # noqa: RUF012

    def __init__(
        self,
        home: str | Path | None = None,
        *,
        python: str | Path | None = None,
        frames: int = DECISION_FRAMES,
    ) -> None:
        """`home` is the checkout (default: the environment variable AI2_HOME), `python` the
        interpreter that has its libraries, `frames` how long a decision is held."""
        self.match = TournamentMatch(Checkout.find(home, python), frames)
        self.render_mode = None
        self.possible_agents = list(SIDES)
        self.agents: list[str] = []
        self.observation_spaces = {agent: observation_space() for agent in SIDES}
        self.action_spaces = {agent: action_space() for agent in SIDES}
        self._rng = np.random.default_rng()

    def observation_space(self, agent: str) -> Any:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, NDArray], dict[str, dict[str, Any]]]:
        """A new match; the same seed gives the same one."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        obs = self.match.reset(_match_seed(self._rng))
        self.agents = list(SIDES)
        return _by_side(obs), {agent: {} for agent in SIDES}

    def step(
        self, actions: Mapping[str, NDArray]
    ) -> tuple[
        dict[str, NDArray],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """One decision of both sides."""
        if not self.agents:
            return {}, {}, {}, {}, {}
        self.send(actions)
        return self.receive()

    def send(self, actions: Mapping[str, NDArray]) -> None:
        """Begin a step."""
        missing = set(self.agents) - set(actions)
        if missing:
            raise InputError(
                f"step: expected an action of every agent, {sorted(missing)} gave none"
            )
        self.match.send([actions[side] for side in SIDES])

    def receive(
        self,
    ) -> tuple[
        dict[str, NDArray],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """End it: what `step` returns."""
        step = self.match.receive()
        if step.over or step.aborted:
            self.agents = []
        return (
            _by_side(step.obs),
            dict(zip(SIDES, step.rewards, strict=True)),
            dict.fromkeys(SIDES, step.over),
            dict.fromkeys(SIDES, bool(step.aborted)),
            {agent: self.match.info(step, slot) for slot, agent in enumerate(SIDES)},
        )

    def render(self) -> None:
        """Nothing: the game has no window here."""

    def close(self) -> None:
        """End the game's process."""
        self.match.process.close()


class TournamentEnv(gymnasium.Env[NDArray, NDArray]):
    """One side of the game, against a scripted agent of the tournament."""

    metadata = {"render_modes": []}  # noqa: RUF012 - Gymnasium's own shape

    def __init__(
        self,
        home: str | Path | None = None,
        *,
        opponent: str,
        side: int | None = None,
        python: str | Path | None = None,
        frames: int = DECISION_FRAMES,
        render_mode: str | None = None,
    ) -> None:
        """`opponent` is a scripted agent of the tournament, or several with commas between them:
        one is drawn for each match. So is the side, unless `side` is 0 or 1. The rest is as of the
        parallel one."""
        if render_mode is not None:
            raise ConfigError(f"ai2: render_mode: expected None, got {render_mode!r}")
        if side not in (None, 0, 1):
            raise ConfigError(f"ai2: side: expected 0 or 1, got {side!r}")
        self._opponents = [AgentAction(name.strip()) for name in opponent.split(",")]
        self.match = TournamentMatch(Checkout.find(home, python), frames)
        self.render_mode = None
        self.observation_space = observation_space()
        self.action_space = action_space()
        self._fixed_side = side
        self._side = 0
        self._opponent = self._opponents[0]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray, dict[str, Any]]:
        """A new match; the same seed gives the same one."""
        super().reset(seed=seed)
        match_seed = _match_seed(self.np_random)
        self._opponent = self._opponents[int(self.np_random.integers(len(self._opponents)))]
        drawn = int(self.np_random.integers(2))
        self._side = drawn if self._fixed_side is None else self._fixed_side
        obs = self.match.reset(match_seed)
        return obs[self._side], {"opponent": self._opponent.agent, "side": self._side}

    def step(self, action: NDArray) -> tuple[NDArray, SupportsFloat, bool, bool, dict[str, Any]]:
        """One decision."""
        both = [action, self._opponent]
        self.match.send(both if self._side == 0 else both[::-1])
        step = self.match.receive()
        info = self.match.info(step, self._side)
        info["opponent"] = self._opponent.agent
        return (
            step.obs[self._side],
            step.rewards[self._side],
            step.over,
            bool(step.aborted),
            info,
        )

    def close(self) -> None:
        """End the game's process."""
        self.match.process.close()


def resolved(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as a run keeps them: whole paths, so that the run goes on from any folder, and how
    long a decision is held, which an exported agent must know."""
    unknown = next((name for name in options if name not in OPTIONS), None)
    if unknown is not None:
        raise ConfigError(
            f"--option {unknown}: ai2 takes {', '.join(OPTIONS)}.{nearest(unknown, OPTIONS)}"
        )
    if "side" in options and "opponent" not in options:
        raise ConfigError("--option side: belongs to --option opponent=NAME, which is missing")
    checkout = Checkout.find(options.get("home"), options.get("python"))
    paths = {"home": str(checkout.home)}
    if options.get("python"):
        paths["python"] = checkout.python
    return {"frames": DECISION_FRAMES, **options, **paths}


def parallel_env(**options: Any) -> TournamentParallelEnv:
    """For `pettingzoo:understudy.adapters.ai2.env`."""
    return TournamentParallelEnv(**options)


def observation_space() -> spaces.Box:
    """What one side sees, with its names."""
    return named(spaces.Box(-BOUND, BOUND, (len(FEATURES),), np.float32), FEATURES)


def action_space() -> spaces.MultiBinary:
    """The keys, with their names."""
    return named(spaces.MultiBinary(len(KEYS)), KEYS)


def _match_seed(rng: np.random.Generator) -> int:
    return int(rng.integers(0, 2**32, dtype=np.uint32))


def _by_side(obs: NDArray) -> dict[str, NDArray]:
    return dict(zip(SIDES, obs, strict=True))


def _register() -> None:
    """Gymnasium 1.0 loads no plugins: importing this module is what makes the name known."""
    if "understudy/Ai2-v0" not in gymnasium.registry:
        gymnasium.register("understudy/Ai2-v0", entry_point=f"{__name__}:{TournamentEnv.__name__}")


_register()
