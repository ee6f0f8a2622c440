"""One match in an environment, as the environment draws it: text or pixels, turn by turn."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from understudy.adapters.environments.factory import maker
from understudy.adapters.environments.matches import EnvironmentMatches, FrozenMatch
from understudy.core.errors import ConfigError
from understudy.judging.environments import EnvironmentResolver, NamedSide
from understudy.match.live_match import EVALUATION, match_seeds

ANSI, PIXELS = "ansi", "rgb_array"
"""What environments draw: text, or images [H, W, 3]."""


class DrawnMatch:
    """A match of two players; `left` is the first agent."""

    def __init__(
        self, resolver: EnvironmentResolver, left: NamedSide, right: NamedSide, *, mode: str
    ) -> None:
        """`mode` ANSI: text where the environment has it, and pixels are left out elsewhere."""
        self._resolver = resolver
        self._left, self._right = left, right
        self._ended: FrozenMatch | None = None
        with contextlib.closing(resolver.make()) as env:
            metadata: Any = getattr(env, "metadata", None) or {}
        modes = list(metadata.get("render_modes") or metadata.get("render.modes") or ())
        self.frame_s = 1.0 / float(metadata.get("render_fps") or 2)
        if mode not in modes and mode == PIXELS:
            raise ConfigError(
                f"--gif: {resolver.name} does not draw pixels (its render modes: "
                f"{', '.join(map(str, modes)) or 'none'}); leave --gif out"
            )
        self._pixels = PIXELS in modes
        self._mode = mode if mode in modes else None

    def pictures(self) -> Iterator[Any]:
        """What the environment draws at the start and after every turn."""
        resolver = self._resolver
        options = {**resolver.options, **({"render_mode": self._mode} if self._mode else {})}
        make = maker(resolver.name, **options)
        seed = int(match_seeds(resolver.seed, np.arange(1), purpose=EVALUATION)[0])
        with contextlib.closing(EnvironmentMatches(make, [0])) as environments:
            players = [resolver.player(one) for one in (self._left, self._right)]
            environments.begin(0, players, seed=seed)
            yield self._drawn(environments)
            while not environments.over(0):
                environments.turn([0], {})
                yield self._drawn(environments)
            self._ended = FrozenMatch(environments.finished(0), 0, environments.path(0))

    def outcome(self) -> dict[str, object]:
        """After the last picture, for JSON."""
        ended = self._end()
        winner = {1: self._left.name, -1: self._right.name}.get(ended.score)
        return {
            "game": self._resolver.name,
            "left": self._left.name,
            "right": self._right.name,
            "seed": self._resolver.seed,
            "winner": winner,
            "steps": ended.finished.steps,
            "rewards": list(ended.finished.sides),
        }

    def story(self) -> list[str]:
        """The match in words."""
        told = self.outcome()
        one, two = self._end().finished.sides
        drawn = (
            [] if self._mode or not self._pixels else ["It draws pixels: --gif FILE shows them."]
        )
        ending = f"{told['winner']} won" if told["winner"] else "Draw"
        return [
            f"{told['game']}: {told['left']} v {told['right']}, seed {told['seed']}",
            f"{ending} after {told['steps']} steps; rewards {one:g} : {two:g}",
            *drawn,
        ]

    def _drawn(self, environments: EnvironmentMatches) -> Any:
        return environments.picture(0) if self._mode else None

    def _end(self) -> FrozenMatch:
        if self._ended is None:
            raise ValueError("the match has not been played")
        return self._ended
