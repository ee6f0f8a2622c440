"""Records what an agent sees of each opponent, and what the opponent does, frame by frame.

Players keep the last `STRIDE` frames in their own memory, which is read after every stride. So the
matches are played by the engine of evaluations, NumPy or compiled, and are the same matches. Frames
after the end of a match (`lengths`) are in the arrays and mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.ops import Array, Ops, Tree
from understudy.games.base import Game
from understudy.match.duel import STRIDE, Duel, begin
from understudy.match.live_match import EVALUATION, match_seeds
from understudy.match.players import Player, PlayerView
from understudy.match.series import Engine, plain

Show = Callable[[float], None]
"""Shows which share of some work is done, from 0 to 1."""


def no_progress(share: float) -> None:
    """A `Show` that does nothing."""


def portion(show: Show, begin: float, end: float) -> Show:
    """A `Show` of a part of some work, from the share `begin` to `end` of the whole."""
    return lambda share: show(begin + (end - begin) * share)


@dataclass(frozen=True)
class MatchRecording:
    """N matches, those against one opponent side by side."""

    opponents: tuple[str, ...]
    labels: NDArray
    """int32 [N]: indices of `opponents`"""
    numbers: NDArray
    """int32 [N]: equal numbers are equal seeds, against all opponents"""
    seen: NDArray
    """float32 [T, N, F]: observations of the agent"""
    done: NDArray
    """int32 [T, N, parts]: actions of the opponent in the same frame"""
    lengths: NDArray
    """int32 [N]: frames that belong to the match"""

    def columns(self, *, each: int) -> NDArray:
        """int [..]: the first `each` matches against every opponent."""
        places = [np.flatnonzero(self.labels == one)[:each] for one in range(len(self.opponents))]
        return np.concatenate(places)

    def only(self, columns: NDArray) -> MatchRecording:
        """The matches of `columns`, int [..]."""
        return replace(
            self,
            labels=self.labels[columns],
            numbers=self.numbers[columns],
            seen=self.seen[:, columns],
            done=self.done[:, columns],
            lengths=self.lengths[columns],
        )

    def reaching(self, frames: int) -> NDArray:
        """bool [N]: which matches have at least so many frames."""
        long: NDArray = self.lengths >= frames
        return long


@dataclass(frozen=True)
class RecordingPlayer:
    """A player that keeps its observations, or its actions, of the last `STRIDE` frames."""

    player: Player
    width: int
    """Numbers of a frame: features, or parts of an action"""
    observations: bool
    """Whether it keeps observations, else actions"""

    @property
    def weights(self) -> Tree:
        return self.player.weights

    def memory(self, ops: Ops, matches: int) -> Tree:
        """The memory of the player, and kept frames [B, STRIDE, width]."""
        dtype = np.float32 if self.observations else np.int32
        return self.player.memory(ops, matches), np.zeros((matches, STRIDE, self.width), dtype)

    def act(self, ops: Ops, weights: Tree, view: PlayerView, memory: Tree) -> tuple[Array, Tree]:
        inner, kept = memory
        actions, inner = self.player.act(ops, weights, view, inner)
        frame = (view.obs if self.observations else actions).T[:, None]
        return actions, (inner, ops.xp.concatenate([kept[:, 1:], frame], 1))


def record(
    game: Game,
    player: Player,
    opponents: Mapping[str, Player],
    *,
    matches: int,
    frames: int,
    seed: int,
    skip: int = 0,
    engine: Engine = plain,
    show: Show = no_progress,
) -> MatchRecording:
    """Records the first `frames` of matches against each opponent, from both slots in turn.

    Every opponent is met on the same seeds: those of matches `skip`, `skip` + 1 and so on.
    """
    parts = len(game.actions.parts)
    duel = Duel(
        game,
        RecordingPlayer(player, len(game.features), observations=True),
        tuple(
            (RecordingPlayer(one, parts, observations=False), matches) for one in opponents.values()
        ),
    )
    one = match_seeds(seed, skip + np.arange(matches), purpose=EVALUATION)
    second = np.arange(matches) % 2 == 1
    state = begin(duel, np.tile(one, len(opponents)), np.tile(second, len(opponents)))
    advance, seen, done = engine(duel), [], []
    for start in range(0, frames, STRIDE):
        state = advance(state)
        (_, ours), *theirs = state.memories
        # Copies: an engine may write the next stride over the memory of this one.
        seen.append(np.array(ours).swapaxes(0, 1))
        done.append(np.concatenate([np.array(kept) for _, kept in theirs]).swapaxes(0, 1))
        show(min((start + STRIDE) / frames, 1.0))
        if not np.asarray(state.going).any():
            break
    return MatchRecording(
        opponents=tuple(opponents),
        labels=np.repeat(np.arange(len(opponents), dtype=np.int32), matches),
        numbers=np.tile(np.arange(matches, dtype=np.int32), len(opponents)),
        seen=np.concatenate(seen)[:frames],
        done=np.concatenate(done)[:frames],
        lengths=np.minimum(np.array(state.frames), frames),
    )
