"""A bot that outruns its learner hears of it, and can wait for it; nothing else makes it wait."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from walk.toys import (
    SetClock,
    check_ingested_once,
    episode,
    open_run,
    settings,
    spool_of,
    work_to_the_end,
)
from walk.toys import learner as toy_learner

from understudy import Understudy
from understudy.bot.pace import AHEAD_BATCHES, Pace, PaceName
from understudy.core.errors import ConfigError
from understudy.core.pause import switch_pause
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events as ev

from .minds import journal, mind

BATCH = 2
LIMIT = AHEAD_BATCHES * BATCH


class Beside:
    """A pace with what is around it: a clock that is set, a count, and what was said."""

    def __init__(self, pace: PaceName = "learner") -> None:
        self.clock = SetClock()
        self.buffer = 0
        self.alive = True
        self.paused = 0
        self.said: list[str] = []
        self.taken_in_a_pause = 0
        self.pace = Pace(
            pace,
            batch=BATCH,
            clock=self.clock,
            waiting=lambda: self.buffer,
            alive=lambda: self.alive,
            pause=self._pause,
            say=self.said.append,
        )

    def _pause(self, seconds: float) -> None:
        self.paused += 1
        self.clock.advance(seconds)
        self.buffer = max(0, self.buffer - self.taken_in_a_pause)

    def play(self, matches: int = 1) -> int:
        """Pauses that it took."""
        before = self.paused
        for _ in range(matches):
            self.buffer += 1
            self.pace.match_finished()
        return self.paused - before

    def look(self, buffer: int, *, after_s: float = 5.0) -> int:
        """Messages after one look at a buffer of that size."""
        self.buffer = buffer
        self.clock.advance(after_s)
        self.pace.tick()
        return len(self.said)


# --- saying it -----------------------------------------------------------------------------------


def test_a_backlog_that_grows_is_said_once_a_minute() -> None:
    beside = Beside("free")
    assert beside.look(10 * BATCH) == 0, "that much may gather"
    assert beside.look(300) == 1
    assert "300 matches wait" in beside.said[0] and "pace" in beside.said[0]
    assert [beside.look(400 + 10 * n) for n in range(11)] == [1] * 11
    assert beside.look(1_000) == 2


def test_a_backlog_that_shrinks_is_nobody_elses_business() -> None:
    beside = Beside("free")
    beside.look(0)
    assert beside.look(1_000) == 1
    assert [beside.look(900 - n, after_s=70.0) for n in range(5)] == [1] * 5
    assert beside.look(950, after_s=70.0) == 2


def test_without_a_learner_there_is_nothing_to_outrun() -> None:
    beside = Beside("free")
    beside.alive = False
    assert beside.look(100) == 0 and beside.look(1_000) == 0


def test_a_bot_at_its_own_pace_never_waits() -> None:
    assert Beside("free").play(1_000) == 0


# --- waiting -------------------------------------------------------------------------------------


def test_a_bot_at_the_learners_pace_is_never_far_ahead(tmp_path: Path) -> None:
    """With the real spool and the real learner, which works whenever the bot waits."""
    clock = SetClock()
    folder = open_run(tmp_path, settings(learner__batch_matches=BATCH), clock)
    spool, learner = spool_of(folder), toy_learner(folder)

    def pause(seconds: float) -> None:
        clock.advance(seconds)
        learner.work()

    pace = Pace(
        "learner",
        batch=BATCH,
        clock=clock,
        waiting=lambda: len(spool.pending()),
        alive=lambda: True,
        pause=pause,
        say=pytest.fail,
    )
    for number in range(40):
        spool.put(episode(str(number)))
        pace.match_finished()
        assert len(spool.pending()) <= LIMIT
    assert learner.total_matches >= 40 - LIMIT
    work_to_the_end(learner)
    check_ingested_once(folder, {str(number) for number in range(40)})


def test_a_dead_learner_is_not_waited_for() -> None:
    beside = Beside()
    beside.alive = False
    assert beside.play(100) == 0
    beside.alive = True
    beside.taken_in_a_pause = 5
    assert beside.play() > 0, "once it lives again it is"
    assert beside.buffer <= LIMIT


def test_a_learner_that_dies_meanwhile_is_waited_for_no_longer() -> None:
    beside = Beside()
    beside.play(LIMIT)
    pause = beside.pace._pause

    def dies(seconds: float) -> None:
        pause(seconds)
        beside.alive = False

    beside.pace._pause = dies
    assert beside.play() == 1


def test_a_learner_that_hangs_costs_half_a_minute_once() -> None:
    beside = Beside()
    beside.play(LIMIT)
    began = beside.clock.monotonic()
    beside.play()
    assert beside.clock.monotonic() - began == pytest.approx(30.0, abs=0.1)
    assert len(beside.said) == 1 and "took no match" in beside.said[0]
    assert beside.play(50) == 0 and len(beside.said) == 1
    beside.buffer -= 55  # it took some after all
    beside.taken_in_a_pause = 1
    beside.play(LIMIT)
    assert beside.paused > 0 and beside.buffer <= LIMIT and len(beside.said) == 1


def test_a_slow_learner_costs_half_a_minute_a_match_at_most() -> None:
    beside = Beside()
    beside.buffer, beside.taken_in_a_pause = 1_000_000, 1
    began = beside.clock.monotonic()
    beside.play(2)
    assert beside.clock.monotonic() - began == pytest.approx(60.0, abs=0.1)
    assert beside.said == [], "it is slow, and not stuck"


# --- of a bot ------------------------------------------------------------------------------------


class ToyThread:
    """The real learner without JAX, in a thread of its own."""

    def __init__(self, folder: RunFolder) -> None:
        self._background = toy_learner(folder)
        self._woken, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._woken.wait()
            self._woken.clear()
            while self._background.work(hurry=True):
                pass

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def wake(self) -> None:
        self._woken.set()

    def stop(self, timeout_s: float) -> bool:
        self._stop.set()
        self._woken.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()


def play(bot: Understudy) -> None:
    with bot.match() as match:
        match.decide([0.0, 1.0])
        match.finish("victory")


def bot_with(folder: RunFolder, learner: object) -> Understudy:
    return Understudy(
        folder,
        mode="learn",
        learner=learner,  # type: ignore[arg-type]
        pace="learner",
        result_rewards={},
        seed=1,
    )


def test_finish_waits_for_a_learner_in_a_thread(tmp_path: Path) -> None:
    folder = open_run(tmp_path, settings(learner__batch_matches=BATCH, report__status_every_s=0))
    with bot_with(folder, ToyThread(folder)) as bot:
        for _ in range(30):
            play(bot)
            assert len(spool_of(folder).pending()) <= LIMIT
    assert bot.matches == 30


def test_an_aborted_match_and_a_decision_never_wait(tmp_path: Path) -> None:
    class Hangs:
        @property
        def alive(self) -> bool:
            raise AssertionError("it was waited for")

        def wake(self) -> None:
            pass

        def stop(self, timeout_s: float) -> bool:
            return True

    folder = open_run(tmp_path, settings(learner__batch_matches=BATCH))
    with bot_with(folder, Hangs()) as bot:
        for _ in range(2 * LIMIT):
            with bot.match() as match:
                match.decide([0.0, 1.0])
        with pytest.raises(AssertionError, match="it was waited for"):
            play(bot)


def test_a_paused_learner_is_not_waited_for(tmp_path: Path) -> None:
    class Paused:
        asked = 0

        @property
        def alive(self) -> bool:
            self.asked += 1
            assert self.asked < 100, "it was waited for"
            return True

        def wake(self) -> None:
            pass

        def stop(self, timeout_s: float) -> bool:
            return True

    folder = open_run(tmp_path, settings(learner__batch_matches=BATCH))
    switch_pause(folder.root, paused=True, clock=folder.clock)
    with bot_with(folder, Paused()) as bot:
        for _ in range(2 * LIMIT):
            play(bot)
    assert len(spool_of(folder).pending()) == 2 * LIMIT


def test_a_bot_that_is_closed_waits_no_longer(tmp_path: Path) -> None:
    class Hangs(threading.Event):
        alive = True

        def wake(self) -> None:
            if len(spool_of(folder).pending()) > LIMIT:
                self.set()

        def stop(self, timeout_s: float) -> bool:
            return True

    folder = open_run(tmp_path, settings(learner__batch_matches=BATCH))
    learner = Hangs()
    bot = bot_with(folder, learner)

    def play_on() -> None:
        for _ in range(LIMIT + 1):
            play(bot)

    plays = threading.Thread(target=play_on)
    plays.start()
    learner.wait()
    bot.close()
    plays.join()
    assert bot.matches == LIMIT + 1


def test_a_bot_says_that_it_outruns_its_learner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Hangs:
        alive = True

        def wake(self) -> None:
            pass

        def stop(self, timeout_s: float) -> bool:
            return True

    monkeypatch.setattr("understudy.bot.pace._LOOK_EVERY_S", 0.0)
    folder = open_run(tmp_path, settings(learner__batch_matches=1))
    bot = Understudy(folder, mode="learn", learner=Hangs(), result_rewards={}, seed=1)
    with bot:
        for _ in range(11):
            play(bot)
        bot._tick()
    assert "11 matches wait to be learned from" in capsys.readouterr().err
    assert any(isinstance(event, ev.Note) for event in journal(tmp_path))


def test_a_pace_that_is_none_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"pace: expected one of .*learner"):
        mind(tmp_path, pace="lerner")
