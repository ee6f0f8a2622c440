"""What an agent saw of each opponent, and what the opponent did, frame by frame.

Players note it in their own memory, of which every stride leaves the last `STRIDE` frames: so the
engine that plays is the one that judges, NumPy or compiled, and the matches are the same ones.
Frames after the end of a match are in the arrays and mean nothing; `lengths` says which.
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


def nobody(share: float) -> None:
    """A `Show` for when nobody looks."""


def portion(show: Show, begin: float, end: float) -> Show:
    """A `Show` for the part of some work that lies between two shares of it."""
    return lambda share: show(begin + (end - begin) * share)


@dataclass(frozen=True)
class MatchRecording:
    """N matches, those against one opponent side by side."""

    opponents: tuple[str, ...]
    labels: NDArray
    """int32 [N]: which of the opponents."""
    numbers: NDArray
    """int32 [N]: which match; equal numbers are equal seeds, against whomever."""
    seen: NDArray
    """float32 [T, N, F]: what the agent observed."""
    done: NDArray
    """int32 [T, N, parts]: what its opponent chose in that frame."""
    lengths: NDArray
    """int32 [N]: how many of the frames belong to the match."""

    def columns(self, *, each: int) -> NDArray:
        """int [..]: the first `each` matches against every opponent."""
        places = [np.flatnonzero(self.labels == one)[:each] for one in range(len(self.opponents))]
        return np.concatenate(places)

    def only(self, columns: NDArray) -> MatchRecording:
        """Of all matches those of `columns`, int [..]."""
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
class Noting:
    """A player who keeps what it saw, or what it chose, of the last `STRIDE` frames."""

    player: Player
    width: int
    """Numbers a frame: features where it notes what it saw, else parts of an action."""
    sight: bool

    @property
    def weights(self) -> Tree:
        """The player's own."""
        return self.player.weights

    def memory(self, ops: Ops, matches: int) -> Tree:
        """The player's own, and notes [B, STRIDE, width]."""
        dtype = np.float32 if self.sight else np.int32
        return self.player.memory(ops, matches), np.zeros((matches, STRIDE, self.width), dtype)

    def act(self, ops: Ops, weights: Tree, view: PlayerView, memory: Tree) -> tuple[Array, Tree]:
        """What the player chooses."""
        inner, notes = memory
        actions, inner = self.player.act(ops, weights, view, inner)
        note = (view.obs if self.sight else actions).T[:, None]
        return actions, (inner, ops.xp.concatenate([notes[:, 1:], note], 1))


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
    show: Show = nobody,
) -> MatchRecording:
    """The first `frames` of frozen matches against each opponent, from both slots in turn.

    Every opponent is met on the same seeds, those of matches number `skip` and on.
    """
    parts = len(game.actions.parts)
    duel = Duel(
        game,
        Noting(player, len(game.features), sight=True),
        tuple((Noting(one, parts, sight=False), matches) for one in opponents.values()),
    )
    one = match_seeds(seed, skip + np.arange(matches), purpose=EVALUATION)
    second = np.arange(matches) % 2 == 1
    duel_state = begin(duel, np.tile(one, len(opponents)), np.tile(second, len(opponents)))
    carry_on, seen, done = engine(duel), [], []
    for start in range(0, frames, STRIDE):
        duel_state = carry_on(duel_state)
        (_, sight), *theirs = duel_state.memories
        # Copies: an engine may write the next stride over the memory of this one.
        seen.append(np.array(sight).swapaxes(0, 1))
        done.append(np.concatenate([np.array(notes) for _, notes in theirs]).swapaxes(0, 1))
        show(min((start + STRIDE) / frames, 1.0))
        if not np.asarray(duel_state.going).any():
            break
    return MatchRecording(
        opponents=tuple(opponents),
        labels=np.repeat(np.arange(len(opponents), dtype=np.int32), matches),
        numbers=np.tile(np.arange(matches, dtype=np.int32), len(opponents)),
        seen=np.concatenate(seen)[:frames],
        done=np.concatenate(done)[:frames],
        lengths=np.minimum(np.array(duel_state.frames), frames),
    )
