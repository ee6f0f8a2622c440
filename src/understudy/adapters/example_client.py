"""A client to read and to copy: a made-up game, played on the decisions of `understudy serve`.

    understudy serve --schema my_game.toml                      # in one terminal
    python -m understudy.adapters.example_client --territories 3 --ticks 100    # in another

It knows nothing of the game but what the server's welcome says, so it plays every schema. The
made-up game rewards the actions that its first feature points at: watch the reward grow. It is for
people; nothing in Understudy imports it. `docs/put-your-game-behind-understudy.md` goes with it.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from typing import Any

from websockets.sync.client import ClientConnection, connect

PROTOCOL = 1
TICK_S = 0.02  # a real game takes its time


def ask(socket: ClientConnection, **message: object) -> dict[str, Any]:
    """Send one message and wait for its answer; an answer that is an error is raised."""
    socket.send(json.dumps(message))
    answer: dict[str, Any] = json.loads(socket.recv(timeout=10))
    if answer["type"] == "error":
        raise SystemExit(f"{answer['code']}: {answer['message']} (field: {answer['field']})")
    return answer


def worth(pointer: float, action: Any, parts: dict[str, list[str]]) -> float:
    """The made-up game: the share of parts in which 0 <= `pointer` < 1 points at the choice."""
    chosen = action if isinstance(action, dict) else {"": action}  # a single choice is one part
    right = [chosen[part] == names[int(pointer * len(names))] for part, names in parts.items()]
    return right.count(True) / len(right)


def play(url: str, *, territories: int, ticks: int) -> float:
    """Play so many ticks in each territory; returns the mean reward."""
    rewards: list[float] = []
    # A token, where the server asks for one, goes into the hello: never into the URL.
    with connect(url, compression=None, open_timeout=5) as socket:
        welcome = ask(socket, type="hello", protocol=PROTOCOL)
        features, actions = welcome["features"], welcome["actions"]
        if actions["type"] == "spawn":
            raise SystemExit("territory has messages of its own: understudy play territory --url")
        parts = actions.get("parts") or {"": actions["names"]}
        print(f"{welcome['game']}: {len(features)} features,", *map(len, parts.values()), "actions")
        for tick in range(ticks):
            for name in (f"demo-{number}" for number in range(territories)):
                seen = [random.random() for _ in features]
                said = ask(socket, type="observation", territory=name, tick=tick, features=seen)
                # WAIT: the gate advises against it, and a game does nothing in this tick.
                sent = said["verdict"] == "SEND"
                rewards.append(worth(seen[0], said["action"], parts) if sent else 0.0)
                if said["decision_id"] is not None:  # else the server could not write it down
                    ask(socket, type="reward", decision_id=said["decision_id"], reward=rewards[-1])
            every = max(ticks // 10, 1)
            if (tick + 1) % every == 0:
                mean = sum(rewards[-every * territories :]) / (every * territories)
                print(f"tick {tick + 1:>6}  version {said['version']:>4}  mean {mean:.3f}")
            time.sleep(TICK_S)
        for number in range(territories):
            ask(socket, type="end", territory=f"demo-{number}")
    return sum(rewards) / max(len(rewards), 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A made-up game, played on a server's decisions.")
    parser.add_argument("--url", default="ws://127.0.0.1:8765/ws")
    parser.add_argument("--territories", type=int, default=3)
    parser.add_argument("--ticks", type=int, default=100)
    play(**vars(parser.parse_args()))
