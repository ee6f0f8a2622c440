"""Messages between a session and its workers: JSON, then bytes; arrays as `.npz`, never pickled.

Through a pipe a message is lengths (of the JSON, how many bodies follow, and of each of them), the
JSON, and the bodies. A Ray actor takes the same JSON and bodies as arguments.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import IO, TypeAlias

import msgspec

from understudy.adapters.environments.matches import FrozenMatch
from understudy.adapters.environments.parallel import Finished
from understudy.core.arrays import NDArray, from_npz, to_npz
from understudy.core.ops import Tree, mapped
from understudy.policy.policy import Policy
from understudy.workers.plan import RolloutPlan
from understudy.workers.rollout import ColumnMatch, OpponentOrder, Played
from understudy.workers.series import SeriesPlan, SideKind

_LENGTHS = struct.Struct("<IH")
_SIZE = struct.Struct("<Q")
_MEMORY = "memory."


class Broken(Exception):
    """The other side ended in the middle of a message, or sent something else."""


class Start(msgspec.Struct, frozen=True, kw_only=True, tag="start"):
    """The first message to a worker. `WorkerReady` answers it, once its environments are made."""

    plan: RolloutPlan | None = None
    """What to play segments of; None: it is only asked for series."""
    numbers: list[int] = []
    restarts: int = 0


class Play(msgspec.Struct, frozen=True, kw_only=True, tag="play"):
    """Play a segment. The bodies are the weights of the policy, then those of new snapshots."""

    steps: int
    gamma: float
    order: OpponentOrder | None
    snapshots: tuple[str, ...]


class PlaySeries(msgspec.Struct, frozen=True, kw_only=True, tag="series"):
    """Play some environments of a series of frozen matches. The bodies are the weights of its
    policies: of the judged side, of the others."""

    plan: SeriesPlan
    numbers: list[int]
    judged: SideKind
    other: SideKind | None
    """None: the judged one plays all sides."""


class WorkerReady(msgspec.Struct, frozen=True, kw_only=True, tag="ready"):
    """A worker that waits for work."""

    pid: int
    host: str = ""
    """The machine, where workers may be on several."""


class Answer(msgspec.Struct, frozen=True, kw_only=True, tag="played"):
    """A segment; the body is its arrays."""

    finished: list[tuple[int, float, int, tuple[float, ...], bool, int, str]]
    """number, reward, steps, sides, alike; side and opponent"""
    started: list[tuple[int, str]]
    seconds: float = 0.0
    """How long it took to play."""


class SeriesAnswer(msgspec.Struct, frozen=True, kw_only=True, tag="series played"):
    """Frozen matches, by environment."""

    matches: list[list[tuple[float, int, tuple[float, ...], bool, int, bytes]]]
    """reward, steps, sides, alike; side and path"""


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    """An error of the environment or of a bot, in words; the worker has ended."""

    message: str


Message: TypeAlias = Start | Play | PlaySeries | WorkerReady | Answer | SeriesAnswer | Failed


def encode(message: Message) -> bytes:
    return msgspec.json.encode(message)


def decode(head: bytes) -> Message:
    try:
        message: Message = msgspec.json.decode(head, type=Message)
    except msgspec.MsgspecError as error:
        raise Broken(str(error)) from error
    return message


def send(pipe: IO[bytes], message: Message, bodies: Sequence[bytes] = ()) -> None:
    """Write a message whole."""
    head = encode(message)
    pipe.write(_LENGTHS.pack(len(head), len(bodies)))
    pipe.write(b"".join(_SIZE.pack(len(body)) for body in bodies) + head)
    for body in bodies:
        pipe.write(body)
    pipe.flush()


def receive(pipe: IO[bytes]) -> tuple[Message, list[bytes]] | None:
    """The next message; None where the other side has ended."""
    lengths = pipe.read(_LENGTHS.size)
    if not lengths:
        return None
    if len(lengths) < _LENGTHS.size:
        raise Broken("cut short")
    head_size, count = _LENGTHS.unpack(lengths)
    sizes = [_SIZE.unpack(_read(pipe, _SIZE.size))[0] for _ in range(count)]
    head = _read(pipe, head_size)
    return decode(head), [_read(pipe, size) for size in sizes]


def _read(pipe: IO[bytes], size: int) -> bytes:
    data = pipe.read(size)
    if len(data) < size:
        raise Broken("cut short")
    return data


def answer_of(played: Played, *, seconds: float) -> tuple[Answer, list[bytes]]:
    """A segment as a message."""
    arrays = dict(played.arrays)
    for index, leaf in enumerate(_leaves(played.memory)):
        arrays[f"{_MEMORY}{index}"] = leaf
    finished = [(one.number, *one.finished, one.side, one.opponent) for one in played.finished]
    return Answer(finished=finished, started=played.started, seconds=seconds), [to_npz(arrays)]


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


def series_answer_of(matches: Sequence[Sequence[FrozenMatch]]) -> SeriesAnswer:
    """Frozen matches as a message."""
    return SeriesAnswer(
        matches=[[(*one.finished, one.side, one.path) for one in some] for some in matches]
    )


def series_of(answer: SeriesAnswer) -> list[list[FrozenMatch]]:
    """The other way round."""
    return [
        [
            FrozenMatch(Finished(reward, steps, tuple(sides), alike), side, path)
            for reward, steps, sides, alike, side, path in some
        ]
        for some in answer.matches
    ]


def _leaves(tree: Tree) -> list[NDArray]:
    """The arrays of a tree, in the order of `mapped`."""
    found: list[NDArray] = []

    def note(leaf: NDArray) -> NDArray:
        found.append(leaf)
        return leaf

    mapped(note, tree)
    return found
