"""One game of the tournament in a process of its own, seen from the parent.

The game draws from the global `random`, needs its checkout as the working directory, and prints: a
process keeps all three away from the caller, and from other games. If it dies, the next `reset`
starts another; a game that dies again and again is an error. A game that does not answer for a
minute is killed, so that it counts as dead.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
import numpy as np

from understudy.adapters.ai2 import game_child
from understudy.adapters.ai2.checkout import Checkout
from understudy.adapters.ai2.layout import FEATURES, KEYS, MatchStanding
from understudy.core.arrays import NDArray
from understudy.core.errors import (
    ConfigError,
    InputError,
    MissingDependency,
    UnderstudyError,
    nearest,
)

AGENTS = tuple(game_child.AGENTS)
"""The tournament's scripted agents."""
_DEATHS = 3
"""Deaths in a row, without a whole match between them, that are an error."""
_CLOSING_S = 5.0
_ANSWER_S = 60.0
"""A step takes milliseconds, a start seconds: after this, a game hangs."""
_LAST_LINES = 3


class GameDied(UnderstudyError):
    """The process of a game is gone; what it was playing is lost."""


class AgentAction(NDArray):
    """An action that lets a scripted agent of the tournament decide, in every frame of it.

    It is an array of keys that are not pressed, so that it passes wherever an action does.
    """

    agent: str
    """Empty: an array that was computed from one, keys like any other."""

    def __array_finalize__(self, source: Any) -> None:
        """Copies and views name the same agent."""
        self.agent = getattr(source, "agent", "")

    def __new__(cls, agent: str) -> AgentAction:
        """`agent` is one of `AGENTS`."""
        if agent not in AGENTS:
            raise ConfigError(
                f"ai2: opponent: expected one of {', '.join(AGENTS)}, got {agent!r}."
                + nearest(agent, AGENTS)
            )
        action = np.zeros(len(KEYS), np.int8).view(cls)
        action.agent = agent
        return action


class GameState(NamedTuple):
    """A moment of a match."""

    obs: NDArray
    """float32 [2, 64], by slot"""
    standing: MatchStanding
    frames: int
    """Since the match began."""
    over: bool


class _Failure(msgspec.Struct):
    kind: str
    name: str
    detail: str


class _Watch:
    """Kills a process that leaves a question without an answer for too long."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.asked_at: float | None = None
        """None: no answer is due."""
        self.hung = False
        self._process = process
        threading.Thread(target=self._look, name="ai2-watch", daemon=True).start()

    def _look(self) -> None:
        while True:
            try:
                self._process.wait(min(1.0, _ANSWER_S))
                return
            except subprocess.TimeoutExpired:
                asked_at = self.asked_at
            if asked_at is not None and time.monotonic() - asked_at > _ANSWER_S:
                self.hung = True
                self._process.kill()
                return


class GameProcess:
    """Plays one match after the other: `reset`, then `step` until it is over."""

    def __init__(self, checkout: Checkout) -> None:
        self.checkout = checkout
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._watch: _Watch | None = None
        self._end: weakref.finalize[..., GameProcess] | None = None
        self._deaths = 0

    @property
    def pid(self) -> int | None:
        """Of the process, where one runs."""
        return self._process.pid if self._process else None

    def reset(self, seed: int) -> GameState:
        """A new match, in a new process if there is none."""
        while True:
            try:
                if self._process is None:
                    self._start()
                self._forget_errors()
                self._send(game_child.RESET, game_child.RESETTING.pack(seed))
                return self.state()
            except GameDied as error:
                if self._deaths >= _DEATHS:
                    raise GameDied(
                        f"{error}; that was process {self._deaths} in a row that died"
                    ) from error

    def send_step(self, frames: int, actions: Sequence[NDArray]) -> None:
        """Hold the keys of both slots, each [10] of 0 and 1, for some frames; `state` is the
        answer. An `AgentAction` lets an agent of the tournament decide for its slot.

        Between the two calls the game plays, and the caller may start others. InputError: an
        action is something else, and nothing was sent.
        """
        fields: list[bytes] = []
        for slot, action in enumerate(actions):
            name = action.agent if isinstance(action, AgentAction) else ""
            fields += [name.encode(), _pressed(slot, action)]
        self._send(game_child.STEP, game_child.STEPPING.pack(frames, *fields))

    def state(self) -> GameState:
        """The answer to the last message."""
        body = self._receive(game_child.STATE)
        head = game_child.STATE_HEAD
        flags, frames, *numbers = head.unpack_from(body)
        one, two, hurt_one, hurt_two = numbers
        if flags:
            self._deaths = 0
        obs = np.frombuffer(body, "<f4", offset=head.size).astype(np.float32)
        return GameState(
            obs.reshape(2, len(FEATURES)),
            MatchStanding((one, two), (hurt_one, hurt_two)),
            frames,
            bool(flags),
        )

    def close(self) -> None:
        """End the process; the next `reset` starts another."""
        self._process = self._errors = None
        if self._end is not None:
            self._end()

    def _start(self) -> None:
        checkout = self.checkout
        self._errors = errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `_end`
        try:
            self._process = process = subprocess.Popen(
                [checkout.python, str(Path(game_child.__file__)), str(checkout.home)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                cwd=checkout.home,
                env=_child_environment(checkout.python),
            )
        except OSError as error:
            errors.close()
            raise ConfigError(
                f"--option python: {checkout.python} cannot be started "
                f"({error.strerror or error}); expected a Python"
            ) from error
        self._watch = _Watch(process)
        # Libraries forget environments without closing them.
        self._end = weakref.finalize(self, _end, process, errors)
        self._receive(game_child.HELLO)

    def _forget_errors(self) -> None:
        """Empty what earlier matches wrote to standard error: some games write in every frame."""
        if self._errors is not None:
            self._errors.seek(0)  # the process writes at the same position
            self._errors.truncate()

    def _send(self, kind: bytes, body: bytes) -> None:
        if self._process is None or self._process.stdin is None:
            raise GameDied("ai2: there is no game: reset the environment first")
        try:
            game_child.write(self._process.stdin, kind, body)
        except OSError as error:
            raise self._died() from error

    def _receive(self, kind: bytes) -> bytes:
        if self._process is None or self._process.stdout is None or self._watch is None:
            raise GameDied("ai2: there is no game: reset the environment first")
        self._watch.asked_at = time.monotonic()
        message = game_child.read(self._process.stdout)
        self._watch.asked_at = None
        if message is None:
            raise self._died()
        if message[:1] == game_child.FAILED:
            failure = msgspec.json.decode(message[1:], type=_Failure)
            self.close()
            raise _refusal(failure, self.checkout)
        if message[:1] != kind:
            raise self._died()
        return message[1:]

    def _died(self) -> GameDied:
        """The error for a process that is gone, with the last that it wrote to standard error."""
        process, errors = self._process, self._errors
        how = "without a word"
        if process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_CLOSING_S)
            code = process.returncode
            how = f"by signal {-code}" if code is not None and code < 0 else f"with code {code}"
            if self._watch is not None and self._watch.hung:
                how = f"after {_ANSWER_S:g} seconds without an answer: it was killed"
        last = ""
        if errors is not None:
            errors.seek(0)
            lines = errors.read().decode("utf-8", "replace").strip().splitlines()
            last = " | ".join(line.strip() for line in lines[-_LAST_LINES:])
        self.close()
        self._deaths += 1
        return GameDied(f"ai2: the process of a game ended {how}" + (f": {last}" if last else ""))


def _pressed(slot: int, action: Any) -> bytes:
    """An action [10] of 0 and 1 as bytes; `InputError` for anything else."""
    keys = np.asarray(action)
    # A set of ten numbers is compared in a tenth of the time of two arrays.
    if keys.shape != (len(KEYS),) or not set(keys.tolist()) <= {0, 1}:
        raise InputError(
            f"ai2: the action of player_{slot}: expected {len(KEYS)} keys, each 0 or 1, "
            f"got {action!r}"
        )
    return keys.astype(np.uint8).tobytes()


def _end(process: subprocess.Popen[bytes], errors: IO[bytes]) -> None:
    with contextlib.suppress(OSError):
        if process.stdin:
            process.stdin.close()  # the child ends by itself
    try:
        process.wait(_CLOSING_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout:
        process.stdout.close()
    errors.close()


def _child_environment(python: str) -> dict[str, str]:
    """Without a window, and one maths thread: games run side by side. Paths that are for this
    Python are kept from another one, whose libraries they would hide."""
    ours = () if python == sys.executable else ("PYTHONPATH", "PYTHONHOME")
    return {
        **{name: value for name, value in os.environ.items() if name not in ours},
        "SDL_VIDEODRIVER": "dummy",
        "SDL_AUDIODRIVER": "dummy",
        "PYGAME_HIDE_SUPPORT_PROMPT": "1",
        "MPLBACKEND": "Agg",
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _refusal(failure: _Failure, checkout: Checkout) -> UnderstudyError:
    where = f"ai2: {checkout.home}"
    choice = "or name the Python that has its libraries with --option python=PATH"
    if failure.kind == "pymunk":
        return MissingDependency(
            f"{where} needs pymunk before version 7, and {checkout.python} has {failure.name}: "
            f'pip install "pymunk<7" there, {choice}'
        )
    if failure.kind == "library":
        return MissingDependency(
            f"{where} needs {failure.name}, which {checkout.python} does not have "
            f"({failure.detail}): install the tournament's requirements there, {choice}"
        )
    if failure.kind == "agent":
        return ConfigError(f"{where} has no agent {failure.name!r}: {failure.detail}")
    return ConfigError(
        f"{where}: {failure.detail}, this one has {failure.name}: another version of the "
        f"tournament? {len(FEATURES)} features and the {len(KEYS)} keys are what fits"
    )
