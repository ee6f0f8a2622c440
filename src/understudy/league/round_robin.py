"""A round robin: all matches of all pairs of players side by side in one series.

Each pair plays the same seeds, which training never uses, with the sides exchanged in every other
match. The other players do not change a pair's results, up to the rounding of a larger batch.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.ops import Array, Ops, Tree, mapped, stacked
from understudy.games.base import Game
from understudy.league.payoffs import Payoffs
from understudy.match.duel import Duel
from understudy.match.live_match import EVALUATION, match_seeds
from understudy.match.players import Player, PlayerView, PolicyPlayer
from understudy.match.series import Engine, plain, play
from understudy.match.tally import Tally


@dataclass(frozen=True)
class PlayerGroup:
    """Players that differ by their weights alone, and act as one."""

    players: tuple[Player, ...]
    columns: NDArray
    """int [players, n]: the columns of each; one with fewer than n has some of its own twice."""

    @property
    def weights(self) -> Tree:
        """[players, ...] each; of one player alone without that axis."""
        each = [player.weights for player in self.players]
        return stacked(each) if len(each) > 1 else each[0]

    def memory(self, ops: Ops) -> Tree:
        """Empty, [players, n, ...] each; of one player alone [n, ...]."""
        count = len(self.players)
        one = self.players[0].memory(ops, self.columns.shape[1])
        return mapped(lambda leaf: ops.xp.stack([leaf] * count), one) if count > 1 else one

    def act(self, ops: Ops, weights: Tree, view: PlayerView, memory: Tree) -> tuple[Array, Tree]:
        """Actions int32 [parts, players * n] and the next memory."""
        xp, player = ops.xp, self.players[0]
        if len(self.players) == 1:
            own = PlayerView(*(field[..., self.columns[0]] for field in view))
            return player.act(ops, weights, own, memory)

        def one(weights: Tree, view: PlayerView, memory: Tree) -> tuple[Array, Tree]:
            return player.act(ops, weights, view, memory)

        each = PlayerView(*(xp.moveaxis(field[..., self.columns], -2, 0) for field in view))
        actions, memory = ops.each(one, weights, each, memory)
        return xp.moveaxis(actions, 0, 1).reshape(actions.shape[1], -1), memory


@dataclass(frozen=True)
class PlayerGroups:
    """Several players as one: each acts in its own columns.

    Policies of one network are one group, so that a program holds a network once, however many
    snapshots take part: seven of preset `small` among seven bots compile in 18 s, not in 53.
    """

    groups: tuple[PlayerGroup, ...]

    @classmethod
    def of(cls, players: Sequence[Player], who: NDArray) -> PlayerGroups:
        """The players whose index appears in `who`, int [B], for the columns where it does."""
        by_key: dict[Hashable, list[int]] = {}
        for index in np.unique(who).tolist():
            player = players[index]
            key = player.program_key if isinstance(player, PolicyPlayer) else index
            by_key.setdefault(key, []).append(index)
        groups = []
        for indices in by_key.values():
            own = [np.flatnonzero(who == index) for index in indices]
            most = max(map(len, own))
            columns = np.stack([np.resize(one, most) for one in own])
            groups.append(PlayerGroup(tuple(players[index] for index in indices), columns))
        return cls(tuple(groups))

    @property
    def weights(self) -> Tree:
        return tuple(group.weights for group in self.groups)

    def memory(self, ops: Ops, matches: int) -> Tree:
        return tuple(group.memory(ops) for group in self.groups)

    def act(self, ops: Ops, weights: Tree, view: PlayerView, memory: Tree) -> tuple[Array, Tree]:
        """What each chooses, in the order of the columns."""
        chosen = [
            group.act(ops, own, view, kept)
            for group, own, kept in zip(self.groups, weights, memory, strict=True)
        ]
        listed = np.concatenate([group.columns.ravel() for group in self.groups])
        _, place = np.unique(listed, return_index=True)
        actions = ops.xp.concatenate([actions for actions, _ in chosen], -1)
        return actions[..., place], tuple(kept for _, kept in chosen)


def round_robin(
    game: Game,
    players: Mapping[str, Player],
    *,
    matches: int,
    seed: int,
    engine: Engine = plain,
    show: Callable[[float], None] = lambda share: None,
) -> Payoffs:
    """Plays `matches` of each pair; `show` gets the share of the longest possible match."""
    names = tuple(players)
    if len(names) < 2:
        raise ValueError("a round robin needs two players or more")
    pairs = np.array(list(combinations(range(len(names)), 2)))
    # In every other pair the later one is the duel's player: all have about as many columns there.
    turned = pairs.sum(1) % 2 == 0
    duelists = np.where(turned[:, None], pairs[:, ::-1], pairs)
    first, other = (np.repeat(side, matches) for side in duelists.T)
    field = list(players.values())
    # Of a pair, the one named first in `players` is the game's first in every other match.
    second = (np.arange(matches) % 2 == 1)[None] ^ turned[:, None]
    end = play(
        Duel(game, PlayerGroups.of(field, first), ((PlayerGroups.of(field, other), len(first)),)),
        np.tile(match_seeds(seed, np.arange(matches), purpose=EVALUATION), len(pairs)),
        second.ravel(),
        engine=engine,
        few=len(first),  # the columns of groups are fixed: matches that are over stay
        show=show,
    )
    scores = np.asarray(end.score).reshape(len(pairs), matches)
    paths = np.asarray(end.path).reshape(len(pairs), matches)
    results, distinct = {}, {}
    for (i, j), score, path in zip(
        pairs, np.where(turned[:, None], -scores, scores), paths, strict=True
    ):
        tally = Tally.of(score)
        results[names[i], names[j]] = (tally.wins, tally.draws, tally.losses)
        distinct[names[i], names[j]] = len(np.unique(path))
    return Payoffs.of(names, results, distinct)
