"""Plays the bot: against StarCraft II, against its stand-in, or where a ladder starts it.

    python run.py                                  # StarCraft II on this machine
    python run.py --stand-in                       # a small game instead, where it is not installed
    python run.py --GamePort 5000 --LadderServer 127.0.0.1 --StartPort 5100 --OpponentId some-id

Your rules play, a policy learns beside the game, and takes over once its results show that it is
better (mode auto). All that it learns is in the run folder: `understudy status --run FOLDER`.
On a ladder matches are recorded in `data/`, and learned from later: `understudy import`.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import os
import sys
from pathlib import Path
from typing import Any

from understudy import Understudy, UnderstudyError
from understudy.sc2 import (
    FEATURES,
    LadderArguments,
    contained,
    ladder_arguments,
    ladder_run,
    play,
    play_async,
)

try:
    with contained():
        import aiohttp
        from sc2 import maps
        from sc2.data import Difficulty, Race, Result
        from sc2.main import play_from_websocket, run_game
        from sc2.paths import BASEDIR, PF
        from sc2.player import Bot, Computer, Human
        from sc2.portconfig import Portconfig
except ModuleNotFoundError as error:
    sys.exit(f"run.py: {error}; install burnysc2 first: {sys.executable} -m pip install burnysc2")

from understudy.adapters.sc2.template.bot import STRATEGIES, LearningBot

HERE = Path(__file__).resolve().parent
RACE = Race.Zerg
NO_PORTS: Any = None
"""Against the game's own AI no ports are shared."""
RULES = "1"
"""The version of your rules. Change it whenever you change them, so that the results of the old
rules no longer count for the new ones."""


def main() -> None:
    """Reads the command line, and plays."""
    ladder, others = ladder_arguments(sys.argv[1:])
    options = parse(others)
    # burnysc2 makes thousands of objects in a step, and leaves megabytes in cycles after a match.
    gc.set_threshold(20_000, 20, 1)
    try:
        if ladder is not None:
            asyncio.run(play_ladder_match(ladder, options))
        elif options.stand_in:
            asyncio.run(play_stand_in(options))
        else:
            play_games(options)
    except KeyboardInterrupt:
        folder = run_folder(options, ladder=ladder is not None)
        print(f"{HERE.name}: stopped; every match is kept in {folder}", file=sys.stderr)
        sys.exit(130)
    except UnderstudyError as error:
        sys.exit(f"{HERE.name}: {error}")


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options, as far as they fit each other."""
    options = parser().parse_args(arguments)
    if options.stand_in and (options.map or options.difficulty):
        parser().error("--map and --difficulty are of StarCraft II: they do not go with --stand-in")
    options.map = options.map or "AcropolisLE"
    options.difficulty = options.difficulty or "Hard"
    return options


def parser() -> argparse.ArgumentParser:
    """The options of this program; those of a ladder come beside them."""
    found = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument("--stand-in", action="store_true", help="a small game, not StarCraft II")
    found.add_argument("--matches", type=count, default=0, help="how many; default: until Ctrl-C")
    found.add_argument("--map", help="of StarCraft II: one in its Maps/; default: AcropolisLE")
    found.add_argument(
        "--difficulty",
        metavar="NAME",
        choices=[one.name for one in Difficulty],
        help="of StarCraft II's own AI: %(choices)s; default: Hard",
    )
    found.add_argument("--realtime", action="store_true")
    found.add_argument("--run", type=Path, help=f"the run folder; default: runs/{HERE.name}")
    found.add_argument("--mode", default="auto", choices=["shadow", "auto", "learn", "play"])
    found.add_argument(
        "--learner", default="process", choices=["process", "off"], help="off: record only"
    )
    found.add_argument("--seed", type=count, help="of the stand-in's matches, and of exploration")
    return found


def count(text: str) -> int:
    """A whole number that is not negative, from the command line."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number, 0 or more, got {text!r}")
    return int(text)


def run_folder(options: argparse.Namespace, *, ladder: bool = False) -> Path:
    """Where all that is played and learned is kept."""
    named: Path | None = options.run
    return named or (ladder_run(HERE) if ladder else Path("runs") / HERE.name)


def mind_of(options: argparse.Namespace, *, ladder: bool = False) -> Understudy:
    """Opens the run folder; on a ladder, where nothing may be started, without a learner."""
    return Understudy.open(
        run_folder(options, ladder=ladder),
        features=FEATURES,
        actions=STRATEGIES,
        mode=options.mode,
        learner="off" if ladder else options.learner,
        rules=RULES,
        seed=options.seed,
    )


def play_games(options: argparse.Namespace) -> None:
    """Matches of StarCraft II on this machine."""
    found = Path(os.environ.get("SC2PATH") or BASEDIR[PF]).expanduser()
    if not (found / "Versions").is_dir():
        sys.exit(
            f"{HERE.name}: StarCraft II is not in {found}. Install it, or set SC2PATH to its "
            "folder; or play its stand-in: run.py --stand-in"
        )
    try:
        chosen = maps.get(options.map)
    except (KeyError, OSError):
        there = ", ".join(sorted(one.stem for one in (found / "Maps").rglob("*.SC2Map"))) or "none"
        sys.exit(
            f"{HERE.name}: --map: {options.map} is not in {found / 'Maps'} (there: {there}); "
            "put it there, or name another"
        )
    with mind_of(options) as mind:
        for number in numbers(options):
            bot = LearningBot(mind, opponent=f"built-in {options.difficulty}")
            players: list[Human | Bot | Computer] = [
                Bot(RACE, bot),
                Computer(Race.Random, Difficulty[options.difficulty]),
            ]
            result = play(lambda: run_game(chosen, players, options.realtime), bot.strategist)  # noqa: B023
            tell(number, bot, result)


async def play_stand_in(options: argparse.Namespace) -> None:
    """Matches of the stand-in, in this process."""
    from understudy.sc2 import stand_in

    socket = stand_in.local_socket(stand_in.Scenario(seed=options.seed))
    with mind_of(options) as mind:
        for number in numbers(options):
            bot = LearningBot(mind, opponent="stand-in")
            player = Bot(RACE, bot)
            game = play_from_websocket(
                socket, player, options.realtime, NO_PORTS, should_close=False
            )
            result = await play_async(game, bot.strategist)
            tell(number, bot, result)


async def play_ladder_match(ladder: LadderArguments, options: argparse.Namespace) -> None:
    """One match on a ladder, which has started the game."""
    ports = NO_PORTS
    if ladder.start_port is not None:
        first = ladder.start_port
        ports = Portconfig(
            server_ports=[first + 2, first + 3], player_ports=[[first + 4, first + 5]]
        )
    with mind_of(options, ladder=True) as mind:
        bot = LearningBot(mind, opponent=ladder.opponent, game_step=4)
        async with aiohttp.ClientSession() as session:
            try:
                socket = await session.ws_connect(ladder.address, max_msg_size=0)
            except (aiohttp.ClientError, OSError) as error:
                sys.exit(f"{HERE.name}: no game answers at {ladder.address}: {error}")
            game = play_from_websocket(socket, Bot(RACE, bot), ladder.realtime, ports)
            result = await play_async(game, bot.strategist)
        tell(1, bot, result)


def numbers(options: argparse.Namespace) -> range | itertools.count[int]:
    """The numbers of the matches to play."""
    return range(1, options.matches + 1) if options.matches > 0 else itertools.count(1)


def tell(number: int, bot: LearningBot, result: Result | list[Result | None] | None) -> None:
    """One line for each match."""
    match = bot.strategist.match
    if match is None or match.outcome is None:
        print(f"match {number}: the game did not begin", flush=True)
        return
    player = "rules" if match.version == 0 else f"version {match.version}"
    print(f"match {number}: {match.outcome}, {match.decisions} decisions, {player}", flush=True)


if __name__ == "__main__":
    main()
