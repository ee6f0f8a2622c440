"""A day of play, simulated at speed: does memory stay flat, and does the ledger balance?

    python benchmarks/serve_day.py [--hours 24] [--territories 100] [--json]

The session, the ledger and the spool are the real ones, on a disk; only the clock is a fake, so
that windows and expiries happen as they would over a day. Players are as they are: they skip ticks,
send things twice or broken, vanish for a while or for good, fall silent, tell rewards late. The
version that decides is replaced every ten minutes, and episodes are taken out of the spool as a
learner would.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import machine
import msgspec
import numpy as np
import psutil
import served

from understudy.adapters.territory.cost_gate import CostGate
from understudy.adapters.territory.matches import SECONDS_PER_TICK, TerritoryMatches, action_of
from understudy.adapters.territory.messages import ObservationData
from understudy.adapters.territory.translator import TerritoryTranslator
from understudy.core.config.serving import LiveConfig
from understudy.experience.ledger import DecisionCounts, Ledger
from understudy.experience.spool import Spool
from understudy.policy.policy import Policy, untrained
from understudy.policy.presets import network
from understudy.policy.spec import PolicySpec
from understudy.session.inbox import Incoming
from understudy.session.protocol import End, Ping, Reward
from understudy.session.session import Session

TICKS_PER_HOUR = 3600 // SECONDS_PER_TICK
MID_MATCH = 120
"""Ticks before the full hour, at which matches end: they are looked at in the middle."""
WARM_UP = 1 / 4
"""The share of the day in which memory may grow: the ledger remembers between 100,000 and 200,000
decisions that ended, which 100 territories make in three hours."""
FLAT = 0.05
SKIP, TWICE, BROKEN, LATE_REWARD, VANISH, FALL_SILENT = 0.01, 0.005, 0.001, 0.01, 0.0005, 0.0003
"""What happens to a territory in a tick, by chance."""


class FakeClock:
    """Moved by hand."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def time(self) -> float:
        """Seconds since 1970."""
        return self.now

    def monotonic(self) -> float:
        """The same."""
        return self.now


class Clients:
    """One client for each territory, with the faults of real ones."""

    def __init__(self, session: Session, matches: TerritoryMatches, rng: np.random.Generator):
        self._session, self._matches, self._rng = session, matches, rng
        self._away = np.zeros(matches.count, int)
        """Ticks for which each sends nothing"""
        self._gone = np.zeros(matches.count, bool)
        """Whose connection is closed meanwhile"""
        self._decided: list[int] = []
        for index in range(matches.count):
            session.joined(self._name(index))

    def tick(self) -> tuple[int, int]:
        """One tick of everybody; how many answers and how many errors came back."""
        inbox = self._inbox(self._matches.observations())
        answers = self._session.receive(inbox)
        assert len(answers) == len(inbox), "every message has one answer"
        actions = np.zeros(self._matches.count, np.int32)
        errors = 0
        for outgoing in answers:
            answer = msgspec.json.decode(outgoing.data)
            errors += answer["type"] == "error"
            if answer.get("decision_id"):
                self._decided.append(answer["decision_id"])
            if answer["type"] == "spawn_decision" and answer["spawnType"]:
                index = int(outgoing.client.removeprefix("client-"))
                actions[index] = action_of(answer["spawnChunk"], answer["spawnType"])
        self._matches.play(actions)
        for name in self._matches.next_matches():
            index = int(name.rpartition("-")[2])
            if not self._away[index]:
                end = msgspec.json.encode(End(territory=name))
                self._session.receive([Incoming(self._name(index), end)])
        return len(answers), errors

    def _inbox(self, seen: Sequence[object]) -> list[Incoming]:
        chance, inbox = self._rng.random((6, len(seen))), []
        for index, data in enumerate(seen):
            client = self._name(index)
            if self._away[index]:
                self._away[index] -= 1
                if not self._away[index] and self._gone[index]:
                    self._session.joined(client)
                    self._gone[index] = False
                continue
            if chance[0, index] < VANISH:
                self._away[index], self._gone[index] = self._rng.integers(2, 40), True
                self._session.left(client)
                continue
            if chance[1, index] < FALL_SILENT:
                self._away[index] = self._rng.integers(20, 40)
                continue
            if chance[2, index] < SKIP:
                continue
            message = msgspec.json.encode(ObservationData(data=data))  # type: ignore[arg-type]
            inbox += [Incoming(client, message)] * (2 if chance[3, index] < TWICE else 1)
            if chance[4, index] < BROKEN:
                inbox.append(Incoming(client, message[: len(message) // 2]))
            if chance[5, index] < LATE_REWARD and self._decided:
                old = self._decided[int(self._rng.integers(len(self._decided)))]
                told = msgspec.json.encode(Reward(decision_id=old, reward=0.1))
                inbox += [Incoming(client, told), Incoming(client, msgspec.json.encode(Ping()))]
        del self._decided[:-2000]
        return inbox

    def _name(self, index: int) -> str:
        return f"client-{index}"


def unbalanced(counts: DecisionCounts) -> int:
    """opened less all the ways to end and what is open: 0, or the ledger lies."""
    ended = counts.settled + counts.expired + counts.superseded + counts.orphaned
    return counts.opened - ended - counts.open


def measure(hours: int, territories: int) -> dict[str, object]:
    game, clock, rng = TerritoryTranslator(), FakeClock(), np.random.default_rng(0)
    spec = PolicySpec(game.features, game.actions, network("mlp"))
    policies: list[Policy] = [untrained(spec, seed) for seed in range(2)]
    process, began = psutil.Process(), time.perf_counter()
    rows: list[dict[str, float]] = []
    config = LiveConfig()
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        spool = Spool(root, spec, clock)
        with Ledger(
            root / "ledger", spec, segment=config.segment, clock=clock, put=spool.put,
            sync_ms=config.sync_ms,
        ) as ledger:  # fmt: skip
            session = Session(
                game, policy=lambda: policies[0], gate=CostGate(threshold=config.threshold),
                ledger=ledger, config=config, clock=clock, seed=0,
            )  # fmt: skip
            clients = Clients(session, TerritoryMatches(count=territories, seed=0), rng)
            answers = errors = episodes = decisions = 0
            for tick in range(1, hours * TICKS_PER_HOUR + 1):
                clock.now += SECONDS_PER_TICK
                got, wrong = clients.tick()
                session.tick()
                answers, errors = answers + got, errors + wrong
                if tick % (TICKS_PER_HOUR // 6) == 0:
                    policies.append(untrained(spec, tick))
                    del policies[0]
                    ledger.flush()
                    for name in spool.pending():  # a learner's part
                        decisions += len(spool.load(name).actions)
                        episodes += 1
                        (spool.buffer / name).unlink()
                if (tick + MID_MATCH) % TICKS_PER_HOUR == 0:
                    rows.append(
                        {
                            "hour": (tick + MID_MATCH) // TICKS_PER_HOUR,
                            "memory_mb": process.memory_info().rss / 2**20,
                            "ledger_kb": sum(
                                file.stat().st_size for file in (root / "ledger").rglob("*")
                            ) / 1024,
                            "unbalanced": unbalanced(ledger.counts),
                            "open": ledger.counts.open,
                            "territories": session.status().territories,
                        }
                    )  # fmt: skip
                    print(f"hour {rows[-1]['hour']:.0f}: {rows[-1]}", file=sys.stderr)
            counts = ledger.counts
    return {
        "machine": machine.describe("numpy", "msgspec"),
        "hours": hours,
        "seconds": time.perf_counter() - began,
        "answers": answers,
        "errors": errors,
        "episodes": episodes,
        "decisions_spooled": decisions,
        "counts": counts._asdict(),
        "rows": rows,
    }


def swing(rows: Sequence[dict[str, float]]) -> float:
    """How far memory strays from its median after the warm-up, as a share of it."""
    memory = np.array([row["memory_mb"] for row in rows[int(len(rows) * WARM_UP) :]])
    middle = float(np.median(memory))
    return float(np.abs(memory - middle).max() / middle)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--territories", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    result = measure(arguments.hours, arguments.territories)
    rows, counts = result["rows"], result["counts"]
    assert isinstance(rows, list) and isinstance(counts, dict)
    strayed, wrong = swing(rows), max(abs(row["unbalanced"]) for row in rows)
    result["memory_swing"] = strayed
    lines = [
        f"{arguments.hours} h of {arguments.territories} territories in {result['seconds']:.0f} s: "
        f"{result['answers']:,} answers, {result['errors']} errors",
        "  ".join(f"{name} {count:,}" for name, count in counts.items()),
        f"{'ledger out of balance, at most':40}{wrong:>9.0f}   goal: 0",
        f"{'memory after warm-up':40}{rows[-1]['memory_mb']:>6.1f} MB, strays by "
        f"{strayed:.1%}   goal: within 5%",
        f"{'ledger on disk at the end':40}{rows[-1]['ledger_kb']:>6.0f} KB",
        f"{'episodes spooled':40}{result['episodes']:>9}, {result['decisions_spooled']} decisions",
    ]
    missed = [] if strayed <= FLAT else [f"memory strays by {strayed:.1%}"]
    if wrong:
        missed.append("the ledger does not balance")
    served.report(result, lines, missed, as_json=arguments.json)


if __name__ == "__main__":
    main()
