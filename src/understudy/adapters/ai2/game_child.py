"""The process of one game: the tournament's code on one side, a pipe on the other.

    python game_child.py HOME        # with HOME, the checkout, as the working directory

It runs under the Python of the tournament, which need not have Understudy: only NumPy and the
standard library are imported here, in the syntax of Python 3.10. Messages are a length (uint32,
little-endian), a byte that says what follows, and that. Standard output and input are taken away
from the game before it is imported, since it prints; what it prints is lost, errors go to standard
error. The process ends when its parent closes the pipe.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import random
import signal
import struct
import sys
from pathlib import Path
from typing import IO, Any

try:
    import numpy as np
except ImportError as error:
    _missing: ImportError | None = error  # `serve` tells the parent
else:
    _missing = None

HELLO, FAILED, RESET, STEP, STATE = b"H", b"F", b"R", b"S", b"T"
LENGTH = struct.Struct("<I")
RESETTING = struct.Struct("<Q")
"""The seed."""
STEPPING = struct.Struct("<B16s10s16s10s")
"""Frames, and for both slots: the agent of the checkout that decides (empty: the parent does), and
the keys that the parent presses, each 0 or 1."""
STATE_HEAD = struct.Struct("<BI4d")
"""1 terminated + 2 truncated, frames since the reset, stocks of both, damage taken by both."""
VALUES = 128
"""Numbers (float32) after the head: the observations of both slots."""

AGENTS = {
    "constant": "ConstantAgent",
    "random": "RandomAgent",
    "based": "BasedAgent",
    "clockwork": "ClockworkAgent",
}
"""Scripted agents of the tournament, by the names that they have here."""
AGENT_MODULES = ("environment.agent", "user.train_agent")
"""Where they are, by version of the tournament."""
_NEWEST_PYMUNK = 6


class CannotStart(Exception):
    """The game cannot be played: `kind` and `name` tell the parent why."""

    def __init__(self, kind: str, name: str, detail: str) -> None:
        super().__init__(detail)
        self.kind, self.name, self.detail = kind, name, detail


class Game:
    """One game of the checkout, and the scripted agents that play slots of it."""

    def __init__(self) -> None:
        module = _imported("environment.environment")
        _refuse_new_pymunk()
        self._env: Any = module.WarehouseBrawl(
            mode=module.RenderMode.RGB_ARRAY,
            resolution=module.CameraResolution.LOW,
            train_mode=True,
        )
        self._agents: dict[tuple[int, str], Any] = {}
        """Scripted agents of this match, by slot and name."""
        self._obs: dict[int, Any] = {}
        self._frames = 0

    def reset(self, seed: int) -> bytes:
        """A new match. The tournament ignores the seed of `reset`: the global `random` decides."""
        random.seed(seed)
        np.random.seed(seed % 2**32)
        self._env.action_space.seed(seed % 2**31)
        self._obs, _ = self._env.reset(seed=seed)
        self._agents = {}
        self._frames = 0
        return self._state(0)

    def step(self, frames: int, names: tuple[str, str], keys: tuple[Any, Any]) -> bytes:
        """Hold the keys for some frames, or until the match is over. An agent that is named for a
        slot decides there in every frame."""
        flags = 0
        agents = [self._agent(slot, name) if name else None for slot, name in enumerate(names)]
        for _ in range(frames):
            action = {
                slot: keys[slot] if agent is None else agent.predict(self._obs[slot])
                for slot, agent in enumerate(agents)
            }
            self._obs, _, terminated, truncated, _ = self._env.step(action)
            self._frames += 1
            flags = int(bool(terminated)) + 2 * int(bool(truncated))
            if flags:
                break
        return self._state(flags)

    def _agent(self, slot: int, name: str) -> Any:
        """The agent of that name: a new one in every match, since some keep a memory."""
        if (slot, name) in self._agents:
            return self._agents[slot, name]
        for module in filter(_exists, AGENT_MODULES):
            made = getattr(_imported(module), AGENTS[name], None)
            if made is not None:
                agent = self._agents[slot, name] = made()
                agent.get_env_info(self._env)
                return agent
        raise CannotStart("agent", name, f"{AGENTS[name]} is not in {' or '.join(AGENT_MODULES)}")

    def _state(self, flags: int) -> bytes:
        stats = [self._env.get_stats(slot) for slot in (0, 1)]
        head = STATE_HEAD.pack(
            flags,
            self._frames,
            *(float(player.stocks) for player in self._env.players),
            *(float(one.damage_taken) for one in stats),
        )
        values = np.concatenate((self._obs[0], self._obs[1])).astype("<f4")
        if values.size != VALUES:
            raise CannotStart("observation", str(values.size // 2), "an observation has 64 numbers")
        return head + values.tobytes()


def read(pipe: IO[bytes]) -> bytes | None:
    """The next message, or None where the other side has closed the pipe."""
    head = pipe.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    body = pipe.read(length)
    return body if len(body) == length else None


def write(pipe: IO[bytes], kind: bytes, body: bytes = b"") -> None:
    """Send one message."""
    pipe.write(LENGTH.pack(1 + len(body)) + kind + body)
    pipe.flush()


def serve(inbound: IO[bytes], outbound: IO[bytes]) -> None:
    """Make the game, then answer until the pipe is closed."""
    if _missing is not None:
        raise CannotStart("library", "numpy", str(_missing))
    game = Game()
    write(outbound, HELLO, json.dumps({"python": sys.version.split()[0]}).encode())
    while True:
        message = read(inbound)
        if message is None:
            return
        kind, body = message[:1], message[1:]
        if kind == RESET:
            answer = game.reset(*RESETTING.unpack(body))
        else:
            frames, one, keys_one, two, keys_two = STEPPING.unpack(body)
            names = _name(one), _name(two)
            answer = game.step(frames, names, (_keys(keys_one), _keys(keys_two)))
        write(outbound, STATE, answer)


def _name(padded: bytes) -> str:
    return padded.rstrip(b"\0").decode()


def _keys(pressed: bytes) -> Any:
    return np.frombuffer(pressed, np.uint8).astype(np.float32)


def _exists(name: str) -> bool:
    """Whether the checkout has a module of this name."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # not even its package
        return False


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        _refuse_new_pymunk()
        raise CannotStart("library", error.name or name, str(error)) from error


def _refuse_new_pymunk() -> None:
    """The tournament calls what pymunk 7 has removed; say so before it fails somewhere else."""
    pymunk = sys.modules.get("pymunk")
    version = str(getattr(pymunk, "version", "0"))
    if int(version.partition(".")[0]) > _NEWEST_PYMUNK:
        raise CannotStart("pymunk", version, f"pymunk {version} is installed")


def main() -> int:
    home = sys.argv[1]
    own = Path(__file__).resolve().parent  # where PYTHONSAFEPATH is set, it is not there
    sys.path[:] = [home, *(one for one in sys.path if Path(one).resolve() != own)]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's affair
    inbound = os.fdopen(os.dup(0), "rb")
    outbound = os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "r+b") as nothing:  # noqa: PTH123 - Python 3.10 and no pathlib needed
        os.dup2(nothing.fileno(), 0)
        os.dup2(nothing.fileno(), 1)
    try:
        serve(inbound, outbound)
    except CannotStart as error:
        failure = {"kind": error.kind, "name": error.name, "detail": error.detail}
        write(outbound, FAILED, json.dumps(failure).encode())
        return 1
    except BrokenPipeError:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
