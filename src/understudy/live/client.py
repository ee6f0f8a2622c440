"""A client to read and to copy: a made-up game, played on the decisions of `understudy serve`.

    understudy serve --schema my_game.toml                      # in one terminal
    python -m understudy.live.client --territories 3 --ticks 100    # in another

It knows nothing of the game but what the server's welcome says, so it works with every schema. The
made-up game rewards the action that its first feature points at: watch the reward grow. It is for
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
TICK_S = 0.02
"""A real game takes its time; without any the server would refuse what comes too fast."""


def ask(socket: ClientConnection, **message: object) -> dict[str, Any]:
    """Send one message and wait for its answer; an answer that is an error is raised."""
    socket.send(json.dumps(message))
    answer: dict[str, Any] = json.loads(socket.recv(timeout=10))
    if answer["type"] == "error":
        raise SystemExit(f"{answer['code']}: {answer['message']} (field: {answer['field']})")
    return answer


def play(url: str, *, territories: int, ticks: int) -> float:
    """Play so many ticks in each territory; returns the mean reward."""
    total = lately = 0.0
    shown_every = max(ticks // 10, 1)
    # A token, where the server asks for one, goes into the hello: never into the URL.
    with connect(url, compression=None, open_timeout=5) as socket:
        welcome = ask(socket, type="hello", protocol=PROTOCOL)
        features, actions = welcome["features"], welcome["actions"]["names"]
        print(f"{welcome['game']}: {len(features)} features, {len(actions)} actions")
        for tick in range(ticks):
            for territory in (f"demo-{number}" for number in range(territories)):
                seen = [random.random() for _ in features]
                decision = ask(
                    socket, type="observation", territory=territory, tick=tick, features=seen
                )
                # WAIT: the gate advises against it, and a game does nothing in this tick.
                sent = decision["verdict"] == "SEND"
                right = actions[min(int(seen[0] * len(actions)), len(actions) - 1)]
                reward = 1.0 if sent and decision["action"] == right else 0.0
                ask(socket, type="reward", decision_id=decision["decision_id"], reward=reward)
                total, lately = total + reward, lately + reward
            if (tick + 1) % shown_every == 0:
                mean, lately = lately / (shown_every * territories), 0.0
                print(f"tick {tick + 1:>6}  version {decision['version']:>4}  mean {mean:.3f}")
            time.sleep(TICK_S)
        for number in range(territories):
            ask(socket, type="end", territory=f"demo-{number}")
    return total / max(ticks * territories, 1)


def main() -> None:
    """Read the command line and play."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--url", default="ws://127.0.0.1:8765/ws")
    parser.add_argument("--territories", type=int, default=3)
    parser.add_argument("--ticks", type=int, default=100)
    arguments = parser.parse_args()
    play(arguments.url, territories=arguments.territories, ticks=arguments.ticks)


if __name__ == "__main__":
    main()
