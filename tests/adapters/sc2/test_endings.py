"""Every way in which a match of StarCraft II ends, through burnysc2, and what is kept of it."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sc2")

from adapters.sc2.ducks import episodes, open_mind
from adapters.sc2.matches import PassiveBot, play_match
from understudy.experience.episode import Episode, Outcome
from understudy.sc2 import TIME_LIMIT_LOOPS, contained, play, play_async, stand_in

Scenario = stand_in.Scenario


def ended(run: Path, scenario: Any, **options: Any) -> tuple[object, PassiveBot, list[Episode]]:
    """Plays one match: what the call returned or raised, the bot, and what was kept."""
    how = {name: options.pop(name) for name in ("realtime", "limit_s", "race") if name in options}
    with open_mind(run) as mind:
        bot = PassiveBot(mind, **options)
        result: object
        try:
            result = asyncio.run(play_match(bot, bot.strategist, scenario, **how))
        except RuntimeError as error:
            result = error
    return result, bot, episodes(run)


def names(results: list[Any]) -> list[str]:
    return [one.name for one in results]


@pytest.mark.parametrize("realtime", [False, True])
def test_a_match_to_its_end(tmp_path: Path, realtime: bool) -> None:
    result, bot, kept = ended(tmp_path, Scenario(seed=3, build="Rush"), realtime=realtime)
    assert getattr(result, "name", "") == "Defeat"
    assert names(bot.ended) == ["Defeat"]
    assert [one.meta.outcome for one in kept] == [Outcome.DEFEAT]
    assert len(kept[0]) == kept[0].observations.shape[0] > 5
    assert kept[0].rewards[-1] == -5.0


def test_the_time_limit_of_the_call_is_a_tie(tmp_path: Path) -> None:
    result, bot, kept = ended(tmp_path, Scenario(peaceful=True), limit_s=30)
    assert getattr(result, "name", "") == "Tie"
    assert names(bot.ended) == ["Tie"]
    assert [one.meta.outcome for one in kept] == [Outcome.TIE]


def test_a_surrender_is_a_defeat(tmp_path: Path) -> None:
    def surrender(bot: PassiveBot) -> Any:
        return bot.client.leave() if bot.state.game_loop > 300 else None

    result, bot, kept = ended(tmp_path, Scenario(peaceful=True), stepping=surrender)
    assert getattr(result, "name", "") == "Defeat"
    assert names(bot.ended) == ["Defeat"]
    assert [one.meta.outcome for one in kept] == [Outcome.DEFEAT]


def test_an_exception_in_on_start_leaves_nothing_to_keep(tmp_path: Path) -> None:
    def fail(bot: PassiveBot) -> None:
        raise RuntimeError("no plan")

    result, bot, kept = ended(tmp_path, Scenario(), starting=fail)
    assert getattr(result, "name", "") == "Defeat"
    assert names(bot.ended) == ["Defeat"]
    assert kept == [], "nothing was decided"


@pytest.mark.parametrize("loop", [400, 4000])
def test_a_closed_socket_is_an_aborted_match(tmp_path: Path, loop: int) -> None:
    result, bot, kept = ended(tmp_path, Scenario(peaceful=True, closes_at=loop))
    assert result is None
    assert bot.ended == [], "burnysc2 does not call on_end"
    assert [one.meta.outcome for one in kept] == [Outcome.ABORTED]
    assert len(kept[0]) == (loop - 1) // 88 + 1, "every decision is kept"


@pytest.mark.parametrize("game_step", [100, 1000])
def test_a_socket_that_closes_at_the_ladders_limit_is_a_tie(tmp_path: Path, game_step: int) -> None:
    scenario = Scenario(peaceful=True, closes_at=TIME_LIMIT_LOOPS)
    result, bot, kept = ended(tmp_path, scenario, game_step=game_step)
    assert result is None
    assert bot.ended == []
    assert [one.meta.outcome for one in kept] == [Outcome.TIE]


def test_a_socket_that_closes_a_minute_before_the_limit_is_no_tie(tmp_path: Path) -> None:
    scenario = Scenario(peaceful=True, closes_at=TIME_LIMIT_LOOPS - 1344)
    _, _, kept = ended(tmp_path, scenario, game_step=440)
    assert [one.meta.outcome for one in kept] == [Outcome.ABORTED]


def test_an_exception_in_a_step_is_an_aborted_match_and_rises(tmp_path: Path) -> None:
    def fail(bot: PassiveBot) -> None:
        if bot.state.game_loop > 300:
            raise RuntimeError("a bug of the bot")

    result, bot, kept = ended(tmp_path, Scenario(peaceful=True), stepping=fail)
    assert isinstance(result, RuntimeError)
    assert str(result) == "a bug of the bot"
    assert bot.ended == []
    assert [one.meta.outcome for one in kept] == [Outcome.ABORTED]
    assert len(kept[0]) == 5


def test_a_bot_that_forgets_to_end_its_match_keeps_the_result(tmp_path: Path) -> None:
    class Forgetful(PassiveBot):
        async def on_end(self, game_result: object) -> None:
            pass

    with open_mind(tmp_path) as mind:
        bot = Forgetful(mind)
        scenario = Scenario(seed=3, build="Rush")
        asyncio.run(play_match(bot, bot.strategist, scenario))
    assert [one.meta.outcome for one in episodes(tmp_path)] == [Outcome.DEFEAT]


def test_a_lost_connection_that_burnysc2_lets_rise(tmp_path: Path) -> None:
    async def lost() -> None:
        raise ConnectionResetError("Cannot write to closing transport")

    def lost_too() -> None:
        raise ConnectionResetError("Cannot write to closing transport")

    with open_mind(tmp_path) as mind:
        for number in range(2):
            bot = PassiveBot(mind)
            bot.strategist.start()
            _decide(bot)
            if number:
                assert asyncio.run(play_async(lost(), bot.strategist)) is None
            else:
                assert play(lost_too, bot.strategist) is None
    assert [one.meta.outcome for one in episodes(tmp_path)] == [Outcome.ABORTED] * 2


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError, ConnectionError])
def test_whatever_ends_the_call_the_match_is_kept(
    tmp_path: Path, error: type[BaseException]
) -> None:
    def interrupted() -> None:
        raise error

    with open_mind(tmp_path) as mind:
        bot = PassiveBot(mind)
        bot.strategist.start()
        _decide(bot)
        with pytest.raises(error):
            play(interrupted, bot.strategist)
    assert [one.meta.outcome for one in episodes(tmp_path)] == [Outcome.ABORTED]


def test_results_of_several_matches_go_to_their_bots(tmp_path: Path) -> None:
    from sc2.data import Race, Result
    from sc2.player import Bot

    with open_mind(tmp_path) as mind:
        bots = [PassiveBot(mind) for _ in range(3)]
        players = [Bot(Race.Zerg, bot) for bot in bots]
        for bot in bots:
            bot.strategist.start()
            _decide(bot)
        found: list[dict[object, object]] = [
            {players[0]: Result.Victory},
            {players[1]: RuntimeError("it crashed")},
        ]
        play(lambda: found, *(bot.strategist for bot in bots))
        outcomes = [bot.strategist.match.outcome for bot in bots if bot.strategist.match]
    assert outcomes == [Outcome.VICTORY, Outcome.ABORTED, Outcome.ABORTED]


def test_ctrl_c_has_its_handler_after_the_call() -> None:
    def handler(number: int, frame: object) -> None:
        raise AssertionError

    before = signal.signal(signal.SIGINT, handler)
    try:
        play(lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


_LOGS = """
import sys
import loguru
if "configured" in sys.argv:
    loguru.logger.remove()
    loguru.logger.add(sys.stderr, format="MINE {message}", level="INFO")
from understudy.sc2 import contained
with contained():
    import sc2.main
loguru.logger.info("a word")
loguru.logger.warning("a warning")
"""


@pytest.mark.parametrize("configured", [False, True])
def test_importing_burnysc2_leaves_stdout_and_your_log_alone(configured: bool) -> None:
    import subprocess

    arguments = ["configured"] if configured else []
    done = subprocess.run(
        [sys.executable, "-c", _LOGS, *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == ""
    mine = ["MINE a word", "MINE a warning"]
    assert done.stderr.splitlines() == (mine if configured else ["sc2: a warning"])


def test_the_adapter_does_not_import_burnysc2() -> None:
    import subprocess

    code = "import sys, understudy.sc2; print('sc2' in sys.modules, 'loguru' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"


def _decide(bot: PassiveBot) -> None:
    """One decision of a bot outside of a match."""
    from adapters.sc2.ducks import DuckBot

    bot.strategist.bot = DuckBot()
    bot.strategist.step(fallback="TECH")
    bot.strategist.bot = bot


def test_contained_is_harmless_in_a_thread() -> None:
    import threading

    failed: list[BaseException] = []

    def work() -> None:
        try:
            with contained():
                pass
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert failed == []
