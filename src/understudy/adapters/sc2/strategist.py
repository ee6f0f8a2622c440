"""The part of a StarCraft II bot that chooses a strategy every four seconds, and learns from it.

    class MyBot(BotAI):
        def __init__(self, mind):
            super().__init__()
            self.strategist = Strategist(self, mind, STRATEGIES)

        async def on_start(self):
            self.strategist.start()

        async def on_step(self, iteration):
            strategy = self.strategist.step(fallback=self.rules)
            await STRATEGIES[strategy](self)

        async def on_end(self, game_result):
            self.strategist.end(game_result)

A bot has one; it is no base class, so that it fits beside any framework. The call that plays the
match belongs into `understudy.sc2.play`, since burnysc2 does not call `on_end` after a crash.
Decisions follow the game's clock: one every `every` loops, whatever `game_step` is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from understudy.adapters.sc2.features import FEATURES, EnemySightings, features
from understudy.bot.match import Match
from understudy.bot.understudy import Understudy
from understudy.core.errors import InputError, nearest
from understudy.experience.episode import Outcome

DECISION_LOOPS = 88
"""Game loops between two decisions: about four seconds."""
LOOK_LOOPS = 22
"""Game loops between two looks at the enemy's units: about a second."""
TIME_LIMIT_LOOPS = 80_640
"""The loop at which a ladder ends a match as a tie, and closes the socket."""
_LEAST_SLACK = 22
_OUTCOMES = {"Victory": Outcome.VICTORY, "Defeat": Outcome.DEFEAT, "Tie": Outcome.TIE}
_UNKNOWN = "unknown"


class Sc2Strategist:
    """Chooses one of several strategies; `understudy.sc2.Strategist`.

    Args:
        bot: The `BotAI`. It is read by attribute.
        mind: Opened with `features=understudy.sc2.FEATURES` and the strategies as actions.
        strategies: Their names, or a mapping of names to what they do, in the order of the run.
        every: Game loops between two decisions.
        tags: What else to keep with each match, such as `difficulty`.
    """

    def __init__(
        self,
        bot: Any,
        mind: Understudy,
        strategies: Sequence[str] | Mapping[str, object],
        *,
        every: int = DECISION_LOOPS,
        tags: Mapping[str, object] | None = None,
    ) -> None:
        self.bot = bot
        self.names = tuple(strategies)
        if mind.spec.features != FEATURES:
            raise InputError(
                "Strategist: the run was opened with other features; expected "
                "Understudy.open(..., features=understudy.sc2.FEATURES)"
            )
        names = getattr(mind.spec.actions, "names", ())
        if tuple(names) != self.names:
            raise InputError(
                f"strategies: expected those of the run, {list(names)}, in this order, got "
                f"{list(self.names)}"
            )
        if every < 1:
            raise InputError(f"every: expected at least 1 game loop, got {every}")
        self._mind = mind
        self._every = every
        self._tags = dict(tags or {})
        self._match: Match | None = None
        self._sightings = EnemySightings()
        self._strategy = ""
        self._next = 0
        self._next_look = 0
        self._loop = 0
        self._stride = 0
        """Loops between the last two steps."""

    # --- what a bot calls ----------------------------------------------------------------------

    def start(self) -> None:
        """Begins a match. Call it in `on_start`, once for each match.

        It is kept with the tags `opponent`, `map`, `race` and `enemy_race`, as far as they are
        known.

        Raises:
            InputError: The match of this strategist has begun already: make a new bot per match.
        """
        if self._match is not None:
            raise InputError("start: this match has begun already; make a new bot for each match")
        self._match = self._mind.match(**match_tags(self.bot), **self._tags)

    def step(
        self,
        *,
        fallback: str | Callable[[], str],
        legal: Mapping[str, bool] | None = None,
    ) -> str:
        """The strategy to follow now. Call it in every `on_step`; it decides when a decision is due
        and repeats the last one in between.

        Args:
            fallback: The strategy of your rules, or a function that returns it, which is called
                only when a decision is due.
            legal: Which strategies can be followed, by name; those not named can. Where the last
                decision is not legal any more, the next one is due at once.

        Returns:
            The name of the strategy.

        Raises:
            InputError: `start` was not called, the match is over, or an argument does not fit.

        Example:
            strategy = strategist.step(
                fallback="ECONOMY", legal={"ALL_IN": bot.supply_army >= 20}
            )
        """
        if self._match is None:
            raise InputError("step: call start() in on_start first")
        loop = self.bot.state.game_loop
        self._stride, self._loop = loop - self._loop, loop
        revoked = legal is not None and not legal.get(self._strategy, True)
        due = loop >= self._next or revoked
        if due or loop >= self._next_look:
            self._sightings.update(self.bot)
            self._next_look = loop + LOOK_LOOPS
        else:
            self._sightings.bury(self.bot.state.dead_units)
        if due:
            self._strategy = self._decide(self._match, fallback, legal)
            self._next = loop - loop % self._every + self._every
        return self._strategy

    def reward(self, amount: float) -> None:
        """Adds to the reward of the last decision, beside that of the result; see `Match.reward`.

        Ignored before the first decision and after the end: there is no decision to reward.
        """
        if self._match is not None and self._match.decisions and self._match.outcome is None:
            self._match.reward(amount)

    def end(self, result: object) -> None:
        """Ends the match. Call it in `on_end`; a second call is ignored.

        Args:
            result: A `Result` of burnysc2, or its name. None or anything else: aborted.
        """
        if self._match is not None and self._match.outcome is None:
            self._match.finish(outcome_of(result))

    # --- what the runner calls -----------------------------------------------------------------

    @property
    def match(self) -> Match | None:
        """The match, once it has begun."""
        return self._match

    @property
    def strategy(self) -> str:
        """The strategy that is followed; empty before the first decision."""
        return self._strategy

    def end_without_result(self) -> None:
        """Ends a match whose socket closed: a tie at the time limit of a ladder, else aborted."""
        slack = max(2 * self._stride, _LEAST_SLACK)
        self.end("Tie" if self._loop + slack >= TIME_LIMIT_LOOPS else None)

    # --- inside --------------------------------------------------------------------------------

    def _decide(
        self,
        match: Match,
        fallback: str | Callable[[], str],
        legal: Mapping[str, bool] | None,
    ) -> str:
        rules = fallback() if callable(fallback) else fallback
        seen = features(self.bot, self._sightings.report(self._loop))
        chosen = match.decide(seen, fallback=rules, legal=self._mask(legal))
        assert isinstance(chosen, str)
        return chosen

    def _mask(self, legal: Mapping[str, bool] | None) -> list[bool] | None:
        if legal is None:
            return None
        for name in legal:
            if name not in self.names:
                raise InputError(
                    f"legal: {name!r} is not one of the strategies {list(self.names)}."
                    f"{nearest(name, self.names)}"
                )
        return [bool(legal.get(name, True)) for name in self.names]


def match_tags(bot: Any) -> dict[str, str]:
    """The tags of a match: `opponent`, `map`, `race` and `enemy_race`."""
    info = getattr(bot, "game_info", None)
    return {
        "opponent": str(getattr(bot, "opponent_id", None) or _UNKNOWN),
        "map": str(getattr(info, "map_name", None) or _UNKNOWN),
        "race": _name(getattr(bot, "race", None)),
        "enemy_race": _name(getattr(bot, "enemy_race", None)),
    }


def outcome_of(result: object) -> Outcome:
    """The outcome of a `Result` of burnysc2; `Undecided`, None and exceptions: aborted.

    `Result` is made by a function call, so it is read by name.
    """
    name = result if isinstance(result, str) else getattr(result, "name", "")
    return _OUTCOMES.get(str(name), Outcome.ABORTED)


def _name(race: object) -> str:
    return str(getattr(race, "name", None) or _UNKNOWN)
