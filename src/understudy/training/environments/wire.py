"""Messages between a session and its workers: JSON, then bytes; arrays as `.npz`, never pickled.

A message is two lengths (of the JSON and of what follows it), the JSON, and the bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import IO, TypeAlias

import msgspec

from understudy.adapters.environments.parallel import Finished
from understudy.adapters.environments.sides import joined
from understudy.core.arrays import NDArray, from_npz, to_npz
from understudy.core.ops import Tree, mapped
from understudy.policy.policy import Policy
from understudy.training.environments.plan import RolloutPlan
from understudy.training.environments.rollout import ColumnMatch, OpponentOrder, Played

__all__ = ["Answer", "Broken", "Failed", "Message", "Play", "Start", "joined", "receive", "send"]

_LENGTHS = struct.Struct("<IQ")
_MEMORY = "memory."


class Broken(Exception):
    """The other side ended in the middle of a message, or sent something else."""


class Start(msgspec.Struct, frozen=True, kw_only=True, tag="start"):
    """The first message to a worker: what to play."""

    plan: RolloutPlan
    numbers: list[int]
    restarts: int = 0


class Play(msgspec.Struct, frozen=True, kw_only=True, tag="play"):
    """Play a segment. The bytes are the weights of the policy, then those of new snapshots."""

    steps: int
    gamma: float
    order: OpponentOrder | None
    snapshots: tuple[str, ...]
    sizes: tuple[int, ...]
    """Of each of them, in bytes."""


class Answer(msgspec.Struct, frozen=True, kw_only=True, tag="played"):
    """A segment; the bytes are its arrays."""

    finished: list[tuple[int, float, int, tuple[float, ...], bool, int, str]]
    """number, reward, steps, sides, alike; side and opponent"""
    started: list[tuple[int, str]]


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    """An error of the environment or of a bot, in words; the worker has ended."""

    message: str


Message: TypeAlias = Start | Play | Answer | Failed


def send(pipe: IO[bytes], message: Message, body: bytes = b"") -> None:
    """Write a message whole."""
    head = msgspec.json.encode(message)
    pipe.write(_LENGTHS.pack(len(head), len(body)) + head)
    pipe.write(body)
    pipe.flush()


def receive(pipe: IO[bytes]) -> tuple[Message, bytes] | None:
    """The next message; None where the other side has ended."""
    lengths = pipe.read(_LENGTHS.size)
    if not lengths:
        return None
    if len(lengths) < _LENGTHS.size:
        raise Broken("cut short")
    head_size, body_size = _LENGTHS.unpack(lengths)
    head, body = pipe.read(head_size), pipe.read(body_size)
    if len(head) < head_size or len(body) < body_size:
        raise Broken("cut short")
    try:
        return msgspec.json.decode(head, type=Message), body
    except msgspec.MsgspecError as error:
        raise Broken(str(error)) from error


def answer_of(played: Played) -> tuple[Answer, bytes]:
    """A segment as a message."""
    arrays = dict(played.arrays)
    for index, leaf in enumerate(_leaves(played.memory)):
        arrays[f"{_MEMORY}{index}"] = leaf
    finished = [(one.number, *one.finished, one.side, one.opponent) for one in played.finished]
    return Answer(finished=finished, started=played.started), to_npz(arrays)


def played_of(answer: Answer, body: bytes, policy: Policy) -> Played:
    """The other way round; `policy` is the one that played."""
    arrays = from_npz(body, what="a worker's segment")
    leaves = iter([arrays.pop(name) for name in list(arrays) if name.startswith(_MEMORY)])
    memory = mapped(lambda leaf: next(leaves), policy.begin(1))
    finished = [
        ColumnMatch(number, Finished(reward, steps, tuple(sides), alike), side, opponent)
        for number, reward, steps, sides, alike, side, opponent in answer.finished
    ]
    return Played(arrays, memory, finished, [(one[0], one[1]) for one in answer.started])


def split(body: bytes, sizes: Sequence[int]) -> list[bytes]:
    """Bytes that were sent one after the other."""
    parts, start = [], 0
    for size in sizes:
        parts.append(body[start : start + size])
        start += size
    return parts


def _leaves(tree: Tree) -> list[NDArray]:
    """The arrays of a tree, in the order of `mapped`."""
    found: list[NDArray] = []

    def note(leaf: NDArray) -> NDArray:
        found.append(leaf)
        return leaf

    mapped(note, tree)
    return found
