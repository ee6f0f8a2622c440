"""Games by name: the built-in ones, and the custom ones that were added to this process.

Every command makes its game from here. A custom game is added by `games.custom`, under its own
name; so are the scripted bots that users add to any game. Every wrong name or option is a
`ConfigError` that says what exists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from understudy.core.errors import ConfigError, nearest
from understudy.core.user_code import UserModule
from understudy.games.base import Bot, Game
from understudy.games.brawl import Brawl
from understudy.games.brawl import bots as brawl_bots
from understudy.games.brawl import reward_sets as brawl_rewards
from understudy.games.brawl.held_out import held_out as brawl_held_out
from understudy.games.brawl.rules import SPACES as BRAWL_SPACES
from understudy.games.delay import Delayed
from understudy.games.moments import MeasureColumn, Potential, Term, own_reward
from understudy.games.swarm import BOTS as SWARM_BOTS
from understudy.games.swarm import Swarm
from understudy.games.swarm.tables import DIFFICULTIES
from understudy.games.territory import BOTS as TERRITORY_BOTS
from understudy.games.territory import Territory
from understudy.games.territory.tables import NO_SPAWN


@dataclass(frozen=True)
class Description:
    """What a person needs to know before they choose a game."""

    name: str
    version: int
    summary: str
    options: Mapping[str, tuple[str, ...]]
    """Each option with its choices, the default first."""


def _no_bots(**options: str) -> Mapping[str, Bot]:
    return {}


@dataclass(frozen=True)
class Entry:
    """What the catalog knows of a game."""

    make: Callable[..., Game]
    summary: str
    options: Mapping[str, tuple[str, ...]]
    """Each option with its choices, the default first; of a custom game the default alone."""
    bots: Callable[..., Mapping[str, Bot]]
    """The scripted players of the game that the same options make."""
    rules: str = ""
    """The bot that plays where a command needs rules and names none; default: the first one."""
    terms: Mapping[str, Term] = field(default_factory=dict)
    potentials: Mapping[str, Potential] = field(default_factory=dict)
    reward_sets: Mapping[str, Mapping[str, float]] = field(
        default_factory=lambda: {"default": {"reward": 1.0}}
    )
    """By name, the weight of each term; a game without terms has its own reward."""
    measures: Mapping[str, Term] = field(default_factory=dict)
    measure_columns: tuple[MeasureColumn, ...] = ()
    """Measures, and ratios of two, that have columns of their own in tables."""
    idle: int | None = None
    """The action that does nothing, which no gate blocks; None: there is none."""
    drawn: bool = False
    """Whether `watch` can show a match: the game has `draw`, or, brawl, a drawing of its own."""
    held_out: Callable[..., Mapping[str, Bot]] = _no_bots
    """Scripted players that no training meets."""
    code: UserModule | None = None
    """The module of a custom game; None for a built-in one."""
    code_name: str = ""
    """What the game is called in its module."""

    @property
    def custom(self) -> bool:
        """Whether a user wrote the game: any value of an option is allowed, its rules decide."""
        return self.code is not None


def _default_first(choices: Mapping[str, Any], default: str) -> tuple[str, ...]:
    return (default, *(choice for choice in choices if choice != default))


def _swarm_bots(difficulty: str = "") -> Mapping[str, Bot]:
    return SWARM_BOTS


def _territory_bots() -> Mapping[str, Bot]:
    return TERRITORY_BOTS


def _brawl(actions: str = "chords", delay: str = "0") -> Game:
    game = Brawl(actions)
    return Delayed(game, int(delay)) if int(delay) else game


def _brawl_bots(actions: str = "chords", delay: str = "0") -> Mapping[str, Bot]:
    return brawl_bots(actions)


def _brawl_held_out(actions: str = "chords", delay: str = "0") -> Mapping[str, Bot]:
    return brawl_held_out(actions)


_GAMES: Mapping[str, Entry] = {
    "swarm": Entry(
        make=Swarm,
        summary="Lead a swarm's economy, army and technology against a scripted enemy in the fog.",
        options={"difficulty": _default_first(DIFFICULTIES, Swarm().difficulty)},
        bots=_swarm_bots,
        rules="rules",
        drawn=True,
    ),
    "brawl": Entry(
        make=_brawl,
        summary="Two fighters knock each other off a stage with a pit, 30 decisions a second.",
        options={
            "actions": tuple(BRAWL_SPACES),
            "delay": tuple(str(frames) for frames in range(16)),
        },
        bots=_brawl_bots,
        rules="based",
        terms=brawl_rewards.TERMS,
        potentials=brawl_rewards.POTENTIALS,
        reward_sets=brawl_rewards.SETS,
        measures=brawl_rewards.MEASURES,
        measure_columns=brawl_rewards.MEASURE_COLUMNS,
        drawn=True,
        held_out=_brawl_held_out,
    ),
    "territory": Entry(
        make=Territory,
        summary="A queen spawns parasites against a player's workers and protectors, live.",
        options={},
        bots=_territory_bots,
        rules="queen",
        idle=NO_SPAWN,
        drawn=True,
    ),
}


_CUSTOM: dict[str, Entry] = {}
"""Custom games of this process, by their own name."""


@dataclass(frozen=True)
class AddedBots:
    """The scripted bots of one user's module, for one game."""

    code: UserModule
    bots: Mapping[str, Bot]


_ADDED_BOTS: dict[str, list[AddedBots]] = {}
"""By game, in the order in which they were added."""


def names() -> tuple[str, ...]:
    """The names of all built-in games."""
    return tuple(_GAMES)


def known(name: str) -> bool:
    """Whether there is a built-in game of this name, or a custom one was added."""
    return name in _GAMES or name in _CUSTOM


def add(name: str, entry: Entry) -> None:
    """Add a custom game, in place of an earlier one of that name."""
    if name in _GAMES:
        raise ConfigError(
            f"name: {name!r} is a built-in game; give your game another `name`, so that its runs "
            "are told apart"
        )
    _CUSTOM[name] = entry


def add_bots(name: str, added: AddedBots) -> None:
    """Add scripted bots to a game, in place of earlier ones of the same file."""
    _entry(name)
    earlier = [one for one in _ADDED_BOTS.get(name, []) if one.code.key != added.code.key]
    _ADDED_BOTS[name] = [*earlier, added]


def added_bots(name: str) -> tuple[AddedBots, ...]:
    """The bots that users added to a game."""
    return tuple(_ADDED_BOTS.get(name, ()))


def code_of(name: str) -> tuple[UserModule, str] | None:
    """The module of a custom game and its name in there; None for a built-in game."""
    entry = _entry(name)
    return None if entry.code is None else (entry.code, entry.code_name)


def make(name: str, **options: object) -> Game:
    """A game with its options chosen: `make("brawl", delay=6)`; "6" is the same."""
    entry, chosen = _checked(name, options)
    return entry.make(**chosen)


def bots(name: str, **options: object) -> Mapping[str, Bot]:
    """The scripted players of a game by name, for the game that the same options make."""
    entry, chosen = _checked(name, options)
    added = _ADDED_BOTS.get(name, [])
    return {**entry.bots(**chosen), **{key: bot for one in added for key, bot in one.bots.items()}}


def rules_named(name: str, bot: str = "", *, flag: str = "--rules") -> str:
    """The name of the scripted bot that is a game's rules: `bot`, or the game's own choice."""
    known = bots(name)
    if not known:
        raise ConfigError(f"{flag}: {name} has no scripted bots, so nothing can play as its rules")
    if bot and bot not in known:
        raise ConfigError(
            f"{flag}: {name} has the bots {', '.join(known)}; got {bot!r}.{nearest(bot, known)}"
        )
    return bot or _entry(name).rules or next(iter(known))


def held_out(name: str, **options: object) -> Mapping[str, Bot]:
    """Scripted players that nothing is ever trained on, so that they show what an agent makes of
    strangers; empty for games without any."""
    entry, chosen = _checked(name, options)
    return entry.held_out(**chosen)


def defaults(name: str) -> dict[str, str]:
    """Every option of a game with its default."""
    return {option: choices[0] for option, choices in _entry(name).options.items()}


def terms(name: str) -> Mapping[str, Term]:
    """What a game's frames can be rewarded for, by name; `reward` is the game's own reward."""
    return {"reward": own_reward, **_entry(name).terms}


def potentials(name: str) -> Mapping[str, Potential]:
    """How promising a game's states are, by name: what shaping that keeps the best play uses."""
    return _entry(name).potentials


def reward_sets(name: str) -> Mapping[str, Mapping[str, float]]:
    """The sets of rewards that a game ships, each with the weight of its terms."""
    return _entry(name).reward_sets


def measures(name: str) -> Mapping[str, Term]:
    """What is summed over a match and never rewarded, by name; empty for games without any."""
    return _entry(name).measures


def measure_columns(name: str | None = None) -> tuple[MeasureColumn, ...]:
    """The columns that tables have for a game's measures; without a name, those of all games.

    The CSV files of training have those of all, so that files of different games can be joined.
    """
    entries = _GAMES.values() if name is None else [_entry(name)]
    return tuple(column for entry in entries for column in entry.measure_columns)


def idle_action(name: str) -> int | None:
    """The action of a game that does nothing; None: it has none, or is not known here."""
    entry = _GAMES.get(name) or _CUSTOM.get(name)
    return None if entry is None else entry.idle


def drawn() -> tuple[str, ...]:
    """The names of the games that can be drawn."""
    return tuple(name for name, entry in {**_GAMES, **_CUSTOM}.items() if entry.drawn)


def _checked(name: str, options: Mapping[str, object]) -> tuple[Entry, dict[str, str]]:
    """The entry, and the options as text: what run folders keep, and what choices are listed as."""
    entry = _entry(name)
    chosen = {option: str(value) for option, value in options.items()}
    for option, value in chosen.items():
        choices = entry.options.get(option)
        if choices is None:
            raise ConfigError(
                f"{name} has no option {option!r}; it has {', '.join(entry.options) or 'none'}."
                + nearest(option, entry.options)
            )
        if value not in choices and not entry.custom:
            raise ConfigError(
                f"{name}: {option} must be one of {', '.join(choices)}, got {value!r}."
                + nearest(value, choices)
            )
    return entry, chosen


def describe(*chosen: str) -> tuple[Description, ...]:
    """Games with their options: those that are named, else every built-in one."""
    entries = ((name, _entry(name)) for name in chosen or _GAMES)
    return tuple(
        Description(name, entry.make().version, entry.summary, entry.options)
        for name, entry in entries
    )


def _entry(name: str) -> Entry:
    entry = _GAMES.get(name) or _CUSTOM.get(name)
    if entry is None:
        there = {**_GAMES, **_CUSTOM}
        raise ConfigError(
            f"There is no game {name!r}; there is {', '.join(there)}.{nearest(name, there)} "
            "A game of your own is named with its file: my_game.py:MyGame"
        )
    return entry
