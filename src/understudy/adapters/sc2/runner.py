"""Runs the call that plays a match, so that every ending is kept.

| what happens                                   | the match is kept as              |
|------------------------------------------------|-----------------------------------|
| the game ends, real time or not; a time limit  | its result                        |
| the bot surrenders                             | defeat                            |
| the game crashes, the socket closes            | aborted; a tie at the ladder's    |
|                                                | time limit                        |
| an exception in a step; Ctrl-C; SIGTERM        | aborted, and it goes on rising    |
| an exception in `on_start`                     | not at all: nothing was decided   |

burnysc2 calls `on_end` in the first two and the last of these alone. It also sends its log to
stdout when `sc2.main` is imported, and changes the handler of Ctrl-C; `contained` prevents both.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from understudy.adapters.sc2.strategist import Sc2Strategist

_T = TypeVar("_T")


def play(call: Callable[[], _T], *strategists: Sc2Strategist) -> _T | None:
    """Plays a match, or several, and ends what is then still open.

    Args:
        call: Plays and returns what burnysc2 returns: `lambda: run_game(...)`, or
            `lambda: asyncio.run(a_run_multiple_games(...))`.
        strategists: Those of the bots that play.

    Returns:
        What `call` returned; None where the connection to the game was lost.

    Raises:
        Exception: What `call` raised, after the matches were kept.

    Example:
        bot = MyBot(mind)
        result = play(
            lambda: run_game(maps.get("AcropolisLE"), [Bot(Race.Zerg, bot), computer], False),
            bot.strategist,
        )
    """
    found: _T | None = None
    with _kept(strategists) as ending:
        ending.result = found = call()
    return found


async def play_async(call: Awaitable[_T], *strategists: Sc2Strategist) -> _T | None:
    """The same for a coroutine, such as `play_from_websocket(...)`.

    Example:
        result = await play_async(
            play_from_websocket(address, Bot(Race.Zerg, bot), realtime=False, portconfig=ports),
            bot.strategist,
        )
    """
    found: _T | None = None
    with _kept(strategists) as ending:
        ending.result = found = await call
    return found


@dataclass
class _Ending:
    """What a call returned, or the error that it raised; None: the game's socket closed."""

    result: object = None


@contextlib.contextmanager
def _kept(strategists: tuple[Sc2Strategist, ...]) -> Iterator[_Ending]:
    """Ends the match of every strategist, however the block ends. A closed socket of the game is an
    end like others, and no error."""
    ending = _Ending()
    try:
        with contained():
            yield ending
    except BaseException as error:
        if not _socket_closed(error):
            ending.result = error
            raise
    finally:
        _end_all(strategists, ending.result)


def result_for(strategist: Sc2Strategist, returned: object) -> object:
    """The result of one bot in what burnysc2 returned.

    `run_game` returns a result, or a list where two bots played, of which none is known to be ours;
    `a_run_multiple_games` a list of dictionaries from players to results.
    """
    if isinstance(returned, list):
        found = [one for one in returned if isinstance(one, Mapping)]
        for one in found:
            for player, result in one.items():
                if getattr(player, "ai", None) is strategist.bot:
                    return result
        return None
    return returned


def _socket_closed(error: BaseException) -> bool:
    """Whether an error is a write to the game's closed socket, which burnysc2 lets rise.

    A connection that the bot's own code lost is an error like any other.
    """
    if not isinstance(error, ConnectionError):
        return False
    return type(error).__module__.startswith("aiohttp") or "closing transport" in str(error)


def _end_all(strategists: tuple[Sc2Strategist, ...], returned: object) -> None:
    for strategist in strategists:
        result = result_for(strategist, returned)
        if result is None:
            strategist.end_without_result()
        else:
            strategist.end(result)


@contextlib.contextmanager
def contained() -> Iterator[None]:
    """A block that burnysc2 can be imported and run in: logging and Ctrl-C are as before after it.

    `import sc2.main` replaces every sink of loguru by stdout. In this block it replaces none; where
    loguru was not configured before, warnings and errors go to stderr. Import `sc2.main` in it:

        with understudy.sc2.contained():
            from sc2.main import run_game
    """
    with _kept_interrupt(), _kept_sinks():
        yield


@contextlib.contextmanager
def _kept_interrupt() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if handler is not None and signal.getsignal(signal.SIGINT) is not handler:
            signal.signal(signal.SIGINT, handler)


@contextlib.contextmanager
def _kept_sinks() -> Iterator[None]:
    """Makes loguru ignore `remove` and `add` while `sc2.main` is imported."""
    if "sc2.main" in sys.modules or importlib.util.find_spec("loguru") is None:
        yield
        return
    logger: Any = importlib.import_module("loguru").logger
    with contextlib.suppress(ValueError):  # it was configured: the default sink is gone
        logger.remove(0)
        logger.add(
            sys.stderr, level="WARNING", format="sc2: {message}", backtrace=False, diagnose=False
        )
    logger.remove, logger.add = _ignored, _ignored
    try:
        yield
    finally:
        del logger.remove, logger.add


def _ignored(*arguments: object, **named: object) -> None:
    """Stands for `logger.remove` and `logger.add`."""
