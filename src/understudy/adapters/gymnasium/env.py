"""Our games as Gymnasium environments: one side is the agent, an opponent plays the other.

    import gymnasium
    import understudy.adapters.gymnasium.env            # makes understudy/... known

    env = gymnasium.make("understudy/Brawl-v0", opponent="based")
    obs, info = env.reset(seed=7)                    # obs: float32 [features]
    action = env.action_space.sample(mask=info["action_mask"])
    obs, reward, terminated, truncated, info = env.step(action)

Every end is `terminated`: time that is left is observed, so that running out of it is a result like
any other. `truncated` is always False. A match is decided by the seed and the actions alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, SupportsFloat

import numpy as np

from understudy.agents.exported import is_file
from understudy.agents.loading import split_name
from understudy.agents.players import named_player
from understudy.core.arrays import NDArray
from understudy.core.dependencies import needs
from understudy.core.errors import ConfigError, nearest
from understudy.core.ops import NUMPY
from understudy.core.spaces import ActionSpace, Continuous, Discrete, MultiBinary
from understudy.games import catalog, custom
from understudy.games.base import Bot, Game
from understudy.match.players import BotPlayer, Player, PlayerView
from understudy.registry.run_folder import holds_run

with needs("{} is not installed", extra="envs"):
    import gymnasium
    from gymnasium import spaces

BOUNDS = {"brawl": 1.0, "swarm": 10.0}
"""How far from 0 an observation may be; what is further is clipped. None of brawl ever is."""


class GameEnv(gymnasium.Env[NDArray, Any]):
    """One match after the other, from one side of a game."""

    metadata = {"render_modes": ["ansi"], "render_fps": 30}  # noqa: RUF012 - Gymnasium's own shape

    def __init__(
        self,
        game: str | Game,
        *,
        opponent: str | Bot | None = None,
        side: int = 0,
        bound: float | None = None,
        render_mode: str | None = None,
        **options: object,
    ) -> None:
        """A game of the catalog or `FILE.py:NAME`, with its `options`, or a `Game` of your own.

        `opponent` is a scripted bot by name, any `Bot`, or an agent that draws its actions: a run
        (`runs/brawl-1`, `runs/brawl-1@12`) or an exported file (`agent.py`), whose code is run.
        Observations are clipped to `bound` in both directions (`BOUNDS`, else 10), so that the
        space that is declared is true.
        """
        game = named(game, options)
        self.game = made(game, options)
        known = catalog.bots(game, **options) if isinstance(game, str) else None
        if not 0 <= side < self.game.players:
            raise ConfigError(f"side: expected 0 to {self.game.players - 1}, got {side}")
        if render_mode not in {None, *self.metadata["render_modes"]}:
            raise ConfigError(f"render_mode: expected None or 'ansi', got {render_mode!r}")
        self.render_mode = render_mode
        self._bound = bound_of(self.game, bound)
        self.observation_space = observation_space(self.game, self._bound)
        self.action_space = action_space(self.game.actions)
        self._side = side
        self._opponent = _opponent(self.game, opponent, known)
        self._memories: dict[int, Any] = {}
        """The opponent's, by side."""
        self._state: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray, dict[str, Any]]:
        """A new match; the same seed gives the same one."""
        super().reset(seed=seed)
        self._seeds = self.np_random.integers(0, 2**32, 1, dtype=np.uint32)
        self._state = self.game.start(NUMPY, self._seeds)
        self._frame = 0
        if self._opponent is not None:
            sides = (side for side in range(self.game.players) if side != self._side)
            self._memories = {side: self._opponent.memory(NUMPY, 1) for side in sides}
        return self._seen()

    def step(self, action: Any) -> tuple[NDArray, SupportsFloat, bool, bool, dict[str, Any]]:
        """One frame."""
        game, before = self.game, self._state
        if before is None:
            raise ConfigError("step: reset the environment first")
        self._state = game.step(NUMPY, before, self._actions(action))
        self._frame += 1
        reward = float(game.reward(NUMPY, before, self._state)[self._side, 0])
        obs, info = self._seen()
        over = bool(game.over(NUMPY, self._state)[0])
        if over:
            info["score"] = float(game.score(NUMPY, self._state)[self._side, 0])
        return obs, reward, over, False, info

    def render(self) -> str | None:
        """Mode `ansi`: what the agent sees, a line for each feature."""
        if self.render_mode is None or self._state is None:
            return None
        obs, _ = self._seen()
        rows = zip(self.game.features, obs, strict=True)
        lines = [f"{self.game.name}, frame {self._frame}"]
        return "\n".join([*lines, *(f"{name:24} {value:8.3f}" for name, value in rows)]) + "\n"

    def _actions(self, action: Any) -> NDArray:
        """int32 [players, parts, 1]."""
        game = self.game
        actions = np.zeros((game.players, len(game.actions.parts), 1), np.int32)
        actions[self._side, :, 0] = action
        player = self._opponent
        if player is not None:
            obs, legal = game.observe(NUMPY, self._state), game.legal(NUMPY, self._state)
            frame = np.full(1, self._frame, np.int32)
            for side, memory in self._memories.items():
                view = PlayerView(obs[side], legal[side], self._seeds, np.full(1, side), frame)
                actions[side], self._memories[side] = player.act(
                    NUMPY, player.weights, view, memory
                )
        return actions

    def _seen(self) -> tuple[NDArray, dict[str, Any]]:
        obs = self.game.observe(NUMPY, self._state)[self._side, :, 0]
        legal = self.game.legal(NUMPY, self._state)[self._side, :, 0]
        return np.clip(obs, -self._bound, self._bound), {
            "action_mask": action_mask(self.game.actions, legal)
        }


def named(game: str | Game, options: Mapping[str, object]) -> str | Game:
    """The name in the catalog where a game is named by its module, `FILE.py:NAME`, which is loaded;
    anything else as it is."""
    if isinstance(game, str) and custom.is_custom(game):
        return custom.load_game(game, options, flag="game")
    return game


def made(game: str | Game, options: Mapping[str, object]) -> Game:
    """A game of the catalog with its options, or one of your own, which has none here."""
    game = named(game, options)
    if isinstance(game, str):
        return catalog.make(game, **options)
    if options:
        raise ConfigError(f"options: a game of your own comes with its own, got {sorted(options)}")
    return game


def bound_of(game: Game, bound: float | None) -> np.float32:
    """As asked for, else as is known of the game, else wide."""
    return np.float32(BOUNDS.get(game.name, 10.0) if bound is None else bound)


def observation_space(game: Game, bound: np.float32) -> spaces.Box:
    """What one side sees."""
    return spaces.Box(-bound, bound, (len(game.features),), np.float32)


def action_space(actions: ActionSpace) -> spaces.Space[Any]:
    """Our spaces are Gymnasium's."""
    if isinstance(actions, Discrete):
        return spaces.Discrete(len(actions.names))
    if isinstance(actions, MultiBinary):
        return spaces.MultiBinary(len(actions.names))
    if isinstance(actions, Continuous):
        raise ConfigError("actions: a game's actions are choices, not real numbers")
    return spaces.MultiDiscrete(list(actions.sizes))


def action_mask(actions: ActionSpace, legal: NDArray) -> Any:
    """What is legal, bool [options], as `action_space.sample(mask=...)` takes it (int8).

    Of `MultiBinary` a 2 is "either", 1 "only on", 0 "only off"; of `MultiDiscrete` it is a tuple,
    one array a part.
    """
    flags = legal.astype(np.int8)
    if isinstance(actions, Discrete):
        return flags
    if isinstance(actions, MultiBinary):
        off, on = flags.reshape(-1, 2).T
        return np.where(off & on, np.int8(2), on)
    return tuple(np.split(flags, np.cumsum(actions.parts)[:-1]))


def _opponent(
    game: Game, opponent: str | Bot | None, known: Mapping[str, Bot] | None
) -> Player | None:
    """`known`: the scripted bots of a game of the catalog."""
    if game.players == 1:
        if opponent is not None:
            raise ConfigError(f"opponent: {game.name} is played alone, got {opponent!r}")
        return None
    if opponent is None:
        raise ConfigError(f"opponent: {game.name} has {game.players} sides, say who plays against")
    if not isinstance(opponent, str):
        return BotPlayer(opponent)
    if known is not None and opponent in known:
        return BotPlayer(known[opponent])
    if is_file(opponent) or holds_run(split_name("opponent", opponent)[0]):
        return named_player("opponent", opponent, game, sampled=True)
    if known is None:
        raise ConfigError(f"opponent: expected a Bot for a game of your own, got {opponent!r}")
    raise ConfigError(
        f"opponent: {game.name} has {', '.join(known)}, not {opponent!r}, which is no run folder "
        f"either.{nearest(opponent, known)}"
    )


def _register() -> None:
    """Gymnasium 1.0 loads no plugins: importing this module is what makes the names known."""
    where = f"{__name__}:{GameEnv.__name__}"
    for name in catalog.names():
        id_ = f"understudy/{name.capitalize()}-v0"
        if id_ not in gymnasium.registry:
            gymnasium.register(id_, entry_point=where, kwargs={"game": name})


_register()
