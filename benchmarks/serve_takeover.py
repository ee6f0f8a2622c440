"""How a server takes over from a client's own rules: when, and how much better it then is.

    python benchmarks/serve_takeover.py [--seeds 5] [--minutes 5] [--rate 200] [--fast] [--json]

A client plays `watch_game` in 20 territories and sends with every observation what its own rules
would do (`proposed`). The server (`serve --promotion auto`) lets the rules play until a version is
better by evidence. Rewards are told by the client. It has taken over once 80% of the decisions of
20 s are those of a policy: a tenth stays with the rules, as a holdout, and before that practice and
a canary make 60% together. The mean reward of the last minute is compared with the rules alone on
the same seed.

Each seed has a server in a process of its own, a learner beside it and one WebSocket. `--fast`
plays the same through a session in this process, in simulated time, with learning in between: for
tests and tuning.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
import tomllib
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import machine
import numpy as np
import served
from takeover_runs import minutes_left, say
from watch_game import ACTIONS, SCHEMA, Watch, rules_alone
from websockets.asyncio.client import ClientConnection, connect

from understudy.core import files
from understudy.core.files import Disk

TERRITORIES = 20
GOAL_S = 300.0
SCORE = (-0.5, 1.0)
"""The lowest and the highest mean reward of a segment."""
_WINDOW_S = 20.0
_TAKEN = 0.8
_LAST_S = 60.0
_TELL_EVERY_S = 30.0


class Takeover(NamedTuple):
    """What one seed came to."""

    seed: int
    taken_s: float | None
    """When the policy had taken over; None: it had not."""
    reward: float
    """Mean of the last minute."""
    rules: float
    """The same of the rules alone."""
    degraded: int

    @property
    def words(self) -> str:
        taken = "never" if self.taken_s is None else f"after {self.taken_s:.0f} s"
        return (
            f"seed {self.seed}: taken over {taken}; reward of the last minute {self.reward:+.3f}, "
            f"rules alone {self.rules:+.3f}; {self.degraded} degraded"
        )

    @property
    def missed(self) -> list[str]:
        """The goals that this seed missed."""
        found = []
        if self.taken_s is None or self.taken_s > GOAL_S:
            found.append(f"seed {self.seed} was not taken over within {GOAL_S:g} s")
        if self.reward <= self.rules:
            found.append(f"seed {self.seed} ended below the rules")
        return found


class Progress:
    """Tells on standard error how many ticks of all seeds are played, and how long the rest takes.

    Args:
        ticks: Of all seeds.
        every_s: Seconds between two lines.
    """

    def __init__(self, ticks: int, *, every_s: float = _TELL_EVERY_S) -> None:
        self._ticks = ticks
        self._every_s = every_s
        self._done = 0
        self._began = self._told = time.monotonic()

    def tick(self) -> None:
        """One more is played."""
        self._done += 1
        now = time.monotonic()
        if now - self._told >= self._every_s:
            self._told = now
            left = minutes_left(self._done, self._ticks, now - self._began)
            say(f"{self._done:,} of {self._ticks:,} ticks, {left}")


class Account:
    """What was decided and what it was worth, tick by tick."""

    def __init__(self, *, ticks_per_s: float, ticked: Callable[[], None]) -> None:
        self._per_s = ticks_per_s
        self._ticked = ticked
        self._by_policy: deque[float] = deque(maxlen=round(_WINDOW_S * ticks_per_s))
        self._rewards: list[float] = []
        self.taken_s: float | None = None
        self.degraded = 0

    def tick(self, answers: Sequence[dict[str, Any]], rewards: Sequence[float]) -> None:
        self._rewards.append(float(np.mean(rewards)))
        self._by_policy.append(float(np.mean([one["by"] == "policy" for one in answers])))
        self.degraded += sum(one["degraded"] for one in answers)
        full = len(self._by_policy) == self._by_policy.maxlen
        if self.taken_s is None and full and np.mean(self._by_policy) >= _TAKEN:
            self.taken_s = len(self._rewards) / self._per_s
        self._ticked()

    def of(self, seed: int) -> Takeover:
        ticks, last = len(self._rewards), round(_LAST_S * self._per_s)
        rules = rules_alone(TERRITORIES, seed, ticks=ticks, last=last)
        reward = float(np.mean(self._rewards[-last:]))
        return Takeover(seed, self.taken_s, reward, rules, self.degraded)


def ticks_of(minutes: float, rate: float) -> int:
    """Ticks that a seed plays; `rate` is that of decisions, a second."""
    return round(60 * minutes * rate / TERRITORIES)


def observations(game: Watch, tick: int) -> list[dict[str, Any]]:
    """The messages of one tick."""
    return [
        {
            "type": "observation",
            "territory": f"post-{index}",
            "tick": tick,
            "features": row,
            "proposed": ACTIONS[proposed],
        }
        for index, (row, proposed) in enumerate(
            zip(game.seen().tolist(), game.rules().tolist(), strict=True)
        )
    ]


def played(game: Watch, answers: Sequence[dict[str, Any]]) -> tuple[list[float], list[Any]]:
    """The rewards of one tick, and the messages that tell them."""
    reports = np.array([ACTIONS.index(one["action"]) for one in answers])
    rewards = game.play(reports).tolist()
    told = [
        {"type": "reward", "decision_id": one["decision_id"], "reward": reward}
        for one, reward in zip(answers, rewards, strict=True)
        if one["decision_id"] is not None
    ]
    return rewards, told


# --- the real server ---------------------------------------------------------------------------


async def _ask(socket: ClientConnection, messages: Sequence[Any]) -> list[dict[str, Any]]:
    for message in messages:
        await socket.send(json.dumps(message))
    return [json.loads(await socket.recv()) for _ in messages]


async def _play(
    url: str, seed: int, *, minutes: float, rate: float, ticked: Callable[[], None]
) -> Account:
    ticks_per_s = rate / TERRITORIES
    account, game = Account(ticks_per_s=ticks_per_s, ticked=ticked), Watch(TERRITORIES, seed)
    async with connect(url, compression=None) as socket:
        await _ask(socket, [{"type": "hello", "protocol": 1}])
        due = time.monotonic()
        for tick in range(ticks_of(minutes, rate)):
            answers = await _ask(socket, observations(game, tick))
            rewards, told = played(game, answers)
            await _ask(socket, told)
            account.tick(answers, rewards)
            due += 1.0 / ticks_per_s
            await asyncio.sleep(max(0.0, due - time.monotonic()))
    return account


def served_takeover(
    seed: int, *, minutes: float, rate: float, ticked: Callable[[], None]
) -> Takeover:
    """One server, one learner, one client."""
    with tempfile.TemporaryDirectory() as place:
        schema = Path(place) / "watch.toml"
        schema.write_text(SCHEMA, encoding="utf-8")
        flags = ("--schema", str(schema), "--seed", str(seed), "--promotion", "auto")
        score = f"--score={SCORE[0]:g},{SCORE[1]:g}"
        with served.understudy(Path(place) / "run", *flags, score) as server:
            account = asyncio.run(
                _play(server.url, seed, minutes=minutes, rate=rate, ticked=ticked)
            )
    return account.of(seed)


# --- simulated time ------------------------------------------------------------------------------


class UnsyncedDisk(Disk):
    """Syncs cost nothing: no power is cut here."""

    def sync(self, path: Path) -> None:
        pass

    def sync_folder(self, path: Path) -> None:
        pass


class SimulatedClock:
    """Goes on when it is told to."""

    def __init__(self) -> None:
        self.now = self._began = 1_700_000_000.0

    def tell(self, words: str) -> None:
        """Prints what was said, and when."""
        print(f"{self.now - self._began:.0f} s: {words}", file=sys.stderr)

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


def fast_takeover(
    seed: int, *, minutes: float, rate: float, ticked: Callable[[], None]
) -> Takeover:
    """The same through a session in this process: no socket, no thread, no waiting."""
    from understudy.core.config import with_values
    from understudy.experience.ledger import Ledger
    from understudy.experience.spool import Spool
    from understudy.gates.decision import OpenGate
    from understudy.learner.continuous.learner import ContinuousLearner
    from understudy.learner.trainer import Trainer
    from understudy.policy.mlp import Mlp
    from understudy.policy.policy import untrained
    from understudy.policy.spec import PolicySpec
    from understudy.registry.run_folder import RunFolder
    from understudy.run.segment_writer import open_segments
    from understudy.session.inbox import Incoming
    from understudy.session.schema import from_table
    from understudy.session.segments import PlayerSegments
    from understudy.session.session import Session
    from understudy.telemetry.journal import Journal
    from understudy.training.named_configs import config as config_named

    translator = from_table(tomllib.loads(SCHEMA))
    chosen = {"live.promotion": "auto", "live.score": SCORE, "learner.seed": seed}
    config = with_values(config_named("live"), chosen)
    spec = PolicySpec(translator.features, translator.actions, Mlp())
    clock = SimulatedClock()
    ticks_per_s = rate / TERRITORIES
    account, game = Account(ticks_per_s=ticks_per_s, ticked=ticked), Watch(TERRITORIES, seed)
    with tempfile.TemporaryDirectory() as place, files.using(UnsyncedDisk()):
        root = Path(place)
        folder = RunFolder.open(root, spec=spec, config=config, clock=clock)
        journal = Journal(folder.journal, "server", clock)
        newest = [untrained(spec, seed)]
        writer = open_segments(
            folder, newest=lambda: newest[0], journal=journal, say=clock.tell, problem=print,
            seed=seed, background=False,
        )  # fmt: skip
        spool = Spool(root, spec, clock)

        def put(episode: Any) -> None:
            spool.put(episode)
            writer.remember(episode)

        ledger = Ledger(
            root / "ledger", spec, segment=config.live.segment, clock=clock, put=put,
            sync_ms=50.0, segment_s=config.live.segment_s, stagger=True, background=False,
        )  # fmt: skip
        session = Session(
            translator, policy=lambda: writer.policy, gate=OpenGate(), ledger=ledger,
            config=config.live, clock=clock, seed=seed,
            segments=PlayerSegments(writer, config.live),
        )  # fmt: skip
        learner = ContinuousLearner(folder, Trainer(spec, config.learner), journal)

        def ask(messages: Sequence[Any]) -> list[dict[str, Any]]:
            inbox = [Incoming("watchman", json.dumps(one)) for one in messages]
            return [json.loads(one.data) for one in session.receive(inbox)]

        for tick in range(ticks_of(minutes, rate)):
            answers = ask(observations(game, tick))
            rewards, told = played(game, answers)
            ask(told)
            account.tick(answers, rewards)
            clock.now += 1.0 / ticks_per_s
            writer.work()
            while learner.work():
                pass
            if learner.version > newest[0].version:
                newest[0] = folder.versions.policy(learner.version)
    return account.of(seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--rate", type=float, default=200.0)
    parser.add_argument("--fast", action="store_true", help="simulated time, in this process")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    measure = fast_takeover if arguments.fast else served_takeover
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    progress = Progress(len(seeds) * ticks_of(arguments.minutes, arguments.rate))
    described = machine.describe("numpy", "jax", "uvicorn")
    rows = sys.stderr if arguments.json else sys.stdout
    print(described, file=rows, flush=True)
    found = []
    for seed in seeds:
        found.append(
            measure(seed, minutes=arguments.minutes, rate=arguments.rate, ticked=progress.tick)
        )
        print(found[-1].words, file=rows, flush=True)
    missed = [words for one in found for words in one.missed]
    if arguments.json:
        result = {"machine": described, "seeds": [one._asdict() for one in found]}
        print(json.dumps({**result, "missed": missed}))
    served.exit_where_missed(missed)


if __name__ == "__main__":
    main()
