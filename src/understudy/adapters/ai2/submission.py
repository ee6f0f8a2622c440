"""An agent as a submission to the tournament: `understudy export --as ai2`.

The file is that of `--as module` with the class that the tournament makes, `SubmittedAgent`. What
it needs of this module goes into the file as well, so NumPy and the standard library must do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from understudy.adapters.ai2.layout import DECISION_FRAMES, FEATURES, KEYS, as_seen
from understudy.agents.agent import PolicyAgent
from understudy.agents.module_file import AgentClass
from understudy.core.arrays import NDArray
from understudy.core.errors import RunFolderError
from understudy.core.spaces import MultiBinary
from understudy.policy.spec import PolicySpec
from understudy.registry.run_folder import Identity

MOST_BYTES = 25 * 2**20
"""What can be added to a repository through GitHub's pages."""
_JUMP = 4.0
"""Units a frame, 120 a second: three times what the hardest hit gives."""
_PLACES = ((0, 1), (32, 33))
_DAMAGE = (12, 44)
_STOCKS = (13, 45)
_METHODS = ("keys",)

_USAGE = """
Copy this file to user/my_agent.py in the checkout of the tournament; nothing is downloaded.
"""
_CODE = '''
class SubmittedAgent(Agent):
    """What the tournament makes and asks in each frame."""

    def __init__(self, file_path: str | None = None) -> None:
        self._player = SubmissionPlayer(
            PolicyAgent(policy(), greedy={greedy}), frames={frames}
        )
        super().__init__(file_path)

    def _initialize(self) -> None:
        self._player.reset()

    def _gdown(self) -> str:
        """Nothing to download: the weights are in this file."""
        return ""

    def predict(self, obs: Any) -> NDArray:
        """The keys of this frame, 10 numbers."""
        return self._player.keys(obs)

    def save(self, file_path: str) -> None:
        """Nothing: this file is the agent."""

    def reset(self) -> None:
        self._player.reset()

    def learn(self, *args: Any, **options: Any) -> None:
        """Nothing: it was trained before it was exported."""
'''


class MatchStart:
    """Finds out from observations where a new match begins, since nothing says so.

    Stocks never rise within a match, so where they do, another one has begun. Damage falls to 0 and
    a player changes place at once only with a stock lost before: where either happens to a player
    who has lost none, another match has begun. A match without a hit, after which the next one
    finds both players in their places, is not told apart: nothing happened to remember.
    """

    def __init__(self) -> None:
        self._before: NDArray | None = None
        self._full = (0.0, 0.0)
        """The stocks at the start of the match."""

    def begins(self, obs: NDArray) -> bool:
        """Whether obs [64] is the first of a match; call it in each frame."""
        before, self._before = self._before, obs
        if before is not None and not self._is_other(before, obs):
            return False
        self._full = (float(obs[_STOCKS[0]]), float(obs[_STOCKS[1]]))
        return True

    def _is_other(self, before: NDArray, obs: NDArray) -> bool:
        for place, damage, stocks, full in zip(_PLACES, _DAMAGE, _STOCKS, self._full, strict=True):
            if obs[stocks] > before[stocks]:
                return True
            moved = max(abs(float(obs[axis]) - float(before[axis])) for axis in place)
            if obs[stocks] >= full and (obs[damage] < before[damage] or moved > _JUMP):
                return True
        return False


class SubmissionPlayer:
    """Turns observations into keys: a decision is held for as many frames as in training."""

    def __init__(self, agent: PolicyAgent, *, frames: int) -> None:
        self._agent = agent
        self._frames = frames
        self.reset()

    def reset(self) -> None:
        """Begin a new match."""
        self._start = MatchStart()
        self._held = 0
        self._keys = np.zeros(len(KEYS), np.float32)

    def keys(self, obs: Any) -> NDArray:
        """float32 [10], 1 for a key that is pressed, from obs [64] as the tournament gives it."""
        seen = as_seen(np.asarray(obs, np.float32))
        if self._start.begins(seen):
            self._agent.reset()
            self._held = 0
        if self._held == 0:
            self._keys = np.asarray(self._agent.act(seen), np.float32)
        self._held = (self._held + 1) % self._frames
        return self._keys


def submission(spec: PolicySpec, identity: Identity, *, greedy: bool) -> AgentClass:
    """The class `SubmittedAgent`, if this spec is one of the tournament; else `RunFolderError`."""
    for what, fits in (
        ("features", spec.features == FEATURES),
        ("actions", spec.actions == MultiBinary(KEYS)),
    ):
        if not fits:
            raise RunFolderError(
                f"--as ai2: the {what} of this run ({identity.game or 'a custom bot'}) are not "
                "those of the tournament; `understudy train ai2` makes a run that fits"
            )
    frames = int(identity.game_options.get("frames", DECISION_FRAMES))
    return AgentClass(
        name="SubmittedAgent",
        code=_CODE.format(greedy=greedy, frames=frames),
        usage=_USAGE,
        kind="ai2",
        imports=("from environment.agent import Agent", "from typing import Any"),
        roots=((__name__, "SubmissionPlayer"),),
        methods=_METHODS,
    )
