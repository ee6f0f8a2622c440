"""Custom games and bots by name: `my_game.py:TicTacToe`, `package.my_game:TicTacToe`, `my_bots.py`.

    name = load_game("my_game.py:TicTacToe")        # added to the catalog under its own name
    catalog.make(name), catalog.bots(name)
    add_bots(name, "my_bots.py")                    # more scripted bots for it

The name after the colon is a class, or a function, that makes a game from its options, or a game
itself. Its module may offer scripted bots too: `BOTS`, and `HELD_OUT` for those that no training
meets, both mappings from names to bots. A module that is given with `--bots` has `BOTS`.

A game is held to the quick part of its contract when it is loaded (`conformance.check_contract`),
and bots to legal actions in the first frames of a few matches, so that a mistake is an error with
a name before anything is compiled or written.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from understudy.core import chance
from understudy.core.errors import ConfigError, nearest
from understudy.core.opponents import GAME as OPPONENT
from understudy.core.opponents import SELF, steps_of
from understudy.core.ops import NUMPY
from understudy.core.toml import value_of
from understudy.core.user_code import (
    USER_ERRORS,
    CodeSource,
    UserModule,
    explained,
    load_module,
    split_name,
)
from understudy.games import catalog
from understudy.games.base import Bot, Game
from understudy.games.catalog import AddedBots, Entry
from understudy.games.conformance import check_contract
from understudy.games.delay import Delayed
from understudy.games.frame import bot_frames

GAME = "GAME"
"""What the argument is called in errors."""
_DELAY = "delay"
_BOTS, _HELD_OUT = "BOTS", "HELD_OUT"
_TAKEN = (SELF, OPPONENT, "all", "heldout", "league")
"""Names that mean groups of opponents."""
_MATCHES, _FRAMES = 8, 24
"""Matches and frames that bots are tried on."""


def is_custom(text: str) -> bool:
    """Whether a game is named by its module: `my_game.py:TicTacToe`."""
    return ":" in text


def load_game(text: str, options: Mapping[str, object] | None = None, *, flag: str = GAME) -> str:
    """Load a custom game, add it to the catalog, and return its own name.

    Args:
        text: `FILE.py:NAME` or `MODULE:NAME`.
        options: What it is made with where a command names no others: keyword arguments of the
            class or function. Text is read as in TOML (`5` is a number), unless the default of the
            argument is text. `delay` is taken from any game that has no such argument.
        flag: Begins every error.

    Raises:
        ConfigError: There is no such file or name, it cannot be imported, an option does not fit,
            or the game does not keep its contract.
    """
    source, name = split_name(text, flag=flag)
    return _added(load_module(source, flag=flag), name, options or {}, where=f"{flag} {text}")


def load_bots(source: str | Path, *, flag: str = "--bots") -> dict[str, Any]:
    """The scripted opponents of a user's module: its mapping `BOTS`, names checked.

    What an opponent must be able to do is for the caller to check: the arena needs bots over `ops`
    (`add_bots`), an environment takes any callable.
    """
    return _offered(load_module(source, flag=flag), _BOTS, where=f"{flag} {source}", needed=True)


def add_bots(game: str, source: str | Path, *, flag: str = "--bots") -> tuple[str, ...]:
    """Add the bots of a user's module to a game of the catalog; returns their names.

    Each plays the first frames of a few matches under NumPy. A bot that fails, or chooses what is
    not legal, is a `ConfigError`, and so is a name that the game has already.
    """
    loaded, where = load_module(source, flag=flag), f"{flag} {source}"
    bots = _offered(loaded, _BOTS, where=where, needed=True)
    others = {
        name
        for name in (*catalog.bots(game), *catalog.held_out(game))
        if name not in _named_by(game, loaded)
    }
    double = next((name for name in bots if name in others), None)
    if double is not None:
        raise ConfigError(f"{where}: {game} has a bot {double!r} already; give it another name")
    _check_bots(catalog.make(game), bots, loaded, where=where)
    catalog.add_bots(game, AddedBots(loaded, bots))
    return tuple(bots)


def load_from_run(
    run: Path,
    *,
    name: str,
    game: CodeSource | None,
    bots: Sequence[CodeSource],
    options: Mapping[str, str],
) -> list[str]:
    """Make known what the identity of the run folder `run` names: its custom game, `name`, and the
    bots that were added to its game. What the command line has loaded already stays.

    Returns:
        A note for every file that has changed since the run was made.
    """
    notes = []
    if game is not None:
        if not catalog.known(name):
            loaded = load_module(game.find(run), flag=str(run))
            _added(loaded, game.name, options, where=f"{run}: {loaded.source}:{game.name}")
        code = catalog.code_of(name)
        if code is not None and code[0].sha256 != game.sha256:
            version = catalog.make(name).version
            notes.append(
                f"{code[0].source} has changed since {run} was made; its `version` is {version}: "
                "raise it where a change of the rules changes matches"
            )
    for source in bots:
        path = source.find(run)
        loaded = load_module(path, flag=str(run))
        if not any(one.code.key == loaded.key for one in catalog.added_bots(name)):
            add_bots(name, path, flag=str(run))
        if loaded.sha256 != source.sha256:
            notes.append(f"{loaded.source} has changed since {run} was made: its bots may be other")
    return notes


def _added(loaded: UserModule, name: str, options: Mapping[str, object], *, where: str) -> str:
    found = _found(loaded, name, where=where)
    given = {option: str(value) for option, value in options.items()}
    make = _maker(found, given, loaded, where=where)
    game = make()
    _check_game(game, loaded, where=where)
    bots = _offered(loaded, _BOTS, where=where, needed=False)
    held_out = _offered(loaded, _HELD_OUT, where=where, needed=False)
    both = next((bot for bot in held_out if bot in bots), None)
    if both is not None:
        raise ConfigError(f"{where}: {both!r} is in {_BOTS} and in {_HELD_OUT}; leave one out")
    _check_bots(game, {**bots, **held_out}, loaded, where=where)
    entry = Entry(
        make=make,
        summary=_summary(found),
        options=_options(found, given),
        bots=lambda **chosen: bots,
        held_out=lambda **chosen: held_out,
        drawn=callable(getattr(game, "draw", None)),
        code=loaded,
        code_name=name,
    )
    try:
        catalog.add(game.name, entry)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error
    return game.name


def _found(loaded: UserModule, name: str, *, where: str) -> Any:
    """The class, function or game of that name in a module."""
    found = getattr(loaded.module, name, None)
    if found is None:
        own = [
            key
            for key, one in vars(loaded.module).items()
            if inspect.isclass(one) and one.__module__ == loaded.module.__name__
        ]
        there = f"; it has {', '.join(own)}" if own else ""
        raise ConfigError(f"{where}: {loaded.source} has no {name!r}{there}.{nearest(name, own)}")
    return found


def _maker(
    found: Any, given: Mapping[str, str], loaded: UserModule, *, where: str
) -> Callable[..., Game]:
    """Makes the game from options as text; those that were `given` are the defaults. The same
    options give the same object, so that compiled programs are shared."""
    if not callable(found):
        if given:
            raise ConfigError(f"{where}: a game, not a class: it takes no options, got {given}")
        return lambda **options: found
    arguments = _arguments(found)

    @cache
    def made(chosen: tuple[tuple[str, str], ...]) -> Game:
        options = dict(chosen)
        delay = options.pop(_DELAY, "0") if _DELAY not in arguments else "0"
        _check_options(options, arguments, where=where)
        try:
            game = found(**{key: _read(text, arguments.get(key)) for key, text in options.items()})
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from error
        except USER_ERRORS as error:
            words = explained(error, file=loaded.file)
            raise ConfigError(f"{where}: cannot be made with {options} ({words})") from error
        if not delay.isdecimal():
            raise ConfigError(f"{where}: delay: expected a number of frames, got {delay!r}")
        return Delayed(game, int(delay)) if int(delay) else game

    return lambda **options: made(tuple(sorted({**given, **options}.items())))


def _arguments(found: Any) -> dict[str, inspect.Parameter]:
    """The keyword arguments that a class or function takes."""
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):  # a class without a Python constructor
        return {}
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {one.name: one for one in parameters if one.kind in by_name}


def _check_options(
    options: Mapping[str, str], arguments: Mapping[str, inspect.Parameter], *, where: str
) -> None:
    unknown = next((option for option in options if option not in arguments), None)
    if unknown is not None:
        there = ", ".join(arguments) or "none"
        raise ConfigError(
            f"{where}: it has no option {unknown!r}; it takes {there}.{nearest(unknown, arguments)}"
        )
    missing = [
        name
        for name, one in arguments.items()
        if one.default is inspect.Parameter.empty and name not in options
    ]
    if missing:
        flags = " ".join(f"--option {name}=..." for name in missing)
        raise ConfigError(f"{where}: it cannot be made without {', '.join(missing)}: add {flags}")


def _read(text: str, argument: inspect.Parameter | None) -> Any:
    as_text = argument is not None and isinstance(argument.default, str)
    return text if as_text else value_of(text)


def _options(found: Any, given: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Each option with its default as text, and nothing where there is none."""
    if not callable(found):
        return {}
    listed = {_DELAY: ("0",)}
    for name, one in _arguments(found).items():
        empty = one.default is inspect.Parameter.empty or one.default is None
        text = str(one.default).lower() if isinstance(one.default, bool) else str(one.default)
        listed[name] = ("",) if empty else (text,)
    return {**listed, **{name: (text,) for name, text in given.items()}}


def _summary(found: Any) -> str:
    """The first line of its docstring."""
    words = inspect.getdoc(found) or ""
    return words.partition("\n")[0] or "A custom game."


def _check_game(game: Game, loaded: UserModule, *, where: str) -> None:
    try:
        check_contract(game)
    except AssertionError as error:
        raise ConfigError(
            f"{where}: does not keep the contract of a game: {error}. "
            "understudy.testing.check_game checks all of it"
        ) from error
    except USER_ERRORS as error:
        words = explained(error, file=loaded.file)
        raise ConfigError(f"{where}: fails in its first frames ({words})") from error
    if any(letter.isspace() or letter in ":/\\@," for letter in game.name):
        raise ConfigError(
            f"{where}: name: expected one word without : / \\ @ or a comma, got {game.name!r}"
        )


def _offered(loaded: UserModule, what: str, *, where: str, needed: bool) -> dict[str, Any]:
    """The mapping of that name in a module; empty where it is not needed and not there."""
    found = getattr(loaded.module, what, None)
    if found is None and not needed:
        return {}
    if not isinstance(found, Mapping) or not found:
        has = "has none" if found is None else f"got {type(found).__name__}"
        raise ConfigError(
            f"{where}: expected a mapping {what} with at least one bot, such as "
            f'{what} = {{"random": Random()}}; {has}'
        )
    for name in found:
        if not isinstance(name, str) or not name or name in _TAKEN or steps_of(name) is not None:
            raise ConfigError(
                f"{where}: {what}: {name!r} cannot be the name of a bot: expected text that is "
                f"none of {', '.join(_TAKEN)} and not of the form step-N"
            )
        if any(letter.isspace() or letter in "=,@/\\:" for letter in name):
            raise ConfigError(
                f"{where}: {what}: {name!r}: expected one word without = , @ / \\ or :"
            )
    return dict(found)


def _named_by(game: str, loaded: UserModule) -> set[str]:
    """Bots that an earlier loading of the same file added."""
    added = (one for one in catalog.added_bots(game) if one.code.key == loaded.key)
    return {name for one in added for name in one.bots}


def _check_bots(game: Game, bots: Mapping[str, Any], loaded: UserModule, *, where: str) -> None:
    for name, bot in bots.items():
        try:
            _check_bot(game, bot)
        except AssertionError as error:
            raise ConfigError(f"{where}: bot {name!r}: {error}") from error
        except USER_ERRORS as error:
            words = explained(error, file=loaded.file)
            raise ConfigError(
                f"{where}: bot {name!r}: fails in its first frames ({words})"
            ) from error


def _check_bot(game: Game, bot: Bot) -> None:
    """An `AssertionError` unless the bot plays legal actions from every side."""
    if inspect.isclass(bot):
        raise AssertionError("expected a bot, got a class: write its name with ()")
    if not callable(getattr(bot, "act", None)):
        raise AssertionError("has no act(ops, obs, seeds, frame); see understudy.games.base.Bot")
    try:
        hash(bot)
    except TypeError:
        raise AssertionError("must be hashable: make its class a frozen dataclass") from None
    seeds = chance.fold(np.arange(_MATCHES, dtype=np.uint32), 1)
    second = np.arange(_MATCHES) % 2 == 1
    shape = (len(game.actions.parts),)
    watched = _Watched(bot, shape)
    frames = bot_frames(game, [watched] * game.players, seeds, second)
    for number, (_, frame) in enumerate(islice(frames, _FRAMES)):
        legal = game.legal(NUMPY, frame.moment.before)
        first = 0
        for part, size in enumerate(game.actions.parts):
            chosen = frame.moment.actions[:, part]
            inside = (chosen >= 0) & (chosen < size)
            options = np.clip(chosen, 0, size - 1)[:, None] + first
            allowed = np.take_along_axis(legal, options, axis=1)[:, 0] & inside
            if not allowed.all():
                wrong = int(chosen[~allowed][0])
                raise AssertionError(
                    f"act: frame {number}: chose option {wrong} of part {part}, which is not legal "
                    "there; what is legal must follow from what a bot observes"
                )
            first += size


class _Watched:
    """A bot whose actions are checked for shape and type."""

    def __init__(self, bot: Bot, shape: tuple[int, ...]) -> None:
        self._bot, self._shape = bot, shape

    def act(self, ops: Any, obs: Any, seeds: Any, frame: Any) -> Any:
        chosen = self._bot.act(ops, obs, seeds, frame)
        wanted = (*self._shape, obs.shape[-1])
        if getattr(chosen, "shape", None) != wanted:
            got = getattr(chosen, "shape", type(chosen).__name__)
            raise AssertionError(f"act: expected actions [parts, B] = {wanted}, got {got}")
        if chosen.dtype != np.int32:
            raise AssertionError(f"act: expected int32, got {chosen.dtype}")
        return chosen
