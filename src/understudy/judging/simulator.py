"""Tests of versions by simulated matches: canary and incumbent play the same fresh seeds.

In a game of one player both play it alone. In a game of two they meet, twice on each seed, so that
each has both sides. Actions are drawn, as in the matches that a promoted version plays.

Each step writes one record into the promotion log. The pairs that were counted say which seeds come
next, so another simulator goes on where one was killed: with the same evidence, on the same seeds.
Two simulators of one run play some pairs twice; the log takes them once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.errors import UnderstudyError
from understudy.games import catalog
from understudy.games.base import Game
from understudy.gates.promotion import roles
from understudy.gates.promotion.records import RULES
from understudy.gates.promotion.roles import PromotionState
from understudy.gates.promotion.running import RunningTest
from understudy.match.duel import Duel
from understudy.match.live_match import SIMULATION, match_seeds
from understudy.match.players import BotPlayer, Player, PolicyPlayer
from understudy.match.series import play
from understudy.promotion.candidates import may_test, practice_objection, reason_to_try
from understudy.promotion.promotion import Promotion
from understudy.registry.checkpoints import learned_matches
from understudy.registry.run_folder import RunFolder

_MOST_PAIRS, _FEWEST_PAIRS = 16, 2
"""Of one record. Side by side, 16 matches of swarm take hardly longer than 8."""
_FRAMES = 8192
"""Frames of one record, about: a pair of brawl with the network `small` takes 3 s of CPU time."""


class Simulator:
    """Nominates versions of one run, and plays the matches of their tests.

    Args:
        folder: A run of a built-in or custom game; the module of a custom game is loaded.
        promotion: Its promotion.
        rules: The scripted bot that is the incumbent until a version is promoted.
        options: Of the game, beside those of the run: the difficulty that is played.
        problem: Is told of a version that cannot be tested, once for each.
        practises: A bot plays this run, in which versions practise: none is tested before practice
            looks better than the incumbent, as where matches are the evidence.
    """

    def __init__(
        self,
        folder: RunFolder,
        promotion: Promotion,
        *,
        rules: str,
        options: Mapping[str, str],
        problem: Callable[[str], None],
        practises: bool = False,
    ) -> None:
        name, chosen = folder.identity.game_name, {**folder.identity.game_options, **options}
        for note in folder.load_code():
            problem(note)
        self._folder = folder
        self._promotion = promotion
        self._game = catalog.make(name, **chosen)
        self._rules = BotPlayer(catalog.bots(name, **chosen)[rules])
        self._problem = problem
        self._practises = practises
        self._players: dict[int, Player] = {}
        """Canary and incumbent of the running test, by version."""
        self._passed_over: set[int] = set()
        """Versions that cannot be tested."""

    def step(self) -> bool:
        """Nominate a version or play some pairs of its test; False: there is nothing to do.

        While promotion is paused a test goes on, and no other one begins.
        """
        state = self._promotion.follow()
        if state.recheck is not None:
            return False
        if not may_test(state, self._folder.pointers.read("champion")):
            return False
        if state.test is None:
            return self._nominate(state)
        if state.test.pairs is None or state.test.asks:  # judged by assigned matches, or by now
            return False
        return self._play(state.test)

    def _nominate(self, state: PromotionState) -> bool:
        manifest = self._folder.versions.head_manifest()
        if manifest is None or manifest.number in self._passed_over:
            return False
        if roles.nomination_refused(state, manifest.number):
            return False
        experience, config = learned_matches(manifest), self._folder.config.promotion
        reason = reason_to_try(
            experience=experience, last=state.experience or None, divergence=0.0, config=config
        )
        if self._practises and practice_objection(
            state.practice, config, incumbent=state.incumbent
        ):
            return False
        if not reason or not self._sound(manifest.number):
            return False
        return self._promotion.nominate(
            manifest.number, experience=experience, reason=reason, simulator=True
        )

    def _sound(self, version: int) -> bool:
        """Whether the weights of a version can be read and are finite."""
        try:
            weights = self._folder.versions.policy(version).weights
            broken = [name for name, one in weights.params.items() if not np.isfinite(one).all()]
            if not broken:
                return True
            why = f"not finite: {', '.join(broken)}"
        except (UnderstudyError, OSError) as error:
            why = str(error)
        self._passed_over.add(version)
        self._problem(f"version {version} is not tested: {why}")
        return False

    def _play(self, test: RunningTest) -> bool:
        first = test.paired
        seeds = match_seeds(
            self._folder.config.learner.seed,
            np.arange(first, first + pairs_a_record(self._game)),
            purpose=SIMULATION,
            series=test.number,
        )
        self._players = {one: self._player(one) for one in (test.version, test.against)}
        results = play_pairs(
            self._game, self._players[test.version], self._players[test.against], seeds
        )
        return self._promotion.pair(test.number, first=first, seeds=seeds, results=results)

    def _player(self, version: int) -> Player:
        if version == RULES:
            return self._rules
        if version in self._players:
            return self._players[version]
        return PolicyPlayer(self._folder.versions.policy(version), sampled=True)


def pairs_a_record(game: Game) -> int:
    """Fewer pairs of longer matches: a kill loses at most the matches of one record."""
    return max(_FEWEST_PAIRS, min(_MOST_PAIRS, _FRAMES // game.max_frames))


def play_pairs(
    game: Game, canary: Player, incumbent: Player, seeds: NDArray
) -> tuple[NDArray, NDArray]:
    """Results of canary and incumbent on seeds uint32 [N]: 0 to 1, float64 [N] each.

    In a game of two players a result is the mean of two matches on one seed, one from each side;
    those of canary and incumbent add up to 1.
    """
    count = len(seeds)
    if game.players == 1:
        first = np.zeros(count, np.bool_)
        scores = [play(Duel(game, one), seeds, first).score for one in (canary, incumbent)]
        won, held = ((score.astype(np.float64) + 1.0) / 2.0 for score in scores)
        return won, held
    duel = Duel(game, canary, ((incumbent, 2 * count),))
    second = np.repeat([False, True], count)
    score = play(duel, np.concatenate((seeds, seeds)), second).score.astype(np.float64)
    both = (score.reshape(2, count).mean(0) + 1.0) / 2.0
    return both, 1.0 - both
