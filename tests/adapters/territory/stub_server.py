"""A server on loopback that answers as a test wants it to, and keeps what it was sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from websockets.sync.server import Server, ServerConnection, serve

Message = dict[str, Any]


class Stub:
    """`answer` gets a message and gives the answer's fields; None closes the connection."""

    def __init__(self, answer: Callable[[Message], Message | None], *, game: str) -> None:
        self._answer, self._game = answer, game
        self.hellos: list[Message] = []
        self.heard: list[Message] = []
        self.most_in_flight = 0
        self._server: Server

    def __call__(self, socket: ServerConnection) -> None:
        for data in socket:
            message = json.loads(data)
            if message["type"] == "hello":
                self.hellos.append(message)
                socket.send(json.dumps(self.welcome))
                continue
            self.heard.append(message)
            said = self._answer(message)
            if said is None:
                socket.close()
                return
            socket.send(json.dumps({"id": message["id"], **said}))

    @property
    def welcome(self) -> Message:
        return {
            "type": "welcome", "protocol": 1, "client": "c1", "resume": "key", "game": self._game,
            "features": ["a"], "actions": ["x", "y"], "version": 0,
        }  # fmt: skip


@contextmanager
def stub(
    answer: Callable[[Message], Message | None], *, game: str = "territory"
) -> Iterator[tuple[Stub, str]]:
    """The stub, and its address."""
    handler = Stub(answer, game=game)
    with serve(handler, "127.0.0.1", 0, compression=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield handler, f"ws://127.0.0.1:{server.socket.getsockname()[1]}/ws"
        finally:
            server.shutdown()
            thread.join(timeout=10)


def wait(message: Message, **changes: Any) -> Message:
    """The gate waits; an `end` is acknowledged."""
    if message["type"] == "end":
        return {"type": "ended", "territory": message["territory"], "decisions": 1}
    return {
        "type": "observation_ack", "territoryId": message["data"]["territoryId"], "status": "wait",
        "action": "none", "reasons": ["threat"], "expected_reward": -0.1, "decision_id": 1,
        "version": 3, "duplicate": False, **changes,
    }  # fmt: skip


def spawn(message: Message, chunk: int, kind: str | None, **changes: Any) -> Message:
    """Something is spawned; an `end` is acknowledged."""
    if message["type"] == "end":
        return wait(message)
    return {
        "type": "spawn_decision", "territoryId": message["data"]["territoryId"],
        "spawnChunk": chunk, "spawnType": kind, "confidence": 0.5, "typeConfidence": 0.5,
        "skipped": False, "skipReason": None, "decision_id": 1, "version": 3, "explored": False,
        "degraded": False, "duplicate": False, **changes,
    }  # fmt: skip
